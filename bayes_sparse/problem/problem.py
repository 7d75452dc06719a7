"""What an evidence method sees: arrays and compiled functions, never PyMC, pandas or xarray.

The log-likelihood is ``sum_n weights_n * l(eta_n)`` with ``eta = offset + Phi w``; the prior on ``w`` is Gaussian
with one precision a column: free ones (to be found by type-II maximum likelihood) and fixed ones (bias, columns
the user keeps, intercepts of a declared model). Nuisance parameters are the vector ``theta``, on the unconstrained
scale. Along the predictor a likelihood is a few numbers an observation (its terms: log-likelihood, slope, curvature,
...); `Active` turns them into gradient, curvature and scores over the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol
from weakref import ReferenceType, ref

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.problem.design import weighted_sd
from bayes_sparse.problem.gaussian import Dual, Primal, by_rows, weighted_gram
from bayes_sparse.problem.groups import Groups
from bayes_sparse.problem.sparse_design import AnyDesign

__all__ = [
    "Active",
    "Fewer",
    "LinearActive",
    "Pointwise",
    "Problem",
    "Product",
    "Terms",
    "columns_counted",
    "each_draw",
]

type Terms = tuple[FloatArray, ...]
# ``product(v, at)`` is ``M[:, at] v`` for a symmetric M over the active weights, which need not be formed.
type Product = Callable[[FloatArray, Any], FloatArray]


class Active(Protocol):
    """Some columns of a design, ready for products."""

    def predictor(self, w: FloatArray) -> FloatArray:
        """Predictors without the offset."""

    def pulled_back(self, slopes: FloatArray) -> FloatArray:
        """Gradient over the weights, from slopes along the predictors."""

    def steps(self, alpha: FloatArray, terms: Terms) -> Any:
        """Factorised ``H + A`` for a Newton step, positive definite."""

    def posterior(self, alpha: FloatArray, terms: Terms, factor: Any) -> Any:
        """Factorised ``H + A`` at a mode, of which ``factor`` is the last step's if that was there, else None."""

    def leverages(self, product: Product) -> FloatArray:
        """``Phi M Phi'`` of each observation by itself: what M makes of its predictors."""

    def turning(self, leverages: FloatArray, terms: Terms) -> FloatArray:
        """Gradient over the weights of ``tr(M H)``, M held fixed: how the curvature changes."""

    def noise(self, terms: Terms, rng: np.random.Generator) -> FloatArray:
        """Random slopes along the predictors; pulled back to the weights their covariance is H, cut off at zero."""

    def scan(self, terms: Terms) -> tuple[FloatArray, FloatArray, FloatArray]:
        """``Phi' B Phi_active``, the diagonal of ``Phi' B Phi`` and the gradient, over all columns of the design."""

    def cross_products(self, terms: Terms) -> FloatArray:
        """``Phi_active' B Phi_active``: the H of `steps`."""


_MANY_FIXED = 20  # columns of known precision that are more than an intercept and what somebody kept


def columns_counted(free: NDArray[np.bool_]) -> int:
    """Number of columns to compare with the rows; many of a known precision, such as effects of rows, are not counted.

    Their prior is a part of the model, however many there are: what may outgrow the rows is what is being found.
    """
    found = int(np.count_nonzero(free))
    return found if len(free) - found > _MANY_FIXED else len(free)


_BLOCK = 2**16  # numbers of a block of rows: half a megabyte
_LARGE = 2000  # columns whose cross-products are made even where there are fewer rows
_TALL = 10_000  # rows, from which on columns are taken out of a design as seldom as can be
_ROOM = 2  # columns more, so that one can come, and another be tried in its place


class _Taken:
    """Columns taken out of a tall design, each of them once for the active sets that follow one another.

    Parameters
    ----------
    design : Design or SparseDesign
        All columns.
    index : int array (k,)
        Those to begin with.
    """

    def __init__(self, design: AnyDesign, index: IntArray) -> None:
        self._design = design
        self._columns = design.columns(np.append(index, np.zeros(_ROOM, dtype=np.intp)))  # what has room is overwritten
        self._place = {column: place for place, column in enumerate(index.tolist())}

    def with_columns(self, index: IntArray) -> _Taken:
        """The same, if these columns are here or have room and few others are here; else a copy with them alone."""
        new = [column for column in index.tolist() if column not in self._place]
        if len(self._place) + len(new) <= min(self._columns.shape[1], len(index) + _ROOM):
            taken = self
        else:
            taken = copy(self)
            taken._columns = np.empty((self._design.n, len(index) + _ROOM), order="F")
            held = [column for column in index.tolist() if column in self._place]
            taken._place = {column: place for place, column in enumerate(held)}
            for column, place in taken._place.items():
                taken._columns[:, place] = self._columns[:, self._place[column]]
        if new:
            first = len(taken._place)
            taken._columns[:, first : first + len(new)] = self._design.columns(np.array(new, dtype=np.intp))
            taken._place.update((column, first + at) for at, column in enumerate(new))
        return taken

    def columns(self, index: IntArray) -> tuple[FloatArray, IntArray | None]:
        """A matrix with these columns, and where in it they are; None if it has no others, and these in order."""
        places = np.array([self._place[column] for column in index.tolist()], dtype=np.intp)
        if np.array_equal(places, np.arange(len(index))):
            return self._columns[:, : len(index)], None
        return self._columns[:, : places.max() + 1], places


class LinearActive:
    """Columns of a design with one predictor an observation.

    Parameters
    ----------
    design : Design or SparseDesign
        All columns.
    index : int array (k,)
        The active ones.
    count : float, optional
        Number of observations, each as often as its weight says; None for the design's rows.
    counted : int, optional
        How many of the columns are compared with the rows (`columns_counted`); None for all of them.
    near : LinearActive, optional
        Other columns of the same design: of a tall one, those that are there are not taken out of it again.
    """

    def __init__(
        self,
        design: AnyDesign,
        index: IntArray,
        count: float | None = None,
        counted: int | None = None,
        near: LinearActive | None = None,
    ) -> None:
        self._design, self._index = design, index
        self._taken: _Taken | None = None
        self._places: IntArray | None = None  # of the columns in Phi, where it has others too
        if design.n < _TALL:
            self._Phi = design.columns(index)
        else:
            known = None if near is None else near._taken
            self._taken = _Taken(design, index) if known is None else known.with_columns(index)
            self._Phi, self._places = self._taken.columns(index)
        self._counted = len(index) if counted is None else counted
        # As many columns as observations may have a true curvature; a weight that stands for many rows, within reason.
        self._most = max(design.n, min(design.n if count is None else count, _LARGE))
        self._rows: tuple[FloatArray, FloatArray] | None = None
        # A search asks for the same again and again: at the end of one step and at the beginning of the next.
        self._curved: tuple[_Same, FloatArray, FloatArray | None] | None = None
        self._scanned: tuple[_Same, tuple[FloatArray, FloatArray, FloatArray]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_curved": None, "_scanned": None}  # a weak reference cannot be pickled

    def predictor(self, w: FloatArray) -> FloatArray:
        """``Phi w``."""
        if self._places is None:
            return np.asarray(self._Phi @ w)
        full = np.zeros(self._Phi.shape[1])
        full[self._places] = w
        return np.asarray(self._Phi @ full)

    def pulled_back(self, slopes: FloatArray) -> FloatArray:
        """``Phi' slopes``; of a likelihood's slopes it came with its curvature, where there are many rows."""
        if self._curved is not None and self._curved[2] is not None and self._curved[0].slopes() is slopes:
            return self._curved[2]
        return self._own(np.asarray(self._Phi.T @ slopes))

    def steps(self, alpha: FloatArray, terms: Terms) -> Primal | Dual:
        """With the curvature cut off at zero where the likelihood is not log-concave."""
        if self._counted <= len(self._Phi) or not alpha.all():  # on the side of the rows no prior may be flat
            return Primal(self.cross_products(terms), alpha)
        b, Phi = _cut_off(terms[2]), self._Phi if self._places is None else self._Phi[:, self._places]
        if self._rows is None or self._rows[0] is not alpha:  # on the way to a mode the precisions stay
            self._rows = alpha, by_rows(Phi, alpha)
        return Dual(Phi, b, *self._rows)

    def posterior(self, alpha: FloatArray, terms: Terms, factor: Primal | Dual | None) -> Primal | Dual:
        """With the true curvature if that can be factorised, with the cut-off one otherwise."""
        if factor is None:
            factor = self.steps(alpha, terms)
        if terms[2].max(initial=0.0) <= 0 or self._counted > self._most:
            return factor
        try:
            return Primal(self._own(self._own(weighted_gram(self._Phi, -terms[2])).T), alpha)
        except np.linalg.LinAlgError:
            return factor

    def leverages(self, product: Product) -> FloatArray:
        """The diagonal of ``Phi M Phi'``, (n,)."""
        out = np.empty(len(self._Phi))
        for rows in self._blocks():
            some = self._own(self._Phi[rows].T)
            np.einsum("ji,ji->i", some, product(some, slice(None)), out=out[rows])
        return out

    def turning(self, leverages: FloatArray, terms: Terms) -> FloatArray:
        """``-Phi' (l''' diag(Phi M Phi'))``."""
        out = np.zeros(self._Phi.shape[1])
        for rows in self._blocks():
            out -= self._Phi[rows].T @ (terms[3][rows] * leverages[rows])
        return self._own(out)

    def noise(self, terms: Terms, rng: np.random.Generator) -> FloatArray:
        """With the curvature along the predictor as its variance."""
        return np.asarray(np.sqrt(_cut_off(terms[2])) * rng.standard_normal(len(terms[2])))

    def scan(self, terms: Terms) -> tuple[FloatArray, FloatArray, FloatArray]:
        """In one pass over a design that may be streamed."""
        if self._scanned is None or not self._scanned[0].terms(terms):
            cross, squares, products = self._design.scan(self._Phi, _cut_off(terms[2]), terms[1])
            self._scanned = _Same.of(terms), (self._own(cross.T).T, squares, products)
        return self._scanned[1]

    def cross_products(self, terms: Terms) -> FloatArray:
        """``Phi' B Phi`` with the curvature cut off at zero."""
        if self._curved is None or not self._curved[0].terms(terms):
            self._curved = _Same.of(terms), *self._curve(terms)
        return self._curved[1]

    def _curve(self, terms: Terms) -> tuple[FloatArray, FloatArray | None]:
        """The cross-products; of many rows with the gradient, while a block of rows is in the cache."""
        if len(self._Phi) < _TALL:
            return weighted_gram(self._Phi, _cut_off(terms[2])), None
        k = self._Phi.shape[1]
        H, gradient = np.zeros((k, k)), np.zeros(k)
        for rows in self._blocks():
            H += weighted_gram(self._Phi[rows], _cut_off(terms[2][rows]))
            gradient += self._Phi[rows].T @ terms[1][rows]
        return self._own(self._own(H).T), self._own(gradient)

    def _blocks(self) -> Iterator[slice]:
        n, k = self._Phi.shape
        step = max(1024, _BLOCK // max(k, 1))
        return (slice(start, start + step) for start in range(0, n, step))

    def _own(self, products: FloatArray) -> FloatArray:
        """Of products with all columns that are in Phi, those with the active ones."""
        return products if self._places is None else products[self._places]


def _cut_off(bend: FloatArray) -> FloatArray:
    """The curvature ``-l''`` where it is positive, else zero."""
    out = np.negative(bend)
    return np.maximum(out, 0.0, out=out)


class _Same(NamedTuple):
    """Slopes and curvatures that something was computed of, as long as somebody else has them: they may be large."""

    slopes: ReferenceType[FloatArray]
    bends: ReferenceType[FloatArray]

    @classmethod
    def of(cls, terms: Terms) -> _Same:
        """Of a likelihood's terms."""
        return cls(ref(terms[1]), ref(terms[2]))

    def terms(self, terms: Terms) -> bool:
        """Whether these are they."""
        return self.slopes() is terms[1] and self.bends() is terms[2]


_LOG_2PI = float(np.log(2 * np.pi))

type Pointwise = Callable[[FloatArray, FloatArray], tuple[FloatArray, ...]]
type Fewer = Callable[[FloatArray, FloatArray, int], tuple[FloatArray, ...]]


class _Drawn(Protocol):
    @property
    def pointwise(self) -> Pointwise: ...
    @property
    def fewer(self) -> Fewer | None: ...


def each_draw(problem: _Drawn, eta: FloatArray, theta: FloatArray) -> FloatArray:
    """Log-likelihood of each observation without the weights, one draw after another."""
    draws = zip(eta, np.broadcast_to(theta, (len(eta), theta.shape[1])), strict=True)
    if problem.fewer is None:
        return np.stack([problem.pointwise(*draw)[0] for draw in draws])
    return np.stack([problem.fewer(*draw, 0)[0] for draw in draws])


@dataclass(frozen=True)
class Problem:
    """A sparse Gaussian prior on the columns of a design and a likelihood along the predictor.

    Attributes
    ----------
    design : Design
        The n x (M + q) columns.
    y : array (n,)
        Targets; for a normal likelihood the evidence is computed from them directly.
    free : bool array (M + q,)
        True where the precision is to be found; the others have `fixed_precision`.
    fixed_precision : array or callable
        Precision of every column that is not free, in column order; or ``fixed_precision(theta)`` that gives them.
        Zero stands for a flat (improper) prior, which adds nothing to the evidence.
    pointwise : callable
        ``pointwise(eta, theta)`` gives l and its first three derivatives along eta, each of shape (n,), without
        the observation weights.
    offset : array (n,)
        Known part of the predictor.
    weights : array (n,), optional
        A weight of 2 counts a row twice.
    theta : array (k,)
        Where the search over nuisance parameters starts.
    theta_bounds : array (k, 2)
        Box the search stays in.
    log_prior : callable, optional
        Log-density of theta on the unconstrained scale (with the Jacobian).
    normal : bool
        The likelihood is normal with the predictor as its mean. Then theta is (log sigma,), or empty and `sigma`
        is known.
    sigma : float or array (n,)
        Known noise of a normal likelihood with an empty theta.
    many : callable, optional
        ``many(eta, theta)`` gives l at many predictors per observation, (S, n), and as many theta (S, k) or one (1, k),
        where there is a quicker way than one after another.
    fewer : callable, optional
        ``fewer(eta, theta, derivatives)`` gives l and as many of its derivatives, where that is quicker than all three.
    unit : float
        Spread of the targets where the predictor is in their units: what a prior on the weights is stated in.
    trials : float
        The largest target there can be, where targets are classes or counts out of a number.
    groups : int array (M + q,), optional
        Label of the group of each free column: columns of one group share their precision. None where every column has
        its own.
    some_rows : callable, optional
        ``some_rows(rows)`` gives the same problem of some observations alone, where there is such a thing.
    """

    design: AnyDesign
    y: FloatArray
    free: NDArray[np.bool_]
    fixed_precision: FloatArray | Callable[[FloatArray], FloatArray]
    pointwise: Pointwise
    offset: FloatArray
    weights: FloatArray | None = None
    theta: FloatArray = field(default_factory=lambda: np.empty(0))
    theta_bounds: FloatArray = field(default_factory=lambda: np.empty((0, 2)))
    log_prior: Callable[[FloatArray], float] | None = None
    normal: bool = False
    sigma: float | FloatArray = 1.0
    many: Callable[[FloatArray, FloatArray], FloatArray] | None = None
    fewer: Fewer | None = None
    unit: float = 1.0
    trials: float = 1.0
    groups: IntArray | None = None
    some_rows: Callable[[IntArray], Problem] | None = None

    predictors: ClassVar[int] = 1

    @cached_property
    def grouping(self) -> Groups | None:
        """Which free columns share their precision, None where none do."""
        return None if self.groups is None else Groups(self.groups, self.free)

    @cached_property
    def count(self) -> float:
        """Number of observations, each as often as its weight says."""
        return float(self.design.n if self.weights is None else self.weights.sum())

    @property
    def spread(self) -> float:
        """Sd of the targets of a normal likelihood, less the offset."""
        return weighted_sd(self.y - self.offset, self.weights)

    def precisions(self, index: NDArray[np.intp], alpha: FloatArray, theta: FloatArray) -> FloatArray:
        """Precisions of the active columns: those given where free, those of the declaration where fixed."""
        free = self.free[index]
        if free.all():
            return alpha
        return np.where(free, alpha, self._fixed_by_column(theta)[index])

    def _fixed_by_column(self, theta: FloatArray) -> FloatArray:
        if not callable(self.fixed_precision):
            return self._constant_by_column
        full = np.zeros(len(self.free))
        full[~self.free] = self.fixed_precision(theta)
        return full

    @cached_property
    def _constant_by_column(self) -> FloatArray:
        full = np.zeros(len(self.free))
        full[~self.free] = np.asarray(self.fixed_precision)
        return full

    @cached_property
    def owner(self) -> IntArray:
        """The predictor that each column is part of: there is one."""
        return np.zeros(self.design.width, dtype=np.intp)

    def designs(self, names: list[str]) -> list[tuple[AnyDesign, list[str]]]:
        """The columns with the names of their basis functions."""
        return [(self.design, names)]

    def active(self, index: NDArray[np.intp], near: LinearActive | None = None) -> LinearActive:
        """Some columns, ready for products; near are others that are."""
        return LinearActive(self.design, index, self.count, columns_counted(self.free[index]), near)

    def predictor(self, w: FloatArray, index: NDArray[np.intp]) -> FloatArray:
        """Predictors (S, n) of many draws of some columns' weights (S, k)."""
        return np.asarray(self.offset + w @ self.design.columns(index).T)

    def row_predictor(self, w: FloatArray, index: NDArray[np.intp]) -> FloatArray:
        """Predictors (n,) of the rows as they were handed in, at one set of weights."""
        return self.offset + self.design.times(w, index)

    def log_joint_at(self, w: FloatArray, index: NDArray[np.intp], theta: FloatArray) -> FloatArray:
        """Log-likelihood (S,) of all observations together at draws of some columns' weights (S, k)."""
        return self.log_joint(self.predictor(w, index), theta)

    def derivatives(self, eta: FloatArray, theta: FloatArray, count: int = 3) -> Terms:
        """`pointwise` with the observation weights; so many derivatives at least."""
        terms = self.pointwise(eta, theta) if self.fewer is None else self.fewer(eta, theta, count)
        return terms if self.weights is None else tuple(self.weights * term for term in terms)

    @property
    def broadcasts(self) -> bool:
        """Whether `derivatives` takes many predictors per observation (S, n) at once."""
        return self.fewer is None and bool(getattr(self.pointwise, "broadcasts", False))

    def separates(self, eta: FloatArray) -> bool:
        """Whether a predictor puts every observation of a two-valued target on its own side of zero."""
        if self.theta.size or not np.isin(self.y, (0.0, self.trials)).all():
            return False
        there = True if self.weights is None else self.weights > 0
        ones, zeros = (self.y == self.trials) & there, (self.y == 0) & there
        return bool(ones.any() and zeros.any() and eta[ones].min() > 0 > eta[zeros].max())

    def noise(self, theta: FloatArray) -> FloatArray:
        """Sd of a normal likelihood."""
        return np.asarray(np.exp(theta[0]) if theta.size else self.sigma, dtype=float)

    def terms(self, eta: FloatArray, theta: FloatArray) -> tuple[FloatArray, ...]:
        """Weighted log-likelihood and its first two derivatives along eta; a normal one needs nothing compiled."""
        terms: Terms
        if self.normal:
            sigma = self.noise(theta)
            z = (self.y - eta) / sigma
            terms = (-0.5 * z**2 - np.log(sigma) - 0.5 * _LOG_2PI, z / sigma, np.zeros_like(z) - sigma**-2.0)
        else:
            terms = self.pointwise(eta, theta)[:3] if self.fewer is None else self.fewer(eta, theta, 2)
        return terms if self.weights is None else tuple(self.weights * term for term in terms)

    def log_densities(self, eta: FloatArray, theta: FloatArray) -> FloatArray:
        """Log-likelihood of each observation, without the weights, for many draws of eta (S, n) and theta (S, k).

        Or of one theta (1, k) for all.
        """
        if not self.normal:
            return each_draw(self, eta, theta) if self.many is None else self.many(eta, theta)
        log_sigma = theta[:, :1] if theta.shape[1] else np.log(self.sigma)
        z = self.y - eta
        z /= np.exp(log_sigma)
        z *= z
        z *= -0.5
        z -= log_sigma + 0.5 * _LOG_2PI
        return np.asarray(z)

    def log_joint(self, eta: FloatArray, theta: FloatArray, each: FloatArray | None = None) -> FloatArray:
        """Log-likelihood of all observations together, with the weights, for many draws; ``each`` is known already."""
        if self.normal and theta.shape[1] and each is None:
            squares, log_sigma = self.total((self.y - eta) ** 2), theta[:, 0]
            return np.asarray(-0.5 * squares * np.exp(-2 * log_sigma) - self.count * (log_sigma + 0.5 * _LOG_2PI))
        return self.total(self.log_densities(eta, theta) if each is None else each)

    def total(self, each: FloatArray) -> FloatArray:
        """Sum over observations, with the weights, of their log-likelihoods (S, n)."""
        return np.asarray(each.sum(axis=1) if self.weights is None else each @ self.weights)
