"""Polygamma functions in compiled code: without them a beta or Gamma density calls Python for every observation.

Upwards by ``psi_n(x) = psi_n(x + 1) - (-1)^n n! x^-(n+1)`` until x is large, then the asymptotic series (NIST DLMF
5.15.8), whose first term left out is below 1e-16 of the sum there.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from scipy.special import bernoulli

__all__ = ["teach_numba"]

_LARGE = 15.0
_TERMS = 12
_EVEN = tuple(bernoulli(2 * _TERMS)[2::2].tolist())  # B_2, B_4, ...; an array would keep compiled code out of the cache


def polygamma(n: int, x: float) -> float:
    """Derivative n >= 1 of the digamma function at x > 0; not a number elsewhere."""
    if not x > 0:
        return np.nan
    sign = 1.0 if n % 2 else -1.0
    factorial = math.gamma(n + 1.0)
    total = 0.0
    while x < _LARGE + n:
        total += factorial * x ** -(n + 1.0)
        x += 1.0
    total += factorial / n * x**-n + 0.5 * factorial * x ** -(n + 1.0)
    coefficient = factorial * (n + 1.0) / 2.0  # (2k + n - 1)! / (2k)! for k = 1
    power = x ** -(n + 2.0)
    for k in range(len(_EVEN)):
        total += _EVEN[k] * coefficient * power
        m = 2.0 * (k + 1)
        coefficient *= (m + n) * (m + n + 1.0) / ((m + 1.0) * (m + 2.0))
        power /= x * x
    return float(sign * total)


@cache
def teach_numba() -> None:
    """Let PyTensor's compiled code use the function above, once."""
    from pytensor.link.numba.dispatch import basic
    from pytensor.link.numba.dispatch.scalar import register_scalar_funcify
    from pytensor.scalar.math import PolyGamma, TriGamma

    compiled: Any = basic.numba_njit(polygamma)

    def of_order(op: Any, node: Any, **_: Any) -> tuple[Any, str]:
        return compiled, "bayes_sparse polygamma 1"

    def trigamma(x: float) -> float:
        return compiled(1, x)  # type: ignore[no-any-return]

    def of_first_order(op: Any, node: Any, **_: Any) -> tuple[Any, str]:
        return basic.numba_njit(trigamma), "bayes_sparse trigamma 1"

    register: Any = register_scalar_funcify
    register(PolyGamma)(of_order)
    register(TriGamma)(of_first_order)
