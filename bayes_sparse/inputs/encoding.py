"""How the columns that people hand in become columns of numbers: categories as indicators, missing values marked.

An `Encoding` is found while a fit reads its data, and stored as JSON, so that new rows are read in the same way.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.sparse import hstack, issparse

from bayes_sparse.common.types import BoolArray, FloatArray, IntArray
from bayes_sparse.inputs.categories import category_of, check_levels, label_of
from bayes_sparse.inputs.formula import evaluated
from bayes_sparse.inputs.frames import side_by_side
from bayes_sparse.problem.sparse_design import Features, as_csc

__all__ = ["MISSING", "Encoding", "Missing", "Unseen", "encoded", "found_in", "lost_in"]

type Missing = Literal["refuse", "drop", "mean"]
type Unseen = Literal["refuse", "ignore"]
type Given = Features | list[Any]  # a matrix of numbers, or columns one by one

MISSING = "missing"  # the level of what is not known
_FALSE_TRUE = ["False", "True"]


@dataclass(frozen=True)
class Encoding:
    """How columns become numbers.

    Attributes
    ----------
    given : list of str
        Names of the columns handed in.
    levels : dict of list of str
        Of each column that holds categories: its levels, the first of which the others may be measured from.
    missing : str
        What is done with missing values.
    marked : list of str
        Columns of numbers of which another column says where they were missing.
    constant : list of str
        Columns of numbers that the fit left out because they are constant.
    reference : dict of str
        Of each column of categories that lost a level to the bias: which.
    means : dict of float
        Of the columns of numbers that may have to be filled in: their means in the rows fitted.
    formula : dict, optional
        What makes columns of numbers of several at once, and what it has learnt from the rows fitted.
    """

    given: list[str]
    levels: dict[str, list[str]] = field(default_factory=dict)
    missing: str = "refuse"
    marked: list[str] = field(default_factory=list)
    constant: list[str] = field(default_factory=list)
    reference: dict[str, str] = field(default_factory=dict)
    means: dict[str, float] = field(default_factory=dict)
    formula: dict[str, Any] | None = None

    @cached_property
    def source(self) -> dict[str, str]:
        """The column handed in (of a formula: the term) behind each column of numbers, in the order of these."""
        if self.formula is not None:
            return dict(zip(self.formula["columns"], self.formula["terms"], strict=True))
        out = {} if self.levels else dict(zip(self.given, self.given, strict=True))
        for name in self.given if self.levels else ():
            out.update(dict.fromkeys(self.indicators(name), name) if name in self.levels else {name: name})
        return out | {_indicator(name, MISSING): name for name in self.marked}

    def indicators(self, name: str) -> list[str]:
        """Columns of numbers of one that holds categories; what is true or false is an indicator already."""
        levels = self.levels[name]
        return [_indicator(name, level) for level in (levels[1:] if levels == _FALSE_TRUE else levels)]

    def behind(self, columns: Collection[str]) -> set[str]:
        """Columns handed in that columns of numbers are made of."""
        owners = {self.owner(name) for name in columns}
        if self.formula is None:
            return owners
        return {name for term, names in self.formula["variables"].items() if term in owners for name in names}

    def stand_in(self, name: str) -> Any:
        """A value for a column that does not matter."""
        if self.formula is not None:
            return self.formula["first"][name]  # the formula has a value there
        return self.levels[name][0] if name in self.levels else 0.0

    def owner(self, column: str) -> str:
        """The column handed in that a column of numbers comes from; its own name where none is known."""
        return self.source.get(column, column)


def _indicator(name: str, level: str) -> str:
    return f"{name}[{level}]"


def lost_in(given: Given, names: Sequence[str]) -> tuple[BoolArray, dict[str, int]]:
    """Rows with missing values, and how many each column has."""
    if isinstance(given, list):
        each = [np.asarray(pd.isna(part)) for part in given]
        rows = np.any(each, axis=0) if each else np.zeros(0, dtype=bool)
        return rows, {name: int(own.sum()) for name, own in zip(names, each, strict=True) if own.any()}
    values: Any = given.data if issparse(given) else given
    rows = np.zeros(given.shape[0], dtype=bool)
    with np.errstate(over="ignore", invalid="ignore"):  # of infinite values, which are refused by name
        total = values.sum() if values.dtype.kind == "f" else 0.0
    if not np.isnan(total):  # one pass
        return rows, {}
    if issparse(given):
        places = np.flatnonzero(np.isnan(values))
        counts = np.bincount(np.searchsorted(given.indptr, places, side="right") - 1, minlength=given.shape[1])
        rows[given.indices[places]] = True
    else:
        counts, rows = np.isnan(values).sum(axis=0), np.isnan(values).any(axis=1)
    return rows, {names[j]: int(counts[j]) for j in np.flatnonzero(counts).tolist()}


def found_in(given: Given, names: list[str], missing: Missing) -> Encoding:
    """The encoding of the columns of a fit."""
    lost = lost_in(given, names)[1] if missing == "mean" else {}
    levels: dict[str, list[str]] = {}
    for name, part in zip(names, given, strict=True) if isinstance(given, list) else ():
        held = category_of(part, name)
        if held is not None:
            check_levels(held, name)
            levels[name] = [str(level) for level in held.categories] + [MISSING] * (name in lost)
    encoding = Encoding(names, levels, missing, [name for name in lost if name not in levels])
    number = sum(len(encoding.indicators(name)) for name in levels) + len(names) - len(levels) + len(encoding.marked)
    if len(encoding.source) < number:
        raise ValueError(
            "Two columns would have the same name, that of a level in brackets, such as 'colour[red]': rename a column "
            f"(missing values are a level of the name {MISSING!r})."
        )
    return encoding


def encoded(given: Given, encoding: Encoding, unseen: Unseen = "refuse") -> Features:
    """The columns of numbers, in the order of the encoding's; not numbers where they are to be filled in."""
    names = encoding.given
    if encoding.formula is not None:
        if unseen == "ignore":
            raise ValueError("What a formula makes of a level that the fit has not seen is not known: unseen='refuse'.")
        assert isinstance(given, list)
        return evaluated(encoding.formula, dict(zip(names, given, strict=True)))
    if not isinstance(given, list):
        matrix = given
    elif encoding.levels:
        parts: list[Any] = []
        columns: list[str] = []
        for name, part in zip(names, given, strict=True):
            own = _indicators(part, name, encoding, unseen) if name in encoding.levels else [part]
            parts += own
            columns += [name] * len(own)
        matrix = side_by_side(parts, columns)
    else:
        matrix = side_by_side(given, names)
    return _with_marks(matrix, [list(encoding.source).index(name) for name in encoding.marked])


def _with_marks(matrix: Features, marked: list[int]) -> Features:
    """The matrix with columns that say where some of its columns are missing."""
    if not marked:
        return matrix
    if isinstance(matrix, np.ndarray):
        return np.hstack([matrix, np.isnan(matrix[:, marked])])
    marks = as_csc(matrix[:, marked]).copy()
    marks.data = np.isnan(marks.data).astype(float)
    return as_csc(hstack([matrix, marks]))


def _indicators(part: Any, name: str, encoding: Encoding, unseen: Unseen) -> list[FloatArray]:
    """An indicator of each level; not a number in the rows whose level is not known."""
    levels = encoding.levels[name]
    held: Any = category_of(part, name)
    if held is None:  # numbers, where there were words
        held = pd.Categorical([None if pd.isna(v) else label_of(v) for v in np.asarray(part).tolist()])
    known = {level: j for j, level in enumerate(levels)}
    occurring = [str(held.categories[code]) for code in np.unique(held.codes) if code >= 0]
    strange = [level for level in occurring if level not in known]
    if strange and unseen == "refuse":
        raise ValueError(
            f"Column {name!r} holds levels that the fit has not seen: {', '.join(map(repr, strange[:4]))} (it has seen "
            f"{', '.join(map(repr, levels[:6]))}{' ...' if len(levels) > 6 else ''}); remove those rows, or "
            "unseen='ignore' takes the column's average for them."
        )
    place = np.array([*(known.get(str(level), -1) for level in held.categories), known.get(MISSING, -1)], dtype=np.intp)
    at: IntArray = place[held.codes]  # the code of a missing value is -1, and so the last
    first = len(levels) - len(encoding.indicators(name))
    return [np.where(at < 0, np.nan, at == j) for j in range(first, len(levels))]
