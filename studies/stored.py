"""Slow arrays, computed once: a task is known by what goes into it, and its answer is kept on disk.

Answers are written one by one as they arrive and put in place whole, so an interrupted run goes on where it was.
"""

from __future__ import annotations

import hashlib
import io
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.common.files import write_whole
from studies.settings import VERSION

__all__ = ["Answer", "Task", "Workers", "answers"]

type Answer = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Task:
    """A call to make.

    Parameters
    ----------
    function : callable
        A function of a module, so that another process can find it. It returns an array.
    arguments : tuple
        Arrays and settings with an exact ``repr``.
    """

    function: Callable[..., Answer]
    arguments: tuple[Any, ...]

    def key(self) -> str:
        """A name that differs whenever the answer could."""
        digest = hashlib.sha256(f"{VERSION} {self.function.__module__}.{self.function.__qualname__}".encode())
        for argument in self.arguments:
            if isinstance(argument, np.ndarray):
                digest.update(f"|{argument.dtype.str} {argument.shape}|".encode())
                digest.update(np.ascontiguousarray(argument).tobytes())
            else:
                digest.update(f"|{argument!r}|".encode())
        return digest.hexdigest()[:40]

    def __call__(self) -> Answer:
        """Make the call."""
        return self.function(*self.arguments)


class Workers:
    """Processes that are started when they are first needed and stopped at the end.

    Parameters
    ----------
    number : int
        How many; 1 computes in this process.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def computed(self, tasks: dict[int, Task]) -> Iterator[tuple[int, Answer]]:
        """Answers by number, as they arrive."""
        if self._number == 1 or len(tasks) < 2:
            for i, task in tasks.items():
                yield i, task()
            return
        if self._pool is None:
            # The same way of starting a process on every system; a fork of a process with threads may hang.
            self._pool = ProcessPoolExecutor(self._number, mp_context=multiprocessing.get_context("spawn"))
        running = {self._pool.submit(task): i for i, task in tasks.items()}
        for done in as_completed(running):
            yield running[done], done.result()


def answers(
    tasks: Sequence[Task], directory: Path, workers: Workers, report: Callable[[int, int], None]
) -> list[Answer]:
    """The answers to some tasks, from disk where they are known.

    Parameters
    ----------
    tasks : sequence of Task
        What to compute.
    directory : Path
        Where answers are kept; made if needed.
    workers : Workers
        Who computes.
    report : callable
        Given the number of tasks done and that of all, after each.

    Returns
    -------
    list of arrays
        In the order of the tasks.
    """
    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / f"{task.key()}.npy" for task in tasks]
    found = {i: array for i, path in enumerate(paths) if (array := _read(path)) is not None}
    for i, array in workers.computed({i: task for i, task in enumerate(tasks) if i not in found}):
        _write(paths[i], array)
        found[i] = array
        report(len(found), len(tasks))
    return [found[i] for i in range(len(tasks))]


def _read(path: Path) -> Answer | None:
    if not path.is_file():
        return None
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except (ValueError, EOFError):
        return None  # a file cut short, by a full disk say: it is computed again and replaced


def _write(path: Path, array: Answer) -> None:
    raw = io.BytesIO()
    np.save(raw, array, allow_pickle=False)
    write_whole(path, raw.getvalue())
