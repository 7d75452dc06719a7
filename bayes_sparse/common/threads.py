"""Linear algebra on one thread where matrices are small.

numpy and scipy come with a BLAS each, whose threads stay awake for a while after every product, in the way of the
other's. On two idle cores a horseshoe of 30 columns took thirty times as long as on one thread. Large products may
gain by threads, and have as many as their user allows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["few_threads"]

_LARGE = 2**26  # numbers of a design, half a gigabyte, from which single products may gain by threads


class _Held:
    """How many fits, of several threads of Python, want one thread of BLAS: a setting of the whole process.

    The first one sets it and the last one sets it back, whichever that is: results have the same last digits whatever
    else goes on. For that threadpoolctl's own limits will not do, which only the thread that has set one may end.
    """

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """From nothing, as in a process that was forked while another thread was at it."""
        self._lock, self._holders, self._before = Lock(), 0, list[int]()

    def take(self) -> None:
        with self._lock:
            self._holders += 1
            if self._holders == 1:
                self._before = [library.num_threads for library in _libraries()]
                for library in _libraries():
                    _set(library, 1)

    def give_back(self) -> None:
        with self._lock:
            self._holders -= 1
            if not self._holders:
                for library, before in zip(_libraries(), self._before, strict=True):
                    _set(library, before)


_held = _Held()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_held.begin)


@cache
def _libraries() -> list[Any]:
    """Those whose threads are a setting of the process; OpenMP's are one of each thread, and are left as they are."""
    found = ThreadpoolController().select(user_api="blas").lib_controllers  # takes two milliseconds
    return [library for library in found if getattr(library, "threading_layer", None) != "openmp"]


def _set(library: Any, number: int) -> None:
    """Not by ``set_num_threads``, which since version 3.8 does nothing while another thread has set a limit."""
    getattr(library, "_real_set_num_threads", library.set_num_threads)(number)


@contextmanager
def few_threads(numbers: int = 0) -> Iterator[None]:
    """One thread of BLAS for work on a design of so many numbers, unless they are many."""
    if numbers >= _LARGE:
        yield
        return
    _held.take()
    try:
        yield
    finally:
        _held.give_back()
