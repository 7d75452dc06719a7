"""Pictures of an L1 path: where lambda R meets N, how the weights come and go, what cross-validation saw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bayes_sparse.results.plots.fits import BLUE, GREY, ORANGE, axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_cv", "plot_path"]

_NAMED = 8  # largest weights whose paths are labelled


def plot_path(tree: xr.DataTree, *, axes: Sequence[Axes] | None = None) -> Sequence[Axes]:
    """Above, N and lambda R along the path, which a solution makes equal; below, the weights.

    Where lambda R lies below N lambda should grow, where it lies above it should shrink. Full circles are stable
    solutions (all of them after ``all_points=True``, with a smoother picture too); the dashed line is the answer.

    Parameters
    ----------
    tree : xarray.DataTree
        From ``method="reweighted"``.
    axes : two matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    sequence of two matplotlib.axes.Axes
    """
    evidence: Any = tree["evidence"].to_dataset()
    if "path_lambda" not in evidence or evidence.sizes["visited"] < 2:
        raise ValueError(
            "plot_path draws what method='reweighted' visited, without a `lam` of yours; this tree has no path."
        )
    if axes is None:
        import matplotlib.pyplot as plt  # takes longer than most fits: only for those who draw

        axes = plt.subplots(2, 1, sharex=True, figsize=(6.4, 6.0), layout="constrained")[1]
    lam, N, R = (evidence[name].to_numpy() for name in ("path_lambda", "path_N", "path_R"))
    top, bottom = axes[0], axes[1]
    top.step(lam, N, where="mid", color=GREY, lw=1.5, label="N")
    top.plot(lam, lam * R, ".-", color=BLUE, lw=1.5, ms=4, label="λR")
    _mark_solutions(evidence, top)
    top.set_ylim(0, 1.15 * max(N.max(), float(evidence["N"])))
    top.set_ylabel("N, and λR")
    top.legend(frameon=False)
    top.set_title(f"{evidence.attrs['method']}: {evidence.attrs['status']}, {int(evidence['N'])} terms kept")
    _draw_weights(tree, evidence, lam, bottom)
    for ax in (top, bottom):
        ax.set_xscale("log")
        if int(evidence["N"]):
            ax.axvline(float(evidence["lambda"]), color=ORANGE, lw=1, ls="--")
    return axes


def _mark_solutions(evidence: Any, ax: Axes) -> None:
    if "solution" in evidence.sizes:
        lam, height = evidence["solution_lambda"].to_numpy(), evidence["solution_N"].to_numpy()
    elif int(evidence["N"]):
        lam, height = np.atleast_1d(evidence["lambda"]), np.atleast_1d(evidence["N"])
    else:
        return
    ax.plot(lam, height, "o", color=ORANGE, ms=7, label="stable solutions", zorder=5)


def _draw_weights(tree: xr.DataTree, evidence: Any, lam: Any, ax: Axes) -> None:
    weights, unit = evidence["path_w"], "weight"
    if "basis_scale" in tree["constant_data"]:
        scale = tree["constant_data"]["basis_scale"].sel(basis=evidence["ever"].to_numpy()).to_numpy()
        weights, unit = weights * scale, "effect of one standard deviation"
    paths = weights.to_numpy()
    largest = np.argsort(-np.abs(paths).max(axis=0))
    for rank, j in enumerate(largest):
        named = rank < _NAMED
        label = str(evidence["ever"].to_numpy()[j]) if named else None
        ax.plot(
            lam, paths[:, j], lw=1.5 if named else 0.6, color=None if named else GREY, label=label, zorder=3 - named
        )
    ax.axhline(0.0, color=GREY, lw=0.8)
    ax.set_xlabel("λ")
    ax.set_ylabel(unit)
    ax.legend(frameon=False, fontsize="small", ncols=2)


def plot_cv(tree: xr.DataTree, *, ax: Axes | None = None) -> Axes:
    """Held-out loss along the path, with one standard error, and the penalty chosen.

    Parameters
    ----------
    tree : xarray.DataTree
        From ``method="cv"``.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
    """
    evidence: Any = tree["evidence"].to_dataset()
    if "cv_loss" not in evidence:
        raise ValueError("plot_cv draws the held-out loss of method='cv'; this tree has none.")
    ax = axes_or_new(ax)
    penalty, loss, error = (evidence[name].to_numpy() for name in ("cv_penalty", "cv_loss", "cv_se"))
    ax.errorbar(penalty, loss, yerr=error, fmt="o-", color=BLUE, ms=4, lw=1.5)
    ax.axvline(float(evidence["penalty_chosen"]), color=ORANGE, lw=1, ls="--")
    ax.set_xscale("log")
    ax.set_xlabel("penalty")
    ax.set_ylabel("held-out loss (nats an observation)")
    ax.set_title(f"{int(evidence['N'])} terms kept")
    return ax
