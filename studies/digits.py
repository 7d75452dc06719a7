"""The experiment of Zhang & Malik (2005): which parts of a digit's outline tell it from others.

Digits are described by shape features, each class's own; a multinomial relevance vector machine chooses among them, and
its order is compared with that of mutual information and of a 1-norm SVM. Every step of every fold is stored, and a run
that was stopped goes on where it was.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from studies.contours import FloatArray
from studies.fold import Fold
from studies.plan import Plan, load_digits, stratified
from studies.results import Record, once

__all__ = ["VERSION", "run"]

VERSION = 1  # of the steps: raise it when the same plan gives other results


def run(
    plan: Plan,
    output: Path,
    *,
    digits: tuple[FloatArray, NDArray[np.intp]] | None = None,
    workers: int = 1,
    cache: Path | None = None,
    progressbar: bool = True,
) -> list[dict[str, Record]]:
    """All folds of one problem.

    Parameters
    ----------
    plan : Plan
        What to do.
    output : Path
        Where results are kept, in a folder named after the classes.
    digits : (array (n, rows, columns), int array (n,)), optional
        Images and labels; MNIST's if not given.
    workers : int
        Processes that compute features. With more than one, call this under ``if __name__ == "__main__":``.
    cache : path, optional
        Where features are kept; the user's cache directory if not given.
    progressbar : bool
        Show a bar over the steps of all folds.

    Returns
    -------
    list of dict
        The results of each fold by step.
    """
    images, labels = load_digits(plan) if digits is None else digits
    held_out = stratified(labels, plan.folds, plan.random_seed)
    folds = [Fold(plan, images, labels, held_out == k, workers, cache) for k in range(plan.folds)]
    total = sum(len(fold.steps()) for fold in folds)
    results = []
    with _bar(progressbar) as bar, _one_thread():
        task = bar.add_task("", total=total)
        for k, fold in enumerate(folds):
            done: dict[str, Record] = {}
            for name, step in fold.steps().items():
                bar.update(task, description=f"{plan.name}, fold {k + 1} of {plan.folds}: {name}")
                key = {"version": VERSION, "fold": k, "step": name, **asdict(plan)}
                path = output / plan.name / f"fold{k + 1}" / f"{name}.json"
                done[name] = once(path, key, lambda step=step, done=done: step(done))  # type: ignore[misc]
                bar.advance(task)
            results.append(done)
    return results


def _bar(shown: bool) -> Progress:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=Console(stderr=True), disable=not shown, refresh_per_second=2)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Linear algebra in one thread: matrices are small here, and threads that wait for each other cost many times more.

    The library that sets it comes with scikit-learn, which the rival rankings need.
    """
    with importlib.import_module("threadpoolctl").threadpool_limits(limits=1):
        yield
