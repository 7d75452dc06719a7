"""Families of methods, one a file: how each runs a method, judges its end, describes it and starts NUTS from it."""

from __future__ import annotations

from bayes_sparse.fitting.families._family import Family, Found, Rules, Task, family_of, find, rules_of

__all__ = ["Family", "Found", "Rules", "Task", "family_of", "find", "rules_of"]
