"""What a method found for a labelled: its tree, and the exact posterior at the hyper-parameters it ended at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from bayes_sparse.fitting.run import along_path, maximise, objectives, one_step
from bayes_sparse.fitting.smoothness import prices
from bayes_sparse.inference.evidence.state import Approximation, Outcome
from bayes_sparse.inference.l1.fixed_points import PathOutcome
from bayes_sparse.inference.one_step.finish import EigenOutcome
from bayes_sparse.problem.labelled import LabelledProblem
from bayes_sparse.trees.conditional import Conditional, of_directions, of_support, of_weights
from bayes_sparse.trees.l1_path import path_tree
from bayes_sparse.trees.one_step import eigen_tree
from bayes_sparse.trees.write import evidence_tree

__all__ = ["Found", "find"]


@dataclass(frozen=True, eq=False)
class Found:
    """The end of a method.

    Attributes
    ----------
    labelled : LabelledProblem
        What was fitted.
    outcome : Outcome, EigenOutcome or PathOutcome
        Where the method ended, by its family.
    attributes : dict
        What is told of the fit.
    approximation : Approximation, optional
        Of an evidence method.
    """

    labelled: LabelledProblem
    outcome: Outcome | EigenOutcome | PathOutcome
    attributes: dict[str, Any]
    approximation: Approximation | None = None

    def tree(self, draws: int, chains: int, rng: np.random.Generator) -> xr.DataTree:
        """Moments, and draws if any are asked for."""
        asked: dict[str, Any] = {"draws": draws, "chains": chains, "rng": rng}
        if isinstance(self.outcome, PathOutcome):
            return path_tree(self.labelled, self.outcome, self.attributes, **asked)
        if isinstance(self.outcome, EigenOutcome):
            return eigen_tree(self.labelled, self.outcome, self.attributes, **asked)
        assert self.approximation is not None
        return evidence_tree(self.labelled, self.approximation, self.outcome, self.attributes, **asked)

    def conditional(self) -> Conditional:
        """The exact posterior over what was kept."""
        if isinstance(self.outcome, PathOutcome):
            return of_support(self.labelled, self.outcome)
        if isinstance(self.outcome, EigenOutcome):
            return of_directions(self.labelled, self.outcome)
        return of_weights(self.labelled, self.outcome.state)


def find(
    labelled: LabelledProblem,
    model: Any,
    method: Any,
    hyper: tuple[float, float] | None,
    smoothness: str | float,
    progressbar: bool,
) -> Found:
    """Run a method on a labelled, by its family."""
    if method.family == "path":
        if smoothness not in ("auto", 0):
            raise ValueError(
                "A Laplace prior of common scale has no price a degree of freedom: leave out `smoothness`."
            )
        return Found(labelled, *along_path(labelled, method, progressbar))
    if method.family == "one_step":
        price = 0.0 if smoothness == "auto" else prices(smoothness, labelled, flat=True)[0]
        return Found(labelled, *one_step(labelled, method, model, price, progressbar))
    approximation, outcome, attributes = maximise(
        labelled, method, objectives(labelled, hyper, smoothness), progressbar
    )
    return Found(labelled, outcome, attributes, approximation)
