"""Pictures of one-step evidence: what each direction gains, and which of the spectrum was kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import xarray as xr

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inference.priors import Gaussian, Laplace
from bayes_sparse.results.plots.fits import BLUE, GREY, ORANGE, axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_evidence_1d", "plot_spectrum"]


_NOTHING = 1e-8  # curvatures below this are not drawn


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
