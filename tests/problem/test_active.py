"""Active columns of a tall design are taken out of it once, and give the products of those of any other."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayes_sparse.problem import active as module
from bayes_sparse.problem.active import LinearActive
from bayes_sparse.problem.design import Design

N, M = 3000, 9
# One after another: begun, grown, grown again, one left out, exchanged, back, in another order, few, many.
SETS = ([9, 1], [9, 1, 4], [9, 1, 4, 2], [9, 4, 2], [9, 4, 2, 7], [9, 1, 4, 2], [2, 9, 1], [9], [9, 1, 2, 3, 5, 6, 8])


@pytest.fixture
def design(monkeypatch):
    monkeypatch.setattr(module, "_TALL", 1000)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, M))
    return Design(X, X.mean(axis=0), X.std(axis=0), np.ones((N, 1)))


def terms_of(eta):
    mean = np.exp(0.1 * eta)
    return -mean, 1.0 - mean, -mean, -mean


def test_products_are_those_of_the_columns_alone(design):
    rng, active = np.random.default_rng(1), None
    for index in map(np.array, SETS):
        active = LinearActive(design, index, near=active)
        Phi, w = design.columns(index), rng.normal(size=len(index))
        terms = terms_of(Phi @ w)
        H, b = Phi.T @ (-terms[2][:, None] * Phi), -terms[2]
        assert_allclose(active.predictor(w), Phi @ w, atol=1e-12)
        for _ in range(2):  # before and after the curvature, with which the gradient comes
            assert_allclose(active.pulled_back(terms[1]), Phi.T @ terms[1], atol=1e-9)
            assert_allclose(active.cross_products(terms), H, atol=1e-9)
        curved = *terms[:2], terms[2] + 1.5, terms[3]  # of both signs
        posterior = active.posterior(np.full(len(index), 1e5), curved, None)
        assert_allclose(posterior.solve(w), np.linalg.solve(H - 1.5 * Phi.T @ Phi + 1e5 * np.eye(len(w)), w), atol=1e-9)
        A = rng.normal(size=(len(index), len(index)))
        leverages = active.leverages(lambda v, at, S=A @ A.T: S[:, at] @ v)
        assert_allclose(leverages, np.sum((Phi @ A) ** 2, axis=1), atol=1e-10)
        assert_allclose(active.turning(leverages, terms), -Phi.T @ (terms[3] * leverages), atol=1e-8)
        for found, known in zip(active.scan(terms), design.scan(Phi, b, terms[1]), strict=True):
            assert_allclose(found, known, atol=1e-9)


def test_a_column_is_taken_out_once(design, monkeypatch):
    taken, plain = [], Design.columns
    monkeypatch.setattr(Design, "columns", lambda self, index: (taken.extend(index.tolist()), plain(self, index))[1])
    active = LinearActive(design, np.array([9, 1, 4]))
    taken.clear()
    for index in ([9, 1, 4, 2], [9, 1, 2], [9, 1, 4, 2]):
        active = LinearActive(design, np.array(index), near=active)
    assert taken == [2]


def test_nothing_is_kept_alive_that_something_was_computed_of(design):
    active = LinearActive(design, np.array([9, 1]))
    for terms in (terms_of(np.ones(N)), terms_of(np.zeros(N))):  # in the place of the first ones, perhaps
        assert_allclose(active.cross_products(terms)[0, 0], -terms[2].sum())
        assert_allclose(active.pulled_back(terms[1])[0], terms[1].sum(), atol=1e-9)
        del terms
    assert active._curved[0].slopes() is None
    w = np.array([1.0, 2.0])
    assert_allclose(pickle.loads(pickle.dumps(active)).predictor(w), active.predictor(w))
