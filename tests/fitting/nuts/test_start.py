"""Where NUTS starts: the closed-form posterior of a normal likelihood, in the coordinates of each declaration."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import bayes_sparse as bs
from bayes_sparse.fitting.nuts.sample import start_of

from .fits import TARGETS, Z, fitted

pytestmark = pytest.mark.quick

HYPER = (0.5, 0.005)
Y = TARGETS["normal"]


def textbook(found):
    """Mean and covariance of (x0, x1, bias) at the precisions and the noise found."""
    state = found.outcome.state
    alpha = np.empty(4)
    alpha[state.index] = state.alpha
    alpha, sigma = alpha[[0, 1, 3]], np.exp(state.theta[0])
    Phi = np.column_stack([Z[:, :2], np.ones(len(Z))])
    covariance = np.linalg.inv(np.diag(alpha) + Phi.T @ Phi / sigma**2)
    return covariance @ Phi.T @ Y / sigma**2, covariance, alpha, sigma


@pytest.mark.parametrize("centred", [False, True, np.array([False, True, False])], ids=["no", "yes", "some"])
def test_weights(centred):
    model = bs.models.ARDGaussian()
    prepared, found = fitted(model, "normal")
    assert sorted(found.outcome.state.index.tolist()) == [0, 1, 3]
    start = start_of(found, model.declare(prepared, HYPER, centred=centred), centred)
    mean, covariance, alpha, sigma = textbook(found)
    unit = np.append(np.where(np.broadcast_to(centred, 3)[:2], 1.0, np.sqrt(alpha[:2])), 1.0)
    name = "w" if centred is True else "z"
    assert_allclose(start.values["sigma"], sigma)
    assert_allclose(start.values[name], np.append(mean[:2] * unit[:2], 0.0), rtol=1e-8)
    assert_allclose(start.values["bias"], mean[2], rtol=1e-8)
    assert_allclose(start.values["alpha"][:2], alpha[:2])
    assert_allclose(
        start.values["alpha"][2], HYPER[0] / (HYPER[1] * prepared.unit**2)
    )  # pruned: where PyMC starts a Gamma
    order = [[(name, 0), (name, 1), ("bias", 0)].index(place) for place in start.places]
    expected = (np.diag(unit) @ covariance @ np.diag(unit))[np.ix_(order, order)]
    assert_allclose(start.factor @ start.factor.T, expected, rtol=1e-7, atol=1e-15)  # zeros, but for rounding


def test_the_mean_predictor_of_kernels():
    """The mean of what the fit predicts for the rows, which least squares makes that of the targets."""
    model, basis = bs.models.ARDGaussian(bias_sd=1e6), bs.basis.rbf(width=1.0)
    prepared, found = fitted(model, "normal", basis=basis)
    start = start_of(found, model.declare(prepared, HYPER))
    assert "bias" not in start.values
    assert_allclose(start.values["mean_predictor"], Y.mean(), rtol=1e-6)


@pytest.mark.parametrize("centred", [False, True])
def test_directions(centred):
    model = bs.models.LaplaceEigen()
    prepared, found = fitted(model, "normal")
    outcome, name = found.outcome, "u" if centred else "z"
    start = start_of(found, model.declare(prepared, (1.0, 0.5), centred=centred), centred)
    kept, alpha = np.flatnonzero(outcome.kept), outcome.alpha[outcome.kept]
    unit = np.ones(len(kept)) if centred else alpha / 2
    u = found.tree(0, 1, np.random.default_rng(0))["evidence"]["u_mean"].to_numpy()[kept]
    assert_allclose(start.values["alpha"][kept], alpha)
    assert_allclose(start.values[name][kept], u * unit)
    assert start.places == [*((name, i) for i in kept.tolist()), ("bias", 0)]


def test_fewer_directions_than_the_fit_kept():
    model = bs.models.LaplaceEigen(directions=1)
    prepared, found = fitted(model, "normal")
    assert found.outcome.kept.sum() > 1
    start = start_of(found, model.declare(prepared, (1.0, 0.5)))
    assert start.values["z"].shape == (1,)
    assert all(position == 0 for name, position in start.places)


def test_the_support():
    model = bs.models.JeffreysLaplace(bounds=(0.01, 100.0))
    prepared, found = fitted(model, "normal", smoothness="auto")
    point = found.outcome.point
    start = start_of(found, model.declare(prepared), True)
    w = np.zeros(3)
    w[point.index[point.index < 3]] = point.w[point.index < 3]
    assert_allclose(start.values["log_lambda"], np.log(point.lam))
    assert_allclose(start.values["w"], w)
    assert_allclose(start.values["sigma"], np.exp(point.theta[0]))
