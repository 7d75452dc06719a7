"""A log density computed in Python as PyTensor sees it: a number with its gradient."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inference.sampling import Value

__all__ = ["LogDensity"]

# A compiled likelihood has one place for its results, so chains in threads of one process take turns.
_ONE_AT_A_TIME = threading.Lock()


class LogDensity(Op):
    """From a vector to a number and its gradient, computed together: a sampler wants both at every point.

    Parameters
    ----------
    evaluate : callable
        ``evaluate(x)`` gives the log density and its gradient, of the shape of x.
    """

    def __init__(self, evaluate: Callable[[FloatArray], Value]) -> None:
        self.evaluate = evaluate
        _quiet_in_numba()

    def value(self, x: Any) -> Any:
        """The log density at a PyTensor vector."""
        outputs: Any = self(x)
        return outputs[0]

    def make_node(self, *inputs: Any) -> Apply[Any]:
        """From a vector to a number and a vector."""
        return Apply(self, [pt.as_tensor_variable(inputs[0])], [pt.dscalar(), pt.dvector()])

    def perform(self, node: Apply[Any], inputs: Any, outputs: Any) -> None:
        """Value and gradient."""
        with _ONE_AT_A_TIME:
            value, gradient = self.evaluate(np.asarray(inputs[0], dtype=float))
        outputs[0][0], outputs[1][0] = np.asarray(value, dtype=float), np.asarray(gradient, dtype=float)

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        """The gradient, times what follows."""
        if not isinstance(cotangents[1].type, DisconnectedType):
            raise NotImplementedError("This log density has a gradient, but no second derivatives.")
        return [cotangents[0] * outputs[1]]


@cache
def _quiet_in_numba() -> None:
    """Numba runs it as Python and would warn of it, which nobody can do anything about."""
    from pytensor.link.numba.dispatch.basic import generate_fallback_impl, numba_funcify

    @numba_funcify.register(LogDensity)
    def _(op: LogDensity, node: Any, **settings: Any) -> Any:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Numba will use object mode", category=UserWarning)
            return generate_fallback_impl(op, node, **settings)  # type: ignore[no-untyped-call]
