"""Pictures of what a search found: directions and their evidence, an L1 path, a cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import xarray as xr

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inference.priors import Gaussian, Laplace
from bayes_sparse.results.plots.fits import BLUE, GREY, ORANGE, axes_or_new
from bayes_sparse.trees.damage import reads_a_fit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_cv", "plot_evidence_1d", "plot_path", "plot_spectrum"]

_NOTHING = 1e-8  # curvatures below this are not drawn


@reads_a_fit
def plot_evidence_1d(
    tree: xr.DataTree | None = None,
    *,
    h: Any = None,
    u: Any = None,
    prior: Literal["gaussian", "laplace"] | None = None,
    top: int = 3,
    ax: Axes | None = None,
) -> Axes:
    """The one-dimensional integrals whose product is the evidence, each as a function of its hyper-parameter.

    Drawn is what a direction gains over being pruned, ``log f(alpha) - log f(infinity)``: it has a maximum (marked)
    where ``h u^2 > 1``, and rises towards zero where not.

    Parameters
    ----------
    tree : xarray.DataTree, optional
        From a one-step method: its most relevant directions and the one that came nearest to being kept.
    h, u : float or array, optional
        Curvature and centre of the likelihood along directions of your own, instead of a tree.
    prior : "gaussian" or "laplace", optional
        Prior of your own directions; a tree knows its own.
    top : int
        How many of a tree's directions to draw.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
    """
    if (tree is None) == (h is None or u is None):
        raise ValueError("plot_evidence_1d draws either a tree or directions of your own, given by h and u.")
    if tree is not None:
        h, u, labels, name = _of_tree(tree, top)
    else:
        h, u = np.broadcast_arrays(np.atleast_1d(np.asarray(h, dtype=float)), np.asarray(u, dtype=float))
        labels, name = [f"h = {a:g}, u = {b:g}" for a, b in zip(h, u, strict=True)], prior or "gaussian"
    known: Gaussian | Laplace = Laplace() if name == "laplace" else Gaussian()
    ax = axes_or_new(ax)
    best = known.best(h, u)
    grid = _grid(h, best)
    ax.axhline(0.0, color=GREY, lw=0.8)
    highest = 1.0
    for i, label in enumerate(labels):
        at = known.log_integral(np.full_like(grid, h[i]), np.full_like(grid, u[i]), grid) + 0.5 * h[i] * u[i] ** 2
        highest = max(highest, float(at.max()))
        (line,) = ax.plot(grid, at, lw=2, label=f"{label} ($h u^2$ = {h[i] * u[i] ** 2:.3g})")
        if np.isfinite(best[i]):
            peak = float(known.log_integral(h[i : i + 1], u[i : i + 1], best[i : i + 1])[0]) + 0.5 * h[i] * u[i] ** 2
            ax.plot([best[i]], [peak], "o", color=line.get_color(), ms=7)
    ax.set_xscale("log")
    ax.set_ylim(-0.6 * highest, 1.15 * highest)
    ax.set_xlabel(r"$\alpha$")
    ax.set_ylabel("gain over pruning (nats)")
    ax.set_title(f"one-dimensional evidence, {name} prior")
    ax.legend(frameon=False, fontsize="small")
    return ax


@reads_a_fit
def plot_spectrum(tree: xr.DataTree, *, ax: Axes | None = None) -> Axes:
    """The likelihood's curvature along every direction, and which directions were kept.

    A direction is kept where ``h u^2`` exceeds 1: where the likelihood says more about it than that it is small.

    Parameters
    ----------
    tree : xarray.DataTree
        From a one-step method.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
    """
    evidence = _directions(tree)
    ax = axes_or_new(ax)
    number, h = evidence["direction"].to_numpy(), evidence["h"].to_numpy()
    strength = h * evidence["u_expansion"].to_numpy() ** 2
    kept, relevant = np.isfinite(evidence["alpha"].to_numpy()), evidence["relevant"].to_numpy()
    zero = kept & ~relevant
    ax.plot(number, h, color=BLUE, lw=1.5, label="curvature $h$")
    ax.axhline(1.0, color=GREY, lw=0.8, ls="--")
    ax.plot(number[~kept], strength[~kept], ".", color=GREY, ms=4, label=f"$h u^2$, {int((~kept).sum())} pruned")
    if zero.any():
        ax.plot(number[zero], strength[zero], "o", mfc="none", mec=ORANGE, ms=6, label=f"{int(zero.sum())} with mode 0")
    label = f"$h u^2$, {int(relevant.sum())} kept"
    ax.plot(number[relevant], strength[relevant], "o", color=ORANGE, ms=6, label=label)
    ax.set_yscale("log")
    ax.set_ylim(bottom=max(_NOTHING, 0.1 * float(min(h.min(), strength[strength > 0].min(initial=1.0)))))
    ax.set_xlabel("direction, the most curved first")
    ax.set_ylabel("$h$ and $h u^2$")
    ax.set_title(f"{int(relevant.sum())} of {len(h)} directions kept")
    ax.legend(frameon=False, fontsize="small")
    return ax


def _directions(tree: xr.DataTree) -> xr.Dataset:
    if "evidence" not in tree.children or "direction" not in tree["evidence"].dims:
        raise ValueError("This tree has no directions: fit with method='revm' or the model 'laplace_eigen'.")
    if not tree["evidence"].sizes["direction"]:
        raise ValueError("There is nothing to draw: the likelihood curves downwards along no direction of this fit.")
    return tree["evidence"].to_dataset()


def _of_tree(tree: xr.DataTree, top: int) -> tuple[FloatArray, FloatArray, list[str], str]:
    """The directions that gain most, and the pruned one that came nearest."""
    evidence = _directions(tree)
    h, u = evidence["h"].to_numpy(), evidence["u_expansion"].to_numpy()
    strength, kept = h * u**2, np.isfinite(evidence["alpha"].to_numpy())
    chosen = [i for i in np.argsort(-strength) if kept[i]][:top] + [i for i in np.argsort(-strength) if not kept[i]][:1]
    number = evidence["direction"].to_numpy()
    labels = [f"direction {number[i]}" for i in chosen]
    return h[chosen], u[chosen], labels, str(tree["evidence"].attrs["prior"])


def _grid(h: FloatArray, best: FloatArray) -> FloatArray:
    """Hyper-parameters around those of interest, evenly in logs."""
    finite = best[np.isfinite(best)]
    points = np.append(finite, np.sqrt(h)) if not len(finite) else finite
    return np.geomspace(points.min() / 1e3, points.max() * 1e3, 400)


_NAMED = 8  # largest weights whose paths are labelled


@reads_a_fit
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


@reads_a_fit
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
