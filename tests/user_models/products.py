"""Less common ways to write the product of columns and weights."""

import numpy as np
import pymc as pm
import pymc.dims as pmd
import pytensor.sparse
import pytensor.tensor as pt
import scipy.sparse

from .case import case
from .data import FEATURES, REGRESSION, SIGMA, B, N, P, W, X, Y, rng

EACH = "sparse vector w, a precision per weight"
REST = {"b": B, "sigma": SIGMA}


@case("a product by einsum", REGRESSION, EACH)
def einsum():
    with pm.Model() as model:
        s = pm.HalfCauchy("s", 1, shape=P)
        w = pm.Normal("w", 0, s, shape=P)
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + pt.einsum("ij,j->i", X, w), sigma, observed=Y)
    return model


@case("a product by matmul, transposed", REGRESSION, EACH)
def matmul():
    with pm.Model() as model:
        X_data = pm.Data("X", X.T)
        s = pm.HalfCauchy("s", 1, shape=P)
        w = pm.Normal("w", 0, s, shape=P)
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + pm.math.matmul(X_data.T, w), sigma, observed=Y)
    return model


@case("a sparse matrix of columns", REGRESSION, EACH)
def sparse_matrix():
    words = np.where(np.abs(X) > 0.7, X, 0)
    y = B + words @ W + SIGMA * rng(150).normal(size=N)
    with pm.Model() as model:
        s = pm.HalfCauchy("s", 1, shape=P)
        w = pm.Normal("w", 0, s, shape=P)
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        product = pytensor.sparse.dot(scipy.sparse.csr_matrix(words), w[:, None])
        pm.Normal("y", b + product.flatten(), sigma, observed=y)
    return model


@case("a model of pymc.dims", refused="'s'.*pymc.dims")
def named_dims():
    with pm.Model(coords={"feature": FEATURES, "row": range(N)}) as model:
        X_data = pmd.Data("X", X, dims=("row", "feature"))
        y_data = pmd.Data("y_data", Y, dims="row")
        s = pmd.HalfCauchy("s", beta=1, dims="feature")
        w = pmd.Normal("w", mu=0, sigma=s, dims="feature")
        b = pmd.Normal("b", mu=0, sigma=5)
        sigma = pmd.HalfNormal("sigma", sigma=1)
        pmd.Normal("y", mu=b + X_data.dot(w, dim="feature"), sigma=sigma, observed=y_data)
    return model


@case("two vectors joined before the product", {"w": W[:3], "v": W[3:], **REST}, "sparse vectors w and v")
def joined():
    with pm.Model() as model:
        w = pm.Normal("w", 0, pm.HalfCauchy("s_w", 1, shape=3), shape=3)
        v = pm.Normal("v", 0, pm.HalfCauchy("s_v", 1, shape=5), shape=5)
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ pt.concatenate([w, v]), sigma, observed=Y)
    return model


@case(
    "an intercept as the first weight",
    {"w": [B, *W], "sigma": SIGMA},
    "sparse vector w, a precision per weight but the first, whose scale is known",
)
def column_of_ones():
    ones = np.c_[np.ones(N), X]
    with pm.Model(coords={"term": ["Intercept", *FEATURES]}) as model:
        s = pm.HalfCauchy("s", 1, shape=P)
        w = pm.Normal("w", 0, pt.concatenate([[10.0], s]), dims="term")
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", pm.math.dot(ones, w), sigma, observed=Y)
    return model


@case("a list of scalar slopes stacked", {"w_0": 1.5, "w_1": 0.0, "w_2": -1.0, **REST}, "scalars, a precision each")
def stacked_scalars():
    y = B + X[:, :3] @ W[:3] + SIGMA * rng(151).normal(size=N)
    with pm.Model() as model:
        scales = [pm.HalfCauchy(f"s_{i}", 1) for i in range(3)]
        slopes = [pm.Normal(f"w_{i}", 0, s) for i, s in enumerate(scales)]
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X[:, :3] @ pt.stack(slopes), sigma, observed=y)
    return model
