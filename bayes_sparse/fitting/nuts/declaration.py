"""NUTS of a `pm.Model`, in its own coordinates or in those an evidence fit suggests.

The latter are ``mean + factor z`` on the unconstrained scale: a model with one flat variable z and the density of the
model given. Its draws are put back under the model's own names.
"""

from __future__ import annotations

import logging
import shutil
import warnings
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import xarray as xr
from pymc.backends.arviz import find_constants, find_observations
from pymc.initial_point import make_initial_point_fn
from pytensor.compile.mode import get_mode
from pytensor.configdefaults import config
from pytensor.graph.replace import graph_replace

from bayes_sparse.common.checks import small_enough
from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.fitting.nuts.density import counted, standard_stats
from bayes_sparse.fitting.nuts.start import Start
from bayes_sparse.inference.sampling import Sampling

__all__ = ["sample_model"]

_log = logging.getLogger("bayes_sparse")


def sample_model(model: pm.Model, start: Start | None, sampling: Sampling) -> tuple[xr.DataTree, int, int]:
    """Draws, with the pointwise log-likelihood, and evaluations of the gradient after and during warm-up."""
    compiling = _in_c()
    seen = model if start is None else _Whitened(model, start)
    sampled = _run(seen.model if isinstance(seen, _Whitened) else seen, sampling, compiling)
    evaluations = counted(sampled)
    posterior = sampled["posterior"].to_dataset()
    if isinstance(seen, _Whitened):
        posterior = seen.put_back(posterior["z"], compiling)
    stats = sampled["sample_stats"].to_dataset()
    named = {name: (("chain", "draw"), values) for name, values in standard_stats(stats).items()}
    groups = {
        "/posterior": posterior,
        "/sample_stats": xr.Dataset(named, coords={dim: stats[dim] for dim in ("chain", "draw")}),
    }
    tree = xr.DataTree.from_dict(groups)
    for name, group in _data_of(model).children.items():
        tree[name] = group
    if model.observed_RVs and _fits(tree, model):
        with model:
            tree = pm.compute_log_likelihood(tree, progressbar=False, compile_kwargs=compiling)
    return tree, *evaluations


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
    else:
        _log.info("Compiling the model for nutpie: some ten seconds, the first time on a machine up to a minute.")
    with model, warnings.catch_warnings():
        # The warm-up is only counted, and nutpie's store of it says so.
        warnings.filterwarnings("ignore", message=".*[Ww]arm-?up.*")
        sampled: xr.DataTree = pm.sample(**(arguments | sampling.more))
    return sampled


class _Whitened:
    """A model in the coordinates of a start.

    Parameters
    ----------
    model : pymc.Model
        The declaration.
    start : Start
        Point and metric.
    """

    def __init__(self, model: pm.Model, start: Start) -> None:
        self._of = model
        by_name = {rv.name: rv for rv in model.free_RVs}
        overrides = {by_name[name]: value for name, value in start.values.items()}
        point = make_initial_point_fn(model=model, overrides=overrides, jitter_rvs=set(), return_transformed=True)(0)
        usual = model.initial_point()
        # A value outside the support that is declared, such as a lambda beyond its bounds, is no place to start.
        point = {name: np.where(np.isfinite(value), value, usual[name]) for name, value in point.items()}
        values = {rv.name: model.rvs_to_values[rv] for rv in model.free_RVs}
        self._shapes = {name: np.shape(point[value.name]) for name, value in values.items()}
        sizes = [int(np.prod(shape)) for shape in self._shapes.values()]
        self._ends = dict(zip(values, np.cumsum(sizes).tolist(), strict=True))
        self._mean = np.concatenate([np.ravel(point[value.name]) for value in values.values()]).astype(float)
        self._scale = np.ones(len(self._mean))
        for name, sd in start.sds.items():
            self._scale[self._inside(name)] = np.ravel(sd)
        starts = {name: self._inside(name).start for name in values}
        self._block: IntArray = np.array([starts[name] + position for name, position in start.places], dtype=int)
        self._factor = start.factor
        with pm.Model() as self.model:
            z = pm.Flat("z", shape=len(self._mean))
            flat = self._mean + self._scale * z
            if len(self._block):
                flat = flat[self._block].set(self._mean[self._block] + pm.math.dot(self._factor, z[self._block]))
            pieces = {
                value: pt.cast(flat[self._inside(name)].reshape(self._shapes[name]), value.dtype)
                for name, value in values.items()
            }
            pm.Potential("density", graph_replace(model.logp(), pieces, strict=False))

    def _inside(self, name: str) -> slice:
        return slice(self._ends[name] - int(np.prod(self._shapes[name])), self._ends[name])

    def put_back(self, z: xr.DataArray, compiling: dict[str, Any]) -> xr.Dataset:
        """The draws of the model's own variables, deterministic ones too."""
        drawn = z.transpose("chain", "draw", ...).to_numpy()
        flat = self._mean + self._scale * drawn
        if len(self._block):
            flat[..., self._block] = self._mean[self._block] + drawn[..., self._block] @ self._factor.T
        model = self._of
        wanted = [*model.free_RVs, *model.deterministics]
        outputs = model.replace_rvs_by_values(wanted)
        inputs = [model.rvs_to_values[rv] for rv in model.free_RVs]
        function = model.compile_fn(outputs, inputs=inputs, point_fn=False, **compiling)
        rows = flat.reshape(-1, flat.shape[-1])
        found: list[list[FloatArray]] = [[] for _ in wanted]
        for row in rows:
            pieces = [row[self._inside(rv.name)].reshape(self._shapes[rv.name]) for rv in model.free_RVs]
            for values, value in zip(found, function(*pieces), strict=True):
                values.append(np.array(value))
        dims = model.named_vars_to_dims
        variables, coords = {}, {"chain": z["chain"].to_numpy(), "draw": z["draw"].to_numpy()}
        for variable, values in zip(wanted, found, strict=True):
            stacked = np.stack(values).reshape(*drawn.shape[:2], *values[0].shape)
            own = dims.get(variable.name) or tuple(f"{variable.name}_dim_{i}" for i in range(stacked.ndim - 2))
            variables[variable.name] = (("chain", "draw", *own), stacked)
            coords |= {dim: np.asarray(model.coords[dim]) for dim in own if model.coords.get(dim) is not None}
        return xr.Dataset(variables, coords=coords)


def _data_of(model: pm.Model) -> xr.DataTree:
    """The observed and the constant data that a model holds."""
    from arviz_base import from_dict

    groups = {"observed_data": find_observations(model), "constant_data": find_constants(model)}
    dims = {name: list(own) for name, own in model.named_vars_to_dims.items()}
    coords = {dim: np.asarray(values) for dim, values in model.coords.items() if values is not None}
    data: xr.DataTree = from_dict({name: held for name, held in groups.items() if held}, dims=dims, coords=coords)
    return data


def _fits(tree: xr.DataTree, model: pm.Model) -> bool:
    """Whether the pointwise log-likelihood is small enough to be stored; says so if not."""
    sizes = tree["posterior"].sizes
    values = sum(int(np.prod(model.rvs_to_values[rv].shape.eval())) for rv in model.observed_RVs)
    return small_enough(8 * sizes["chain"] * sizes["draw"] * values)


def _in_c() -> dict[str, Any]:
    if not shutil.which(config.cxx or ""):
        _log.info("Compiling the model for NUTS; the first time on a machine this takes about a minute.")
        return {}
    # Compiling a matrix product takes numba most of a minute the first time, a C++ compiler a few seconds. The product
    # itself is left to numpy: an installation by pip has no BLAS that C code could link to.
    mode: Any = get_mode("CVM")  # type: ignore[no-untyped-call]
    return {"mode": mode.excluding("BlasOpt", "local_usmm")}
