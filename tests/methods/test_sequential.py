"""The sequential search: its rule in closed form, its end a true local optimum."""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_allclose

import bayes_sparse as bs
from bayes_sparse.inference.approximations import Exact, approximate
from bayes_sparse.inference.evidence.ascent import Ascent, delete_useless
from bayes_sparse.inference.evidence.exchanges import addition_gain, column_worth
from bayes_sparse.inference.evidence.state import Objective
from bayes_sparse.methods.sequential import Sequential
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.problem import Problem

pytestmark = pytest.mark.quick


def silent(iteration, objective, active):
    pass


def known_noise(Phi, y, sigma):
    n, M = Phi.shape
    return Problem(
        design=Design(Phi),
        y=y,
        free=np.ones(M, dtype=bool),
        fixed_precision=lambda theta: np.empty(0),
        pointwise=lambda eta, theta: (eta, eta, eta, eta),
        offset=np.zeros(n),
        normal=True,
        sigma=sigma,
    )


def orthogonal(seed=0, n=40, M=12):
    rng = np.random.default_rng(seed)
    Phi = np.linalg.qr(rng.standard_normal((n, M)))[0] * rng.uniform(1, 4, M)
    w = rng.standard_normal(M) * (np.arange(M) % 2)
    return Phi, Phi @ w + 0.5 * rng.standard_normal(n)


@pytest.mark.parametrize("smoothness", [0.0, 0.8, 3.0])
@pytest.mark.parametrize("seed", range(4))
def test_orthogonal_columns_have_a_closed_form(seed, smoothness):
    """With orthogonal columns each precision stands alone: s^2 / (q^2 - (1 + 2c) s), or pruned."""
    Phi, y = orthogonal(seed)
    problem = known_noise(Phi, y, 0.5)
    outcome = Sequential(tolerance=1e-9)(problem, Exact(problem, Objective(smoothness)), silent)
    s, q = (Phi**2).sum(axis=0) / 0.25, Phi.T @ y / 0.25
    excess = q**2 - (1 + 2 * smoothness) * s
    assert set(outcome.state.index.tolist()) == set(np.flatnonzero(excess > 0).tolist())
    index = outcome.state.index
    # The ascent stops within 1e-8 nats of the top: the square root of that, in log alpha, over a curvature of order one
    # that falls where excess is small against s.
    flat = s[index] / excess[index]
    error = np.abs(np.log(outcome.state.alpha) - np.log(s[index] ** 2 / excess[index]))
    assert np.all(error < 1e-3 * (1 + flat))
    J = np.sum(addition_gain(s, q, smoothness)[0])
    empty = -0.5 * (y @ y / 0.25 + len(y) * np.log(2 * np.pi * 0.25))
    assert_allclose(outcome.state.objective, empty + J, rtol=1e-8)


def test_the_rule_of_one_column():
    S, Q = np.array([2.0, 2.0, 2.0, 0.0]), np.array([3.0, 1.0, 2.0, 1.0])
    gain, alpha = addition_gain(S, Q, 0.0)
    assert_allclose(alpha, [4 / 7, np.inf, 2.0, np.inf])
    assert_allclose(gain, [0.5 * (4.5 - 1 - np.log(4.5)), 0.0, 0.5 * (1 - np.log(2)), 0.0])
    gain, alpha = addition_gain(S, Q, 1.0)
    assert_allclose(alpha, [4 / (9 - 6), np.inf, np.inf, np.inf])
    assert_allclose(column_worth(alpha[:1], S[:1], Q[:1], 1.0), gain[:1])


@pytest.mark.parametrize("smoothness", [0.0, 1.5])
def test_the_end_is_a_local_optimum_in_every_direction(smoothness):
    """No addition, no deletion and no step in any hyper-parameter gains more than the tolerance."""
    truth = bs.datasets.sparse_linear(n=60, p=40, k=4, random_seed=3)
    n, M = truth.X.shape
    problem = Problem(
        design=Design(truth.X),
        y=truth.y,
        free=np.ones(M, dtype=bool),
        fixed_precision=lambda theta: np.empty(0),
        pointwise=lambda eta, theta: (eta, eta, eta, eta),
        offset=np.zeros(n),
        theta=np.log([np.std(truth.y)]),
        theta_bounds=np.array([[-10.0, 10.0]]),
        normal=True,
    )
    objective = Objective(smoothness)
    outcome = Sequential()(problem, Exact(problem, objective), silent)
    assert outcome.converged
    state, fresh = outcome.state, Exact(problem, objective)
    assert np.abs(fresh.slope(state)).max() < 2e-3
    assert np.linalg.eigvalsh(fresh.curvature(state)).max() < 0
    scores = fresh.scores(state)
    _, best = addition_gain(scores.S, scores.Q, smoothness)
    for candidate in set(range(M)) - set(state.index.tolist()):
        for alpha in {1e-2, 1.0, 1e2, min(best[candidate], 1e6)}:
            new = fresh.at(np.append(state.index, candidate), np.append(state.alpha, alpha), state.theta)
            assert new.objective < state.objective + 2e-3
    for position in range(len(state.index)):
        new = fresh.at(np.delete(state.index, position), np.delete(state.alpha, position), state.theta)
        assert new.objective < state.objective + 1e-9


@pytest.mark.parametrize("smoothness", [0.0, 1.5])
def test_deletion_follows_tipping_and_faul(smoothness):
    """Of orthogonal columns exactly those with q^2 <= (1 + 2c) s go."""
    Phi, y = orthogonal(1)
    problem = known_noise(Phi, y, 0.5)
    exact = Exact(problem, Objective(smoothness))
    state = delete_useless(exact, exact.at(np.arange(12), np.full(12, 5.0), problem.theta))
    s, q = (Phi**2).sum(axis=0) / 0.25, Phi.T @ y / 0.25
    assert_allclose(np.sort(state.index), np.flatnonzero(q**2 > (1 + 2 * smoothness) * s))


def test_columns_with_a_fixed_precision_are_never_deleted():
    rng = np.random.default_rng(0)
    problem = known_noise(rng.standard_normal((30, 3)), rng.standard_normal(30), 1.0)
    problem = Problem(
        **{**vars(problem), "free": np.array([True, False, False]), "fixed_precision": lambda t: np.array([1.0, 2.0])}
    )
    exact = Exact(problem, Objective(5.0))
    state = Sequential()(problem, exact, silent).state
    assert {1, 2} <= set(state.index.tolist())
    assert_allclose(state.alpha[np.argsort(state.index)][-2:], [1.0, 2.0])


def test_ascent_stays_in_its_box_and_never_falls():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 3))
    problem = known_noise(X, X @ [1.0, 1.0, 1.0] + 0.01 * rng.standard_normal(30), 1.0)
    problem = Problem(**{**vars(problem), "theta": np.array([0.0]), "theta_bounds": np.array([[-1.0, 1.0]])})
    exact = Exact(problem, Objective())
    start = exact.at(np.arange(3), np.ones(3), problem.theta)
    end, settled = Ascent(exact, problem.theta_bounds, 1e-8)(start, 100)
    assert settled
    assert end.theta[0] == -1.0  # the noise is far smaller, so the bound holds it
    assert end.objective > start.objective
    assert np.abs(exact.slope(end)[:3]).max() < 1e-3


def test_reports_every_round_and_says_when_it_was_stopped():
    truth = bs.datasets.sparse_linear(n=80, p=40, k=6, random_seed=1)
    seen = []
    with pytest.warns(bs.FitWarning, match="did not converge"):
        tree = bs.fit("ard_gaussian", (truth.X, truth.y), max_iterations=2, smoothness=0, draws=0)
    assert tree["evidence"].attrs["status"] == "max_iterations"
    problem = known_noise(truth.X, truth.y, truth.noise)
    outcome = Sequential()(problem, Exact(problem, Objective()), lambda *args: seen.append(args))
    assert [s[0] for s in seen] == list(range(1, len(seen) + 1))
    assert_allclose([s[1] for s in seen], outcome.history[1 : len(seen) + 1])
    assert seen[-1][2] == len(outcome.state.index)


def test_the_truth_is_found():
    truth = bs.datasets.sparse_linear(n=100, p=200, k=5, random_seed=0)
    evidence = bs.fit("ard_gaussian", (truth.X, truth.y), draws=0)["evidence"]
    assert_allclose(evidence["kept"], truth.relevant)
    # Each weight within four posterior sds: five of them, so a false alarm in three thousand.
    z = (evidence["mean"] - truth.weights)[truth.relevant] / evidence["sd"][truth.relevant]
    assert np.abs(z).max() < 4


def test_an_amplitude_does_not_hide_the_signal():
    """Without any term the best amplitude is small, and then no term pays; MacKay begins with all of them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 10))
    y = 3 * np.tanh(0.3 + X[:, 0] - 0.7 * X[:, 1]) + 0.5 * rng.standard_normal(150)
    with pm.Model() as model:
        w = pm.Normal("w", 0, tau=pm.Gamma("alpha", 0.5, 0.005, shape=10), shape=10)
        amplitude, noise = pm.HalfNormal("A", 5), pm.HalfNormal("s", 2)
        pm.Normal("y", amplitude * pm.math.tanh(pm.Normal("b", 0, 2) + X @ w), noise, observed=y)
    both = [bs.fit(model, method=method, smoothness=2.0, draws=0)["evidence"] for method in ("sequential", "mackay")]
    found, other = both
    assert found.attrs["status"] == "converged"
    assert found["kept"].to_numpy()[:2].all()
    assert_allclose(found["A"], 3, rtol=0.1)
    assert float(found["objective"]) > float(other["objective"]) - 1e-3


def test_no_other_start_is_tried_where_there_is_nothing_to_add():
    """All columns have a precision of their own, as with ``hyper="declared"``: that none is free means nothing."""
    rng = np.random.default_rng(2)
    X, seen = rng.standard_normal((40, 3)), []
    y = X @ [1.0, -1.0, 0.0] + 0.5 * rng.standard_normal(40)

    def pointwise(eta, theta):
        seen.append(theta[0])
        sd, flat = np.exp(theta[0]), np.zeros(40)
        r = (y - eta) / sd
        return -0.5 * r**2 - theta[0] - 0.5 * np.log(2 * np.pi), r / sd, flat - sd**-2, flat

    problem = replace(
        known_noise(X, y, 1.0),
        design=Design(np.empty((40, 0)), extra=X),
        free=np.zeros(3, dtype=bool),
        fixed_precision=np.ones(3),
        pointwise=pointwise,
        theta=np.zeros(1),
        theta_bounds=np.array([[-3.0, 3.0]]),
        normal=False,
    )
    state = Sequential(smoothness=0)(problem, approximate(problem, Objective(0.0)), silent).state
    assert_allclose(state.theta, np.log(np.std(y - X @ state.mean, ddof=2.7)), atol=0.05)
    assert 2.0 not in np.abs(seen)  # where another start would hold it


def test_beside_more_columns_with_known_priors_than_rows_it_is_the_search_with_these_integrated_out():
    """In whitened rows: the same terms, the same weights, the same evidence less that of the whitening."""
    rng = np.random.default_rng(5)
    n, M, effects, precision, sigma = 30, 6, 37, 4.0, 0.3
    Phi, Z = rng.standard_normal((n, M)), rng.standard_normal((n, effects)) / np.sqrt(effects)
    y = (
        Phi @ np.array([1.0, 0, -0.8, 0, 0, 0])
        + 0.5 * Z @ rng.standard_normal(effects)
        + sigma * rng.standard_normal(n)
    )
    L = np.linalg.cholesky(sigma**2 * np.eye(n) + Z @ Z.T / precision)
    beside = replace(
        known_noise(Phi, y, sigma),
        design=Design(Phi, extra=Z),
        free=np.arange(M + effects) < M,
        fixed_precision=lambda theta: np.full(effects, precision),
    )
    white = known_noise(np.linalg.solve(L, Phi), np.linalg.solve(L, y), 1.0)
    ends = [Sequential()(problem, Exact(problem, Objective(1.0)), silent).state for problem in (beside, white)]
    kept, found = (dict(zip(s.index[s.free].tolist(), s.mean[s.free], strict=True)) for s in ends)
    assert set(kept) == set(found) >= {0, 2}
    assert_allclose([kept[i] for i in found], list(found.values()), rtol=1e-4)  # to the search's tolerance
    expected = ends[1].log_evidence - np.log(L.diagonal()).sum()
    assert_allclose(ends[0].log_evidence, expected, atol=1e-5)


@pytest.mark.parametrize("normal", [True, False])
def test_effects_of_rows_are_noise_by_another_name(normal):
    """One known effect per row beside the columns is the same model with more noise, and leaves room to add."""
    rng = np.random.default_rng(5)
    n, M, sigma, spread = 60, 10, 0.4, 0.3
    X = rng.standard_normal((n, M))
    y = X[:, 0] - X[:, 4] + sigma * rng.standard_normal(n) + spread * rng.standard_normal(n)

    def pointwise(eta, theta):
        r, flat = (y - eta) / sigma, np.zeros(n)
        return -0.5 * r**2 - np.log(sigma) - 0.5 * np.log(2 * np.pi), r / sigma, flat - sigma**-2, flat

    effects = replace(
        known_noise(X, y, sigma),
        design=Design(X, extra=np.eye(n)),
        free=np.arange(M + n) < M,
        fixed_precision=np.full(n, spread**-2),
        pointwise=pointwise,
        normal=normal,
    )
    together = known_noise(X, y, np.hypot(sigma, spread))
    one, other = (
        Sequential(smoothness=1.0)(p, approximate(p, Objective(1.0)), silent).state for p in (effects, together)
    )
    found, truth = np.argsort(one.index[one.free]), np.argsort(other.index)
    assert {0, 4} <= set(other.index.tolist())
    assert_allclose(one.index[one.free][found], other.index[truth])
    assert_allclose(one.alpha[one.free][found], other.alpha[truth], rtol=1e-4)
    assert_allclose(one.mean[one.free][found], other.mean[truth], rtol=1e-6)
    assert_allclose(one.objective, other.objective, rtol=1e-8)
