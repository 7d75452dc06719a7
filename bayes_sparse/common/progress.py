"""A progress line for anything that takes longer than a second; nothing for what does not."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

__all__ = ["FitProgress", "no_messages", "quiet"]

_PATIENCE = 1.0  # seconds before anything is shown


class FitProgress:
    """Shows iteration, objective and number of active terms of a running search.

    Parameters
    ----------
    title : str
        What is running.
    enabled : bool
        False shows nothing.
    """

    def __init__(self, title: str, enabled: bool) -> None:
        self._title, self._enabled = title, enabled
        self._started = time.perf_counter()
        self._bar: Progress | None = None

    def __enter__(self) -> FitProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, iteration: int, objective: float, active: int) -> None:
        """Report an iteration."""
        self.say(f"{self._title}: iteration {iteration}, objective {objective:.2f}, {active} terms active")

    def say(self, text: str) -> None:
        """Show a line, if it has taken long enough."""
        if not self._enabled or time.perf_counter() - self._started < _PATIENCE:
            return
        if self._bar is None:
            columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
            self._bar = Progress(*columns, console=Console(stderr=True, force_jupyter=False), refresh_per_second=5)
            self._bar.add_task(self._title)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], description=text)


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
