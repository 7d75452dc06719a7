"""The claim that the minimum lies in the octant of the most likely weights: two sets of data that contradict it.

Q = -L + N log R has no global minimum: it falls without end towards w = 0. What is contradicted is what can be meant,
its local minima, with N held at the number of weights that are not zero. In the first set the only stable solution of
the path has a weight of the other sign, and every local minimum in the octant, on whatever support, is higher. In the
second, the octant has no local minimum at all.
"""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit

from bayes_sparse.methods.reweighted import Reweighted
from tests.support import quiet

from .problems import case
from .scan import inside, scan, turns

HIGHER = (
    [-1, -1, 2, 1, 2, 2, -2, -1, -2, 2, -1, -2, 0, 1, 1, -2, 2, -1, 1, -2, 1, 1, 0, -2],
    [-2, 0, 0, 0, 0, -1, -2, -2, 1, 0, -1, -2, -1, 2, 1, 0, 0, 0, 0, -1, 0, 2, 1, 2],
    [-4, 0, 2, 2, 2, 1, -4, -3, -1, 1, -2, -4, -2, 2, 3, -2, 1, 0, 1, -3, 2, 2, 1, 0],
    [0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 0, 1, 0, 1, 1, 1, 0],
)
NONE_THERE = (
    [1, 2, 1, -2, -1, 2, 2, -1, 1, -2, 1, -2, 2, -2, 1, -1, -1, 1, 2, 2, -1, 2, 2, -2],
    [2, 2, -2, 2, 2, -1, 1, 2, 2, -1, -1, 2, 1, 2, -1, -2, -2, -1, -1, 2, 2, 2, -1, 0],
    [4, 4, -2, 0, 0, 2, 3, 2, 4, -4, 0, 1, 3, 0, -1, -3, -2, -1, 0, 4, 2, 4, 2, -1],
    [1, 1, 0, 0, 1, 0, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 1, 0, 1],
)
both = pytest.mark.parametrize("data", [HIGHER, NONE_THERE], ids=["higher", "none"])


def made(data):
    *columns, y = (np.array(values, dtype=float) for values in data)
    return case("bernoulli", np.column_stack(columns), y)


def loss(A, y, v):
    """Minus the log-likelihood of a logistic regression, and its slope."""
    eta = A @ v
    return np.logaddexp(0, eta).sum() - y @ eta, A.T @ (expit(eta) - y)


def most_likely(problem):
    found = minimize(lambda v: loss(problem.A, problem.problem.y, v), np.zeros(4), jac=True, options={"gtol": 1e-9})
    assert np.abs(found.jac).max() < 1e-8
    return found.x[:3]


def local_minima(problem, signs, support):
    """Of Q on a support inside an octant, from many starts, in the logarithms of the weights; the bias is free."""
    k, y = len(support), problem.problem.y
    A = np.column_stack([problem.A[:, support] * signs[support], np.ones(len(y))])

    def Q(x):
        w = np.exp(x[:k])
        value, slope = loss(A, y, np.append(w, x[k]))
        return value + k * np.log(w.sum()), np.append((slope[:k] + k / w.sum()) * w, slope[k])

    found = []
    for seed in range(8):
        start = np.append(np.random.default_rng(seed).uniform(-3, 2, k), 0.0)
        end = minimize(Q, start, jac=True, method="L-BFGS-B", bounds=[(-10, 4)] * k + [(None, None)])
        if end.x[:k].min() > -6:  # else a weight went to zero: no minimum on this support
            assert np.abs(end.jac).max() < 1e-3
            found.append(end.fun)
    return found


def lowest_in_octant(problem, signs):
    supports = [np.array(s) for k in (1, 2, 3) for s in combinations(range(3), k)]
    return min((q for support in supports for q in local_minima(problem, signs, support)), default=np.inf)


@both
def test_a_minimum_outside_the_octant(data):
    """A solution by all conditions, checked by hand, with a sign that the most likely weights do not have."""
    problem = made(data)
    likely = most_likely(problem)
    outcome = Reweighted()(problem.path(), quiet)
    w = problem.full(outcome.point)
    N, R = np.count_nonzero(w[:3]), np.abs(w[:3]).sum()
    assert outcome.status == "fixed-point"
    assert_allclose(outcome.point.lam, N / R, rtol=1e-8)
    assert problem.violation(N / R, w) < 1e-8
    assert np.any(w[:3] * likely < 0)
    assert np.abs(likely).min() > 0.4  # the signs are in no doubt

    own = np.flatnonzero(w != 0)
    eta = problem.A @ w
    H = (problem.A[:, own].T * (expit(eta) * expit(-eta))) @ problem.A[:, own]
    s = np.append(np.sign(w[own[:-1]]), 0.0)
    assert np.linalg.eigvalsh(H - N / R**2 * np.outer(s, s))[0] > 0.1  # Q curves upwards in every direction


@both
def test_it_is_the_only_stable_solution_of_the_path(data):
    problem = made(data)
    path = problem.path()
    point = Reweighted()(path, quiet).point
    brackets = turns(scan(problem, path.largest, 1e-4 * path.largest, 400))
    assert len(brackets) == 1
    assert inside(point.knob, brackets[0])


def test_minima_in_the_octant_are_higher():
    problem = made(HIGHER)
    found = Reweighted()(problem.path(), quiet).point
    octant = lowest_in_octant(problem, np.sign(most_likely(problem)))
    assert np.isfinite(octant)
    assert octant > found.criterion + 0.25
    own = problem.full(found)[:3]
    others = local_minima(problem, np.sign(own), np.flatnonzero(own))  # the same search finds the one outside
    assert_allclose(min(others), found.criterion, rtol=1e-7)


def test_there_may_be_none_in_the_octant():
    problem = made(NONE_THERE)
    found = Reweighted()(problem.path(), quiet).point
    assert lowest_in_octant(problem, np.sign(most_likely(problem))) == np.inf
    own = problem.full(found)[:3]
    assert_allclose(min(local_minima(problem, np.sign(own), np.flatnonzero(own))), found.criterion, rtol=1e-7)
