"""A point of the path and what is said of it, against finite differences and quadrature."""

from dataclasses import replace

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq

from bayes_sparse.inference.l1.path import Path, best_theta

from .problems import LIKELIHOODS, case, draw

KINDS = [*LIKELIHOODS, "known noise"]
FINE = 1e-10
every = pytest.mark.parametrize("kind", KINDS)


def made(kind, seed=0, **more):
    name = "normal" if kind == "known noise" else kind
    X, y = draw(name, seed=seed, effect=0.8)
    return case(name, X, y, sigma=0.9 if kind == "known noise" else None, **more)


def points(problem, parts=(0.5, 0.2, 0.05)):
    path = problem.path()
    return [path.cold(part * path.largest, FINE) for part in parts]


def around(point, h):
    """The neighbours at knobs a little smaller and larger, with the same support."""
    ends = [point.path.at(point.knob * (1 + s * h), point, FINE) for s in (-1, 1)]
    assert all(set(end.index) == set(point.index) for end in ends)
    return ends


@every
def test_a_point_is_a_minimum_over_weights_and_nuisance_parameters(kind):
    for seed in range(3):
        problem = made(kind, seed)
        for point in points(problem):
            w = problem.full(point)
            assert problem.violation(point.lam, w, point.theta) < 1e-8
            assert_allclose(point.log_likelihood, problem.likelihood(w, point.theta), rtol=1e-11)
            if not point.theta.size:
                continue
            h = 1e-3
            ahead, behind = (problem.likelihood(w, point.theta + s * h) for s in (1, -1))
            curvature = (2 * point.log_likelihood - ahead - behind) / h**2
            assert abs(ahead - behind) / (2 * h) < 1e-5 * curvature  # less than 1e-5 from the top


@every
def test_what_is_counted(kind):
    problem = made(kind, 1)
    free = problem.problem.free
    for point in points(problem):
        w = problem.full(point)
        N, R = np.count_nonzero(w[free]), np.abs(w[free]).sum()
        assert point.N == N > 0
        assert_allclose(point.R, R, rtol=1e-14)
        assert_allclose(point.gap, np.log(N / (point.lam * R)), rtol=1e-12, atol=1e-14)
        assert_allclose(point.criterion, -problem.height(w, point.theta) + N * np.log(R), rtol=1e-12)
        assert np.array_equal(point.sign, np.where(free, np.sign(w), 0)[point.index])
        assert_allclose(point.lam, point.knob * (np.exp(-2 * point.theta[0]) if kind == "normal" else 1.0))


@pytest.mark.parametrize("precision", [0.0, 0.5])
@every
def test_the_criterion_counts_the_prior_of_unpriced_weights(kind, precision):
    problem = made(kind, 2, unpriced=(1,), precision=precision)
    for point in points(problem):
        w = problem.full(point)
        assert problem.violation(point.lam, w, point.theta) < 1e-8
        prior = 0.5 * precision * (w[1] ** 2 + w[-1] ** 2)
        truth = -problem.likelihood(w, point.theta) + prior + point.N * np.log(point.R)
        assert_allclose(point.criterion, truth, rtol=1e-12)
        assert np.count_nonzero(np.delete(w, [1, 8])) == point.N


def test_a_prior_that_pulls_where_the_noise_is_unknown():
    """In units where the noise is far from one, a prior that holds the bias back, and noise that has to make up."""
    X, y = draw("normal")
    problem = case("normal", X, 10 * y + 30, precision=0.5)
    for point in points(problem):
        w = problem.full(point)
        assert problem.violation(point.lam, w, point.theta) < 1e-8
        assert_allclose(np.exp(2 * point.theta[0]), np.mean((problem.problem.y - problem.A @ w) ** 2), rtol=1e-9)
        assert 1 < w[-1] < 25


def curvature(problem, point):
    """Of minus the log-likelihood over active weights and theta, by differences of the slope by hand."""
    index, theta, k = point.index, point.theta, len(point.index)
    w, h, t = problem.full(point), 1e-5, len(point.theta)
    out = np.zeros((k + t, k + t))
    for a, i in enumerate(index):
        step = np.zeros(len(w))
        step[i] = h
        out[:k, a] = -(problem.slope(w + step, theta) - problem.slope(w - step, theta))[index] / (2 * h)
    if t:
        cross = -(problem.slope(w, theta + h) - problem.slope(w, theta - h))[index] / (2 * h)
        out[:k, k], out[k, :k] = cross, cross
        L = [problem.likelihood(w, theta + s * 1e-2) for s in (-2, -1, 0, 1, 2)]
        out[k, k] = (L[0] - 16 * L[1] + 30 * L[2] - 16 * L[3] + L[4]) / (12 * 1e-4)
    return out


@every
def test_the_precision_is_the_curvature(kind):
    for more in ({}, {"weights": np.random.default_rng(3).uniform(0.2, 3, 60)}):
        for point in points(problem := made(kind, 3, **more)):
            truth = curvature(problem, point)
            scale = np.sqrt(np.outer(truth.diagonal(), truth.diagonal()))
            assert_allclose(point.precision / scale, truth / scale, atol=1e-5)
    if kind not in ("normal", "negative_binomial"):
        for point in points(problem := made(kind, 4, unpriced=(0,), precision=3.0)):
            assert_allclose(point.precision, curvature(problem, point), rtol=1e-5, atol=1e-5)


@every
def test_r_is_the_rate_of_the_update(kind):
    """``d log(N/R) / d log lambda`` on a constant support, at lambda = N/R; elsewhere times N / (lambda R)."""
    h = 1e-3 if kind == "negative_binomial" else 1e-4  # its dispersion is known to seven digits
    for seed, precision in ((0, 0.0), (1, 0.0), (2, 0.5)):
        for point in points(made(kind, seed, precision=precision)):
            low, high = around(point, h)
            rate = -np.log(high.R / low.R) / np.log(high.lam / low.lam)
            assert_allclose(point.r * point.lam * point.R / point.N, rate, rtol=1e-4)


@every
def test_r_in_closed_form(kind):
    """``(N/R^2) s' H^-1 s`` with the bias and the nuisance parameters profiled out."""
    for point in points(problem := made(kind, 5)):
        P, priced = curvature(problem, point), np.append(point.sign, np.zeros(len(point.theta))) != 0
        S = P[np.ix_(priced, priced)]
        S = S - P[np.ix_(priced, ~priced)] @ np.linalg.solve(P[np.ix_(~priced, ~priced)], P[np.ix_(~priced, priced)])
        s = point.sign[point.sign != 0]
        assert_allclose(point.r, point.N / point.R**2 * s @ np.linalg.solve(S, s), rtol=1e-4)


@every
def test_newtons_step_follows_the_numerical_slope(kind):
    """Of ``N/R - lambda`` along the knob, on a constant support."""
    h, seen = 1e-3 if kind == "negative_binomial" else 1e-4, 0
    for seed in range(3):
        for point in points(made(kind, seed)):
            if not point.r < 1:
                assert np.isnan(point.newton)
                continue
            ends = around(point, h)
            low, high = (end.N / end.R - end.lam for end in ends)
            slope = (high - low) / (ends[1].knob - ends[0].knob)
            truth = point.knob - (point.N / point.R - point.lam) / slope
            assert_allclose(point.newton - point.knob, truth - point.knob, rtol=1e-3)
            seen += 1
    assert seen > 2


@pytest.mark.parametrize("N", [1, 2, 7])
@pytest.mark.parametrize("R", [0.03, 1.0, 40.0])
def test_the_marginal_prior_is_the_integral_over_lambda(N, R):
    """Of ``(lambda/2)^N exp(-lambda R) / lambda``, by quadrature."""
    problem = made("known noise")
    index = np.append(np.arange(N), 8)
    w = np.append(R * np.arange(1, N + 1) / np.arange(1, N + 1).sum() * (-1.0) ** np.arange(N), 0.2)
    point = problem.path().placed(index, w, np.empty(0))
    peak = mpmath.mpf(N) / R
    integral = mpmath.quad(
        lambda lam: (lam / 2) ** N * mpmath.exp(-lam * R) / lam, [0, peak / 2, peak, 3 * peak, 10 * peak, mpmath.inf]
    )
    assert_allclose(point.log_prior, float(mpmath.log(integral)), atol=1e-10)


@every
def test_a_point_put_together_from_its_weights(kind):
    """At lambda = N/R; where another weight is worth more than that, by how much is said."""
    problem = made(kind, 6)
    for point in points(problem):
        placed = problem.path().placed(point.index, point.w, point.theta)
        lam = point.N / point.R
        assert_allclose(placed.lam, lam, rtol=1e-12)
        for name in ("N", "R", "criterion", "log_prior", "log_likelihood", "r"):
            # r has a numerical derivative along the dispersion in it, which rounding errors reach
            assert_allclose(getattr(placed, name), getattr(point, name), rtol=1e-5 if name == "r" else 1e-9)
        assert_allclose(placed.spot.residual, problem.violation(lam, problem.full(point), point.theta), atol=1e-8)


@every
def test_nothing_but_the_bias(kind):
    problem = made(kind, 8)
    null = problem.path().null
    assert null.N == 0
    assert null.R == 0.0
    assert np.array_equal(null.index, [8])
    assert null.log_prior == 0.0
    assert_allclose(null.criterion, -problem.likelihood(problem.full(null), null.theta), rtol=1e-12)
    assert_allclose(problem.slope(problem.full(null), null.theta)[8], 0.0, atol=1e-7)
    assert np.isnan(null.r)
    assert np.isnan(null.newton)
    assert null.gap == np.inf


def test_lambda_given_where_the_noise_is_not():
    """``knob = lambda sigma^2`` with sigma of the weights there: a root that scipy finds too."""
    problem = made("normal", 9)
    path = problem.path()
    for lam in (1.0, 5.0, 15.0):
        point = path.at_lambda(lam)
        assert_allclose(point.lam, lam, rtol=1e-7)
        assert problem.violation(lam, problem.full(point), point.theta) < 1e-7
        knob = brentq(lambda k, lam=lam: path.cold(k, FINE).lam - lam, 0.3 * point.knob, 3 * point.knob, rtol=1e-12)
        assert_allclose(point.knob, knob, rtol=1e-7)
    assert path.at_lambda(1e6).N == 0
    known = made("bernoulli", 9)
    assert_allclose(known.path().at_lambda(2.0).w, known.path().cold(2.0, FINE).w, rtol=1e-9)


def test_paths_over_the_same_columns():
    """Other weights of the rows, other columns allowed, the same storage."""
    problem = made("bernoulli", 10)
    whole = problem.path()
    whole.cold(0.05 * whole.largest, FINE)
    weights = np.random.default_rng(10).uniform(0.5, 2, 60)
    allowed = problem.problem.free & (np.arange(9) % 2 == 0)
    shared = Path(replace(problem.problem, weights=weights), allowed, whole.columns)
    point = shared.cold(0.1 * shared.largest, FINE)
    X, fewer = problem.A[:, :8], np.arange(0, 8, 2)
    alone = case("bernoulli", X[:, fewer], problem.problem.y, weights=weights)
    truth = np.zeros(9)
    truth[np.append(fewer, 8)] = alone.full(alone.path().cold(point.knob, FINE))
    assert_allclose(problem.full(point), truth, atol=1e-8)


def test_a_dispersion_that_takes_its_time():
    problem = case("negative_binomial", *draw("negative_binomial", seed=3))
    path = problem.path()
    point = path.cold(0.9 * path.largest, FINE)
    ahead, behind = (problem.likelihood(problem.full(point), point.theta + h) for h in (1e-4, -1e-4))
    assert abs(ahead - behind) / 2e-4 < 1e-4


def test_a_dispersion_is_found_to_rounding_errors_and_no_further():
    """Of large counts no step is as short as it should be, and each one costs a dozen looks at all rows."""
    rng = np.random.default_rng(0)
    problem = case("negative_binomial", rng.normal(size=(40, 1)), 1000 * rng.poisson(1.0, size=40)).problem
    eta, looks = np.log(1000) + rng.normal(size=40), []
    counted = replace(problem, pointwise=lambda *at: looks.append(at) or problem.pointwise(*at), fewer=None)
    found = best_theta(counted, eta, best_theta(counted, eta + 1e-3, np.log([1.3])))
    assert len(looks) < 200  # 400 if a step of 1e-10 is waited for
    heights = [float(problem.terms(eta, found + h)[0].sum()) for h in (-1e-3, 0.0, 1e-3)]
    assert_allclose((heights[2] - heights[0]) / (2 * heights[1] - heights[0] - heights[2]), 0.0, atol=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_weights_and_dispersion_take_few_turns(seed, monkeypatch):
    turns = []
    monkeypatch.setattr("bayes_sparse.inference.l1.path.best_theta", lambda *at: turns.append(at) or best_theta(*at))
    path = case("negative_binomial", *draw("negative_binomial", seed=seed)).path()
    path.cold(0.9 * path.largest, FINE)
    assert len(turns) <= 20  # with that of nothing at all; 46 to 201 if each only answers to the other


def test_turns_to_and_fro_end(monkeypatch):
    """Where a dispersion is flat, rounding errors may send it from one point to another and back for ever."""
    path, turns = case("negative_binomial", *draw("negative_binomial")).path(), []

    def to_and_fro(problem, eta, theta):
        turns.append(theta)
        return theta + (0.01 if len(turns) % 2 else -0.01)

    near = path.null
    monkeypatch.setattr("bayes_sparse.inference.l1.path.best_theta", to_and_fro)
    path.at(0.5 * path.largest, near, FINE)
    assert len(turns) < 60
