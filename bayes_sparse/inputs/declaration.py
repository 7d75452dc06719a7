"""What the declarations of named models share: weights, predictor and observed variable, inside a model context."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.model import Centred, slab_precision
from bayes_sparse.inputs.named_model import class_slices, kept_weights, weight_names
from bayes_sparse.inputs.prepare import Prepared

__all__ = ["coords_of", "gamma_weights", "normal_weights", "observe", "predictor", "scaled", "standardised"]

_DENSE_BYTES = 200 * 10**6  # sparse features up to this size are made dense where PyMC is to multiply them
_log = logging.getLogger("bayes_sparse")


def standardised(data: Prepared) -> FloatArray:
    """The basis functions as the prior speaks of them, dense: for a declaration."""
    Phi = np.asarray(data.Phi, dtype=float) if isinstance(data.Phi, np.ndarray) else _dense(data.Phi)
    if data.shift is not None:
        Phi = Phi - data.shift
    return Phi if data.scale is None else Phi / data.scale


def gamma_weights(
    data: Prepared, hyper: tuple[float, float], slab: float | None, sd: float, *, centred: Centred
) -> Any:
    """Gamma precisions and normal weights of a declaration, inside its model context: the weights.

    The hyper-prior is that of targets divided by their spread.
    """
    alpha = pm.Gamma("alpha", hyper[0], hyper[1] * data.unit**2, dims="basis")
    return normal_weights(data, alpha, slab, sd, centred=centred)


def normal_weights(data: Prepared, alpha: Any, slab: float | None, sd: float, *, centred: Centred) -> Any:
    """Normal weights of given precisions above those of the slab; columns that are kept have the bias's prior.

    ``w ~ Normal(0, 1/sqrt(alpha + 1/c^2))`` directly where centred, else in units of that sd.
    """
    kept, known = kept_weights(data, sd)
    precision: Any = alpha + slab_precision(slab, data.unit)
    if kept.any():
        precision = pt.switch(kept, known, precision)
    return scaled(pm.Normal, "w", 1 / pt.sqrt(precision), "basis", centred)


def scaled(distribution: Any, name: str, scale: Any, dim: str, centred: Centred) -> Any:
    """A variable of a given scale, inside its model context, in the parametrisation that NUTS explores best.

    Directly where centred, which suits what the data determine; elsewhere as z of scale 1 times the scale, which suits
    what only the prior holds.
    """
    directly = np.asarray(centred)
    if directly.all():
        return distribution(name, 0.0, scale, dims=dim)
    if not directly.any():
        return pm.Deterministic(name, scale * distribution("z", 0.0, 1.0, dims=dim), dims=dim)
    z = distribution("z", 0.0, pt.switch(directly, scale, 1.0), dims=dim)
    return pm.Deterministic(name, z * pt.switch(directly, 1.0, scale), dims=dim)


def coords_of(data: Prepared) -> dict[str, Any]:
    """Coordinates of a declaration on the weights."""
    coords: dict[str, Any] = {data.table.obs_dim: data.table.rows, "basis": weight_names(data)}
    return {**coords, "class": data.labels} if data.several else coords


def predictor(data: Prepared, w: Any, sd: float) -> Any:
    """The linear predictor, or one a class, of a declaration, with its bias, inside its model context.

    Columns that have a mean, such as kernels, move all rows together as the bias does. There the declaration
    has the predictor's mean over the rows, ``mean_predictor``, of which the bias is what the columns leave: the same
    model, without the long ridge on which bias and weights make up for each other.
    """
    Phi, dims = standardised(data), "class" if data.several else None
    offset = 0.0 if data.several else data.offset
    if not data.basis.bias:
        return offset + _linear(data, Phi, w)
    if data.shift is not None:
        return offset + _linear(data, Phi, w) + pm.Normal("bias", 0.0, sd, dims=dims)
    middle = np.average(Phi, axis=0, weights=data.weights)
    of_columns = _linear(data, middle[None], w)[0]
    mean = pm.Normal("mean_predictor", of_columns, sd, dims=dims)
    pm.Deterministic("bias", mean - of_columns, dims=dims)
    return offset + _linear(data, Phi - middle, w) + mean


def _linear(data: Prepared, rows: Any, w: Any) -> Any:
    """What the weights make of rows of basis functions, a value a row, or one a class as well."""
    if not data.several:
        return pm.math.dot(rows, w)
    if data.own is None:
        return pm.math.dot(rows, w.reshape((len(data.labels), rows.shape[1])).T)
    return pt.stack([pm.math.dot(rows[:, own], w[own]) for own in class_slices(data)], axis=1)


def observe(data: Prepared, eta: Any) -> None:
    """Nuisance parameters and the observed variable of a declaration, inside its model context."""
    start = data.likelihood.start(data.unexplained, data.weights)
    nuisance = [
        pm.LogNormal(name, np.log(value), 3.0) for name, value in zip(data.likelihood.nuisance, start, strict=True)
    ]
    distribution, arguments = data.likelihood.distribution(eta, *nuisance)
    if data.weights is None:
        observed = data.y if data.likelihood.targets == "numbers" else data.y.astype(int)
        distribution(data.table.target, **arguments, observed=observed, dims=data.table.obs_dim)
    else:
        terms = pm.logp(distribution.dist(**arguments), data.y)
        pm.Potential(data.table.target, data.weights * terms)


def _dense(Phi: Any) -> FloatArray:
    """Sparse features, or kernels that come in blocks, in full, as long as they are small."""
    n, M = Phi.shape
    need = 8 * n * M
    if need > _DENSE_BYTES:
        raise ValueError(
            f"PyMC takes the features dense, and these {n:,} rows of {M:,} columns would be {need / 10**6:,.0f} MB, "
            f"more than {_DENSE_BYTES / 10**6:.0f}: fit by evidence first, and sample with the columns that it keeps."
        )
    _log.info("The features are made dense for PyMC: %.1f MB.", need / 10**6)
    return np.asarray(Phi.toarray(), dtype=float)
