"""The design, for every usual way of writing a linear predictor."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from bayes_sparse.inputs.pm_model import read_model

from .against_pymc import check
from .user_models import COUNT, EXPOSURE, GROUP, REAL, N, P, X, Z, poisson_model, sparse_weights

PREDICTORS = {
    "matmul": lambda: X @ sparse_weights(),
    "pt.dot": lambda: pt.dot(X, sparse_weights()),
    "pm.math.dot": lambda: pm.math.dot(X, sparse_weights()),
    "product summed": lambda: (X * sparse_weights()).sum(-1),
    "product summed, transposed": lambda: (X.T * sparse_weights()[:, None]).sum(0),
    "from the left": lambda: sparse_weights() @ X.T,
    "dot from the left": lambda: pt.dot(sparse_weights(), X.T),
    "pm.Data": lambda: pm.Data("X", X) @ sparse_weights(),
    "pm.Data transposed": lambda: sparse_weights() @ pm.Data("X", X).T,
    "einsum": lambda: pt.einsum("ij,j->i", X, sparse_weights()),
    "one-column matrix": lambda: (X @ sparse_weights()[:, None])[:, 0],
    "scaled inside": lambda: X @ (sparse_weights() * np.arange(1.0, P + 1)),
    "scaled outside": lambda: 2.0 * (X @ sparse_weights()) / EXPOSURE - 0.3,
    "subtracted": lambda: 1.5 - X @ sparse_weights(),
    "the same weights twice": lambda: sum([X @ (w := sparse_weights()), (X**2) @ w]),
    "column by column": lambda: sum(X[:, j] * w for j, w in enumerate(sparse_weights())),
    "in between": lambda: pm.Deterministic("eta", pm.Deterministic("part", X @ sparse_weights()) + 0.1),
    "standardised data": lambda: ((d := pm.Data("X", X)) - d.mean(0)) / 2.0 @ sparse_weights(),
    "random slopes": lambda: X @ sparse_weights() + (Z * pm.Normal("slope", 0.2, 1.0, shape=(3, 2))[GROUP]).sum(-1),
    "one column": lambda: X[:, :1] @ sparse_weights(p=1),
    "one column, summed": lambda: (X[:, :1] * sparse_weights()).sum(-1),
    "a mean": lambda: pt.mean(X * sparse_weights(), axis=1),
}


@pytest.mark.parametrize("name", PREDICTORS)
def test_predictor(name):
    check(poisson_model(PREDICTORS[name]))


@pytest.mark.parametrize(
    "name", ["matmul", "pt.dot", "pm.math.dot", "product summed", "from the left", "pm.Data", "pm.Data transposed"]
)
def test_usual_products_take_the_columns_as_they_are(name):
    declared = read_model(poisson_model(PREDICTORS[name]))
    np.testing.assert_array_equal(declared.problem.design.columns(np.arange(P)), X)


def test_the_matrix_is_not_copied():
    model = poisson_model(lambda: pm.Data("X", X) @ sparse_weights())
    held = model["X"].get_value(borrow=True)
    assert np.shares_memory(read_model(model).problem.design._X, held)


def test_integer_data():
    counts = np.random.default_rng(4).integers(0, 5, size=(N, P))
    declared = check(poisson_model(lambda: 0.5 + pm.Data("X", counts) @ sparse_weights() / 7.0))
    np.testing.assert_allclose(declared.problem.design.columns(np.arange(P)), counts / 7.0, rtol=1e-14)


def test_new_data():
    with pm.Model() as model:
        data, target = pm.Data("X", X), pm.Data("target", COUNT)
        pm.Poisson("y", pm.math.exp(data @ sparse_weights()), observed=target)
    check(model)
    with model:
        pm.set_data({"X": X[:20] + 1.0, "target": COUNT[:20]})
    declared = check(model)
    np.testing.assert_array_equal(declared.problem.design.columns(np.arange(P)), X[:20] + 1.0)
    np.testing.assert_array_equal(declared.problem.y, COUNT[:20])


def test_two_sparse_terms():
    declared = check(poisson_model(lambda: X @ sparse_weights("v") + Z @ sparse_weights("w", 2)))
    assert [block.name for block in declared.sparse] == ["v", "w"]
    assert [block.columns for block in declared.sparse] == [slice(0, 4), slice(4, 6)]
    assert declared.problem.free.all()
    np.testing.assert_array_equal(declared.problem.design.columns(np.arange(6)), np.hstack([X, Z]))


def test_sparse_and_fixed_terms():
    declared = check(poisson_model(lambda: Z @ pm.Normal("v", 1.0, 2.0, shape=2) + X @ sparse_weights()))
    assert [block.name for block in declared.fixed] == ["v"]
    np.testing.assert_allclose(declared.problem.fixed_precision(declared.problem.theta), [0.25, 0.25])
    np.testing.assert_allclose(declared.problem.offset, Z.sum(1))
    np.testing.assert_array_equal(declared.problem.design.columns(np.arange(4, 6)), Z)


@pytest.mark.parametrize(
    ("intercept", "mean", "precision"),
    [
        (lambda: pm.Normal("b", 0.0, 10.0), 0.0, 0.01),
        (lambda: pm.Normal("b", 1.5, tau=4.0), 1.5, 4.0),
        (lambda: pm.Flat("b"), 0.0, 0.0),
        (lambda: pm.Normal("b", -1.0, 0.5, shape=1), -1.0, 4.0),
    ],
)
def test_intercept(intercept, mean, precision):
    declared = check(poisson_model(lambda: intercept() + X @ sparse_weights()))
    np.testing.assert_allclose(declared.problem.offset, np.full(N, mean))
    np.testing.assert_allclose(declared.problem.fixed_precision(declared.problem.theta), [precision])
    np.testing.assert_array_equal(declared.problem.design.extra, np.ones((N, 1)))
    [block] = declared.fixed
    np.testing.assert_allclose(block.values(np.arange(5.0)), np.full(block.shape, 4.0 + mean))
    np.testing.assert_allclose(block.values(np.ones((7, 5))), np.full((7, *block.shape), 1.0 + mean))


def test_weights_that_are_the_predictor():
    """One weight an observation, denoising: the design is the identity."""
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, pm.HalfCauchy("alpha", 1.0, shape=N))
        pm.StudentT("y", nu=4, mu=w, sigma=1.0, observed=REAL)
    declared = check(model)
    np.testing.assert_array_equal(declared.problem.design.columns(np.arange(N)), np.eye(N))
