"""The PyMC declaration that models on eigen-coordinates share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inference.one_step.directions import find_directions
from bayes_sparse.inference.one_step.expansion import SMALL_RIDGE, check_expansion
from bayes_sparse.inputs.declaration import observe, standardised
from bayes_sparse.inputs.model import Centred
from bayes_sparse.inputs.named_model import bias_sd, kept_precision, weight_names
from bayes_sparse.inputs.prepare import Prepared
from bayes_sparse.problem.labelled import LabelledProblem

__all__ = ["declare_eigen", "directions_of", "first_of"]


def declare_eigen(data: Prepared, Q: FloatArray, wide: float | None, draw: Callable[[], Any]) -> pm.Model:
    """Declare ``w = Q' u`` with a prior on each u.

    Parameters
    ----------
    data : Prepared
        Data and basis.
    Q : array (r, free weights)
        Directions.
    wide : float, optional
        Sd of the bias's prior, None for the likelihood's own.
    draw : callable
        Makes u, with the dim "direction", inside the model.
    """
    Phi, sd = standardised(data), bias_sd(data, wide)
    coords: dict[str, Any] = {
        data.table.obs_dim: data.table.rows,
        "basis": weight_names(data),
        "direction": np.arange(1, len(Q) + 1),
    }
    with pm.Model(coords=coords) as model:
        u = draw()
        if data.several:
            model.add_coord("class", data.labels)
            w = pm.Deterministic("w", Q.T @ u, dims="basis")
            eta = pm.math.dot(Phi, w.reshape((len(data.labels), Phi.shape[1])).T)
            bias_dims: str | None = "class"
        else:
            free = ~data.kept
            w = pt.zeros(len(data.names))[free].set(Q.T @ u)
            eta = data.offset + pm.math.dot(Phi[:, free] @ Q.T, u)
            if data.kept.any():
                kept = pm.Normal("kept", 0.0, tau=kept_precision(data, sd))
                w, eta = w[data.kept].set(kept), eta + pm.math.dot(Phi[:, data.kept], kept)
            pm.Deterministic("w", w, dims="basis")
            bias_dims = None
        if data.basis.bias:
            eta = eta + pm.Normal("bias", 0.0, sd, dims=bias_dims)
        observe(data, eta)
    return model


def directions_of(labelled: LabelledProblem, expansion: Any, most: int | None) -> tuple[FloatArray, FloatArray]:
    """Curvatures h and eigenvectors Q of the Hessian where the likelihood is expanded, the most curved first."""
    if expansion is not None:
        check_expansion(expansion)
    found = find_directions(labelled.surface, labelled.expansion_point(expansion), SMALL_RIDGE, lambda *_: None)
    Q = found.eigen.Q[:most]
    return found.eigen.h[:most], Q if found.rotation is None else Q @ found.rotation


def first_of(centred: Centred, count: int) -> Centred:
    """What is said of each direction, for those that are declared."""
    return centred if isinstance(centred, bool) or not np.ndim(centred) else centred[:count]
