"""A PyTensor graph as one compiled function, its matrix products calls of BLAS.

What does not move (data, and what is computed of them alone) is computed once and handed in, so that none of it is
compiled as part of the code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray
from pytensor.compile.maker import function as pytensor_function
from pytensor.gradient import grad as gradient
from pytensor.graph.basic import Apply
from pytensor.graph.traversal import toposort
from pytensor.scan.op import Scan
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.math import Dot
from pytensor.tensor.type import TensorType

from bayes_sparse.common.types import FloatArray
from bayes_sparse.fitting.nuts.products import Product
from bayes_sparse.fitting.nuts.shortcuts import shortcut
from bayes_sparse.inputs.compiled import elementwise_mode
from bayes_sparse.inputs.pm_model.graph import Var, value_of

__all__ = ["Compiled", "Heavy"]

type _Function = Callable[..., Sequence[NDArray[Any]]]

_FEW = 32  # entries of a constant that may be a shape or an index: compilers want to know those


class Heavy(ValueError):
    """The graph has operations on matrices other than products with constant ones."""


class Compiled:
    """Functions of some inputs.

    Parameters
    ----------
    inputs : sequence of Var
        What moves; other variables are constant, with the values that they have now.
    outputs : sequence of Var
        What is computed; for slopes, one number.

    Raises
    ------
    Heavy
        If a matrix is multiplied, solved or scanned that is not constant.
    """

    def __init__(self, inputs: Sequence[Var], outputs: Sequence[Var]) -> None:
        self._inputs = list(inputs)
        self._still: dict[Var, NDArray[Any]] = {}  # values of what does not move
        self._outputs = self._rebuilt(outputs)

    def __call__(self, *values: NDArray[Any]) -> Sequence[NDArray[Any]]:
        """The outputs, which may share memory with the inputs."""
        return self._plain(*values)

    def slopes(self, *values: NDArray[Any]) -> tuple[float, Sequence[FloatArray]]:
        """The one output and its gradient along each input."""
        height, *slopes = self._with_slopes(*values)
        return float(height), slopes

    @cached_property
    def _plain(self) -> _Function:
        return self._compiled(self._outputs)

    @cached_property
    def _with_slopes(self) -> _Function:
        [height] = self._outputs
        slopes: Any = gradient(height, self._inputs, disconnected_inputs="ignore", return_disconnected="zero")
        return self._compiled([height, *slopes])

    def _compiled(self, outputs: Sequence[Var]) -> _Function:
        arguments = [*self._inputs, *self._still]
        made: Any = pytensor_function(arguments, list(outputs), mode=_mode(), on_unused_input="ignore")
        made.trust_input = True
        # What numba made of it, where nothing but numba did: PyTensor's way of handing it arguments takes microseconds.
        alone = hasattr(made.vm, "jit_fn") and len(made.maker.fgraph.inputs) == len(arguments)
        call, still = made.vm.jit_fn if alone else made, list(self._still.values())
        return lambda *values: call(*values, *still)

    def _rebuilt(self, outputs: Sequence[Var]) -> list[Var]:
        """The outputs of a graph with products by BLAS, and with inputs for what does not move."""
        new: dict[Var, Var] = {v: v for v in self._inputs}
        kept: dict[Var, Var] = {}

        def of(v: Var) -> Var:
            if v not in new and v not in kept:
                kept[v] = self._handed_in(v, _FEW)
            return new.get(v, kept.get(v))

        for node in toposort(list(outputs)):
            moving = [v in new for v in node.inputs]
            if not any(moving):
                continue
            if (shorter := shortcut(node, new, of)) is not None:
                made = [shorter]
            elif _multiplies(node):
                made = [self._product(node, moving, new)]
            elif isinstance(node.op, Scan | Blockwise):  # loops, and linear algebra other than a product
                raise Heavy(f"{node.op} is not element-wise")
            else:
                made = node.clone_with_new_inputs([of(v) for v in node.inputs], strict=False).outputs
            new.update(zip(node.outputs, made, strict=True))
        return [of(v) for v in outputs]

    def _product(self, node: Apply[Any], moving: list[bool], new: dict[Var, Var]) -> Var:
        if all(moving):
            raise Heavy("two things that move are multiplied")
        left, right = node.inputs
        if moving[1]:
            return Product(False)(self._handed_in(left), new[right])
        turned: Var = Product(True)(self._handed_in(right), new[left].T)
        return turned.T

    def _handed_in(self, v: Var, few: int = 0) -> Var:
        """An input for a value that does not move, or a constant where it has so few entries."""
        if not isinstance(v.type, TensorType):
            return v
        value = np.require(value_of(v), dtype=v.dtype, requirements="C")
        if value.size <= few:
            return pt.constant(value)
        fresh = pt.tensor(dtype=v.dtype, shape=value.shape)
        self._still[fresh] = value
        return fresh


def _multiplies(node: Apply[Any]) -> bool:
    """Whether it is a product of two matrices, written either way."""
    op: Any = node.op
    dot = isinstance(op, Dot) or (isinstance(op, Blockwise) and isinstance(op.core_op, Dot))
    return dot and all(v.type.ndim == 2 for v in node.inputs)


def _mode() -> Any:
    """As everything element-wise; a parameter out of its range makes the density zero, as PyMC has it."""
    return elementwise_mode().including("local_check_parameter_to_ninf_switch")
