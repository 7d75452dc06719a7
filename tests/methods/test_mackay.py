"""MacKay's fixed point satisfies its own equations; one basis function is scikit-learn's BayesianRidge."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import BayesianRidge

import bayes_sparse as bs

pytestmark = [pytest.mark.quick, pytest.mark.filterwarnings("ignore::bayes_sparse.FitWarning")]

BARE = bs.basis.linear(bias=False, standardise=False)


def regression(seed=0, n=60, M=5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, M))
    return X, X[:, 0] - 0.5 * X[:, 1] + 0.2 * X[:, 2] + 0.5 * rng.standard_normal(n)


def posterior(X, y, alpha, sigma):
    Sigma = np.linalg.inv(X.T @ X / sigma**2 + np.diag(alpha))
    w = Sigma @ X.T @ y / sigma**2
    return w, Sigma, 1 - alpha * Sigma.diagonal()


@pytest.mark.parametrize("c", [0.0, 0.7])
def test_the_end_satisfies_its_equations(c):
    X, y = regression()
    settings = {"smoothness": c, "tolerance": 1e-13, "reestimate": False}
    evidence = bs.fit("ard_gaussian", (X, y), basis=BARE, method="mackay", draws=0, **settings)["evidence"]
    kept = evidence["kept"].to_numpy()
    X, alpha, sigma = X[:, kept], evidence["alpha"].to_numpy()[kept], float(evidence["sigma"])
    w, Sigma, gamma = posterior(X, y, alpha, sigma)
    T = (Sigma @ X.T @ X @ Sigma / sigma**2).diagonal()
    # A round gains less than 1e-13 nats, a quadratic function of the distance: 1e-5 or so of log alpha is left.
    assert_allclose(alpha, (gamma + 2 * c * alpha * T) / w**2, rtol=1e-4)
    assert_allclose(sigma**2, np.sum((y - X @ w) ** 2) / (len(y) - gamma.sum() - 2 * c * alpha @ T), rtol=1e-5)
    assert_allclose(evidence["gamma"].to_numpy()[kept], gamma, rtol=1e-8)


@pytest.mark.parametrize("hyper", [(0.5, 0.3), (1e-3, 1e-3), (0.0, 0.1)])
def test_with_a_gamma_prior(hyper):
    X, y = regression()
    a, b = hyper[0], hyper[1] * y.var()  # stated for targets divided by their spread
    tree = bs.fit("ard_gaussian", (X, y), basis=BARE, method="mackay", hyper=hyper, draws=0, tolerance=1e-13)
    evidence = tree["evidence"]
    assert bool(evidence["kept"].all())  # no precision is infinite under a proper prior
    assert evidence.attrs["smoothness"] == 0
    alpha, sigma = evidence["alpha"].to_numpy(), float(evidence["sigma"])
    w, _, gamma = posterior(X, y, alpha, sigma)
    assert_allclose(alpha, (gamma + 2 * a) / (w**2 + 2 * b), rtol=1e-4)
    # And the mode of the objective in log alpha: log E + a log alpha - b alpha.
    expected = float(evidence["log_evidence"]) + np.sum(a * np.log(alpha) - b * alpha)
    assert_allclose(float(evidence["objective"]), expected, rtol=1e-9)


def test_bernoulli_under_a_gamma_prior():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    y = rng.random(200) < 1 / (1 + np.exp(-2 * X[:, 0]))
    tree = bs.fit("ard_gaussian", (X, y), basis=BARE, method="mackay", hyper=(0.5, 0.3), draws=0)
    evidence = tree["evidence"]
    alpha, w, gamma = (evidence[name].to_numpy() for name in ("alpha", "mean", "gamma"))
    # The update leaves out how the curvature moves with the mode, so the guarded search ends near its fixed point,
    # where the objective stops rising, but not on it.
    assert_allclose(alpha, (gamma + 1) / (w**2 + 0.6), rtol=0.05)


@pytest.mark.parametrize("method", ["mackay", "em", "sequential"])
def test_one_basis_function_is_bayesian_ridge(method):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((80, 1))
    y = 1.5 * x[:, 0] + 0.7 * rng.standard_normal(80)
    flat = {"alpha_1": 0, "alpha_2": 0, "lambda_1": 0, "lambda_2": 0}
    ridge = BayesianRidge(**flat, fit_intercept=False, tol=1e-12, max_iter=10_000, compute_score=True).fit(x, y)
    tree = bs.fit("ard_gaussian", (x, y), basis=BARE, method=method, smoothness=0, draws=0, tolerance=1e-14)
    evidence = tree["evidence"]
    # The searches stop on the objective, flat at its top: 1e-14 nats leave 1e-7 in logs; Newton's last step promises
    # less than 1e-8 nats and converges quadratically.
    close = 1e-5
    assert_allclose(float(evidence["alpha"][0]), ridge.lambda_, rtol=close)
    assert_allclose(float(evidence["sigma"]) ** -2, ridge.alpha_, rtol=close)
    assert_allclose(float(evidence["mean"][0]), ridge.coef_[0], rtol=close)
    assert_allclose(float(evidence["sd"][0]), np.sqrt(ridge.sigma_[0, 0]), rtol=close)
    assert_allclose(float(evidence["log_evidence"]), ridge.scores_[-1], rtol=1e-9)


def test_useless_columns_are_pruned_by_the_rule():
    """Tipping and Faul's rule holds for every column at the end: kept ones have q^2 > s."""
    X, y = regression(2, n=40, M=12)
    tree = bs.fit("ard_gaussian", (X, y), basis=BARE, method="mackay", smoothness=0, draws=0)
    evidence = tree["evidence"]
    kept = evidence["kept"].to_numpy()
    assert 0 < kept.sum() < 12
    alpha, sigma = evidence["alpha"].to_numpy()[kept], float(evidence["sigma"])
    C = sigma**2 * np.eye(40) + (X[:, kept] / alpha) @ X[:, kept].T
    for position, column in enumerate(np.flatnonzero(kept)):
        without = np.linalg.inv(C - np.outer(X[:, column], X[:, column]) / alpha[position])
        s, q = X[:, column] @ without @ X[:, column], X[:, column] @ without @ y
        assert q**2 > s
