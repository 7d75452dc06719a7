"""Models that cannot be read: one sentence that says why and what to do."""

import numpy as np
import pymc as pm
import pytest

from bayes_sparse.inputs.pm_model import read_model
from bayes_sparse.inputs.pm_model.roles import Asked
from tests.support import assert_one_sentence

from .user_models import REAL, N, P, X, normal, sparse_weights


def refused(build, match, **kwargs):
    with pm.Model() as model:
        build()
    with pytest.raises(ValueError, match=match) as caught:
        read_model(model, **kwargs)
    assert_one_sentence(str(caught.value))


def test_refuses_a_model_without_a_sparse_prior():
    def build():
        pm.Normal("y", pm.Normal("b", 0, 1) + X @ pm.Normal("w", 0, 1, shape=P), 1.0, observed=REAL)

    refused(build, r"No sparse prior was found.* are 'b', 'w': .*bayes_sparse\.fit\(model, sparse=\['w'\]\)")
    refused(build, "sparse='v' does not name .* are 'b', 'w'", asked=Asked(("v",)))
    refused(build, "sparse='v' does not name .* are 'b', 'w'", asked=Asked(grouped=("v",)))


def test_refuses_discrete_latent_variables():
    def build():
        z = pm.Bernoulli("z", 0.5)
        pm.Normal("y", z + X @ sparse_weights(), 1.0, observed=REAL)

    refused(build, "'z' is discrete")


def test_refuses_a_model_that_is_told_nothing():
    refused(lambda: sparse_weights(), "no observed variable, .*observed=, .*pm.observe")


@pytest.mark.parametrize(
    ("predictor", "how"),
    [
        (lambda w: X @ w**2, "enters through a power"),
        (lambda w: X @ pm.math.sqr(w), "enters through a square"),
        (lambda w: X @ (w * w), "is multiplied by 'w'"),
        (lambda w: np.ones((N, 7)) @ pm.math.exp(np.ones((7, P)) @ w), r"enters through exp\(\)"),
        (lambda w: (X @ w).sum() * np.ones(N) + pm.math.exp(w[0]), r"enters through exp\(\)"),
        (lambda w: (X @ w) * (X @ pm.Normal("v", 0, 1, shape=P)), "is multiplied by 'v'"),
        (lambda w: (X @ w) * pm.Normal("v", 0, 1, shape=5)[np.arange(N) % 5], "is multiplied by 'v'"),
        (lambda w: (X @ w) / (X @ pm.Normal("v", 0, 1, shape=P)), "is multiplied by 'v'"),
    ],
    ids=["power", "square", "itself", "other length", "scalar", "two vectors", "slopes of groups", "quotient"],
)
def test_refuses_a_predictor_that_is_not_linear(predictor, how):
    refused(
        lambda: pm.Normal("y", predictor(sparse_weights()), 1.0, observed=REAL),
        f"not linear in 'w', which {how}; .*need a linear predictor.*method='revm'.*method='nuts'",
    )


def test_refuses_two_vectors_multiplied_by_each_other_beside_sparse_ones():
    def build():
        u, v = (pm.Normal(name, 0, 1, shape=P) for name in "uv")
        pm.Normal("y", X @ sparse_weights() + X @ (u * v), 1.0, observed=REAL)

    refused(build, "not linear in 'u', which is multiplied by 'v'")


def test_a_scalar_that_multiplies_weights_is_a_scale():
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("a", 1, 1) * (X @ sparse_weights()), 1.0, observed=REAL)
    assert read_model(model).sparse[0].name == "w"


@pytest.mark.parametrize(
    "predictor", [lambda w: pm.math.softmax(X @ w), lambda w: np.tri(N) @ pm.math.exp(X @ w)], ids=["softmax", "sums"]
)
def test_refuses_a_likelihood_that_mixes_rows(predictor):
    refused(lambda: pm.Normal("y", predictor(sparse_weights()), 1.0, observed=REAL), "'y' mixes observations.*'nuts'")


def test_refuses_a_model_with_nothing_but_an_intercept():
    refused(lambda: pm.Normal("y", pm.Normal("b", 0, 1) + X[:, 0], 1.0, observed=REAL), "but an intercept .'b'.")


def test_names_few_of_many_variables():
    def build():
        slopes = [pm.Normal(f"b{i}", 0, 1) * X[:, i % P] for i in range(12)]
        pm.Normal("y", sum(slopes), 1.0, observed=REAL)

    refused(build, "'b7' and 4 more: .*sparse=..b0")
    refused(build, "Did you mean 'b1'", asked=Asked(("b_1",)))


def test_refuses_a_multivariate_prior_of_unknown_covariance():
    def build():
        covariance = pm.HalfNormal("s", 1.0) * np.eye(P)
        pm.Normal("y", X @ pm.MvNormal("w", np.zeros(P), covariance), 1.0, observed=REAL)

    refused(build, "No variable with a pm.Normal prior.* of 'y'.* correlated weights")


def test_refuses_a_density_that_is_not_a_term_an_observation():
    def build():
        pm.CustomDist("y", X @ sparse_weights(), logp=lambda v, mu: -((v - mu) ** 2).sum(), observed=REAL)

    refused(build, "mixes observations")


def test_refuses_a_density_that_captures_a_variable():
    def build():
        sigma = pm.HalfNormal("sigma", 1.0)
        pm.CustomDist("y", X @ sparse_weights(), logp=lambda v, mu: -((v - mu) ** 2) / sigma, observed=REAL)

    refused(build, "uses 'sigma' without being given it")


def test_refuses_a_table_of_observations_without_one_of_predictors():
    def build():
        eta = X @ sparse_weights()
        pm.Normal("y", eta[:, None], 1.0, observed=np.ones((N, 2)))

    refused(build, "'y' is a table, and .* no table of linear predictors of the same shape")


def test_refuses_more_dimensions_than_a_table_has():
    def build():
        pm.Normal("y", (X @ sparse_weights())[:, None, None], 1.0, observed=np.ones((N, 2, 2)))

    refused(build, "'y' has 3 dimensions; evidence methods take one, or a table of two")


@pytest.mark.parametrize("bad", [np.ones(N - 1), np.full(N, np.nan), -np.ones(N)])
def test_refuses_bad_observation_weights(bad):
    refused(lambda: normal(X @ sparse_weights()), "weights must be 30 finite numbers", observation_weights=bad)
