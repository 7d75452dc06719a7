"""Shrinkage priors with names: horseshoes, R2D2, the lasso, Student-t and their relatives."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from .case import case
from .data import FEATURES, REGRESSION, STEEP, B, N, P, X, Y, rng

EACH = "sparse vector w, a precision per weight"
HORSESHOE = "horseshoe of w: a scale per weight and one for all"
BINARY = rng(20).random(N) < 1 / (1 + np.exp(-(B + X @ STEEP)))


@case("horseshoe", REGRESSION, HORSESHOE)
def horseshoe():
    with pm.Model() as model:
        tau = pm.HalfCauchy("tau", 1)
        lam = pm.HalfCauchy("lam", 1, shape=P)
        w = pm.Normal("w", 0, tau * lam, shape=P)
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ w, sigma, observed=Y)
    return model


@case("non-centred horseshoe", REGRESSION, HORSESHOE)
def non_centred_horseshoe():
    with pm.Model(coords={"feature": FEATURES}) as model:
        tau = pm.HalfCauchy("tau", 0.1)
        lam = pm.HalfCauchy("lam", 1, dims="feature")
        z = pm.Normal("z", 0, 1, dims="feature")
        w = pm.Deterministic("w", z * tau * lam, dims="feature")
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + pm.math.dot(X, w), sigma, observed=Y)
    return model


@case("regularised horseshoe", REGRESSION, HORSESHOE)
def regularised_horseshoe():
    with pm.Model() as model:
        tau = pm.HalfCauchy("tau", 0.2)
        lam = pm.HalfCauchy("lam", 1, shape=P)
        c2 = pm.InverseGamma("c2", 2, 8)
        lam_tilde = pm.math.sqrt(c2) * lam / pm.math.sqrt(c2 + tau**2 * lam**2)
        w = pm.Normal("w", 0, tau * lam_tilde, shape=P)
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ w, sigma, observed=Y)
    return model


@case("non-centred regularised horseshoe", REGRESSION, HORSESHOE)
def non_centred_regularised_horseshoe():
    with pm.Model(coords={"feature": FEATURES}) as model:
        tau = pm.HalfCauchy("tau", 0.2)
        lam = pm.HalfCauchy("lam", 1, dims="feature")
        c2 = pm.InverseGamma("c2", 2, 8)
        z = pm.Normal("z", 0, 1, dims="feature")
        lam_tilde = pt.sqrt(c2 * lam**2 / (c2 + tau**2 * lam**2))
        w = pm.Deterministic("w", z * lam_tilde * tau, dims="feature")
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ w, sigma, observed=Y)
    return model


@case("Finnish horseshoe with Student-t scales", REGRESSION, EACH)
def finnish_horseshoe():
    D, D0 = P, 3
    with pm.Model(coords={"predictors": FEATURES}) as model:
        sigma = pm.HalfNormal("sigma", 2)
        tau = pm.HalfStudentT("tau", 2, D0 / (D - D0) * sigma / np.sqrt(N))
        lam = pm.HalfStudentT("lam", 5, dims="predictors")
        c2 = pm.InverseGamma("c2", 1, 1)
        z = pm.Normal("z", 0.0, 1.0, dims="predictors")
        w = pm.Deterministic("w", z * tau * lam * pt.sqrt(c2 / (c2 + tau**2 * lam**2)), dims="predictors")
        b = pm.Normal("b", 0, 5)
        pm.Normal("y", b + pt.dot(X, w), sigma, observed=Y)
    return model


@case("horseshoe whose local scales have the global one as theirs", REGRESSION, HORSESHOE)
def nested_half_cauchy():
    with pm.Model() as model:
        tau = pm.HalfCauchy("tau", 0.5)
        lam = pm.HalfCauchy("lam", tau, shape=P)
        w = pm.Normal("w", 0, lam, shape=P)
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ w, sigma, observed=Y)
    return model


@case("horseshoe in units of the noise", REGRESSION, EACH)
def horseshoe_in_units_of_noise():
    with pm.Model() as model:
        sigma = pm.HalfNormal("sigma", 1)
        tau = pm.HalfCauchy("tau", 1)
        lam = pm.HalfCauchy("lam", 1, shape=P)
        w = pm.Normal("w", 0, sigma * tau * lam, shape=P)
        b = pm.Normal("b", 0, 5)
        pm.Normal("y", b + X @ w, sigma, observed=Y)
    return model


@case("logistic regression with a non-centred horseshoe", {"w": STEEP, "b": B}, HORSESHOE)
def logistic_horseshoe():
    with pm.Model(coords={"feature": FEATURES}) as model:
        tau = pm.HalfCauchy("tau", 0.5)
        lam = pm.HalfCauchy("lam", 1, dims="feature")
        z = pm.Normal("z", 0, 1, dims="feature")
        w = pm.Deterministic("w", z * lam * tau, dims="feature")
        b = pm.Normal("b", 0, 2.5)
        pm.Bernoulli("y", logit_p=b + X @ w, observed=BINARY.astype(int))
    return model


R2D2 = "sparse vector w, its variance dealt out by a Dirichlet"


@case("R2D2", REGRESSION, R2D2)
def r2d2():
    with pm.Model(coords={"feature": FEATURES}) as model:
        sigma = pm.HalfNormal("sigma", 1)
        R2 = pm.Beta("R2", 2, 2)
        tau2 = R2 / (1 - R2)
        phi = pm.Dirichlet("phi", np.full(P, 0.5), dims="feature")
        w = pm.Normal("w", 0, sigma * pm.math.sqrt(phi * tau2), dims="feature")
        b = pm.Normal("b", 0, 5)
        pm.Normal("y", b + X @ w, sigma, observed=Y)
    return model


@case("non-centred R2D2", REGRESSION, R2D2)
def non_centred_r2d2():
    with pm.Model(coords={"feature": FEATURES}) as model:
        sigma = pm.HalfNormal("sigma", 1)
        R2 = pm.Beta("R2", mu=0.5, sigma=0.2)
        phi = pm.Dirichlet("phi", a=np.ones(P) / 2, dims="feature")
        z = pm.Normal("z", 0, 1, dims="feature")
        w = pm.Deterministic("w", z * pt.sqrt(phi * R2 / (1 - R2)) * sigma, dims="feature")
        b = pm.Normal("b", 0, 5)
        pm.Normal("y", b + pt.dot(X, w), sigma, observed=Y)
    return model


@case("normal-gamma variances under one rate", REGRESSION, EACH)
def normal_gamma():
    with pm.Model() as model:
        rate = pm.HalfCauchy("rate", 1)
        variance = pm.Gamma("variance", 0.5, rate, shape=P)
        w = pm.Normal("w", 0, pm.math.sqrt(variance), shape=P)
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ w, sigma, observed=Y)
    return model


@case("the lasso as a mixture of normals", REGRESSION, EACH)
def lasso_by_mixture():
    with pm.Model() as model:
        lam = pm.Gamma("lam", 1, 1)
        tau2 = pm.Exponential("tau2", lam**2 / 2, shape=P)
        sigma = pm.HalfNormal("sigma", 1)
        w = pm.Normal("w", 0, sigma * pm.math.sqrt(tau2), shape=P)
        b = pm.Normal("b", 0, 5)
        pm.Normal("y", b + X @ w, sigma, observed=Y)
    return model


@case("Laplace weights of a known scale", REGRESSION, "sparse vector w, Laplace as normal with a scale per weight")
def lasso():
    with pm.Model() as model:
        w = pm.Laplace("w", 0, 0.5, shape=P)
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ w, sigma, observed=Y)
    return model


@case("the Bayesian lasso", REGRESSION, "sparse vector w, Laplace as normal with a scale per weight")
def bayesian_lasso():
    with pm.Model(coords={"feature": FEATURES}) as model:
        scale = pm.HalfCauchy("scale", 1)
        w = pm.Laplace("w", mu=0, b=scale, dims="feature")
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", mu=b + X @ w, sigma=sigma, observed=Y)
    return model


@case("the adaptive lasso", REGRESSION, "sparse vector w, Laplace with a scale per weight")
def adaptive_lasso():
    with pm.Model() as model:
        scale = pm.HalfCauchy("scale", 1, shape=P)
        w = pm.Laplace("w", 0, scale, shape=P)
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ w, sigma, observed=Y)
    return model


@case("Dirichlet-Laplace", REGRESSION, "sparse vector w, Laplace with a scale per weight")
def dirichlet_laplace():
    with pm.Model() as model:
        tau = pm.Gamma("tau", P * 0.5, 0.5)
        phi = pm.Dirichlet("phi", np.full(P, 0.5))
        w = pm.Laplace("w", 0, phi * tau, shape=P)
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ w, sigma, observed=Y)
    return model


STUDENT = "sparse vector w, Student-t as normal with a scale per weight"


@case("Student-t weights of a known scale", REGRESSION, STUDENT)
def student_t():
    with pm.Model() as model:
        w = pm.StudentT("w", nu=3, mu=0, sigma=0.3, shape=P)
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ w, sigma, observed=Y)
    return model


@case("Student-t weights of one unknown scale", REGRESSION, STUDENT)
def student_t_of_unknown_scale():
    with pm.Model(coords={"feature": FEATURES}) as model:
        scale = pm.HalfNormal("scale", 1)
        w = pm.StudentT("w", nu=2, mu=0, sigma=scale, dims="feature")
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ w, sigma, observed=Y)
    return model


@case("Student-t weights, a scale each", REGRESSION, STUDENT)
def student_t_scale_each():
    with pm.Model() as model:
        scale = pm.HalfNormal("scale", 1, shape=P)
        w = pm.StudentT("w", nu=4, mu=0, sigma=scale, shape=P)
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ w, sigma, observed=Y)
    return model


@case("Cauchy slopes of a logistic regression", {"w": STEEP, "b": B}, STUDENT)
def cauchy():
    with pm.Model() as model:
        w = pm.Cauchy("w", 0, 2.5, shape=P)
        b = pm.Cauchy("b", 0, 10)
        pm.Bernoulli("y", p=pm.math.sigmoid(b + X @ w), observed=BINARY)
    return model


@case("Student-t weights from Gamma precisions under one scale", REGRESSION, EACH)
def student_t_by_hand():
    with pm.Model() as model:
        scale = pm.HalfCauchy("scale", 1)
        precision = pm.Gamma("precision", 1.5, 1.5, shape=P)
        z = pm.Normal("z", 0, 1, shape=P)
        w = pm.Deterministic("w", scale * z / pm.math.sqrt(precision))
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ w, sigma, observed=Y)
    return model
