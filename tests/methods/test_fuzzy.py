"""FuzzyBLogReg: its smoothed criterion against numbers, its way down, and what it says when it ends elsewhere."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import bayes_sparse as bs
from bayes_sparse.inference.l1.path import Path
from bayes_sparse.inputs.prepare import prepare
from bayes_sparse.methods.fuzzy import _start, _State
from bayes_sparse.models import JeffreysLaplace
from tests.support import fit_path as fit

from .l1_by_hand import TARGETS, N, X, Z, log_density, nuisance_of, predictor, standardised

every_likelihood = pytest.mark.parametrize("likelihood", TARGETS)
SIGMA = 0.05


def state(likelihood, X=X, y=None, keep=None, sigma=SIGMA, **settings):
    y = TARGETS[likelihood] if y is None else y
    data = prepare((X, y), None, likelihood, bs.basis.linear(), keep, settings.get("weights"), settings.get("offset"))
    path = Path(JeffreysLaplace(bias_sd=settings.get("bias_sd")).problem(data).problem)
    unit = float(np.exp(path.null.theta[0])) if path.own_noise else 1.0
    return _State(path, _start(path), unit, 1e-4, sigma)


def smoothed(likelihood, y, Z, w, bias, nuisance, unit=1.0, priced=slice(None), **known):
    """Minus the log-likelihood plus N^ log R, written out again."""
    eta = known.get("offset", 0.0) + Z @ w + bias
    count = np.sum(1 - np.exp(-((w[priced] / (SIGMA * unit)) ** 2) / 2))
    fit = np.sum(known.get("weights", 1.0) * log_density(likelihood, y, eta, nuisance))
    unpriced = np.append(np.delete(w, priced), bias)
    return -fit + count * np.log(np.abs(w[priced]).sum() / unit) + np.sum(unpriced**2) / known["bias_sd"] ** 2 / 2


KNOWN = {"weights": np.linspace(0.5, 2.0, N), "offset": 0.3 * np.sin(np.arange(N)), "bias_sd": 1.5}


@every_likelihood
def test_slope_and_curvature_of_the_smoothed_criterion(likelihood):
    """With weights so small that the smoothing matters, one that has no price, and all that a model can be told."""
    of, y = state(likelihood, keep="x6", **KNOWN), TARGETS[likelihood]
    full = np.array([1.0, -0.7, 0.04, -0.08, 0.02, 0.15, 0.3, -0.05, 0.2])  # the last is the bias
    unit = of._unit
    of.index = np.arange(9)
    of.w = full * unit
    of._drop(np.zeros(9, dtype=bool))
    nuisance, priced = np.exp(of.theta), np.arange(9)[of.priced]

    Z = standardised(X, KNOWN["weights"])

    def criterion(v):
        return smoothed(likelihood, y, Z, v[:-1], v[-1], nuisance, unit, priced, **KNOWN)

    assert priced.tolist() == [0, 1, 2, 3, 4, 5, 7]
    value, of._terms = of._criterion(of.w, of.eta)
    assert_allclose(value, criterion(of.w), rtol=1e-10)
    slope, curvature = of._derivatives()
    steps, h = np.eye(9) * unit, 1e-5
    numerical = [(criterion(of.w + h * e) - criterion(of.w - h * e)) / (2 * h * unit) for e in steps]
    assert_allclose(slope, numerical, rtol=1e-5, atol=1e-6 * np.abs(slope).max())
    h = 1e-3 * SIGMA
    for i, a in enumerate(steps):
        for j, b in enumerate(steps):
            corners = [criterion(of.w + h * (s * a + t * b)) for s, t in ((1, 1), (1, -1), (-1, 1), (-1, -1))]
            second = (corners[0] - corners[1] - corners[2] + corners[3]) / (2 * h * unit) ** 2
            assert_allclose(curvature[i, j], second, rtol=1e-4, atol=1e-5 * np.abs(curvature).max())


@every_likelihood
def test_it_goes_down_and_stays_in_the_octant_of_its_start(likelihood):
    of = state(likelihood, sigma=0.01)
    octant = dict(zip(of.index, np.sign(of.w), strict=True))
    for _ in range(100):
        before, size = of.value, len(of.w)
        done = of.step()
        assert of.value <= before + 1e-9 * abs(before)
        assert len(of.w) <= size
        assert all(octant[j] == np.sign(w) for j, w, counts in zip(of.index, of.w, of.priced, strict=True) if counts)
        assert np.all(np.abs(of.w[of.priced]) > of._eps)
        if done:
            break
    assert done
    assert len(of.w) < len(octant)
    slope, curvature = of._derivatives()
    assert np.all(np.linalg.eigvalsh(curvature) > 0)
    assert np.sqrt(slope @ np.linalg.solve(curvature, slope)) < 1e-4  # sds from the bottom


def test_it_starts_at_the_most_likely_weights_or_at_a_weak_penalty():
    of = state("normal")
    least, *_ = np.linalg.lstsq(np.column_stack([Z, np.ones(N)]), TARGETS["normal"], rcond=None)
    assert_allclose(of.w[np.argsort(of.index)], least, atol=1e-4)
    rng = np.random.default_rng(3)
    few = rng.standard_normal((30, 4))
    y = (few[:, 0] > 0).astype(int)
    apart = state("bernoulli", few, y)
    score = standardised(few).T @ (y - 1 / (1 + np.exp(-apart.eta)))
    top = np.abs(standardised(few).T @ (y - y.mean())).max()
    assert_allclose(np.abs(score[apart.index[apart.priced]]), 1e-3 * top, rtol=1e-4)


@pytest.mark.parametrize("seed", range(3))
@every_likelihood
def test_it_ends_where_reweighted_does_in_the_same_octant(likelihood, seed, messages):
    """Strong weights: the smoothing is over, and nothing is dropped or let in again."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((200, 3))
    eta = X @ np.array([1.0, -0.8, 0.6])
    y = {
        "normal": eta + rng.standard_normal(200),
        "bernoulli": (eta + rng.logistic(size=200) > 0).astype(int),
        "poisson": rng.poisson(np.exp(eta)),
        "negative_binomial": rng.poisson(rng.gamma(2.0, np.exp(eta) / 2.0)),
    }[likelihood]
    ours, other = (fit((X, y), likelihood=likelihood, **more)["evidence"] for more in ({"method": "fuzzy"}, {}))
    assert (ours.attrs["status"], other.attrs["status"]) == ("converged", "fixed-point")
    for name in ("lambda", "N", "R", "r", "criterion", "mean", "sd"):
        assert_allclose(ours[name], other[name], rtol=1e-5, err_msg=name)
    assert ours.attrs["prior"] == "jeffreys"
    assert messages == []


@every_likelihood
def test_it_says_that_it_is_no_solution(likelihood, messages):
    """It drops weights for good, and one that would come back at lambda = N/R stays out."""
    evidence = fit((X, TARGETS[likelihood]), likelihood=likelihood, method="fuzzy")["evidence"]
    assert evidence["N"] < fit((X, TARGETS[likelihood]), likelihood=likelihood)["evidence"]["N"]
    assert_allclose(evidence["lambda"] * evidence["R"], evidence["N"], rtol=1e-10)
    assert np.abs(evidence["pull"]).max() > 1.1
    assert_allclose(evidence.attrs["violation"], np.abs(evidence["pull"]).max() - 1, rtol=1e-6)
    assert [m for m in messages if "no solution of the exact criterion" in m and "method='reweighted'" in m]
    inside = evidence["kept"].to_numpy()
    if np.abs(evidence["mean"].to_numpy() * X.std(axis=0))[inside].min() > 0.1:  # beyond the smoothing
        assert_allclose(np.abs(evidence["pull"].to_numpy()[inside]), 1.0, atol=1e-3)


def test_eps_and_sigma_are_settings():
    """With a wide smoothing the answer is the bottom of the criterion smoothed so much."""
    y = TARGETS["bernoulli"]
    evidence = fit((X, y), method="fuzzy", sigma=SIGMA, eps=1e-3)["evidence"]
    mean = evidence["mean"].to_numpy() * X.std(axis=0)
    kept = np.flatnonzero(mean)
    bias = float(predictor(evidence, X.mean(axis=0)))
    assert np.all(np.abs(mean[kept]) > 1e-3)

    def criterion(w):
        return smoothed("bernoulli", y, Z[:, kept], w, bias, [], bias_sd=np.inf)

    for move in np.eye(len(kept)):
        assert criterion(mean[kept] + 1e-3 * move) > criterion(mean[kept]) < criterion(mean[kept] - 1e-3 * move)


def test_units_of_the_targets_do_not_matter():
    one = fit((X, TARGETS["normal"]), method="fuzzy")["evidence"]
    large = fit((X, 1e4 * TARGETS["normal"]), method="fuzzy")["evidence"]
    assert_allclose(large["mean"], 1e4 * one["mean"], rtol=1e-6)
    assert_allclose(nuisance_of(large), 1e4 * np.array(nuisance_of(one)), rtol=1e-6)


def test_too_few_steps_are_said_and_so_is_nothing_left():
    with pytest.warns(bs.FitWarning, match="'fuzzy' did not converge within its limit"):
        evidence = fit((X, TARGETS["bernoulli"]), method="fuzzy", max_iterations=1)["evidence"]
    assert evidence.attrs["status"] == "max_iterations"
    with pytest.warns(bs.FitWarning, match="bias only"):
        evidence = fit((X, TARGETS["bernoulli"]), method="fuzzy", eps=100.0)["evidence"]
    assert (evidence.attrs["status"], int(evidence["N"])) == ("null", 0)
