"""Precisions put back into the variable behind a sparse prior."""

import numpy as np
import pymc as pm
import pytest

from bayes_sparse.inputs.pm_model import read_model

from .user_models import BINARY, P, X, sparse_weights


@pytest.mark.parametrize(
    ("prior", "alpha"),
    [
        (lambda a: {"tau": a}, lambda p: p),
        (lambda a: {"sigma": a}, lambda p: p**-0.5),
        (lambda a: {"sigma": 1 / a}, lambda p: p**0.5),
        (lambda a: {"sigma": a**-0.5}, lambda p: p),
        (lambda a: {"sigma": 3.0 * pm.math.sqrt(a)}, lambda p: 1 / (9 * p)),
        (lambda a: {"tau": a / np.arange(1.0, P + 1)}, lambda p: p * np.arange(1.0, P + 1)),
    ],
)
def test_hyper_values(prior, alpha):
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, **prior(pm.Gamma("alpha", 1.0, 1.0, shape=P)))
        pm.Bernoulli("y", logit_p=X @ w, observed=BINARY)
    precision = np.array([0.5, 2.0, 7.0, 100.0])
    np.testing.assert_allclose(read_model(model).hyper("w", precision)["alpha"], alpha(precision))


def test_hyper_values_of_pruned_weights():
    with pm.Model() as model:
        pm.Bernoulli("y", logit_p=X @ sparse_weights(), observed=BINARY)
    pruned = np.array([1.0, np.inf, 2.0, np.inf])
    np.testing.assert_allclose(read_model(model).hyper("w", pruned)["alpha_w"], pruned)


@pytest.mark.parametrize("sd", [lambda a: 1 + a, lambda a: a[::-1], pm.math.exp], ids=["sum", "permuted", "exp"])
def test_no_hyper_values_where_there_is_no_power_law(sd):
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, sd(pm.HalfNormal("alpha", 1.0, shape=P)))
        pm.Bernoulli("y", logit_p=X @ w, observed=BINARY)
    assert read_model(model).hyper("w", np.ones(P)) is None
