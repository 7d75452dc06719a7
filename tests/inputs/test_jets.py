"""Derivatives node by node: every rule with forty digits, structure by other ways of writing, refusals."""

from itertools import permutations

import mpmath
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose
from pytensor.graph.traversal import toposort
from scipy.stats import norm

from bayes_sparse.inputs import compiled
from bayes_sparse.inputs.compiled import compile_several
from bayes_sparse.inputs.jets import _SLOPES, Unknown, jet_function

pytestmark = pytest.mark.quick

ETA = np.array([[0.3, 0.9, -0.4], [-0.6, 0.2, 0.5]])
POSITIVE = {"log", "sqrt", "gammaln", "psi", "reciprocal", "pow"}
RULES = {
    "exp": (pt.exp, mpmath.exp),
    "expm1": (pt.expm1, mpmath.expm1),
    "log": (pt.log, mpmath.log),
    "log1p": (lambda x: pt.log1p(0.3 * x), lambda x: mpmath.log1p(mpmath.mpf(0.3) * x)),
    "sqr": (pt.sqr, lambda x: x**2),
    "sqrt": (pt.sqrt, mpmath.sqrt),
    "reciprocal": (pt.reciprocal, lambda x: 1 / x),
    "abs": (pt.abs, abs),
    "cast": (lambda x: pt.cast(x, "float64") * x, lambda x: x * x),
    "sin": (pt.sin, mpmath.sin),
    "cos": (pt.cos, mpmath.cos),
    "tanh": (pt.tanh, mpmath.tanh),
    "sigmoid": (pt.sigmoid, lambda x: 1 / (1 + mpmath.exp(-x))),
    "softplus": (pt.softplus, lambda x: mpmath.log1p(mpmath.exp(x))),
    "log1mexp": (lambda x: pt.log1mexp(-pt.exp(x)), lambda x: mpmath.log(1 - mpmath.exp(-mpmath.exp(x)))),
    "gammaln": (pt.gammaln, mpmath.loggamma),
    "psi": (pt.psi, mpmath.digamma),
    "erf": (pt.erf, mpmath.erf),
    "erfc": (pt.erfc, mpmath.erfc),
    "erfcx": (pt.erfcx, lambda x: mpmath.exp(x * x) * mpmath.erfc(x)),
    "pow": (lambda x: x**2.7, lambda x: x ** mpmath.mpf(2.7)),
    "divided": (lambda x: pt.sin(x) / (2 + x), lambda x: mpmath.sin(x) / (2 + x)),
    "less": (lambda x: 1 - x * pt.exp(-x), lambda x: 1 - x * mpmath.exp(-x)),
    "chosen": (lambda x: pt.switch(pt.gt(x, 0), pt.exp(x), x**3), lambda x: mpmath.exp(x) if x > 0 else x**3),
    "largest": (lambda x: pt.maximum(pt.exp(x), 1 - x), lambda x: max(mpmath.exp(x), 1 - x)),
    "smallest": (lambda x: pt.minimum(pt.exp(x), 1 - x), lambda x: min(mpmath.exp(x), 1 - x)),
    "sign": (lambda x: pt.sign(x) * x**2, lambda x: mpmath.sign(x) * x**2),
}


def predictors():
    return [pt.dvector("a"), pt.dvector("b")]


def mixed(a, b):
    """An argument with all derivatives up to the third, mixed ones too."""
    return a + 2 * b + a * b * b


def assert_derivatives(ours, f, eta):
    """All of them, by mpmath at forty digits."""
    with mpmath.workdps(40):
        for i in range(eta.shape[1]):
            for order in np.ndindex(4, 4):
                if sum(order) <= 3:
                    truth = float(mpmath.diff(f, tuple(mpmath.mpf(v) for v in eta[:, i].tolist()), order))
                    for place in set(permutations((0,) * order[0] + (1,) * order[1])):
                        assert_allclose(ours[sum(order)][(*place, i)], truth, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", RULES)
def test_every_rule_with_forty_digits(name):
    ours, truth = RULES[name]
    etas = predictors()
    far = 4.0 if name in POSITIVE else 0.1
    found = jet_function(ours(mixed(*etas) + far), etas, [], 3)(ETA)
    assert [term.shape for term in found] == [(3,), (2, 3), (2, 2, 3), (2, 2, 2, 3)]
    assert_derivatives(found, lambda a, b: truth(mixed(a, b) + far), ETA)


def test_no_rule_is_left_out():
    """Each kind of node with a rule of its own is in one of the graphs above."""
    etas = predictors()
    seen = {
        type(node.op.scalar_op)
        for f, _ in RULES.values()
        for node in toposort([f(mixed(*etas))])
        if hasattr(node.op, "scalar_op")
    }
    left = {kind.__name__ for kind in _SLOPES if not any(issubclass(s, kind) for s in seen)}
    assert left <= {"Identity", "Cast"}  # PyTensor drops those that do nothing


def test_an_exponent_may_move_too():
    etas = predictors()
    assert_derivatives(jet_function((2 + etas[0]) ** etas[1], etas, [], 3)(ETA), lambda a, b: (2 + a) ** b, ETA)


@pytest.mark.parametrize("derivatives", [0, 1, 2])
def test_fewer_derivatives_are_the_first_ones(derivatives):
    [a, b], y = predictors(), pt.dvector("y")
    density = y * a - pt.exp(a) * pt.sigmoid(b)
    values = np.array([1.0, 0.0, 2.0])
    few = jet_function(density, [a, b], [y], derivatives)(ETA, values)
    every = jet_function(density, [a, b], [y], 3)(ETA, values)
    assert len(few) == derivatives + 1
    for one, other in zip(few, every, strict=False):
        assert_allclose(one, other)


def test_a_mixture_by_axes_is_the_one_written_out():
    """Stacked, shifted by the largest, summed: the same as two terms."""
    [a, b], w = predictors(), pt.dscalar("w")
    parts = pt.stack([a * b, pt.log(w) + pt.sin(b)], axis=1)
    top = parts.max(axis=1, keepdims=True)
    stacked = pt.log(pt.exp(parts - top).sum(axis=1)) + top[:, 0]
    plain = pt.log(pt.exp(a * b) + w * pt.exp(pt.sin(b)))
    found, truth = (jet_function(density, [a, b], [w], 3)(ETA, np.array(0.7)) for density in (stacked, plain))
    for one, other in zip(found, truth, strict=True):
        assert_allclose(one, other, rtol=1e-12, atol=1e-13)


def test_what_is_not_one_per_row_is_spread():
    """A scalar and a vector of one entry beside the predictors."""
    [a, b], s, t = predictors(), pt.dscalar("s"), pt.tensor("t", shape=(1,), dtype="float64")
    value, first, *_ = jet_function(s * a + t * b, [a, b], [s, t], 3)(ETA, np.array(2.0), np.array([3.0]))
    assert_allclose(value, 2 * ETA[0] + 3 * ETA[1])
    assert_allclose(first, [[2.0] * 3, [3.0] * 3])


def test_a_branch_not_taken_spoils_nothing():
    [a, b] = predictors()
    density = pt.switch(pt.gt(a, 0), pt.log(a) * b, a * b)
    for term in jet_function(density, [a, b], [], 3)(np.array([[-1.0, 2.0], [1.0, 1.0]])):
        assert np.isfinite(term).all()


def test_a_failed_check_raises_nothing():
    [a, b], y = predictors(), pt.dvector("y")
    density = pm.logp(pm.Normal.dist(a, b), y)
    value, *_ = jet_function(density, [a, b], [y], 3)(np.array([[0.0, 0.0], [1.0, -1.0]]), np.zeros(2))
    assert_allclose(value[0], -0.5 * np.log(2 * np.pi))


def test_a_shape_that_was_said_is_no_number():
    """As of the scales of a mixture: of their shape PyTensor says the columns alone."""
    a, y, scales = pt.dvector("a"), pt.dvector("y"), pt.dmatrix("scales")
    density = pm.logp(pm.Normal.dist(a, pt.specify_shape(scales, (None, 2)).sum(axis=1)), y)
    eta, seen, sd = np.array([0.0, 1.0]), np.array([0.3, -2.0]), np.array([[0.5, 3.0], [1.0, 0.2]])
    value, *_ = jet_function(density, [a], [y, scales], 3)(eta[None], seen, sd)
    assert_allclose(value, norm.logpdf(seen, eta, sd.sum(axis=1)), rtol=1e-12)


def test_what_has_no_rule_is_left_to_pytensor(monkeypatch):
    """An angle of two predictors: differentiated by PyTensor instead, and right."""
    monkeypatch.setattr(compiled, "_spread_cache", {})

    def build():
        [a, b] = predictors()
        return pt.arctan2(a, 2 + b), [a, b], []

    [a, b] = predictors()
    with pytest.raises(Unknown):
        jet_function(pt.arctan2(a, 2 + b), [a, b], [], 3)
    found = compile_several("angle", build)(ETA)
    assert [term.shape for term in found] == [(3,), (2, 3), (2, 2, 3), (2, 2, 2, 3)]
    assert_derivatives(found, lambda a, b: mpmath.atan2(a, 2 + b), ETA)


def distributions():
    yield "zero-inflated", lambda a, b: pm.ZeroInflatedPoisson.dist(psi=pt.sigmoid(b), mu=pt.exp(a)), [0.0, 3.0, 0.0]
    yield "negative binomial", lambda a, b: pm.NegativeBinomial.dist(mu=pt.exp(a), alpha=pt.exp(b)), [0.0, 2.0, 5.0]
    yield "beta", lambda a, b: pm.Beta.dist(mu=pt.sigmoid(a), nu=pt.exp(b)), [0.1, 0.5, 0.8]
    yield "gamma", lambda a, b: pm.Gamma.dist(mu=pt.exp(a), sigma=pt.exp(b)), [0.1, 1.5, 3.0]
    yield "Student's t", lambda a, b: pm.StudentT.dist(mu=a, sigma=pt.exp(b), nu=4), [0.1, -1.5, 3.0]
    yield "Weibull", lambda a, b: pm.Weibull.dist(alpha=pt.exp(a), beta=pt.exp(b)), [0.1, 1.5, 3.0]


@pytest.mark.parametrize(("make", "y"), [case[1:] for case in distributions()], ids=[c[0] for c in distributions()])
def test_pymcs_own_densities_by_differences(make, y):
    """Without help from PyTensor, and each derivative by differences of the one before."""
    etas, target = predictors(), pt.dvector("y")
    variable = make(*etas)
    density = compiled._stabilised(pm.logp(variable, pt.cast(target, variable.dtype)))
    f = jet_function(density, etas, [target], 3)
    terms, step = f(ETA, np.array(y)), 1e-3
    for k in range(2):
        move = np.zeros((2, 1))
        move[k] = step
        near = [u - v for u, v in zip(f(ETA + move, np.array(y)), f(ETA - move, np.array(y)), strict=True)]
        far = [u - v for u, v in zip(f(ETA + 2 * move, np.array(y)), f(ETA - 2 * move, np.array(y)), strict=True)]
        for order in range(3):
            # Truncation 1e-12 of two derivatives more, rounding 1e-15 over 1e-3.
            slope = (8 * near[order] - far[order]) / (12 * step)
            assert_allclose(terms[order + 1][..., k, :], slope, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("x", [3.0, 20.0, 27.9, 28.1, 200.0, 1e5])
def test_the_scaled_error_function_keeps_its_digits_far_out(x):
    """Its third derivative is six over the fourth power, a difference of numbers near one."""
    eta = pt.dvector("eta")
    found = jet_function(pt.erfcx(eta), [eta], [], 3)(np.array([[x]]))
    with mpmath.workdps(80):
        for order, term in enumerate(found):
            truth = float(mpmath.diff(lambda v: mpmath.exp(v * v) * mpmath.erfc(v), x, order))
            # Near the end of the difference x^6 rounding errors are left of it.
            assert_allclose(term.item(), truth, rtol=1e-15 * max(10, min(x, 28.0) ** (2 * order)))


def test_a_bound_at_infinity_is_no_bound():
    """A constant or a row's own: the interval up to it is a half-line."""
    eta, upper = pt.dvector("eta"), pt.dvector("upper")
    at = np.array([[-3.0, 0.5, 4.0]])

    def within(high):
        return pt.exp(pt.sqr(eta) - pt.sqr(high - eta)) * pt.erfcx(high - eta) + pt.erf(high - eta) + pt.sin(eta)

    truth = jet_function(1 + pt.sin(eta), [eta], [], 3)(at)
    constant = jet_function(within(pt.constant(np.array([np.inf]))), [eta], [], 3)(at)
    by_row = jet_function(within(upper), [eta], [upper], 3)(at, np.full(3, np.inf))
    for one, other, exact in zip(constant, by_row, truth, strict=True):
        assert_allclose(one, exact, atol=1e-15)
        assert_allclose(other, exact, atol=1e-15)
