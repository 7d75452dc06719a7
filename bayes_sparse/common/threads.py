"""Linear algebra on one thread where matrices are small.

numpy and scipy come with a BLAS each, whose threads stay awake for a while after every product, in the way of the
other's. On two idle cores a horseshoe of 30 columns took thirty times as long as on one thread. Large products gain by
threads, and have as many as their user allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock

from threadpoolctl import ThreadpoolController

__all__ = ["few_threads"]

_LARGE = 2**26  # numbers of a design, half a gigabyte, from which single products gain by threads
_taken = Lock()


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()  # takes two milliseconds, a limit then ten microseconds


@contextmanager
def few_threads(numbers: int) -> Iterator[None]:
    """One thread of BLAS for work on a design of so many numbers, unless they are many.

    What a BLAS may do is one setting of the process, so that of several threads of Python at once the first one sets
    it and sets it back: if each did, the last would set back what it found, and one thread would be left to everybody.
    """
    if numbers >= _LARGE or not _taken.acquire(blocking=False):
        yield
        return
    try:
        with _libraries().limit(limits=1, user_api="blas"):
            yield
    finally:
        _taken.release()
