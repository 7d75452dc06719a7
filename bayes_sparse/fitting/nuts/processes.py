"""Chains side by side: a density in Python holds Python's lock, so several cores need several processes.

They are forks, which know the compiled density already; a process started anew would take seconds to import and compile
it. Where forks are not safe (not on Linux, or inside a process that was itself started for a part of some work), the
chains take turns. A chain's draws depend on its own seed alone, so they are the same either way.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from typing import Any, cast

from threadpoolctl import threadpool_limits

from bayes_sparse.common.cores import cores as available
from bayes_sparse.common.threads import few_threads

__all__ = ["Halted", "Tell", "each_chain"]

type Tell = Callable[[int, int], None]
type Job[T] = Callable[[int, Tell], T]

_PATIENCE = 10.0  # seconds that processes have to hand over what they made before Ctrl-C
_LOOK = 0.5  # seconds without a word after which it is looked whether their time is up
_TOLD_BY = {signal.SIGINT, signal.SIGTERM}


class Halted(Exception):
    """A chain that the user stopped, with what there is of it."""

    def __init__(self, made: Any) -> None:
        super().__init__()
        self.made = made


def each_chain[T](
    job: Job[T], chains: int, cores: int | None, report: Callable[[list[tuple[int, int]]], None]
) -> list[T]:
    """``job(0, tell)``, ``job(1, tell)`` ..., in this order, in as many processes as there are cores.

    After Ctrl-C it is what the jobs have made so far, those that were not begun left out.

    Parameters
    ----------
    job : callable
        Samples one chain, and tells how many draws are done and how many of them diverged. One that is stopped by
        Ctrl-C raises `Halted`.
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
        with few_threads():
            return _in_turn(job, chains, hear)
    return _side_by_side(job, chains, most, hear)


def _may_fork() -> bool:
    return sys.platform == "linux" and multiprocessing.parent_process() is None


def _in_turn(job: Job[Any], chains: int, hear: Callable[[int, int, int], None]) -> list[Any]:
    """In this process, up to the chain that is stopped."""
    found: list[Any] = []
    try:
        for chain in range(chains):
            made = job(chain, lambda *said, at=chain: hear(at, *said))
            found.append(made)
    except Halted as halted:
        found.append(halted.made)
    except KeyboardInterrupt:
        if not found:
            raise
    return found


def _side_by_side(job: Job[Any], chains: int, most: int, hear: Callable[[int, int, int], None]) -> list[Any]:
    context = multiprocessing.get_context("fork")
    found: dict[int, Any] = {}
    workers: dict[Connection, Any] = {}
    stop = _Stop(workers)
    try:
        with stop.by_ctrl_c():
            for first in range(most):
                here, there = context.Pipe(duplex=False)
                worker = context.Process(target=_work, args=(job, range(first, chains, most), there), daemon=True)
                _started(worker)
                there.close()
                workers[here] = worker
            while workers and time.monotonic() < stop.until:
                for ready in wait(list(workers), _LOOK):
                    _listen(cast("Connection", ready), workers, found, hear, stop)
    finally:
        for worker in workers.values():
            worker.kill()
    if stop.asked and not found:
        raise KeyboardInterrupt
    return [found[chain] for chain in sorted(found)]


class _Stop:
    """Ctrl-C while processes sample: they are told to hand over what they have, and what they say is listened to.

    An exception right there would cut a message in two, and what follows it could not be read any more.
    """

    def __init__(self, workers: dict[Connection, Any]) -> None:
        self.workers, self.asked, self.until = workers, False, float("inf")

    @contextmanager
    def by_ctrl_c(self) -> Iterator[None]:
        """Take the first Ctrl-C; the next one is again whoever's it was before."""
        before = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or not callable(before):
            yield  # nobody's Ctrl-C
            return

        def asked(*_: Any) -> None:
            signal.signal(signal.SIGINT, before)
            self.asked, self.until = True, time.monotonic() + _PATIENCE
            for worker in self.workers.values():
                worker.terminate()

        signal.signal(signal.SIGINT, asked)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


def _started(worker: Any) -> None:
    """Start a process that is told to stop only once it knows what that means."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _TOLD_BY)
    try:
        with warnings.catch_warnings():  # Python warns of forks beside threads; the child touches none of theirs
            warnings.simplefilter("ignore", DeprecationWarning)
            worker.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _listen(here: Connection, workers: dict[Connection, Any], found: dict[int, Any], hear: Any, stop: _Stop) -> None:
    """One message of one process."""
    try:
        kind, chain, what = here.recv()
    except EOFError:  # all is said
        worker = workers.pop(here)
        worker.join()
        if worker.exitcode and not stop.asked:
            raise RuntimeError("A process that was sampling has died, most likely for want of memory.") from None
        return
    if kind == "failed":
        if not stop.asked:
            raise RuntimeError(f"Chain {chain} failed:\n{what}")
    elif kind == "done":
        found[chain] = what
    else:
        hear(chain, *what)


def _work(job: Job[Any], numbers: range, there: Connection) -> None:
    """In a process of its own: some chains, one after another, each on one core."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes: the one that waits ends the others
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # by this, upon which samplers give what they have

    def say(*message: Any) -> None:  # as a whole, or not at all
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _TOLD_BY)
        there.send(message)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    with threadpool_limits(1), suppress(KeyboardInterrupt):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _TOLD_BY)
        try:
            for chain in numbers:
                try:
                    drawn = job(chain, lambda *said, at=chain: say("told", at, said))
                except Halted as halted:
                    say("done", chain, halted.made)
                    return
                except Exception:  # whatever it is, it is raised again where the user sees it
                    say("failed", chain, traceback.format_exc())
                    return
                say("done", chain, drawn)
        finally:  # one that came later would leave by frames that are the caller's, in a copy of the whole program
            signal.pthread_sigmask(signal.SIG_BLOCK, _TOLD_BY)
    there.close()
