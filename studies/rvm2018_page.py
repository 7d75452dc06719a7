"""The page of the study of relevance vector machines: the 2018 report's table and Tipping's beside ours."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from bayes_sparse.common.progress import quiet
from bayes_sparse.fitting.fit import fit
from bayes_sparse.inputs.basis import rbf
from bayes_sparse.results.predict.predict import predict
from studies.halves import markdown
from studies.rvm2018 import METHODS, PROBLEMS

__all__ = ["PRINTED", "page", "picture"]

# What is printed of the RVM, error and kept: in the 2018 report, whose mean squares of sinc we take roots of, then in
# Tipping (2001).
PRINTED: dict[str, tuple[str, str]] = {
    "sinc": ("0.0103, 11", ""),
    "sinc, noise 0.2": ("0.045, 12", "6.7 vectors"),
    "Boston, 481 rows": ("", "7.46, 39.0"),
    "Boston, 90 rows": ("16.2, 45.7", ""),
    "Ripley": ("", "9.3%, 4"),
    "like Ripley": ("about 20%, 4", ""),
    "Pima, 200 and 332": ("", "65 wrong (19.6%), 4"),
    "Pima, of all 768": ("100 wrong, 70", ""),
}


def page(table: pd.DataFrame) -> str:
    """A row per problem, method and width."""
    lines = []
    for name in (name for name in PROBLEMS if name in table["set"].unique()):
        for method in METHODS:
            own = table[(table["set"] == name) & (table["method"] == method)]
            for width, rows in own.groupby(own["width"].astype(str), sort=False):
                lines.append(_line(name, method, str(width), rows))
    return markdown(lines) + "\n"


def _line(name: str, method: str, width: str, rows: pd.DataFrame) -> dict[str, str]:
    used = rows["width_used"].mean()
    shown = {"evidence": f"evidence: {used:.2f}", "": ""}.get(width, f"{used:.2f}")
    report, tipping = PRINTED[name]
    return {
        "": name,
        "method": method,
        "width": shown,
        "error": _error(name, rows["error"], rows["wrong"]),
        "largest": f"{rows['largest'].mean():.2g}" if name == "sinc" else "",
        "kept": f"{rows['kept'].mean():.1f}",
        "log score": "" if method == "SVM" else f"{rows['log_score'].mean():.3f}",
        "seconds": f"{rows['seconds'].mean():.3f}",
        "ended": ", ".join(f"{n} {word}" for word, n in rows["status"].value_counts().items()),
        "2018": report if method == "RVM" else "",
        "Tipping 2001": tipping if method == "RVM" else "",
    }


def _error(name: str, error: pd.Series, wrong: pd.Series) -> str:
    """Root mean squared distance for curves, mean square for prices, per cent and number for classes."""
    if name.startswith("sinc"):
        error = np.sqrt(error)
    spread = f" ± {error.std(ddof=1) / np.sqrt(len(error)):.2g}" if len(error) > 1 else ""
    if name.startswith(("sinc", "Boston")):
        return f"{error.mean():.3g}{spread}"
    return f"{error.mean():.1f}%{spread} ({wrong.mean():.0f} wrong)"


def picture(path: Path) -> None:
    """Both curves, and the boundary on Ripley's set."""
    figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    with quiet():
        for axis, name, width in ((axes[0], "sinc", 3.0), (axes[1], "sinc, noise 0.2", 3.0)):
            _curve(axis, name, width)
        _boundary(axes[2])
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _curve(axis: Axes, name: str, width: float) -> None:
    data = PROBLEMS[name].data(0)
    tree = fit("ard_gaussian", (data.X, data.y), basis=rbf(width), smoothness=0, draws=0, progressbar=False)
    kept, mean = tree["evidence"]["kept"].to_numpy(), predict(tree, data.new)["mean"].to_numpy()
    axis.plot(data.X[:, 0], data.y, ".", color="0.7", ms=4)
    axis.plot(data.new[:, 0], data.new_y, color="k", lw=0.8, ls="--")
    axis.plot(data.new[:, 0], mean, color="C0")
    axis.plot(data.X[kept, 0], data.y[kept], "o", mfc="none", mec="C3", ms=8)
    axis.set_title(f"{name}: {kept.sum()} relevance vectors", fontsize=10)


def _boundary(axis: Axes) -> None:
    data = PROBLEMS["Ripley"].data(0)
    tree = fit(
        "ard_gaussian",
        (data.X, data.y),
        likelihood="bernoulli",
        basis=rbf(0.5),
        draws=0,
        progressbar=False,
        **METHODS["RVM"],
    )
    kept = tree["evidence"]["kept"].to_numpy()
    x, y = (np.linspace(data.X[:, i].min() - 0.1, data.X[:, i].max() + 0.1, 80) for i in (0, 1))
    grid = np.stack(np.meshgrid(x, y), axis=-1)
    p = predict(tree, grid.reshape(-1, 2))["probability"].to_numpy()[:, 1].reshape(80, 80)
    axis.contour(x, y, p, levels=[0.25, 0.5, 0.75], colors="k", linestyles=["--", "-", "--"], linewidths=1)
    for label, colour in ((0, "C0"), (1, "C1")):
        axis.plot(*data.X[data.y == label].T, ".", color=colour, ms=4)
    axis.plot(*data.X[kept].T, "o", mfc="none", mec="C3", ms=9)
    axis.set_title(f"Ripley: {kept.sum()} relevance vectors", fontsize=10)
