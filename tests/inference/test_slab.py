"""A slab under evidence methods: a floor under the precisions, against closed forms, differences and scipy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit
from scipy.stats import multivariate_normal

import bayes_sparse as bs
from bayes_sparse.inference.approximations import approximate
from bayes_sparse.inference.evidence.ascent import Ascent
from bayes_sparse.inference.evidence.exchanges import addition_gain
from bayes_sparse.inference.evidence.state import Objective
from bayes_sparse.inference.priors import Gaussian
from bayes_sparse.inputs.likelihoods import bernoulli, compiled
from bayes_sparse.methods import EM, MacKay, Sequential
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.problem import Problem

pytestmark = pytest.mark.quick

BIAS = 0.05


def silent(iteration, objective, active):
    pass


def problem_of(kind, n=60, M=5, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, M))
    eta = 0.3 + 2.5 * X[:, 0] - 0.6 * X[:, 1]
    y = eta + rng.standard_normal(n) if kind == "normal" else (rng.random(n) < expit(eta)).astype(float)
    return Problem(
        design=Design(X, extra=np.ones((n, 1))),
        y=y,
        free=np.append(np.ones(M, dtype=bool), False),
        fixed_precision=np.array([BIAS]),
        pointwise=lambda eta, theta: tuple(compiled(bernoulli())(eta, y, *theta)),
        offset=np.zeros(n),
        theta=np.log([1.3]) if kind == "normal" else np.empty(0),
        theta_bounds=np.array([[-8.0, 5.0]]) if kind == "normal" else np.empty((0, 2)),
        normal=kind == "normal",
    )


def evidence(problem, alpha, theta):
    """Without any code of the project's: the density of the targets, or Laplace's formula at a mode found here."""
    X = problem.design.columns(np.arange(problem.design.width))
    alpha = np.append(alpha, BIAS)
    if problem.normal:
        covariance = np.exp(2 * theta[0]) * np.eye(len(X)) + (X / alpha) @ X.T
        return multivariate_normal.logpdf(problem.y, np.zeros(len(X)), covariance)
    w = np.zeros(len(alpha))
    for _ in range(60):
        p = expit(X @ w)
        P = X.T @ ((p * (1 - p))[:, None] * X) + np.diag(alpha)
        w = w + np.linalg.solve(P, X.T @ (problem.y - p) - alpha * w)
    eta = X @ w
    height = problem.y @ eta - np.logaddexp(0, eta).sum() - 0.5 * alpha @ w**2
    return height + 0.5 * np.log(alpha).sum() - 0.5 * np.linalg.slogdet(P)[1]


def best_by_scipy(problem, floor, a=0.0, b=0.0):
    """The greatest objective with every precision in [floor, 1e6], from several starts."""
    M, low = problem.design.M, np.log(floor)

    def negative(x):
        alpha = np.exp(x[:M])
        prior = np.sum(a * np.log(np.maximum(alpha - floor, 1e-300)) - b * (alpha - floor)) if a or b else 0.0
        return -evidence(problem, alpha, x[M:]) - prior

    bounds = [(low + (1e-9 if a else 0.0), 14.0)] * M + [(-3.0, 5.0)] * problem.theta.size
    starts = [np.append(np.full(M, low + up), problem.theta) for up in (0.3, 2.0, 4.0)]
    ends = [minimize(negative, start, bounds=bounds, method="L-BFGS-B", options={"ftol": 1e-13}) for start in starts]
    return min(ends, key=lambda end: end.fun)


@pytest.mark.parametrize("kind", ["normal", "bernoulli"])
@pytest.mark.parametrize("slab", [0.5, 1.2, 30.0])
def test_the_best_precisions_above_a_floor_are_those_of_scipy(kind, slab):
    problem = problem_of(kind)
    floor = slab**-2.0
    by_scipy = best_by_scipy(problem, floor)
    approximation = approximate(problem, Objective(floor=floor))
    state = Sequential()(problem, approximation, silent).state
    assert (state.alpha[state.free] >= floor).all()
    assert_allclose(state.objective, -by_scipy.fun, atol=3e-5)  # scipy ends at precisions of 1e6, not infinite ones
    kept = state.index[state.free]
    assert_allclose(np.log(state.alpha[state.free]), by_scipy.x[kept], atol=2e-2)
    if slab < 1:
        assert (state.alpha[state.free] == floor).any()


@pytest.mark.slow
@pytest.mark.parametrize("method", [MacKay(tolerance=1e-12), EM(tolerance=1e-12, max_iterations=20000)])
@pytest.mark.parametrize("slab", [0.5, 1.2])
def test_fixed_points_end_at_the_same_place(method, slab):
    problem = problem_of("normal")
    objective = Objective(floor=slab**-2.0)
    outcome = method(problem, approximate(problem, objective), silent)
    assert np.all(np.diff(outcome.history) > -1e-9)
    assert_allclose(outcome.state.objective, -best_by_scipy(problem, slab**-2.0).fun, atol=1e-3)


@pytest.mark.parametrize("method", [MacKay(tolerance=1e-13), EM(tolerance=1e-13, max_iterations=20000)])
@pytest.mark.parametrize("smoothness", [0.0, 0.8])
def test_fixed_points_under_a_proper_prior(method, smoothness):
    """They end where the slope over the precisions is zero; a = 1, b = 0.1 above the floor of a slab of 0.7."""
    problem, objective = problem_of("normal"), Objective(smoothness, 1.0, 0.1, floor=0.7**-2.0)
    approximation = approximate(problem, objective)
    state = method(problem, approximation, silent).state
    assert len(state.index) == problem.design.width
    assert_allclose(approximation.slope(state), 0.0, atol=1e-4)
    if not smoothness:
        assert_allclose(state.objective, -best_by_scipy(problem, 0.7**-2.0, 1.0, 0.1).fun, atol=1e-6)


@pytest.mark.parametrize("hyper", [(0.0, 0.0), (0.5, 0.3)])
@pytest.mark.parametrize("smoothness", [0.0, 1.3])
@pytest.mark.parametrize("kind", ["normal", "bernoulli"])
def test_slope_and_curvature_are_those_of_the_objective(kind, smoothness, hyper):
    problem = problem_of(kind)
    approximation = approximate(problem, Objective(smoothness, *hyper, floor=0.4))
    index, k = np.arange(6), 5
    alpha = 0.4 + np.array([0.01, 0.1, 1.0, 10.0, 100.0])

    def at(x):
        return approximation.at(index, np.append(np.exp(x), BIAS), problem.theta)

    x, h = np.log(alpha), 1e-3 if kind == "bernoulli" else 1e-4
    steps = h * np.eye(k)
    numeric = [(8 * (f(x + s) - f(x - s)) - (f(x + 2 * s) - f(x - 2 * s))) / (12 * h)
               for f in [lambda v: at(v).objective] for s in steps]  # fmt: skip
    close = 1e-6 if kind == "normal" else 2e-3  # the mode is found to a few 1e-6, differences are over 1e-3
    assert_allclose(approximation.slope(at(x))[:k], numeric, rtol=close, atol=close)
    # Of the curvature, the hyper-prior's part: the rest does not know of the floor.
    flat = approximation.with_objective(Objective(smoothness))
    part = np.diag(approximation.curvature(at(x)) - flat.curvature(at(x)))[:k]
    a, b = hyper
    slope = lambda v: a * np.exp(v) / (np.exp(v) - 0.4) - b * np.exp(v)  # noqa: E731
    assert_allclose(part, (slope(x + 1e-6) - slope(x - 1e-6)) / 2e-6, rtol=1e-6, atol=1e-7)


def test_one_column_alone_has_the_closed_form():
    """With s and q of a column: its own best precision, or the floor; the gain there by one-dimensional search."""
    S, Q = np.array([4.0, 4.0, 4.0, 2.0]), np.array([3.0, 5.0, 1.0, 30.0])
    for smoothness in (0.0, 0.5):
        for floor in (1e-6, 1.0, 5.0):
            gain, alpha = addition_gain(S, Q, smoothness, floor)
            for j in range(4):

                def worth(x, s=S[j], q=Q[j], c=smoothness):
                    alpha = np.exp(x)
                    return 0.5 * (np.log(alpha / (alpha + s)) + (q**2 - 2 * c * s) / (alpha + s))

                best = minimize_scalar(lambda x: -worth(x), bounds=(np.log(floor), 40.0), method="bounded",
                                       options={"xatol": 1e-10})  # fmt: skip
                assert_allclose(gain[j], max(-best.fun, 0.0), atol=1e-7)
                if gain[j] > 0:
                    assert alpha[j] >= floor
                    assert_allclose(worth(np.log(alpha[j])), gain[j], rtol=1e-12)
                else:
                    assert alpha[j] == np.inf


def test_a_direction_within_a_slab():
    h, u = np.array([2.0, 2.0, 0.1, 5.0]), np.array([3.0, 0.8, 1.0, 1.0])
    best = Gaussian(0.5).best(h, u)
    assert_allclose(best, [0.5, 2.0 / (2 * 0.64 - 1), np.inf, 5.0 / 4])
    assert_array_equal(Gaussian().best(h, u), Gaussian(1e-300).best(h, u))
    there = Gaussian().log_integral(h[:1], u[:1], np.array([0.5]))
    assert there >= Gaussian().log_integral(h[:1], u[:1], np.array([0.6]))


def test_a_climb_stays_above_the_floor_and_leaves_it_again():
    problem = problem_of("normal")
    approximation = approximate(problem, Objective(floor=1.0))
    index = np.arange(6)
    at_floor = approximation.at(index, np.append(np.ones(5), BIAS), problem.theta)
    state, done = Ascent(approximation, problem.theta_bounds, 1e-9, prune=False)(at_floor, 200)
    assert done
    assert state.alpha[0] == 1.0
    assert (state.alpha[2:5] > 1.0).all()
    slope = approximation.slope(state)
    assert slope[0] < 0
    assert_allclose(slope[:5][state.alpha[:5] > 1.0], 0.0, atol=1e-2)


RNG = np.random.default_rng(5)
X = RNG.standard_normal((70, 4))
Y = X @ [2.0, -0.7, 0.0, 0.3] + RNG.standard_normal(70)
TARGETS = {
    "normal": Y,
    "bernoulli": (RNG.logistic(size=70) < Y).astype(int),
    "categorical": np.digitize(Y + 2 * RNG.logistic(size=70), [-1.0, 1.0]),
}


@pytest.mark.parametrize("likelihood", TARGETS)
@pytest.mark.parametrize(
    ("method", "hyper"),
    [("sequential", None), ("mackay", None), ("mackay", (1.0, 0.1)), ("em", (1.0, 0.1)), ("revm", None),
     ("one_vs_rest", None)],
)  # fmt: skip
def test_a_wide_slab_is_none_and_a_narrow_one_holds_the_weights(method, hyper, likelihood):
    if method == "one_vs_rest" and likelihood != "categorical":
        return
    given = {"method": method, "likelihood": likelihood, "draws": 0, "progressbar": False}
    given |= {} if hyper is None else {"hyper": hyper}
    none, wide, narrow = (
        bs.fit("ard_gaussian", (X, TARGETS[likelihood]), slab=slab, **given)["evidence"] for slab in (None, 1e7, 0.2)
    )
    assert_allclose(wide["mean"], none["mean"], rtol=1e-8, atol=1e-8)
    assert_allclose(wide["log_evidence"], none["log_evidence"], rtol=1e-8)
    assert "slab" not in none.attrs
    assert narrow.attrs["slab"] == 0.2
    assert narrow["log_evidence"] < none["log_evidence"] or method == "revm"  # its evidence is of the quadratic
    assert np.abs(narrow["mean"]).sum() < np.abs(none["mean"]).sum()
    if method != "revm":  # the precision in force, in the user's units
        unit = Y.std() if likelihood == "normal" else 1.0
        least = (0.2 * unit) ** -2.0 * X.std(axis=0) ** 2
        least = least if likelihood != "categorical" else np.tile(least, 3)
        alpha = narrow["alpha"].to_numpy()
        assert (alpha >= least * (1 - 1e-9)).all()
        assert hyper is not None or np.isclose(alpha, least, rtol=1e-9).any()


def test_which_slab_is_in_force():
    """Classes under the flat hyper-prior have one, a wider one with kernels; nothing else has one unless asked."""

    def slab(model, target, **settings):
        tree = bs.fit(model, (X, target), draws=0, progressbar=False, **settings)
        return tree["evidence"].attrs.get("slab")

    two, several = TARGETS["bernoulli"], TARGETS["categorical"]
    assert slab("ard_gaussian", Y) is None
    assert slab("ard_gaussian", Y, basis=bs.basis.rbf(2.0)) is None
    assert slab("ard_gaussian", two) == 5.0
    assert slab("ard_gaussian", two, slab=None) is None
    assert slab("ard_gaussian", two, basis=bs.basis.rbf(2.0)) == 10.0
    assert slab("ard_gaussian", two, hyper=(1.0, 0.1)) is None
    assert slab("ard_gaussian", two, hyper=(1.0, 0.1), slab=3.0) == 3.0
    assert slab("ard_gaussian", two, method="revm") is None
    assert slab("student_multinomial", several) is None
    assert slab("student_multinomial", several, hyper=(0, 0)) == 5.0


@pytest.mark.filterwarnings("ignore:The terms kept separate")
def test_separable_classes_are_held():
    """Without a slab the weight of a column that separates them grows as far as it is let."""
    x = np.linspace(-2, 2, 40)[:, None]
    free, held = (
        bs.fit("ard_gaussian", (x, (x[:, 0] > 0).astype(int)), draws=0, progressbar=False, slab=slab)["evidence"]
        for slab in (None, 2.0)
    )
    assert float(np.abs(free["mean"][0])) > 5 * float(np.abs(held["mean"][0]))


def test_an_exchange_that_ends_at_the_floor_is_given_up_in_silence():
    data = bs.datasets.load("wdbc", download=False)  # warnings are errors, of numpy too
    half = data.drop(data.sample(frac=0.3, random_state=0).index)
    tree = bs.fit("ard_gaussian", half, target="target", method="mackay", hyper=(1, 0.1), slab=2.5, draws=0)
    assert tree["evidence"].attrs["status"] == "converged"


def test_what_has_no_slab_says_so():
    for method, settings in (("full_matrix", {}), ("revm", {"prior": "laplace"})):
        with pytest.raises(ValueError, match=r"`slab` bounds the normal prior of each direction.*leave it out"):
            bs.fit("ard_gaussian", (X, Y), method=method, slab=1.0, draws=0, progressbar=False, **settings)
    with pytest.raises(ValueError, match="`slab`"):
        bs.fit("ard_gaussian", (X, Y), slab=-1.0)
