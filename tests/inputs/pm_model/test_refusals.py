"""Models that cannot be read: one sentence that says why and what to do."""

import numpy as np
import pymc as pm
import pytest

from bayes_sparse.inputs.pm_model import read_model

from .user_models import GROUP, REAL, N, P, X, normal, sparse_weights


def refused(build, match, **kwargs):
    with pm.Model() as model:
        build()
    with pytest.raises(ValueError, match=match) as caught:
        read_model(model, **kwargs)
    assert str(caught.value).count(". ") == 0  # one sentence


def test_refuses_a_model_without_a_sparse_prior():
    def build():
        pm.Normal("y", pm.Normal("b", 0, 1) + X @ pm.Normal("w", 0, 1, shape=P), 1.0, observed=REAL)

    refused(build, r"No sparse prior was found.* are 'w', .*bayes_sparse\.models\.Declared\(model, weights=\"w\"\)")
    refused(build, "weights='v' does not name .* are 'w'", weights="v")
    refused(build, "weights='b' does not name", weights="b")


def test_refuses_a_shared_scale():
    def build():
        pm.Normal("y", X @ pm.Normal("w", 0, pm.HalfNormal("tau", 1.0), shape=P), 1.0, observed=REAL)

    refused(build, "'w' share the prior scale 'tau'; a sparse prior needs one precision a weight")
    refused(build, "'w' share the prior scale 'tau'", weights="w")


def test_refuses_discrete_latent_variables():
    def build():
        z = pm.Bernoulli("z", 0.5)
        pm.Normal("y", z + X @ sparse_weights(), 1.0, observed=REAL)

    refused(build, "'z' is discrete")


def test_refuses_several_observed_variables():
    def build():
        mu = X @ sparse_weights()
        pm.Normal("y1", mu, 1.0, observed=REAL)
        pm.Normal("y2", mu, 1.0, observed=REAL)

    refused(build, "exactly one observed variable; it has 'y1', 'y2'")
    refused(lambda: sparse_weights(), "exactly one observed variable; it has none")


@pytest.mark.filterwarnings("ignore:Data in y contains missing values")
def test_refuses_missing_values():
    def build():
        pm.Normal("y", X @ sparse_weights(), 1.0, observed=np.ma.masked_array(REAL, REAL > 1))

    refused(build, "'y' has missing values; leave those rows out")


@pytest.mark.parametrize(
    "predictor",
    [
        lambda w: X @ w**2,
        lambda w: np.eye(N) @ pm.math.exp(X @ w),
        lambda w: np.ones((N, 7)) @ pm.math.exp(np.ones((7, P)) @ w),
        lambda w: (X @ w).sum() * np.ones(N) + pm.math.exp(w[0]),
        lambda w: X @ (w * pm.HalfNormal("scale", 1.0)),
        lambda w: pm.math.softmax(X @ w),
    ],
    ids=["square", "nested", "nested, other length", "scalar", "random coefficients", "softmax"],
)
def test_refuses_a_predictor_that_is_not_linear(predictor):
    refused(lambda: pm.Normal("y", predictor(sparse_weights()), 1.0, observed=REAL), "need.* linear predictor|single")


def test_refuses_weights_in_two_predictors():
    def build():
        w = sparse_weights()
        pm.Normal("y", X @ w, pm.math.exp(X**2 @ w), observed=REAL)

    refused(build, "'w' enter the likelihood through 2 different linear predictors")


def test_refuses_an_effect_inside_and_outside_the_predictor():
    def build():
        b = pm.Normal("b", 0, 1)
        pm.Normal("y", b + X @ sparse_weights(), pm.math.exp(b), observed=REAL)

    refused(build, "'b' reaches the likelihood both through the linear predictor and outside it")


def test_refuses_a_multivariate_prior():
    def build():
        pm.Normal("y", X @ pm.MvNormal("w", np.zeros(P), np.eye(P)), 1.0, observed=REAL)

    refused(build, "'w' has a multivariate normal prior, which is not supported")
    refused(build, "'w' has a multivariate normal prior, which is not supported", weights="w")


def test_refuses_a_random_prior_mean():
    def build():
        u = pm.Normal("u", pm.Normal("m", 0, 1), 1.0, shape=3)
        pm.Normal("y", X @ sparse_weights() + u[GROUP], 1.0, observed=REAL)

    refused(build, "prior mean of 'u' depends on 'm'")


def test_refuses_effects_multiplied_by_a_random_scale():
    def build():
        u = pm.Normal("u", 0, 1, shape=3) * pm.HalfNormal("tau", 1.0)
        pm.Normal("y", X @ sparse_weights() + u[GROUP], 1.0, observed=REAL)

    refused(build, "vector 'u' with a Normal prior reaches the likelihood other than through")


def test_refuses_a_potential():
    def build():
        pm.Potential("like", pm.logp(pm.Normal.dist(X @ sparse_weights(), 1.0), REAL).sum())

    refused(build, "has a pm.Potential, 'like'.* pm.CustomDist")


def test_refuses_a_density_that_is_not_a_term_an_observation():
    def build():
        pm.CustomDist("y", X @ sparse_weights(), logp=lambda v, mu: -((v - mu) ** 2).sum(), observed=REAL)

    refused(build, "mixes observations")


def test_refuses_a_density_that_captures_a_variable():
    def build():
        sigma = pm.HalfNormal("sigma", 1.0)
        pm.CustomDist("y", X @ sparse_weights(), logp=lambda v, mu: -((v - mu) ** 2) / sigma, observed=REAL)

    refused(build, "uses 'sigma' without being given it")


def test_refuses_a_table_of_observations():
    def build():
        eta = X @ sparse_weights()
        pm.Normal("y", eta[:, None], 1.0, observed=np.ones((N, 2)))

    refused(build, "'y' has 2 dimensions")


@pytest.mark.parametrize("bad", [np.ones(N - 1), np.full(N, np.nan), -np.ones(N)])
def test_refuses_bad_observation_weights(bad):
    refused(lambda: normal(X @ sparse_weights()), "weights must be 30 finite numbers", observation_weights=bad)
