"""What the likelihood alone says of each weight, by dense algebra; and that intervals of two sds are honest."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax

import bayes_sparse as bs

from .by_hand import Hand, logistic
from .systems import BARE, BINARY, SYSTEMS, TARGETS, N, P, X, Z, fit

WIDE = 0.01  # precision of the bias of classes: sd 10


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("expansion", ["ridge", "evidence", "zero"])
def test_of_a_normal_likelihood_it_is_least_squares(system, expansion):
    """Whatever the point and the prior, with the prior of the bias alone, and in the user's units."""
    y = TARGETS["normal"]
    evidence = fit(system, (X, y), expansion=expansion)["evidence"]
    A, sigma = np.column_stack([Z, np.ones(N)]), evidence["sigma"].item()
    H = A.T @ A / sigma**2
    H[P, P] += 1 / (100 * np.mean(y**2))
    estimate = np.linalg.solve(H, A.T @ y / sigma**2)[:P] / X.std(axis=0)
    error = np.sqrt(np.linalg.inv(H).diagonal()[:P]) / X.std(axis=0)
    assert_allclose(evidence["estimate"], estimate, rtol=1e-7)
    assert_allclose(evidence["standard_error"], error, rtol=1e-7)
    assert_allclose(evidence["sd"], np.sqrt(error**2 + (estimate - evidence["mean"]) ** 2), rtol=1e-7)


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("expansion", ["ridge", 2])
def test_of_classes_it_is_one_newton_step_from_the_point(system, expansion):
    """The gradient there, which the quadratic drops, belongs to the likelihood."""
    hand = Hand(logistic, Z, BINARY)
    v = hand.climb(1e-2 * np.mean(Z**2)) if expansion == "ridge" else hand.climb(1e-8 * np.mean(Z**2), steps=2)
    _, slope, H = hand.look(v)
    prior = np.append(np.zeros(P), WIDE)
    evidence = fit(system, (Z, BINARY), basis=BARE, expansion=expansion)["evidence"]
    inverse = np.linalg.inv(H + np.diag(prior))
    assert_allclose(evidence["estimate"], (v + inverse @ (slope - prior * v))[:P], rtol=1e-5)
    assert_allclose(evidence["standard_error"], np.sqrt(inverse.diagonal()[:P]), rtol=1e-5)


def test_a_column_kept_anyway_follows_the_directions_left_out():
    hand = Hand(logistic, Z[:, [0, 1, 3]], BINARY, np.column_stack([Z[:, 2], np.ones(N)]), (WIDE, WIDE))
    v = hand.climb(1e-2 * np.mean(Z[:, [0, 1, 3]] ** 2))
    prior = np.append(np.zeros(3), [WIDE, WIDE])
    inverse = np.linalg.inv(hand.look(v)[2] + np.diag(prior))
    evidence = fit("GREVM", (Z, BINARY), basis=BARE, expansion="ridge", keep="x2")["evidence"]
    assert_allclose(evidence["standard_error"][[0, 1, 3, 2]], np.sqrt(inverse.diagonal()[:4]), rtol=1e-5)
    step = (v + inverse @ (hand.look(v)[1] - prior * v))[:4]
    assert_allclose(evidence["estimate"][[0, 1, 3, 2]], step, rtol=1e-5)


def test_of_several_classes_it_is_about_differences_from_their_mean():
    """Adding the same to all classes changes nothing: the pseudo-inverse puts that part to zero."""
    y = np.unique(TARGETS["categorical"], return_inverse=True)[1]
    evidence = fit("GREVM", (Z, y), likelihood="categorical", basis=BARE, expansion="zero")["evidence"]
    A, b = np.column_stack([Z, np.ones(N)]), np.zeros(3)
    for _ in range(50):
        p = softmax(b)
        slope = np.bincount(y) - N * p - WIDE * b
        b = b + np.linalg.solve(N * (np.diag(p) - np.outer(p, p)) + WIDE * np.eye(3), slope)
    p = softmax(b)
    H = np.kron(np.diag(p) - np.outer(p, p), A.T @ A)
    bias = np.arange(3) * (P + 1) + P
    free = np.setdiff1d(np.arange(3 * P + 3), bias)
    inner = H[np.ix_(bias, bias)] + WIDE * np.eye(3)
    S = H[np.ix_(free, free)] - H[np.ix_(free, bias)] @ np.linalg.solve(inner, H[np.ix_(bias, free)])
    C = np.linalg.pinv(S, rcond=1e-10)
    slope = ((np.eye(3)[y] - p).T @ Z).ravel()
    assert_allclose(evidence["standard_error"], np.sqrt(C.diagonal()), rtol=1e-6)
    assert_allclose(evidence["estimate"], C @ slope, rtol=1e-6)
    assert_allclose(evidence["estimate"].to_numpy().reshape(3, P).sum(axis=0), 0.0, atol=1e-9)


@pytest.mark.parametrize("system", SYSTEMS)
def test_what_the_data_do_not_determine_has_no_sd(system):
    """A column that is the sum of two: none of the three has a weight of its own, and in 20 rows none of 30 has."""
    more = np.column_stack([Z, Z[:, 1] + Z[:, 3]])
    evidence = fit(system, (more, BINARY), basis=BARE)["evidence"]
    for name in ("sd", "estimate", "standard_error"):
        assert_array_equal(np.isnan(evidence[name]), [False, True, False, True, True])
    fewer, again = (fit(system, (A, BINARY), basis=BARE, expansion="ridge")["evidence"] for A in (Z, more))
    assert_allclose(again["standard_error"][[0, 2]], fewer["standard_error"][[0, 2]], rtol=0.02)  # another ridge
    wide = np.random.default_rng(0).standard_normal((20, 30))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bs.FitWarning)  # they are separable
        assert np.isnan(fit(system, (wide, BINARY[:20]))["evidence"]["sd"]).all()


def test_one_weight_among_more_columns_than_rows_may_be_determined():
    wide = np.zeros((6, 9))
    wide[:, 0] = [1.0, -1.0, 2.0, 0.0, 0.0, 0.0]
    wide[3:, 1:] = np.random.default_rng(0).standard_normal((3, 8))
    y = np.array([0.9, -1.2, 2.1, 0.3, -0.2, 0.5])
    evidence = fit("GREVM", (wide, y), likelihood="normal", basis=bs.basis.precomputed(bias=False))["evidence"]
    assert_array_equal(np.isfinite(evidence["sd"]), np.arange(9) == 0)
    assert_allclose(evidence["estimate"][0], wide[:, 0] @ y / 6)
    assert_allclose(evidence["standard_error"][0], evidence["sigma"] / np.sqrt(6))


def test_a_likelihood_that_rises_along_some_direction_gives_no_sd():
    y = TARGETS["student_t"].copy()
    y[:5] += 50 * Z[:5, 3]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bs.FitWarning)
        evidence = fit("GREVM", (Z, y), likelihood="student_t", expansion="zero", basis=BARE)["evidence"]
    assert evidence.attrs["directions_dropped"] > 0
    assert np.isnan(evidence["sd"]).all()


@pytest.mark.parametrize(("likelihood", "least"), [("normal", 0.9), ("bernoulli", 0.75)])
def test_weights_that_are_zero_are_within_two_sds_of_it(likelihood, least):
    """Of 15 x 7 at most 8% are not; by the posterior of the directions kept alone 14 and 56% were (40 x 7)."""
    make = {"normal": bs.datasets.sparse_linear, "bernoulli": bs.datasets.sparse_logistic}[likelihood]
    beyond, covered = [], []
    for seed in range(15):
        data = make(100, 10, 3, random_seed=seed)
        evidence = fit("GREVM", (data.X, data.y), likelihood=likelihood)["evidence"]
        mean, sd = evidence["mean"].to_numpy(), evidence["sd"].to_numpy()
        beyond += (np.abs(mean) > 1.96 * sd)[~data.relevant].tolist()
        covered += (np.abs(mean - data.weights) < 1.96 * sd)[data.relevant].tolist()
    assert np.mean(beyond) <= 0.08
    assert np.mean(covered) >= least
