"""Curves beside sparse weights: Gaussian processes, random walks, splines; and kernels as columns."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy.interpolate import BSpline

from .case import case
from .data import SIGMA, B, N, P, W, X, Y, rng

EACH = "sparse vector w, a precision per weight"
PROCESS = EACH + "; a process, its scales"
TIME = np.linspace(0, 1, N)
CURVE = np.sin(2 * np.pi * TIME)
Y_CURVE = Y - B + CURVE
BESIDE = {"w": W, "sigma": SIGMA}


def ard():
    """The sparse weights of every model in this file."""
    s = pm.HalfCauchy("s", 1, shape=P)
    return pm.Normal("w", 0, s, shape=P)


@case("a Hilbert-space Gaussian process beside sparse weights", {**BESIDE, "f": CURVE}, PROCESS)
def hilbert_space_process():
    with pm.Model() as model:
        w = ard()
        ell = pm.LogNormal("ell", -1.5, 0.5)
        eta = pm.HalfNormal("eta", 1)
        gp = pm.gp.HSGP(m=[15], c=1.5, cov_func=eta**2 * pm.gp.cov.ExpQuad(1, ls=ell))
        f = gp.prior("f", X=TIME[:, None])
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", f + X @ w, sigma, observed=Y_CURVE)
    return model


SOME = np.arange(0, N, 5)  # rows for a process without short cuts


@case("a latent Gaussian process beside sparse weights", {**BESIDE, "f": CURVE[SOME]}, PROCESS)
def latent_process():
    with pm.Model() as model:
        w = ard()
        ell = pm.Gamma("ell", 2, 8)
        eta = pm.HalfNormal("eta", 1)
        gp = pm.gp.Latent(cov_func=eta**2 * pm.gp.cov.Matern52(1, ls=ell))
        f = gp.prior("f", X=TIME[SOME, None])
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", f + X[SOME] @ w, sigma, observed=Y_CURVE[SOME])
    return model


T = 150
TREND = np.cumsum(0.3 * rng(139).normal(size=T))
Y_TREND = TREND + X[:T] @ W + 0.5 * rng(189).normal(size=T)
WALK = {"w": W, "trend": TREND, "step": 0.3, "sigma": 0.5}


@case("a Gaussian random walk beside sparse weights", WALK, EACH + "; steps of the walk, one scale")
def random_walk():
    with pm.Model() as model:
        w = ard()
        step = pm.HalfNormal("step", 0.5)
        trend = pm.GaussianRandomWalk("trend", sigma=step, init_dist=pm.Normal.dist(0, 1), steps=T - 1)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", trend + X[:T] @ w, sigma, observed=Y_TREND)
    return model


@case("a random walk by cumulative sums", WALK, EACH + "; steps of the walk, one scale")
def cumulative_sums():
    with pm.Model() as model:
        w = ard()
        step = pm.HalfNormal("step", 0.5)
        z = pm.Normal("z", 0, 1, shape=T)
        trend = pm.Deterministic("trend", pt.cumsum(step * z))
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", trend + X[:T] @ w, sigma, observed=Y_TREND)
    return model


KNOTS = np.r_[[0.0] * 3, np.linspace(0, 1, 10), [1.0] * 3]
SPLINES = BSpline.design_matrix(TIME, KNOTS, 3).toarray()


@case("splines with one scale", {"curve": CURVE, "sigma": SIGMA}, "vector c, one scale, never pruned")
def splines():
    with pm.Model(coords={"spline": range(SPLINES.shape[1])}) as model:
        b = pm.Normal("b", 0, 2)
        tau = pm.HalfCauchy("tau", 1)
        c = pm.Normal("c", 0, tau, dims="spline")
        curve = pm.Deterministic("curve", b + pm.math.dot(SPLINES, c))
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", curve, sigma, observed=CURVE + SIGMA * rng(132).normal(size=N))
    return model


@case(
    "splines of one scale beside sparse weights",
    {**BESIDE, "curve": CURVE},
    EACH + "; vector c, one scale, never pruned",
)
def splines_beside_sparse():
    with pm.Model() as model:
        w = ard()
        tau = pm.HalfNormal("tau", 1)
        z = pm.Normal("z", 0, 1, shape=SPLINES.shape[1])
        curve = pm.Deterministic("curve", pt.dot(SPLINES, tau * z))
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", curve + X @ w, sigma, observed=Y_CURVE)
    return model


PLACES = rng(133).uniform(-3, 3, size=N)
CENTRES = np.linspace(-3, 3, 13)
KERNELS = np.exp(-((PLACES[:, None] - CENTRES) ** 2) / 2)
BUMPS = np.zeros(13)
BUMPS[[3, 9]] = 2.0, -1.5


@case("a relevance vector machine", {"f": KERNELS @ BUMPS}, EACH)
def relevance_vector_machine():
    y = KERNELS @ BUMPS + 0.2 * rng(134).normal(size=N)
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", 1e-4, 1e-4, shape=13)
        w = pm.Normal("w", 0, tau=alpha, shape=13)
        f = pm.Deterministic("f", pm.math.dot(KERNELS, w))
        beta = pm.Gamma("beta", 1e-4, 1e-4)
        pm.Normal("y", f, tau=beta, observed=y)
    return model


@case(
    "seasons by Fourier terms beside a line",
    {"season": [1.0, 0, 0, 0.6, 0, 0], "slope": 2.0, "b": B, "sigma": 0.5},
    "sparse vector season, a precision per weight",
)
def seasons():
    order = 2 * np.pi * np.outer(4 * TIME, [1, 2, 3])
    fourier = np.c_[np.sin(order), np.cos(order)]
    y = B + 2.0 * TIME + fourier @ [1.0, 0, 0, 0.6, 0, 0] + 0.5 * rng(135).normal(size=N)
    with pm.Model(coords={"term": ["s1", "s2", "s3", "c1", "c2", "c3"]}) as model:
        b = pm.Normal("b", 0, 5)
        slope = pm.Normal("slope", 0, 5)
        scale = pm.HalfNormal("scale", 1, dims="term")
        season = pm.Normal("season", 0, scale, dims="term")
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + slope * TIME + pm.math.dot(fourier, season), sigma, observed=y)
    return model
