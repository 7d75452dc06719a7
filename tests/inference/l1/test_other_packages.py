"""The path against other packages: logistic regression of two of them, scikit-learn's lasso and its exact path."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import Lasso as TheirLasso
from sklearn.linear_model import LogisticRegression, lars_path

from .problems import case, draw

FINE = 1e-10


def by_scikit_learn(X, y, lam):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # versions differ in how the penalty is named
        model = LogisticRegression(
            penalty="elasticnet", l1_ratio=1.0, C=1 / lam, solver="saga", tol=1e-12, max_iter=100_000
        )
        found = model.fit(X, y)
    return np.append(found.coef_, found.intercept_)


def by_skglm(X, y, lam):
    """Compiles itself first, in ten seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from skglm.datafits import Logistic
        from skglm.penalties import L1
        from skglm.solvers import ProxNewton
    solver = ProxNewton(tol=1e-10, fit_intercept=True, max_iter=200, max_pn_iter=1000)
    return solver.solve(np.asfortranarray(X), 2 * y - 1, Logistic(), L1(lam / len(y)))[0]


@pytest.mark.parametrize("package", [by_scikit_learn, pytest.param(by_skglm, marks=pytest.mark.slow)])
def test_it_is_their_logistic_regression(package):
    X, y = draw("bernoulli", n=80, M=30, seed=1)
    problem = case("bernoulli", X, y)
    lasso = problem.lasso()
    spot, sizes = lasso.null(), []
    for lam in lasso.largest(spot) * np.geomspace(0.9, 0.01, 10):
        theirs, spot = package(X, y, lam), lasso.solve(lam, spot, FINE)
        ours = problem.full(spot)
        assert_allclose(problem.objective(lam, ours), problem.objective(lam, theirs), rtol=1e-8)
        assert_allclose(ours, theirs, atol=1e-5)
        sizes.append(len(spot.index) - 1)
    assert sizes[0] == 1
    assert max(sizes) > 25


def test_it_is_scikit_learns_lasso():
    X, y = draw("normal", n=40, M=15, seed=2)
    problem = case("normal", X, y, sigma=1.0)
    lasso = problem.lasso()
    for part in np.geomspace(0.9, 0.01, 10):
        spot = lasso.cold(part * lasso.largest(lasso.null()), FINE)
        theirs = TheirLasso(alpha=spot.lam / 40, tol=1e-14, max_iter=100_000).fit(X, y)
        assert_allclose(problem.full(spot), np.append(theirs.coef_, theirs.intercept_), atol=1e-7)


def test_knots_of_the_lars_path():
    """At a knot of the exact piecewise linear path, wide: between two of them the weights are on a line."""
    X, y = draw("normal", n=20, M=40, seed=3, active=3)
    X, y = X - X.mean(axis=0), y - y.mean()
    alphas, _, coefs = lars_path(X, y, method="lasso")
    problem = case("normal", X, y, sigma=1.0)
    lasso = problem.lasso()
    for i in range(8):
        for t in (0.0, 0.5):
            lam = 20 * ((1 - t) * alphas[i] + t * alphas[i + 1])
            truth = (1 - t) * coefs[:, i] + t * coefs[:, i + 1]
            assert_allclose(problem.full(lasso.cold(lam, FINE))[:40], truth, atol=1e-8)


@pytest.mark.parametrize("known", [True, False], ids=["known noise", "unknown noise"])
def test_knots_of_a_piecewise_linear_path(known):
    """Where a weight, going on as it does between two knots of the exact path, would reach zero."""
    X, y = draw("normal", n=40, M=10, seed=7, alike=0.7)
    X, y = X - X.mean(axis=0), y - y.mean()
    alphas, _, coefs = lars_path(X, y, method="lasso")
    sigma = 0.8
    path = case("normal", X, y, sigma=sigma if known else None).path()
    unit, entered = 40 / (sigma**2 if known else 1.0), 0
    for i in range(1, len(alphas) - 1):
        low, high = coefs[:, i + 1], coefs[:, i]
        middle = (alphas[i] + alphas[i + 1]) / 2
        fall = (high - low) / (alphas[i] - alphas[i + 1])
        active = (high + low) / 2 != 0
        zero = middle - ((high + low) / 2)[active] / fall[active]
        point = path.cold(middle * unit, FINE)
        assert_allclose(point.knot, zero[zero > middle].min() * unit, rtol=1e-7)
        if np.sum((high == 0) & (low != 0)):
            assert_allclose(point.knot, alphas[i] * unit, rtol=1e-7)
            entered += 1
    assert entered > 6
