"""Laws of a softmax under a Gaussian prior: two classes are a logistic regression; names and constants mean nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import expit, softmax

from bayes_sparse.inference.approximations import LaplaceApproximation
from bayes_sparse.inference.evidence.state import Objective
from bayes_sparse.methods.mackay import MacKay
from bayes_sparse.methods.sequential import Sequential
from bayes_sparse.problem.classes import ClassDesign, ClassProblem
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.gaussian import Woodbury
from bayes_sparse.problem.problem import Problem
from tests.support import quiet

from .problems import NONE, case, make

few = settings(max_examples=6)
seeds = st.integers(0, 2**32 - 1)
TIGHT = 1e12  # a precision that leaves a weight no room


def logistic(X, ones, weights, bias):
    """The same targets as a `Problem` with one predictor, its likelihood written out."""
    n, M = X.shape

    def pointwise(eta, theta):
        p = expit(eta)
        b = p * expit(-eta)
        return ones * eta - np.logaddexp(0, eta), ones - p, -b, -b * (expit(-eta) - p)

    return Problem(
        design=Design(X, extra=np.ones((n, 1))),
        y=ones,
        free=np.append(np.ones(M, dtype=bool), False),
        fixed_precision=np.array([bias]),
        pointwise=pointwise,
        offset=np.zeros(n),
        weights=weights,
    )


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize(("n", "M"), [(40, 4), (12, 30)], ids=["tall", "wide"])
@few
@given(seed=seeds)
def test_two_classes_are_a_logistic_regression(n, M, weighted, seed):
    """``w1 - w2`` has variance ``1 / alpha_1 + 1 / alpha_2``; what is independent of it the data do not move."""
    c = make("shared", n=n, M=M, C=2, weighted=weighted, seed=seed)
    alpha = 10 ** np.random.default_rng(seed).uniform(-0.5, 1.5, (2, M))
    bias = np.array([0.1, 0.4])
    problem = ClassProblem(c.problem.design, c.problem.y, bias, c.problem.weights)
    two = LaplaceApproximation(problem, Objective()).at(np.arange(2 * M + 2), np.append(alpha, bias), NONE)
    combined = 1 / np.sum(1 / alpha, axis=0)
    other = logistic(c.J[:, 0, :M], (c.problem.y == 0) * 1.0, c.problem.weights, 1 / np.sum(1 / bias))
    one = LaplaceApproximation(other, Objective()).at(np.arange(M + 1), np.append(combined, np.nan), NONE)
    assert_allclose(two.log_evidence, one.log_evidence, rtol=1e-9, atol=1e-9)
    assert_allclose(two.log_likelihood, one.log_likelihood, rtol=1e-6)
    W, b = two.mean[: 2 * M].reshape(2, M), two.mean[2 * M :]
    # Both modes are found to a few 1e-6 of a posterior sd.
    assert_allclose(W[0] - W[1], one.mean[:M], atol=2e-5)
    assert_allclose(b[0] - b[1], one.mean[M], atol=2e-5)
    assert_allclose(alpha[0] * W[0], -alpha[1] * W[1], atol=2e-5 * alpha.max())
    assert_allclose(softmax(two.eta, axis=1)[:, 0], expit(one.eta), atol=1e-5)


@pytest.mark.parametrize(("n", "M"), [(40, 4), (12, 30)], ids=["tall", "wide"])
@pytest.mark.parametrize("kind", ["shared", "own"])
@few
@given(seed=seeds)
def test_names_of_the_classes_mean_nothing(kind, n, M, seed):
    c = make(kind, n=n, M=M, C=4, weighted=True, seed=seed)
    rng = np.random.default_rng(seed)
    order = rng.permutation(4)  # new class k is the old order[k]
    design = c.problem.design
    blocks = [np.arange(design.starts[k], design.starts[k + 1]) for k in range(4)]
    moved = np.concatenate([*(blocks[k] for k in order), design.M + order])
    alpha = c.precisions(seed, low=-0.5)
    here = LaplaceApproximation(c.problem, Objective(0.5)).at(np.arange(design.width), alpha, NONE)
    renamed = ClassProblem(
        ClassDesign(tuple(design.designs[k] for k in order)),
        np.argsort(order)[c.problem.y],
        c.problem.fixed_precision,
        c.problem.weights,
    )
    assert renamed.design.shared == (kind == "shared")
    there = LaplaceApproximation(renamed, Objective(0.5)).at(np.arange(design.width), alpha[moved], NONE)
    assert isinstance(there.posterior, Woodbury) == (n < M)
    assert_allclose(there.log_evidence, here.log_evidence, rtol=1e-10, atol=1e-10)
    assert_allclose(there.objective, here.objective, rtol=1e-9, atol=1e-8)
    assert_allclose(there.mean, here.mean[moved], atol=1e-8)
    assert_allclose(there.variance, here.variance[moved], rtol=1e-8)


@few
@given(seed=seeds)
def test_a_constant_for_all_classes_means_nothing(seed):
    """A column that is the same for all classes and has no prior of its own moves neither mode nor evidence."""
    c = make("own", seed=seed, q=0)
    rng = np.random.default_rng(seed)
    eta, shift = 3 * rng.standard_normal((40, 3)), 30 * rng.standard_normal((40, 1))
    for a, b in zip(c.problem.derivatives(eta, NONE), c.problem.derivatives(eta + shift, NONE), strict=True):
        assert_allclose(a, b, rtol=1e-11, atol=1e-12)
    alpha = c.precisions(seed)
    plain = LaplaceApproximation(c.problem, Objective()).at(np.arange(len(alpha)), alpha, NONE)
    assert_allclose(plain.terms[2].sum(axis=1), 1, rtol=1e-14)
    # The gradient of a common shift is zero, so with a bias of equal precisions the biases sum to zero.
    biased = make("own", seed=seed)
    width = biased.problem.design.width
    state = LaplaceApproximation(biased.problem, Objective()).at(np.arange(width), biased.precisions(seed), NONE)
    assert abs(state.mean[-3:].sum()) < 1e-6 * max(1, np.abs(state.mean[-3:]).max())


def test_a_column_with_no_room_is_no_column():
    c = make("own")
    width = c.problem.design.width
    index, alpha = np.arange(width), c.precisions()
    alpha[:4] = TIGHT
    whole = LaplaceApproximation(c.problem, Objective()).at(index, alpha, NONE)
    rest = LaplaceApproximation(c.problem, Objective()).at(index[4:], alpha[4:], NONE)
    # alpha / (alpha + s) and q^2 / alpha: both 1e-11 or so for 40 rows.
    assert_allclose(whole.log_evidence, rest.log_evidence, atol=1e-8)
    assert_allclose(whole.mean[4:], rest.mean, atol=1e-8)


def test_no_columns_at_all():
    """Equal probabilities: ``log E = -n log C``."""
    c = make("own", q=0)
    state = LaplaceApproximation(c.problem, Objective()).at(np.arange(0), np.empty(0), NONE)
    assert_allclose(state.log_evidence, -40 * np.log(3), rtol=1e-14)


@pytest.mark.parametrize("method", [MacKay(), Sequential()], ids=["mackay", "sequential"])
def test_a_fit_does_not_know_the_names(method):
    """A fit of renamed classes is the fit with its weights moved."""
    c = make("shared", n=60, seed=3, effect=2.0)
    order = np.array([2, 0, 1])
    renamed = case([c.J[:, 0, :4]] * 3, np.argsort(order)[c.problem.y])
    ends = []
    for problem in (c.problem, renamed.problem):
        outcome = method(problem, LaplaceApproximation(problem, Objective()), quiet)
        full = np.zeros(15)
        full[outcome.state.index] = outcome.state.mean
        ends.append((outcome.state.objective, full[:12].reshape(3, 4), full[12:]))
    assert_allclose(ends[1][0], ends[0][0], atol=1e-4)
    assert_allclose(ends[1][1], ends[0][1][order], atol=5e-2)
    assert_allclose(ends[1][2], ends[0][2][order], atol=5e-2)
