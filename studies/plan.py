"""What is studied: which digits, how they are split, how many features are tried."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.common.checks import count
from bayes_sparse.datasets import load
from bayes_sparse.refits.rankings import sklearn
from studies.contours import FloatArray
from studies.settings import ShapeSettings

__all__ = ["COUNTS", "Plan", "load_digits", "stratified"]

COUNTS = (5, 10, 20, 40, 80, 160)


@dataclass(frozen=True)
class Plan:
    """One problem of the study.

    Parameters
    ----------
    classes : tuple of int
        The digits to tell apart.
    digits : int
        How many in all, the same number of each class.
    skip : int
        How many of each class are passed over, for a second look at other digits.
    folds : int
        Parts of the cross-validation.
    counts : tuple of int
        Numbers of features at which rankings are compared.
    candidates, others : int
        Of the choice of an anchor (`shape_features`).
    settings : ShapeSettings
        How shapes are compared.
    pixels : bool
        Compare shape features with pixels too, which takes most of the time.
    random_seed : int
        Of the split and of the rankings.
    """

    classes: tuple[int, ...] = (8, 9)
    digits: int = 1000
    skip: int = 0
    folds: int = 5
    counts: tuple[int, ...] = COUNTS
    candidates: int = 40
    others: int = 80
    settings: ShapeSettings = field(default_factory=ShapeSettings)
    pixels: bool = True
    random_seed: int = 0

    def __post_init__(self) -> None:
        count("folds", self.folds, 2)
        count("skip", self.skip, 0)
        if len(set(self.classes)) < 2 or not set(self.classes) <= set(range(10)):
            raise ValueError(f"`classes` must be two or more different digits, got {self.classes}.")
        if self.digits < self.folds * len(self.classes):
            raise ValueError(f"{self.digits} digits are too few for {self.folds} folds of {len(self.classes)} classes.")

    @property
    def name(self) -> str:
        """For files: the classes."""
        return "-".join(map(str, self.classes))


def load_digits(plan: Plan) -> tuple[FloatArray, NDArray[np.intp]]:
    """Images and labels of the digits of a plan, from the training set of MNIST, class by class."""
    frame = load("mnist_train")
    labels = frame["target"].to_numpy().astype(np.intp)
    each = plan.digits // len(plan.classes)
    rows = [np.flatnonzero(labels == label)[plan.skip : plan.skip + each] for label in sorted(plan.classes)]
    if min(map(len, rows)) < each:
        raise ValueError(f"There are not {each} digits of each class beyond the first {plan.skip}; ask for fewer.")
    chosen = np.concatenate(rows)
    images = frame.drop(columns="target").to_numpy()[chosen].reshape(-1, 28, 28).astype(np.float64)
    return images, labels[chosen]


def stratified(labels: NDArray[np.intp], folds: int, random_seed: int) -> NDArray[np.intp]:
    """Fold of each row, the classes in equal parts in all of them."""
    split = sklearn("model_selection").StratifiedKFold(folds, shuffle=True, random_state=random_seed)
    fold = np.empty(len(labels), dtype=np.intp)
    for k, (_, held_out) in enumerate(split.split(labels, labels)):
        fold[held_out] = k
    return fold
