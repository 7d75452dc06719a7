"""How prior sds vary with the hyper-variables behind them: one a weight, one a group of weights, one for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pymc as pm

from bayes_sparse.common.types import BoolArray, FloatArray, IntArray
from bayes_sparse.inputs.pm_model.graph import Var, reached, replaced, small_function
from bayes_sparse.inputs.pm_model.variables import free_variables, in_order, own_start

__all__ = ["Scales", "scales_of"]

_MOVE = 0.1  # of a hyper-variable: by how much it is moved to see which weights move with it
_STILL = 1e-9  # in log units
_REACH, _HALVINGS = 60.0, 100  # how far a hyper-variable is looked for, in log units, and how closely

type Values = dict[Var, FloatArray]


@dataclass(frozen=True, eq=False)
class Scales:
    """The prior sd of a Gaussian variable as a function of its hyper-variables.

    Attributes
    ----------
    hypers : list of Var
        What it depends on.
    labels : int array, optional
        In the shape of the variable: weights with the same label share a scale, those with another have another. None
        where all share one, or where it is known.
    relative : array
        Sd of each weight over that of the first with its label.
    start : dict
        Values of the hyper-variables to begin with.
    """

    hypers: list[Var]
    labels: IntArray | None
    relative: FloatArray
    start: Values
    _sd: Callable[[Values], FloatArray]
    _local: tuple[Var, IntArray] | None

    def mixed(self, whole: bool) -> Scales:
        """Of weights with a random scale each beside this one: their precisions say nothing of the hyper-variables.

        ``whole`` for columns in units of the scale itself, its hyper-variables where they begin.
        """
        unit = self.at_start if whole else np.ones_like(self.relative)
        return replace(self, labels=None, relative=unit, _local=None)

    @property
    def at_start(self) -> FloatArray:
        """The sd where the hyper-variables begin."""
        return self._sd(self.start)

    def inverted(self, sd: FloatArray) -> Values:
        """Hyper-variables that give the weights these prior sds; where one is 0 its own stays where it begins.

        Of several the one with most elements is moved, each element until its weights have their sd or no further.
        """
        if self._local is None:
            return self.start
        local, owner = self._local
        base = self.start[local]
        first = np.zeros(base.size, dtype=np.intp)  # a weight of each element
        first[owner[::-1]] = np.arange(len(owner))[::-1]
        wanted = np.where(np.isfinite(sd), sd, 0.0).ravel()[first]
        wanted[np.setdiff1d(np.arange(base.size), owner)] = 0.0

        def moved(t: FloatArray) -> FloatArray:
            t = t.reshape(base.shape)
            return base * np.exp(t) if (base > 0).all() else base + t

        def sds(t: FloatArray) -> FloatArray:
            with np.errstate(all="ignore"):
                return np.nan_to_num(self._sd(self.start | {local: moved(t)}).ravel()[first], nan=np.inf)

        low, high = np.full(base.size, -_REACH), np.full(base.size, _REACH)
        rising = sds(np.full(base.size, _MOVE)) > sds(np.zeros(base.size))
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            up = (sds(middle) < wanted) == rising
            low, high = np.where(up, middle, low), np.where(up, high, middle)
        found = moved(0.5 * (low + high))
        return self.start | {local: np.where(wanted.reshape(base.shape) > 0, found, base)}


def scales_of(model: pm.Model, sd: Var, shape: tuple[int, ...]) -> Scales:
    """See which weights share a scale, by moving the hyper-variables."""
    hypers = in_order(reached([sd], set(free_variables(model))), model)
    start = {rv: value for rv, value in own_start(model, hypers).items() if rv in hypers}
    inputs = [rv.type() for rv in hypers]
    function = small_function(inputs, replaced([sd], dict(zip(hypers, inputs, strict=True))))

    def at(values: Values) -> FloatArray:
        typed = [np.asarray(values[rv], dtype=rv.dtype) for rv in hypers]
        return np.broadcast_to(np.asarray(function(*typed)[0], dtype=float), shape)

    base = at(start)
    owners = {rv: _owners(at, start, rv, base) for rv in hypers if start[rv].size > 1 and base.size}
    own = {rv: owner for rv, owner in owners.items() if owner is not None}
    shared = Scales(hypers, None, np.ones(shape), start, at, None)
    if not own:
        return shared
    _, labels = np.unique(np.stack(list(own.values()), axis=1), axis=0, return_inverse=True)
    if labels.max() == 0:
        return shared
    local = max(own, key=lambda rv: len(np.unique(own[rv])))
    first = base.ravel()[np.unique(labels, return_index=True)[1]]
    relative = base / first[labels].reshape(shape)
    return Scales(hypers, labels.reshape(shape), relative, start, at, (local, own[local]))


def _owners(at: Callable[[Values], FloatArray], start: Values, rv: Var, base: FloatArray) -> IntArray | None:
    """The element of a hyper-variable that each weight's sd depends on; None if that is not one element alone.

    Elements are moved by the binary digits of their numbers: those with the digit, then those without.
    """
    number, owner = np.arange(start[rv].size), np.zeros(base.size, dtype=np.intp)
    for digit in range(int(number[-1]).bit_length()):
        has = (number >> digit & 1 == 1).reshape(start[rv].shape)
        with_it, without = (_moves_with(at, start, rv, base, some) for some in (has, ~has))
        if not (with_it ^ without).all():
            return None
        owner += with_it.astype(np.intp) << digit
    return owner


def _moves_with(
    at: Callable[[Values], FloatArray], start: Values, rv: Var, base: FloatArray, some: BoolArray
) -> BoolArray:
    """Which weights' sds move with some elements of a hyper-variable."""
    moved = start[rv] + np.where(some, _MOVE * (np.abs(start[rv]) + 0.5), 0.0)
    with np.errstate(all="ignore"):
        change = np.log(at(start | {rv: moved}) / base).ravel()
    return np.asarray(~(np.abs(change) < _STILL))
