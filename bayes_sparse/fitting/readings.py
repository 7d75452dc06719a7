"""A model and what was handed in for it, read: data prepared for a named model, or the user's own graph."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pymc as pm
import xarray as xr

from bayes_sparse.common import registry
from bayes_sparse.common.locks import building
from bayes_sparse.common.progress import FitProgress
from bayes_sparse.common.types import Hyper
from bayes_sparse.common.warnings import tell
from bayes_sparse.inference.method import Method
from bayes_sparse.inputs import basis as bases
from bayes_sparse.inputs import kernel_width
from bayes_sparse.inputs.kernels import StreamedKernels
from bayes_sparse.inputs.likelihoods import Likelihood
from bayes_sparse.inputs.model import Centred, Handed, Model, NamedModel, sampled_slab
from bayes_sparse.inputs.pm_model.declared import Declared, check_proper, declared_settings, set_data
from bayes_sparse.inputs.pm_model.own_problem import declared_problem
from bayes_sparse.inputs.prepare import Prepared, check_reach, prepare
from bayes_sparse.problem.duplicate_columns import duplicate_columns, in_words
from bayes_sparse.problem.labelled import LabelledProblem
from bayes_sparse.trees.write import own_model_tree, sampled_tree

__all__ = ["NamedReading", "OwnReading", "Reading", "named_reading", "reading_of", "with_width_found"]

_LOOK_SELDOM = ("sequential",)  # methods that look at all columns a few times
_log = logging.getLogger("bayes_sparse")


class Reading(Protocol):
    """What evidence methods fit, and the declaration that NUTS samples."""

    @property
    def own(self) -> bool:
        """Whether the declaration is the user's, which NUTS samples as it stands."""

    @property
    def labelled(self) -> LabelledProblem:
        """The problem under the user's names."""

    @property
    def likelihood(self) -> str | Likelihood:
        """The likelihood, "auto" where it is inside the user's model."""

    def proper(self, hyper: Hyper | None) -> Hyper | None:
        """The hyper-prior that NUTS samples under."""

    def declaration(self, hyper: Hyper | None, centred: Centred) -> pm.Model:
        """The model as PyMC sees it."""

    def laid_out(self, sampled: xr.DataTree, told: dict[str, Any]) -> xr.DataTree:
        """Draws of the declaration as a tree like any other fit's."""


@dataclass(frozen=True, eq=False)
class NamedReading:
    """A named model and prepared data."""

    model: NamedModel
    prepared: Prepared

    own: bool = False

    @cached_property
    def labelled(self) -> LabelledProblem:
        """The problem under the user's names."""
        return self.model.problem(self.prepared)

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood, chosen or found."""
        return self.prepared.likelihood

    def proper(self, hyper: Hyper | None) -> Hyper | None:
        """The one given, or the model's proper one, with a message where that is another than the evidence methods'."""
        if hyper is not None or self.model.proper_hyper is None:
            return hyper
        slab = sampled_slab(self.model, kernel=self.prepared.basis.kernel)
        if self.model.default_hyper is None:
            _log.info(
                "NUTS needs a proper prior on the precisions: Gamma(%g, %g)%s stands in for the flat one of the "
                "evidence methods; hyper=(a, b) and slab=c choose another.",
                *self.model.proper_hyper,
                "" if slab is None else f", with a slab of {slab:g},",
            )
        return self.model.proper_hyper

    def declaration(self, hyper: Hyper | None, centred: Centred) -> pm.Model:
        """The model as PyMC sees it."""
        return self.model.declare(self.prepared, hyper, centred=centred)

    def laid_out(self, sampled: xr.DataTree, told: dict[str, Any]) -> xr.DataTree:
        """In the layout of an evidence tree."""
        return sampled_tree(self.labelled, sampled, told)

    def suited_to(self, method: Method) -> NamedReading:
        """The same with kernels that come in blocks made as a whole, where a method would look at them too often."""
        kernels = self.prepared.Phi
        if not isinstance(kernels, StreamedKernels):
            return self
        if registry.name_of(method) in _LOOK_SELDOM and not self.prepared.several:
            kernels.say_size()
            return self
        return replace(self, prepared=replace(self.prepared, Phi=kernels.toarray()))

    def say_duplicates(self) -> None:
        """Say which columns are the same; kernels on rows that are the same are nothing unusual."""
        if self.labelled.interchangeable:
            return
        for design, names in self.labelled.searched.designs(self.labelled.names):
            same = duplicate_columns(design, np.arange(design.M))
            if same:
                tell(
                    f"Columns that are the same up to sign: {in_words(same, names)}; at most one of them is kept, and "
                    "which one is arbitrary.",
                    UserWarning,
                )


@dataclass(frozen=True, eq=False)
class OwnReading:
    """A `pm.Model` of the user's own."""

    declared: Declared
    weights: Any = None
    hyper: Hyper | None = None
    any_surface: bool = False

    own: bool = True
    likelihood: str = "auto"

    @cached_property
    def labelled(self) -> LabelledProblem:
        """The problem under the user's names."""
        with building():
            return declared_problem(self.declared, self.weights, self.hyper, any_surface=self.any_surface)

    def proper(self, hyper: Hyper | None) -> Hyper | None:
        """The model's own, which must be proper."""
        if hyper is not None:
            raise ValueError("A pm.Model of your own declares its own prior, and NUTS samples that: leave out `hyper`.")
        if self.weights is not None:
            raise ValueError("NUTS samples a pm.Model of your own as it stands: leave out `weights`.")
        check_proper(self.declared)
        return None

    def declaration(self, hyper: Hyper | None, centred: Centred) -> pm.Model:
        """The user's model as it stands."""
        return self.declared.model

    def laid_out(self, sampled: xr.DataTree, told: dict[str, Any]) -> xr.DataTree:
        """As PyMC gives it."""
        return own_model_tree(declared_settings(self.declared), sampled, told)


def reading_of(model: Model, handed: Handed, hyper: Hyper | None = None, *, any_surface: bool = False) -> Reading:
    """Read the data for a model."""
    if isinstance(model, Declared):
        _check_own(handed)
        set_data(model.model, handed.data)
        return OwnReading(model, handed.weights, hyper, any_surface)
    reading = named_reading(model, handed, bases.resolve(handed.basis))
    check_reach(reading.prepared)
    return reading


def named_reading(model: Model, handed: Handed, basis: bases.Basis) -> NamedReading:
    """Prepare the data for a named model."""
    assert isinstance(model, NamedModel)
    return NamedReading(
        model,
        prepare(
            handed.data,
            handed.target,
            handed.likelihood,
            basis,
            handed.keep,
            handed.weights,
            handed.offset,
            handed.missing,
            handed.formula,
        ),
    )


def with_width_found(
    reading: NamedReading, rate: Callable[[NamedReading], kernel_width.Rating], progressbar: bool
) -> tuple[NamedReading, kernel_width.WidthSearch]:
    """The same data with the width of greatest worth."""
    with FitProgress("Choosing the width", progressbar) as progress:
        prepared, tried = kernel_width.choose(
            reading.prepared, lambda data: rate(NamedReading(reading.model, data)), progress.say
        )
    return NamedReading(reading.model, prepared), tried


def _check_own(handed: Handed) -> None:
    left = handed.target is handed.keep is handed.offset is handed.formula is None and handed.missing == "refuse"
    if not (left and isinstance(handed.basis, str) and handed.basis == "linear" and handed.likelihood == "auto"):
        raise ValueError(
            "A pm.Model of your own says its target, likelihood, basis and offset itself; leave out target, "
            "likelihood, basis, keep, offset, missing and formula."
        )
