"""One price, many columns: an L1-penalised likelihood by working sets and proximal Newton steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.inference.l1.quadratic import penalised_quadratic
from bayes_sparse.problem.chunked import ChunkedDesign
from bayes_sparse.problem.gaussian import weighted_gram
from bayes_sparse.problem.sparse_design import AnyDesign

__all__ = ["ColumnStore", "Lasso", "Spot"]


class ColumnStore:
    """Columns of a design as rows of one matrix that grows; shared by every search over the same design.

    Parameters
    ----------
    design : Design
        Where they come from.
    """

    def __init__(self, design: AnyDesign | ChunkedDesign) -> None:
        self.design = design
        if isinstance(design, ChunkedDesign):
            return  # its columns are never held
        self._place = np.full(design.width, -1)
        self._count, self._held = 0, np.empty((32, design.n))

    def take(self, index: IntArray) -> FloatArray:
        """The columns asked for, one a row; not to be written to."""
        if isinstance(self.design, ChunkedDesign):
            held: Any = self.design.columns(index)
            return held  # type: ignore[no-any-return]
        new = index[self._place[index] < 0]
        if len(new):
            self._append(new)
        place = self._place[index]
        if len(place) and place[-1] - place[0] == len(place) - 1 and (place[1:] > place[:-1]).all():
            return self._held[place[0] : place[-1] + 1]  # side by side: no copy
        return np.asarray(self._held[place])

    def _append(self, new: IntArray) -> None:
        stop = self._count + len(new)
        if stop > len(self._held):
            larger = np.empty((max(stop, 2 * len(self._held)), self.design.n))
            larger[: self._count] = self._held[: self._count]
            self._held = larger
        columns: Any = self.design.columns(new)
        self._held[self._count : stop] = columns.T
        self._place[new] = np.arange(self._count, stop)
        self._count = stop


type Terms = Callable[[FloatArray], tuple[FloatArray, ...]]

_LEAP = 0.1  # a cold search goes to the price asked for in leaps of this factor
_FIRST = 0.3  # how well a working set is solved before all columns are looked at: this part of what is still wrong
_FEW, _MORE = 32, 1.0  # columns added at once: at least so many, or so many times those that are not zero
_STEPS = 60
_HALVINGS = 40
_CLIMB = 1e-4  # of what a step promises, it must keep at least this part
_ROUNDING = 1e-9  # of the height: a smaller promise cannot be checked
_RAISED = 1e-12  # added to the curvature, relative to it: collinear columns leave some directions flat


@dataclass(frozen=True, eq=False)
class Spot:
    """A minimum, or a place on the way there.

    Attributes
    ----------
    lam : float
        Price of one unit of |w|; infinite where every penalised weight is zero by decree.
    index, w : array (k,)
        Columns that are not zero or have no price, and their weights.
    eta : array (n,)
        The linear predictor.
    value : float
        Log-likelihood.
    slope, bend : array (n,)
        Its first derivative along eta, and minus the second.
    gradient : array (width,)
        Its slope along every column; prior precisions of unpriced columns included.
    residual : float
        Largest violation of the conditions of a minimum, relative to the price.
    steps : int
        Newton steps taken to get here.
    """

    lam: float
    index: IntArray
    w: FloatArray
    eta: FloatArray
    value: float
    slope: FloatArray
    bend: FloatArray
    gradient: FloatArray
    residual: float
    steps: int


class Lasso:
    """An L1-penalised likelihood along a linear predictor.

    Parameters
    ----------
    columns : ColumnStore
        Of the design.
    terms : callable
        ``terms(eta)`` gives the weighted log-likelihood of each observation and its first two derivatives; concave.
    offset : array (n,)
        Known part of the predictor.
    priced : bool array (width,)
        Columns with a price.
    precision : array (width,)
        Normal prior of the columns without one; zero elsewhere.
    allowed : bool array (width,)
        Columns that may be other than zero.
    """

    def __init__(
        self,
        columns: ColumnStore,
        terms: Terms,
        offset: FloatArray,
        priced: NDArray[np.bool_],
        precision: FloatArray,
        allowed: NDArray[np.bool_],
    ) -> None:
        self.columns, self.offset, self.priced, self.precision = columns, offset, priced, precision
        self.allowed = allowed & priced
        self._terms = terms

    def null(self) -> Spot:
        """The model without any priced column."""
        index = np.flatnonzero(~self.priced)
        blank = np.zeros(self.columns.design.width)
        start = Spot(np.inf, index, np.zeros(len(index)), self.offset, *self.look(self.offset), blank, np.inf, 0)
        return self.solve(np.inf, start, 1e-10)

    def cold(self, lam: float, tolerance: float, null: Spot | None = None) -> Spot:
        """The minimum at a price, from nothing; ``null`` where that is known."""
        spot = self.null() if null is None else null
        price = largest = self.largest(spot)
        while price > lam:
            price = max(lam, price * _LEAP)
            spot = self.solve(price, spot, tolerance if price == lam else _FIRST)
        return spot if lam < largest else self.solve(lam, spot, tolerance)

    def largest(self, null: Spot) -> float:
        """The price above which nothing is worth it."""
        return float(np.abs(null.gradient[self.allowed]).max(initial=0.0))

    def solve(self, lam: float, start: Spot, tolerance: float) -> Spot:
        """The minimum at a price, from a neighbour on the path.

        Parameters
        ----------
        lam : float
            Price.
        start : Spot
            Where to begin; the nearer, the quicker.
        tolerance : float
            Largest violation of the conditions of a minimum, relative to the price.
        """
        search = _Search(self, lam, start)
        worst = 1.0
        while True:
            left = search.improve(max(tolerance, _FIRST * worst))
            gradient = self.gradient(search.slope, search.index, search.w)
            excess = np.abs(gradient) / lam - 1.0
            missing = self.allowed & (excess > tolerance)
            missing[search.index] = False
            worst = float(excess[missing].max(initial=0.0))
            if search.stuck or (worst <= tolerance and left <= tolerance):
                return search.spot(gradient, max(worst, left))
            search.add(self._steepest(np.flatnonzero(missing), gradient, search.size))

    def gradient(self, slope: FloatArray, index: IntArray, w: FloatArray) -> FloatArray:
        """Along every column."""
        gradient = self.columns.design.transposed_times(slope)
        gradient[index] -= self.precision[index] * w
        return gradient

    def candidates(self, lam: float, start: Spot) -> IntArray:
        """Columns likely to matter at a price, by their slope at a neighbour's."""
        before = start.lam if np.isfinite(start.lam) else lam
        likely = self.allowed & (np.abs(start.gradient) >= max(2 * lam - before, 0.0))
        likely[start.index] = False
        return self._steepest(np.flatnonzero(likely), start.gradient, int(np.count_nonzero(start.w)))

    def _steepest(self, index: IntArray, gradient: FloatArray, size: int) -> IntArray:
        most = max(_FEW, int(_MORE * size))
        if len(index) <= most:
            return index
        return np.sort(index[np.argpartition(-np.abs(gradient[index]), most)[:most]])

    def look(self, eta: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Log-likelihood, its slope and minus its curvature along the predictor."""
        value, first, second = self._terms(eta)[:3]
        return float(value.sum()), first, np.maximum(-second, 0.0)


class _Search:
    """A working set and the place reached on it."""

    def __init__(self, lasso: Lasso, lam: float, start: Spot) -> None:
        self._lasso, self.lam = lasso, lam
        finite = np.isfinite(lam)
        used = ~lasso.priced[start.index] | ((start.w != 0) & finite)
        self.index, self.w = start.index[used], start.w[used]
        self.eta, self.value, self.slope, self.bend = start.eta, start.value, start.slope, start.bend
        self._unsure = False
        self.stuck, self.steps = not finite and not len(self.index), 0
        self.add(lasso.candidates(lam, start) if finite else np.empty(0, dtype=np.intp))

    @property
    def size(self) -> int:
        """Columns that are not zero."""
        return int(np.count_nonzero(self.w))

    def add(self, index: IntArray) -> None:
        """Enlarge the working set."""
        lasso = self._lasso
        self.index, self.w = np.append(self.index, index), np.append(self.w, np.zeros(len(index)))
        self._rows = lasso.columns.take(self.index)
        self._precision = lasso.precision[self.index]
        self._priced = lasso.priced[self.index]
        self._price = np.where(self._priced, self.lam if np.isfinite(self.lam) else 0.0, 0.0)

    def improve(self, tolerance: float) -> float:
        """Newton steps until the working set is solved; what is left of its violations."""
        scale = self.lam if np.isfinite(self.lam) else float(np.abs(self.slope).sum())
        before = np.inf
        for _ in range(_STEPS):
            gradient = self._rows @ self.slope - self._precision * self.w
            nonzero = (self.w != 0) | ~self._priced
            excess = np.abs(gradient - self._price * np.sign(self.w))
            wrong = np.where(nonzero, excess, np.maximum(excess - self._price, 0.0))
            left = float(wrong.max(initial=0.0)) / max(scale, 1e-300)
            # A step too small for its climb to be seen must at least make the conditions less wrong.
            self.stuck = self.stuck or (self._unsure and left > 0.5 * before)
            if left <= tolerance or self.stuck:
                return left
            before = left
            self._step(np.flatnonzero(nonzero | (wrong > 0)), gradient)
        self.stuck = True
        return left

    def _step(self, active: IntArray, gradient: FloatArray) -> None:
        rows = self._rows if len(active) == len(self.index) else self._rows[active]
        w, price, precision, slope = self.w[active], self._price[active], self._precision[active], gradient[active]
        H = weighted_gram(rows.T, self.bend)
        diagonal = H.diagonal()
        H.flat[:: len(H) + 1] += precision + _RAISED * np.maximum(diagonal, 1e-6 * diagonal.max(initial=1e-300))
        move = penalised_quadratic(H, slope, w, price) - w
        promise = float(slope @ move - 0.5 * move @ H @ move) - float(price @ (np.abs(w + move) - np.abs(w)))
        height = self.value - float(price @ np.abs(w)) - 0.5 * float(precision @ w**2)
        self._unsure = promise <= _ROUNDING * (1.0 + abs(height))
        along, scale = move @ rows, 1.0
        for _ in range(_HALVINGS):
            new, eta = w + scale * move, self.eta + scale * along
            value, first, bend = self._lasso.look(eta)
            risen = value - float(price @ np.abs(new)) - 0.5 * float(precision @ new**2) - height
            if np.isfinite(risen) and (risen >= _CLIMB * scale * promise or self._unsure):
                self.w = self.w.copy()
                self.w[active] = np.where((w + move == 0) & (scale == 1.0), 0.0, new)
                self.eta, self.value, self.slope, self.bend = eta, value, first, bend
                self.steps += 1
                return
            scale /= 2
        self.stuck = True

    def spot(self, gradient: FloatArray, residual: float) -> Spot:
        """Where the search stands."""
        kept = (self.w != 0) | ~self._priced
        return Spot(
            self.lam,
            self.index[kept],
            self.w[kept],
            self.eta,
            self.value,
            self.slope,
            self.bend,
            gradient,
            residual,
            self.steps,
        )
