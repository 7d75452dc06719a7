"""A corrected fit against quadrature, and that all its parts say the same."""

import json

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy import stats
from scipy.special import expit, log_expit

import bayes_sparse as bs
from bayes_sparse.results.correct import correct
from bayes_sparse.results.diagnose import diagnose
from bayes_sparse.results.importance import coordinate_draws, importance, log_densities
from bayes_sparse.trees.read import stored

RNG = np.random.default_rng(4)
X = RNG.standard_normal((30, 4)) * [1.0, 3.0, 0.5, 1.0] + [0.0, 2.0, 0.0, 0.0]
BINARY = (1.5 * X[:, 0] - 0.5 + RNG.logistic(size=30) > 0).astype(int)
REAL = 1.5 * X[:, 0] + 0.5 * RNG.standard_normal(30)


def rare_events():
    """Three counts, of which the posterior of the log rate is plainly skewed."""
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, tau=pm.Gamma("alpha", 1.0, 1.0, shape=1), shape=1)
        pm.Poisson("y", 0.1 * pm.math.exp(pm.math.dot(np.ones((3, 1)), w)), observed=[1, 0, 2])
    return model


@pytest.mark.quick
def test_a_skewed_posterior_against_quadrature():
    tree = bs.fit(rare_events(), random_seed=0)
    found = correct(tree, random_seed=1)
    before, after = tree["evidence"], found["evidence"]
    x = np.linspace(-6, 8, 20_001)
    p = np.exp(stats.norm.logpdf(x, 0, float(before["alpha"][0]) ** -0.5) + 3 * x - 0.3 * np.exp(x))
    p /= p.sum()
    mean = p @ x
    sd = np.sqrt(p @ (x - mean) ** 2)
    S = after.attrs["effective_draws"]
    near_mean, near_sd = 4 * sd / np.sqrt(S), 4 * np.sqrt(p @ ((x - mean) ** 2 - sd**2) ** 2 / S) / (2 * sd)
    assert abs(float(after["mean"][0]) - mean) < near_mean < abs(float(before["mean"][0]) - mean)
    assert abs(float(after["sd"][0]) - sd) < near_sd
    draws = found["posterior"]["w"].to_numpy().ravel()
    assert abs(draws.mean() - mean) < near_mean
    assert abs(draws.std() - sd) < near_sd
    edges = np.quantile(draws, [0.05, 0.5, 0.95])
    assert np.interp(edges, x, np.cumsum(p)) == pytest.approx([0.05, 0.5, 0.95], abs=4 * 0.5 / np.sqrt(S))


def test_probabilities_of_six_rows():
    x = np.array([[-2.0], [-1.0], [-0.5], [1.0], [1.5], [2.0]])
    y = np.array([0, 0, 1, 0, 1, 1])
    basis = bs.basis.linear(standardise=False, bias=False)
    tree = bs.fit("ard_gaussian", (x, y), likelihood="bernoulli", basis=basis, smoothness=0, random_seed=0)
    found = correct(tree, random_seed=0)
    w = np.linspace(-10, 20, 40_001)
    p = np.exp(log_expit(np.where(y, 1, -1) * x.T * w[:, None]).sum(axis=1))
    p = p * stats.norm.pdf(w, 0, float(tree["evidence"]["alpha"][0]) ** -0.5)
    p /= p.sum()
    mean = p @ w
    sd = np.sqrt(p @ (w - mean) ** 2)
    near = 4 * sd / np.sqrt(found["evidence"].attrs["effective_draws"])
    assert abs(float(found["evidence"]["mean"][0]) - mean) < near < abs(float(tree["evidence"]["mean"][0]) - mean)
    new = np.array([[0.7], [3.0]])
    truth = expit(w * new) @ p
    corrected, plain = (bs.predict(t, new)["probability"].to_numpy()[:, 1] for t in (found, tree))
    assert np.all(np.abs(corrected - truth) < np.abs(plain - truth))


def fits():
    return {
        "weights": lambda: bs.fit("ard_gaussian", (X, BINARY), likelihood="bernoulli", random_seed=0),
        "directions": lambda: bs.fit("laplace_eigen", (X, BINARY), likelihood="bernoulli", random_seed=0),
        "kept": lambda: bs.fit("gaussian_eigen", (X, BINARY), likelihood="bernoulli", keep="x1", random_seed=0),
        "support": lambda: bs.fit("jeffreys_laplace", (X, BINARY), likelihood="bernoulli", random_seed=0),
        "classes": lambda: bs.fit("student_multinomial", (X, np.digitize(REAL, [-1, 1]).astype(str)), random_seed=0),
        "declared": lambda: bs.fit(rare_events(), random_seed=0),
    }


@pytest.mark.parametrize("name", fits())
def test_every_part_says_the_same(name):
    tree = fits()[name]()
    found = correct(tree, random_seed=0)
    before, after = tree["evidence"].to_dataset(), found["evidence"].to_dataset()
    drawn, weights = coordinate_draws(tree), np.exp(importance(*map(np.asarray, log_densities(tree))).log_weights)
    mean = weights @ drawn
    covariance = (weights[:, None] * (drawn - mean)).T @ (drawn - mean)
    np.testing.assert_allclose(after["coordinate_mean"], mean, rtol=1e-10)
    factor = after["covariance_factor"].to_numpy()
    np.testing.assert_allclose(factor @ factor.T, covariance, atol=1e-10 * np.abs(covariance).max())
    column, M = after["column"].to_numpy(), after.sizes["basis"]
    np.testing.assert_allclose(after["mean"].to_numpy()[column[column < M]], mean[column < M])
    sd = stored(found).posterior_sd[column[column < M]]
    np.testing.assert_allclose(sd**2, np.diag(covariance)[column < M])
    if "estimate" in after:
        away = np.hypot(after["standard_error"], after["estimate"] - after["mean"])
        np.testing.assert_allclose(after["sd"], away)
    if "bias" in after:
        np.testing.assert_allclose(np.sort(np.ravel(after["bias"])), np.sort(mean[column >= M]))
    for kept in ("log_evidence", "relevant"):
        xr.testing.assert_equal(before[kept], after[kept])
    assert set(found.children) == set(tree.children)
    for group in ("posterior", "log_likelihood"):
        assert found[group].to_dataset().sizes == tree[group].to_dataset().sizes
        assert found[group].to_dataset().attrs == tree[group].to_dataset().attrs


def test_draws_and_likelihoods_stay_together():
    tree = bs.fit("ard_gaussian", (X, BINARY), likelihood="bernoulli", random_seed=0)
    found = correct(tree, random_seed=0)
    posterior, stats_ = found["posterior"].to_dataset(), found["sample_stats"].to_dataset()
    names = posterior["basis"].to_numpy()
    eta = posterior["w"].to_numpy() @ X[:, [int(n[1:]) for n in names]].T + posterior["bias"].to_numpy()[..., None]
    np.testing.assert_allclose(found["log_likelihood"]["y"], log_expit(np.where(BINARY, eta, -eta)), rtol=1e-9)
    old = tree["sample_stats"].to_dataset()
    place = {value: i for i, value in enumerate(old["log_q"].to_numpy().ravel())}
    chosen = [place[value] for value in stats_["log_q"].to_numpy().ravel()]
    np.testing.assert_array_equal(stats_["log_p"].to_numpy().ravel(), old["log_p"].to_numpy().ravel()[chosen])
    weights = np.exp(importance(old["log_p"].to_numpy(), old["log_q"].to_numpy()).log_weights)
    np.testing.assert_allclose(np.exp(stats_["log_weight"].to_numpy().ravel()), weights[chosen])
    # Stratified: a draw is there as often as its weight says, to less than two.
    assert np.abs(np.bincount(chosen, minlength=4000) - 4000 * weights).max() < 2
    assert np.abs(np.corrcoef(chosen[:-1], chosen[1:])[0, 1]) < 0.1  # not one after the other


def test_directions_have_their_own_moments():
    tree = fits()["directions"]()
    found = correct(tree, random_seed=0)
    u = found["posterior"]["u"]
    own = found["evidence"]["u_mean"].sel(direction=u["direction"])
    assert np.abs(u.mean(("chain", "draw")) - own).max() < 4 * float(u.std(("chain", "draw")).max()) / np.sqrt(2000)
    assert not np.allclose(own, tree["evidence"]["u_mean"].sel(direction=u["direction"]), rtol=1e-6)


def test_an_exact_fit_is_left_as_it_is():
    tree = bs.fit("ard_gaussian", (X, REAL), random_seed=0)
    found = correct(tree, random_seed=0)
    xr.testing.assert_equal(found["evidence"].to_dataset(), tree["evidence"].to_dataset())
    np.testing.assert_allclose(
        np.sort(found["posterior"]["bias"].to_numpy().ravel()), np.sort(tree["posterior"]["bias"].to_numpy().ravel())
    )


def test_it_says_what_was_done(tmp_path):
    tree = fits()["weights"]()
    found = correct(tree, random_seed=0)
    found.to_netcdf(tmp_path / "corrected.nc")
    with xr.open_datatree(tmp_path / "corrected.nc") as back:
        attributes = back["evidence"].attrs
        assert attributes["corrected"] == 1
        assert attributes["k_hat"] == pytest.approx(diagnose(tree).k_hat)
        assert attributes["effective_draws"] == pytest.approx(diagnose(tree).effective_draws)
        assert json.loads(attributes["diagnosis"])["draws"] == 4000
        again = diagnose(back)
    assert again.log_evidence_importance == diagnose(tree).log_evidence_importance
    assert "corrected already" in again.verdict
    xr.testing.assert_identical(correct(tree, random_seed=0)["posterior"].to_dataset(), found["posterior"].to_dataset())
    assert "corrected" not in tree["evidence"].attrs  # the tree given is not touched


def test_a_corrected_tree_is_trusted_where_the_correction_mends_what_was_wrong():
    tree = fits()["weights"]()
    evidence = tree["evidence"].to_dataset()
    off = tree.assign({"evidence": xr.DataTree(evidence.assign(log_evidence=evidence["log_evidence"] + 0.9))})
    assert not diagnose(off).trusted
    again = diagnose(correct(off, random_seed=0))
    assert again.trusted
    assert again.wrong == ()
    ended = tree.assign({"evidence": xr.DataTree(evidence.assign_attrs(status="max_iterations"))})
    again = diagnose(correct(ended, random_seed=0))
    assert not again.trusted
    assert again.wrong == ("the fit ended as 'max_iterations'",)


def test_refusals_and_warning():
    tree = fits()["weights"]()
    with pytest.raises(ValueError, match="corrected already"):
        correct(correct(tree))
    with pytest.raises(ValueError, match="draws > 0"):
        correct(bs.fit("ard_gaussian", (X, REAL), draws=0))
    sampled = xr.DataTree.from_dict({"/posterior": xr.Dataset(attrs={"method": "nuts"})})
    with pytest.raises(ValueError, match="nothing to correct"):
        correct(sampled)
    far = tree.copy()
    stats_ = tree["sample_stats"].to_dataset()
    far["sample_stats"] = xr.DataTree(stats_.assign(log_p=-stats_["log_q"]))
    with pytest.warns(bs.FitWarning, match="too far from the posterior"):
        correct(far)
