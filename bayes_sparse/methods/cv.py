"""L1 regression with lambda by cross-validation: the rival that needs a grid and as many fits as folds times points."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.common.checks import count, positive
from bayes_sparse.common.statuses import Status
from bayes_sparse.common.types import FloatArray, Report
from bayes_sparse.inference.l1.fixed_points import PathOutcome, PathVariables
from bayes_sparse.inference.l1.path import Path
from bayes_sparse.problem.folds import balanced_folds

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
        Parts the rows are split into, balanced in the target.
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
        if problem.design.n < 2 * self.folds:
            raise ValueError(f"{problem.design.n} rows are too few for {self.folds} folds; give fewer `folds`.")
        values, members = np.unique(problem.y, return_counts=True)
        if len(values) == 2 and members.min() < 2:  # one class is left out of some fold's training rows
            raise ValueError("Only one row has one of the two targets: a fold without it cannot learn it.")
        top = path.largest
        if not top > 0:
            return PathOutcome(path.null, Status.NULL, 0, marginal=False)
        knobs = top * np.geomspace(1.0, self.weakest, self.points)
        fold = balanced_folds(problem.y, self.folds, self.fold_seed)
        losses = np.stack([self._fold(path, knobs, fold == k, report) for k in range(self.folds)])
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

    def _fold(self, path: Path, knobs: FloatArray, out: NDArray[np.bool_], report: Report) -> FloatArray:
        """Loss an observation of the rows left out, at every knob."""
        problem = path.problem
        weights = np.ones(len(out)) if problem.weights is None else problem.weights
        inside = Path(replace(problem, weights=np.where(out, 0.0, weights)), path.allowed, path.columns)
        held = np.where(out, weights, 0.0)
        part = 1.0 - held.sum() / weights.sum()  # the penalty grows with the rows
        point, losses = inside.null, np.empty(len(knobs))
        for i, knob in enumerate(knobs):
            point = inside.at(part * knob, point, _ROUGH)
            unweighted = replace(problem, weights=None).terms(point.spot.eta, point.theta)[0]
            losses[i] = -float(held @ np.where(out, unweighted, 0.0)) / held.sum()
            report(i + 1, -losses[i], point.N)
        return losses
