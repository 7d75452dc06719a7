"""The log-likelihood along the predictor, compiled by PyTensor: value and three derivatives, element by element.

Only element-wise graphs are compiled here (about a second the first time on a machine, a fraction of one after
that); matrix products stay in BLAS, because compiling one dense product costs more than most fits.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc.logprob.utils import CheckParameterValue
from pytensor.compile.maker import function as pytensor_function
from pytensor.compile.mode import get_default_mode
from pytensor.gradient import grad as gradient
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors

from bayes_sparse.common.types import FloatArray

__all__ = ["Compiled", "compile_pointwise", "elementwise_mode"]

type Variable = Any  # a PyTensor variable; its annotations know neither ndim nor dtype
type Compiled = Callable[..., list[FloatArray]]

# Rewrites of matrix products: nothing here has one, and looking for a BLAS to link costs time and prints warnings.
_NOT_ELEMENTWISE = ("BlasOpt", "local_usmm")

_cache: dict[Hashable, Compiled] = {}


def compile_pointwise(
    key: Hashable, build: Callable[[], tuple[Variable, Variable, Sequence[Variable]]], derivatives: int = 3
) -> Compiled:
    """Compile a log-density and its derivatives, or return the function compiled before under the same key.

    Parameters
    ----------
    key : hashable
        Names the graph; equal keys must mean equal graphs.
    build : callable
        Returns ``(l, eta, inputs)``: the log-density one term an observation, the predictor it depends on, and
        every other input in calling order. Called only when the key is new.
    derivatives : int
        How many.

    Returns
    -------
    callable
        ``f(eta, *inputs) -> [l, l', l'', l''']``, each of the length of eta.
    """
    known = (key, derivatives)
    if known not in _cache:
        _cache[known] = _compile(*build(), derivatives)
    return _cache[known]


def _compile(density: Variable, eta: Variable, inputs: Sequence[Variable], derivatives: int) -> Compiled:
    density = _without_checks(density)
    # Stabilise before differentiating: the gradient of log1p(-sigmoid(eta)) is 0/0 far out, that of -softplus is not.
    density = rewrite_graph(density, include=("canonicalize", "stabilize", "specialize"), exclude=_NOT_ELEMENTWISE)
    outputs = [density]
    for _ in range(derivatives):
        outputs.append(gradient(outputs[-1].sum(), eta, disconnected_inputs="ignore"))
    outputs = [pt.broadcast_arrays(out, eta)[0] for out in outputs]
    function = pytensor_function([eta, *inputs], outputs, mode=elementwise_mode(), on_unused_input="ignore")

    function.trust_input = True

    def call(eta: FloatArray, *rest: FloatArray) -> list[FloatArray]:
        return [np.asarray(out) for out in function(*(_aligned(a) for a in (eta, *rest)))]

    return call


def elementwise_mode() -> Any:
    """The default mode without what looks for matrix products."""
    mode: Any = get_default_mode()  # type: ignore[no-untyped-call]
    return mode.excluding(*_NOT_ELEMENTWISE)


def _without_checks(graph: Variable) -> Variable:
    """Drop PyMC's parameter checks: they reduce over all observations and raise inside compiled code."""
    checks = [v for v in ancestors([graph]) if v.owner and isinstance(v.owner.op, CheckParameterValue)]
    return clone_replace([graph], {v: v.owner.inputs[0] for v in checks})[0] if checks else graph


def _aligned(a: FloatArray) -> FloatArray:
    """Contiguous doubles, as compiled code wants them: nearly always they are, and asking numpy takes longer."""
    if type(a) is np.ndarray and a.dtype == np.float64 and a.flags.carray:
        return a
    return np.require(a, dtype=float, requirements=["A", "C"])
