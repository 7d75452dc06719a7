"""The width of an rbf basis by evidence: a coarse search over the scales of the data, then a fine one.

Widths are compared by the log evidence less one price a degree of freedom, the same for all of them. The log evidence
itself is not comparable: a fit picks its few kernels among n, and narrow ones offer more ways to be right by chance,
which the evidence at the precisions found does not count. It grows towards kernels that sit on single rows. For
one-step methods widths are compared by the evidence of one isotropic prior, which chooses nothing and has no price.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from bayes_sparse.common.types import FloatArray
from bayes_sparse.common.warnings import tell
from bayes_sparse.inputs.basis import Basis, rbf
from bayes_sparse.inputs.kernels import kernel_matrix
from bayes_sparse.inputs.prepare import Prepared

__all__ = ["Rating", "WidthSearch", "choose", "limits", "provisional", "search", "wanted"]

_GRID = 8  # widths of the coarse search: enough to tell several hills apart
_BEYOND = 3  # steps of the grid that the search may go outside its limits
_FINE = 1.05  # the fine search ends when the widths around the best have this ratio: it is within 2.5%
_GOLDEN = (3 - 5**0.5) / 2
_ROWS = 500  # rows whose distances say what the scales of the data are
_COVERED = 4  # neighbours within the narrowest width: a fit should leave several rows to every kernel
_log = logging.getLogger("bayes_sparse")


class Rating(NamedTuple):
    """What a fit at one width is worth: its log evidence, and this less the common price of its degrees of freedom."""

    log_evidence: float
    objective: float


@dataclass(frozen=True, eq=False)
class WidthSearch:
    """What was tried, in that order.

    Attributes
    ----------
    widths, log_evidences, objectives : array
        Widths and what they are worth; minus infinity for a fit that failed numerically.
    best : float
        The width of the greatest objective.
    """

    widths: FloatArray
    log_evidences: FloatArray
    objectives: FloatArray
    best: float

    def variables(self) -> dict[str, tuple[tuple[str, ...], FloatArray]]:
        """The search as it is stored, ``name: (dims, values)``."""
        named = {"width": self.widths, "width_log_evidence": self.log_evidences, "width_objective": self.objectives}
        return {name: (("width_try",), values) for name, values in named.items()}


def wanted(basis: Basis) -> bool:
    """Whether the basis leaves its width to be found."""
    return isinstance(basis, rbf) and isinstance(basis.width, str)


def provisional(basis: Basis) -> Basis:
    """The basis with some width in place of one to be found, so that data can be prepared; others as they are."""
    return replace(basis, width=1.0) if isinstance(basis, rbf) and wanted(basis) else basis


def choose(
    prepared: Prepared, rate: Callable[[Prepared], Rating], report: Callable[[str], None]
) -> tuple[Prepared, WidthSearch]:
    """Find the width of an rbf basis.

    Parameters
    ----------
    prepared : Prepared
        The data, with any width.
    rate : callable
        Fits and rates. What it says is not passed on: the fit at the width found will say it again.
    report : callable
        Takes a line before each fit that says how far the search is.

    Returns
    -------
    Prepared, WidthSearch
        The data with the width found, and what was tried.
    """
    X, kernel = _inputs(prepared), prepared.basis
    assert isinstance(kernel, rbf)

    def at(width: float) -> Prepared:
        basis = replace(kernel, width=width)
        return replace(prepared, basis=basis, Phi=kernel_matrix(basis, X, prepared.centres))

    def quietly(width: float) -> Rating:
        with _silence():
            return rate(at(width))

    found = search(quietly, *limits(X, squared=kernel.squared), report)
    _log.info("Width %.3g by evidence (%d tried).", found.best, len(found.widths))
    return at(found.best), found


def limits(X: FloatArray, *, squared: bool = True) -> tuple[float, float]:
    """The narrowest and the widest kernels worth a try.

    Parameters
    ----------
    X : array (n, p)
        Rows as the kernel sees them.
    squared : bool
        False for the kernel of the plain distance, whose width is measured in square roots of distances.

    Returns
    -------
    low, high : float
        A typical distance to the fourth nearest row, and the largest distance; seen from at most 500 rows.
    """
    rows = np.unique(X, axis=0)  # a row said twice is no neighbour
    if len(rows) < 2:
        raise ValueError("All rows of X are the same, so there is no width to be found; check X.")
    some = rows if len(rows) <= _ROWS else np.random.default_rng(0).choice(rows, _ROWS, replace=False)
    distances = cdist(some, rows)
    nearby = min(_COVERED, len(rows) - 1)  # the nearest of all is the row itself
    high = float(distances.max())
    low = min(float(np.median(np.partition(distances, nearby, axis=1)[:, nearby])), high / 4)
    return (low, high) if squared else (low**0.5, high**0.5)


def search(
    evaluate: Callable[[float], Rating], low: float, high: float, report: Callable[[str], None] = lambda line: None
) -> WidthSearch:
    """Maximise over the width: a grid, since there may be several hills, then golden section on the highest.

    Parameters
    ----------
    evaluate : callable
        Rates a width. A LinAlgError, or anything not finite, counts as minus infinity.
    low, high : float
        Limits of the grid; it grows outwards a few steps when the best is at one of its ends.
    report : callable
        Takes a line that says how far the search is.

    Returns
    -------
    WidthSearch
        With a `FitWarning` when the objective still rises at the end of the widths tried.
    """
    grid = np.geomspace(high, low, _GRID).tolist()  # wide first: those fits are quick
    ratio = grid[0] / grid[1]
    fine = np.log(2 * np.log(ratio) / np.log(_FINE)) / -np.log(1 - _GOLDEN)
    trials = _Trials(evaluate, report, _GRID + max(int(np.ceil(fine)), 0))
    for width in grid:
        trials(width)
    if trials.rated[trials.best].objective == -np.inf:
        raise ValueError(f"No width from {low:.3g} to {high:.3g} gave a finite log evidence; pass rbf(width=...).")
    for _ in range(_BEYOND):
        if trials.end:
            trials(trials.best * ratio**trials.end)
    if trials.end:
        _warn_of_end(trials)
    else:
        _golden_section(trials)
    return trials.result()


@dataclass(eq=False)
class _Trials:
    """Ratings by width, in the order asked for."""

    evaluate: Callable[[float], Rating]
    report: Callable[[str], None]
    about: int
    rated: dict[float, Rating] = field(default_factory=dict)

    def __call__(self, width: float) -> None:
        number = len(self.rated) + 1
        line = f"Width {number} of about {max(number, self.about)}: {width:.3g}"
        if self.rated:
            line += f" (best {self.best:.3g}, log evidence {self.rated[self.best].log_evidence:.1f})"
        self.report(line)
        try:
            rating = self.evaluate(width)
        except np.linalg.LinAlgError:  # recorded, not hidden: some other width will do
            rating = Rating(-np.inf, -np.inf)
        self.rated[width] = rating if np.isfinite(rating).all() else Rating(-np.inf, -np.inf)

    @property
    def best(self) -> float:
        """The width of the greatest objective; of equals the first."""
        return max(self.rated, key=lambda width: self.rated[width].objective)

    @property
    def end(self) -> int:
        """1 when the best is the widest, -1 when it is the narrowest, 0 in between."""
        return int(self.best == max(self.rated)) - int(self.best == min(self.rated))

    def result(self) -> WidthSearch:
        log_evidences, objectives = np.array(list(self.rated.values())).T
        return WidthSearch(np.array(list(self.rated)), log_evidences, objectives, self.best)


def _golden_section(trials: _Trials) -> None:
    """Close in on the best width from its neighbours, in logs, always into the larger side."""
    while True:
        middle = trials.best
        left = max(width for width in trials.rated if width < middle)
        right = min(width for width in trials.rated if width > middle)
        if right <= _FINE * left:
            return
        side = left if middle / left > 1.001 * right / middle else right  # of equals, rounding aside, the quicker fit
        trials(middle * (side / middle) ** _GOLDEN)


def _warn_of_end(trials: _Trials) -> None:
    end, why = "narrowest", "each covers a few rows only; check the fit on new rows, or pass rbf(width=...)"
    if trials.end > 0:
        end, why = "widest", "bumps so wide are nearly straight, so basis='linear' or 'polynomial' may do as well"
    message = f"The evidence still rises at the {end} kernels tried (width {trials.best:.3g}): {why}."
    tell(message)


@contextmanager
def _silence() -> Iterator[None]:
    """No warnings and no messages of this package."""
    before = _log.disabled
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _log.disabled = True
        try:
            yield
        finally:
            _log.disabled = before


def _inputs(prepared: Prepared) -> FloatArray:
    """The features as the kernel sees them."""
    X = np.asarray(prepared.table.X, dtype=float)
    if prepared.input_shift is not None and prepared.input_scale is not None:
        X = (X - prepared.input_shift) / prepared.input_scale
    return np.ascontiguousarray(X)
