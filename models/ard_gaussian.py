"""ARD Gaussian: a normal prior with its own precision on every weight; the relevance vector machine.

The declaration, for features (or kernels) Phi and any likelihood with a linear predictor::

    alpha ~ Gamma(a, b)                    one a basis function
    w     ~ Normal(0, 1 / sqrt(alpha))
    bias  ~ Normal(0, s0)                  wide, never pruned
    eta   = offset + bias + Phi w
    y     ~ likelihood(eta, nuisance)

The evidence methods integrate w out and maximise over alpha (type-II maximum likelihood; a = b = 0 is the papers'
choice). NUTS samples the same declaration with a proper Gamma prior.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayes_sparse import basis as bases
from bayes_sparse.design import Design, FloatArray
from bayes_sparse.likelihoods import Likelihood, compiled
from bayes_sparse.prepare import Prepared
from bayes_sparse.problem import Problem
from bayes_sparse.slot import Slot
from bayes_sparse.subject import Subject

__all__ = ["ARDGaussian"]

_NOISE_FLOOR = 1e-6  # of the spread of the targets: noise below it has collapsed
_REACH = 20.0  # how far other nuisance parameters may move from their start, in logs


@dataclass(frozen=True)
class ARDGaussian:
    """The ARD Gaussian model.

    Attributes
    ----------
    bias_sd : float, optional
        Sd of the bias's normal prior; None for ten times the size of the targets (of 1 for a link function).
    """

    bias_sd: float | None = None

    default_method: ClassVar[str] = "sequential"
    # Cauchy weights of scale 0.1 in the units of standardised columns: heavy tails, most mass near zero, and proper.
    proper_hyper: ClassVar[tuple[float, float]] = (0.5, 0.005)

    def subject(self, data: Prepared) -> Subject:
        """What the evidence methods fit."""
        n, M = data.Phi.shape
        wide = self._bias_sd(data)
        extra = np.ones((n, 1)) if data.basis.bias else None
        design = Design(data.Phi, data.shift, data.scale, extra)
        free = np.append(~data.kept, np.zeros(design.q, dtype=bool))
        fixed = np.append(self._kept_precision(data), np.full(design.q, wide**-2.0))
        log_start = np.log(data.likelihood.start(data.y - data.offset))
        floor = np.log(_NOISE_FLOOR) if data.likelihood.name in ("normal", "student_t") else -_REACH
        problem = Problem(
            design=design,
            y=data.y,
            free=free,
            fixed_precision=fixed,
            pointwise=_Pointwise(data.likelihood, data.y),
            offset=data.offset,
            weights=data.weights,
            theta=log_start,
            theta_bounds=np.stack([log_start + floor, log_start + _REACH], axis=1),
            normal=data.likelihood.name == "normal",
        )
        coords = {"basis": np.array(data.names)}
        w = Slot("w", (M,), ("basis",), coords, slice(0, M), np.zeros(M))
        bias = Slot("bias", (), (), {}, slice(M, M + 1), np.zeros(()))
        return Subject(
            problem=problem,
            sparse=(w,),
            fixed=(bias,) if design.q else (),
            names=data.names,
            observed=data.table.target,
            obs_dim=data.table.obs_dim,
            obs=data.table.rows,
            unpack=lambda theta: dict(zip(data.likelihood.nuisance, np.exp(theta), strict=True)),
            settings=self.settings(data),
            shift=data.shift,
            scale=data.scale,
            constant_data=_stored(data),
            interchangeable=data.basis.kernel,
        )

    def declare(self, data: Prepared, hyper: tuple[float, float], *, centred: bool = False) -> pm.Model:
        """The same model as PyMC sees it.

        Parameters
        ----------
        data : Prepared
            Data and basis.
        hyper : (float, float)
            Shape and rate of the Gamma prior, both positive.
        centred : bool
            ``w ~ Normal(0, 1/sqrt(alpha))`` directly; else ``w = z / sqrt(alpha)`` with standard normal z, which NUTS
            explores better.
        """
        Phi = np.asarray(data.Phi, dtype=float)
        if data.shift is not None:
            Phi = Phi - data.shift
        if data.scale is not None:
            Phi = Phi / data.scale
        coords = {data.table.obs_dim: data.table.rows, "basis": data.names}
        known = np.zeros(len(data.names))
        known[data.kept] = self._kept_precision(data)
        with pm.Model(coords=coords) as model:
            alpha = pm.Gamma("alpha", *hyper, dims="basis")
            precision: Any = alpha if not data.kept.any() else pt.switch(data.kept, known, alpha)
            if centred:
                w = pm.Normal("w", 0.0, tau=precision, dims="basis")
            else:
                z = pm.Normal("z", 0.0, 1.0, dims="basis")
                w = pm.Deterministic("w", z / pt.sqrt(precision), dims="basis")
            eta = data.offset + pm.math.dot(Phi, w)
            if data.basis.bias:
                eta = eta + pm.Normal("bias", 0.0, self._bias_sd(data))
            start = data.likelihood.start(data.y - data.offset)
            nuisance = [
                pm.LogNormal(name, np.log(value), 3.0)
                for name, value in zip(data.likelihood.nuisance, start, strict=True)
            ]
            distribution, arguments = data.likelihood.distribution(eta, *nuisance)
            if data.weights is None:
                observed = data.y if data.likelihood.name in ("normal", "student_t") else data.y.astype(int)
                distribution(data.table.target, **arguments, observed=observed, dims=data.table.obs_dim)
            else:
                terms = pm.logp(distribution.dist(**arguments), data.y)
                pm.Potential(data.table.target, data.weights * terms)
        return model

    def settings(self, data: Prepared) -> dict[str, Any]:
        """What prediction needs beside numbers."""
        return {
            "model": "ard_gaussian",
            "bias_sd": self._bias_sd(data),
            "likelihood": {"name": data.likelihood.name, **asdict(data.likelihood)},
            "basis": bases.settings(data.basis),
            "columns": data.table.columns,
        }

    def _bias_sd(self, data: Prepared) -> float:
        return data.likelihood.bias_sd(data.y - data.offset) if self.bias_sd is None else float(self.bias_sd)

    def _kept_precision(self, data: Prepared) -> FloatArray:
        """Columns the user keeps have the bias's wide prior, in units of their own size."""
        if not data.kept.any():
            return np.empty(0)
        size = np.ones(data.kept.sum()) if data.scale is not None else data.Phi[:, data.kept].std(axis=0)
        return np.where(size > 0, size, 1.0) ** 2 / self._bias_sd(data) ** 2


@dataclass(frozen=True, eq=False)
class _Pointwise:
    """The likelihood along the predictor at the data; compiled when it is first called, which a normal one never is."""

    likelihood: Likelihood
    y: FloatArray

    def __call__(self, eta: FloatArray, theta: FloatArray) -> tuple[FloatArray, ...]:
        return tuple(compiled(self.likelihood)(eta, self.y, *theta))


def _stored(data: Prepared) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """Arrays that prediction needs: how inputs were standardised, and the training rows under the kernels."""
    stored: dict[str, tuple[tuple[str, ...], np.ndarray]] = {}
    if data.classes is not None:
        stored["classes"] = (("class",), data.classes)
    if data.weights is not None:
        stored["weights"] = ((data.table.obs_dim,), data.weights)
    if data.offset.any():
        stored["offset"] = ((data.table.obs_dim,), data.offset)
    if data.scale is not None:
        stored["basis_scale"] = (("basis",), data.scale)
    if data.basis.kernel:
        stored["X"] = ((data.table.obs_dim, "feature"), np.asarray(data.table.X, dtype=float))
        if data.input_shift is not None and data.input_scale is not None:
            stored["input_shift"] = (("feature",), data.input_shift)
            stored["input_scale"] = (("feature",), data.input_scale)
    return stored
