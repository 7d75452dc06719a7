"""A user's own model, with everything but its weights held, as PyMC sees it."""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_allclose

import bayes_sparse as bs
from bayes_sparse.fitting.choices import choose_method, choose_model
from bayes_sparse.fitting.families import Task, find
from bayes_sparse.inputs.pm_model.own_problem import declared_problem
from tests.support import UNCOMPILED

from .fits import TARGETS, X, Z, points, slopes


def declared(likelihood):
    with pm.Model(coords={"feature": ["a", "b", "c"]}) as model:
        alpha = pm.Gamma("alpha", 0.5, 0.005, dims="feature")
        w = pm.Normal("w", 0.3, 1 / pm.math.sqrt(alpha), dims="feature")
        eta = pm.Normal("b", 0.5, 10.0) + Z @ w
        if likelihood == "normal":
            pm.Normal("y", eta, pm.HalfNormal("sigma", 2.0), observed=TARGETS["normal"])
        else:
            pm.Poisson("y", pm.math.exp(eta), observed=TARGETS["poisson"])
    return model


@pytest.mark.parametrize("likelihood", ["normal", "poisson"])
@pytest.mark.parametrize("method", ["sequential", "mackay"])
def test_weights_about_their_prior_mean(likelihood, method):
    model = declared(likelihood)
    chosen = choose_model(model)
    labelled = declared_problem(chosen, None, None)
    search = replace(choose_method(method, chosen, None), smoothness=0.0)
    found = find(Task(labelled, chosen, search, None), False)
    state, density = found.outcome.state, found.density
    alpha, kept = np.ones(3), state.index < 3
    alpha[state.index[kept]] = state.alpha[kept]
    logp = pm.do(model, {"alpha": alpha, **labelled.unpack(state.theta)}).compile_logp(mode=UNCOMPILED)
    for x in points(density):
        w = np.full(3, 0.3)
        w[state.index[kept]] += x[kept]
        value, gradient = density.evaluate(x)
        pruned = -0.5 * np.log(2 * np.pi) * (3 - kept.sum())
        assert_allclose(value, logp({"w": w, "b": 0.5 + x[~kept].item()}) - pruned, rtol=1e-8)
        assert_allclose(gradient, slopes(density.evaluate, x), rtol=1e-5, atol=1e-5)


def test_its_tree_has_the_user_s_names():
    tree = bs.fit(
        declared("poisson"),
        method="nuts",
        condition="alpha",
        sampler="pymc",
        draws=50,
        chains=2,
        random_seed=0,
        progressbar=False,
    )
    reference = bs.fit(declared("poisson"), draws=50, chains=2, random_seed=0)
    assert set(tree["posterior"].data_vars) == set(reference["posterior"].data_vars)
    assert tree["posterior"]["w"].dims == ("chain", "draw", "feature")
    assert list(tree["posterior"]["feature"].to_numpy()) == list(reference["posterior"]["feature"].to_numpy())
    assert tree["evidence"]["basis"].to_numpy().tolist() == ["a", "b", "c"]
    assert_allclose(tree["observed_data"]["y"], TARGETS["poisson"])
    assert X.shape[0] == tree["log_likelihood"].sizes["y_dim_0"]
