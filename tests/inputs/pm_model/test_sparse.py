"""Which variables are the sparse weights."""

import numpy as np
import pymc as pm

from .against_pymc import check
from .user_models import BINARY, P, X, Z, sparse_weights


def test_named_weights_with_a_constant_sd():
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, 1.0, shape=P)
        pm.Bernoulli("y", logit_p=pm.Normal("b", 0, 1) + X @ w, observed=BINARY)
    declared = check(model, "w")
    assert declared.precision == {"w": ()}
    assert declared.hyper("w", np.ones(P)) is None
    assert declared.problem.free.tolist() == [True] * P + [False]


def test_naming_one_of_two_leaves_the_other_fixed():
    with pm.Model() as model:
        v = pm.Normal("v", 0.0, 2.0, shape=2)
        w = pm.Normal("w", 0.0, 1.0, shape=P)
        pm.Bernoulli("y", logit_p=Z @ v + X @ w, observed=BINARY)
    declared = check(model, "w")
    assert [block.name for block in declared.fixed] == ["v"]
    np.testing.assert_allclose(declared.problem.fixed_precision(np.empty(0)), [0.25, 0.25])


def test_naming_weights_keeps_those_with_their_own_precisions_sparse():
    with pm.Model() as model:
        v = pm.Normal("v", 0.0, 2.0, shape=2)
        pm.Bernoulli("y", logit_p=Z @ v + X @ sparse_weights(), observed=BINARY)
    declared = check(model, "v")
    assert [block.name for block in declared.sparse] == ["v", "w"]
    assert declared.nuisance == ()


def test_global_and_local_scales_are_both_named():
    with pm.Model() as model:
        scale, local = pm.HalfCauchy("scale", 1.0), pm.HalfCauchy("local", 1.0, shape=P)
        pm.Bernoulli("y", logit_p=X @ pm.Normal("w", 0.0, scale * local), observed=BINARY)
    declared = check(model)
    assert declared.precision == {"w": ("scale", "local")}
    assert declared.nuisance == ()
    precision = np.array([0.2, 1.0, 30.0, 4.0])
    values = declared.hyper("w", precision)
    np.testing.assert_allclose((values["scale"] * values["local"]) ** -2.0, precision, rtol=1e-9)
