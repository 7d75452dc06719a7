"""A PyTensor graph whose matrix products are left to BLAS; the rest is compiled.

Compiling one dense product takes numba most of a minute the first time on a machine, everything else in a sparse
regression a few seconds. So the graph is cut at every product of a constant matrix with something that moves: what goes
into the product is computed, numpy multiplies, and what comes out goes on as an input. Slopes come back the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pytensor.compile.maker import function as pytensor_function
from pytensor.gradient import grad as gradient
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.graph.traversal import toposort
from pytensor.scan.op import Scan
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.math import Dot

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.compiled import elementwise_mode
from bayes_sparse.inputs.pm_model.graph import Var, number_of, reached, replaced

__all__ = ["Cut", "Uncut"]

type Values = Sequence[NDArray[Any]]


class Uncut(ValueError):
    """The graph has operations on matrices that a cut does not remove."""


@dataclass(frozen=True, eq=False)
class _Product:
    """A product with a constant matrix.

    Attributes
    ----------
    matrix : array
        The constant one of the two.
    left : bool
        Whether it is the left one.
    moving, result : Var
        The other one, and the product.
    layer : int
        How many products come before it.
    """

    matrix: FloatArray
    left: bool
    moving: Var
    result: Var
    layer: int

    def forward(self, moving: FloatArray) -> FloatArray:
        """The product."""
        return self.matrix @ moving if self.left else moving @ self.matrix

    def back(self, slope: FloatArray) -> FloatArray:
        """The slope along what is multiplied, from that along the product."""
        return self.matrix.T @ slope if self.left else slope @ self.matrix.T


type _Step = tuple[list[_Product], Callable[..., list[Any]]]


class Cut:
    """Functions of some inputs, compiled but for their matrix products.

    Parameters
    ----------
    inputs : sequence of Var
        What moves; other variables are constant, with the values that they have now.
    outputs : sequence of Var
        What is computed; for slopes, one number.

    Raises
    ------
    Uncut
        If a matrix is multiplied, solved or scanned that is not constant.
    """

    def __init__(self, inputs: Sequence[Var], outputs: Sequence[Var]) -> None:
        self._inputs = list(inputs)
        products = _products(outputs, set(inputs))
        self._layers = [
            [p for p in products if p.layer == layer]
            for layer in range(1 + max((p.layer for p in products), default=-1))
        ]
        fresh = {p.result: p.result.type() for p in products}
        self._crossing = [[fresh[p.result] for p in layer] for layer in self._layers]
        self._moving = [replaced([p.moving for p in layer], fresh) for layer in self._layers]
        self._outputs = replaced(list(outputs), fresh)

    def __call__(self, *values: NDArray[Any]) -> list[NDArray[Any]]:
        """The outputs."""
        return self._last(*values, *self._forward(values))

    def slopes(self, *values: NDArray[Any]) -> tuple[float, list[FloatArray]]:
        """The one output and its gradient along each input."""
        crossed = self._forward(values)
        height, *slopes = self._with_slopes(*values, *crossed)
        n = len(self._inputs)
        own, across = slopes[:n], slopes[n:]
        for layer, back in self._way_back:
            before = len(across) - len(layer)
            pulled = [p.back(slope) for p, slope in zip(layer, across[before:])]  # noqa: B905 - called very often
            more = back(*values, *crossed[:before], *pulled)
            own = list(map(np.add, own, more))
            across = list(map(np.add, across[:before], more[n:]))
        return float(height), own

    def _forward(self, values: Values) -> list[FloatArray]:
        """The results of all products, layer by layer."""
        crossed: list[FloatArray] = []
        for layer, before in self._way_there:
            moving = before(*values, *crossed)
            crossed += [p.forward(m) for p, m in zip(layer, moving)]  # noqa: B905 - called very often
        return crossed

    def _known(self, layer: int) -> list[Var]:
        """Inputs of what is computed after so many layers."""
        return [*self._inputs, *(v for crossing in self._crossing[:layer] for v in crossing)]

    @cached_property
    def _way_there(self) -> list[_Step]:
        """Products, and what is multiplied: the first layer first."""
        before = [_compiled(self._known(i), moving) for i, moving in enumerate(self._moving)]
        return list(zip(self._layers, before, strict=True))

    @cached_property
    def _last(self) -> Callable[..., list[Any]]:
        return _compiled(self._known(len(self._layers)), self._outputs)

    @cached_property
    def _with_slopes(self) -> Callable[..., list[Any]]:
        [height], known = self._outputs, self._known(len(self._layers))
        return _compiled(known, [height, *_slopes(height, known)])

    @cached_property
    def _way_back(self) -> list[_Step]:
        """Products, and slopes through what is multiplied: the last layer first."""
        functions = []
        for i, moving in enumerate(self._moving):
            pulled, known = [v.type() for v in moving], self._known(i)
            total = sum((v * slope).sum() for v, slope in zip(moving, pulled, strict=True))
            functions.append(_compiled([*known, *pulled], _slopes(total, known)))
        return list(zip(self._layers, functions, strict=True))[::-1]


def _products(outputs: Sequence[Var], inputs: set[Var]) -> list[_Product]:
    """The products to cut at, the first ones first."""
    layer: dict[Var, int] = {}
    found: list[_Product] = []
    for node in toposort(list(outputs)):
        deepest = max((layer.get(v, 0) for v in node.inputs), default=0)
        if _multiplies(node):
            moving = [bool(reached([v], inputs)) for v in node.inputs]
            if all(moving):
                raise Uncut("two things that move are multiplied")
            if any(moving):
                left = moving[1]
                constant, other = node.inputs if left else reversed(node.inputs)
                matrix = np.ascontiguousarray(number_of(constant), dtype=float)
                found.append(_Product(matrix, left, other, node.outputs[0], deepest))
                deepest += 1
        elif _heavy(node.op) and reached(node.outputs, inputs):
            raise Uncut(f"{node.op} is not element-wise")
        layer.update(dict.fromkeys(node.outputs, deepest))
    return sorted(found, key=lambda p: p.layer)


def _multiplies(node: Apply[Any]) -> bool:
    """Whether it is a product of two matrices, written either way."""
    op: Any = node.op
    dot = isinstance(op, Dot) or (isinstance(op, Blockwise) and isinstance(op.core_op, Dot))
    return dot and all(v.type.ndim == 2 for v in node.inputs)


def _heavy(op: Op) -> bool:
    """Whether numba takes long to compile it: loops, and linear algebra other than a product."""
    return isinstance(op, Scan | Blockwise)


def _slopes(height: Var, along: Sequence[Var]) -> list[Var]:
    slopes: Any = gradient(height, list(along), disconnected_inputs="ignore", return_disconnected="zero")
    return list(slopes)


def _compiled(inputs: Sequence[Var], outputs: Sequence[Var]) -> Callable[..., list[Any]]:
    function: Any = pytensor_function(list(inputs), list(outputs), mode=_mode(), on_unused_input="ignore")
    function.trust_input = True
    compiled: Callable[..., list[Any]] = function
    return compiled


def _mode() -> Any:
    """As everything element-wise; a parameter out of its range makes the density zero, as PyMC has it."""
    return elementwise_mode().including("local_check_parameter_to_ninf_switch")
