"""The exact posterior at alpha*, sampled: the third rung, laid out like every other fit."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import xarray as xr

from bayes_sparse.fitting.families import Found
from bayes_sparse.fitting.nuts.bridge import bridge_group
from bayes_sparse.fitting.nuts.density import sample_density
from bayes_sparse.inference.sampling import Density, Sampling
from bayes_sparse.trees.read import stored
from bayes_sparse.trees.write import at_alpha_tree, with_width

__all__ = ["sample_at_alpha", "sampling_attributes"]


def sample_at_alpha(found: Found[Any], sampling: Sampling, *, cold: bool) -> xr.DataTree:
    """Sample p(w | alpha*, data) over what a fit kept.

    Parameters
    ----------
    found : Found
        The fit.
    sampling : Sampling
        How long.
    cold : bool
        Leave out what the fit knows of the posterior's place and shape.
    """
    found.family.check_joint(found.task)
    description, started = found.description, time.perf_counter()
    dim = len(description.mean)
    if not dim:
        raise ValueError("Nothing was kept and there is no bias: there is no weight left to sample.")
    density = Density(description.evaluate, np.zeros(dim), np.eye(dim)) if cold else found.density
    chains = sample_density(density, sampling)
    rng = np.random.default_rng(sampling.random_seed)
    given = stored(found.tree(0, 1, rng)).given
    told = {
        "method": "nuts",
        "condition": "alpha",
        "conditional_on": given,
        "start": "cold" if cold else str(found.attributes["method"]),
        "seconds": float(found.attributes["seconds"]) + time.perf_counter() - started,
        **sampling_attributes(sampling, chains.gradients, chains.warmup_gradients),
        "versions": found.attributes["versions"],
    }
    bridge = bridge_group(lambda x: description.evaluate(x)[0], chains.x, chains.stats["lp"], given, rng)
    tree = at_alpha_tree(description, found.attributes, chains, told, bridge)
    return tree if found.tried is None else with_width(tree, found.tried)


def sampling_attributes(sampling: Sampling, gradients: int, warmup_gradients: int) -> dict[str, Any]:
    """What is told of every run of NUTS."""
    return {
        "sampler": sampling.sampler,
        "tune": sampling.tune,
        "target_accept": sampling.target_accept,
        "gradient_evaluations": gradients,
        "warmup_gradient_evaluations": warmup_gradients,
    }
