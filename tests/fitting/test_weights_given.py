"""Weights drawn back: their moments against the closed form, their importance weights, units, names and refusals."""

import arviz as az
import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose
from scipy.special import expit, log_expit, logsumexp
from scipy.stats import norm

import bayes_sparse as bs
from tests.support import assert_one_sentence

pytestmark = pytest.mark.quick

S = 4000


def made_up(evidence, log_alpha, theta, draws=S, **named):
    """A tree as if one and the same hyper-parameters had been drawn again and again."""
    posterior = {"log_alpha": np.broadcast_to(log_alpha, (2, draws // 2, len(log_alpha)))}
    for name, value in zip(evidence.nuisance, theta, strict=True):
        posterior[f"log_{name}"] = np.full((2, draws // 2), value)
    return az.from_dict({"posterior": posterior | named}, coords=evidence.coords, dims={"log_alpha": ["basis"]})


def regression(n, M, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(3.0, 2.0, (n, M))
    return X, 5 + 0.5 * X[:, 0] + rng.standard_normal(n)


def closed_form(X, y, log_alpha, sigma):
    """Mean and covariance of the weights and of the bias, in the units of the columns."""
    n, M = X.shape
    Z = np.column_stack([(X - X.mean(axis=0)) / X.std(axis=0), np.ones(n)])
    precision = np.append(np.exp(log_alpha), 1 / (100 * np.mean(y**2)))
    cov = np.linalg.inv(Z.T @ Z / sigma**2 + np.diag(precision))
    units = np.diag(np.append(1 / X.std(axis=0), 1.0))
    units[M, :M] = -X.mean(axis=0) / X.std(axis=0)
    return units @ cov @ Z.T @ y / sigma**2, units @ cov @ units.T


@pytest.mark.parametrize(("n", "M"), [(40, 3), (8, 12)], ids=["tall", "wide"])
def test_moments_of_a_normal_likelihood(n, M):
    X, y = regression(n, M)
    evidence = bs.log_evidence_op((X, y))
    log_alpha, log_sigma = np.random.default_rng(1).normal(0.0, 1.0, M), 0.2
    tree = bs.weights_given(made_up(evidence, log_alpha, [log_sigma]), evidence, random_seed=2)
    posterior = tree["posterior"]
    drawn = np.column_stack([posterior["w"].to_numpy().reshape(S, M), posterior["bias"].to_numpy().ravel()])
    mean, cov = closed_form(X, y, log_alpha, np.exp(log_sigma))
    z = np.linalg.solve(np.linalg.cholesky(cov), (drawn - mean).T)
    # Standard normals now: five standard errors of each mean, variance and covariance.
    assert np.abs(z.mean(axis=1)).max() < 5 / np.sqrt(S)
    assert np.abs(np.cov(z) - np.eye(M + 1)).max() < 5 * np.sqrt(2 / S)
    stats = tree["sample_stats"]
    assert_allclose(stats["log_p"], stats["log_q"], rtol=1e-10)  # nothing is approximated
    assert_allclose(posterior["sigma"], np.exp(log_sigma))
    expected = norm(drawn[:, :M] @ X.T + drawn[:, M:], np.exp(log_sigma)).logpdf(y)
    assert_allclose(tree["log_likelihood"]["y"].to_numpy().reshape(S, n), expected, atol=1e-8)


@pytest.mark.slow
def test_importance_weights_of_a_logistic_regression_correct_the_evidence():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 1))
    y = (rng.random(30) < expit(2 * X[:, 0])).astype(int)
    evidence = bs.log_evidence_op((X, y))
    log_alpha = np.array([-0.5])
    tree = bs.weights_given(made_up(evidence, log_alpha, [], draws=20000), evidence, random_seed=4)
    raw = (tree["sample_stats"]["log_p"] - tree["sample_stats"]["log_q"]).to_numpy().ravel()
    w, b = np.linspace(-4.0, 10.0, 281), np.linspace(-6.0, 6.0, 241)
    z = (X[:, 0] - X[:, 0].mean()) / X[:, 0].std()
    eta = np.where(y == 1, 1.0, -1.0) * (b[:, None] + w[:, None, None] * z)
    height = log_expit(eta).sum(axis=-1) + norm(0, np.exp(0.25)).logpdf(w)[:, None] + norm(0, 10).logpdf(b)
    exact = logsumexp(height) + np.log((w[1] - w[0]) * (b[1] - b[0]))
    gap = exact - evidence.state(log_alpha, np.empty(0)).log_evidence
    relative = np.exp(raw)
    error = relative.std() / np.sqrt(len(raw))
    assert abs(relative.mean() - np.exp(gap)) < 4 * error
    assert abs(np.exp(gap) - 1) > 4 * error  # and there is something to correct


@pytest.mark.slow
@pytest.mark.parametrize(("n", "M"), [(40, 2), (6, 8)], ids=["tall", "wide"])
def test_moments_of_several_classes_are_those_of_the_approximation(n, M):
    rng = np.random.default_rng(5)
    X, y = rng.normal(2.0, 3.0, (n, M)), np.array(["a", "b", "c"])[np.arange(n) % 3]
    evidence = bs.log_evidence_op((X, y), likelihood="categorical")
    log_alpha = rng.normal(0.0, 1.0, 3 * M)
    tree = bs.weights_given(made_up(evidence, log_alpha, []), evidence, random_seed=6)
    state = evidence.state(log_alpha, np.empty(0))
    drawn = tree["posterior"]["w"].to_numpy().reshape(S, 3 * M) * np.tile(X.std(axis=0), 3)
    cov = state.posterior.solve(np.eye(3 * M + 3))[: 3 * M, : 3 * M]
    z = np.linalg.solve(np.linalg.cholesky((cov + cov.T) / 2), (drawn - state.mean[: 3 * M]).T)
    assert np.abs(z.mean(axis=1)).max() < 5 / np.sqrt(S)
    assert np.abs(np.cov(z) - np.eye(3 * M)).max() < 5 * np.sqrt(2 / S)
    assert tree["posterior"]["bias"].dims == ("chain", "draw", "class")


def test_the_tree_is_one_like_any_other():
    X, y = regression(30, 3)
    evidence = bs.log_evidence_op((X, y), keep="x1")
    before = made_up(evidence, np.zeros(3), [0.1], draws=100)
    before["posterior"]["log_sigma"] = before["posterior"]["log_sigma"] + np.linspace(0.0, 0.1, 50)
    tree = bs.weights_given(before, evidence, random_seed=0)
    assert "w" not in before["posterior"]
    assert set(before["posterior"].data_vars) <= set(tree["posterior"].data_vars)
    table = az.summary(tree, var_names=["w", "bias", "sigma"])
    assert list(table.index) == ["w[x0]", "w[x1]", "w[x2]", "bias", "sigma"]
    w, bias = tree["posterior"]["w"].to_numpy(), tree["posterior"]["bias"].to_numpy()
    expected = (w @ X.T + bias[..., None]).mean(axis=(0, 1))
    assert_allclose(bs.predict(tree, X)["mean"], expected, rtol=1e-10)
    again = bs.weights_given(before, evidence, random_seed=0)
    xr.testing.assert_equal(tree["posterior"].to_dataset(), again["posterior"].to_dataset())


def test_variables_under_other_names_on_their_own_scale_and_after_thinning():
    X, y = regression(30, 3)
    evidence = bs.log_evidence_op((X, y))
    usual = made_up(evidence, np.zeros(3), [0.1], draws=40)
    expected = bs.weights_given(usual, evidence, random_seed=0)["posterior"]["w"].to_numpy()
    plain = np.ones((2, 20))
    own = az.from_dict({"posterior": {"alpha": plain, "sigma": np.exp(0.1) * plain}})  # one precision for all
    assert_allclose(bs.weights_given(own, evidence, random_seed=0)["posterior"]["w"], expected)
    named = az.from_dict({"posterior": {"mine": 0 * plain, "noise": 0.1 * plain}})
    given = bs.weights_given(named, evidence, log_alpha="mine", log_nuisance=["noise"], random_seed=0)
    assert_allclose(given["posterior"]["w"], expected)
    thinned = bs.weights_given(usual.isel(draw=slice(0, None, 5)), evidence, random_seed=0)["posterior"]
    assert thinned["draw"].to_numpy().tolist() == [0, 5, 10, 15]
    assert np.isfinite(thinned["w"]).all()


def test_refusals():
    X, y = regression(30, 3)
    evidence = bs.log_evidence_op((X, y))
    plain = np.zeros((2, 20))
    full = {"log_alpha": np.zeros((2, 20, 3)), "log_sigma": plain}
    for posterior, settings, mention in [
        ({"log_sigma": plain}, {}, "log_alpha"),
        ({"log_alpha": plain}, {}, "log_sigma"),
        (full, {"log_alpha": "elsewhere"}, "elsewhere"),
        (full | {"log_alpha": np.zeros((2, 20, 2))}, {}, "2 entries"),
        (full | {"w": plain}, {}, "'w' already"),
        (full, {"log_nuisance": []}, "sigma"),
    ]:
        with pytest.raises(ValueError, match=mention) as refused:
            bs.weights_given(az.from_dict({"posterior": posterior}), evidence, **settings)
        assert_one_sentence(str(refused.value))
    other = az.from_dict({"posterior": full}, dims={"log_alpha": ["basis"]}, coords={"basis": ["a", "b", "c"]})
    with pytest.raises(ValueError, match="other labels") as refused:
        bs.weights_given(other, evidence)
    assert_one_sentence(str(refused.value))
    with pytest.raises(ValueError, match="no posterior") as refused:
        bs.weights_given(xr.DataTree(), evidence)
    assert_one_sentence(str(refused.value))
