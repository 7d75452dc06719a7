"""EM satisfies its own equations and climbs without help."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

import bayes_sparse as bs
from bayes_sparse.inference.evidence import fixed_point

pytestmark = [pytest.mark.quick, pytest.mark.filterwarnings("ignore::bayes_sparse.FitWarning")]

BARE = bs.basis.linear(bias=False, standardise=False)


def regression(seed=0, n=60, M=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, M))
    return X, X @ np.array([1.0, -0.5, 0.7])[:M] + 0.5 * rng.standard_normal(n)


@pytest.mark.parametrize(("c", "hyper"), [(0.0, None), (0.7, None), (0.0, (0.5, 0.3)), (0.7, (0.5, 0.3))])
def test_the_end_satisfies_its_equations(c, hyper):
    X, y = regression()
    settings = {"smoothness": c, "hyper": hyper, "tolerance": 1e-13, "reestimate": False}
    evidence = bs.fit("ard_gaussian", (X, y), basis=BARE, method="em", draws=0, **settings)["evidence"]
    assert evidence.attrs["status"] == "converged"
    assert bool(evidence["kept"].all())
    a, b = hyper or (0.0, 0.0)
    b *= y.var()  # stated for targets divided by their spread
    alpha, sigma = evidence["alpha"].to_numpy(), float(evidence["sigma"])
    Sigma = np.linalg.inv(X.T @ X / sigma**2 + np.diag(alpha))
    w = Sigma @ X.T @ y / sigma**2
    T = (Sigma @ X.T @ X @ Sigma / sigma**2).diagonal()
    # A round gains less than 1e-13 nats; EM's steps are short, so what is left is a few times their length, 1e-6.
    assert_allclose(alpha, (1 + 2 * a + 2 * c * alpha * T) / (w**2 + Sigma.diagonal() + 2 * b), rtol=1e-4)
    gamma = 1 - alpha * Sigma.diagonal()
    noise = (np.sum((y - X @ w) ** 2) + sigma**2 * (gamma.sum() + 2 * c * alpha @ T)) / len(y)
    assert_allclose(sigma**2, noise, rtol=1e-5)
    assert_allclose(evidence["mean"], w, rtol=1e-8)


def test_plain_em_is_monotone_by_itself():
    """Steps done here by hand, without the guard, land where the method's own history says."""
    X, y = regression()
    tree = bs.fit("ard_gaussian", (X, y), basis=BARE, method="em", smoothness=0, draws=0, max_iterations=5)
    history = tree["evidence"]["history"].to_numpy()
    # The start: precisions that spread the predictor like the targets, noise at the targets' sd.
    alpha, sigma = (X**2).mean(axis=0) * 3 / y.var(), y.std()
    ours = []
    for _ in range(6):
        C = sigma**2 * np.eye(60) + (X / alpha) @ X.T
        ours.append(multivariate_normal(np.zeros(60), C).logpdf(y))
        Sigma = np.linalg.inv(X.T @ X / sigma**2 + np.diag(alpha))
        w = Sigma @ X.T @ y / sigma**2
        gamma = 1 - alpha * Sigma.diagonal()
        sigma = np.sqrt((np.sum((y - X @ w) ** 2) + sigma**2 * gamma.sum()) / 60)
        alpha = 1 / (w**2 + Sigma.diagonal())
    assert_allclose(history[:6], ours, rtol=1e-9)
    assert np.all(np.diff(ours) > 0)


def test_columns_without_use_go_at_the_end_only():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 6))
    y = 2 * X[:, 0] + 0.5 * rng.standard_normal(80)
    evidence = bs.fit("ard_gaussian", (X, y), basis=BARE, method="em", draws=0)["evidence"]
    assert bool(evidence["kept"][0])
    assert int(evidence["kept"].sum()) < 6


def test_jumps_end_higher_in_a_fifth_of_the_rounds(monkeypatch):
    """More columns than rows, where rounds are short and dear; the objective never falls, and plain EM ends lower."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 130))
    y = X[:, :4] @ [1.5, -2.0, 1.0, 2.0] + 0.5 * rng.standard_normal(60)
    fast = bs.fit("ard_gaussian", (X, y), method="em", draws=0, reestimate=False)["evidence"]
    monkeypatch.setattr(fixed_point, "_FEW", 1000)
    plain = bs.fit("ard_gaussian", (X, y), method="em", draws=0, reestimate=False)["evidence"]
    assert np.all(np.diff(fast["history"]) >= 0)
    assert fast["kept"].to_numpy().tolist() == plain["kept"].to_numpy().tolist()
    assert float(fast["objective"]) > float(plain["objective"]) - 1e-6
    assert fast.attrs["n_iterations"] < plain.attrs["n_iterations"] / 5
