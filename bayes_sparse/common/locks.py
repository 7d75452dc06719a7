"""Fits in several threads: PyTensor builds graphs for one thread at a time, and its functions keep what they are given.

A function of PyTensor puts its arguments into storage of its own and computes from there: two threads in it would mix
their rows. A call takes microseconds, so that waiting for one another costs less than a function per thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from threading import RLock

import numpy as np

__all__ = ["building", "one_at_a_time"]

_pytensor = RLock()


@contextmanager
def building() -> Iterator[None]:
    """Held while a graph is made, rewritten or compiled: PyTensor's registries and caches have no lock.

    It divides constants by one another to see what they are worth, and some of them are zeros.
    """
    with _pytensor, np.errstate(all="ignore"):
        yield


def one_at_a_time[**P, T](function: Callable[P, T]) -> Callable[P, T]:
    """The same function, run by one thread at a time."""
    lock = RLock()

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        with lock:
            return function(*args, **kwargs)

    return call
