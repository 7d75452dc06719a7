"""The sequential search: its rule in closed form, its end a true local optimum."""

import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_allclose

import bayes_sparse as bs
from bayes_sparse.inference.approximations import Exact
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
