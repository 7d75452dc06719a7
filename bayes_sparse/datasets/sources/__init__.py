"""What the data sets are, and where a public copy of each lies: every file of this folder names some.

A file has ``SETS`` (name: `Source`), and for its sets either ``COPIES`` (name: `Copy`) or ``ORIGINS`` (name: who made
them, where no public copy in a plain form is known to us). Every checksum is that of our CSV form (header, last column
``target``, missing values empty), uncompressed. A copy is a public text file at a fixed commit; `Copy.to_csv` turns it
into our form, and only a text with the right checksum is ever used. So a copy that changes, or a converter that errs,
is refused and cannot slip in.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bayes_sparse.common import registry

__all__ = ["Copy", "Source", "copies", "origins", "sets"]

_BETWEEN = re.compile(r"\s*,\s*|\s+")


@dataclass(frozen=True)
class Source:
    """Shape and checksum of a set in our CSV form."""

    rows: int
    features: int
    sha256: str


@dataclass(frozen=True)
class Copy:
    """A public copy of a set, and how its lines become ours.

    Attributes
    ----------
    repository, commit, path : str
        Where the file lies on GitHub.
    columns : str
        Our names of the features, separated by blanks.
    skip : int
        Lines of the copy's own header.
    target : int
        Position of the target in a line.
    drop : tuple of int
        Positions left out: identifiers and row numbers.
    numbers : mapping
        Columns whose numbers are written anew, as float or int, because the copy writes them in another way.
    labels : mapping
        Codes of the target in the copy and in ours, where they differ.
    first_row : int
        Where ours begins, if the copy holds two sets one after the other.
    installed : str
        Path of the same file inside an installed package, to be used before any network.
    """

    repository: str
    commit: str
    path: str
    columns: str
    skip: int = 0
    target: int = -1
    drop: tuple[int, ...] = ()
    numbers: Mapping[str, Callable[[float], float]] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    first_row: int = 0
    installed: str = ""

    @property
    def url(self) -> str:
        """Address of the raw file."""
        return f"https://raw.githubusercontent.com/{self.repository}/{self.commit}/{self.path}"

    def to_csv(self, text: str) -> str:
        """Our CSV form of the copy's text."""
        # Lines starting with % or @ are the head of an ARFF file; no row of data starts so.
        lines = [line.strip() for line in text.splitlines() if line.strip() and line[0] not in "%@"]
        names = [*self.columns.split(), "target"]
        rows = [self._row(_BETWEEN.split(line), names) for line in lines[self.skip + self.first_row :]]
        return "".join(",".join(row) + "\n" for row in [names, *rows])

    def _row(self, fields: list[str], names: list[str]) -> list[str]:
        target = self.target % len(fields)
        row = [value for i, value in enumerate(fields) if i != target and i not in self.drop]
        row.append(self.labels.get(fields[target], fields[target]))
        row = ["" if value == "?" else value for value in row]
        for name, number in self.numbers.items():
            row[names.index(name)] = str(number(float(row[names.index(name)])))
        return row


def sets() -> dict[str, Source]:
    """All data sets by name, whichever file they are in."""
    return dict(sorted(_united("SETS").items()))


def copies() -> dict[str, Copy]:
    """Public copies by the name of the set."""
    return _united("COPIES")


def origins() -> dict[str, str]:
    """Who made the sets without a public copy."""
    return _united("ORIGINS")


def _united(table: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in registry.options(__name__):
        found |= vars(importlib.import_module(f"{__name__}.{name}")).get(table, {})
    return found
