"""Cells of a study: calls known by what goes into them, made once, by whoever is free, and kept on disk.

An answer is put in place whole when it is there, so that a run that was killed repeats what was unfinished and nothing
else. A call that fails is an answer too: the rest goes on. Several processes may work in one folder: a cell is claimed
before it is begun, by a lock that ends with the process that holds it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

from bayes_sparse.common.files import write_whole

__all__ = [
    "Answer",
    "Array",
    "Cell",
    "Crew",
    "Record",
    "Report",
    "answers",
    "arrays",
    "failure",
    "forget_failures",
    "progress",
]

try:
    import fcntl
except ImportError:  # not on this system: two processes may make the same call, and give the same answer
    fcntl = None  # type: ignore[assignment]

type Array = NDArray[Any]
type Record = dict[str, Any]  # what JSON can hold
type Answer = Array | Record
type Numbered = Iterator[tuple[int, Cell]]

_FAILED = "failed"  # the only key of the record of a call that failed
_PATIENCE = 0.5  # seconds between looks at what others are computing
_BETWEEN = 30.0  # seconds between two lines where a bar cannot be drawn


type Report = Callable[[int, int, int], None]


@dataclass(frozen=True)
class Cell:
    """A call to make.

    Parameters
    ----------
    function : callable
        A function of a module, so that another process can find it. It returns an array, or a dict for JSON.
    arguments : tuple
        Arrays and settings with an exact ``repr``.
    version : int
        Of the function: to be raised when the same arguments give another answer.
    """

    function: Callable[..., Answer]
    arguments: tuple[Any, ...]
    version: int = 1

    def key(self) -> str:
        """A name that differs whenever the answer could."""
        digest = hashlib.sha256(f"{self.version} {self.function.__module__}.{self.function.__qualname__}".encode())
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


def failure(answer: Answer) -> str | None:
    """Why a call has no answer; None if it has one."""
    return answer[_FAILED] if isinstance(answer, dict) and set(answer) == {_FAILED} else None


@dataclass(frozen=True)
class Crew:
    """Who computes. The numbers are the same: every cell by itself, with one thread.

    Parameters
    ----------
    workers : int
        Processes, started by joblib; 1 is this one.
    scheduler : str, optional
        Address of a scheduler of dask.distributed, whose workers compute instead. They import this package.
    """

    workers: int = 1
    scheduler: str | None = None

    def computed(self, cells: Numbered) -> Iterator[tuple[int, Answer]]:
        """Answers by number, as they arrive; cells are taken as there is room for them."""
        if self.scheduler is not None:
            return _by_dask(self.scheduler, cells)
        return self._here(cells) if self.workers == 1 else self._by_joblib(cells)

    def _here(self, cells: Numbered) -> Iterator[tuple[int, Answer]]:
        for i, cell in cells:
            with threadpool_limits(1):
                answer = _attempt(cell)
            yield i, answer

    def _by_joblib(self, cells: Numbered) -> Iterator[tuple[int, Answer]]:
        joblib: Any = import_module("joblib")
        pool = joblib.Parallel(self.workers, return_as="generator_unordered", batch_size=1)
        yield from pool(joblib.delayed(_elsewhere)(i, cell) for i, cell in cells)


_ALONE = Crew()


def _by_dask(address: str, cells: Numbered) -> Iterator[tuple[int, Answer]]:
    distributed: Any = import_module("distributed")
    with distributed.Client(address, set_as_default=False) as client:
        room, running = 2 * max(sum(client.nthreads().values()), 1), distributed.as_completed(loop=client.loop)
        numbers: dict[str, int] = {}

        def fill() -> None:
            while len(numbers) < room and (one := next(cells, None)) is not None:
                future = client.submit(_elsewhere, *one, pure=False)
                numbers[future.key] = one[0]
                running.add(future)

        fill()
        for future in running:
            number = numbers.pop(future.key)
            error = future.exception()
            yield number, _sentence(error) if error is not None else future.result()[1]
            fill()


def _attempt(cell: Cell) -> Answer:
    try:
        return cell()
    except Exception as error:  # recorded, and told in the study's table: one cell must not end the others
        return _sentence(error)


def _sentence(error: BaseException) -> Record:
    return {_FAILED: f"{type(error).__name__}: {error}"}


def _elsewhere(number: int, cell: Cell) -> tuple[int, Answer]:
    """In a process that does nothing else."""
    _one_thread()
    return number, _attempt(cell)


@cache
def _one_thread() -> None:
    threadpool_limits(1)


@dataclass
class _Store:
    """Answers in a folder, and claims on those that are being computed."""

    directory: Path
    claims: int = -1

    def read(self, key: str) -> Answer | None:
        # A file cut short, by a full disk say, is as good as none: its call is made again.
        with suppress(FileNotFoundError, ValueError, EOFError):
            return np.asarray(np.load(self.directory / f"{key}.npy", allow_pickle=False))
        with suppress(FileNotFoundError, ValueError):
            return dict(json.loads((self.directory / f"{key}.json").read_text(encoding="utf-8")))
        return None

    def write(self, key: str, answer: Answer) -> Answer:
        """Keep an answer; returned as it will be read."""
        if isinstance(answer, dict):
            text = json.dumps(answer)
            write_whole(self.directory / f"{key}.json", text)
            return dict(json.loads(text))
        raw = io.BytesIO()
        np.save(raw, answer, allow_pickle=False)
        write_whole(self.directory / f"{key}.npy", raw.getvalue())
        return answer

    @contextmanager
    def claiming(self) -> Iterator[None]:
        """While this lasts cells can be claimed; the claims of a process that is killed end with it."""
        self.claims = os.open(self.directory / ".claims", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            yield
        finally:
            os.close(self.claims)

    def claim(self, key: str) -> bool:
        """Whether nobody else is at it: a lock on one byte of a file that stays empty."""
        if fcntl is not None:
            try:
                fcntl.lockf(self.claims, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, int(key[:12], 16))
            except OSError:
                return False
        return True

    def give_back(self, key: str) -> None:
        if fcntl is not None:
            fcntl.lockf(self.claims, fcntl.LOCK_UN, 1, int(key[:12], 16))


def answers(
    cells: Sequence[Cell],
    directory: Path,
    crew: Crew = _ALONE,
    report: Report = lambda done, total, failed: None,
) -> list[Answer]:
    """The answers to some cells, from disk where they are known.

    Parameters
    ----------
    cells : sequence of Cell
        What to compute.
    directory : Path
        Where answers are kept; made if needed. Other processes may be at work in it on the same cells.
    crew : Crew
        Who computes; by default this process.
    report : callable
        Given how many are done, how many there are, and how many failed, at the start and after each.

    Returns
    -------
    list of arrays and dicts
        In the order of the cells. `failure` tells those that have none.
    """
    directory.mkdir(parents=True, exist_ok=True)
    run = _Run(_Store(directory), [cell.key() for cell in cells], cells, report)
    with run.store.claiming():
        while run.left():
            before = len(run.found)
            for i, answer in crew.computed(run.free()):
                run.take(i, run.store.write(run.keys[i], answer))
                run.store.give_back(run.keys[i])
            if len(run.found) == before:
                time.sleep(_PATIENCE)  # what is left is with others
    return [run.found[i] for i in range(len(cells))]


@dataclass
class _Run:
    """How far it is."""

    store: _Store
    keys: list[str]
    cells: Sequence[Cell]
    report: Report
    found: dict[int, Answer] = field(default_factory=dict)
    failed: int = 0

    def __post_init__(self) -> None:
        for i, key in enumerate(self.keys):
            if (answer := self.store.read(key)) is not None:
                self._count(i, answer)
        self.report(len(self.found), len(self.keys), self.failed)

    def _count(self, i: int, answer: Answer) -> None:
        self.found[i] = answer
        self.failed += failure(answer) is not None

    def take(self, i: int, answer: Answer) -> None:
        self._count(i, answer)
        self.report(len(self.found), len(self.keys), self.failed)

    def left(self) -> list[int]:
        return [i for i in range(len(self.keys)) if i not in self.found]

    def free(self) -> Numbered:
        """Cells that nobody has, claimed one by one as they are asked for."""
        for i in self.left():
            if not self.store.claim(self.keys[i]):
                continue
            if (answer := self.store.read(self.keys[i])) is None:
                yield i, self.cells[i]
            else:  # somebody has finished it in the meantime
                self.store.give_back(self.keys[i])
                self.take(i, answer)


def arrays(
    cells: Sequence[Cell], directory: Path, crew: Crew = _ALONE, report: Report = lambda *_: None
) -> list[Array]:
    """Answers that are arrays, all of them: a call that failed is tried again, and if it fails again, said."""
    forget_failures(cells, directory)
    found = answers(cells, directory, crew, report)
    reasons = [reason for answer in found if (reason := failure(answer)) is not None]
    if reasons:
        raise RuntimeError(f"{len(reasons)} of {len(cells)} parts failed, the first by {reasons[0]}")
    return [np.asarray(answer) for answer in found]


def forget_failures(cells: Sequence[Cell], directory: Path) -> None:
    """Have calls that failed made again."""
    for key in (cell.key() for cell in cells):
        answer = _Store(directory).read(key)
        if answer is not None and failure(answer) is not None:
            (directory / f"{key}.json").unlink(missing_ok=True)


@contextmanager
def progress(title: str, shown: bool = True) -> Iterator[Report]:
    """A bar with the time left for `answers` to report to; a line now and then where none can be drawn."""
    console = Console(stderr=True, force_jupyter=False)
    if not (shown and console.is_terminal):
        yield _Lines(title, console) if shown else lambda done, total, failed: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=console) as bar:
        task = bar.add_task(title)

        def report(done: int, total: int, failed: int) -> None:
            told = f"{title}, {failed} failed" if failed else title
            bar.update(task, completed=done, total=total, description=told)

        yield report


@dataclass
class _Lines:
    title: str
    console: Console
    start: tuple[float, int] | None = None
    last: float = 0.0

    def __call__(self, done: int, total: int, failed: int) -> None:
        now = time.monotonic()
        if self.start is None:
            self.start = now, done
        if now - self.last < _BETWEEN and done < total:
            return
        self.last, made = now, done - self.start[1]
        left = f", about {(now - self.start[0]) / made * (total - done) / 60:.0f} min left" if made else ""
        wrong = f", {failed} failed" if failed else ""
        self.console.print(f"{self.title}: {done} of {total}{wrong}{left}", highlight=False, soft_wrap=True)
