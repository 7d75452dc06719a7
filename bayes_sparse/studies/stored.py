"""Slow arrays, computed once: a task is known by what goes into it, and its answer is kept on disk.

Answers are written one by one as they arrive and put in place whole, so an interrupted run goes on where it was.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.studies.settings import VERSION

__all__ = ["Answer", "Task", "answers"]

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


def answers(tasks: Sequence[Task], directory: Path, workers: int, report: Callable[[int, int], None]) -> list[Answer]:
    """The answers to some tasks, from disk where they are known.

    Parameters
    ----------
    tasks : sequence of Task
        What to compute.
    directory : Path
        Where answers are kept; made if needed.
    workers : int
        Number of processes; 1 computes in this one.
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
    missing = [i for i in range(len(tasks)) if i not in found]
    for i, array in _computed(tasks, missing, workers):
        _write(paths[i], array)
        found[i] = array
        report(len(found), len(tasks))
    return [found[i] for i in range(len(tasks))]


def _computed(tasks: Sequence[Task], missing: list[int], workers: int) -> Iterator[tuple[int, Answer]]:
    """Answers as they arrive."""
    if workers == 1 or len(missing) < 2:
        for i in missing:
            yield i, tasks[i]()
        return
    # The same way of starting a process on every system; a fork of a process with threads may hang.
    pool = ProcessPoolExecutor(min(workers, len(missing)), mp_context=multiprocessing.get_context("spawn"))
    try:
        running = {pool.submit(tasks[i]): i for i in missing}
        for done in as_completed(running):
            yield running[done], done.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _read(path: Path) -> Answer | None:
    if not path.is_file():
        return None
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except (ValueError, EOFError):
        return None  # a file cut short, by a full disk say: it is computed again and replaced


def _write(path: Path, array: Answer) -> None:
    handle, partial = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            np.save(file, array, allow_pickle=False)
        os.replace(partial, path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise
