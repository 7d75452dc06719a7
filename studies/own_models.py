"""Evidence beside NUTS of the same model: ten models as people write them, from the corpus of the tests.

Of each the weights, the random effects and the nuisance parameters are compared, one by one, in posterior sds of NUTS:
by default, with flat priors on the scales of weights; with ``hyper="declared"``, with the priors that NUTS has; and
with the draws of that re-weighted by `bs.correct`.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import arviz as az
import numpy as np
import pandas as pd
import xarray as xr

from bayes_sparse.common.progress import quiet
from bayes_sparse.fitting.fit import fit
from bayes_sparse.results.correct import correct
from studies.calibration import data_set_bar
from studies.results import Record, once

__all__ = ["FITS", "MODELS", "Own", "apart", "fitted", "own_models", "table"]

VERSION = 1  # of the steps: raise it when the same settings give other results
FITS: dict[str, dict[str, Any]] = {
    "nuts": {"method": "nuts"},
    "evidence": {},
    "declared": {"hyper": "declared"},
    "corrected": {"hyper": "declared"},  # and re-weighted towards the exact posterior
}


class Own(NamedTuple):
    """A model of the tests.

    Attributes
    ----------
    module, name : str
        Where it is: a function that builds it, or the name of a Bambi model.
    variables : tuple of str
        What is compared.
    """

    module: str
    name: str
    variables: tuple[str, ...]

    def build(self) -> Any:
        """The model with its data."""
        if self.module.endswith("bambi_models"):
            return importlib.import_module(self.module).CASES[self.name].model()
        return getattr(importlib.import_module(self.module), self.name)()


def _own(file: str, name: str, *variables: str) -> Own:
    return Own(f"tests.user_models.{file}", name, variables)


_TERMS = ("Intercept", "x", "z", "noise1", "noise2", "kind", "dull", "1|area", "1|area_sigma", "sigma")
MODELS: dict[str, Own] = {
    "non-centred regularised horseshoe": _own("priors", "non_centred_regularised_horseshoe", "w", "b", "sigma"),
    "Bambi, categories and groups": Own("tests.fitting.bambi_models", "normal", _TERMS),
    "ordered logistic": _own("counts_and_classes", "ordered_logistic", "w", "cutpoints"),
    "softmax": _own("counts_and_classes", "softmax", "w", "b"),
    "Weibull, censored": _own("likelihoods", "weibull_survival", "w", "b", "shape"),
    "negative binomial, exposure": _own("counts_and_classes", "negative_binomial_exposure", "w", "b", "dispersion"),
    "HSGP beside sparse weights": _own("smooth", "hilbert_space_process", "w", "f", "ell", "eta", "sigma"),
    "a scale per group of columns": _own("groups", "scale_of_group", "w", "b", "sigma"),
    "mean and log-noise": _own("several", "heteroscedastic", "w", "v", "b", "c"),
    "masked observations": _own("likelihoods", "missing_masked", "w", "b", "sigma", "y_unobserved"),
}


def fitted(model: Own, way: str, draws: int) -> Record:
    """What is kept of one fit: how long it took, how it ended, and each number's mean and sd."""
    started = time.perf_counter()
    with quiet():
        try:
            tree = fit(model.build(), draws=draws, chains=4, random_seed=1, progressbar=False, **FITS[way])
            tree = correct(tree, random_seed=1) if way == "corrected" else tree
        except ValueError as refused:
            return {"refused": str(refused)}
    seconds = time.perf_counter() - started
    told = _chains(tree, model) if way == "nuts" else {"status": tree["evidence"].attrs["status"]}
    found = az.summary(tree, var_names=list(model.variables), kind="stats", round_to="none")
    return {"seconds": seconds, **told, **{name: found[name].astype(float).to_dict() for name in ("mean", "sd")}}


def _chains(tree: xr.DataTree, model: Own) -> Record:
    """What the chains say of themselves, over all that is compared."""
    found = az.summary(tree, var_names=list(model.variables), kind="diagnostics", round_to="none").astype(float)
    return {
        "r_hat": found["r_hat"].max(),
        "draws": found["ess_bulk"].min(),
        "divergences": int(tree["sample_stats"]["diverging"].sum()),
        "compiled": tree["posterior"].attrs["compiled"],
        "retried": tree["posterior"].attrs["retried"],
    }


def apart(one: Record, nuts: Record) -> pd.DataFrame:
    """By number: how far the means are apart, in sds of NUTS, and the sd as a share of that of NUTS.

    Parameters
    ----------
    one, nuts : dict
        Two fits of the same model, from `fitted`.

    Returns
    -------
    DataFrame
        ``difference``, not negative, and ``ratio``, which is zero for what is pruned or held at a point.
    """
    by_fit = [pd.DataFrame({name: found[name] for name in ("mean", "sd")}) for found in (one, nuts)]
    ours, theirs = by_fit[0].loc[by_fit[1].index], by_fit[1]
    difference = (ours["mean"] - theirs["mean"]).abs() / theirs["sd"]
    return pd.DataFrame({"difference": difference, "ratio": ours["sd"] / theirs["sd"]})


def own_models(
    output: Path, *, draws: int = 500, models: Mapping[str, Own] = MODELS, progressbar: bool = True
) -> dict[str, dict[str, Record]]:
    """Every fit of every model, read where it is stored and stored where it is not.

    Parameters
    ----------
    output : Path
        Where each fit is kept when it is done. It is that of the code that made it: another version of the package
        wants another folder.
    draws : int
        Of each of four chains.
    models : dict of Own
        Which models.
    progressbar : bool
        Show a bar over the fits.

    Returns
    -------
    dict
        By model, then by the names of `FITS`, what `fitted` keeps.
    """
    found: dict[str, dict[str, Record]] = {}
    with data_set_bar(progressbar) as bar:
        task = bar.add_task("", total=len(models) * len(FITS))
        for title, model in models.items():
            for way in FITS:
                bar.update(task, description=f"{title}: {way}")
                path, plan = output / f"{model.name}_{way}.json", {"version": VERSION, "draws": draws, "model": model}
                found.setdefault(title, {})[way] = once(path, plan, partial(fitted, model, way, draws))
                bar.advance(task)
    return found


_HEAD = (
    "seconds: evidence, declared, NUTS",
    "NUTS: R̂, effective draws, divergences",
    "default: largest of what is kept",
    "of what is pruned",
    "median",
    "ratio of sds",
    "declared: largest",
    "median",
    "ratio of sds",
    "corrected: largest",
)


def table(found: Mapping[str, Mapping[str, Record]]) -> str:
    """Markdown, a row per model; a largest difference has the name of what it is of."""
    lines = [f"| | {' | '.join(_HEAD)} |", "|" + " --- |" * (1 + len(_HEAD))]
    for title, fits in found.items():
        nuts = fits["nuts"]
        default, declared, corrected = (_beside(fits[way], nuts) for way in ("evidence", "declared", "corrected"))
        pruned = default["ratio"] == 0
        cells = [
            ", ".join(f"{fits[way].get('seconds', np.nan):.1f}" for way in ("evidence", "declared", "nuts")),
            f"{nuts['r_hat']:.3f}, {nuts['draws']:.0f}, {nuts['divergences']}",
            _largest(default[~pruned]),
            _largest(default[pruned]),
            *_middle(default),
            _largest(declared),
            *_middle(declared),
            _largest(corrected),
        ]
        lines.append(f"| {' | '.join([title, *cells])} |")
    return "\n".join(lines) + "\n"


def _beside(one: Record, nuts: Record) -> pd.DataFrame:
    """Differences; none for a fit that was refused."""
    return pd.DataFrame({"difference": [], "ratio": []}) if "refused" in one else apart(one, nuts)


def _largest(differences: pd.DataFrame) -> str:
    if differences.empty:
        return ""
    worst = str(differences["difference"].idxmax()).replace("|", "\\|")  # which ends a cell
    return f"{differences['difference'].max():.2f} `{worst}`"


def _middle(differences: pd.DataFrame) -> tuple[str, str]:
    """The median difference, and the range of ratios of what is kept."""
    if differences.empty:
        return "", ""
    ratio = differences["ratio"][differences["ratio"] > 0]
    return f"{differences['difference'].median():.2f}", f"{ratio.min():.2f} to {ratio.max():.2f}"
