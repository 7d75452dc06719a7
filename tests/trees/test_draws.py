"""Draws of weights and nuisance parameters together."""

from types import SimpleNamespace

import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_allclose

import bayes_sparse as bs
from bayes_sparse.inference.approximations import LaplaceApproximation
from bayes_sparse.inference.evidence.state import Objective, Outcome
from bayes_sparse.trees.naming import finite_logs
from bayes_sparse.trees.weights import WeightsDescription
from tests.inference.test_nearby import linear

pytestmark = pytest.mark.quick

COUNT = 40_000


def described(n, M, m):
    problem, alpha, P = linear(n, M, m)
    laplace = LaplaceApproximation(problem, Objective(log_prior=problem.log_prior))
    state = laplace.at(np.arange(M), alpha, problem.theta)
    end = Outcome(state, [], converged=True, iterations=1)
    return WeightsDescription(SimpleNamespace(searched=problem), laplace, end, state, laplace), state, P


@pytest.mark.parametrize(("n", "M"), [(40, 5), (12, 20)])
def test_all_draws_together_have_the_covariance_of_the_joint_posterior(n, M):
    """Of a linear model, where some slopes are called nuisance parameters and are correlated with the weights."""
    description, _, P = described(n, M, 3)
    drawn = description.draw(COUNT, np.random.default_rng(1))
    found, truth = np.cov(np.hstack([drawn.x, drawn.theta]), rowvar=False), np.linalg.inv(P)
    sd = np.sqrt(np.diag(truth))
    assert_allclose(found / np.outer(sd, sd), truth / np.outer(sd, sd), atol=5 * np.sqrt(2 / COUNT))


@pytest.mark.parametrize("m", [1, 3])
def test_log_densities_are_those_at_the_point_values(m):
    """The posterior is normal there, so both densities differ by the evidence, whichever way the weights followed."""
    description, state, _ = described(40, 5, m)
    drawn = description.draw(50, np.random.default_rng(1))
    each, targets = description.look(drawn, slice(None), each=True)
    assert_allclose(targets["log_p"] - drawn.log_q, np.full(50, state.log_evidence), rtol=1e-9)
    problem = description.labelled.searched
    eta = drawn.x @ problem.design.columns(np.arange(5)).T
    assert_allclose(each, [problem.pointwise(*draw)[0] for draw in zip(eta, drawn.theta, strict=True)])


@pytest.mark.parametrize("model", ["horseshoe", "ard_gaussian"])
@pytest.mark.parametrize(("likelihood", "name"), [("negative_binomial", "dispersion"), ("gamma", "shape")])
def test_nuisance_parameters_are_drawn_as_wide_by_methods_with_another_objective(model, likelihood, name):
    """Some add a prior of theirs, or a bound's constant, to the objective of the state that they end at."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((150, 4))
    mean = np.exp(1 + 0.7 * X[:, 0])
    y = rng.negative_binomial(2, 2 / (2 + mean)) if likelihood == "negative_binomial" else rng.gamma(2, mean)
    method = "variational" if model == "ard_gaussian" else "evidence"
    trees = [
        bs.fit(own, (X, y), method=by, likelihood=likelihood, random_seed=0, progressbar=False)
        for own, by in ((model, method), ("ard_gaussian", "sequential"))
    ]
    assert_allclose(*(np.log(tree["posterior"][name]).std() for tree in trees), rtol=0.1)


@pytest.mark.filterwarnings("ignore::bayes_sparse.FitWarning")
@pytest.mark.parametrize("p", [1, 3])
def test_draws_of_a_noise_that_nearly_anything_fits_have_a_finite_likelihood(p):
    """Two rows that are nearly the same, and a density that falls like an exponential of an exponential."""
    X = np.repeat(np.linspace(-0.6, 1.2, p)[None], 2, axis=0)
    with pm.Model() as model:
        w = pm.Normal("w", 0, pm.HalfNormal("scale", shape=p), shape=p)
        eta = pm.math.dot(X, w) + pm.Normal("b", 0, 5)
        pm.Gumbel("y", eta, pm.HalfNormal("s"), observed=[0.202, 0.189])
    tree = bs.fit(model, draws=200, chains=1, random_seed=1, progressbar=False)
    assert np.log(tree["posterior"]["s"]).std() > 1
    assert np.isfinite(tree["log_likelihood"]["y"]).all()


@pytest.mark.filterwarnings("ignore::bayes_sparse.FitWarning")
def test_draws_so_far_out_that_they_have_no_density_count_for_nothing():
    """Counts that are all zero leave their rate open: half of the draws are of rates beyond the largest number."""
    X = np.random.default_rng(0).normal(size=(6, 2))
    tree = bs.fit("jeffreys_laplace", (X, np.zeros(6, int)), likelihood="poisson", random_seed=1, progressbar=False)
    pointwise, bias = tree["log_likelihood"]["y"].to_numpy(), tree["posterior"]["bias"].to_numpy()
    beyond, near = bias > 710, bias < 230
    assert 0.2 < beyond.mean() < 0.8
    assert (pointwise[beyond] == -1e150).all()
    assert_allclose(pointwise[near], -np.exp(bias[near])[:, None] * np.ones(6), rtol=1e-9)
    log_p = tree["sample_stats"]["log_p"].to_numpy()
    assert (log_p[beyond] == -np.inf).all()  # of no weight at all
    assert np.isfinite(log_p[near]).all()


def test_densities_that_can_be_computed_are_as_they_are():
    values = np.array([3.0, -7e140, 0.0, -np.inf, np.nan, np.inf])
    assert finite_logs(values).tolist() == [3.0, -7e140, 0.0, -1e150, -1e150, -1e150]


@pytest.mark.filterwarnings("ignore::bayes_sparse.FitWarning")
def test_rates_below_the_smallest_number_have_no_density_either():
    """A hurdle's density there is one infinity less another, which PyMC makes plus infinity of."""
    X = np.random.default_rng(0).normal(size=(6, 2))
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, pm.HalfNormal("s", 1.0, shape=2), shape=2)
        pm.HurdlePoisson("y", 0.7, pm.math.exp(X @ w + pm.Normal("b", 0.0, 1e4)), observed=[1, 0, 0, 0, 1, 0])
    tree = bs.fit(model, draws=200, chains=1, random_seed=1, progressbar=False)
    pointwise, out = tree["log_likelihood"]["y"].to_numpy(), tree["posterior"]["b"].to_numpy() < -800
    assert out.any()
    assert (pointwise[out][:, [0, 4]] == -1e150).all()
    assert np.isfinite(pointwise).all()
    assert (tree["sample_stats"]["log_p"].to_numpy()[out] == -np.inf).all()
