"""The columns of several classes side by side: order, owners, products, against columns written out one by one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csc_array

from bayes_sparse.problem.classes import ClassDesign, ClassProblem
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.sparse_design import SparseDesign

from .problems import NONE, case, make


@pytest.mark.parametrize("q", [0, 1, 2])
@pytest.mark.parametrize("kind", ["shared", "own"])
def test_the_order_of_the_columns(kind, q):
    """Class by class, then each extra column for all classes."""
    c = make(kind, q=q, C=4, widths=[3, 0, 5, 1] if kind == "own" else None)
    design, J = c.problem.design, c.J
    assert (design.n, design.classes, design.q, design.width) == (40, 4, 4 * q, J.shape[2])
    assert design.M + design.q == design.width
    assert design.shared == (kind == "shared")
    # A column belongs to the only class whose predictor it moves.
    assert_array_equal(np.eye(4)[design.owner], (np.abs(J).sum(axis=0) > 0).T)
    assert_array_equal(c.problem.free, np.arange(design.width) < design.M)


@pytest.mark.parametrize("kind", ["shared", "own"])
def test_own_columns_of_any_subset_in_any_order(kind):
    c = make(kind, q=2)
    design = c.problem.design
    index = np.random.default_rng(3).permutation(design.width)[: design.width // 2]
    seen = []
    for k in range(3):
        positions, columns = design.own(k, index)
        seen.extend(positions)
        assert_array_equal(design.designs[k].columns(columns), c.J[:, k, index[positions]])
    assert sorted(seen) == list(range(len(index)))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["shared", "own"])
def test_squares_and_joined(kind, weighted):
    c = make(kind, q=2)
    b = np.random.default_rng(4).uniform(0, 2, 40) if weighted else np.ones(40)
    expected = np.einsum("n,nck->k", b, c.J**2)
    assert_allclose(c.problem.design.squares(b if weighted else None), expected, rtol=1e-13)
    v = np.random.default_rng(5).standard_normal((40, 3))
    parts = [own.transposed_times(v[:, k]) for k, own in enumerate(c.problem.design.designs)]
    assert_allclose(c.problem.design.joined(parts), np.einsum("nc,nck->k", v, c.J), rtol=1e-12, atol=1e-13)
    two = [np.column_stack([part, -part]) for part in parts]
    assert_allclose(c.problem.design.joined(two)[:, 1], -c.problem.design.joined(parts))


def test_sparse_and_standardised_columns_serve_as_well():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((30, 5)) * (rng.random((30, 5)) < 0.4)
    X[0] = 1.0  # no column empty
    shift, scale, ones = X.mean(axis=0), X.std(axis=0), np.ones((30, 1))
    y = rng.integers(0, 3, 30)
    truth = case([(X - shift) / scale] * 3, y)
    index = np.array([16, 3, 8, 12, 0, 15])
    w = rng.standard_normal(6)
    for own in (Design(X, shift, scale, ones), SparseDesign(csc_array(X), shift, scale, ones)):
        problem = ClassProblem(ClassDesign((own,) * 3), y, np.full(3, 0.01))
        active = problem.active(index)
        assert_allclose(active.predictor(w), truth.J[:, :, index] @ w, rtol=1e-12, atol=1e-13)
        terms = truth.terms(w, index)
        for got, expected in zip(active.scan(terms), truth.problem.active(index).scan(terms), strict=True):
            assert_allclose(got, expected, rtol=1e-11, atol=1e-12)


def test_predictors_and_densities_of_many_draws():
    c = make("own", q=1)
    index = np.array([2, 9, 0, c.problem.design.width - 1])
    draws = np.random.default_rng(7).standard_normal((5, 4))
    eta = c.problem.predictor(draws, index)
    assert_allclose(eta, np.einsum("nck,sk->snc", c.J[:, :, index], draws), rtol=1e-13, atol=1e-14)
    heavy = c.weighing(np.full(40, 3.0))
    densities = heavy.problem.log_densities(eta, np.empty((5, 0)))
    assert densities.shape == (5, 40)
    assert_allclose(densities.sum(axis=1), [c.likelihood(w, index) for w in draws], rtol=1e-12)
    assert_allclose(3 * densities[0], heavy.problem.derivatives(eta[0], NONE)[0], rtol=1e-13)


def test_separation_is_every_class_at_its_top():
    c = make("shared")
    eta = np.eye(3)[c.problem.y]
    assert c.problem.separates(eta)
    eta[7] = np.roll(eta[7], 1)
    assert not c.problem.separates(eta)


def test_given_and_declared_precisions():
    c = make("own", q=2)
    width = c.problem.design.width
    index = np.random.default_rng(8).permutation(width)
    got = c.problem.precisions(index, np.full(width, 7.0), NONE)
    assert_array_equal(got, np.where(index < c.problem.design.M, 7.0, 0.01))
