"""NUTS of a density that is a function of one vector: nothing is compiled but what the function itself did.

The sampler sees the coordinates z of ``x = mean + factor z``. With mean and factor of an approximate posterior the
density is nearly a standard normal in them, so hardly any warm-up is needed.
"""

from __future__ import annotations

import warnings
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr
from numpy.typing import NDArray
from pytensor.compile.mode import Mode

from bayes_sparse.common.progress import FitProgress
from bayes_sparse.common.types import FloatArray
from bayes_sparse.fitting.density_op import LogDensity
from bayes_sparse.fitting.nuts.processes import Halted, Tell, each_chain
from bayes_sparse.inference.sampling import Chains, Density, Sampling

__all__ = ["counted", "joined", "sample_density", "standard_stats"]

# What the samplers call the same thing, and what ArviZ does.
_NAMES = {
    "diverging": "diverging",
    "energy": "energy",
    "lp": "lp",
    "logp": "lp",
    "tree_depth": "tree_depth",
    "depth": "tree_depth",
    "n_steps": "n_steps",
    "step_size": "step_size",
    "acceptance_rate": "acceptance_rate",
    "mean_tree_accept": "acceptance_rate",
    "reached_max_treedepth": "reached_max_treedepth",
    "maxdepth_reached": "reached_max_treedepth",
}
_SPREAD = 0.5  # chains start so far from the mean, in sds: near enough to be quick, far enough to disagree


def sample_density(density: Density, sampling: Sampling) -> Chains:
    """Draw from a density, each chain with a seed of its own."""
    seeds = np.random.SeedSequence(sampling.random_seed).generate_state(sampling.chains)
    run = _by_pymc
    if sampling.sampler == "nutpie":
        import nutpie  # noqa: F401 - here, and not once more in every process

        run = _by_nutpie
    more = {name: value for name, value in sampling.more.items() if name != "cores"}
    total = sampling.chains * (sampling.tune + sampling.draws)

    def job(chain: int, tell: Tell) -> Chains:
        sampled = run(density, replace(sampling, random_seed=int(seeds[chain]), more=more), tell)
        if "posterior" not in sampled.children:  # stopped during the warm-up
            raise KeyboardInterrupt
        z = sampled["posterior"]["z"].transpose("chain", "draw", ...).to_numpy()
        made = Chains(density.x(z), standard_stats(sampled["sample_stats"].to_dataset()), *counted(sampled))
        if z.shape[1] < sampling.draws:  # both samplers give what they have when the user stops them
            raise Halted(made)
        return made

    with FitProgress("Sampling", sampling.progressbar) as progress:

        def report(told: list[tuple[int, int]]) -> None:
            done, divergent = (sum(said) for said in zip(*told, strict=True))
            progress.say(f"Sampling: {done} of {total} draws, warm-up included, {divergent} divergences")

        made = each_chain(job, sampling.chains, sampling.more.get("cores"), report)
    whole = len(made) == sampling.chains and all(part.x.shape[1] == sampling.draws for part in made)
    return joined(made) if whole else _stopped(made)


def joined(parts: list[Chains]) -> Chains:
    """Chains of several runs as one."""
    return Chains(
        np.concatenate([part.x for part in parts]),
        {name: np.concatenate([part.stats[name] for part in parts]) for name in parts[0].stats},
        sum(part.gradients for part in parts),
        sum(part.warmup_gradients for part in parts),
    )


def _stopped(made: list[Chains]) -> Chains:
    """Of chains that the user stopped: those, cut to one length, that leave most draws."""
    lengths = np.sort([part.x.shape[1] for part in made])[::-1]
    shortest = lengths[np.argmax(lengths * np.arange(1, len(made) + 1))]
    if not shortest:
        raise KeyboardInterrupt
    long = [part for part in made if part.x.shape[1] >= shortest]
    cut = [
        replace(part, x=part.x[:, :shortest], stats={name: of[:, :shortest] for name, of in part.stats.items()})
        for part in long
    ]
    return replace(joined(cut), stopped=True)


def _by_nutpie(density: Density, sampling: Sampling, tell: Tell) -> xr.DataTree:
    import nutpie
    from nutpie.compiled_pyfunc import from_pyfunc

    dim = len(density.mean)

    def expand(z: FloatArray, **_: Any) -> dict[str, FloatArray]:
        return {"z": z}

    def start(seed: int) -> FloatArray:
        return _SPREAD * np.random.default_rng(seed).standard_normal(dim)

    compiled = from_pyfunc(
        dim,
        lambda: density,
        lambda *_: expand,
        [np.dtype("float64")],
        [(dim,)],
        ["z"],
        make_initial_point_fn=start,
    )

    def report(chains: Any) -> None:
        tell(chains[0].finished_draws, chains[0].divergences)

    with warnings.catch_warnings():  # of a chain that has no draws yet when the user stops it
        warnings.filterwarnings("ignore", message="Found chain dimension to be longer than draw dimension")
        sampled: xr.DataTree = nutpie.sample(
            compiled,
            draws=sampling.draws,
            tune=max(sampling.tune, 1),
            chains=1,
            cores=1,
            seed=sampling.random_seed,
            target_accept=sampling.target_accept,
            progress_bar=False,
            progress_callback=report,
            **sampling.more,
        )
    return sampled


def _by_pymc(density: Density, sampling: Sampling, tell: Tell) -> xr.DataTree:
    dim = len(density.mean)
    rng = np.random.default_rng(sampling.random_seed)
    with pm.Model() as model:
        z = pm.Flat("z", shape=dim)
        pm.Potential("density", LogDensity(density).value(z))
    arguments: dict[str, Any] = {
        "draws": sampling.draws,
        "tune": sampling.tune,
        "chains": 1,
        "cores": 1,
        "random_seed": sampling.random_seed,
        "progressbar": False,
        "quiet": True,
        "callback": lambda trace, draw: tell(draw.draw_idx + 1, 0),
        "target_accept": sampling.target_accept,
        "nuts_sampler": "pymc",
        "init": "adapt_diag",
        "initvals": {"z": _SPREAD * rng.standard_normal(dim)},
        "discard_tuned_samples": False,
        "compute_convergence_checks": False,
        "compile_kwargs": {"mode": Mode(linker="py", optimizer="fast_run")},
    }
    with model:
        sampled: xr.DataTree = pm.sample(**(arguments | deepcopy(sampling.more)))  # PyMC writes into what it is given
    return sampled


def standard_stats(stats: xr.Dataset) -> dict[str, NDArray[Any]]:
    """Statistics of the draws under ArviZ's names, whichever sampler they are from."""
    found: dict[str, NDArray[Any]] = {}
    for theirs, ours in _NAMES.items():
        if theirs in stats and ours not in found:
            found[ours] = stats[theirs].transpose("chain", "draw", ...).to_numpy()
    return found


def counted(sampled: xr.DataTree) -> tuple[int, int]:
    """Evaluations of the gradient after and during warm-up."""
    groups = ("sample_stats", "warmup_sample_stats")
    after, before = (
        int(np.sum(sampled[name]["n_steps"].to_numpy())) if name in sampled.children else 0 for name in groups
    )
    return after, before
