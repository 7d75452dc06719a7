"""Methods that find the prior of every direction in one pass, on a quadratic that stands for the likelihood."""

from __future__ import annotations

import logging
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bayes_sparse.common import registry
from bayes_sparse.common.statuses import Status
from bayes_sparse.common.types import BoolArray, FloatArray, Hyper, Report
from bayes_sparse.common.warnings import tell
from bayes_sparse.fitting.families._family import Fitted, Task, needs_flat, unpriced, without_sampler, wrong_kind
from bayes_sparse.fitting.families.evidence import prices, uses_up
from bayes_sparse.fitting.nuts.start import Place, Start, nuisance_values, places_of, start_at
from bayes_sparse.inference import priors
from bayes_sparse.inference.method import Method, OneStepMethod
from bayes_sparse.inference.one_step.expansion import check_expansion, evidence_ridge
from bayes_sparse.inference.one_step.finish import EigenOutcome
from bayes_sparse.inputs.kernel_width import Rating
from bayes_sparse.inputs.model import Centred, Model
from bayes_sparse.methods.full_matrix import FullMatrix
from bayes_sparse.problem.surfaces import Linear, Softmax, Surface
from bayes_sparse.trees.directions import DirectionsDescription

__all__ = ["OneStepFamily"]

_ASTRAY = 10.0  # nats between the evidence at the expansion point and at the mode: the likelihood is not quadratic
_NEAR_FLOOR = float(np.log(100.0))  # above the least noise a search may reach
_HALF = 0.5  # of the variance of a direction taken away by the data
_CURE = "offer fewer basis functions"
_ELSEWHERE = "try another `expansion`"
_OTHER_METHOD = "sizes of weights, counts or columns are too different for it: change them, or take method='mackay'"
_log = logging.getLogger("bayes_sparse")


class Weighed(NamedTuple):
    """Directions, weighed; where the quadratic was taken, and at what price a degree of freedom."""

    outcome: EigenOutcome
    point: Any
    price: float

    @property
    def used(self) -> float:
        """Degrees of freedom."""
        return float(self.outcome.gamma.sum())


class OneStepFamily:
    """Sees the likelihood as a surface over weights, and a prior of one coordinate."""

    finds: ClassVar[str] = "the precisions of a {} prior on eigen-coordinates"
    samples: ClassVar[bool] = False
    any_surface: ClassVar[bool] = True
    folds_duplicates: ClassVar[bool] = False

    def fits(self, method: Method, model: Model) -> bool:
        """A prior of one coordinate, whether the model declares it on weights or on directions."""
        known = registry.options(priors.__name__) if method.priors is None else method.priors
        return model.prior in known

    def uses_hyper(self, method: Method) -> bool:
        """Each direction finds its own."""
        return False

    def uses_default(self, method: Method) -> bool:
        """Each direction finds its own."""
        return False

    def check_hyper(self, method: Method, model: Model, hyper: Hyper) -> None:
        """Refuse what drives every precision to infinity, and any other proper one."""
        if hyper[0] > 0 and hyper[1] == 0:
            raise ValueError(
                f"hyper={hyper} drives every precision to infinity; give b > 0 too, or hyper=None for a flat one."
            )
        if hyper[1] > 0:
            raise ValueError(needs_flat(method, hyper, "leave out `hyper`"))

    def own_settings(self, given: dict[str, Any]) -> dict[str, Any]:
        """All but those of a sampler."""
        return without_sampler(given)

    def run(self, task: Task, report: Report) -> Weighed:
        """Expand, rotate, weigh."""
        method, labelled = _own(task.method), task.labelled
        if labelled.mixing:
            raise ValueError(needs_flat(method, "declared", "use method='mackay' or 'em'"))
        asked = "ridge" if method.expansion is None and method.ridge is not None else method.expansion
        expansion = task.model.expansion if asked is None else asked
        if expansion is not None:
            check_expansion(expansion)
        point = labelled.expansion_point(expansion)
        price = 0.0 if method.smoothness == "auto" else prices(method.smoothness, labelled, flat=True)[0]
        outcome = method(labelled.surface, _prior(task), point, price, report)
        return Weighed(outcome, point, price)

    def judge(self, task: Task, end: Weighed) -> Status:
        """By the searches, the noise, what is left, and the classes."""
        labelled, surface, outcome = task.labelled, task.labelled.surface, end.outcome
        if not (outcome.peak.converged and outcome.quadratic.converged and _ridge_found(outcome)):
            return Status.MAX_ITERATIONS
        # The noise comes from a ridge, which keeps it from the floor itself.
        near_floor = bool(np.any(outcome.quadratic.theta <= surface.theta_bounds[:, 0] + _NEAR_FLOOR))
        if near_floor or (surface.theta.size and end.used > 0.9 * surface.count):
            return Status.NOISE_COLLAPSED
        fixed = labelled.order[surface.d :]
        if surface.d and not outcome.kept.any() and not (fixed < labelled.M).any():
            return Status.NULL
        return Status.SEPARABLE if outcome.peak.look.separates else Status.CONVERGED

    def warn(self, task: Task, end: Weighed, status: Status) -> None:
        """What the word means, and whether the quadratic stands for the likelihood."""
        surface, outcome, used = task.labelled.surface, end.outcome, end.used
        if outcome.eigen.dropped:
            _log.info(
                "The likelihood is not log-concave: %d of %d directions along which it curves upwards were dropped.",
                outcome.eigen.dropped,
                surface.d,
            )
        if outcome.quadratic.separates:
            _log.info(
                "The basis functions separate the classes: without a prior there is no most likely point, and what is "
                "kept depends on the one chosen by `expansion`."
            )
        cures = {
            Status.MAX_ITERATIONS: _ELSEWHERE if _ridge_found(outcome) else _OTHER_METHOD,
            Status.NOISE_COLLAPSED: _CURE,
            Status.NULL: _cure_of_nothing(surface, end),
        }
        aside = f" with {used:.0f} of {surface.count:g} degrees of freedom" if status is Status.NOISE_COLLAPSED else ""
        if status is not Status.CONVERGED:
            tell(status.sentence(who="The search for a mode", aside=aside, cure=cures.get(status)))
        elif used > 0.5 * surface.count:
            tell(uses_up(used, surface.count, _CURE))
        elif abs(outcome.log_evidence - outcome.log_evidence_mode) > _ASTRAY:
            tell(_astray(task, end))

    def attributes(self, task: Task, end: Weighed) -> dict[str, Any]:
        """Prior, expansion point, and how many directions there are and were kept."""
        outcome = end.outcome
        return {
            "prior": _prior_of(task),
            **({} if task.slab is None else {"slab": task.slab}),
            "n_iterations": outcome.steps,
            "expansion": str(end.point) if isinstance(end.point, str | int) else "a point of the user's",
            "separable": int(outcome.quadratic.separates),
            "directions": len(outcome.alpha),
            "directions_kept": int(outcome.relevant.sum()),
            "directions_dropped": outcome.eigen.dropped,
            "smoothness": end.price,
            "degrees_of_freedom": end.used,
        }

    def fitted(self, task: Task, end: Weighed) -> Fitted:
        """At the mean of the directions kept."""
        labelled, surface, outcome = task.labelled, task.labelled.surface, end.outcome
        k, mean = len(outcome.loadings), outcome.posterior.mean
        v = np.append(mean[:k] @ outcome.loadings, mean[k:])
        return Fitted(labelled.problem.row_predictor(v, labelled.order), outcome.quadratic.theta, end.used + surface.q)

    def describe(self, task: Task, end: Weighed) -> DirectionsDescription:
        """The directions kept."""
        return DirectionsDescription(task.labelled, end.outcome)

    def check_joint(self, task: Task) -> None:
        """There always is a posterior over the directions kept."""

    def rating(self, task: Task) -> Rating:
        """The evidence of one isotropic prior.

        One-step evidences of directions taken from the data are not comparable between widths: at the narrowest the
        expansion point explains everything. The isotropic prior's is, and it picks the better predictors.
        """
        log_evidence = evidence_ridge(task.labelled.surface.reduced()[0], lambda *_: None).log_evidence
        return Rating(log_evidence, log_evidence)

    def start(self, task: Task, end: Weighed, begin: dict[str, FloatArray], centred: BoolArray) -> Start:
        """Directions ``u``, or z of unit scale where the declaration is not centred."""
        labelled, outcome = task.labelled, end.outcome
        kept, alpha = outcome.kept, outcome.alpha[outcome.kept]
        k, q = len(alpha), labelled.surface.q
        unit = np.ones(k + q)
        if "z" in begin:
            directly = np.zeros(kept.shape, dtype=bool)
            directly[: centred.size if centred.ndim else None] = centred
            unit[:k] = np.where(directly[kept], 1.0, outcome.prior.inverse_scale(alpha))
        values = nuisance_values(labelled, outcome.quadratic.theta, begin)
        number = np.flatnonzero(kept)
        if "alpha" in begin:
            inside = number < len(begin["alpha"])
            values["alpha"] = begin["alpha"].copy()
            values["alpha"][number[inside]] = alpha[inside]
        name = "z" if "z" in begin else "u"
        there = begin[name].size if name in begin else 0  # a declaration may have the first directions only
        places: list[Place | None] = [(name, int(i)) if i < there else None for i in number]
        places += places_of(labelled, np.arange(labelled.M, labelled.M + q), begin)
        factor = unit[:, None] * outcome.posterior.factor
        everything = np.ones(k + q, dtype=bool)
        return start_at(begin, values, places, outcome.posterior.mean * unit, factor, everything)

    def before_nuts(self, task: Task) -> Task:
        """Directions, for a declaration of directions."""
        if task.model.coordinates != "eigen":
            raise ValueError(
                "A one-step method finds directions, and this declaration is of weights: start NUTS from 'mackay', "
                "'sequential' or 'em'."
            )
        return unpriced(task)

    def informed(self, task: Task, end: Weighed) -> Centred:
        """Directions of which the data take away half of the variance: the hyper-prior is in units of what they say."""
        return end.outcome.gamma > _HALF


def _ridge_found(outcome: EigenOutcome) -> bool:
    """Whether the isotropic ridge was found, where it was needed."""
    ridge = outcome.quadratic.evidence
    return ridge is None or ridge.converged


def _prior_of(task: Task) -> str:
    """Name of the prior on each direction."""
    return _own(task.method).prior or task.model.prior


def _prior(task: Task) -> priors.Prior:
    """The prior on each direction, within the slab."""
    name = _prior_of(task)
    if task.slab is None:
        return priors.named(name)
    if name != "gaussian" or isinstance(task.method, FullMatrix):
        who = f"a {name} prior" if name != "gaussian" else "method='full_matrix'"
        raise ValueError(
            f"`slab` bounds the normal prior of each direction by itself, which {who} has not: leave it out."
        )
    return priors.Gaussian(task.floor)


def _evident(end: Weighed) -> bool:
    """Whether the quadratic was taken at the ridge of greatest evidence."""
    return isinstance(end.point, str) and end.point == "evidence"


def _cure_of_nothing(surface: Surface, end: Weighed) -> str:
    """What may help where no direction is kept: each is a mix of all columns, and a few of them may still matter."""
    if end.outcome.quadratic.separates and not _evident(end):
        return "it was sought where the classes are separated and the likelihood is flat: try expansion='evidence'"
    if isinstance(surface, Linear | Softmax):
        model = "jeffreys_laplace" if isinstance(surface, Linear) else "ard_gaussian"
        return f"bs.fit('{model}', ...) looks at single columns and may still find some"
    return _ELSEWHERE


def _astray(task: Task, end: Weighed) -> str:
    """The sentence for a quadratic that misjudges the evidence."""
    gap = end.outcome.log_evidence - end.outcome.log_evidence_mode
    if task.labelled.linear is not None and task.labelled.linear.normal:
        return (
            f"The small gradient dropped at the expansion point is worth {gap:.0f} nats of log_evidence; read "
            "log_evidence_mode, which is exact here, or use expansion='zero', where nothing is dropped."
        )
    cure = "check with method='nuts'" if _evident(end) else "expansion='evidence' is safer"
    return (
        f"The quadratic at the expansion point misjudges the evidence by {gap:.0f} nats: the likelihood is far from "
        f"quadratic between there and the answer; {cure}."
    )


def _own(method: Method) -> OneStepMethod:
    if isinstance(method, OneStepMethod):
        return method
    raise wrong_kind(method, OneStepMethod)
