"""Expectation propagation and both variational Gaussians against quadrature, closed forms, textbooks, differences."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from bayes_sparse.inference.approximations import Exact, LaplaceApproximation, approximate
from bayes_sparse.inference.approximations._logistic import logistic
from bayes_sparse.inference.evidence.state import Objective
from bayes_sparse.inputs.likelihoods import bernoulli, compiled, negative_binomial, normal, poisson, student_t
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.gaussian import Dual
from tests.inference.approximations.test_laplace import BIAS_PRECISION, everything, make, stencil
from tests.support import examples

pytestmark = pytest.mark.quick

SITES = ["ep", "kl", "variational"]
LIKELIHOODS = {"bernoulli": bernoulli(), "poisson": poisson(), "negative_binomial": negative_binomial()}
seeds = st.integers(0, 2**32 - 1)
NODES = np.linspace(-12, 12, 1201)


def by_quadrature(problem, alpha):
    """Log evidence, mean and covariance of one or two weights, on a grid around Laplace's posterior."""
    index = np.arange(problem.design.width)
    Phi = problem.design.columns(index)
    near = LaplaceApproximation(problem, Objective()).at(index, alpha, problem.theta)
    axes = [NODES if len(index) == 1 else NODES[::10]] * len(index)  # spaced by a fifth of an sd, it is exact
    z = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(index))
    w = near.mean + z @ near.posterior.factor.T
    eta = problem.offset + w @ Phi.T
    each = np.array([problem.pointwise(row, problem.theta)[0] for row in eta])
    weights = np.ones(len(problem.y)) if problem.weights is None else problem.weights
    log_p = each @ weights - 0.5 * w**2 @ alpha + 0.5 * np.log(alpha / (2 * np.pi)).sum()
    cell = np.prod([axis[1] - axis[0] for axis in axes]) * np.exp(-0.5 * near.posterior.log_determinant)
    top = log_p.max()
    p = np.exp(log_p - top)
    total = p.sum()
    mean = p @ w / total
    away = w - mean
    return top + np.log(total * cell), mean, (p[:, None] * away).T @ away / total


def few_rows(likelihood, n, *, seed, M=1, weights=None):
    """With one weight, or one and a bias."""
    problem = make(likelihood, n=n, M=1, seed=seed, weights=weights)
    if M == 2:
        return problem
    columns = problem.design.columns(np.arange(1))
    return replace(problem, design=Design(columns), free=np.ones(1, dtype=bool), fixed_precision=np.empty(0))


@pytest.mark.parametrize("name", SITES)
@pytest.mark.parametrize("M", [3, 60])
def test_a_normal_likelihood_is_exact(name, M):
    problem = make(normal(), M=M)
    index, alpha, _ = everything(problem)
    exact = Exact(problem, Objective()).at(index, alpha, problem.theta)
    sites = approximate(problem, Objective(), name).at(index, alpha, problem.theta)
    assert isinstance(sites.posterior, Dual) == (M > 40)
    assert_allclose(sites.log_evidence, exact.log_evidence, atol=1e-6)  # nodes may leave 1e-7 nats
    assert_allclose(sites.mean, exact.mean, rtol=1e-6, atol=1e-8)
    assert_allclose(sites.posterior.variance, exact.posterior.variance, rtol=1e-6)


@pytest.mark.parametrize("name", LIKELIHOODS)
@examples(6)
@given(seed=seeds, log_alpha=st.floats(-3.0, 2.0))
def test_expectation_propagation_of_one_observation_is_exact(name, seed, log_alpha):
    """The cavity of the only site is the prior: its moments and its log evidence are the posterior's own."""
    problem = few_rows(LIKELIHOODS[name], 1, seed=seed)
    alpha = np.exp([log_alpha])
    state = approximate(problem, Objective(), "ep").at(np.arange(1), alpha, problem.theta)
    log_evidence, mean, covariance = by_quadrature(problem, alpha)
    # Nodes may leave 1e-7 nats; the sites stop changing at 1e-5 of a sd.
    assert_allclose(state.log_evidence, log_evidence, atol=1e-6)
    assert_allclose(state.mean, mean, atol=1e-4 * np.sqrt(covariance[0, 0]))
    assert_allclose(state.variance, covariance.diagonal(), rtol=1e-4)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", LIKELIHOODS)
@examples(3)
@given(seed=seeds, log_alpha=st.floats(-3.0, 1.0))
def test_bounds_are_bounds_and_expectation_propagation_is_nearest(name, weighted, seed, log_alpha):
    weights = np.random.default_rng(seed).uniform(0.0, 3.0, 8) if weighted else None
    problem = few_rows(LIKELIHOODS[name], 8, seed=seed, M=2, weights=weights)
    index, alpha = np.arange(2), np.array([np.exp(log_alpha), BIAS_PRECISION])
    truth, mean, covariance = by_quadrature(problem, alpha)
    states = {one: approximate(problem, Objective(), one).at(index, alpha, problem.theta) for one in SITES}
    kl, variational = states["kl"].log_evidence, states["variational"].log_evidence
    # A grid of two weights is good to 1e-8 nats, the averages over the predictors to 1e-7.
    assert variational <= kl + 1e-6
    assert kl <= truth + 1e-6
    ep = states["ep"]
    assert abs(ep.log_evidence - truth) <= truth - kl + 1e-2
    sd = np.sqrt(covariance.diagonal())
    assert np.abs((ep.mean - mean) / sd).max() < 0.15
    assert np.abs(np.log(ep.variance / sd**2)).max() < 0.4


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_the_gaussian_of_greatest_bound_is_found(name):
    """Against scipy, over mean and Cholesky factor, with the averages by Gauss-Hermite quadrature."""
    problem = few_rows(LIKELIHOODS[name], 12, seed=3, M=2)
    index, alpha = np.arange(2), np.array([0.7, BIAS_PRECISION])
    Phi = problem.design.columns(index)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()

    def lack(x):
        m, L = x[:2], np.array([[np.exp(x[2]), 0.0], [x[3], np.exp(x[4])]])
        S = L @ L.T
        mu, sd = problem.offset + Phi @ m, np.sqrt(np.einsum("ij,jk,ik->i", Phi, S, Phi))
        gain = sum(
            w * problem.pointwise(mu + sd * z, problem.theta)[0].sum() for z, w in zip(nodes, weights, strict=True)
        )
        kl = 0.5 * (alpha @ (S.diagonal() + m**2) - 2 - 2 * (x[2] + x[4]) - np.log(alpha).sum())
        return kl - gain

    state = approximate(problem, Objective(), "kl").at(index, alpha, problem.theta)
    L = np.linalg.cholesky(state.posterior.covariance)
    here = np.array([*state.mean, np.log(L[0, 0]), L[1, 0], np.log(L[1, 1])])
    found = minimize(lack, here + 0.3, method="BFGS", options={"gtol": 1e-7})
    assert_allclose(-found.fun, state.log_evidence, rtol=1e-8)
    assert_allclose(found.x, here, atol=1e-4)


def test_jaakkolas_bound_against_the_textbook_loop():
    problem = make(bernoulli(), weights=np.random.default_rng(2).uniform(0, 2, 40))
    index, alpha, Phi = everything(problem)
    state = approximate(problem, Objective(), "variational").at(index, alpha, problem.theta)
    xi = np.ones(40)
    for _ in range(3000):
        lam = problem.weights * np.tanh(xi / 2) / (4 * xi)
        S = np.linalg.inv(2 * Phi.T @ (lam[:, None] * Phi) + np.diag(alpha))
        pull = problem.weights * (problem.y - 0.5) - 2 * lam * problem.offset
        m = S @ Phi.T @ pull
        mu, v = problem.offset + Phi @ m, np.einsum("ij,jk,ik->i", Phi, S, Phi)
        xi = np.sqrt(mu**2 + v)
    assert_allclose(state.mean, m, atol=1e-5)
    assert_allclose(state.posterior.covariance, S, rtol=1e-4, atol=1e-6)
    constant = problem.weights @ (log_expit(xi) - xi / 2) + (problem.weights * (problem.y - 0.5)) @ mu
    divergence = 0.5 * (
        np.trace(alpha[:, None] * S) + alpha @ m**2 - len(m) - np.linalg.slogdet(S)[1] - np.log(alpha).sum()
    )
    assert_allclose(state.log_evidence, constant - divergence, rtol=1e-9)


@pytest.mark.parametrize("hyper", [(0.0, 0.0), (0.5, 0.3)])
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("name", SITES)
def test_the_explicit_slope_is_the_whole_slope(name, likelihood, hyper):
    problem = make(LIKELIHOODS[likelihood])
    index, alpha, _ = everything(problem)
    prior = (lambda theta: float(-0.5 * np.sum((theta - 0.2) ** 2))) if problem.theta.size and hyper[0] else None
    sites, k = approximate(problem, Objective(0.0, *hyper, prior), name), 4

    def objective(x):
        return sites.at(index, np.append(np.exp(x[:k]), alpha[-1]), x[k:]).objective

    x = np.append(np.log(alpha[:k]), problem.theta)
    state = sites.at(index, alpha, problem.theta)
    numeric = np.array([stencil(objective, x, j, 1e-2) for j in range(len(x))])
    # Values are good to 1e-7 nats where the number of nodes does not change, differences of them over 1e-2 to 1e-5.
    assert_allclose(sites.slope(state), numeric, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("name", SITES)
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_a_weight_is_a_number_of_rows(name, likelihood):
    problem = make(LIKELIHOODS[likelihood], n=20)
    index, alpha, Phi = everything(problem)
    count = np.random.default_rng(1).integers(0, 4, 20)
    rows = np.repeat(np.arange(20), count)
    repeated = make(LIKELIHOODS[likelihood], n=len(rows))
    y = problem.y[rows]
    repeated = replace(
        repeated,
        design=Design(Phi[rows, :-1], extra=np.ones((len(rows), 1))),
        y=y,
        offset=problem.offset[rows],
        pointwise=lambda eta, theta: tuple(compiled(LIKELIHOODS[likelihood])(eta, y, *theta)),
    )
    one = approximate(replace(problem, weights=count.astype(float)), Objective(), name).at(index, alpha, problem.theta)
    other = approximate(repeated, Objective(), name).at(index, alpha, problem.theta)
    assert_allclose(one.log_evidence, other.log_evidence, rtol=1e-9)
    assert_allclose(one.mean, other.mean, atol=1e-5)
    assert_allclose(one.variance, other.variance, rtol=1e-4)


@pytest.mark.parametrize("name", SITES)
def test_more_columns_than_rows(name):
    """On the side of the rows: the same numbers as with the columns that say nothing left out by a huge precision."""
    problem = make(bernoulli(), n=12, M=30, seed=4)
    index, alpha, _ = everything(problem)
    alpha[5:30] = 1e9
    wide = approximate(problem, Objective(), name).at(index, alpha, problem.theta)
    kept = np.append(np.arange(5), 30)
    narrow = approximate(problem, Objective(), name).at(kept, alpha[kept], problem.theta)
    assert isinstance(wide.posterior, Dual)
    assert_allclose(wide.log_evidence, narrow.log_evidence, atol=1e-5)
    assert_allclose(wide.mean[kept], narrow.mean, atol=1e-5)


@pytest.mark.parametrize("name", SITES)
def test_wide_predictors_take_more_nodes(name):
    """Nearly flat priors on a handful of rows: sds of many units, to which a logistic function is a step."""
    problem = few_rows(bernoulli(), 6, seed=5, M=2)
    alpha = np.array([1e-3, 1e-3])
    problem = replace(problem, fixed_precision=np.array([1e-3]))
    truth, _, _ = by_quadrature(problem, alpha)
    state = approximate(problem, Objective(), name).at(np.arange(2), alpha, problem.theta)
    if name == "ep":
        assert abs(state.log_evidence - truth) < 0.1
    else:
        assert state.log_evidence < truth + 1e-3


def test_a_certain_predictor_has_the_likelihoods_own_curvature():
    problem = few_rows(bernoulli(), 5, seed=1)
    state = approximate(problem, Objective(), "ep").at(np.arange(1), np.array([1e14]), problem.theta)
    p = expit(problem.offset)
    assert_allclose(-state.terms[2], p * (1 - p), rtol=1e-5)


@pytest.mark.parametrize("name", SITES)
def test_what_has_several_predictors_or_curves_upwards_is_refused(name):
    with pytest.raises(
        ValueError, match=rf"approximation='{name}' needs a log-concave likelihood, and that of row \d+"
    ):
        approximate(make(student_t()), Objective(), name)


def test_a_logistic_likelihood_is_known_however_it_is_declared():
    plain, weighted = make(bernoulli()), make(bernoulli(), weights=np.full(40, 3.0))
    assert_allclose(logistic(plain).trials, 1.0)
    assert_allclose(logistic(weighted).trials, 3.0)
    assert_allclose(logistic(weighted).y, 3 * plain.y, atol=1e-8)
    assert logistic(make(poisson())) is None
    assert logistic(make(normal())) is None


@pytest.mark.parametrize("name", SITES)
def test_steps_in_a_nuisance_parameter_match_no_sites_and_end_where_the_slope_does(name, monkeypatch):
    problem = make(negative_binomial())
    index, alpha, _ = everything(problem)
    sites = approximate(problem, Objective(), name)
    state = sites.at(index, alpha, problem.theta)
    assert sites.theta_step(state)[0] * sites.slope(state)[-1] > 0
    for _ in range(30):
        with monkeypatch.context() as m:
            m.setattr(sites, "at", None)
            step = sites.theta_step(state)
        state = sites.at(index, alpha, state.theta + step, state)
    assert abs(sites.slope(state)[-1]) < 1e-4
