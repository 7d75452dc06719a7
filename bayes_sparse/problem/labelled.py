"""What is fitted under the user's names, and how its numbers go back to their units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.common.types import FloatArray
from bayes_sparse.problem.classes import AnyProblem
from bayes_sparse.problem.held import Held
from bayes_sparse.problem.likelihood_check import LikelihoodCheck
from bayes_sparse.problem.problem import Problem
from bayes_sparse.problem.several_predictors import SeveralProblem
from bayes_sparse.problem.surfaces import Linear, Softmax, Surface

__all__ = ["LabelledProblem", "Observations", "WeightBlock"]


@dataclass(frozen=True)
class WeightBlock:
    """Where a Gaussian variable of the user's model sits among the columns of the design.

    Attributes
    ----------
    name : str
        The variable's own name.
    shape : tuple of int
        Its shape; its columns are its values in C order.
    dims : tuple of str, optional
        Its dims, None where it has none.
    coords : dict
        Coordinate values of those dims that have any.
    columns : slice
        Its columns in the design.
    mean : array
        Its prior mean, in its own shape; the problem's w is relative to it.
    """

    name: str
    shape: tuple[int, ...]
    dims: tuple[str, ...] | None
    coords: dict[str, NDArray[Any]]
    columns: slice
    mean: FloatArray

    def values(self, w: FloatArray) -> FloatArray:
        """Values of the variable, ``(..., *shape)``, from the problem's w, ``(..., width)``."""
        own = w[..., self.columns]
        own = own.reshape((*own.shape[:-1], *self.shape))
        return own + self.mean if self.mean.any() else own  # not copied where it can be large

    def dim_and_labels(self) -> tuple[str, NDArray[Any]]:
        """The dim of a vector, and its labels in full."""
        dim = self.dims[0] if self.dims else f"{self.name}_dim_0"
        return dim, np.asarray(self.coords.get(dim, np.arange(self.shape[0])))


@dataclass(frozen=True, eq=False)
class Observations:
    """Values of one observed variable, in the order of the problem's rows.

    Attributes
    ----------
    name : str
        The variable's.
    dims : tuple of str
        One for each axis of its values.
    coords : dict
        Labels along those dims that have any.
    values : array
        In their own shape; of a potential there are none, and as many zeros as it has rows.
    together : bool
        Whether the numbers of a row have one density.
    told : bool
        False for a potential.
    """

    name: str
    dims: tuple[str, ...]
    coords: dict[str, NDArray[Any]]
    values: NDArray[Any]
    together: bool = False
    told: bool = True

    @property
    def shape(self) -> tuple[int, ...]:
        """Of their densities."""
        return self.values.shape[:1] if self.together else self.values.shape


@dataclass(frozen=True, eq=False)
class LabelledProblem:
    """A likelihood over weights, with their names.

    Attributes
    ----------
    search : Problem, ClassProblem or SeveralProblem, optional
        What an evidence method sees: one linear predictor per observation, one per observation and class, or several.
        None where there is no such predictor.
    other : Surface, optional
        What a one-step method sees where that is not the surface of one linear predictor.
    labels : dict
        More labels of the basis functions: the column and the class of each, where there are several classes.
    y : array
        The observations.
    sparse, fixed : tuple of WeightBlock
        The variables behind the columns, under the user's names.
    names : list of str
        One name a basis function.
    observed : str
        Name of the observed variable.
    obs_dim : str
        Name of the dimension of observations.
    obs : array (n,), optional
        Labels of the observations; None for rows in chunks, which have none.
    unpack : callable
        ``unpack(theta)`` gives nuisance parameters by name on their own scale.
    settings : dict
        What prediction needs to know beside numbers: likelihood, basis, columns. Stored as JSON.
    shift, scale : array (M,), optional
        Standardisation to be undone: w is reported as ``w / scale``, the bias (of the column's class, where there are
        several) less ``shift @ (w / scale)``.
    constant_data : dict
        More arrays to be stored, as ``name: (dims, values)``.
    hyper_points : callable, optional
        Point values, as ``name: (dims, values)``, of variables that follow from the prior precisions of the M columns.
    interchangeable : bool
        The basis functions are kernels on the rows: neighbours say the same, and which of them is kept means little.
    scale_free : bool
        The predictor has no units of its own, as opposed to those of the targets.
    classes : bool
        Whether the targets are classes, or counts of one of two.
    tau0 : float
        Scale of the horseshoe's tau; 0 where there is none.
    mixing : (float, float, float), optional
        ``a``, ``b`` and ``inverse`` of the prior on precisions, as `Objective` has them, that a user's own declaration
        of heavy tails amounts to.
    slab : float, optional
        Width of the slab that a user's own declaration has, in units of the targets' spread.
    apart : bool
        Whether columns hold something else of a user's variables: what they have above a random mean, their product
        with a scale.
    held : Held, optional
        Parameters that the columns depend on.
    every : tuple of Observations
        All observed variables, where there are several, or potentials beside the one.
    group_names : list of str, optional
        Name of the group of each basis function, where some share their precision; None for names made of theirs.
    check : callable, optional
        ``check(eta, theta, used)`` gives what the residuals of a fit say of the likelihood, where they say anything.
    users : callable, optional
        ``users(w, theta, precision)`` gives every variable of a user's own model as ``name: (dims, values)``, the first
        axis of the values being draws. It takes draws of all columns (S, width), relative to the prior means and zero
        where pruned, and of theta (S, t), and the prior precisions (M,), infinite where pruned, NaN if there are none.
    coords : dict
        Labels of the dims of a user's own model.
    passes : callable, optional
        How often rows that lie in chunks were looked at so far; None for rows in memory.
    """

    search: AnyProblem | None
    other: Surface | None
    y: NDArray[Any]
    sparse: tuple[WeightBlock, ...]
    fixed: tuple[WeightBlock, ...]
    names: list[str]
    observed: str
    obs_dim: str
    obs: NDArray[Any] | None
    unpack: Callable[[FloatArray], dict[str, NDArray[Any]]]
    settings: dict[str, Any]
    shift: FloatArray | None = None
    scale: FloatArray | None = None
    constant_data: dict[str, tuple[tuple[str, ...], NDArray[Any]]] | None = None
    hyper_points: Callable[[FloatArray], dict[str, tuple[tuple[str, ...], FloatArray]]] | None = None
    interchangeable: bool = False
    scale_free: bool = True
    classes: bool = False
    tau0: float = 0.0
    mixing: tuple[float, float, float] | None = None
    slab: float | None = None
    check: Callable[[FloatArray, FloatArray, float], LikelihoodCheck | None] | None = None
    labels: dict[str, NDArray[Any]] = field(default_factory=dict)
    group_names: list[str] | None = None
    every: tuple[Observations, ...] = ()
    apart: bool = False
    held: Held | None = None
    users: Callable[[FloatArray, FloatArray, FloatArray], dict[str, tuple[tuple[str, ...], NDArray[Any]]]] | None = None
    coords: dict[str, NDArray[Any]] = field(default_factory=dict)
    passes: Callable[[], int] | None = None

    @property
    def observations(self) -> tuple[Observations, ...]:
        """All observed variables, the rows of the problem in their order."""
        if self.every:
            return self.every
        dims = (self.obs_dim, *(f"{self.observed}_dim_{i}" for i in range(1, self.y.ndim)))
        labels = {} if self.obs is None else {self.obs_dim: self.obs}
        return (Observations(self.observed, dims, labels, self.y),)

    @property
    def linear(self) -> Problem | None:
        """The problem where there is a single linear predictor."""
        return self.search if isinstance(self.search, Problem) else None

    @property
    def problem(self) -> Problem:
        """The problem, for methods that need a single linear predictor."""
        if isinstance(self.search, Problem):
            return self.search
        able = ["'revm'"] if self.search is None or self.other is not None else []
        if self.search is not None:
            able = ["'sequential'", "'mackay'", "'em'", *able]
        raise ValueError(
            "This method needs a likelihood with a single linear predictor per observation; this one can be fitted by "
            f"{', '.join(able)}."
        )

    @property
    def searched(self) -> AnyProblem:
        """The problem, for evidence methods: also one of several classes or predictors."""
        return self.problem if self.search is None else self.search

    @property
    def predictors(self) -> int:
        """How many linear predictors an observation has."""
        return 1 if self.search is None else self.search.predictors

    @cached_property
    def surface(self) -> Surface:
        """The likelihood as one-step methods see it: free weights first."""
        if self.other is not None:
            return self.other
        if isinstance(self.search, Problem):
            return Linear.of_problem(self.search, scale_free=self.scale_free)
        if isinstance(self.search, SeveralProblem):
            raise ValueError(
                "One-step methods need a single linear predictor per observation; several are fitted by "
                "method='sequential', 'mackay' or 'em'."
            )
        raise ValueError(
            "With several classes one-step methods take features that all of them share, and no `keep`; others are "
            "fitted by method='mackay', 'sequential' or 'em'."
        )

    @cached_property
    def group_of(self) -> list[str] | None:
        """Name of the group of each basis function, its own where it is alone; None where no precision is shared."""
        grouping = None if self.search is None else self.search.grouping
        if grouping is None or self.group_names is not None:
            return None if grouping is None else self.group_names
        first = grouping.first[: self.M]
        more = np.bincount(first, minlength=self.M)[first] - 1
        return [self.names[j] if not k else f"{self.names[j]} and {k} more" for j, k in zip(first, more, strict=True)]

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """Column of each weight of the surface."""
        if self.linear is None:  # several classes, or a surface of its own
            return np.arange(self.surface.d + self.surface.q)
        return np.append(np.flatnonzero(self.linear.free), np.flatnonzero(~self.linear.free))

    @property
    def M(self) -> int:
        """Number of sparse columns."""
        return sum(block.columns.stop - block.columns.start for block in self.sparse)

    def expansion_point(self, expansion: Any) -> Any:
        """An expansion with weights of the user's as the surface's own free weights; any other as it is.

        None is the ridge of greatest evidence for classes and a small one for anything else. Classes are often
        separable, and then a small ridge leaves the point far out, where the likelihood is flat.
        """
        if expansion is None:
            return "evidence" if self.of_classes else "ridge"
        if isinstance(expansion, str | Integral):
            return expansion if isinstance(expansion, str) else int(expansion)
        free = self.order[: self.surface.d]
        full = np.zeros(self.M)
        for block, values in self._given(expansion):
            own = np.asarray(values)
            own = own.astype(float) if own.dtype.kind in "fiub" else np.full(own.shape, np.nan)
            if own.shape != block.shape or not np.isfinite(own).all():
                raise ValueError(
                    f"The expansion point needs finite values of {block.name!r} in its shape {block.shape}, got an "
                    f"array of shape {own.shape}."
                )
            full[block.columns] = (own - block.mean).ravel()
        if self.scale is not None:
            full *= self.scale
        return full[free]

    @property
    def of_classes(self) -> bool:
        """Whether linear predictors give the odds of classes; of a network a strong ridge would make a linear one."""
        linear = self.search is not None or isinstance(self.other, Softmax)
        return linear and self.classes

    def _given(self, expansion: Any) -> list[tuple[WeightBlock, Any]]:
        if not isinstance(expansion, dict):
            if len(self.sparse) != 1:
                names = ", ".join(repr(block.name) for block in self.sparse)
                raise ValueError(f"Give the expansion point as a dict with values of {names}.")
            return [(self.sparse[0], expansion)]
        missing = [block.name for block in self.sparse if block.name not in expansion]
        if missing:
            raise ValueError(f"The expansion point lacks values of {missing[0]!r}.")
        return [(block, expansion[block.name]) for block in self.sparse]

    @cached_property
    def prior_mean(self) -> FloatArray:
        """Prior mean of every column's weight; the problem's w is relative to it."""
        return np.concatenate([block.mean.ravel() for block in (*self.sparse, *self.fixed)])

    def in_users_units(self, w: FloatArray, index: NDArray[np.intp]) -> FloatArray:
        """Undo the standardisation on weights of the active columns ``index``, along the last axis."""
        if self.scale is None:
            return w
        out, basis = w.copy(), index < self.M
        out[..., basis] /= self.scale[index[basis]]
        if self.shift is None:
            return out
        moved, owner = out[..., basis] * self.shift[index[basis]], self.searched.owner
        if self.predictors == 1:
            out[..., ~basis] -= moved.sum(axis=-1)[..., None]
            return out
        for position in np.flatnonzero(~basis).tolist():  # each bias takes up the shifts of its own columns
            out[..., position] -= moved[..., owner[index[basis]] == owner[index[position]]].sum(axis=-1)
        return out
