"""The columns of a fitted design at new rows, and draws of their weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack

from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.trees.read import StoredFit
from bayes_sparse.trees.spread import draws_of

__all__ = ["columns_at", "columns_drawn", "drawn_weights", "kernel_inputs"]


def columns_drawn(fit: StoredFit) -> IntArray:
    """Which of the basis functions the draws of a tree are of."""
    assert fit.posterior is not None
    labels = fit.vectors["w"][1]
    if "w" not in fit.posterior:
        if fit.evidence is not None and fit.posterior_sd.any():
            raise ValueError("The draws of the weights were too large to be stored: fit with fewer draws to predict.")
        return np.empty(0, dtype=np.intp)
    place = {str(label): i for i, label in enumerate(labels)}
    drawn = fit.posterior["w"]["basis"].to_numpy().tolist()
    return np.array([place[str(label)] for label in drawn], dtype=np.intp)


def drawn_weights(fit: StoredFit, most: int, rng: np.random.Generator) -> tuple[IntArray, FloatArray, list[FloatArray]]:
    """Columns, draws of their weights (S, columns), and of the nuisance parameters, (S,) each.

    At most so many of the draws of the tree; of one without draws so many from its normal, with the nuisance parameters
    at their estimates.
    """
    if fit.posterior is None:
        assert fit.evidence is not None
        w = draws_of(fit.evidence, most, rng)
        points = [np.full(most, float(fit.evidence[name])) for name in fit.likelihood.nuisance]
        return fit.evidence["column"].to_numpy(), w, points
    wanted = [name for name in ("w", "bias", *fit.likelihood.nuisance) if name in fit.posterior]
    posterior = fit.posterior[wanted].stack(sample=("chain", "draw"))
    total = posterior.sizes["sample"]
    posterior = posterior.isel(sample=np.linspace(0, total - 1, min(total, most)).round().astype(int))
    size, column = posterior.sizes["sample"], columns_drawn(fit)
    parts = [np.empty((size, 0))]
    if "w" in posterior:
        parts.append(posterior["w"].transpose("sample", "basis").to_numpy())
    if "bias" in posterior:
        column = np.append(column, len(fit.vectors["w"][1]))
        parts.append(posterior["bias"].to_numpy()[:, None])
    # A fit that holds a nuisance parameter at its estimate has it among the constants.
    nuisance = [
        np.broadcast_to((posterior if name in posterior else fit.constant)[name].to_numpy(), (size,))
        for name in fit.likelihood.nuisance
    ]
    return column, np.concatenate(parts, axis=1), nuisance


def columns_at(fit: StoredFit, X: Any, column: IntArray, M: int | None = None) -> Any:
    """The active columns of the design at new rows, sparse if those are; a constant for those beyond the M."""
    inside = column < (len(fit.vectors["w"][1]) if M is None else M)
    if not isinstance(X, np.ndarray):
        ones = csr_array(np.ones((X.shape[0], int((~inside).sum()))))
        order = np.argsort(np.append(np.flatnonzero(inside), np.flatnonzero(~inside)))
        return hstack([X[:, column[inside]], ones], format="csr")[:, order]
    out = np.ones((len(X), len(column)))
    if fit.basis.kernel:
        X, rows = kernel_inputs(fit, X)
        # Of rows that are the same only the first has a kernel.
        centres = rows[fit.constant["row_of_centre"].to_numpy()] if "row_of_centre" in fit.constant else rows
        out[:, inside] = fit.basis.matrix(X, centres[column[inside]])
    else:
        out[:, inside] = fit.basis.matrix(X, None)[:, column[inside]]
    return out


def kernel_inputs(fit: StoredFit, X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """New rows and training rows as the kernels of a fit see them."""
    constant, centres = fit.constant, fit.constant["X"].to_numpy()
    if "input_shift" not in constant:
        return X, centres
    shift, scale = constant["input_shift"].to_numpy(), constant["input_scale"].to_numpy()
    return (X - shift) / scale, (centres - shift) / scale
