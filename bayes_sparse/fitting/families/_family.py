"""What a family of methods must know, and the one way in which a method of any family is run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol, cast

import numpy as np
import xarray as xr

from bayes_sparse.common import registry
from bayes_sparse.common.progress import FitProgress
from bayes_sparse.common.statuses import Status
from bayes_sparse.common.threads import few_threads
from bayes_sparse.common.types import BoolArray, FloatArray, Hyper, Report
from bayes_sparse.common.versions import versions
from bayes_sparse.common.warnings import LikelihoodWarning, UndecidedWarning, tell
from bayes_sparse.fitting.nuts.start import Start
from bayes_sparse.inference.method import Method
from bayes_sparse.inference.sampling import Density
from bayes_sparse.inputs.kernel_width import Rating, WidthSearch
from bayes_sparse.inputs.model import Centred, Model, slab_precision
from bayes_sparse.problem.labelled import LabelledProblem
from bayes_sparse.trees.alternatives import in_a_sentence
from bayes_sparse.trees.at_hand import at_hand
from bayes_sparse.trees.description import Description
from bayes_sparse.trees.read import StoredFit
from bayes_sparse.trees.support import SupportDescription
from bayes_sparse.trees.write import fit_tree, with_width

__all__ = [
    "Family",
    "Fitted",
    "Found",
    "Rules",
    "Task",
    "family_of",
    "find",
    "needs_flat",
    "rules_of",
    "unpriced",
    "without_sampler",
    "wrong_kind",
]

_MOMENTS = ("coordinate_mean", "covariance_factor")


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be fitted, by what.

    Attributes
    ----------
    labelled : LabelledProblem
        The problem under the user's names.
    model, method : Model, Method
        As chosen.
    hyper : (float, float), optional
        The hyper-prior in force; None for the flat one.
    slab : float, optional
        Width of the slab in force, in units of standardised columns and of the targets' spread; None for none.
    """

    labelled: LabelledProblem
    model: Model
    method: Method
    hyper: Hyper | None
    slab: float | None = None

    @property
    def unit(self) -> float:
        """Spread of the targets, which priors are stated in."""
        return 1.0 if self.labelled.search is None else self.labelled.search.unit

    @property
    def floor(self) -> float:
        """The least precision that the slab leaves a weight."""
        return slab_precision(self.slab, self.unit)

    @property
    def numbers(self) -> int:
        """Of the design; 0 without one."""
        search = self.labelled.search
        return 0 if search is None else search.design.n * search.design.width


class Ended(Protocol):
    """What a run of any family gives has at least this."""

    @property
    def outcome(self) -> Any:
        """What the method handed back."""


class Fitted(NamedTuple):
    """Where a fit with one linear predictor ended, for the residuals to be looked at.

    Attributes
    ----------
    eta : array (n,)
        Predictors at the mean of the weights.
    theta : array (k,)
        Nuisance parameters.
    used : float
        Degrees of freedom.
    """

    eta: FloatArray
    theta: FloatArray
    used: float


class Rules(Protocol):
    """What a family says of a choice before anything is fitted.

    Attributes
    ----------
    finds : str
        What its methods find, with a place for the name of the prior.
    samples : bool
        Its methods sample a declaration instead of finding hyper-parameters.
    """

    finds: ClassVar[str]
    samples: ClassVar[bool]

    def fits(self, method: Method, model: Model) -> bool:
        """Whether a method knows the model's prior and its coordinates."""

    def uses_hyper(self, method: Method) -> bool:
        """Whether the method can use a proper hyper-prior."""

    def uses_default(self, method: Method) -> bool:
        """Whether the model's own hyper-prior is in force where none is given."""

    def check_hyper(self, method: Method, model: Model, hyper: Hyper) -> None:
        """Refuse a hyper-prior that was asked for and cannot be used."""

    def own_settings(self, given: dict[str, Any]) -> dict[str, Any]:
        """Settings less those that mean something to other families only, and do no harm here; refused if they do."""


class Family[End: Ended](Rules, Protocol):
    """Methods that are given the same and hand back the same; ``End`` is what `run` gives.

    Attributes
    ----------
    any_surface : bool
        Its methods take a likelihood without a linear predictor.
    folds_duplicates : bool
        Columns that are the same are made one, instead of being left to the search.
    """

    any_surface: ClassVar[bool]
    folds_duplicates: ClassVar[bool]

    def run(self, task: Task, report: Report) -> End:
        """Run the method."""

    def judge(self, task: Task, end: End) -> Status:
        """How it ended, in a word."""

    def warn(self, task: Task, end: End, status: Status) -> None:
        """Tell the user what the word means, and what else to know."""

    def attributes(self, task: Task, end: End) -> dict[str, Any]:
        """What is stored beside method, status and seconds."""

    def fitted(self, task: Task, end: End) -> Fitted:
        """Predictors and degrees of freedom; asked for where there is one linear predictor."""

    def describe(self, task: Task, end: End) -> Description:
        """The end as the writer of trees sees it."""

    def check_joint(self, task: Task) -> None:
        """Refuse to sample at the hyper-parameters found where there is no one posterior to be sampled."""

    def rating(self, task: Task) -> Rating:
        """What a kernel's width is worth; refused where widths cannot be compared."""

    def start(self, task: Task, end: End, begin: dict[str, FloatArray], centred: BoolArray) -> Start:
        """Where NUTS of the whole declaration starts; ``begin`` holds the values that PyMC would start at."""

    def before_nuts(self, task: Task) -> Task:
        """The same as it is fitted for NUTS to start at."""

    def informed(self, task: Task, end: End) -> Centred:
        """Which weights the data know more of than the hyper-prior: those are declared as they are."""


@dataclass(frozen=True, eq=False)
class Found[End: Ended]:
    """The end of a method: its tree, and the exact posterior at the hyper-parameters it ended at.

    Attributes
    ----------
    task : Task
        What was fitted.
    family : Family
        Of the method.
    end : any
        What the family's `run` gave.
    attributes : dict
        What is told of the fit.
    tried : WidthSearch, optional
        Where a kernel's width was looked for.
    """

    task: Task
    family: Family[End]
    end: End
    attributes: dict[str, Any]
    tried: WidthSearch | None = None

    @property
    def labelled(self) -> LabelledProblem:
        """What was fitted, under the user's names."""
        return self.task.labelled

    @property
    def outcome(self) -> Any:
        """What the method handed back."""
        return self.end.outcome

    @cached_property
    def description(self) -> Description:
        """The end as the writer of trees sees it."""
        return self.family.describe(self.task, self.end)

    @property
    def density(self) -> Density:
        """The exact posterior at the hyper-parameters found, and where it is thought to lie."""
        return Density(self.description.evaluate, self.description.mean, self.description.factor)

    def start(self, begin: dict[str, FloatArray], centred: Centred) -> Start:
        """Where NUTS of the whole declaration starts."""
        return self.family.start(self.task, self.end, begin, np.asarray(centred))

    def informed(self) -> Centred:
        """Which weights are declared as they are."""
        return self.family.informed(self.task, self.end)

    def tree(self, draws: int, chains: int, rng: np.random.Generator) -> xr.DataTree:
        """Moments, and draws if any are asked for."""
        with few_threads(self.task.numbers), _numbers_in_words(self.attributes["method"]):
            tree = fit_tree(self.description, self.attributes, draws=draws, chains=chains, rng=rng)
        self._check_finite(tree["evidence"].to_dataset())
        if "kept" in tree["evidence"] and Status.of(self.attributes["status"]).level != "bad":
            undecided = in_a_sentence(tree["evidence"].to_dataset())
            if undecided:
                tell(undecided, UndecidedWarning)
        return tree if self.tried is None else with_width(tree, self.tried)

    def at_hand(self) -> StoredFit:
        """The same without a tree: what predictions need, no draws and no word about single terms."""
        with _numbers_in_words(self.attributes["method"]):
            fit = at_hand(self.description, self.attributes)
            assert fit.evidence is not None
        self._check_finite(fit.evidence)
        return fit

    def _check_finite(self, evidence: xr.Dataset) -> None:
        """Refuse to hand out an answer that is none."""
        # On an L1 path there is no evidence, for the prior is improper.
        names = (*_MOMENTS, *(() if isinstance(self.description, SupportDescription) else ("log_evidence",)))
        wrong = [name for name in names if not np.isfinite(evidence[name].to_numpy()).all()]
        if wrong:
            raise ValueError(
                f"The method {self.attributes['method']!r} ended in numbers that are not finite ({wrong[0]}): targets "
                "or columns are of sizes too different for it; change their units, or try another method."
            )


def rules_of(method: Method) -> Rules:
    """What the family of a method says of choices."""
    rules: Rules = registry.lookup(__name__.rpartition(".")[0], method.family, "family of methods")()
    return rules


def family_of(method: Method) -> Family[Any]:
    """The family that a method says it is of, where that finds hyper-parameters."""
    family: Any = rules_of(method)
    return cast("Family[Any]", family)


def find(task: Task, progressbar: bool, tried: WidthSearch | None = None) -> Found[Any]:
    """Run a method, judge its end, and say what its user should know."""
    family, name = family_of(task.method), registry.name_of(task.method)
    started, threads = time.perf_counter(), few_threads(task.numbers)
    with threads, FitProgress(f"Fitting ({name})", progressbar) as progress, _numbers_in_words(name):
        end = family.run(task, progress)
        status = family.judge(task, end)
    seconds = time.perf_counter() - started
    family.warn(task, end, status)
    with _numbers_in_words(name):
        check, own = _checked(task, family, end, status), family.attributes(task, end)
    if check.get("likelihood_check"):
        tell(check["likelihood_check"], LikelihoodWarning)
    attributes = {
        "method": name,
        "status": str(status),
        "seconds": seconds,
        **own,
        **check,
        "versions": versions(),
    }
    return Found(task, family, end, attributes, tried)


@contextmanager
def _numbers_in_words(name: str) -> Iterator[None]:
    """What large and small numbers do to a search in a sentence; steps that overflow are judged by where it ends."""
    try:
        with np.errstate(all="ignore"):
            yield
    except np.linalg.LinAlgError as error:
        raise ValueError(
            f"The method {name!r} met a matrix that cannot be factorised ({error}): the likelihood is not "
            "log-concave there or columns are of sizes too different; try another method, or change the units."
        ) from error
    except ArithmeticError as error:
        raise ValueError(
            f"The method {name!r} met numbers that it cannot compute with ({error}): targets or columns are of sizes "
            "too different; change their units, or try another method."
        ) from error


def _checked(task: Task, family: Family[Any], end: Any, status: Status) -> dict[str, Any]:
    """What the residuals say of the likelihood, as it is stored; empty where they say nothing.

    Weights may stand for rows that count several times or for rows known better than others, whose residuals have
    different spreads: with them nothing is said.
    """
    labelled = task.labelled
    problem = labelled.linear
    if problem is None or labelled.check is None or problem.weights is not None or status.level == "bad":
        return {}
    check = labelled.check(*family.fitted(task, end))
    if check is None:
        return {}
    return {
        "likelihood_check": check.sentence(own=labelled.settings["model"] == "declared"),
        "likelihood_statistic": check.statistic,
        "likelihood_value": check.value,
        "likelihood_p": check.p_value,
    }


def wrong_kind(method: Method, kind: type[Any]) -> TypeError:
    """What to raise of a method that has not what its family's kind has."""
    missing = [name for name in sorted(kind.__protocol_attrs__) if not hasattr(method, name)]
    return TypeError(
        f"The method {registry.name_of(method)!r} says that its family is {method.family!r}, but it has no "
        f"{', '.join(missing)}: see bayes_sparse.inference.method.{kind.__name__}."
    )


def needs_flat(method: Method, hyper: Hyper | str, other: str) -> str:
    """The sentence for a hyper-prior that a method cannot use."""
    return (
        f"The method {registry.name_of(method)!r} needs the flat hyper-prior (0, 0): with hyper={hyper!r} no "
        f"precision is ever infinite, so there is nothing to add or delete; {other}."
    )


def unpriced(task: Task) -> Task:
    """The same without a price a degree of freedom, and without a hyper-prior that the method cannot use."""
    priced = any(field.name == "smoothness" for field in fields(task.method))
    method: Method = replace(task.method, smoothness=0.0) if priced else task.method
    return replace(task, method=method, hyper=task.hyper if family_of(method).uses_hyper(method) else None)


def without_sampler(given: dict[str, Any]) -> dict[str, Any]:
    """Settings less those of a sampler, which a ladder hands to all its rungs."""
    return {name: value for name, value in given.items() if name != "sample_kwargs"}
