"""One call after another, or in several processes where that is worth their start."""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np

from bayes_sparse.common.checks import count
from bayes_sparse.common.cores import cores

__all__ = ["answers"]

_START = 6.0  # seconds that processes must save: starting them and importing PyMC in each takes some
_PARTS = 8  # a process is given, one after another: enough to keep all of them busy, and to show progress
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_log = logging.getLogger("bayes_sparse")


def answers[T](
    job: Callable[[int], T], number: int, workers: int | None, report: Callable[[int], None], *, alone: bool = False
) -> list[T]:
    """``job(0)``, ``job(1)`` ... in this order, whoever computed them.

    Parameters
    ----------
    job : callable
        Sent to every process once.
    number : int
        How many calls there are.
    workers : int, optional
        Processes; None for as many as there are cores, where that is quicker.
    report : callable
        Is told how many calls are done.
    alone : bool
        None means one process: the job itself uses all cores.
    """
    most = 1 if workers is None and alone else min(cores() if workers is None else count("workers", workers, 1), number)
    found: list[T] = []
    if workers is None and most > 1:  # the first call tells how long all of them would take
        started = time.perf_counter()
        found.append(job(0))
        report(1)
        left = (time.perf_counter() - started) * (number - 1)
        if left * (1 - 1 / most) < _START:
            most = 1
    sent = _pickled(job) if most > 1 else None
    if sent is not None:
        return found + _in_processes(sent, range(len(found), number), most, report)
    while len(found) < number:
        found.append(job(len(found)))
        report(len(found))
    return found


def _pickled(job: Any) -> bytes | None:
    """The job as other processes can read it; None, with a message, where they could not."""
    try:
        sent = pickle.dumps(job)
    except (pickle.PicklingError, AttributeError, TypeError):
        sent = b"__main__"
    if b"__main__" not in sent:
        return sent
    _log.info(
        "One process does all of it: the model, the method or the basis is defined in the running script or notebook, "
        "where others cannot find it; put it into a module to have several."
    )
    return None


def _in_processes(sent: bytes, numbers: range, workers: int, report: Callable[[int], None]) -> list[Any]:
    parts = np.array_split(np.asarray(numbers), min(len(numbers), _PARTS * workers))
    done: dict[Future[list[Any]], list[Any]] = {}
    # The same way of starting a process on every system; a fork of a process with threads may hang.
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _begin, (sent,))
    try:
        with _as_they_should_start():
            running = [pool.submit(_answered, part.tolist()) for part in parts]
        for future in as_completed(running):
            done[future] = future.result()
            report(numbers.start + sum(map(len, done.values())))
    except BrokenProcessPool:
        raise RuntimeError(
            "A process that was fitting has died, most likely for want of memory; give fewer `workers`."
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)
    return [answer for future in running for answer in done[future]]


@contextmanager
def _as_they_should_start() -> Iterator[None]:
    """With one thread each, and without running the user's script again, which nothing in it guards against."""
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    main = sys.modules["__main__"]
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


_job: Callable[[int], Any]


def _begin(sent: bytes) -> None:
    """In a process of its own: read the job."""
    global _job
    _job = pickle.loads(sent)


def _answered(numbers: list[int]) -> list[Any]:
    return [_job(i) for i in numbers]
