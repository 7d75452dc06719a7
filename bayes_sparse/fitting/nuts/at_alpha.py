"""The exact posterior at alpha*, sampled: the third rung, laid out like every other fit."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import xarray as xr

from bayes_sparse.common.storage import small_enough
from bayes_sparse.fitting.found import Found
from bayes_sparse.fitting.nuts.density import sample_density
from bayes_sparse.inference.sampling import Chains, Density, Sampling
from bayes_sparse.trees.draws import chain_and_draw, of_each_observation
from bayes_sparse.trees.moments import with_moments
from bayes_sparse.trees.proposals import bridge_group
from bayes_sparse.trees.rung import condition
from bayes_sparse.trees.write import assemble

__all__ = ["conditional_tree"]


def conditional_tree(found: Found, sampling: Sampling, *, cold: bool) -> xr.DataTree:
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
    conditional, started = found.conditional(), time.perf_counter()
    dim = len(conditional.density.mean)
    if not dim:
        raise ValueError("Nothing was kept and there is no bias: there is no weight left to sample.")
    density = conditional.density
    if cold:
        density = Density(density.evaluate, np.zeros(dim), np.eye(dim))
    chains = sample_density(density, sampling)
    shape = (sampling.chains, sampling.draws)
    x = chains.x.reshape(-1, dim)
    rng = np.random.default_rng(sampling.random_seed)
    tree = found.tree(0, 1, rng)
    given = condition(tree["evidence"].to_dataset())
    told = {
        "method": "nuts",
        "condition": "alpha",
        "conditional_on": given,
        "start": "cold" if cold else str(found.attributes["method"]),
        "seconds": float(found.attributes["seconds"]) + time.perf_counter() - started,
        **sampling_attributes(sampling, chains.gradients, chains.warmup_gradients),
        "versions": found.attributes["versions"],
    }
    evidence = with_moments(tree["evidence"].to_dataset(), *conditional.moments(x)).assign(conditional.more(x))
    posterior = conditional.posterior(x, shape)
    groups = {
        "evidence": evidence.assign_attrs({**told, "approximation": "none: sampled at alpha*"}),
        "posterior": posterior.assign_attrs(told),
        "sample_stats": _stats(chains, shape),
    }
    if small_enough(8 * len(x) * found.labelled.y.size):
        groups["log_likelihood"] = of_each_observation(found.labelled, conditional.pointwise(x), shape)
    bridge = bridge_group(
        lambda point: conditional.density.evaluate(point)[0],
        chains.x,
        chains.stats["lp"],
        given,
        rng,
    )
    if bridge is not None:
        groups["bridge"] = bridge
    tree = assemble(found.labelled, groups)
    held = {name: value for name, value in conditional.held.items() if name not in tree["constant_data"]}
    constant = tree["constant_data"].to_dataset().assign({name: _as_variable(name, v) for name, v in held.items()})
    return tree.assign({"constant_data": xr.DataTree(constant)})


def sampling_attributes(sampling: Sampling, gradients: int, warmup_gradients: int) -> dict[str, Any]:
    """What is told of every run of NUTS."""
    return {
        "sampler": sampling.sampler,
        "tune": sampling.tune,
        "target_accept": sampling.target_accept,
        "gradient_evaluations": gradients,
        "warmup_gradient_evaluations": warmup_gradients,
    }


def _stats(chains: Chains, shape: tuple[int, int]) -> xr.Dataset:
    stats = {name: (("chain", "draw"), values) for name, values in chains.stats.items()}
    stats["log_p"] = stats["lp"]
    return xr.Dataset(
        stats,
        coords=chain_and_draw(shape),
        attrs={"log_p": "log p(y|w) + log p(w|alpha) at the point values that are held, normalised"},
    )


def _as_variable(name: str, value: Any) -> tuple[tuple[str, ...], Any]:
    value = np.asarray(value)
    return tuple(f"{name}_dim_{i}" for i in range(value.ndim)), value
