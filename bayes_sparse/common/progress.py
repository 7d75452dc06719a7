"""Progress for anything that takes longer than a second: one line that changes, or line by line where it is piped."""

from __future__ import annotations

import logging
import re
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

__all__ = ["FitProgress", "no_messages", "quiet"]

_PATIENCE = 1.0  # seconds before anything is shown
_BETWEEN = 5.0  # seconds between two lines that differ in their numbers alone, where a line cannot be changed


class FitProgress:
    """Shows iteration, objective and number of active terms of a running search.

    Parameters
    ----------
    title : str
        What is running.
    enabled : bool
        False shows nothing.
    patience : float, optional
        Seconds before anything is shown.
    """

    def __init__(self, title: str, enabled: bool, patience: float | None = None) -> None:
        self._title, self._enabled = title, enabled
        self._patience = _PATIENCE if patience is None else patience
        self._started = time.perf_counter()
        self._bar: Progress | None = None
        self._last = ("", 0.0)

    def __enter__(self) -> FitProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, iteration: int, objective: float, active: int) -> None:
        """Report an iteration."""
        if not self._enabled:  # most fits: a line that nobody sees is not written
            return
        self.say(f"{self._title}: iteration {iteration}, objective {objective:.2f}, {active} terms active")

    def say(self, text: str) -> None:
        """Show a line, if it has taken long enough."""
        if not self._enabled or time.perf_counter() - self._started < self._patience:
            return
        if self._bar is None:
            console = Console(stderr=True, force_jupyter=False)
            if not console.is_terminal:
                self._line(console, text)
                return
            columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
            self._bar = Progress(*columns, console=console, refresh_per_second=5)
            self._bar.add_task(self._title)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], description=text)

    def _line(self, console: Console, text: str) -> None:
        """A line of its own, for a new kind of work, or for how far it is now and then."""
        kind, now = re.sub(r"[-\d.]+", "", text), time.perf_counter()
        if kind != self._last[0] or now - self._last[1] >= _BETWEEN:
            console.print(text, markup=False, highlight=False, soft_wrap=True)
            self._last = (kind, now)


@contextmanager
def quiet() -> Iterator[None]:
    """No word of the fits made inside, whose endings are reported in another way."""
    with no_messages(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


@contextmanager
def no_messages() -> Iterator[None]:
    """No messages of the fits made inside; their warnings are given."""
    log = logging.getLogger("bayes_sparse")

    def grave(record: logging.LogRecord) -> bool:
        return record.levelno >= logging.WARNING

    log.addFilter(grave)  # another level for a moment would empty the caches of all loggers
    try:
        yield
    finally:
        log.removeFilter(grave)
