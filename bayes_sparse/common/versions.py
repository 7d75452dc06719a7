"""Versions of the packages that a result depends on."""

from __future__ import annotations

import json
from functools import cache
from importlib.metadata import version

__all__ = ["versions"]


@cache
def versions() -> str:
    """As JSON, the way a tree stores them."""
    names = ("bayes_sparse", "pymc", "pytensor", "arviz", "numpy", "scipy", "xarray")
    return json.dumps({name: version(name) for name in names})
