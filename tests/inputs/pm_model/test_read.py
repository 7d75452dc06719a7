"""What reading gives besides numbers: names, dims, weights; and what it must not cost."""

import numpy as np
import pymc as pm
import pytest

from bayes_sparse.inputs import compiled
from bayes_sparse.inputs.pm_model import graph as evaluate
from bayes_sparse.inputs.pm_model import read_model
from bayes_sparse.inputs.pm_model import variables as nuisance

from .against_pymc import check
from .user_models import BINARY, COUNT, EXPOSURE, N, P, X, normal, sparse_weights, with_likelihood

pytestmark = pytest.mark.quick


def test_dims_and_coords():
    with pm.Model(coords={"feature": list("abcd"), "obs": np.arange(N) + 100}) as model:
        data = pm.Data("X", X, dims=("obs", "feature"))
        alpha = pm.HalfCauchy("alpha", 1.0, dims="feature")
        w = pm.Normal("w", 0.0, alpha, dims="feature")
        pm.Bernoulli("y", logit_p=data @ w, observed=BINARY, dims="obs")
    declared = check(model)
    [block] = declared.sparse
    assert (block.name, block.shape, block.dims) == ("w", (P,), ("feature",))
    assert block.coords["feature"].tolist() == list("abcd")
    assert declared.obs_dims == ("obs",)
    assert declared.obs_coords["obs"].tolist() == list(range(100, 100 + N))


def test_flat_priors_beside_data_that_may_change():
    """Of such a model no shape is known before it is computed, and a flat variable cannot be drawn."""
    with pm.Model() as model:
        data, more = pm.Data("X", X), pm.Data("more", X[:, :2] ** 2)
        w = pm.Normal("w", 0.0, pm.HalfNormal("s", 1.0, shape=data.shape[1]), shape=data.shape[1])
        eta = data @ w + more @ pm.Flat("b", shape=more.shape[1]) + pm.Flat("level")
        pm.Bernoulli("y", logit_p=eta, observed=BINARY)
    declared = check(model)
    assert [block.shape for block in declared.sparse] == [(P,)]
    assert sorted((block.name, block.shape) for block in declared.fixed) == [("b", (2,)), ("level", ())]


def test_observation_weights_are_passed_on():
    declared = read_model(with_likelihood(normal), observation_weights=EXPOSURE)
    np.testing.assert_array_equal(declared.problem.weights, EXPOSURE)


@pytest.fixture
def made(monkeypatch):
    """Every function made from here on: "plain" (the graph as it stands, a millisecond), "rewritten" or "compiled"."""
    functions = []
    small, pointwise, jets = evaluate.pytensor_function, compiled._function, compiled.jet_function

    def record_small(*args, mode, **kwargs):
        functions.append("plain" if mode is evaluate._PLAIN else "rewritten")
        return small(*args, mode=mode, **kwargs)

    def record_pointwise(*args):
        functions.append("compiled")
        return pointwise(*args)

    def record_jets(*args):
        functions.append("compiled")
        return jets(*args)

    monkeypatch.setattr(compiled, "jet_function", record_jets)
    monkeypatch.setattr(evaluate, "pytensor_function", record_small)
    monkeypatch.setattr(compiled, "_function", record_pointwise)
    monkeypatch.setattr(compiled, "_cache", {})
    monkeypatch.setattr(nuisance, "_log_densities", {})
    return functions


def test_reading_compiles_nothing(made):
    """Whatever the size: the few small functions are of priors and of theta's start."""
    counts = []
    for n, p in ((N, P), (500, 200)):
        data = np.random.default_rng(0).normal(size=(n, p))
        with pm.Model() as model:
            sigma = pm.HalfNormal("sigma", 1.0)
            mu = pm.Normal("b", 0.0, 10.0) + pm.Data("X", data) @ sparse_weights(p=p)
            pm.StudentT("y", nu=4, mu=mu, sigma=sigma, observed=data[:, 0])
        made.clear()
        read_model(model)
        assert set(made) == {"plain"}
        counts.append(len(made))
    assert counts[0] == counts[1] < 10


def test_a_second_model_waits_for_no_compiler(made):
    def use(shift):
        with pm.Model() as model:
            pm.NegativeBinomial(
                "y",
                mu=pm.math.exp((X + shift) @ sparse_weights()),
                alpha=pm.Exponential("shape", 1.0),
                observed=COUNT,
            )
        problem = read_model(model).problem
        problem.pointwise(np.zeros(N), problem.theta)
        problem.log_prior(problem.theta)

    use(0.0)
    assert made.count("compiled") == made.count("rewritten") == 1
    made.clear()
    use(1.0)
    assert set(made) == {"plain"}


def test_a_normal_likelihood_needs_no_compiler(made):
    problem = read_model(with_likelihood(normal)).problem
    problem.pointwise(np.zeros(N), problem.theta)
    assert set(made) == {"plain"}
