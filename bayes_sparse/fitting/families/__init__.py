"""Families of methods, one a file: how each runs a method, judges its end, describes it and starts NUTS from it."""

from __future__ import annotations

from bayes_sparse.fitting.families._family import Family, Found, Task, family_of, find

__all__ = ["Family", "Found", "Task", "family_of", "find"]
