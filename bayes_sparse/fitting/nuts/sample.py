"""NUTS: the exact posterior at alpha*, the third rung, and the whole declaration, the fourth."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr
from pymc.initial_point import make_initial_point_fn
from scipy.linalg import solve_triangular

from bayes_sparse.common.progress import quiet
from bayes_sparse.common.types import FloatArray, Hyper
from bayes_sparse.common.versions import versions
from bayes_sparse.common.warnings import tell
from bayes_sparse.fitting.families import Found, Task, family_of, find
from bayes_sparse.fitting.nuts.declaration import sampler_of
from bayes_sparse.fitting.nuts.density import sample_density
from bayes_sparse.fitting.nuts.retry import sample_well
from bayes_sparse.fitting.nuts.start import Start
from bayes_sparse.fitting.readings import Reading
from bayes_sparse.inference.method import Method
from bayes_sparse.inference.sampling import Density, Sampling
from bayes_sparse.inputs.model import Centred, Model, sampled_slab
from bayes_sparse.methods.nuts import NUTS
from bayes_sparse.trees.read import stored
from bayes_sparse.trees.write import HELPERS, at_alpha_tree, with_width

__all__ = ["bridge_group", "sample_at_alpha", "sample_whole", "sampling_attributes", "start_of"]

_log = logging.getLogger("bayes_sparse")


class Stopped(KeyboardInterrupt):
    """Ctrl-C while chains were sampled.

    Attributes
    ----------
    tree : DataTree
        What a fit of the draws made so far would have returned.
    """

    def __init__(self, tree: xr.DataTree) -> None:
        draws, chains = (tree["posterior"].sizes[dim] for dim in ("draw", "chain"))
        of = "1 chain" if chains == 1 else f"each of {chains} chains"
        super().__init__(
            f"{draws} draws of {of} are the attribute `tree` of this exception (at a prompt sys.last_value.tree)"
        )
        self.tree = tree


_ENOUGH = 10  # draws a coordinate that a normal is fitted to


def bridge_group(
    log_density: Callable[[FloatArray], float],
    x: FloatArray,
    log_p: FloatArray,
    conditional_on: str,
    rng: np.random.Generator,
) -> xr.Dataset | None:
    """The four lists as a Dataset; None, with a message, where there are too few draws for so many coordinates.

    Parameters
    ----------
    log_density : callable
        Of one point (dim,).
    x : array (chains, draws, dim)
        Draws of it.
    log_p : array (chains, draws)
        The log density there.
    conditional_on : str
        What the integral is conditional on.
    rng : Generator
        For the normal's own draws.
    """
    chains, draws, dim = x.shape
    half = draws // 2
    first, second = x[:, :half].reshape(-1, dim), x[:, half:].reshape(-1, dim)
    if len(first) < _ENOUGH * dim:
        _log.info(
            "Bridge sampling fits a normal to half of the draws, and %d are too few for %d coordinates: "
            "bs.log_evidence will do without it.",
            len(first),
            dim,
        )
        return None
    mean = first.mean(axis=0)
    L = np.linalg.cholesky(np.atleast_2d(np.cov(first, rowvar=False)))
    count = len(second)
    z = rng.standard_normal((count, dim))
    log_determinant = float(np.log(L.diagonal()).sum())

    def log_q(z: FloatArray) -> FloatArray:
        return np.asarray(-0.5 * np.sum(z**2, axis=1) - 0.5 * dim * np.log(2 * np.pi) - log_determinant)

    proposed = mean + z @ L.T
    there = solve_triangular(L, (second - mean).T, lower=True).T
    return xr.Dataset(
        {
            "proposal_log_p": (("proposal_draw",), np.array([log_density(point) for point in proposed])),
            "proposal_log_q": (("proposal_draw",), log_q(z)),
            "posterior_log_p": (("chain", "half_draw"), log_p[:, half:]),
            "posterior_log_q": (("chain", "half_draw"), log_q(there).reshape(chains, -1)),
        },
        attrs={"conditional_on": conditional_on},
    )


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
    return _unless(chains.stopped, tree if found.tried is None else with_width(tree, found.tried))


def sampling_attributes(sampling: Sampling, gradients: int, warmup_gradients: int) -> dict[str, Any]:
    """What is told of every run of NUTS."""
    return {
        "sampler": sampling.sampler,
        "tune": sampling.tune,
        "target_accept": sampling.target_accept,
        "gradient_evaluations": gradients,
        "warmup_gradient_evaluations": warmup_gradients,
    }


def sample_whole(
    reading: Reading, model: Model, method: NUTS, start: Method | None, hyper: Hyper | None, sampling: Sampling
) -> xr.DataTree:
    """Sample everything under a proper hyper-prior, from where a method ends, or cold."""
    started = time.perf_counter()
    found = None if start is None else _near(reading, model, start, hyper)
    centred = _centred(reading, model, method, found)
    declaration = reading.declaration(hyper, centred)
    sample = sampler_of(declaration, None if found is None else start_of(found, declaration, centred))
    drawn, more = sample_well(sample, sampling, retry=method.retry, unseen=() if reading.own else HELPERS)
    # Said by the fit that NUTS starts at, whose warnings are not heard.
    check = {} if found is None else {k: v for k, v in found.attributes.items() if k.startswith("likelihood_")}
    if check.get("likelihood_check"):
        tell(check["likelihood_check"])
    told = {
        **check,
        "method": "nuts",
        "condition": "",
        "start": "cold" if found is None else str(found.attributes["method"]),
        **sampling_attributes(sampling, drawn.gradients, drawn.warmup_gradients),
        "compiled": sample.compiled,
        "retried": more,
        "versions": versions(),
        "seconds": time.perf_counter() - started,
    }
    prior = {} if reading.own else _prior_of(reading, model, hyper)
    return _unless(drawn.stopped, reading.laid_out(drawn.tree(declaration), {**told, **prior}))


def _unless(stopped: bool, tree: xr.DataTree) -> xr.DataTree:
    """The tree, unless the user stopped it."""
    if stopped:
        raise Stopped(tree)
    return tree


def _prior_of(reading: Reading, model: Model, hyper: Hyper | None) -> dict[str, Any]:
    """What is stored of the prior of a named model's weights; units of a slab that is not there are none."""
    slab = sampled_slab(model, kernel=reading.labelled.interchangeable)
    known = {"hyper": list(hyper or ()), "hyper_unit": reading.labelled.searched.unit}
    return known if slab is None else {**known, "slab": slab}


def start_of(found: Found[Any], declaration: pm.Model, centred: Centred = False) -> Start:
    """The start of a declaration, centred or not, at an evidence fit of the same data."""
    draw = make_initial_point_fn(model=declaration, jitter_rvs=set(), return_transformed=False)
    return found.start({name: np.array(value, dtype=float) for name, value in draw(0).items()}, centred)


def _near(reading: Reading, model: Model, start: Method, hyper: Hyper | None) -> Found[Any] | None:
    """A fit by evidence of the same model, to start at."""
    try:
        with quiet():
            labelled = reading.labelled
            slab = labelled.slab if reading.own else sampled_slab(model, kernel=labelled.interchangeable)
            return find(family_of(start).before_nuts(Task(labelled, model, start, hyper, slab)), False)
    except ValueError as refused:
        if not reading.own:  # NUTS takes models of the user's that no evidence method can
            raise
        _log.info("NUTS starts cold, because no evidence method fits this model: %s", refused)
        return None


def _centred(reading: Reading, model: Model, method: NUTS, found: Found[Any] | None) -> Centred:
    """Which weights are declared as they are: those about which the data say more than the hyper-prior does.

    Elsewhere a weight may be small together with its scale, and the funnel that this makes is gone in units of the
    scale.
    """
    if reading.own:
        return False
    if method.centred != "auto":
        return method.centred is True
    if found is None:
        return model.prior == "jeffreys"  # one scale for all weights is known well enough
    return found.informed()
