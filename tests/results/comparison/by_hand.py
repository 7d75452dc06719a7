"""Trees made by hand, whose marginals are known."""

import json

import numpy as np
import xarray as xr
from scipy.stats import norm

COLUMNS = ["a", "b", "c"]
Y = np.linspace(-1.0, 1.0, 5)


def normal_values(mean, sd, size=4000, seed=0):
    """Quantiles of a normal in a random order, with exactly these sample moments: as good as infinitely many draws."""
    z = norm.ppf((np.arange(size) + 0.5) / size)
    z = z / z.std(ddof=1)
    return mean + sd * np.random.default_rng(seed).permutation(z)


def sampled(w, *, bias=None, sigma=None, y=Y, target="y", columns=COLUMNS, condition="", seconds=10.0, chains=4):
    """A tree as from NUTS; ``w`` holds the draws of the columns kept by name."""
    shape = (chains, -1)
    coords = {"basis": np.array(list(w), dtype=str)}
    variables = {}
    if w:
        values = np.stack([np.reshape(draws, shape) for draws in w.values()], axis=-1)
        variables["w"] = (("chain", "draw", "basis"), values)
    for name, draws in (("bias", bias), ("sigma", sigma)):
        if draws is not None:
            variables[name] = (("chain", "draw"), np.reshape(draws, shape))
    posterior = xr.Dataset(variables, coords=coords if w else None)
    posterior.attrs = {"method": "nuts", "condition": condition, "seconds": seconds}
    groups = {"posterior": posterior}
    if condition:
        moments = [[of(w[name]) if name in w else 0.0 for name in columns] for of in (np.mean, np.std)]
        groups["evidence"] = approximate(*moments, columns=columns)["evidence"].to_dataset()
    return put_together(groups, y, target, columns)


def approximate(mean, sd, *, y=Y, target="y", columns=COLUMNS, seconds=0.1, hyper=(0.0, 0.0), bias=(0.0, 0.0)):
    """A tree as from an evidence method without draws; a mean and an sd of zero stand for a pruned column."""
    mean, sd = np.asarray(mean, dtype=float), np.asarray(sd, dtype=float)
    kept = np.flatnonzero((mean != 0) | (sd != 0))
    evidence = xr.Dataset(
        {
            "log_evidence": -3.0,
            "mean": ("basis", mean),
            "sd": ("basis", sd),
            "kept": ("basis", (mean != 0) | (sd != 0)),
            "relevant": ("basis", np.abs(mean) > 2 * sd),
            "column": ("coordinate", np.append(kept, len(mean))),
            "coordinate_mean": ("coordinate", np.append(mean[kept], bias[0])),
            "covariance_factor": (("coordinate", "factor"), np.diag(np.append(sd[kept], bias[1]))),
            "theta": ("nuisance", np.array([np.log(0.5)])),
            "bias": bias[0],
            "bias_sd": bias[1],
            "sigma": 0.5,
        },
        coords={"basis": np.array(columns)},
        attrs={"method": "sequential", "status": "converged", "approximation": "exact", "seconds": seconds}
        | {"hyper": list(hyper), "smoothness": 0.0},
    )
    return put_together({"evidence": evidence}, y, target, columns)


def put_together(groups, y, target, columns):
    """The groups with the data and what prediction needs."""
    groups["observed_data"] = xr.Dataset({target: ("obs", np.asarray(y))}, coords={"obs": np.arange(len(y))})
    groups["constant_data"] = xr.Dataset()
    tree = xr.DataTree.from_dict({f"/{name}": group for name, group in groups.items()})
    tree.attrs["bayes_sparse"] = json.dumps(
        {
            "model": "ard_gaussian",
            "likelihood": {"name": "normal"},
            "basis": {"name": "linear", "bias": True, "standardise": True},
            "columns": list(columns),
            "vectors": {"w": ["basis", list(columns)]},
        }
    )
    return tree
