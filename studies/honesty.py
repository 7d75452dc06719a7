"""What intervals and predictions of the default fit are worth: data of many kinds, of which the truth is known.

Nothing is drawn from the model's own prior, and some of the kinds break what the likelihood says. So no interval is
right by construction; what each covers is counted.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy import stats

from bayes_sparse.common.progress import quiet
from bayes_sparse.common.statuses import Status
from bayes_sparse.common.types import FloatArray
from bayes_sparse.fitting.fit import fit
from bayes_sparse.problem.quadrature import average
from bayes_sparse.results.predict.new_rows import columns_at
from bayes_sparse.results.predict.predict import predict
from bayes_sparse.trees.read import stored
from studies.cells import Array, Cell, Crew, arrays, progress
from studies.regimes import REGIMES, Sample, sample
from studies.results import write_whole

__all__ = ["MEASURES", "honesty", "judged", "judged_rows", "summary", "write_honesty"]

VERSION = 1  # of the steps: raise it when the same settings give other results
_STATUSES = [str(status) for status in Status]
_Z = float(stats.norm.ppf(0.975))
_TAIL = 0.025

# What is kept of a data set. "covered": kept true weights whose 95% interval holds the truth; "inside": share of the
# rows held out that are in their 95% interval, NaN for classes; "score", "promised", "oracle": mean log density of
# those rows, what the predictions themselves expect of it (classes alone), and the true one.
MEASURES = ("covered", "kept", "found", "true", "inside", "score", "promised", "oracle", "status", "seconds")


def judged(regime: str, number: int, version: int = VERSION, random_seed: int = 1) -> Array:
    """One data set: its `MEASURES`."""
    data = sample(REGIMES[regime], [random_seed, list(REGIMES).index(regime), number])
    with quiet():
        tree = fit("ard_gaussian", (data.X, data.y), likelihood=REGIMES[regime].likelihood, progressbar=False)
        inside, score, promised = judged_rows(tree, data)
    evidence = tree["evidence"].to_dataset()
    mean, sd = evidence["mean"].to_numpy(), evidence["sd"].to_numpy()
    kept, true = sd > 0, data.weights != 0
    covered = np.abs(mean - data.weights) <= _Z * sd
    status = _STATUSES.index(evidence.attrs["status"])
    found = [np.sum(covered & kept & true), kept.sum(), np.sum(kept & true), true.sum()]
    return np.array([*found, inside, score, promised, data.oracle.mean(), status, evidence.attrs["seconds"]])


def judged_rows(tree: xr.DataTree, data: Sample) -> tuple[float, float, float]:
    """Share of the rows held out inside their intervals, their mean log density, and what was promised of it.

    A normal likelihood's interval is the mean of `predict` and 1.96 sds to each side. A count is inside by the share of
    its own probability that lies between the 2.5% and 97.5% points of its predictive distribution: on average 95% of it
    does, where that distribution is right, whatever its steps. A class has no interval; what its probabilities promise
    of their log score stands in for it.
    """
    X, y, name = data.new_X, data.new_y, stored(tree).likelihood.name
    if name == "normal":
        found = predict(tree, X)
        mean, sd = found["mean"].to_numpy(), found["sd"].to_numpy()
        return float(np.mean(np.abs(y - mean) <= _Z * sd)), float(np.mean(stats.norm.logpdf(y, mean, sd))), np.nan
    if name == "bernoulli":
        p = predict(tree, X)["probability"].to_numpy()
        score = np.log(p[np.arange(len(p)), y.astype(int)])
        return np.nan, float(score.mean()), float(np.sum(p * np.log(p), axis=1).mean())
    at, below = _counted(tree, X, y.astype(float))
    inside = np.clip(below + at, _TAIL, 1 - _TAIL) - np.clip(below, _TAIL, 1 - _TAIL)
    return float(np.mean(inside / at)), float(np.log(at).mean()), np.nan


def _counted(tree: xr.DataTree, X: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Predictive probability of each count, and of all smaller ones."""
    found, evidence = stored(tree), tree["evidence"].to_dataset()
    Phi = columns_at(found, X, evidence["column"].to_numpy())
    mean = Phi @ evidence["coordinate_mean"].to_numpy()
    variance = np.sum((Phi @ evidence["covariance_factor"].to_numpy()) ** 2, axis=1)

    def averaged(probability: Callable[..., Any]) -> FloatArray:
        with np.errstate(over="ignore"):
            return average(lambda eta: (probability(y[:, None], np.exp(eta)), np.zeros_like(eta)), mean, variance)[0]

    at = np.maximum(averaged(stats.poisson.pmf), np.finfo(float).tiny)
    return at, averaged(stats.poisson.cdf) - at


def honesty(data_sets: int, directory: Path, *, workers: int = 1, progressbar: bool = True) -> xr.Dataset:
    """All regimes.

    Parameters
    ----------
    data_sets : int
        Of each regime.
    directory : Path
        Where each is kept when it is done; a run that was stopped goes on where it was, and one can be made longer.
        They are those of the code that made them: another version of the package wants another folder.
    workers : int
        Processes. With more than one, call this under ``if __name__ == "__main__":``.
    progressbar : bool
        Show a bar over the data sets.

    Returns
    -------
    xarray.Dataset
        `MEASURES` by regime and data set.
    """
    cells = [Cell(judged, (regime, number, VERSION)) for regime in REGIMES for number in range(data_sets)]
    with progress("Simulated data sets", progressbar) as report:
        found = np.stack(arrays(cells, directory, Crew(workers), report))
    found = found.reshape(len(REGIMES), data_sets, len(MEASURES))
    variables = {name: (("regime", "data_set"), found[..., i]) for i, name in enumerate(MEASURES)}
    return xr.Dataset(variables, coords={"regime": list(REGIMES)})


def summary(found: xr.Dataset) -> pd.DataFrame:
    """A row for each regime: shares over all its data sets, means over them, and standard errors.

    Parameters
    ----------
    found : xarray.Dataset
        From `honesty`.

    Returns
    -------
    DataFrame
        ``kept true`` and ``all true``: shares of the weights whose 95% interval holds the truth (a missed one has no
        interval); ``kept``, ``false``, ``missed``: a data set; ``inside``; ``promised``: less the score; ``score``:
        less the oracle's; ``seconds``: of a fit; ``se`` behind a name: its standard error.
    """
    mean, N = found.mean("data_set"), found.sizes["data_set"]
    share = mean["covered"] / mean["found"]
    columns = {
        "kept true": share,
        # of a ratio of means, by its linear part
        "kept true se": (found["covered"] - share * found["found"]).std("data_set") / mean["found"] / np.sqrt(N),
        "all true": mean["covered"] / mean["true"],
        "kept": mean["kept"],
        "false": mean["kept"] - mean["found"],
        "missed": mean["true"] - mean["found"],
        "seconds": mean["seconds"],
    }
    gaps = {
        "inside": found["inside"],
        "promised": found["promised"] - found["score"],
        "score": found["score"] - found["oracle"],
    }
    for name, values in gaps.items():
        columns |= {name: values.mean("data_set"), f"{name} se": values.std("data_set") / np.sqrt(N)}
    table = {name: values.to_numpy() for name, values in columns.items()}
    return pd.DataFrame(table, index=pd.Index(found["regime"].to_numpy(), name="regime"))


def write_honesty(found: xr.Dataset, output: Path) -> str:
    """The table as text, also written to ``summary.md``."""
    lines = [
        f"{found.sizes['data_set']} data sets of each kind; ± standard errors.",
        "",
        "| | kept true weights in their 95% interval | all true | kept, false, missed | rows held out in theirs "
        "| log score less the oracle's | ended | ms |",
        "|" + " --- |" * 8,
    ]
    for regime, row in summary(found).to_dict("index").items():
        inside = f"{100 * row['inside']:.1f} ± {100 * row['inside se']:.1f}%"
        if np.isnan(row["inside"]):
            inside = f"promised {row['promised']:+.3f} ± {row['promised se']:.3f}"
        cells = [
            str(regime),
            f"{100 * row['kept true']:.1f} ± {100 * row['kept true se']:.1f}%",
            f"{100 * row['all true']:.0f}%",
            f"{row['kept']:.1f}, {row['false']:.2f}, {row['missed']:.1f}",
            inside,
            f"{row['score']:.4f} ± {row['score se']:.4f}",
            _endings(found["status"].sel(regime=regime).to_numpy()),
            f"{1000 * row['seconds']:.0f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    text = "\n".join(lines) + "\n"
    write_whole(output / "summary.md", text)
    return text


def _endings(statuses: FloatArray) -> str:
    values, counts = np.unique(statuses.astype(int), return_counts=True)
    return ", ".join(f"{_STATUSES[value]} {count}" for value, count in zip(values, counts, strict=True))
