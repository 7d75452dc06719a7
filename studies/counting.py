"""What intervals of an evidence fit cover, by what is asked of them: how many rows, which fit, which weights count.

The data sets are those of the calibration study with three columns and no slab. Figures of coverage differ by tens of
per cent between one way of counting and another, so they mean nothing without it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from bayes_sparse.common.progress import quiet
from bayes_sparse.fitting.fit import fit
from bayes_sparse.inputs.basis import linear
from bayes_sparse.models import ARDGaussian
from studies.calibration import VERSION, Settings, simulated
from studies.cells import Array, Cell, Crew, arrays

__all__ = ["ROWS", "WAYS", "counted", "counting"]

ROWS = (50, 100, 200)
WAYS: dict[str, dict[str, Any]] = {
    "the default fit": {},
    "… its weights as selected (`reestimate=False`)": {"reestimate": False},
    "… selected without a price (`smoothness=0`)": {"smoothness": 0.0},
    "Gamma(2, 2), that of the simulation": {"hyper": (2.0, 2.0), "slab": None},
    "Gamma(2, 2), slab 2.5": {"hyper": (2.0, 2.0), "slab": 2.5},
}


def counted(rows: int, way: str, number: int, version: int = VERSION) -> Array:
    """One data set: how many sds each true weight is from its estimate; infinitely many where it was pruned."""
    data = simulated(Settings(columns=3, slab=None, rows=rows), number)
    model, basis = ARDGaussian(bias_sd=1.0), linear(standardise=False)
    with quiet():
        tree = fit(
            model, (data.X, data.y), likelihood="bernoulli", basis=basis, draws=0, progressbar=False, **WAYS[way]
        )
    evidence = tree["evidence"].to_dataset()
    mean, sd = evidence["mean"].to_numpy(), evidence["sd"].to_numpy()
    with np.errstate(divide="ignore"):
        return np.asarray(np.abs(data.truth[:3] - mean) / sd)


def counting(data_sets: int, directory: Path, *, workers: int = 1) -> pd.DataFrame:
    """Shares of the weights inside their intervals: a row a way of fitting, columns by rows, level and what counts."""
    table: dict[str, dict[str, float]] = {}
    for way in WAYS:
        table[way] = {}
        for rows in ROWS:
            cells = [Cell(counted, (rows, way, number, VERSION)) for number in range(data_sets)]
            z = np.stack(arrays(cells, directory, Crew(workers)))
            for level in (0.9, 0.95):
                table[way][f"{rows} rows, {level:.0%}"] = float(np.mean(z < norm.ppf((1 + level) / 2)))
            kept = z[np.isfinite(z)]
            table[way][f"{rows} rows, 95%, kept alone"] = float(np.mean(kept < norm.ppf(0.975)))
    return pd.DataFrame.from_dict(table, orient="index")
