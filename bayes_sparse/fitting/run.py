"""Running a method of each family on a labelled, and saying what its user should know."""

from __future__ import annotations

import json
import logging
import time
from typing import Any

import numpy as np

from bayes_sparse.common import registry
from bayes_sparse.common.progress import FitProgress
from bayes_sparse.fitting.choices import PRIORS
from bayes_sparse.fitting.smoothness import prices
from bayes_sparse.fitting.verdict import judge, judge_one_step, warn, warn_one_step, warn_path
from bayes_sparse.inference.approximations import approximate
from bayes_sparse.inference.evidence.state import Approximation, Objective, Outcome
from bayes_sparse.inference.l1.fixed_points import PathOutcome
from bayes_sparse.inference.l1.path import Path
from bayes_sparse.inference.one_step.expansion import check_expansion, evidence_ridge
from bayes_sparse.inference.one_step.finish import EigenOutcome
from bayes_sparse.inputs import kernel_width as widths
from bayes_sparse.inputs.prepare import Prepared
from bayes_sparse.problem.duplicate_columns import duplicate_columns, in_words
from bayes_sparse.problem.labelled import LabelledProblem
from bayes_sparse.trees.write import versions

__all__ = ["along_path", "maximise", "objectives", "one_step", "rate"]

_GREEDY = 0.25  # of the observations: a fit that uses more degrees of freedom has too few left for the noise
_log = logging.getLogger("bayes_sparse")


def objectives(
    labelled: LabelledProblem, hyper: tuple[float, float] | None, smoothness: str | float
) -> list[Objective]:
    """What to maximise, in the order to try."""
    a, b = hyper or (0.0, 0.0)
    flat = not (a or b)
    return [Objective(c, a, b, labelled.searched.log_prior) for c in prices(smoothness, labelled, flat=flat)]


def rate(
    model: Any, prepared: Prepared, method: Any, hyper: tuple[float, float] | None, smoothness: str | float
) -> widths.Rating:
    """What a kernel width is worth: the fit its user would get, at one price for all widths."""
    labelled = model.problem(prepared)
    if method.family == "one_step":
        # One-step evidences of directions taken from the data are not comparable between widths: at the narrowest the
        # expansion point explains everything. The isotropic prior's is, and it picks the better predictors.
        log_evidence = evidence_ridge(labelled.surface.reduced()[0], lambda *_: None).log_evidence
        return widths.Rating(log_evidence, log_evidence)
    state = maximise(labelled, method, objectives(labelled, hyper, smoothness), False)[1].state
    log_evidence, used = state.log_evidence, float(state.gamma.sum())
    return widths.Rating(log_evidence, log_evidence - prices(smoothness, labelled, flat=True)[-1] * used)


def one_step(
    labelled: LabelledProblem, method: Any, model: Any, price: float, progressbar: bool
) -> tuple[EigenOutcome, dict[str, Any]]:
    """Run a one-step method and say what its user should know."""
    started = time.perf_counter()
    name = registry.name_of(method)
    expansion = model.expansion if method.expansion is None else method.expansion
    check_expansion(expansion)
    point = labelled.expansion_point(expansion)
    with FitProgress(f"Fitting ({name})", progressbar) as progress:
        outcome = method(labelled.surface, PRIORS[model.prior], point, price, progress)
    seconds = time.perf_counter() - started
    status = judge_one_step(labelled, outcome)
    warn_one_step(status, labelled, outcome, point)
    attributes = {
        "method": name,
        "prior": model.prior,
        "status": status,
        "n_iterations": outcome.steps,
        "seconds": seconds,
        "expansion": str(point) if isinstance(point, str | int) else "a point of the user's",
        "separable": int(outcome.quadratic.separates),
        "directions": len(outcome.alpha),
        "directions_kept": int(outcome.relevant.sum()),
        "directions_dropped": outcome.eigen.dropped,
        "smoothness": price,
        "degrees_of_freedom": float(outcome.gamma.sum()),
        "versions": versions(),
    }
    return outcome, attributes


def along_path(labelled: LabelledProblem, method: Any, progressbar: bool) -> tuple[PathOutcome, dict[str, Any]]:
    """Run a method on the L1 path and say what its user should know."""
    started = time.perf_counter()
    problem, name = labelled.problem, registry.name_of(method)
    same = duplicate_columns(problem.design, np.flatnonzero(problem.free))
    allowed = problem.free.copy()
    allowed[[column for column, _, _ in same]] = False
    if same:
        _log.info(
            "Columns that are the same up to sign were folded into one, which has the weight of all: %s.",
            in_words(same, labelled.names),
        )
    with FitProgress(f"Fitting ({name})", progressbar) as progress:
        outcome = method(Path(problem, allowed), progress)
    seconds = time.perf_counter() - started
    warn_path(labelled, outcome, name)
    point = outcome.point
    attributes = {
        "method": name,
        "prior": "jeffreys" if outcome.marginal else "laplace",
        "status": outcome.status,
        "n_iterations": outcome.iterations,
        "seconds": seconds,
        "separable": int(problem.separates(point.spot.eta)),
        "violation": float(point.spot.residual),
        "folded": json.dumps([labelled.names[column] for column, _, _ in same]),
        "conditional_on": "the support",
        "curvature": "likelihood and marginal prior" if outcome.curved else "likelihood, lambda held",
        "versions": versions(),
    }
    return outcome, attributes


def maximise(
    labelled: LabelledProblem, method: Any, objectives: list[Objective], progressbar: bool
) -> tuple[Approximation, Outcome, dict[str, Any]]:
    """Run an evidence method, at the first price that leaves enough of the data, and say what its user should know."""
    started = time.perf_counter()
    name, n = registry.name_of(method), labelled.searched.design.n
    with FitProgress(f"Fitting ({name})", progressbar) as progress:
        for objective in objectives:
            approximation = approximate(labelled.searched, objective)
            outcome = method(labelled.searched, approximation, progress)
            used = float(outcome.state.gamma.sum())
            if used <= _GREEDY * n:
                break
    if objective.smoothness > objectives[0].smoothness:
        _log.info(
            "The kernels are narrow for so few rows: the pure method would use up the data, so a degree of freedom was "
            "given a price of %.2f nats; smoothness=0 forces the pure method.",
            objective.smoothness,
        )
    seconds = time.perf_counter() - started
    status = judge(labelled.searched, outcome)
    warn(status, labelled.searched, outcome, name)
    attributes = {
        "method": name,
        "status": status,
        "n_iterations": outcome.iterations,
        "seconds": seconds,
        "hyper": [objective.a, objective.b],
        "smoothness": objective.smoothness,
        "degrees_of_freedom": used,
        "versions": versions(),
    }
    return approximation, outcome, attributes
