"""The folder is the registry: a file's name is the option's name, and the error for a wrong one lists the folder.

The first name in a file's ``__all__`` is the choice. A file put into the folder is an option at once: by its name in
`fit`, and by the name of its class as an attribute of the package.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable
from difflib import get_close_matches
from types import ModuleType
from typing import Any

__all__ = ["by_class_name", "did_you_mean", "lookup", "name_of", "options", "shown_as"]


def options(package: str) -> list[str]:
    """Names of the files in a package's folder."""
    folder = importlib.import_module(package)
    return sorted(m.name for m in pkgutil.iter_modules(folder.__path__) if not m.name.startswith("_"))


def lookup(package: str, name: str, kind: str, more: str = "") -> Any:
    """The choice in the file ``name`` of a package's folder; ``more`` is said of other ways where there is none."""
    # Else it was found before: looking into a folder takes its time.
    if f"{package}.{name}" not in sys.modules or name.startswith("_"):
        known = options(package)
        if name not in known:
            hint = did_you_mean(name, known)
            raise ValueError(f"There is no {kind} {name!r}; there are {', '.join(known)}{more}.{hint}")
    module = importlib.import_module(f"{package}.{name}")  # waits where another thread is at it
    choice = getattr(module, module.__all__[0])
    if module.__all__[0] == name:  # importing a file makes it an attribute of its package, in the place of the choice
        setattr(importlib.import_module(package), name, choice)
    return choice


def did_you_mean(name: object, known: list[str]) -> str:
    """A hint at the option that is spelt most alike, if any is."""
    close = get_close_matches(str(name), known, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def name_of(choice: Any) -> str:
    """The option's name of an object: that of the file its class is in, or of its class if that is the user's own."""
    package, _, file = type(choice).__module__.rpartition(".")
    return file if package.startswith("bayes_sparse.") else type(choice).__name__.lower()


def by_class_name(package: str) -> Callable[[str], Any]:
    """A package's ``__getattr__``: the choice whose class has the name asked for, from whichever file it is in."""

    def find(name: str) -> Any:
        if not name.startswith("_"):
            for option in options(package):
                choice = lookup(package, option, "option")
                if choice.__name__ == name:
                    return choice
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find


class _Listing(ModuleType):
    """A package that prints as the table of what is in it."""

    def __repr__(self) -> str:
        return str(self.__dict__["__listing__"]())


def shown_as(package: ModuleType, listing: Callable[[], str]) -> None:
    """Have a package print as what ``listing`` gives, so that its name at a prompt tells what there is."""
    package.__dict__["__listing__"] = listing
    package.__class__ = _Listing
