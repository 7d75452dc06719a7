"""Chains side by side: a density in Python holds Python's lock, so several cores need several processes.

They are forks, which know the compiled density already; a process started anew would take seconds to import and compile
it. Where forks are not safe (not on Linux, or inside a process that was itself started for a part of some work), the
chains take turns. A chain's draws depend on its own seed alone, so they are the same either way.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any, cast

from threadpoolctl import threadpool_limits

from bayes_sparse.common.cores import cores as available

__all__ = ["Tell", "each_chain"]

type Tell = Callable[[int, int], None]
type Job[T] = Callable[[int, Tell], T]


def each_chain[T](
    job: Job[T], chains: int, cores: int | None, report: Callable[[list[tuple[int, int]]], None]
) -> list[T]:
    """``job(0, tell)``, ``job(1, tell)`` ..., in this order, in as many processes as there are cores.

    Parameters
    ----------
    job : callable
        Samples one chain, and tells how many draws are done and how many of them diverged.
    chains : int
        How many.
    cores : int, optional
        Processes; None for one a core.
    report : callable
        Is given the last that every chain told.
    """
    most = min(cores or available() if _may_fork() else 1, chains)
    told = [(0, 0)] * chains

    def hear(chain: int, done: int, divergent: int) -> None:
        told[chain] = (done, divergent)
        report(told)

    if most == 1:
        return [job(chain, lambda *said, at=chain: hear(at, *said)) for chain in range(chains)]
    return _side_by_side(job, chains, most, hear)


def _may_fork() -> bool:
    return sys.platform == "linux" and multiprocessing.parent_process() is None


def _side_by_side(job: Job[Any], chains: int, most: int, hear: Callable[[int, int, int], None]) -> list[Any]:
    context = multiprocessing.get_context("fork")
    found: dict[int, Any] = {}
    workers: dict[Connection, Any] = {}
    try:
        for first in range(most):
            here, there = context.Pipe(duplex=False)
            worker = context.Process(target=_work, args=(job, range(first, chains, most), there), daemon=True)
            with warnings.catch_warnings():  # Python warns of forks beside threads; the child touches none of theirs
                warnings.simplefilter("ignore", DeprecationWarning)
                worker.start()
            there.close()
            workers[here] = worker
        while workers:
            for ready in wait(list(workers)):
                _listen(cast("Connection", ready), workers, found, hear)
    finally:
        for worker in workers.values():
            worker.terminate()
    return [found[chain] for chain in range(chains)]


def _listen(here: Connection, workers: dict[Connection, Any], found: dict[int, Any], hear: Any) -> None:
    """One message of one process."""
    try:
        kind, chain, what = here.recv()
    except EOFError:  # all is said
        worker = workers.pop(here)
        worker.join()
        if worker.exitcode:
            raise RuntimeError("A process that was sampling has died, most likely for want of memory.") from None
        return
    if kind == "failed":
        raise RuntimeError(f"Chain {chain} failed:\n{what}")
    if kind == "done":
        found[chain] = what
    else:
        hear(chain, *what)


def _work(job: Job[Any], numbers: range, there: Connection) -> None:
    """In a process of its own: some chains, one after another, each on one core."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes: the one that waits ends the others
    with threadpool_limits(1):
        for chain in numbers:
            try:
                drawn = job(chain, lambda *said, at=chain: there.send(("told", at, said)))
            except Exception:  # whatever it is, it is raised again where the user sees it
                there.send(("failed", chain, traceback.format_exc()))
                return
            there.send(("done", chain, drawn))
    there.close()
