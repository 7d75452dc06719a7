"""The exact evidence of a normal likelihood against densities, differences and many digits."""

import warnings
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

import bayes_sparse as bs
from bayes_sparse.inference.approximations import Exact
from bayes_sparse.inference.evidence.exchanges import addition_gain, column_worth
from bayes_sparse.inference.evidence.state import Objective
from bayes_sparse.methods.sequential import Sequential
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.gaussian import Dual, Primal
from bayes_sparse.problem.problem import Problem

BIAS_PRECISION = 0.01


def never(eta, theta):
    raise AssertionError("a normal likelihood is not compiled")


def make(n, M, *, bias=False, seed=0, weights=None, sigma=None, offset=None):
    """A regression on M columns (and a constant); sigma given means known."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, M))
    y = X[:, : min(M, 3)].sum(axis=1) + 0.5 * rng.standard_normal(n) + (2.0 if bias else 0.0)
    q = int(bias)
    known = sigma is not None
    return Problem(
        design=Design(X, extra=np.ones((n, 1)) if bias else None),
        y=y,
        free=np.append(np.ones(M, dtype=bool), np.zeros(q, dtype=bool)),
        fixed_precision=lambda theta: np.full(q, BIAS_PRECISION),
        pointwise=never,
        offset=np.zeros(n) if offset is None else offset,
        weights=weights,
        theta=np.empty(0) if known else np.array([np.log(0.7)]),
        theta_bounds=np.empty((0, 2)) if known else np.array([[-20.0, 20.0]]),
        normal=True,
        sigma=sigma if known else 1.0,
    )


def dense(problem):
    design = problem.design
    return design.columns(np.arange(design.width))


def precisions(k, seed=1):
    return 10 ** np.random.default_rng(seed).uniform(-1.5, 1.5, k)


def log_density(problem, index, alpha, sigma):
    """Log-density of y under N(offset, sigma^2 I + Phi A^-1 Phi')."""
    Phi = dense(problem)[:, index]
    noise = np.broadcast_to(sigma, (len(problem.y),))
    return multivariate_normal(problem.offset, np.diag(noise**2) + (Phi / alpha) @ Phi.T).logpdf(problem.y)


def stencil(f, x, j, h=1e-3):
    """Derivative along coordinate j to fourth order: error about h^4, rounding about 1e-13 / h."""
    step = np.zeros(len(x))
    step[j] = h
    return (8 * (f(x + step) - f(x - step)) - (f(x + 2 * step) - f(x - 2 * step))) / (12 * h)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("n", "M"), [(60, 6), (20, 12), (8, 30)], ids=["tall", "square", "wide"])
def test_the_evidence_is_the_normal_density_of_the_targets(n, M, bias):
    offset = np.linspace(-1, 1, n)
    problem = make(n, M, bias=bias, offset=offset)
    index = np.arange(problem.design.width)
    alpha = precisions(len(index))
    state = Exact(problem, Objective()).at(index, alpha, problem.theta)
    counted = alpha.copy()
    counted[~problem.free] = BIAS_PRECISION  # the bias has its own prior, whatever is handed in
    assert_allclose(state.alpha, counted)
    assert_allclose(state.log_evidence, log_density(problem, index, counted, 0.7), rtol=1e-9)
    assert state.objective == state.log_evidence
    assert isinstance(state.posterior, Dual if len(index) > n else Primal)


def test_some_columns_in_any_order():
    problem = make(25, 40, bias=True)
    exact = Exact(problem, Objective())
    rng = np.random.default_rng(3)
    for size in (1, 4, 9, 4, 20, 30):  # grows and shrinks, so that cross-products are computed, kept and reused
        index = rng.permutation(41)[:size]
        alpha = precisions(size, seed=size)
        state = exact.at(index, alpha, problem.theta)
        if size < 25:
            exact.scores(state)
        assert_allclose(state.log_evidence, log_density(problem, index, state.alpha, 0.7), rtol=1e-9)


def test_the_posterior_is_that_of_linear_algebra():
    problem = make(30, 5)
    index, alpha = np.arange(5), precisions(5)
    state = Exact(problem, Objective()).at(index, alpha, problem.theta)
    Phi, beta = dense(problem), 0.7**-2
    Sigma = np.linalg.inv(beta * Phi.T @ Phi + np.diag(alpha))
    w = beta * Sigma @ Phi.T @ problem.y
    assert_allclose(state.mean, w, rtol=1e-11)
    assert_allclose(state.posterior.covariance, Sigma, rtol=1e-11, atol=1e-14)
    assert_allclose(state.gamma, 1 - alpha * Sigma.diagonal(), rtol=1e-9)
    assert_allclose(state.residual_power, np.sum((problem.y - Phi @ w) ** 2), rtol=1e-10)


def test_dual_equals_primal(monkeypatch):
    problem = make(12, 20)
    index, alpha = np.arange(20), precisions(20)
    objective = Objective(smoothness=1.3)
    dual = Exact(problem, objective).at(index, alpha, problem.theta)
    assert isinstance(dual.posterior, Dual)
    Phi = dense(problem)
    primal = Primal(0.7**-2 * Phi.T @ Phi, alpha)
    assert_allclose(dual.mean, primal.solve(0.7**-2 * Phi.T @ problem.y), rtol=1e-9, atol=1e-11)
    assert_allclose(dual.variance, primal.variance, rtol=1e-9)
    assert_allclose(dual.posterior.smoothing, primal.smoothing, rtol=1e-7, atol=1e-11)
    assert_allclose(dual.objective, dual.log_evidence - 1.3 * np.sum(1 - alpha * primal.variance), rtol=1e-10)


@pytest.mark.parametrize("method", ["sequential", "mackay", "em"])
@pytest.mark.parametrize("standardise", [False, True])
@pytest.mark.filterwarnings("ignore::bayes_sparse.FitWarning")
def test_the_evidence_through_the_front_door(method, standardise):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((40, 6)) * [1, 2, 0.1, 5, 1, 1] + [0, 3, 0, 0, 1, 0]
    y = X[:, 1] - 4 * X[:, 2] + 0.3 * rng.standard_normal(40)
    basis = bs.basis.linear(bias=False, standardise=standardise)
    tree = bs.fit("ard_gaussian", (X, y), basis=basis, method=method, draws=0, reestimate=False)
    evidence = tree["evidence"]
    kept = evidence["kept"].to_numpy()
    assert 0 < kept.sum() < 6 or method == "em"
    alpha = evidence["alpha"].to_numpy()[kept]
    C = float(evidence["sigma"]) ** 2 * np.eye(40) + (X[:, kept] / alpha) @ X[:, kept].T
    assert_allclose(float(evidence["log_evidence"]), multivariate_normal(np.zeros(40), C).logpdf(y), rtol=1e-9)
    # And the penalised objective, from the reported gammas.
    DF = float(evidence["gamma"].sum())
    expected = float(evidence["log_evidence"]) - evidence.attrs["smoothness"] * DF
    assert_allclose(float(evidence["objective"]), expected, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::bayes_sparse.FitWarning")
def test_the_evidence_counts_the_prior_of_the_bias():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((40, 4)) + 1
    y = 5 + 2 * X[:, 0] + 0.3 * rng.standard_normal(40)
    basis = bs.basis.linear(standardise=False)
    evidence = bs.fit(bs.models.ARDGaussian(bias_sd=3.0), (X, y), basis=basis, draws=0)["evidence"]
    kept = evidence["kept"].to_numpy()
    Phi = np.column_stack([X[:, kept], np.ones(40)])
    alpha = np.append(evidence["alpha"].to_numpy()[kept], 3.0**-2)
    C = float(evidence["sigma"]) ** 2 * np.eye(40) + (Phi / alpha) @ Phi.T
    assert_allclose(float(evidence["log_evidence"]), multivariate_normal(np.zeros(40), C).logpdf(y), rtol=1e-9)
    Sigma = np.linalg.inv(Phi.T @ Phi / float(evidence["sigma"]) ** 2 + np.diag(alpha))
    w = Sigma @ Phi.T @ y / float(evidence["sigma"]) ** 2
    assert_allclose(evidence["mean"].to_numpy()[kept], w[:-1], rtol=1e-9)
    assert_allclose(float(evidence["bias"]), w[-1], rtol=1e-9)
    assert_allclose(float(evidence["bias_sd"]), np.sqrt(Sigma[-1, -1]), rtol=1e-9)


def test_the_default_prior_of_the_bias_is_ten_times_the_size_of_the_targets():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((40, 3))
    y = 5 + 2 * X[:, 0] + 0.3 * rng.standard_normal(40)
    default = bs.fit("ard_gaussian", (X, y), draws=0)["evidence"]
    given = bs.fit(bs.models.ARDGaussian(bias_sd=10 * np.sqrt(np.mean(y**2))), (X, y), draws=0)["evidence"]
    assert_allclose(float(default["log_evidence"]), float(given["log_evidence"]), rtol=1e-12)


@pytest.mark.parametrize(("n", "M"), [(40, 4), (10, 14)])
def test_whole_weights_are_replicated_rows(n, M):
    counts = np.random.default_rng(2).integers(0, 4, n)
    weighted = make(n, M, bias=True, weights=counts.astype(float))
    rows = np.repeat(np.arange(n), counts)
    replicated = replace(
        weighted,
        design=Design(dense(weighted)[rows, :M], extra=np.ones((len(rows), 1))),
        y=weighted.y[rows],
        offset=weighted.offset[rows],
        weights=None,
    )
    index, alpha = np.arange(M + 1), precisions(M + 1)
    objective = Objective(1.3)
    one, other = Exact(weighted, objective), Exact(replicated, objective)
    a, b = (exact.at(index, alpha, weighted.theta) for exact in (one, other))
    assert_allclose(a.log_evidence, b.log_evidence, rtol=1e-11)
    assert_allclose(a.objective, b.objective, rtol=1e-10)
    assert_allclose(a.mean, b.mean, rtol=1e-9, atol=1e-12)
    assert_allclose(one.slope(a), other.slope(b), rtol=1e-8, atol=1e-9)
    if n > M:
        assert_allclose(one.curvature(a), other.curvature(b), rtol=1e-8, atol=1e-9)
        few = one.at(index[:2], alpha[:2], weighted.theta)
        same = other.at(index[:2], alpha[:2], weighted.theta)
        assert_allclose(one.scores(few).S, other.scores(same).S, rtol=1e-10)
        assert_allclose(one.scores(few).Q, other.scores(same).Q, rtol=1e-9, atol=1e-10)


def test_weights_through_the_front_door_are_replicated_rows():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((50, 4))
    y = X[:, 0] - X[:, 1] + 0.4 * rng.standard_normal(50)
    counts = rng.integers(0, 4, 50)
    rows = np.repeat(np.arange(50), counts)
    basis = bs.basis.linear(bias=False, standardise=False)
    one = bs.fit("ard_gaussian", (X, y), basis=basis, weights=counts, draws=0)["evidence"]
    other = bs.fit("ard_gaussian", (X[rows], y[rows]), basis=basis, draws=0)["evidence"]
    assert bool((one["kept"] == other["kept"]).all())
    # Both searches stop within 1e-8 nats of the top, where the objective is flat: the square root for the rest.
    assert_allclose(float(one["log_evidence"]), float(other["log_evidence"]), rtol=1e-8)
    assert_allclose(one["mean"], other["mean"], rtol=1e-4)
    assert_allclose(float(one["sigma"]), float(other["sigma"]), rtol=1e-4)


@pytest.mark.parametrize("M", [5, 30])
def test_a_known_noise_for_each_observation(M):
    sigma = np.random.default_rng(4).uniform(0.2, 2.0, 20)
    problem = make(20, M, sigma=sigma)
    index, alpha = np.arange(M), precisions(M)
    exact = Exact(problem, Objective(smoothness=0.7))
    state = exact.at(index, alpha, problem.theta)
    assert_allclose(state.log_evidence, log_density(problem, index, alpha, sigma), rtol=1e-9)
    f = lambda x: exact.at(index, np.exp(x), problem.theta).objective  # noqa: E731
    slope = exact.slope(state)
    assert slope.shape == (M,)
    assert_allclose(slope, [stencil(f, np.log(alpha), j) for j in range(M)], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("prior", [None, lambda theta: float(-0.5 * ((theta[0] - 0.2) / 0.4) ** 2)], ids=["", "prior"])
@pytest.mark.parametrize("hyper", [(0.0, 0.0, 0.0), (0.5, 0.3, 0.0), (-1.0, 0.0, 0.4)])
@pytest.mark.parametrize("smoothness", [0.0, 1.3])
@pytest.mark.parametrize("bias", [None, BIAS_PRECISION, 20.0], ids=["", "bias", "held"])
def test_slope_and_curvature_are_those_of_the_objective(smoothness, hyper, prior, bias):
    """Also beside a column whose fixed precision is far from wide: it is no degree of freedom of the others."""
    problem = replace(
        make(30, 5, bias=bias is not None), fixed_precision=lambda _: np.full(int(bias is not None), bias)
    )
    width = problem.design.width
    index, alpha = np.arange(width), precisions(width)
    alpha[~problem.free] = bias
    exact = Exact(problem, Objective(smoothness, *hyper[:2], prior, inverse=hyper[2]))
    k = 5

    def state_at(x):
        full = alpha.copy()
        full[:k] = np.exp(x[:k])
        return exact.at(index, full, x[k:])

    x = np.append(np.log(alpha[:k]), problem.theta)
    state = state_at(x)
    numeric = [stencil(lambda v: state_at(v).objective, x, j) for j in range(k + 1)]
    # The prior of theta is differenced with a step of 1e-4: rounding 1e-12.
    assert_allclose(exact.slope(state), numeric, rtol=1e-7, atol=1e-8)
    numeric = np.array([stencil(lambda v: exact.slope(state_at(v)), x, j) for j in range(k + 1)])
    assert_allclose(exact.curvature(state), numeric, rtol=1e-6, atol=2e-7)
    # theta_step points uphill.
    assert exact.theta_step(state)[0] * exact.slope(state)[-1] > 0


@pytest.mark.parametrize("bias", [False, True])
def test_slope_on_the_dual_side(bias):
    problem = replace(make(10, 16, bias=bias), fixed_precision=lambda _: np.full(int(bias), 2.0))
    index, alpha = np.arange(16 + bias), np.append(precisions(16), [2.0] * bias)
    exact = Exact(problem, Objective(1.3, 0.5, 0.3))
    f = lambda x: exact.at(index, np.append(np.exp(x[:16]), [2.0] * bias), x[16:]).objective  # noqa: E731
    x = np.append(np.log(alpha[:16]), problem.theta)
    numeric = [stencil(f, x, j) for j in range(17)]
    assert_allclose(exact.slope(exact.at(index, alpha, problem.theta)), numeric, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("smoothness", [0.0, 1.3])
@pytest.mark.parametrize(("n", "M"), [(80, 10), (20, 40)])
def test_scores_predict_the_evidence_with_one_column_more(n, M, smoothness):
    problem = make(n, M, bias=True)
    exact = Exact(problem, Objective())
    index = np.array([2, M, 7, 0])
    state = exact.at(index, precisions(4), problem.theta)
    scores = exact.scores(state)
    for candidate in set(range(M)) - set(index.tolist()):
        for alpha in (1e-3, 1.0, 1e3):
            new = exact.at(np.append(index, candidate), np.append(state.alpha, alpha), problem.theta)
            S, Q = scores.S[candidate], scores.Q[candidate]
            predicted = 0.5 * (np.log(alpha / (alpha + S)) + Q**2 / (alpha + S))
            assert_allclose(new.log_evidence - state.log_evidence, predicted, rtol=1e-8, atol=1e-9)
    # The gain at a column's own best precision, brute force over a fine grid.
    gain, best = addition_gain(scores.S, scores.Q, smoothness)
    grid = np.exp(np.linspace(-15, 15, 2001))
    for candidate in range(M):
        worth = column_worth(grid, scores.S[candidate], scores.Q[candidate], smoothness)
        # DF of the added column alone, the others' left as they are, is S / (alpha + S).
        assert gain[candidate] >= max(worth.max(), 0.0) - 1e-12
        if np.isfinite(best[candidate]):
            own = column_worth(best[[candidate]], scores.S[[candidate]], scores.Q[[candidate]], smoothness)
            assert_allclose(own, gain[candidate], rtol=1e-10)


def test_scores_of_active_columns_are_those_without_them():
    problem = make(30, 8, bias=True)
    exact = Exact(problem, Objective())
    index = np.array([2, 8, 7, 0])
    state = exact.at(index, precisions(4), problem.theta)
    s, q = state.left_out()
    scores = exact.scores(state)
    for position, column in enumerate(index):
        rest = np.delete(index, position)
        smaller = exact.at(rest, np.delete(state.alpha, position), problem.theta)
        alone = exact.scores(smaller)
        assert_allclose(s[position], alone.S[column], rtol=1e-9)
        assert_allclose(q[position], alone.Q[column], rtol=1e-9)
        S, Q = scores.without(state, position)
        others = np.setdiff1d(np.arange(9), index)
        assert_allclose(S[others], alone.S[others], rtol=1e-9)
        assert_allclose(Q[others], alone.Q[others], rtol=1e-8, atol=1e-9)
        lost = state.log_evidence - smaller.log_evidence
        assert_allclose(column_worth(state.alpha, s, q, 0.0)[position], lost, rtol=1e-8, atol=1e-9)


# Noise-free sinc: the fit is so good that differences of cross-products keep no digits.


def many_digits(Phi, alpha, sigma, y, others):
    """Log evidence, and S and Q of other columns, with 80 digits through the k x k matrix."""
    with mpmath.workdps(80):
        P, t, beta = mpmath.matrix(Phi.tolist()), mpmath.matrix(y.tolist()), 1 / mpmath.mpf(float(sigma)) ** 2
        A = mpmath.diag([mpmath.mpf(float(a)) for a in alpha])
        Sigma = (beta * P.T * P + A) ** -1
        moment = P.T * t
        n = len(y)
        log_det = (
            -n * mpmath.log(beta) - mpmath.log(mpmath.det(Sigma)) - sum(mpmath.log(A[i, i]) for i in range(A.rows))
        )
        square = beta * (t.T * t)[0] - beta**2 * (moment.T * Sigma * moment)[0]
        log_evidence = -(n * mpmath.log(2 * mpmath.pi) + log_det + square) / 2
        more = mpmath.matrix(others.tolist())
        C = P.T * more
        SC = Sigma * C
        S = [
            beta * mpmath.fdot(more[:, i], more[:, i]) - beta**2 * mpmath.fdot(C[:, i], SC[:, i])
            for i in range(more.cols)
        ]
        residual = t - beta * P * (Sigma * moment)
        Q = [beta * mpmath.fdot(more[:, i], residual) for i in range(more.cols)]
        return float(log_evidence), np.array([float(s) for s in S]), np.array([float(q) for q in Q])


@pytest.mark.parametrize("width", [1.5, 2.0, 2.5, 3.0])
def test_noise_free_sinc_does_not_stall(width):
    """A search with scores that have lost their digits stops near 203 nats; this one must go on."""
    x = np.linspace(-10, 10, 100)
    y = np.sinc(x / np.pi)
    basis = bs.basis.rbf(width=width, bias=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bs.FitWarning)
        evidence = bs.fit("ard_gaussian", (x, y), basis=basis, smoothness=0, draws=0)["evidence"]
    assert float(evidence["log_evidence"]) > 400
    kept = evidence["kept"].to_numpy()
    K = basis.matrix(x[:, None], x[:, None])
    alpha, sigma = evidence["alpha"].to_numpy()[kept], float(evidence["sigma"])
    truth, S, Q = many_digits(K[:, kept], alpha, sigma, y, K[:, ~kept])
    # The kernel matrix is nearly singular (jitter of 1e-14 of its diagonal, at most): a thousandth of a nat.
    assert_allclose(float(evidence["log_evidence"]), truth, atol=1e-3)
    # It stopped because nothing is left to gain, not because it could not see it.
    gain, _ = addition_gain(S, Q, 0.0)
    assert gain.max() < 1e-2


def test_scores_keep_their_digits_when_the_noise_is_small():
    x = np.linspace(-10, 10, 100)
    y = np.sinc(x / np.pi)
    K = bs.basis.rbf(width=3.0).matrix(x[:, None], x[:, None])
    sigma = 1e-6
    problem = replace(make(100, 100), design=Design(K), y=y, theta=np.array([np.log(sigma)]))
    exact = Exact(problem, Objective())
    index = np.arange(0, 100, 9)
    state = exact.at(index, np.full(len(index), 0.1), problem.theta)
    scores = exact.scores(state)
    others = np.setdiff1d(np.arange(100), index)
    _, S, Q = many_digits(K[:, index], state.alpha, sigma, y, K[:, others])
    C = K[:, others].T @ K[:, index]
    full = np.einsum("ij,ij->j", K[:, others], K[:, others]) / sigma**2
    textbook = full - np.einsum("ij,jk,ik->i", C, state.posterior.covariance, C) / sigma**4
    assert np.abs(textbook / S - 1).max() > 100  # the subtraction has nothing left
    assert_allclose(scores.S[others], S, rtol=1e-8)
    # Q is linear in the residual, which itself is known to about 1e-7 here.
    assert_allclose(scores.Q[others], Q, rtol=1e-6, atol=1e-6 * np.abs(Q).max())


def test_an_approximation_may_be_used_again_after_a_search():
    """A search works on a copy with another price; what it learns must not spoil the original."""
    problem = make(30, 20)
    exact = Exact(problem, Objective(smoothness=1.0))
    outcome = Sequential()(problem, exact, lambda *_: None)
    again = exact.at(outcome.state.index, outcome.state.alpha, outcome.state.theta)
    assert_allclose(again.objective, outcome.state.objective, rtol=1e-10)
    assert_allclose(exact.scores(again).S, Exact(problem, Objective()).scores(again).S, rtol=1e-9)
