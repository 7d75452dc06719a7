"""Draws and expectations of new observations, against closed forms."""

import numpy as np
import pymc as pm
import pytensor
import pytest
from scipy import stats

from bayes_sparse.inputs.pm_model import read_model

from .against_pymc import random_state
from .user_models import (
    COUNT,
    EXPOSURE,
    REAL,
    N,
    X,
    bernoulli_probit,
    binomial,
    custom,
    gamma,
    negative_binomial,
    normal,
    poisson_exposure,
    sparse_weights,
    with_likelihood,
    zero_inflated,
)


def test_simulate_follows_the_users_distribution():
    declared = read_model(with_likelihood(negative_binomial))
    theta, eta = np.log([3.0]), np.full(N, np.log(5.0))
    rng = np.random.default_rng(5)
    draws = np.concatenate([declared.forecast.simulate(eta, theta, rng) for _ in range(200)])
    variance = 5.0 + 25.0 / 3.0
    # 4.5 standard errors of the mean of 6000 draws: a false alarm in 150,000 runs
    assert abs(draws.mean() - 5.0) < 4.5 * np.sqrt(variance / len(draws))
    share = (draws == 0).mean()
    exact = stats.nbinom(3.0, 3.0 / 8.0).pmf(0)
    assert abs(share - exact) < 4.5 * np.sqrt(exact * (1 - exact) / len(draws))
    again = declared.forecast.simulate(eta, theta, np.random.default_rng(1))
    np.testing.assert_array_equal(again, declared.forecast.simulate(eta, theta, np.random.default_rng(1)))
    assert (again != declared.forecast.simulate(eta, theta, np.random.default_rng(2))).any()


def test_simulate_leaves_the_users_model_alone():
    model = with_likelihood(zero_inflated)
    before = [str(rng.get_value().bit_generator.state) for rng in _random_states(model)]
    declared = read_model(model)
    draws = declared.forecast.simulate(np.full(N, 1.0), declared.problem.theta, np.random.default_rng(1))
    assert draws.shape == (N,)
    assert before == [str(rng.get_value().bit_generator.state) for rng in _random_states(model)]


def _random_states(model):
    graph = pytensor.graph.traversal.ancestors([model["y"]])
    return [v for v in graph if v.owner is None and "Random" in type(v.type).__name__ and hasattr(v, "get_value")]


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        (bernoulli_probit, lambda eta: stats.norm.cdf(eta)),
        (poisson_exposure, lambda eta: np.exp(eta) * EXPOSURE),
        (normal, lambda eta: eta),
        (gamma, lambda eta: np.exp(eta)),
        (binomial, lambda eta: (COUNT + 3) / (1 + np.exp(-eta))),
    ],
    ids=lambda f: getattr(f, "__name__", ""),
)
def test_mean(family, expected):
    declared = read_model(with_likelihood(family))
    _, theta, eta = random_state(declared)
    # PyMC keeps the probit link's square root of 2 in single precision
    np.testing.assert_allclose(
        declared.mean(eta, theta), expected(eta), rtol=1e-6 if family is bernoulli_probit else 1e-12
    )


def test_no_mean_of_a_users_own_distribution():
    assert read_model(with_likelihood(custom)).mean is None


def test_refuses_to_simulate_a_density_alone():
    declared = read_model(with_likelihood(custom))
    with pytest.raises(ValueError, match=r"'y' cannot be simulated; give pm\.CustomDist a function random=f"):
        declared.forecast.simulate(np.zeros(N), declared.problem.theta, np.random.default_rng(0))


def test_simulate_a_users_own_distribution():
    def draw(mu, rng=None, size=None):
        return rng.normal(mu, 0.1, size=size)

    with pm.Model() as model:
        eta = X @ sparse_weights()
        pm.CustomDist("y", eta, logp=lambda v, mu: -((v - mu) ** 2), random=draw, observed=REAL)
    drawn = read_model(model).forecast.simulate(np.arange(N) * 10.0, np.empty(0), np.random.default_rng(0))
    assert np.abs(drawn - np.arange(N) * 10.0).max() < 1.0


def test_predicting_other_rows_than_the_likelihoods_data():
    declared = read_model(with_likelihood(poisson_exposure))
    with pytest.raises(ValueError, match="uses data with 30 rows, but the predictor has 7; set the new data"):
        declared.forecast.simulate(np.zeros(7), np.empty(0), np.random.default_rng(0))
