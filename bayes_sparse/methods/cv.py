"""L1 regression with lambda by cross-validation: the rival that needs a grid and as many fits as folds times points."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from bayes_sparse.common.checks import count, positive
from bayes_sparse.common.statuses import Status
from bayes_sparse.common.types import FloatArray, Report
from bayes_sparse.inference.l1.fixed_points import PathOutcome, PathVariables
from bayes_sparse.inference.l1.path import Path
from bayes_sparse.problem.canonical import likeness
from bayes_sparse.problem.folds import fold_weights
from bayes_sparse.problem.problem import Problem

__all__ = ["CV"]

_ROUGH, _FINE = 1e-4, 1e-10  # tolerance of a point inside a fold, and of the answer


@dataclass(frozen=True)
class CV:
    """Lambda with the best log-likelihood of held-out rows.

    Attributes
    ----------
    points : int
        Lambdas tried, evenly spaced on the log scale.
    weakest : float
        The smallest of them, as a part of the largest that leaves anything in.
    folds : int
        Parts the rows are split into, balanced in the target. With whole `weights` of the rows the copies of a row are
        split, as if it had been given so often; with others a row stays whole.
    rule : "best" or "one_se"
        The best lambda, or the largest one within a standard error of it.
    fold_seed : int
        Of the split.
    """

    points: int = 20
    weakest: float = 1e-3
    folds: int = 5
    rule: Literal["best", "one_se"] = "best"
    fold_seed: int = 0

    priors: ClassVar[tuple[str, ...]] = ("jeffreys",)
    family: ClassVar[str] = "l1_path"

    def __post_init__(self) -> None:
        if self.rule not in ("best", "one_se"):
            raise ValueError(f"`rule` is 'best' or 'one_se', got {self.rule!r}.")
        positive("weakest", self.weakest, below=1.0)
        count("points", self.points, 2)
        count("folds", self.folds, 2)

    def __call__(self, path: Path, report: Report) -> PathOutcome:
        """Fit the path in every fold, and the whole at the lambda chosen."""
        problem = path.problem
        held = _held_out(problem, self.folds, self.fold_seed)
        values = np.unique(problem.y)
        # one class is left out of some fold's training rows
        if len(values) == 2 and min(np.count_nonzero(held[:, problem.y == value].any(axis=1)) for value in values) < 2:
            raise ValueError("Only one row has one of the two targets: a fold without it cannot learn it.")
        top = path.largest
        if not top > 0:
            return PathOutcome(path.null, Status.NULL, 0, marginal=False)
        knobs = top * np.geomspace(1.0, self.weakest, self.points)
        losses = np.stack([self._fold(path, knobs, out, report) for out in held])
        mean, error = losses.mean(axis=0), losses.std(axis=0, ddof=1) / np.sqrt(self.folds)
        chosen = int(np.argmin(mean))
        if self.rule == "one_se":
            chosen = int(np.argmax(mean <= mean[chosen] + error[chosen]))
        point = path.cold(knobs[chosen], _FINE) if chosen else path.null
        found: PathVariables = {
            "cv_penalty": (("penalty",), knobs),
            "cv_loss": (("penalty",), mean),
            "cv_se": (("penalty",), error),
            "penalty_chosen": ((), knobs[chosen]),
        }
        status = Status.CONVERGED if point.N else Status.NULL
        return PathOutcome(point, status, self.folds * self.points, marginal=False, found=found)

    def _fold(self, path: Path, knobs: FloatArray, held: FloatArray, report: Report) -> FloatArray:
        """Loss an observation of what is held out of the weights, at every knob."""
        problem = path.problem
        weights = np.ones(len(held)) if problem.weights is None else problem.weights
        inside = Path(replace(problem, weights=weights - held), path.allowed, path.columns)
        part = 1.0 - held.sum() / problem.count  # the penalty grows with the rows
        point, losses = inside.null, np.empty(len(knobs))
        for i, knob in enumerate(knobs):
            point = inside.at(part * knob, point, _ROUGH)
            unweighted = replace(problem, weights=None).terms(point.spot.eta, point.theta)[0]
            losses[i] = -float(held @ np.where(held > 0, unweighted, 0.0)) / held.sum()
            report(i + 1, -losses[i], point.N)
        return losses


def _held_out(problem: Problem, folds: int, seed: int) -> FloatArray:
    """What every fold holds out of the weights, whatever the order of rows and columns."""
    return fold_weights(problem.y, likeness(problem)[1], problem.weights, folds, seed)
