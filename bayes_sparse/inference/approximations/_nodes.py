"""Averages over a normal predictor, one per observation, at as few nodes as they take.

By the trapezoidal rule, which is exact to rounding for what is smooth and dies away: a logistic function is, as long as
the nodes lie closer than its bend. How many there must be is seen by trying more.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bayes_sparse.common.types import FloatArray

__all__ = ["Nodes"]


def _rule(count: int, reach: float) -> tuple[FloatArray, FloatArray]:
    z = np.linspace(-reach, reach, count)[:, None]
    weights = np.exp(-0.5 * z**2)
    return z, weights / weights.sum()


_TABLE = [_rule(*rule) for rule in ((21, 6.0), (81, 9.0), (241, 12.0))]  # number of nodes, reach in sds
_ERROR = 1e-7  # nats of all observations together: what more nodes may change


class Nodes:
    """Nodes and weights for predictors of any sd so far."""

    def __init__(self) -> None:
        self._rule, self._tried = 0, 0.0

    @property
    def rule(self) -> tuple[FloatArray, FloatArray]:
        """Nodes and weights of a standard normal, a column each."""
        return _TABLE[self._rule]

    def enough(self, sd: FloatArray, total: Callable[[], float]) -> bool:
        """Whether more nodes change a total no more than they may; if they do, they are taken from now on.

        Only looked at where predictors are less certain than any before.
        """
        widest = float(sd.max(initial=0.0))
        if self._rule == len(_TABLE) - 1 or widest <= self._tried:
            return True
        before = total()
        self._rule += 1
        if abs(total() - before) > _ERROR:
            return False
        self._rule -= 1
        self._tried = 1.2 * widest
        return True
