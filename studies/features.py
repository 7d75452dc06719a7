"""Shape features of digits for one split of the data: every digit against the anchor of every class."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pooch
from numpy.typing import ArrayLike, NDArray

from bayes_sparse.common.checks import count
from bayes_sparse.common.progress import FitProgress
from studies.anchors import centre, shape_distances, spread
from studies.cells import Array, Cell, Crew, arrays
from studies.contours import FloatArray
from studies.matching import describe, differences
from studies.settings import VERSION, ShapeSettings

__all__ = ["Anchor", "ShapeFeatures", "against", "shape_features"]

type Rows = NDArray[np.intp]

_BLOCK = 100  # digits a task: a second or less, so little is lost when a run is interrupted


@dataclass(frozen=True)
class Anchor:
    """The digit that stands for a class.

    Attributes
    ----------
    label : object
        Its class.
    row : int
        Where it is among the images.
    image : array (rows, columns)
        The digit.
    points : array (points, 2)
        Its contour points, column and row in pixels.
    """

    label: Any
    row: int
    image: FloatArray
    points: FloatArray


@dataclass(frozen=True)
class ShapeFeatures:
    """Shape features and what they are measured against.

    Attributes
    ----------
    values : array (n, classes, points, 2)
        For each image, class and point of the anchor of that class: distance of contexts, difference of patches.
    anchors : tuple of Anchor
        One a class, in the order of the labels.
    """

    values: FloatArray
    anchors: tuple[Anchor, ...]


def shape_features(
    images: ArrayLike,
    labels: ArrayLike,
    train_rows: ArrayLike,
    *,
    settings: ShapeSettings | None = None,
    candidates: int = 40,
    others: int = 80,
    workers: int = 1,
    directory: str | Path | None = None,
    progressbar: bool = True,
) -> ShapeFeatures:
    """Shape features of all images, against anchors chosen from the training rows alone.

    Parameters
    ----------
    images : array (n, rows, columns)
        Grey images, zero where there is nothing.
    labels : array (n,)
        Their classes. Those of rows outside ``train_rows`` are not used.
    train_rows : array of int, or of n bool
        Rows among which anchors are chosen.
    settings : ShapeSettings, optional
        How shapes are compared.
    candidates, others : int
        An anchor is the best of so many candidates, judged by its largest distance to so many digits of its class,
        both evenly spread over the training rows of the class. With as many as there are it is the exact centre.
    workers : int
        Number of processes. With more than one, call this from a script under ``if __name__ == "__main__":``.
    directory : path, optional
        Where results are kept, to be found by the next call; the user's cache directory if not given.
    progressbar : bool
        Show how far it is.

    Returns
    -------
    ShapeFeatures
        Features of all rows, and the anchors.
    """
    pictures, members = _checked(images, labels, train_rows)
    settings = ShapeSettings() if settings is None else settings
    sample = count("candidates", candidates, 1), count("others", others, 1)
    place = Path(pooch.os_cache("bayes_sparse")) / "shapes" if directory is None else Path(directory)
    crew = Crew(count("workers", workers, 1))
    with FitProgress("Shape features", progressbar) as progress:
        work = _Work(place, crew, settings, progress)
        rows = _centres(pictures, list(members.values()), sample, work)
        values = _values(pictures, rows, work)
    points = [describe(pictures[row], settings).points for row in rows]
    anchors = [Anchor(k, row, pictures[row], p) for k, row, p in zip(members, rows, points, strict=True)]
    return ShapeFeatures(values, tuple(anchors))


@dataclass(frozen=True)
class _Work:
    """How and where to compute."""

    directory: Path
    crew: Crew
    settings: ShapeSettings
    progress: FitProgress

    def done(self, title: str, cells: list[Cell]) -> list[Array]:
        def report(done: int, total: int, _: int) -> None:
            self.progress.say(f"{title}: {done} of {total}")

        return arrays(cells, self.directory, self.crew, report)


def _checked(images: ArrayLike, labels: ArrayLike, train_rows: ArrayLike) -> tuple[FloatArray, dict[Any, Rows]]:
    """The images as numbers, and the training rows of each class."""
    pictures, named = np.asarray(images, dtype=np.float64), np.asarray(labels)
    if pictures.ndim != 3:
        raise ValueError(f"`images` must be an array (n, rows, columns), got shape {pictures.shape}.")
    if named.shape != pictures.shape[:1]:
        raise ValueError(f"`labels` must be one for each of the {len(pictures)} images, got shape {named.shape}.")
    top = pictures.max(axis=(1, 2), initial=0.0)
    if (blank := np.flatnonzero(~((top > 0) & np.isfinite(pictures).all(axis=(1, 2))))).size:
        shown = ", ".join(map(str, blank[:5])) + (", ..." if blank.size > 5 else "")
        raise ValueError(f"{blank.size} of the images are blank or not finite, at rows {shown}; leave them out.")
    rows = _training(train_rows, len(pictures))
    return pictures, {label.item(): rows[named[rows] == label] for label in np.unique(named[rows])}


def _training(train_rows: ArrayLike, n: int) -> Rows:
    """Training rows as sorted numbers."""
    given = np.asarray(train_rows)
    if given.dtype == bool and given.shape == (n,):
        given = np.flatnonzero(given)
    if given.ndim != 1 or not np.issubdtype(given.dtype, np.integer) or not given.size:
        raise ValueError(f"`train_rows` must be a list of row numbers or {n} times true or false, and not empty.")
    if given.min() < 0 or given.max() >= n:
        raise ValueError(f"`train_rows` must lie between 0 and {n - 1}, got {given.min()} to {given.max()}.")
    return np.unique(given).astype(np.intp)


def _centres(pictures: FloatArray, members: list[Rows], sample: tuple[int, int], work: _Work) -> list[int]:
    """Row of the anchor of each class."""
    drawn = [(spread(rows, sample[0]), spread(rows, sample[1])) for rows in members]
    cells = [Cell(shape_distances, (pictures[some], pictures[rest], work.settings), VERSION) for some, rest in drawn]
    found = [np.asarray(array, dtype=np.float64) for array in work.done("Anchors, class", cells)]
    return [int(some[centre(distances)]) for (some, _), distances in zip(drawn, found, strict=True)]


def _values(pictures: FloatArray, rows: list[int], work: _Work) -> FloatArray:
    """Features of all images against the anchors in some rows."""
    blocks = [pictures[start : start + _BLOCK] for start in range(0, len(pictures), _BLOCK)]
    cells = [Cell(against, (pictures[row], block, work.settings), VERSION) for row in rows for block in blocks]
    parts = np.concatenate(work.done("Shape features, block", cells))
    by_class = parts.reshape(len(rows), len(pictures), work.settings.points, 2)
    return np.ascontiguousarray(by_class.swapaxes(0, 1), dtype=np.float64)


def against(anchor: FloatArray, images: FloatArray, settings: ShapeSettings) -> NDArray[np.float32]:
    """Shape features (n, points, 2) of images against one anchor; in single precision, to halve what is stored."""
    fixed = describe(anchor, settings)
    return np.array([differences(fixed, describe(image, settings), settings) for image in images], dtype=np.float32)
