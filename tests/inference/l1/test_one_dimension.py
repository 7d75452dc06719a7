"""Solutions of lambda R = N that can be written down: one column, and columns that know nothing of each other."""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayes_sparse.inference.l1.fixed_points import all_solutions, first_solution
from tests.support import quiet

from .problems import case

pytestmark = pytest.mark.quick

N_ROWS = 16


def column(seed=0):
    """A column of mean zero and sd one."""
    x = np.random.default_rng(seed).standard_normal((N_ROWS, 1))
    return (x - x.mean()) / x.std()


def regression(b, sigma, seed=0):
    """Targets for which the slope of the log-likelihood at zero is b: known noise, ``w(lambda) = (b - lambda)+ / a``.

    With ``a = n / sigma^2``. Along the column the targets are ``b sigma^2 x / n``, and something else beside it.
    """
    x = column(seed)
    rest = np.random.default_rng(seed + 1).standard_normal(N_ROWS)
    rest -= rest.mean() + x[:, 0] * (x[:, 0] @ rest) / N_ROWS
    return case("normal", x, 3.0 + b * sigma**2 / N_ROWS * x[:, 0] + rest, sigma=sigma)


@pytest.mark.parametrize("b", [-30.0, -9.0, 9.0, 30.0])
def test_the_path_is_soft_thresholding(b):
    sigma = 1.3
    problem, a = regression(b, sigma), N_ROWS / sigma**2
    path = problem.path()
    assert_allclose(path.largest, abs(b), rtol=1e-10)
    for lam in abs(b) * np.array([1e-3, 0.1, 0.4, 0.9, 0.999]):
        point = path.cold(lam, 1e-10)
        assert_allclose(problem.full(point), [np.sign(b) * (abs(b) - lam) / a, 3.0], rtol=1e-9)
        assert_allclose(point.r, a / (abs(b) - lam) ** 2, rtol=1e-9)
        assert_allclose(point.newton if point.r < 1 else np.nan, newton(lam, abs(b), a), rtol=1e-7)
    assert path.cold(1.001 * abs(b), 1e-10).N == 0


def newton(lam, b, a):
    """Newton's step for ``a / (b - lambda) - lambda = 0``; its slope is ``a / (b - lambda)^2 - 1 = r - 1``."""
    r = a / (b - lam) ** 2
    return lam + (a / (b - lam) - lam) / (1 - r) if r < 1 else np.nan


@pytest.mark.parametrize("sigma", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("ratio", [1.0001, 1.1, 2.0, 50.0, 1e6])
@pytest.mark.parametrize("sign", [-1, 1])
def test_the_stable_root_of_a_quadratic(sign, ratio, sigma):
    """``lambda (b - lambda) / a = 1``: real roots for ``b^2 > 4 a``, the smaller one stable with r their ratio."""
    a = N_ROWS / sigma**2
    b = np.sqrt(4 * a * ratio)
    small, large = (b - np.sqrt(b**2 - 4 * a)) / 2, (b + np.sqrt(b**2 - 4 * a)) / 2
    problem = regression(sign * b, sigma)
    solution, _ = first_solution(problem.path(), quiet)
    point = solution.point
    assert solution.status == "fixed-point"
    assert point.N == 1
    # Near the double root the two are close, and the gap of 1e-9 that counts as closed is its square.
    close = 1e-8 if ratio > 1.01 else 1e-5
    assert_allclose(point.lam, small, rtol=close)
    assert_allclose(point.w[point.sign != 0], [sign * large / a], rtol=close)
    assert_allclose(point.r, small / large, rtol=10 * close)
    every, _ = all_solutions(problem.path(), 0.5 * small, quiet)
    assert_allclose([s.point.lam for s in every], [small], rtol=close)


@pytest.mark.parametrize("ratio", [0.01, 0.5, 0.99, 0.9999])
def test_no_real_root_no_weight(ratio):
    sigma = 0.7
    problem = regression(np.sqrt(4 * N_ROWS / sigma**2 * ratio), sigma)
    solution, _ = first_solution(problem.path(), quiet)
    assert solution.status == "null"
    assert solution.point.N == 0
    assert all_solutions(problem.path(), 1e-3 * problem.path().largest, quiet)[0] == []


@pytest.mark.parametrize("size", [0.9, 1.5, 4.0])
def test_unknown_noise_in_closed_form(size):
    """With ``u = c - knob``, c = x'y, S = y'y: ``(c - u) u = S - 2 c u / n + u^2 / n``, again a quadratic."""
    x = column(3)
    y = size * x[:, 0] + np.random.default_rng(4).standard_normal(N_ROWS)
    problem = case("normal", x, y - y.mean())
    c, S, n = float(x[:, 0] @ problem.problem.y), float(problem.problem.y @ problem.problem.y), N_ROWS
    roots = np.roots([1 + 1 / n, -c * (1 + 2 / n), S])
    assert np.isreal(roots).all()
    u = roots.max()
    solution, _ = first_solution(problem.path(), quiet)
    assert solution.status == "fixed-point"
    assert_allclose(problem.full(solution.point)[0], u / n, rtol=1e-8)
    assert_allclose(np.exp(2 * solution.point.theta), [(S - 2 * c * u / n + u**2 / n) / n], rtol=1e-8)
    assert_allclose(solution.point.lam, n / u, rtol=1e-8)
    assert solution.point.r < 1


def orthogonal(b, sigma=1.0):
    """ColumnStore of a Hadamard matrix: each goes its own way, ``w_i = (b_i - lambda)+ / n``."""
    H = np.array([[1.0]])
    while len(H) < N_ROWS:
        H = np.block([[H, H], [H, -H]])
    X = H[:, 1 : len(b) + 1]
    return case("normal", X, X @ (np.array(b) / N_ROWS), sigma=sigma)


def test_two_orthogonal_columns():
    """``lambda (b1 + b2 - 2 lambda) / a = 2`` as long as both are in."""
    b1, b2, a = 14.0, -11.0, N_ROWS
    problem = orthogonal([b1, b2])
    total = b1 - b2
    lam = (total / 2 - np.sqrt(total**2 / 4 - 4 * a)) / 2
    solution, _ = first_solution(problem.path(), quiet)
    assert solution.status == "fixed-point"
    assert solution.point.N == 2
    assert_allclose(solution.point.lam, lam, rtol=1e-8)
    assert_allclose(problem.full(solution.point), [(b1 - lam) / a, -(-b2 - lam) / a, 0.0], atol=1e-8)


def test_a_jump_in_closed_form():
    """The second column leaves at lambda = b2, where ``lambda R`` is between 1 and 2: too much for one, not for two."""
    b1, b2, a = 12.0, 3.0, N_ROWS
    assert 1 < b2 * (b1 - b2) / a < 2
    problem = orthogonal([b1, b2])
    lone = (b1 - np.sqrt(b1**2 - 4 * a)) / 2
    assert lone < b2  # where one column alone would have its solution, there are two
    both = np.roots([1, -(b1 + b2) / 2, a])
    assert not np.any(np.isreal(both) & (both.real < b2))  # and two have none
    solution, _ = first_solution(problem.path(), quiet)
    assert solution.status == "jump"
    assert_allclose(solution.point.lam, b2, rtol=1e-8)
    assert solution.point.N == 1
    assert_allclose(problem.full(solution.point), [(b1 - b2) / a, 0.0, 0.0], atol=1e-8)


@pytest.mark.parametrize("name", ["bernoulli", "poisson"])
def test_one_column_by_root_finding(name):
    """Slope along the column lambda, along the bias zero, and lambda w = 1: three equations in mpmath."""
    x = column(5)
    y = {"bernoulli": x[:, 0] + 0.9 * np.cos(np.arange(N_ROWS)) > 0, "poisson": np.floor(np.exp(0.8 * x[:, 0] + 0.4))}
    problem = case(name, x, y[name].astype(float))
    link = {"bernoulli": lambda e: 1 / (1 + mpmath.exp(-e)), "poisson": mpmath.exp}[name]

    def equations(w, bias):
        left = [t - link(w * v + bias) for t, v in zip(problem.problem.y, x[:, 0], strict=True)]
        return [sum(r * v for r, v in zip(left, x[:, 0], strict=True)) - 1 / w, sum(left)]

    root = mpmath.findroot(equations, (1.0, 0.0))
    solution, _ = first_solution(problem.path(), quiet)
    assert solution.status == "fixed-point"
    assert_allclose(problem.full(solution.point), [float(v) for v in root], rtol=1e-8)
    assert_allclose(solution.point.lam, 1 / float(root[0]), rtol=1e-8)
