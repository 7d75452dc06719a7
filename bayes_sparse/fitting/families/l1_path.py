"""Methods that choose a point of the L1 path: Laplace priors of one common scale."""

from __future__ import annotations

import json
import logging
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bayes_sparse.common import registry
from bayes_sparse.common.statuses import Status
from bayes_sparse.common.types import BoolArray, FloatArray, Hyper, Report
from bayes_sparse.common.warnings import tell
from bayes_sparse.fitting.families._family import Fitted, Task, without_sampler, wrong_kind
from bayes_sparse.fitting.nuts.start import Start, nuisance_values, places_of, start_at
from bayes_sparse.inference.l1.fixed_points import PathOutcome
from bayes_sparse.inference.l1.path import Path
from bayes_sparse.inference.method import Method, PathMethod
from bayes_sparse.inputs.kernel_width import Rating
from bayes_sparse.inputs.model import Centred, Model
from bayes_sparse.problem.duplicate_columns import duplicate_columns, in_words
from bayes_sparse.trees.support import SupportDescription

__all__ = ["L1PathFamily"]

_VIOLATED, _UNSOLVED = 1e-3, 0.2  # of lambda: an approximate solution; none at all
_log = logging.getLogger("bayes_sparse")


class Chosen(NamedTuple):
    """A point of the path, and the names of the columns that were folded into others."""

    outcome: PathOutcome
    folded: list[str]


class L1PathFamily:
    """Sees the L1 path of a problem with one linear predictor."""

    finds: ClassVar[str] = "the common scale of Laplace priors on the weights"
    samples: ClassVar[bool] = False
    any_surface: ClassVar[bool] = False
    folds_duplicates: ClassVar[bool] = True

    def fits(self, method: Method, model: Model) -> bool:
        """A prior on the weights themselves."""
        return model.coordinates == "weights" and model.prior in (method.priors or ())

    def uses_hyper(self, method: Method) -> bool:
        """There are no precisions."""
        return False

    def uses_default(self, method: Method) -> bool:
        """There are no precisions."""
        return False

    def check_hyper(self, method: Method, model: Model, hyper: Hyper) -> None:
        """Refuse any."""
        raise ValueError(
            "`hyper` is the Gamma prior of precisions, which this model has none of; leave it out "
            "(bounds=(lo, hi) confines lambda)."
        )

    def own_settings(self, given: dict[str, Any]) -> dict[str, Any]:
        """All but those of a sampler; a price a degree of freedom is refused unless it is none."""
        if given.get("smoothness", 0) not in ("auto", 0):
            raise ValueError(
                "A Laplace prior of common scale has no price a degree of freedom: leave out `smoothness`."
            )
        return {name: value for name, value in without_sampler(given).items() if name != "smoothness"}

    def run(self, task: Task, report: Report) -> Chosen:
        """Fold columns that are the same, and choose a point of the path of the others."""
        problem = task.labelled.problem
        same = duplicate_columns(problem.design, np.flatnonzero(problem.free))
        allowed = problem.free.copy()
        allowed[[column for column, _, _ in same]] = False
        if same:
            _log.info(
                "Columns that are the same up to sign were folded into one, which has the weight of all: %s.",
                in_words(same, task.labelled.names),
            )
        outcome = _own(task.method)(Path(problem, allowed), report)
        return Chosen(outcome, [task.labelled.names[column] for column, _, _ in same])

    def judge(self, task: Task, end: Chosen) -> Status:
        """The method says it."""
        return end.outcome.status

    def warn(self, task: Task, end: Chosen, status: Status) -> None:
        """How it ended, where that is not the ordinary way."""
        outcome, point = end.outcome, end.outcome.point
        if status is Status.JUMP:
            _log.info(status.sentence(aside=f" (lambda = {point.lam:.4g}, N = {point.N})"))
        if status is Status.CONVERGED and outcome.marginal and point.spot.residual > _VIOLATED:
            _log.info(
                "This is no solution of the exact criterion: at lambda = N/R another column would enter; "
                "method='reweighted' finds one."
            )
        message = _message(task, outcome, status)
        if message is not None:
            tell(message)

    def attributes(self, task: Task, end: Chosen) -> dict[str, Any]:
        """Prior, curvature, and what the posterior is conditional on."""
        outcome, point = end.outcome, end.outcome.point
        return {
            "prior": "jeffreys" if outcome.marginal else "laplace",
            "n_iterations": outcome.iterations,
            "separable": int(task.labelled.problem.separates(point.spot.eta)),
            "violation": float(point.spot.residual),
            "folded": json.dumps(end.folded),
            "conditional_on": "the support",
            "curvature": "likelihood and marginal prior" if outcome.curved else "likelihood, lambda held",
        }

    def fitted(self, task: Task, end: Chosen) -> Fitted:
        """At the point, where every weight that is not zero is one degree of freedom."""
        point = end.outcome.point
        eta = task.labelled.problem.row_predictor(point.w, point.index)
        return Fitted(eta, point.theta, float(len(point.index)))

    def describe(self, task: Task, end: Chosen) -> SupportDescription:
        """The weights on the support."""
        return SupportDescription(task.labelled, end.outcome)

    def check_joint(self, task: Task) -> None:
        """There always is a posterior on the support."""

    def rating(self, task: Task) -> Rating:
        """Refused."""
        raise ValueError(
            "rbf(width='evidence') compares evidences, and a method on the L1 path has none: find the width with "
            "bs.fit('ard_gaussian', ...), then give the number."
        )

    def start(self, task: Task, end: Chosen, begin: dict[str, FloatArray], centred: BoolArray) -> Start:
        """Weights on the support; lambda where it was found."""
        point, k = end.outcome.point, len(end.outcome.point.index)
        values = nuisance_values(task.labelled, point.theta, begin)
        if "log_lambda" in begin and point.N:
            values["log_lambda"] = np.array(np.log(point.lam))
        factor = self.describe(task, end).factor[:k]
        places = places_of(task.labelled, point.index, begin)
        return start_at(begin, values, places, point.w, factor, np.ones(k, dtype=bool))

    def before_nuts(self, task: Task) -> Task:
        """As it is."""
        return task

    def informed(self, task: Task, end: Chosen) -> Centred:
        """All: one scale for all weights is known well enough."""
        return True


def _message(task: Task, outcome: PathOutcome, status: Status) -> str | None:
    """The first thing that its user should know."""
    point, problem = outcome.point, task.labelled.problem
    if status is Status.NULL and point.path.own_noise and any(visited.gap < 0 for visited in outcome.visited):
        return (
            "Lambda has nowhere to settle: once it shrinks, it shrinks until the noise collapses, so the answer is the "
            "model without any term; choose lambda by method='cv', give `lam`, or fit 'ard_gaussian'."
        )
    if status is Status.NULL:
        return status.sentence()
    if status is Status.MAX_ITERATIONS:
        who = f"The method {registry.name_of(task.method)!r}"
        return status.sentence(who=who, cure="method='reweighted' always ends, or raise max_iterations")
    exact = status is Status.FIXED_POINT or not outcome.marginal
    if exact and point.spot.residual > _UNSOLVED:
        return (
            f"The L1 problem was not solved: the conditions of a minimum are violated by {point.spot.residual:.1g} of "
            "lambda; offer fewer columns, or give a larger `lam`."
        )
    if problem.separates(point.spot.eta):
        return Status.SEPARABLE.sentence()
    if (problem.terms(point.spot.eta, point.theta)[2] > 0).any():
        return (
            "The likelihood is not log-concave: this is a solution, but the path may have other branches and other "
            "solutions that were not looked for."
        )
    if point.N + len(point.theta) >= problem.count:
        return (
            f"The fit uses up the data: {point.N} weights for {problem.count:g} observations; its intervals mean "
            "nothing; give a larger `lam`."
        )
    return None


def _own(method: Method) -> PathMethod:
    if isinstance(method, PathMethod):
        return method
    raise wrong_kind(method, PathMethod)
