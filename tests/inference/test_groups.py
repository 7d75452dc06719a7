"""Columns that share one precision: evidence, gains, derivatives and scores against dense matrices."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from scipy.stats import chi2, f, multivariate_normal

from bayes_sparse.inference.approximations import Exact, LaplaceApproximation, approximate
from bayes_sparse.inference.claims import chance_of, with_weaker_as_noise
from bayes_sparse.inference.evidence.ascent import Ascent, delete_phantoms, delete_useless
from bayes_sparse.inference.evidence.claims import claims
from bayes_sparse.inference.evidence.groups import (
    Directions,
    active_directions,
    best_gain,
    candidates,
    offered,
    term_worth,
)
from bayes_sparse.inference.evidence.state import Objective
from bayes_sparse.problem.design import Design
from tests.grouped import problem_of, simulated, targets

pytestmark = pytest.mark.quick

GROUPS = np.array([0, 0, 0, 1, 1, 2, 3, 3])  # of eight columns; one is alone
ACTIVE = np.array([5, 0, 1, 2, 8])  # the one alone, the first group, the bias
PRECISIONS = np.array([2.0, 0.7, 0.7, 0.7, 1.0])


def small(family="normal", seed=0, n=30, groups=GROUPS, **more):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, len(GROUPS))) @ (np.eye(8) + 0.3 * rng.standard_normal((8, 8)))
    eta = X @ [0.8, -0.6, 0.3, 0.7, 0.5, 0.0, 0.1, 0.0]
    return problem_of(family, X, targets(family, eta, rng), groups, **more)


def dense_evidence(problem, index, alpha, sigma):
    Phi = problem.design.columns(index)
    full = np.where(problem.free[index], alpha, 0.01)
    return multivariate_normal(cov=sigma**2 * np.eye(len(Phi)) + (Phi / full) @ Phi.T).logpdf(problem.y)


def left_out(problem, index, alpha, columns, sigma):
    """Sparsity and quality of some columns beside others, by the n x n covariance."""
    Phi, own = problem.design.columns(index), problem.design.columns(columns)
    full = np.where(problem.free[index], alpha, 0.01)
    inverse = np.linalg.inv(sigma**2 * np.eye(len(Phi)) + (Phi / full) @ Phi.T)
    return own.T @ inverse @ own, own.T @ inverse @ problem.y


@pytest.mark.parametrize("log_alpha", [-8.0, -2.0, 0.0, 3.0, 9.0])
def test_the_gain_of_a_group_is_the_difference_of_two_evidences(log_alpha):
    """Over a grid of its precision, as scipy's normal density has it; with a price for its degrees of freedom."""
    problem, sigma, price, alpha = small(sigma=0.9), 0.9, 1.3, np.exp(log_alpha)
    approximation = Exact(problem, Objective())
    state = approximation.at(ACTIVE, PRECISIONS, problem.theta)
    assert_allclose(state.log_evidence, dense_evidence(problem, ACTIVE, PRECISIONS, sigma), rtol=1e-12)
    for found in candidates(approximation, problem.grouping, state, approximation.scores(state)):
        for own, s, z in zip(*found, strict=True):
            index, precisions = np.append(ACTIVE, own), np.append(PRECISIONS, np.full(len(own), alpha))
            gain = dense_evidence(problem, index, precisions, sigma) - state.log_evidence
            one = Directions(own[None], s[None], z[None])
            assert_allclose(one.worth(np.array([alpha]), 0.0), gain, atol=1e-9)
            S, _ = left_out(problem, ACTIVE, PRECISIONS, own, sigma)
            df = np.trace(S @ np.linalg.inv(S + alpha * np.eye(len(own))))
            assert_allclose(one.worth(np.array([alpha]), price), gain - price * df, atol=1e-9)


def test_the_worth_of_an_active_group_is_what_is_lost_without_it():
    problem, sigma, price = small(sigma=0.9), 0.9, 0.8
    index, alpha = np.append(ACTIVE, [3, 4]), np.append(PRECISIONS, [1.7, 1.7])
    state = Exact(problem, Objective()).at(index, alpha, problem.theta)
    found = {
        tuple(index[at].tolist()): (s, z) for part in active_directions(state) for at, s, z in zip(*part, strict=True)
    }
    assert set(found) == {(0, 1, 2), (3, 4)}
    worth = term_worth(state, 0.0)
    for group, (s, z) in found.items():
        gone = np.isin(index, group)
        S, q = left_out(problem, index[~gone], alpha[~gone], np.array(group), sigma)
        assert_allclose(np.sort(s), np.linalg.eigvalsh(S), rtol=1e-9)
        assert_allclose(np.sum(z**2 / s), q @ np.linalg.solve(S, q), rtol=1e-9)
        lost = state.log_evidence - dense_evidence(problem, index[~gone], alpha[~gone], sigma)
        assert_allclose(worth[gone], lost, rtol=1e-9)
        df = np.trace(S @ np.linalg.inv(S + alpha[gone][0] * np.eye(len(group))))
        assert_allclose(term_worth(state, price)[gone], lost - price * df, rtol=1e-9)


@pytest.mark.parametrize("kind", ["dual", "laplace", "weights"])
def test_the_same_on_the_side_of_the_rows_and_for_other_likelihoods(kind):
    """More columns than rows; a curvature that differs by row; rows that count several times."""
    problem = small("poisson" if kind == "laplace" else "normal", n=6 if kind == "dual" else 30)
    if kind == "weights":
        problem = replace(problem, weights=np.arange(1.0, 31.0) / 10)
    approximation = approximate(problem, Objective())
    index, alpha = np.arange(9), np.array([0.7, 0.7, 0.7, 1.2, 1.2, 2.0, 3.0, 3.0, 1.0])
    state = approximation.at(index, alpha, problem.theta)
    for at, s, z in zip(*active_directions(state)[1], strict=True):  # the group of three
        covariance = state.posterior.solve(np.eye(9)[:, at])[at]
        S = np.linalg.inv(covariance) - 0.7 * np.eye(3)
        assert_allclose(np.sort(s), np.linalg.eigvalsh(S), rtol=1e-8)
        assert_allclose(np.sum(z**2), np.sum(np.linalg.solve(covariance, state.mean[at]) ** 2), rtol=1e-8)
    if kind == "dual":
        return
    some = approximation.at(ACTIVE, PRECISIONS, problem.theta)
    pairs = candidates(approximation, problem.grouping, some, approximation.scores(some))[0]
    for at, s, z in zip(*pairs, strict=True):
        weight = problem.weights if kind == "weights" else -some.terms[2]
        b = weight / np.exp(2 * some.theta[0]) if kind == "weights" else weight
        Phi, own = problem.design.columns(ACTIVE), problem.design.columns(at)
        full = np.where(problem.free[ACTIVE], PRECISIONS, 0.01)
        inverse = np.linalg.inv(np.diag(1 / b) + (Phi / full) @ Phi.T)
        assert_allclose(s, np.linalg.eigvalsh(own.T @ inverse @ own), rtol=1e-8)
        slope = b * (problem.y - Phi @ some.mean) if kind == "weights" else some.terms[1]
        assert_allclose(np.sum(z**2), np.sum((own.T @ slope) ** 2), rtol=1e-8)


def test_the_best_precision_is_found_among_several_tops():
    """Against scipy from every start of a fine grid; directions that disagree make two tops."""
    rng = np.random.default_rng(1)
    s = np.vstack([10.0 ** rng.uniform(-3, 3, (40, 4)), [[1e-3, 1e3, 1e-3, 1e3]]])
    z = np.sqrt(s) * rng.standard_normal((41, 4)) * rng.choice([0.5, 3.0], (41, 4))
    z[-1] = np.sqrt(s[-1]) * [4.0, 1.2, 3.5, 1.5]
    for smoothness, floor in [(0.0, 0.0), (1.0, 0.0), (0.0, 0.5)]:
        gain, alpha = best_gain(Directions(np.zeros((41, 4), dtype=int), s, z), smoothness, floor)
        assert (gain > 0).sum() > 5
        for one, value, best in zip(zip(s, z, strict=True), gain, alpha, strict=True):
            own = Directions(np.zeros((1, 4), dtype=int), *(part[None] for part in one))

            def lost(t, own=own, smoothness=smoothness):
                return -float(own.worth(np.exp([t]), smoothness)[0])

            low = np.log(floor) if floor else -25.0
            grid = np.linspace(low, 25, 200)
            starts = grid[np.argsort([lost(t) for t in grid])[:3]]
            ends = [minimize_scalar(lost, bounds=(max(t - 0.5, low), t + 0.5), method="bounded").fun for t in starts]
            top = max(-min(ends), -lost(low) if floor else 0.0, 0.0)
            assert_allclose(value, top, atol=1e-5 * (1 + top))
            if value > 1e-4:
                assert_allclose(-lost(np.log(best)), value, rtol=1e-9)
            else:
                assert value < 1e-4


@pytest.mark.parametrize("seed", range(3))
def test_a_direction_of_its_own_is_a_column(seed):
    """One direction: the closed form of Tipping & Faul, s^2 / (q^2 - (1 + 2c) s)."""
    rng = np.random.default_rng(seed)
    s, c = rng.uniform(0.1, 5, (6, 1)), 0.4
    z = np.sqrt(s) * rng.uniform(0.5, 4, (6, 1))
    _, alpha = best_gain(Directions(np.zeros((6, 1), dtype=int), s, z), c)
    excess = z**2 - (1 + 2 * c) * s
    assert_allclose(alpha, np.where(excess > 0, s**2 / np.where(excess > 0, excess, 1.0), np.inf)[:, 0], rtol=1e-4)


@pytest.mark.parametrize("family", ["normal", "bernoulli", "poisson"])
@pytest.mark.parametrize("objective", [Objective(), Objective(1.2), Objective(0.7, 0.5, 0.2, floor=0.1)])
def test_slope_and_curvature_by_group(family, objective):
    """By numerical differentiation in one log precision per group: the price, the hyper-prior once, the slab."""
    problem = small(family)
    approximation = approximate(problem, objective)
    if family != "normal":
        approximation = approximation.polished()
    index, place = np.arange(9), np.append(GROUPS, 4)
    x = np.append(np.log([0.6, 1.5, 2.5, 0.9]), problem.theta)

    def at(x):
        alpha = np.exp(np.append(x[:4], 0.0))[place]
        return approximation.at(index, alpha, x[4:])

    state, h = at(x), 1e-4
    slope = state.ties.by_group(approximation.slope(state))
    unit = h * np.eye(len(x))
    assert_allclose(slope, [(at(x + e).objective - at(x - e).objective) / (2 * h) for e in unit], rtol=1e-5, atol=1e-6)
    if family == "normal":  # others leave the change of H out of their curvature
        by_group = [approximation.slope(at(x + e)) - approximation.slope(at(x - e)) for e in unit]
        expected = [state.ties.by_group(row) / (2 * h) for row in by_group]
        assert_allclose(state.ties.by_group(approximation.curvature(state)), expected, rtol=1e-5, atol=1e-6)


def test_the_hyper_prior_counts_once_per_group():
    problem, a, b, floor = small(), 0.8, 0.3, 0.05
    index, alpha = np.arange(9), np.array([0.7, 0.7, 0.7, 1.2, 1.2, 2.0, 3.0, 3.0, 1.0])
    plain = Exact(problem, Objective(floor=floor)).at(index, alpha, problem.theta).objective
    above = np.array([0.7, 1.2, 2.0, 3.0]) - floor
    expected = plain + np.sum(a * np.log(above) - b * above)
    found = Exact(problem, Objective(0.0, a, b, floor=floor)).at(index, alpha, problem.theta).objective
    assert_allclose(found, expected, rtol=1e-12)


def test_deletions_never_split_a_group():
    """Nor do they keep a group that the evidence is better without."""
    problem = simulated("normal", 1)
    label = problem.grouping.label
    for approximation in (
        Exact(problem, Objective(2.0)),
        LaplaceApproximation(simulated("poisson", 1), Objective(2.0)),
    ):
        index = np.arange(problem.design.width)
        state = approximation.at(
            index, np.full(len(index), 30.0), problem.theta if approximation.name == "exact" else np.empty(0)
        )
        useless = delete_useless(approximation, state)
        phantoms = delete_phantoms(approximation, state, 1.0)
        for after in (useless, phantoms):
            gone = np.setdiff1d(index, after.index)
            assert 0 < len(gone) < len(index) - 1
            assert not set(label[gone]) & set(label[after.index])
        assert useless.objective >= state.objective
        assert np.all(term_worth(phantoms, 2.0)[phantoms.free] >= 1.0)


def test_a_climb_leaves_groups_at_one_precision():
    problem = simulated("bernoulli", 0)
    approximation = LaplaceApproximation(problem, Objective(1.0, floor=0.04))
    index = np.arange(problem.design.width)
    state, _ = Ascent(approximation, problem.theta_bounds, 1e-6)(
        approximation.at(index, np.full(len(index), 5.0), np.empty(0)), 100
    )
    label = problem.grouping.label[state.index]
    assert len(np.unique(state.alpha[state.free])) == len(np.unique(label[state.free])) > 2
    for own in np.unique(label):
        assert len(set(state.alpha[label == own])) == 1
    slope = state.ties.by_group(approximation.slope(state))
    assert np.all(np.abs(slope) < 1e-2)


def test_the_score_of_a_group_is_a_chi_squared():
    """With the noise known: q' S^-1 q of groups kept and left out alike, and one statement for all of a group."""
    problem, sigma = small(sigma=0.9), 0.9
    approximation = Exact(problem, Objective())
    state = approximation.at(ACTIVE, PRECISIONS, problem.theta)
    said = claims(problem, approximation, state, state, approximation, rivals=True)
    assert offered(problem) == 4
    for group in (np.array([0, 1, 2]), np.array([3, 4]), np.array([6, 7]), np.array([5])):
        rest = ~np.isin(ACTIVE, group)
        S, q = left_out(problem, ACTIVE[rest], PRECISIONS[rest], group, sigma)
        score = q @ np.linalg.solve(S, q)
        assert_allclose(said.score[group], score, rtol=1e-9)
        assert_allclose(said.chance[group], 1 - chi2.cdf(score, len(group)) ** 4, rtol=1e-8)
    assert all(term == 5 for term, _, _ in said.exchanges)


def test_columns_that_say_the_same_count_as_one_degree_of_freedom():
    problem = small()
    twice = problem.design.columns(np.array([0, 0, 1, 3, 4, 5, 6, 7]))
    problem = replace(problem, design=Design(twice, extra=np.ones((30, 1))))
    approximation = Exact(problem, Objective())
    state = approximation.at(np.array([5, 8]), np.ones(2), problem.theta)
    found = candidates(approximation, problem.grouping, state, approximation.scores(state))[1]
    assert_array_equal(found.at, [[0, 1, 2]])
    assert_array_equal(found.degrees, [2])
    whole = approximation.at(np.array([5, 8, 0, 1, 2]), np.ones(5), problem.theta)
    assert_array_equal(active_directions(whole)[0].degrees, [2])
    assert_allclose(active_directions(whole)[0].score, found.score, rtol=1e-8)


def test_all_levels_of_a_factor_beside_a_bias_have_one_degree_of_freedom_less():
    """Left out or kept, they score by the sum of squares between levels, as in an analysis of variance."""
    rng = np.random.default_rng(6)
    level = rng.integers(0, 5, 200)
    y = np.array([0.0, 1.0, -1.0, 0.5, 0.2])[level] + rng.standard_normal(200) + 3
    problem = problem_of("normal", np.eye(5)[level], y, np.zeros(5, dtype=int), sigma=1.0)
    approximation = Exact(problem, Objective())
    means = np.array([y[level == own].mean() for own in range(5)])
    between = np.bincount(level) @ (means - y.mean()) ** 2
    for index in (np.array([5]), np.arange(6)):
        state = approximation.at(index, np.ones(len(index)), problem.theta)
        said = claims(problem, approximation, state, state, approximation, rivals=False)
        assert_allclose(said.score, between, rtol=1e-2)  # the bias has a prior
        assert_allclose(said.chance, chi2.sf(said.score, 4), rtol=1e-8)


def test_chance_has_the_group_s_degrees_of_freedom():
    score, degrees = np.array([4.0, 9.0, 30.0]), np.array([1.0, 3.0, 5.0])
    assert_allclose(chance_of(score, 7, degrees=degrees), 1 - chi2.cdf(score, degrees) ** 7, rtol=1e-9)
    assert_allclose(chance_of(score, 7, 20.0, degrees), 1 - f.cdf(score / degrees, degrees, 20) ** 7, rtol=1e-9)


def test_a_group_owes_nothing_to_weaker_ones():
    """As of single terms: the noise of a regression on orthogonal columns, weaker groups left in it."""
    rng = np.random.default_rng(1)
    n = 40
    Q = np.linalg.qr(rng.standard_normal((n, 5)))[0]
    y = Q @ [6.0, 5.0, 3.0, 2.0, 2.0] + rng.standard_normal(n)
    left, groups = n - 5, [np.array([0, 1]), np.array([2]), np.array([3, 4])]
    sigma2 = np.sum((y - Q @ (Q.T @ y)) ** 2) / left
    score = np.array([np.sum((Q[:, own].T @ y) ** 2) for own in groups]) / sigma2
    judged = with_weaker_as_noise(score, left, np.array([2.0, 1.0, 2.0]))
    order = np.argsort(-score)
    for rank, term in enumerate(order):
        inside = np.concatenate([groups[other] for other in order[: rank + 1]])
        rest = np.sum((y - Q[:, inside] @ (Q[:, inside].T @ y)) ** 2) - (5 - len(inside)) * sigma2
        assert_allclose(judged[term], score[term] * sigma2 / (rest / left), rtol=1e-12)
