"""The horseshoe by evidence: slopes by differences, the optimum by scipy, the evidence by hand, thin factors."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import halfcauchy, multivariate_normal

import bayes_sparse as bs
import bayes_sparse.trees.weights
from bayes_sparse.inference.approximations import approximate
from bayes_sparse.inference.evidence.global_local import Scales
from bayes_sparse.inference.evidence.state import Objective
from bayes_sparse.inputs.likelihoods import bernoulli, compiled, student_t
from bayes_sparse.methods import GlobalLocal
from bayes_sparse.methods.global_local import _Escaping
from bayes_sparse.problem.best_tau import best_tau
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.gaussian import Dual, Primal
from bayes_sparse.problem.problem import Problem
from bayes_sparse.trees.spread import draws_of, variance_along

pytestmark = pytest.mark.quick

BIAS, TAU0, FLOOR = 0.05, 0.1, 0.25
KINDS = {"bernoulli": bernoulli(), "student_t": student_t()}


def silent(iteration, objective, active):
    pass


def problem_of(kind, n, M, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, M))
    eta = 0.3 + 2 * X[:, 0] - X[:, 1]
    y = (rng.random(n) < expit(eta)).astype(float) if kind == "bernoulli" else eta + 0.7 * rng.standard_normal(n)
    noise = kind != "bernoulli"
    m = int(noise)
    return Problem(
        design=Design(X, extra=np.ones((n, 1))),
        y=y,
        free=np.append(np.ones(M, dtype=bool), False),
        fixed_precision=np.array([BIAS]),
        pointwise=lambda eta, theta: tuple(compiled(KINDS[kind])(eta, y, *theta)),
        offset=np.zeros(n),
        theta=np.full(m, np.log(0.8)),
        theta_bounds=np.tile([-6.0, 5.0], (m, 1)),
        normal=kind == "normal",
    )


def by_hand(problem, log_lambda, log_tau, theta, floor=FLOOR, tau0=TAU0):
    """Evidence and prior without any code of the project's; half-Cauchy densities by scipy, of logarithms."""
    X = problem.design.columns(np.arange(problem.design.width))
    alpha = np.append(np.exp(-2 * (log_lambda + log_tau)) + floor, BIAS)
    prior = np.sum(halfcauchy.logpdf(np.exp(log_lambda)) + log_lambda)
    prior += halfcauchy.logpdf(np.exp(log_tau), scale=tau0) + log_tau
    if problem.normal:
        covariance = np.exp(2 * theta[0]) * np.eye(len(X)) + (X / alpha) @ X.T
        return prior + multivariate_normal.logpdf(problem.y, np.zeros(len(X)), covariance)
    w = np.zeros(len(alpha))
    for _ in range(60):
        p = expit(X @ w)
        P = X.T @ ((p * (1 - p))[:, None] * X) + np.diag(alpha)
        w = w + np.linalg.solve(P, X.T @ (problem.y - p) - alpha * w)
    eta = X @ w
    height = problem.y @ eta - np.logaddexp(0, eta).sum() - 0.5 * alpha @ w**2
    return prior + height + 0.5 * np.log(alpha).sum() - 0.5 * np.linalg.slogdet(P)[1]


def scales_of(problem, own=None):
    M = problem.design.M
    own = np.arange(M) if own is None else own
    rest = np.setdiff1d(np.arange(M), own)
    approximation = approximate(problem, Objective(floor=FLOOR, tau0=TAU0))
    return Scales(approximation, np.arange(M + 1), own, rest, len(rest))


@pytest.mark.parametrize(("n", "M"), [(40, 5), (12, 20)])
@pytest.mark.parametrize("kind", ["normal", "bernoulli", "student_t"])
def test_the_gradient_is_that_of_the_objective(kind, n, M):
    problem = problem_of(kind, n, M)
    scales = scales_of(problem, np.array([0, 3]))
    x = np.concatenate([[-2.0, 0.7], [-1.5], problem.theta])
    _, slope = scales(x)
    h = 1e-4 if kind == "normal" else 2e-3  # modes are found to a few 1e-6
    for j, step in enumerate(h * np.eye(len(x))):
        value = [scales(x + times * step)[0] for times in (2, 1, -1, -2)]
        numeric = (8 * (value[1] - value[2]) - (value[0] - value[3])) / (12 * h)
        assert_allclose(slope[j], numeric, rtol=1e-5 if kind == "normal" else 5e-3, atol=1e-3)


@pytest.mark.parametrize(("kind", "digits"), [("normal", 1e-5), ("bernoulli", 1e-4), ("student_t", 3e-3)])
def test_a_climb_is_taken_to_the_top_itself(kind, digits):
    """Two ways there end in the same place, closer than L-BFGS brings them, where the slope is zero.

    Modes are found to a few 1e-6, and slopes along a noise of student_t by their differences.
    """
    problem = problem_of(kind, 60, 4)
    ends = []
    for start in (-1.0, 1.5):
        scales = scales_of(problem)
        x, top, _ = scales.climbed(
            np.concatenate([np.full(4, start), [-1.0], problem.theta]), problem.theta_bounds, 60, 1e-3
        )
        end, highest = scales.topped(x, problem.theta_bounds)
        assert highest >= top - 1e-9
        ends.append(end)
        assert_allclose(scales(end)[1], 0.0, atol=digits)
    assert_allclose(*ends, atol=10 * digits)


def test_the_curvature_is_that_of_the_objective():
    """Of a normal likelihood it is exact."""
    scales = scales_of(problem_of("normal", 40, 5), np.array([0, 3]))
    x = np.array([-2.0, 0.7, -1.5, -0.3])
    numeric = [(scales(x + step)[1] - scales(x - step)[1]) / 2e-5 for step in 1e-5 * np.eye(4)]
    assert_allclose(scales._curvature(x), numeric, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("n", "M"), [(40, 4), (12, 20)])
@pytest.mark.parametrize("kind", ["normal", "bernoulli"])
def test_the_objective_by_hand(kind, n, M):
    problem = problem_of(kind, n, M)
    log_u = np.random.default_rng(1).normal(0, 2, M)
    value, _ = scales_of(problem)(np.concatenate([log_u, [-1.2], problem.theta]))
    assert_allclose(value, by_hand(problem, -0.5 * log_u, -1.2, problem.theta), rtol=1e-7)


@pytest.mark.parametrize("kind", ["normal", "bernoulli"])
def test_columns_that_share_a_scale_are_as_few_as_rows(kind):
    """The objective with two columns let go is the same through a factor of the rest, and what columns score is."""
    problem = problem_of(kind, 12, 20)
    objective = Objective(floor=FLOOR, tau0=TAU0)
    escaping = _Escaping(problem, objective, "auto")
    own = np.array([1, 7])
    x = np.concatenate([[-3.0, -1.0], [-1.0], problem.theta])
    value, slope = escaping._scales(own)(x)
    full, by_full = scales_of(problem, own)(x)
    assert_allclose(value, full, rtol=1e-9)
    assert_allclose(slope, by_full, rtol=1e-5, atol=1e-6)
    point = escaping.climbed(next(escaping.starts()))
    s, q = escaping._left_out(point)
    state = scales_of(problem, point.own).at(np.concatenate([point.log_u, [point.log_tau], point.theta]))
    assert_allclose([s, q], np.stack(state.left_out())[:, :20], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", ["normal", "bernoulli"])
def test_the_optimum_is_that_of_scipy(kind):
    """From several starts of an objective written by hand; the search must not end lower than any of them."""
    problem, M = problem_of(kind, 60, 4), 4
    approximation = approximate(problem, Objective(floor=FLOOR, tau0=TAU0))
    outcome = GlobalLocal(tolerance=1e-8)(problem, approximation, silent)
    m = problem.theta.size

    def negative(x):
        return -by_hand(problem, x[:M], x[M], x[M + 1 :])

    bounds = [(-6, 6)] * (M + 1) + [(-2, 4)] * m
    starts = [np.concatenate([first, [log_tau], problem.theta])
              for first in ([0, 0, 0, 0], [2, 2, 0, 0], [3, 1, -1, -1]) for log_tau in (-2.0, -0.5)]  # fmt: skip
    best = min((minimize(negative, np.array(s, dtype=float), bounds=bounds) for s in starts), key=lambda end: end.fun)
    assert outcome.converged
    assert_allclose(outcome.state.objective, -best.fun, atol=1e-4)
    assert np.all(np.diff(outcome.history) > -1e-9)
    above = outcome.state.alpha[:M] - FLOOR
    tau = best_tau(above, TAU0)
    assert_allclose(np.log(tau), best.x[M], atol=0.02)
    assert_allclose(-0.5 * np.log(above) - np.log(tau), best.x[:M], atol=0.05)
    log_lambda = -0.5 * np.log(above) - np.log(tau)
    assert_allclose(outcome.state.objective, by_hand(problem, log_lambda, np.log(tau), outcome.state.theta), rtol=1e-6)


@pytest.mark.parametrize(("n", "M"), [(100, 6), (60, 80)])
def test_a_climb_ends_at_the_top_wherever_the_scale_of_the_noise_begins(n, M):
    """One step along the slope leads from a wide noise to one so small that nothing is finite."""
    problem = problem_of("student_t", n, M)
    ends = []
    for log_sigma in (-1.0, 0.0, 1.0, 2.0):
        begun = replace(problem, theta=np.array([log_sigma]), theta_bounds=np.array([[-14.0, 20.0]]))
        approximation = approximate(begun, Objective(floor=FLOOR, tau0=TAU0))
        outcome = GlobalLocal()(begun, approximation, silent)
        assert outcome.converged
        ends.append((outcome.state.objective, outcome.state.theta[0]))
    assert_allclose(np.ptp(ends, axis=0), 0.0, atol=0.02)


def test_the_best_tau_by_search():
    alpha = 10 ** np.random.default_rng(0).uniform(-2, 4, 30)

    def negative(x):
        lam = alpha**-0.5 / np.exp(x[0])
        return -np.sum(halfcauchy.logpdf(lam) + np.log(lam)) - halfcauchy.logpdf(np.exp(x[0]), scale=0.3) - x[0]

    assert_allclose(np.log(best_tau(alpha, 0.3)), minimize(negative, [0.0], tol=1e-10).x[0], atol=1e-5)


def test_the_posterior_on_the_side_of_the_rows_in_full():
    rng = np.random.default_rng(3)
    Phi, b, alpha = rng.standard_normal((6, 15)), rng.uniform(0, 2, 6), 10 ** rng.uniform(-1, 1, 15)
    b[0] = 0.0
    dual, Sigma = Dual(Phi, b, alpha), Primal(Phi.T @ (b[:, None] * Phi), alpha).covariance
    assert_allclose(dual.factor @ dual.factor.T, Sigma, rtol=1e-9, atol=1e-12)
    assert_allclose(dual.spread(np.eye(15)), dual.factor.T, rtol=1e-9, atol=1e-12)
    assert_allclose(dual.leverages, np.einsum("ij,jk,ik->i", Phi, Sigma, Phi), rtol=1e-9)
    assert_allclose(dual.variance, Sigma.diagonal(), rtol=1e-9)


RNG = np.random.default_rng(8)
X = RNG.standard_normal((50, 120)) * 3 + 2
ETA = 0.8 * (X[:, 4] - 2) - 0.6 * (X[:, 70] - 2)
TARGETS = {"normal": ETA + RNG.standard_normal(50), "bernoulli": (RNG.logistic(size=50) < ETA).astype(int)}


@pytest.mark.parametrize("likelihood", TARGETS)
def test_a_thin_factor_says_the_same_as_a_full_one(likelihood, monkeypatch):
    def fit(**settings):
        return bs.fit("horseshoe", (X, TARGETS[likelihood]), random_seed=1, progressbar=False, **settings)

    full = fit(draws=500)
    monkeypatch.setattr(bayes_sparse.trees.weights, "_WIDE", 10)
    thin = fit(draws=500)
    a, b = full["evidence"].to_dataset(), thin["evidence"].to_dataset()
    assert b["covariance_factor"].shape[1] <= 50 < a["covariance_factor"].shape[1]
    for name in ("mean", "sd", "bias", "bias_sd", "log_evidence"):
        if name in a:
            assert_allclose(b[name], a[name], rtol=1e-7)
    new = RNG.standard_normal((8, 120)) * 3 + 2
    p, q = bs.predict(full, new), bs.predict(thin, new)
    for name in p.data_vars:
        if p[name].dtype.kind == "f":
            assert_allclose(q[name], p[name], rtol=1e-7)
    assert_allclose(thin["posterior"]["w"], full["posterior"]["w"], rtol=1e-6, atol=1e-9)
    row = np.hstack([new, np.ones((8, 1))])
    draws = draws_of(b, 40_000, np.random.default_rng(0)) @ row.T
    assert_allclose(draws.var(axis=0), variance_along(a, row), rtol=5 * np.sqrt(2 / 40_000))
    with pytest.raises(ValueError, match="order='forward'"):
        bs.relevance(thin, order="forward")


def test_wide_data_are_never_squared():
    wide = np.random.default_rng(0).standard_normal((30, 4000))
    tree = bs.fit("horseshoe", (wide, (wide[:, 0] > 0).astype(int)), draws=0, progressbar=False)
    assert tree["evidence"]["covariance_factor"].shape == (4001, 30) or tree["evidence"].nbytes < 5e6
    assert tree["evidence"].attrs["tau0"] == pytest.approx(5 / 3995 * 2 / np.sqrt(30))


def test_all_are_kept_and_few_are_relevant():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((150, 12))
    y = 2 * X[:, 3] - X[:, 8] + rng.standard_normal(150)
    tree = bs.fit("horseshoe", (X, y), relevant=2, draws=0, progressbar=False)
    evidence = tree["evidence"]
    assert evidence["kept"].all()
    assert np.flatnonzero(evidence["relevant"]).tolist() == [3, 8]
    small = np.abs(np.delete(evidence["mean"].to_numpy(), [3, 8]))
    assert small.max() < 0.2
    assert evidence.attrs["tau"] < 0.2
    # The precisions stored are those in force: the same evidence follows from them by hand.
    Z, scale = X - X.mean(axis=0), X.std(axis=0)
    precision = evidence["alpha"].to_numpy() / scale**2
    covariance = float(evidence["sigma"]) ** 2 * np.eye(150) + (Z / scale / precision) @ (Z / scale).T
    covariance += 100 * np.mean(y**2)
    assert_allclose(evidence["log_evidence"], multivariate_normal.logpdf(y, np.zeros(150), covariance), rtol=1e-6)


def test_what_it_does_not_fit():
    classes = np.repeat([0, 1, 2], 20)
    X = np.random.default_rng(0).standard_normal((60, 3))
    with pytest.raises(ValueError, match="one predictor per observation"):
        bs.fit("horseshoe", (X, classes), likelihood="categorical", progressbar=False)
    with pytest.raises(ValueError, match="`hyper`"):
        bs.fit("horseshoe", (X, X[:, 0]), hyper=(1.0, 0.1), progressbar=False)
    with pytest.raises(ValueError, match="horseshoe prior is fitted by method='global_local'"):
        bs.fit("horseshoe", (X, X[:, 0]), method="sequential", progressbar=False)
