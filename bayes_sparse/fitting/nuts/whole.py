"""The whole declaration, sampled: the fourth rung, with a named model or one of the user's own."""

from __future__ import annotations

import logging
import time
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr
from pymc.initial_point import make_initial_point_fn

from bayes_sparse.common.progress import quiet
from bayes_sparse.common.types import Hyper
from bayes_sparse.common.versions import versions
from bayes_sparse.fitting.families import Found, Task, family_of, find
from bayes_sparse.fitting.nuts.at_alpha import sampling_attributes
from bayes_sparse.fitting.nuts.model import sample_model
from bayes_sparse.fitting.nuts.start import Start
from bayes_sparse.fitting.readings import Reading
from bayes_sparse.inference.method import Method
from bayes_sparse.inference.sampling import Sampling
from bayes_sparse.inputs.model import Centred, Model
from bayes_sparse.methods.nuts import NUTS

__all__ = ["sample_whole", "start_of"]

_log = logging.getLogger("bayes_sparse")


def sample_whole(
    reading: Reading, model: Model, method: NUTS, start: Method | None, hyper: Hyper | None, sampling: Sampling
) -> xr.DataTree:
    """Sample everything under a proper hyper-prior, from where a method ends, or cold."""
    started = time.perf_counter()
    found = None if start is None else _near(reading, model, start, hyper)
    centred = _centred(reading, method, found)
    declaration = reading.declaration(hyper, centred)
    sampled, *evaluations = sample_model(
        declaration, None if found is None else start_of(found, declaration, centred), sampling
    )
    told = {
        "method": "nuts",
        "condition": "",
        "start": "cold" if found is None else str(found.attributes["method"]),
        **sampling_attributes(sampling, *evaluations),
        "versions": versions(),
        "seconds": time.perf_counter() - started,
    }
    return reading.laid_out(sampled, told if reading.may_start_cold else {**told, "hyper": list(hyper or ())})


def start_of(found: Found[Any], declaration: pm.Model, centred: Centred = False) -> Start:
    """The start of a declaration, centred or not, at an evidence fit of the same data."""
    draw = make_initial_point_fn(model=declaration, jitter_rvs=set(), return_transformed=False)
    return found.start({name: np.array(value, dtype=float) for name, value in draw(0).items()}, centred)


def _near(reading: Reading, model: Model, start: Method, hyper: Hyper | None) -> Found[Any] | None:
    """A fit by evidence of the same model, to start at."""
    try:
        with quiet():
            task = family_of(start).before_nuts(Task(reading.labelled, model, start, hyper))
            return find(task, False)
    except ValueError as refused:
        if not reading.may_start_cold:
            raise
        _log.info("NUTS starts cold, because no evidence method fits this model: %s", refused)
        return None


def _centred(reading: Reading, method: NUTS, found: Found[Any] | None) -> Centred:
    """Which weights are declared as they are: those about which the data say more than the hyper-prior does.

    Elsewhere a weight may be small together with its scale, and the funnel that this makes is gone in units of the
    scale.
    """
    if reading.may_start_cold:  # the user's model is as it is
        return False
    if method.centred != "auto":
        return method.centred is True
    return False if found is None else found.informed()
