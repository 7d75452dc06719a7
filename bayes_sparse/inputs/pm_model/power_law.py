"""How the prior sd of sparse weights follows the variable behind it, so that precisions can be put back into it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bayes_sparse.inputs.pm_model.evaluate import small_function
from bayes_sparse.inputs.pm_model.nodes import Var, replaced
from bayes_sparse.problem.design import FloatArray

__all__ = ["PowerLaw", "law_finder"]


@dataclass(frozen=True)
class PowerLaw:
    """A prior sd of the form ``scale * hyper ** exponent``, weight by weight."""

    hyper: str
    scale: FloatArray
    exponent: float

    def invert(self, precision: FloatArray) -> FloatArray:
        """Values of the variable that give the weights these precisions."""
        with np.errstate(divide="ignore"):  # a pruned weight has sd 0, and its alpha may be infinite
            values: FloatArray = (precision**-0.5 / self.scale.reshape(precision.shape)) ** (1 / self.exponent)
        return values


def law_finder(sd: Var, hypers: list[Var], shape: tuple[int, ...]) -> Callable[[], PowerLaw | None]:
    """Find ``sd = scale * alpha ** exponent`` when it is first asked for."""
    found: list[PowerLaw | None] = []

    def law() -> PowerLaw | None:
        if not found:
            found.append(_power_law(sd, hypers[0], shape) if len(hypers) == 1 else None)
        return found[0]

    return law


def _power_law(sd: Var, hyper: Var, shape: tuple[int, ...]) -> PowerLaw | None:
    """Recognise a power law from two values of alpha and confirm it on a third."""
    if int(np.prod(shape)) == 0:
        return None
    value = hyper.type()
    function = small_function([value], replaced([sd], {hyper: value}))

    def at(alpha: FloatArray) -> FloatArray:
        return np.broadcast_to(np.asarray(function(alpha)[0], dtype=float), shape)

    third = np.linspace(0.5, 3.0, int(np.prod(shape))).reshape(shape)  # differs by weight: nothing is permuted
    one, four, other = at(np.ones(shape)), at(np.full(shape, 4.0)), at(third)
    if not (np.isfinite(one).all() and (one > 0).all() and (four > 0).all()):
        return None
    exponents = np.log(four / one) / np.log(4.0)
    exponent = float(exponents.flat[0])
    if exponent == 0 or not np.allclose(exponents, exponent) or not np.allclose(other, one * third**exponent):
        return None
    return PowerLaw(hyper.name, one, round(exponent, 9))
