"""The folder is the registry: a file's name is the option's name, and the error for a wrong one lists the folder."""

from __future__ import annotations

import importlib
import pkgutil
from difflib import get_close_matches
from typing import Any

__all__ = ["lookup", "name_of", "options"]


def options(package: str) -> list[str]:
    """Names of the files in a package's folder."""
    folder = importlib.import_module(package)
    return sorted(m.name for m in pkgutil.iter_modules(folder.__path__) if not m.name.startswith("_"))


def lookup(package: str, name: str, kind: str) -> Any:
    """The one public name of the file ``name`` in a package's folder."""
    known = options(package)
    if name not in known:
        close = get_close_matches(str(name), known, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"There is no {kind} {name!r}; there are {', '.join(known)}.{hint}")
    module = importlib.import_module(f"{package}.{name}")
    return getattr(module, module.__all__[0])


def name_of(choice: Any) -> str:
    """The option's name of an object: that of the file its class is in, or of its class if that is the user's own."""
    package, _, file = type(choice).__module__.rpartition(".")
    return file if package.startswith("bayes_sparse.") else type(choice).__name__.lower()
