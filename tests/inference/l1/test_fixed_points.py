"""Solutions of lambda R = N on the path: minima of Q that they are, jumps, none at all, and whether any is missed."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayes_sparse.inference.l1.fixed_points import all_solutions, first_solution
from tests.support import quiet

from .problems import case, draw
from .scan import inside, scan, turns

KINDS = ["bernoulli", "poisson", "normal", "known noise"]
WEAK = 1e-3  # of the largest knob: how far down these tests look
EXPECTED = {
    "bernoulli": {"jump", "null"},
    "poisson": {"fixed-point", "jump"},
    "normal": {"fixed-point", "jump"},
    "known noise": {"fixed-point", "jump"},
}
SEEDS = {
    "bernoulli": (0, 1, 5, 7, 10, 12, 13, 16, 18, 19),
    "poisson": (0, 2, 4, 8),
    "normal": (0, 2, 3, 4, 8, 13),
    "known noise": (0, 1, 6, 9),
}
NOT_FALLING = [
    ("bernoulli", 1280, {"n": 39, "M": 19, "effect": 0.8, "alike": 0.95}),
    ("normal", 1190, {"n": 36, "M": 11, "effect": 0.4, "alike": 0.95}),
]
every = pytest.mark.parametrize("kind", KINDS)


def made(kind, seed, n=40, M=12, effect=0.7, **more):
    name = "normal" if kind == "known noise" else kind
    return case(name, *draw(name, n=n, M=M, seed=seed, effect=effect, **more), sigma=1.0 if name != kind else None)


def Q(problem, w, theta):
    own = w[problem.problem.free]
    return -problem.height(w, theta) + np.count_nonzero(own) * np.log(np.abs(own).sum())


def check_minimum(problem, point, rng):
    """A fixed point: the equation, the conditions over all columns, and higher Q all around on the support."""
    w = problem.full(point)
    N, R = np.count_nonzero(w[problem.problem.free]), np.abs(w[problem.problem.free]).sum()
    assert_allclose(point.lam * R, N, rtol=1e-8)
    assert problem.violation(point.lam, w, point.theta) < 1e-8
    assert point.r < 1
    here, scale = Q(problem, w, point.theta), 1 / np.sqrt(point.precision.diagonal())
    k = len(point.index)
    signed = point.sign != 0
    nearest = np.abs(point.w[signed]).min()
    for _ in range(40):
        step = rng.standard_normal(len(scale)) * scale * 10 ** rng.uniform(-3, -2)
        step *= min(1.0, 0.5 * nearest / np.abs(step[:k][signed]).max())  # no further than half way to zero
        moved = w.copy()
        moved[point.index] += step[:k]
        assert Q(problem, moved, point.theta + step[k:]) > here


def check_jump(problem, point, path):
    """Just below it lambda should grow, just above it shrink, and neither by little: there is no solution between."""
    below, above = (path.cold(point.knob * (1 + s * 1e-7), 1e-10) for s in (-1, 1))
    gaps = []
    for end in (below, above):
        w = problem.full(end)
        assert problem.violation(end.lam, w, end.theta) < 1e-8
        gaps.append(np.log(np.count_nonzero(w[:-1]) / (end.lam * np.abs(w[:-1]).sum())))
    assert gaps[0] > 1e-5
    assert gaps[1] < -1e-5
    assert below.N > above.N == point.N
    assert problem.violation(point.lam, problem.full(point), point.theta) < 1e-8


def check(problem, solution, path, rng):
    if solution.status == "fixed-point":
        check_minimum(problem, solution.point, rng)
    if solution.status == "jump":
        check_jump(problem, solution.point, path)


@every
def test_what_is_found_is_what_it_is_called(kind):
    """Over seeds that give most endings."""
    rng, seen = np.random.default_rng(0), set()
    for seed in range(12):
        problem = made(kind, seed, effect=(0.3, 0.7)[seed % 2])
        path = problem.path()
        solution, visited = first_solution(path, quiet)
        check(problem, solution, path, rng)
        assert solution.point.N == 0 if solution.status == "null" else solution.point.knob in {v.knob for v in visited}
        seen.add(solution.status)
    assert seen >= EXPECTED[kind]


def counts(seed):
    return case("negative_binomial", *draw("negative_binomial", n=60, M=5, seed=seed))


def test_negative_binomial_counts():
    """Weights and dispersion together."""
    rng, found = np.random.default_rng(1), []
    for seed in (0, 2, 3, 5, 8):
        problem = counts(seed)
        path = problem.path()
        solution, _ = first_solution(path, quiet)
        check(problem, solution, path, rng)
        found.append(solution.status)
    assert set(found) >= {"fixed-point", "jump"}


@pytest.mark.parametrize("seed", [1, 11])
def test_an_exact_solution_is_no_jump(seed):
    """N is the same on both sides."""
    problem = counts(seed)
    solution, _ = first_solution(problem.path(), quiet)
    below, above = (problem.path().at(solution.point.knob * (1 + h), solution.point, 1e-10) for h in (-1e-6, 1e-6))
    assert below.N == above.N
    assert solution.status == "fixed-point"


@every
def test_null_means_that_there_is_no_turn(kind):
    """Seen by a scan of two hundred points over four decades."""
    nulls = 0
    for seed in range(14):
        problem = made(kind, seed, n=24, M=6, effect=0.2, noise=2.0)
        path = problem.path()
        if nulls < 4 and first_solution(path, quiet)[0].status == "null":
            assert turns(scan(problem, path.largest, 0.1 * WEAK * path.largest, 200)) == []
            nulls += 1
    assert nulls >= 2


def check_turns(problem, path, solutions):
    """Every turn that a scan of two hundred points sees is among the solutions."""
    knobs = [solution.point.knob for solution in solutions]
    brackets = turns(scan(problem, path.largest, WEAK * path.largest, 200))
    assert brackets
    for bracket in brackets:
        assert any(inside(knob, bracket) for knob in knobs)


@every
def test_all_solutions_are_all_turns(kind):
    """Each is what it is called, they come weakest penalty first, and no turn is left out."""
    rng, several = np.random.default_rng(2), 0
    for seed in SEEDS[kind]:
        problem = made(kind, seed)
        path = problem.path()
        solutions, _ = all_solutions(path, WEAK * path.largest, quiet)
        knobs = [solution.point.knob for solution in solutions]
        assert knobs == sorted(knobs)
        for solution in solutions:
            check(problem, solution, path, rng)
        check_turns(problem, path, solutions)
        several += len(knobs) > 1
        first, _ = first_solution(path, quiet)
        assert min(abs(first.point.knob / knob - 1) for knob in knobs) < 1e-6
    assert several >= {"bernoulli": 3, "normal": 4}.get(kind, 0)


@pytest.mark.parametrize("seed", [4, 9, 17, 11, 15])
def test_turns_that_are_easily_missed(seed):
    """Near the top, where one column alone is in; and two of them side by side."""
    problem = made("bernoulli", seed)
    path = problem.path()
    check_turns(problem, path, all_solutions(path, WEAK * path.largest, quiet)[0])


@pytest.mark.xfail(strict=True, reason="N is taken only to fall on the way up")
@pytest.mark.parametrize(("kind", "seed", "size"), NOT_FALLING)
def test_weights_that_leave_on_the_way_down(kind, seed, size):
    """Of columns that are alike: N is larger above than below."""
    problem = made(kind, seed, **size)
    path = problem.path()
    check_turns(problem, path, all_solutions(path, WEAK * path.largest, quiet)[0])


def test_a_narrow_turn_is_not_stepped_over():
    """Lambda should grow only within half a percent below a jump, and shrink on either side."""
    problem = made("normal", 74, n=19, M=22, effect=0.7)
    path = problem.path()
    brackets = turns(scan(problem, path.largest, 0.1 * WEAK * path.largest, 200))
    solution, _ = first_solution(path, quiet)
    assert solution.status == "jump"
    assert any(inside(solution.point.knob, bracket) for bracket in brackets)


def test_two_exact_solutions():
    """Two strict local minima of Q, of five weights and of six; the one from the weak side is found first."""
    problem = made("known noise", 130, n=30, M=6, effect=0.8, alike=0.6)
    path = problem.path()
    solutions, _ = all_solutions(path, WEAK * path.largest, quiet)
    assert [(s.status, s.point.N) for s in solutions] == [("fixed-point", 5), ("fixed-point", 6)]
    for solution in solutions:
        check_minimum(problem, solution.point, np.random.default_rng(3))
    first, _ = first_solution(path, quiet)
    assert_allclose(first.point.knob, solutions[0].point.knob, rtol=1e-7)
    assert len(turns(scan(problem, path.largest, WEAK * path.largest, 200))) == 2


def test_wherever_it_is_the_update_is_drawn_to_it():
    """``lambda <- N/R`` from a little away comes back, at the rate r."""
    problem = made("normal", 2)
    path = problem.path()
    point = first_solution(path, quiet)[0].point
    lam, lams = point.lam * (1 + 1e-4), []
    for _ in range(4):
        near = path.at_lambda(lam)
        lam = near.N / near.R
        lams.append(lam / point.lam - 1)
    assert_allclose(lams, 1e-4 * point.r ** np.arange(1, 5), rtol=2e-3)


def test_a_solution_far_below_the_start():
    """Strong effects and little noise: lambda is small, and the search goes down to it."""
    X, y = draw("normal", n=60, M=5, seed=4, noise=0.01, active=5)
    problem = case("normal", X, y, sigma=0.01)
    path = problem.path()
    solution, _ = first_solution(path, quiet)
    assert solution.point.knob < 1e-3 * path.largest
    assert solution.status == "fixed-point"
    check_minimum(problem, solution.point, np.random.default_rng(4))


def test_nothing_to_explain():
    """No slope anywhere: the path has no points."""
    X = np.repeat(np.eye(4) - 0.25, 2, axis=0)
    problem = case("bernoulli", X, np.tile([0.0, 1.0], 4))
    solution, visited = first_solution(problem.path(), quiet)
    assert solution.status == "null"
    assert visited == []
    assert all_solutions(problem.path(), 1e-3, quiet)[0] == []


def test_progress_is_reported():
    problem, seen = made("bernoulli", 1), []
    _, visited = first_solution(problem.path(), lambda *now: seen.append(now))
    assert [step for step, _, _ in seen] == list(range(1, len(visited) + 1))
    assert [terms for _, _, terms in seen] == [point.N for point in visited]
    assert np.isfinite([height for _, height, _ in seen]).all()
