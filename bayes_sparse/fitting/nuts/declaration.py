"""NUTS of a `pm.Model`: of its density as a function of one vector, in the coordinates that an evidence fit suggests.

A model with operations on matrices that a cut does not remove (a Gaussian process, a scan) is compiled whole, by
`pm.sample`, in its own coordinates.
"""

from __future__ import annotations

import logging
import shutil
import warnings
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import xarray as xr
from pymc.backends.arviz import find_constants, find_observations
from pytensor.compile.mode import get_mode
from pytensor.configdefaults import config

from bayes_sparse.common.checks import small_enough
from bayes_sparse.fitting.nuts.compiled import Heavy
from bayes_sparse.fitting.nuts.density import counted, sample_density, standard_stats
from bayes_sparse.fitting.nuts.start import Start
from bayes_sparse.fitting.nuts.whole import WholeModel
from bayes_sparse.inference.sampling import Sampling

__all__ = ["Drawn", "Sampler", "sampler_of"]

_log = logging.getLogger("bayes_sparse")


class Drawn(NamedTuple):
    """Draws of a model.

    Attributes
    ----------
    posterior, stats : Dataset
        The model's own variables, and what the sampler says of each draw.
    log_likelihood : Dataset or None
        Of each observation; None where it is too large to be stored, or where there are no observations.
    gradients, warmup_gradients : int
        Evaluations of the gradient after and during warm-up.
    stopped : bool
        Whether the user stopped the chains.
    """

    posterior: xr.Dataset
    stats: xr.Dataset
    log_likelihood: xr.Dataset | None
    gradients: int
    warmup_gradients: int
    stopped: bool = False

    def extended(self, other: Drawn) -> Drawn:
        """The same chains with the draws of another run after their own."""

        def after(first: xr.Dataset, second: xr.Dataset) -> xr.Dataset:
            second = second.assign_coords(draw=second["draw"] + first.sizes["draw"])
            return xr.concat([first, second], dim="draw", combine_attrs="override")

        one, two = self.log_likelihood, other.log_likelihood
        return Drawn(
            after(self.posterior, other.posterior),
            after(self.stats, other.stats),
            None if one is None or two is None else after(one, two),
            self.gradients + other.gradients,
            self.warmup_gradients + other.warmup_gradients,
        )

    def tree(self, model: pm.Model) -> xr.DataTree:
        """With the data that the model holds."""
        groups = {"/posterior": self.posterior, "/sample_stats": self.stats}
        if self.log_likelihood is not None:
            groups["/log_likelihood"] = self.log_likelihood
        tree = xr.DataTree.from_dict(groups)
        for name, group in _data_of(model).children.items():
            tree[name] = group
        return tree


class Sampler:
    """Samples a model by a density that is compiled once, however often it is sampled.

    Parameters
    ----------
    whole : WholeModel
        The model.
    start : Start, optional
        What an evidence fit tells.
    """

    compiled: str = "all but the matrix products"

    def __init__(self, whole: WholeModel, start: Start | None) -> None:
        self._whole, self._density = whole, whole.density(start)
        self._density(np.zeros(len(self._density.mean)))  # compiled here, and not once more in every process

    def __call__(self, sampling: Sampling) -> Drawn:
        """Draw."""
        chains = sample_density(self._density, sampling)
        whole, model, shape = self._whole, self._whole.model, chains.x.shape[:2]
        coords = {dim: np.arange(size) for dim, size in zip(("chain", "draw"), shape, strict=True)}
        stats = xr.Dataset({name: (("chain", "draw"), values) for name, values in chains.stats.items()}, coords)
        fits = model.observed_RVs and _fits(shape, model)
        return Drawn(
            whole.posterior(chains.x),
            stats,
            whole.log_likelihood(chains.x) if fits else None,
            chains.gradients,
            chains.warmup_gradients,
            chains.stopped,
        )


class _CompiledWhole:
    """Samples a model by `pm.sample`, which compiles all of it."""

    compiled: str = "all of it"

    def __init__(self, model: pm.Model) -> None:
        self._model = model

    def __call__(self, sampling: Sampling) -> Drawn:
        """Draw."""
        compiling = _in_c()
        sampled = _run(self._model, sampling, compiling)
        sizes = sampled["posterior"].sizes
        if self._model.observed_RVs and _fits((sizes["chain"], sizes["draw"]), self._model):
            with self._model:
                sampled = pm.compute_log_likelihood(sampled, progressbar=False, compile_kwargs=compiling)
        stats = sampled["sample_stats"].to_dataset()
        named = {name: (("chain", "draw"), values) for name, values in standard_stats(stats).items()}
        return Drawn(
            sampled["posterior"].to_dataset(),
            xr.Dataset(named, coords={dim: stats[dim] for dim in ("chain", "draw")}),
            sampled["log_likelihood"].to_dataset() if "log_likelihood" in sampled.children else None,
            *counted(sampled),
            stopped=sizes["draw"] < sampling.draws,
        )


def sampler_of(model: pm.Model, start: Start | None) -> Sampler | _CompiledWhole:
    """Whatever samples a model sooner."""
    try:
        return Sampler(WholeModel(model), start)
    except Heavy as reason:
        _log.info("The model is compiled as a whole, which takes up to a minute the first time, because %s.", reason)
        return _CompiledWhole(model)


def _run(model: pm.Model, sampling: Sampling, compiling: dict[str, Any]) -> xr.DataTree:
    arguments: dict[str, Any] = {
        "draws": sampling.draws,
        "chains": sampling.chains,
        "tune": sampling.tune,
        "target_accept": sampling.target_accept,
        "random_seed": sampling.random_seed,
        "progressbar": sampling.progressbar,
        "quiet": not sampling.progressbar,
        "nuts_sampler": sampling.sampler,
        "discard_tuned_samples": False,
        "compute_convergence_checks": False,  # `diagnose` says it
    }
    if sampling.sampler == "pymc":
        arguments["compile_kwargs"] = compiling
    with model, warnings.catch_warnings():
        # The warm-up is only counted, and nutpie's store of it says so.
        warnings.filterwarnings("ignore", message=".*[Ww]arm-?up.*")
        sampled: xr.DataTree = pm.sample(**(arguments | sampling.more))
    return sampled


def _data_of(model: pm.Model) -> xr.DataTree:
    """The observed and the constant data that a model holds."""
    from arviz_base import from_dict

    groups = {"observed_data": find_observations(model), "constant_data": find_constants(model)}
    dims = {name: list(own) for name, own in model.named_vars_to_dims.items()}
    coords = {dim: np.asarray(values) for dim, values in model.coords.items() if values is not None}
    data: xr.DataTree = from_dict({name: held for name, held in groups.items() if held}, dims=dims, coords=coords)
    return data


def _fits(shape: tuple[int, ...], model: pm.Model) -> bool:
    """Whether the pointwise log-likelihood of so many draws is small enough to be stored; says so if not."""
    values = sum(int(np.prod(model.rvs_to_values[rv].shape.eval())) for rv in model.observed_RVs)
    return small_enough(8 * int(np.prod(shape)) * values)


def _in_c() -> dict[str, Any]:
    if not shutil.which(config.cxx or ""):
        return {}
    # Compiling a matrix product takes numba most of a minute the first time, a C++ compiler a few seconds. The product
    # itself is left to numpy: an installation by pip has no BLAS that C code could link to.
    mode: Any = get_mode("CVM")  # type: ignore[no-untyped-call]
    return {"mode": mode.excluding("BlasOpt", "local_usmm")}
