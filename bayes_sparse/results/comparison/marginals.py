"""The marginal posteriors of a tree's parameters by name, and how far two of them are apart."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy.special import ndtri

from bayes_sparse.common.types import FloatArray
from bayes_sparse.trees.read import stored, was_sampled

__all__ = [
    "Marginals",
    "aligned_marginals",
    "differences",
    "marginals",
    "overlap",
    "wasserstein",
    "weight_names",
    "weight_variables",
]

_WORST = 100  # parameters whose bulk ESS is looked at: those with the smallest ESS of the mean


@dataclass(frozen=True, eq=False)
class Marginals:
    """Marginals of one tree; weights that it pruned are not among them.

    Attributes
    ----------
    names : array (K,) of str
        Parameters: "bias", "w[x1]" ...
    weight : bool array (K,)
        Which of them are weights, that other trees may have pruned.
    mean, sd, mcse : array (K,)
        Moments, and the Monte-Carlo error of the mean: zero where the moments are known without draws.
    draws : array (S, K), optional
        All chains one after the other.
    normal : bool array (K,)
        Which are normal with exactly these moments, so that no draws are needed to know them.
    effective : float
        Effective number of draws: the smallest bulk ESS of a sampler, the number of independent draws.
    """

    names: NDArray[np.str_]
    weight: NDArray[np.bool_]
    mean: FloatArray
    sd: FloatArray
    mcse: FloatArray
    draws: FloatArray | None
    normal: NDArray[np.bool_]
    effective: float

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Which are not exactly zero."""
        return np.asarray((self.sd > 0) | (self.mean != 0))

    def at(self, names: NDArray[np.str_], weight: NDArray[np.bool_]) -> Marginals:
        """The same in another order: weights that are missing are exactly zero, anything else is unknown (NaN)."""
        place = {name: j for j, name in enumerate(self.names.tolist())}
        found = np.array([place.get(name, -1) for name in names.tolist()], dtype=int)
        there, absent = found >= 0, np.where(weight, 0.0, np.nan)

        def moved(values: FloatArray) -> FloatArray:
            out = absent.copy()
            out[there] = values[found[there]]
            return out

        draws = None
        if self.draws is not None:
            draws = np.broadcast_to(absent, (len(self.draws), len(names))).copy()
            draws[:, there] = self.draws[:, found[there]]
        normal = weight.copy()  # a pruned weight is a point
        normal[there] = self.normal[found[there]]
        moments = moved(self.mean), moved(self.sd), moved(self.mcse)
        return Marginals(names, weight, *moments, draws, normal, self.effective)

    def sample(self, size: int) -> FloatArray:
        """Sorted values (K, size): quantiles of what is normal, thinned draws of anything else."""
        values = np.asarray(self.mean[:, None] + self.sd[:, None] * ndtri((np.arange(size) + 0.5) / size))
        if self.draws is not None:
            chosen = np.linspace(0, len(self.draws) - 1, size).round().astype(int)
            values[~self.normal] = np.sort(self.draws[np.ix_(chosen, ~self.normal)].T, axis=1)
        return values


def aligned_marginals(trees: dict[str, xr.DataTree]) -> tuple[dict[str, Marginals], int]:
    """Marginals of the parameters that any tree keeps, in one order, and how many terms there are to choose among."""
    variables = weight_variables(trees)
    found = {name: marginals(tree, variables) for name, tree in trees.items()}
    order: dict[str, bool] = {}
    for own in sorted(found.values(), key=lambda one: -len(one.names)):  # the longest list has the tidiest order
        order |= {str(n): bool(w) for n, w in zip(own.names, own.weight, strict=True) if str(n) not in order}
    names = np.array(list(order), dtype=str)
    weight: NDArray[np.bool_] = np.array(list(order.values()), dtype=bool)
    offered = [len(labels) for tree in trees.values() for _, labels in stored(tree).vectors.values()]
    return {name: own.at(names, weight) for name, own in found.items()}, max([int(weight.sum()), *offered])


def weight_variables(trees: dict[str, xr.DataTree]) -> set[str]:
    """Names of the variables whose entries may be pruned, over all trees."""
    names: set[str] = set()
    for tree in trees.values():
        names |= set(stored(tree).vectors)
        asked = stored(tree).asked
        names |= {*asked.sparse, *asked.grouped}
    return names


def marginals(tree: xr.DataTree, weights: set[str]) -> Marginals:
    """Read the marginals off a tree; ``weights`` are the names of the variables that are pruned."""
    known = {} if was_sampled(tree) or stored(tree).corrected else _moments(tree)
    if "posterior" not in tree.children:
        kept = {name: (mean, sd) for name, (mean, sd) in known.items() if mean != 0 or sd > 0}
        mean, sd = np.array(list(kept.values())).reshape(-1, 2).T
        names = np.array(list(kept), dtype=str)
        everything = np.ones(len(names), dtype=bool)
        return Marginals(names, _are_weights(names, weights), mean, sd, np.zeros(len(names)), None, everything, np.nan)
    names, draws = _drawn(tree)
    flat = draws.reshape(-1, len(names))
    mean, sd = flat.mean(axis=0), flat.std(axis=0, ddof=1)
    mcse, effective = _monte_carlo_error(tree, draws, sd)
    normal = np.zeros(len(names), dtype=bool)
    for j, name in enumerate(names.tolist()):
        if name in known:
            mean[j], sd[j], mcse[j], normal[j] = *known[name], 0.0, _is_normal(tree)
    return Marginals(names, _are_weights(names, weights), mean, sd, mcse, flat, normal, effective)


def _is_normal(tree: xr.DataTree) -> bool:
    """Whether an evidence fit's posterior is normal: not where directions have Laplace priors."""
    return not (stored(tree).by_direction and tree["evidence"].attrs.get("prior") != "gaussian")


def _are_weights(names: NDArray[np.str_], weights: set[str]) -> NDArray[np.bool_]:
    return np.array([name.split("[")[0] in weights for name in names.tolist()], dtype=bool)


def _drawn(tree: xr.DataTree) -> tuple[NDArray[np.str_], FloatArray]:
    """Names and draws (chain, draw, K) of the parameters; of a named model not its hyper-parameters."""
    fit = stored(tree)
    posterior = fit.parameters
    assert posterior is not None
    variables = [str(name) for name in posterior.data_vars]
    if not fit.declared:
        variables = [name for name in ("bias", *fit.vectors, *fit.likelihood.nuisance) if name in variables]
    names: list[str] = []
    parts = [np.empty((posterior.sizes["chain"], posterior.sizes["draw"], 0))]
    for name in variables:
        values = posterior[name].transpose("chain", "draw", ...)
        names += _entries(tree, values.isel(chain=0, draw=0, drop=True))
        parts.append(values.to_numpy().reshape(*values.shape[:2], -1).astype(float))
    draws = np.concatenate(parts, axis=2)
    moving = np.flatnonzero(np.ptp(draws, axis=(0, 1)) > 0)  # a matrix of weights holds its pruned entries as zeros
    return np.array(names, dtype=str)[moving], draws[..., moving]


def _entries(tree: xr.DataTree, values: xr.DataArray) -> list[str]:
    """A name an entry: that of the variable, with labels in brackets if it has dims."""
    if not values.dims:
        return [str(values.name)]
    labels = [_labels(tree, values, str(dim)) for dim in values.dims]
    return [f"{values.name}[{', '.join(map(str, place))}]" for place in product(*labels)]


def _labels(tree: xr.DataTree, values: xr.DataArray, dim: str) -> list[Any]:
    if dim in values.coords:
        return list(values[dim].to_numpy().tolist())
    constant = tree["constant_data"].to_dataset() if "constant_data" in tree.children else xr.Dataset()
    return list(constant[dim].to_numpy().tolist()) if dim in constant else list(range(values.sizes[dim]))


def weight_names(tree: xr.DataTree) -> list[str]:
    """A parameter's name for every basis function of an evidence fit."""
    basis = [str(label) for label in tree["evidence"]["basis"].to_numpy().tolist()]
    vectors = stored(tree).vectors
    if len(vectors) != 1:
        return basis
    ((name, (_, labels)),) = vectors.items()
    return [f"{name}[{label}]" for label in labels] if len(labels) == len(basis) else basis


def _moments(tree: xr.DataTree) -> dict[str, tuple[float, float]]:
    """Mean and sd that an evidence fit knows without draws: of weights and of the parameters it never prunes."""
    evidence, basis = tree["evidence"].to_dataset(), weight_names(tree)
    out: dict[str, tuple[float, float]] = {}
    for name in map(str, evidence.data_vars):
        if f"{name}_sd" in evidence and name not in ("u", "mean"):
            entries = _entries(tree, evidence[name])
            pairs = zip(evidence[name].to_numpy().ravel(), evidence[f"{name}_sd"].to_numpy().ravel(), strict=True)
            out |= {entry: (float(mean), float(sd)) for entry, (mean, sd) in zip(entries, pairs, strict=True)}
    pairs = zip(evidence["mean"].to_numpy(), stored(tree).posterior_sd, strict=True)
    return out | {entry: (float(mean), float(sd)) for entry, (mean, sd) in zip(basis, pairs, strict=True)}


def _monte_carlo_error(tree: xr.DataTree, draws: FloatArray, sd: FloatArray) -> tuple[FloatArray, float]:
    """Error of each mean, and the effective number of draws."""
    if stored(tree).corrected:
        effective = float(stored(tree).diagnosis["effective_draws"])
        return sd / np.sqrt(effective), effective
    if not was_sampled(tree):
        effective = float(draws.shape[0] * draws.shape[1])
        return sd / np.sqrt(effective), effective
    if not draws.shape[2]:
        return np.empty(0), np.nan
    stats: Any = import_module("arviz_stats")  # takes most of a second, and fitting does not need it

    data = xr.Dataset({"all": (("chain", "draw", "parameter"), draws)})
    mcse: FloatArray = stats.mcse(data)["all"].to_numpy().astype(float)
    worst = np.argsort(sd / mcse)[:_WORST]
    bulk = stats.ess(data.isel(parameter=worst), method="bulk")["all"].to_numpy()
    return mcse, float(np.min(bulk))


_MOST = 4000  # values of a parameter that two marginals are compared by
_TOGETHER = 4_000_000  # the same over all parameters
_BINS = 16  # equally likely in both samples together


def differences(own: Marginals, reference: Marginals) -> pd.DataFrame:
    """A row a parameter, for two marginals of the same parameters in the same order.

    The unit of differences is the reference's sd, and the tree's own where the reference has pruned the parameter.
    """
    unit = np.where(reference.sd > 0, reference.sd, own.sd)
    mcse = np.hypot(own.mcse, reference.mcse)
    a, b = (side.sample(_size(own, reference)) for side in (own, reference))
    with np.errstate(divide="ignore", invalid="ignore"):
        table = pd.DataFrame(
            {
                "mean": own.mean,
                "sd": own.sd,
                "reference_mean": reference.mean,
                "reference_sd": reference.sd,
                "difference": (own.mean - reference.mean) / unit,
                "mcse": mcse / unit,
                "sd_ratio": own.sd / reference.sd,
                "overlap": overlap(a, b),
                "wasserstein": wasserstein(a, b) / unit,
            },
            index=pd.Index(own.names, name="parameter"),
        )
    points = unit == 0
    table.loc[points, "mcse"] = 0.0
    table.loc[points & (own.mean == reference.mean), ["difference", "wasserstein"]] = 0.0  # in the same place
    return table


def _size(own: Marginals, reference: Marginals) -> int:
    """How many values of each parameter are compared; a multiple of the bins."""
    counts = [len(side.draws) for side in (own, reference) if side.draws is not None and not side.normal.all()]
    size = min(*counts, _MOST, max(_TOGETHER // max(len(own.names), 1), 500)) if counts else _MOST // 4
    return max(size // _BINS, 1) * _BINS


def overlap(a: FloatArray, b: FloatArray) -> FloatArray:
    """Area that two densities share, from sorted samples (K, S) of equal size S.

    A histogram over bins that are equally likely in both samples together. Chance takes sqrt(bins / (pi S)) off the 1
    of equal densities. A point shares nothing with a density.
    """
    size = a.shape[1]
    from_a = np.argsort(np.concatenate([a, b], axis=1), axis=1, kind="stable") < size
    in_bin = from_a.reshape(len(a), _BINS, 2 * size // _BINS).sum(axis=2)
    shared = np.minimum(in_bin, 2 * size // _BINS - in_bin).sum(axis=1) / size
    points = (a[:, 0] == a[:, -1]) | (b[:, 0] == b[:, -1])
    together = points & (a[:, 0] == b[:, 0]) & (a[:, -1] == b[:, -1])
    unknown = np.isnan(a).any(axis=1) | np.isnan(b).any(axis=1)
    return np.where(unknown, np.nan, np.where(points, together.astype(float), shared))


def wasserstein(a: FloatArray, b: FloatArray) -> FloatArray:
    """Mean distance that the one has to be moved to become the other, from sorted samples (K, S) of equal size."""
    return np.asarray(np.abs(a - b).mean(axis=1))
