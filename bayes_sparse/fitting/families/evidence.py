"""Methods that maximise the evidence over the precisions of weights: type-II maximum likelihood."""

from __future__ import annotations

import logging
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bayes_sparse.common import registry
from bayes_sparse.common.statuses import Status
from bayes_sparse.common.types import BoolArray, FloatArray, Hyper, Report
from bayes_sparse.common.warnings import tell
from bayes_sparse.fitting.families._family import Fitted, Task, needs_flat, unpriced, without_sampler, wrong_kind
from bayes_sparse.fitting.nuts.start import Start, nuisance_values, places_of, start_at
from bayes_sparse.inference.approximations import approximate
from bayes_sparse.inference.claims import price_of
from bayes_sparse.inference.evidence.groups import offered
from bayes_sparse.inference.evidence.reestimate import reestimate
from bayes_sparse.inference.evidence.state import Approximation, Objective, Outcome, State
from bayes_sparse.inference.method import EvidenceMethod, Method
from bayes_sparse.inputs.kernel_width import Rating
from bayes_sparse.inputs.model import Centred, Model
from bayes_sparse.methods.em import EM
from bayes_sparse.methods.sequential import Sequential
from bayes_sparse.problem.best_tau import best_tau
from bayes_sparse.problem.classes import ClassProblem
from bayes_sparse.problem.labelled import LabelledProblem
from bayes_sparse.trees.weights import WeightsDescription, factor_of

__all__ = ["EvidenceFamily", "prices", "uses_up"]

_GREEDY = 0.25  # of the observations: a fit that uses more degrees of freedom has too few left for the noise
_ABOVE = 1e-3  # of a precision: where it is at the slab's floor, what a start leaves above it
_NEAR = 0.1  # nats that a round must gain to be worth it where NUTS is to start
_TOLD_APART = 1e-3  # the same where widths are compared: beyond it they end within hundredths of a nat of one another
_DETERMINED = 0.05  # of a weight: how well by the data, for its covariance to matter
_log = logging.getLogger("bayes_sparse")


class Maximised(NamedTuple):
    """Where a fit ended, and the search before it.

    Attributes
    ----------
    outcome : Outcome
        Of the search, with the state that the fit ended at: its terms with their precisions re-estimated, or as found.
    approximation : Approximation
        Of that state: its objective is what the state's is.
    selected : State
        Where the search ended, at its price.
    searched : Approximation
        What it searched.
    """

    outcome: Outcome
    approximation: Approximation
    selected: State
    searched: Approximation

    @property
    def objective(self) -> Objective:
        """What the search maximised."""
        return self.searched.objective

    @property
    def reestimated(self) -> bool:
        """Whether the terms were estimated at another price than they were selected at."""
        return self.outcome.state is not self.selected

    @property
    def used(self) -> float:
        """Degrees of freedom of the terms."""
        return _used(self.outcome.state)


class EvidenceFamily:
    """Sees a problem and an approximation of its likelihood; ends at a normal posterior."""

    finds: ClassVar[str] = "the precisions of a {} prior on the weights themselves"
    samples: ClassVar[bool] = False
    any_surface: ClassVar[bool] = False
    folds_duplicates: ClassVar[bool] = False

    def fits(self, method: Method, model: Model) -> bool:
        """A prior on the weights themselves."""
        return model.coordinates == "weights" and model.prior in (method.priors or ())

    def uses_hyper(self, method: Method) -> bool:
        """What adds and deletes columns needs the flat one."""
        return not _own(method).needs_flat_hyper

    def uses_default(self, method: Method) -> bool:
        """Machines glued together from binary ones have the flat one."""
        return self.uses_hyper(method) and _own(method).link == "softmax"

    def check_hyper(self, method: Method, model: Model, hyper: Hyper) -> None:
        """Refuse what drives every precision to infinity, or what the method cannot use."""
        a, b = hyper
        if a > 0 and b == 0:
            raise ValueError(
                f"hyper={hyper} drives every precision to infinity; give b > 0 too, or hyper=None for a flat one."
            )
        if not (a and b) and _own(method).own_hyper is not None:
            raise ValueError(
                f"The method {registry.name_of(method)!r} needs a proper hyper-prior: give a > 0 and b > 0, or leave "
                f"out hyper={hyper} for {_own(method).own_hyper}."
            )
        if b > 0 and _own(method).needs_flat_hyper:
            raise ValueError(needs_flat(method, hyper, "use method='mackay' or 'em'"))

    def own_settings(self, given: dict[str, Any]) -> dict[str, Any]:
        """All but those of a sampler."""
        return without_sampler(given)

    def run(self, task: Task, report: Report) -> Maximised:
        """Maximise, at the first price that leaves enough of the data."""
        method, problem = _own(task.method), task.labelled.searched
        objectives = _objectives(task)
        for objective in objectives:
            approximation = approximate(problem, objective, method.approximation)
            outcome = method(problem, approximation, report)
            if _used(outcome.state) <= _GREEDY * problem.count:
                break
        selected, fitted, state = outcome.state, approximation, outcome.state
        if method.reestimate:
            fitted, state = reestimate(problem, approximation, selected)
        end = Maximised(replace(outcome, state=state), fitted, selected, approximation)
        if end.objective.smoothness > objectives[0].smoothness:
            _log.info(
                "The kernels are narrow for so few rows: the pure method would use up the data, so a degree of freedom "
                "was given a price of %.2f nats; smoothness=0 forces the pure method.",
                end.objective.smoothness,
            )
        return end

    def judge(self, task: Task, end: Maximised) -> Status:
        """By the search, the noise, what is left, and the classes."""
        problem, outcome, state = task.labelled.searched, end.outcome, end.outcome.state
        if not outcome.converged:
            return Status.MAX_ITERATIONS
        at_floor = bool(np.any(state.theta <= problem.theta_bounds[:, 0] + 1e-6))
        if at_floor or (problem.normal and state.theta.size and state.gamma.sum() > 0.9 * problem.count):
            return Status.NOISE_COLLAPSED
        if not (state.index < problem.design.M).any():
            return Status.NULL
        if task.labelled.tau0 or state.eta is None:  # a horseshoe keeps all columns, and enough of them always separate
            return Status.CONVERGED
        return Status.SEPARABLE if problem.separates(state.eta) else Status.CONVERGED

    def warn(self, task: Task, end: Maximised, status: Status) -> None:
        """What the word means, or that the fit uses up the data."""
        used, n = end.used, task.labelled.searched.count
        who, aside = f"The method {registry.name_of(task.method)!r}", f" with {used:.0f} of {n:g} degrees of freedom"
        if status is Status.MAX_ITERATIONS:
            aside = f" (objective {end.outcome.state.objective:.4g})"
        if status is not Status.CONVERGED:
            tell(status.sentence(who=who, aside=aside))
        elif used > 0.5 * n:
            tell(uses_up(used, n, "raise `smoothness` or offer fewer basis functions"))

    def attributes(self, task: Task, end: Maximised) -> dict[str, Any]:
        """Hyper-prior, the price that terms were selected at, and whether they were then re-estimated at none."""
        return {
            "n_iterations": end.outcome.iterations,
            "hyper": list(task.hyper or (0.0, 0.0)),
            **({} if task.labelled.mixing is None else {"mixing": list(task.labelled.mixing)}),
            "hyper_unit": task.unit,
            **({} if task.slab is None else {"slab": task.slab}),
            **_global_scale(task, end),
            "smoothness": end.objective.smoothness,
            "reestimated": int(end.reestimated),
            "degrees_of_freedom": end.used,
            **_variational(task, end),
        }

    def fitted(self, task: Task, end: Maximised) -> Fitted:
        """At the mean of the weights kept; the residuals miss the bias's degree of freedom too."""
        state, problem = end.outcome.state, task.labelled.problem
        eta = problem.row_predictor(state.mean, state.index) if state.eta is None else state.eta
        return Fitted(eta, state.theta, float(state.gamma.sum()))

    def describe(self, task: Task, end: Maximised) -> WeightsDescription:
        """The weights of the columns kept."""
        return WeightsDescription(task.labelled, end.approximation, end.outcome, end.selected, end.searched)

    def check_joint(self, task: Task) -> None:
        """One model a class has no joint posterior."""
        if _own(task.method).link != "softmax":
            raise ValueError(
                f"method={registry.name_of(task.method)!r} fits one model a class, which have no joint posterior to be "
                "sampled; start from another method, or leave out `condition`."
            )

    def rating(self, task: Task) -> Rating:
        """The terms its user would get, as selected, at one price for all widths.

        No closer than tells widths apart; one with factors for the precisions, which prunes nothing and takes its time,
        even less so.
        """
        task = _quicker(task)
        rough = _own(task.method).own_hyper is not None
        end = self.run(_nearly(task, _NEAR if rough else _TOLD_APART), lambda *_: None)
        state = end.selected
        if end.outcome.factors is not None:  # widths have as many kernels: their bounds can be compared
            return Rating(state.log_evidence, end.outcome.factors.bound)
        log_evidence, used = state.log_evidence, _used(state)
        smoothness = _own(task.method).smoothness
        return Rating(log_evidence, log_evidence - prices(smoothness, task.labelled, flat=True)[-1] * used)

    def start(self, task: Task, end: Maximised, begin: dict[str, FloatArray], centred: BoolArray) -> Start:
        """Weights ``w``, or ``z = w sqrt(alpha)`` where the declaration is not centred: those are left uncorrelated.

        What z is correlated with changes with its scale, which the data do not tell.
        """
        labelled, state, M = task.labelled, end.outcome.state, task.labelled.M
        index, determined = state.index, (state.index >= M) | (state.gamma > _DETERMINED)
        unit = np.ones(len(index))
        alpha = np.full(M, np.inf)
        # The declaration's alpha is what a precision has above the slab's.
        alpha[index[index < M]] = np.maximum(state.alpha - task.floor, _ABOVE * state.alpha)[index < M]
        values = nuisance_values(labelled, state.theta, begin)
        if "z" in begin and len(labelled.sparse) == 1 and labelled.sparse[0].name not in begin:
            directly = np.broadcast_to(centred, (M,))[index[index < M]]
            unit[index < M] = np.where(directly, 1.0, np.sqrt(state.alpha[index < M]))
            determined[index < M] &= directly
        points = labelled.hyper_points
        for name, (_, precision) in ({"alpha": ((), alpha)} if points is None else points(alpha + task.floor)).items():
            if name in begin and begin[name].shape == precision.shape:
                values[name] = np.where(np.isfinite(precision), precision, begin[name])
        if labelled.tau0 and {"tau", "lambda"} <= begin.keys():
            tau = best_tau(alpha[np.isfinite(alpha)], labelled.tau0)
            values["tau"], values["lambda"] = np.asarray(tau), 1 / (tau * np.sqrt(alpha))
        if "mean_predictor" in begin and "bias" not in begin:  # of a declaration on kernels
            values["mean_predictor"] = _mean_predictor(labelled.searched, state)
        places = places_of(labelled, index, begin)
        factor = unit[:, None] * factor_of(state)
        return start_at(begin, values, places, state.mean * unit, factor, determined)

    def before_nuts(self, task: Task) -> Task:
        """Without a price, which the declaration has not either, and no closer than a start need be.

        A method with factors for the precisions has none for a slab, and starts without.
        """
        task = unpriced(task)
        if _own(task.method).own_hyper is not None:
            task = replace(task, slab=None)
        return _nearly(task)

    def informed(self, task: Task, end: Maximised) -> Centred:
        """Those about which the data say more than the hyper-prior does, by its mean precision."""
        if task.hyper is None:
            return False
        state, informed = end.outcome.state, np.zeros(task.labelled.M, dtype=bool)
        inside = state.index < len(informed)
        precise = 1 / state.variance - state.alpha > task.hyper[0] / _rate(task)
        informed[state.index[inside]] = precise[inside]
        return informed


def _mean_predictor(problem: Any, state: State) -> FloatArray:
    """Over the rows, without the offset."""
    eta = problem.predictor(state.mean[None], state.index)[0] - getattr(problem, "offset", 0.0)
    return np.asarray(np.average(eta, axis=0, weights=problem.weights))


def prices(smoothness: str | float, labelled: LabelledProblem, *, flat: bool) -> list[float]:
    """The price of a degree of freedom in nats: what to try first, and what to fall back on.

    Automatic, for columns that each mean something: `price_of` their number, columns that share a precision counted as
    one. For kernels on the rows there is no true
    set to be found, and the pure method predicts best as long as it leaves most of the data to estimate the noise: 0
    first, the same price if not. Who gives a proper hyper-prior has chosen another guard, and pays nothing. Several
    classes pay nothing either: there are many more weights than the classes need, and the price would leave too few of
    them. Several predictors of another kind pay as one does, by all their columns.
    """
    if isinstance(smoothness, str) and smoothness == "auto":
        if isinstance(labelled.search, ClassProblem) or not flat:
            return [0.0]
        price = price_of(labelled.surface.d if labelled.search is None else offered(labelled.search))
        return [0.0, price] if labelled.interchangeable else [price]
    if not isinstance(smoothness, Real) or not (np.isfinite(smoothness) and smoothness >= 0):
        raise ValueError(f"`smoothness` is 'auto' or a number >= 0 (nats per degree of freedom), got {smoothness!r}.")
    return [float(smoothness)]


def uses_up(used: float, n: float, cure: str) -> str:
    """The sentence for a fit that leaves too little of the data to judge itself by."""
    return (
        f"The fit uses up the data: {used:.0f} degrees of freedom for {n:g} observations; its intervals are too "
        f"narrow; {cure}."
    )


def _objectives(task: Task) -> list[Objective]:
    """What to maximise, in the order to try."""
    a, b, inverse = task.labelled.mixing or ((task.hyper or (0.0, 0.0))[0], _rate(task), 0.0)
    method, log_prior = _own(task.method), task.labelled.searched.log_prior
    if task.labelled.mixing and method.needs_flat_hyper:
        raise ValueError(needs_flat(method, "declared", "use method='mackay' or 'em'"))
    return [
        Objective(c, a, b, log_prior, task.floor, task.labelled.tau0, inverse)
        for c in prices(method.smoothness, task.labelled, flat=not (a or b))
    ]


def _variational(task: Task, end: Maximised) -> dict[str, Any]:
    """What the numbers of a variational posterior are, and the prior of its noise."""
    factors = end.outcome.factors
    if factors is None:
        return {}
    known = {"variational": "bound is a lower bound of log p(y), alpha the means of the Gamma factors of precisions"}
    return known if np.isnan(factors.noise_shape) else {**known, "noise_hyper": list(vars(task.method)["noise_hyper"])}


def _global_scale(task: Task, end: Maximised) -> dict[str, float]:
    """The horseshoe's tau, and the scale of its prior."""
    state, tau0 = end.outcome.state, task.labelled.tau0
    return {"tau": best_tau(state.alpha[state.free] - task.floor, tau0), "tau0": tau0} if tau0 else {}


def _rate(task: Task) -> float:
    """Rate of the Gamma prior on precisions, which is stated for targets divided by their spread."""
    return 0.0 if task.hyper is None else task.hyper[1] * task.unit**2


def _nearly(task: Task, least: float = _NEAR) -> Task:
    """The same with rounds that gain less left out."""
    tolerance = vars(task.method).get("tolerance")
    if tolerance is None:
        return task
    return replace(task, method=replace(task.method, tolerance=max(tolerance, least)))


def _quicker(task: Task) -> Task:
    """The sequential search in the place of EM, which ends no higher and takes a hundred times as long."""
    own = task.method
    if not isinstance(own, EM) or task.hyper is not None:
        return task
    settings = {"smoothness": own.smoothness, "reestimate": own.reestimate, "approximation": own.approximation}
    return replace(task, method=Sequential(**settings))


def _used(state: State) -> float:
    """Degrees of freedom of the columns whose precisions are estimated."""
    return float(state.gamma[state.free].sum())


def _own(method: Method) -> EvidenceMethod:
    if isinstance(method, EvidenceMethod):
        return method
    raise wrong_kind(method, EvidenceMethod)
