"""A matrix product that compiled code leaves to BLAS.

Compiling PyTensor's own product takes numba most of a minute the first time on a machine; a call of BLAS by the name
that numba knows it by takes as long as anything element-wise.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import disconnected_type
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

__all__ = ["Product"]


class Product(Op):
    """``A V``, or ``A' V``, of a matrix that does not move and one that does.

    Parameters
    ----------
    transposed : bool
        Whether A is.
    """

    __props__ = ("transposed",)

    def __init__(self, transposed: bool) -> None:
        self.transposed = transposed
        _teach_numba()

    def make_node(self, *inputs: Any) -> Apply[Any]:
        """From two matrices to one."""
        A, V = (pt.as_tensor_variable(v) for v in inputs)
        shape = A.type.shape[int(self.transposed)], V.type.shape[1]
        return Apply(self, [A, V], [pt.tensor(dtype="float64", shape=shape)])

    def perform(self, node: Apply[Any], inputs: Any, outputs: Any) -> None:
        """Without a compiler."""
        A, V = inputs
        outputs[0][0] = (A.T if self.transposed else A) @ V

    def infer_shape(self, node: Any, shapes: Any) -> list[tuple[Any, Any]]:
        """Rows of A, or its columns, and the columns of V."""
        A, V = shapes
        return [(A[int(self.transposed)], V[1])]

    def connection_pattern(self, node: Apply[Any]) -> list[list[bool]]:
        """Slopes are known along V alone."""
        return [[False], [True]]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        """Slopes along V."""
        return [disconnected_type(), Product(not self.transposed)(inputs[0], cotangents[0])]


@cache
def _teach_numba() -> None:
    from numba.core import types as numba_types
    from numba.np import linalg
    from pytensor.link.numba.dispatch import basic

    types: Any = numba_types
    checks: Any = linalg
    checks.ensure_blas()
    char, size, numbers = types.uint8, types.intp, types.CPointer(types.float64)
    # BLAS stores columns where numpy stores rows: to it A is its transpose. The arguments of both: the kind of numbers,
    # what is transposed, sizes, 1, and each matrix or vector with how far its columns are apart; 0 before the result.
    vector = types.intc(char, char, size, size, numbers, numbers, size, numbers, numbers, numbers)
    matrices = (numbers, numbers, size, numbers, size, numbers, numbers, size)
    matrix = types.intc(char, char, char, size, size, size, *matrices)
    gemv: Any = types.ExternalFunction("numba_xxgemv", vector)
    gemm: Any = types.ExternalFunction("numba_xxgemm", matrix)
    double, plain, turned = (np.uint8(ord(letter)) for letter in "dnt")
    register: Any = basic.register_funcify_default_op_cache_key

    def of_product(op: Product, node: Apply[Any], **_: Any) -> tuple[Any, int]:
        transposed = op.transposed

        def product(A: Any, V: Any) -> Any:
            (n, m), (inner, k), one, zero = A.shape, V.shape, np.ones(1), np.zeros(1)
            rows = m if transposed else n
            A, V, out = np.ascontiguousarray(A), np.ascontiguousarray(V), np.zeros((rows, k))
            if k == 1:
                way = plain if transposed else turned
                gemv(double, way, m, n, one.ctypes, A.ctypes, max(m, 1), V.ctypes, zero.ctypes, out.ctypes)
            else:
                way = turned if transposed else plain  # the product's transpose, V' A' or V' A, is what is asked for
                ks, ms = max(k, 1), max(m, 1)
                v, a, c = V.ctypes, A.ctypes, out.ctypes
                gemm(double, plain, way, k, rows, inner, one.ctypes, v, ks, a, ms, zero.ctypes, c, ks)
            return out

        return basic.numba_njit(product), 2

    register(Product)(of_product)
