"""The whole declaration, sampled: the fourth rung, with a named model or one of the user's own."""

from __future__ import annotations

import json
import logging
import time
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr

from bayes_sparse.common.progress import quiet
from bayes_sparse.fitting.choices import check_choices, choose_method
from bayes_sparse.fitting.found import Found, find
from bayes_sparse.fitting.nuts.at_alpha import sampling_attributes
from bayes_sparse.fitting.nuts.model import sample_model
from bayes_sparse.fitting.nuts.start import start_of
from bayes_sparse.inference.l1.fixed_points import PathOutcome
from bayes_sparse.inference.one_step.finish import EigenOutcome
from bayes_sparse.inference.sampling import Sampling
from bayes_sparse.inputs.named_model import Centred
from bayes_sparse.inputs.pm_model.declared import check_proper, declared_problem, declared_settings, set_data
from bayes_sparse.inputs.prepare import Prepared
from bayes_sparse.methods.nuts import NUTS
from bayes_sparse.models import Declared
from bayes_sparse.problem.labelled import LabelledProblem
from bayes_sparse.trees.write import nuts_tree, versions

__all__ = ["full_of_declared", "full_tree"]

_HALF = 0.5  # of the variance of a direction taken away by the data
_log = logging.getLogger("bayes_sparse")


def full_tree(
    model: Any,
    prepared: Prepared,
    labelled: LabelledProblem,
    hyper: tuple[float, float] | None,
    method: NUTS,
    sampling: Sampling,
) -> xr.DataTree:
    """Sample the declaration of a named model."""
    if hyper is None and model.proper_hyper is not None:
        hyper = model.proper_hyper
        if getattr(model, "default_hyper", None) is None:
            _log.info(
                "NUTS needs a proper prior on the precisions: Gamma(%g, %g) stands in for the flat one of the evidence "
                "methods; hyper=(a, b) chooses another.",
                *hyper,
            )
    started = time.perf_counter()
    found = _near(labelled, model, method, hyper, prepared.likelihood.name) if method.warm else None
    centred = _centred(model, method, found, hyper)
    declaration = model.declare(prepared, hyper, centred=centred)
    sampled, told = _sampled(declaration, found, sampling, centred)
    told |= {"hyper": list(hyper or ()), "seconds": time.perf_counter() - started}
    return nuts_tree(labelled, sampled, told)


def full_of_declared(
    declared: Declared, data: Any, hyper: tuple[float, float] | None, method: NUTS, sampling: Sampling
) -> xr.DataTree:
    """Sample the user's model as it stands."""
    if hyper is not None:
        raise ValueError("A pm.Model of your own declares its own prior, and NUTS samples that: leave out `hyper`.")
    check_proper(declared)
    set_data(declared.model, data)
    started, found = time.perf_counter(), None
    if method.warm:
        try:
            with quiet():
                labelled = declared_problem(declared, None, None, None)
            found = _near(labelled, declared, method, None, "auto")
        except ValueError as refused:  # NUTS takes models that no evidence method can
            _log.info("NUTS starts cold, because no evidence method fits this model: %s", refused)
    tree, told = _sampled(declared.model, found, sampling)
    tree["posterior"].attrs.update(told, seconds=time.perf_counter() - started)
    tree.attrs["bayes_sparse"] = json.dumps(declared_settings(declared))
    return tree


def _near(
    labelled: LabelledProblem, model: Any, method: NUTS, hyper: tuple[float, float] | None, likelihood: str
) -> Found:
    """A fit by evidence of the same model, to start at."""
    chosen = choose_method(method.start, model, hyper, likelihood)
    if chosen.needs_flat_hyper or chosen.family != "evidence":
        hyper = None
    check_choices(model, chosen, hyper)
    if chosen.family == "one_step" and model.coordinates != "eigen":
        raise ValueError(
            "A one-step method finds directions, and this declaration is of weights: start NUTS from 'mackay', "
            "'sequential' or 'em'."
        )
    with quiet():
        return find(labelled, model, chosen, hyper, 0.0 if chosen.family != "path" else "auto", False)


def _centred(model: Any, method: NUTS, found: Found | None, hyper: tuple[float, float] | None) -> Centred:
    """Which weights are declared as they are: those about which the data say more than the hyper-prior does.

    Elsewhere a weight may be small together with its scale, and the funnel that this makes is gone in units of the
    scale.
    """
    if model.prior == "jeffreys":  # one scale for all weights is known well enough
        return True if method.centred == "auto" else method.centred
    if method.centred != "auto" or found is None:
        return method.centred is True
    if isinstance(found.outcome, EigenOutcome):  # its hyper-prior is in units of what the data say
        return found.outcome.gamma[: model.directions] > _HALF
    if isinstance(found.outcome, PathOutcome) or hyper is None:
        return False
    state, informed = found.outcome.state, np.zeros(found.labelled.M, dtype=bool)
    inside = state.index < len(informed)
    informed[state.index[inside]] = (1 / state.variance - state.alpha > hyper[0] / hyper[1])[inside]
    return informed


def _sampled(
    declaration: pm.Model, found: Found | None, sampling: Sampling, centred: Centred = False
) -> tuple[xr.DataTree, dict[str, Any]]:
    start = None if found is None else start_of(found, declaration, centred)
    sampled, *evaluations = sample_model(declaration, start, sampling)
    told = {
        "method": "nuts",
        "condition": "",
        "start": "cold" if found is None else str(found.attributes["method"]),
        **sampling_attributes(sampling, *evaluations),
        "versions": versions(),
    }
    return sampled, told
