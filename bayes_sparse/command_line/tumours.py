"""The main job: which of the 30 measurements of a tumour matter, how sure we are, and how far to trust that.

Two evidence fits in milliseconds, the posterior of everything by NUTS beside them, and a report of all three.

Run by ``bayes-sparse demo`` and ``make demo``. The data, the Wisconsin breast cancer set, ship with scikit-learn.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import xarray as xr
from rich.console import Console

import bayes_sparse as bs
from bayes_sparse.common.progress import FitProgress

__all__ = ["tumours"]


def tumours(folder: str = "demo_output") -> Path:
    """Fit, predict, sample; print a table and the paths of the picture and of the report.

    Parameters
    ----------
    folder : str
        Where they go.
    """
    console, place = Console(), Path(folder)
    with FitProgress("The demo", True, patience=0) as progress, warnings.catch_warnings():
        warnings.simplefilter("ignore", bs.UndecidedWarning)  # the verdict has the same words
        progress.say("Reading the data")
        data = bs.datasets.load("wdbc")
        held_out = data.sample(frac=0.3, random_state=0).index
        train, test = data.drop(held_out), data.loc[held_out]
        progress.say("Fitting")
        tree = bs.fit("ard_gaussian", train, target="target", random_seed=0, progressbar=False)
        progress.say("Fitting again, against the clock")
        started = time.perf_counter()
        bs.fit("ard_gaussian", train, target="target", draws=0, progressbar=False)
        seconds = time.perf_counter() - started
        progress.say("Predicting the tumours held out, and drawing")
        predicted = bs.predict(tree, test.drop(columns="target"))
        picture = _draw(tree, predicted, test, place)
        progress.say("Weighing the draws against the exact posterior at the same precisions")
        summary = bs.summary(tree)
    title = "Which measurements tell a malignant tumour from a benign one?"
    console.print(f"[bold]{title}[/bold]\n")
    console.print(f"{summary}\n", markup=False, emoji=False, soft_wrap=True)
    _report(console, predicted, test, seconds)
    console.print("Now the posterior of everything by NUTS, and an evidence fit under the same proper prior beside it.")
    same: dict[str, Any] = {"target": "target", "hyper": (1, 0.1), "slab": 2.5, "random_seed": 0}
    fits = {
        "evidence (pruned)": tree,
        "evidence (same prior)": bs.fit("ard_gaussian", train, method="mackay", progressbar=False, **same),
        "NUTS": bs.fit("ard_gaussian", train, method="nuts", **same),
    }
    console.print(f"NUTS: {bs.diagnose(fits['NUTS']).verdict}", soft_wrap=True)
    page = bs.report(fits, place / "report.html", title=title, data=test, target="target")
    console.print(f"The picture: [bold]{picture}[/bold]", soft_wrap=True)
    console.print(f"The report, for a browser: [bold]{page}[/bold]", soft_wrap=True)
    return page


def _report(console: Console, predicted: xr.Dataset, test: pd.DataFrame, seconds: float) -> None:
    truth = test["target"].to_numpy()
    wrong = float(np.mean(predicted["label"].to_numpy() != truth))
    probability = predicted["probability"].sel({"class": xr.DataArray(truth, dims="obs")}).to_numpy()
    console.print(
        f"On {len(truth)} tumours held out: {100 * wrong:.1f}% wrong, log loss {-np.log(probability).mean():.3f}. "
        f"A fit takes {1e3 * seconds:.0f} ms."
    )


def _draw(tree: xr.DataTree, predicted: xr.Dataset, test: pd.DataFrame, folder: Path) -> Path:
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", width_ratios=(1.1, 1))
    bs.plot_relevance(tree, ax=left)
    malignant = predicted["probability"].sel({"class": "M"}).to_numpy()
    order = np.argsort(malignant)
    truth = (test["target"] == "M").to_numpy()
    for label, colour, chosen in (("benign", "#2266aa", ~truth), ("malignant", "#dd7722", truth)):
        rank = np.flatnonzero(chosen[order])
        right.plot(rank, malignant[order][rank], "o", color=colour, ms=4, alpha=0.7, label=f"truly {label}")
    right.axhline(0.5, color="#888888", lw=0.8)
    right.set_xlabel("tumours held out, in order of their probability")
    right.set_ylabel("predicted probability of malignant")
    right.set_title("Probabilities integrate over the weights")
    right.legend(frameon=False)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "demo.png"
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return path
