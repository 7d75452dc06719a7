"""Which variables of a model without a linear predictor are sparse, fixed or nuisance, and what is refused."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.distributions.transforms import ordered
from scipy import stats

from bayes_sparse.inputs.pm_model import read_general
from bayes_sparse.inputs.pm_model.roles import Asked

from .networks import CLASSES, INPUTS, LABELS, TARGETS, normal_network, softmax_model, sparse
from .user_models import BINARY, REAL, N, X, bernoulli_logit, sparse_weights


def test_names_and_places():
    normal, categorical = read_general(normal_network()), read_general(softmax_model())
    assert [(s.name, s.shape, s.columns) for s in normal.sparse] == [
        ("W", (2, 3), slice(0, 6)),
        ("b", (3,), slice(6, 9)),
        ("w", (3,), slice(9, 12)),
    ]
    assert [(s.name, s.shape, s.columns) for s in normal.fixed] == [("c", (), slice(12, 13))]
    np.testing.assert_array_equal(normal.sparse[0].values(np.arange(13.0)), np.arange(6.0).reshape(2, 3) + 0.3)
    np.testing.assert_allclose(normal.fixed_precision(normal.theta), [0.25])
    assert normal.precision == {"W": ("alpha_W",), "b": ("alpha_b",), "w": ("alpha_w",)}
    assert (normal.observed, normal.describe, normal.nuisance) == ("y", "normal", ("sigma",))
    assert normal.unpack(np.log([0.7]))["sigma"] == pytest.approx(0.7)
    np.testing.assert_array_equal(normal.y, TARGETS)
    [block] = categorical.sparse
    assert block.dims == ("feature", "class")
    assert block.coords["class"].tolist() == ["a", "b", "c"]
    assert categorical.describe == "categorical"
    assert categorical.log_prior is None
    assert categorical.obs_dims == ("row",)
    assert categorical.obs_coords["row"][0] == 100
    np.testing.assert_allclose(categorical.hyper("W", np.full((2, 3), 4.0))["alpha"], np.full((2, 3), 4.0))


def test_named_weights_whatever_their_prior():
    with pm.Model() as model:
        shared = pm.HalfNormal("shared", 1.0)
        V = pm.Normal("V", 0.0, shared, shape=(2, 3))
        w = pm.Normal("w", 0.0, 1.0, shape=3)
        pm.Bernoulli("y", logit_p=pt.tanh(INPUTS @ V) @ w, observed=LABELS)
    both = read_general(model, asked=Asked(("w", "V")))
    assert [block.name for block in both.sparse] == ["V", "w"]
    assert both.nuisance == ()
    assert both.precision == {"V": ("shared",), "w": ()}
    one = read_general(model, Asked(("w",)))
    assert [block.name for block in one.sparse] == ["w"]
    assert [block.name for block in one.fixed] == ["V"]
    assert one.nuisance == ("shared",)
    np.testing.assert_allclose(one.fixed_precision(np.log([0.5])), np.full(6, 4.0))


def test_a_gaussian_behind_another_prior_is_a_nuisance():
    with pm.Model() as model:
        log_scale = pm.Normal("log_scale", 0.0, 1.0)
        u = pm.Normal("u", 0.0, pm.math.exp(log_scale), shape=2)
        pm.Normal("y", INPUTS @ u + pt.tanh(INPUTS @ sparse("w", 2)), pm.math.exp(log_scale), observed=TARGETS)
    read = read_general(model)
    assert [block.name for block in read.fixed] == ["u"]
    assert read.nuisance == ("log_scale",)
    np.testing.assert_allclose(read.fixed_precision(np.array([1.0])), np.full(2, np.exp(-2.0)))
    v = np.array([0.5, -1.0, 0.3, 2.0])
    mean = INPUTS @ v[2:] + np.tanh(INPUTS @ v[:2])
    expected = stats.norm.logpdf(TARGETS, mean, np.exp(1.0)).sum()
    assert read.surface.look(v, np.array([1.0])).value == pytest.approx(expected, rel=1e-12)
    assert read.log_prior(np.array([1.0])) == pytest.approx(stats.norm.logpdf(1.0))


def test_ordered_cutpoints_are_a_nuisance():
    with pm.Model() as model:
        cuts = pm.Normal("cuts", [-1.0, 1.0], 2.0, shape=2, transform=ordered, initval=[-1.0, 1.0])
        pm.OrderedLogistic("y", eta=INPUTS @ sparse("w", 2), cutpoints=cuts, observed=CLASSES)
    read, v = read_general(model), np.array([0.3, -0.4])
    assert (read.nuisance, read.fixed, read.describe) == (("cuts",), (), "categorical")
    theta = np.array([-0.5, 0.3])
    edges = [-np.inf, *read.unpack(theta)["cuts"], np.inf]
    np.testing.assert_allclose(edges[1:3], [-0.5, -0.5 + np.exp(0.3)])
    cumulative = stats.logistic.cdf(np.array(edges) - (INPUTS @ v)[:, None])
    expected = np.log(np.diff(cumulative, axis=1)[np.arange(25), CLASSES])
    np.testing.assert_allclose(read.surface.log_densities(v[None], theta[None])[0], expected, rtol=1e-10)


def refused(sentence, build, **kwargs):
    with pm.Model() as model:
        build()
    with pytest.raises(ValueError, match=sentence):
        read_general(model, **kwargs)


def test_refusals():
    refused("exactly one observed variable; it has none", lambda: sparse_weights())

    def two():
        w = sparse_weights()
        pm.Normal("y", X @ w, 1.0, observed=REAL)
        pm.Normal("z", X @ w, 1.0, observed=REAL)

    refused("exactly one observed variable; it has 'y', 'z'", two)

    def potential():
        bernoulli_logit(X @ sparse_weights())
        pm.Potential("extra", pt.constant(1.0))

    refused("pm.Potential, 'extra'", potential)

    def discrete():
        bernoulli_logit(X @ sparse_weights() + pm.Bernoulli("k", 0.5))

    refused("'k' is discrete", discrete)

    def nothing_sparse():
        bernoulli_logit(pt.tanh(X @ pm.Normal("w", 0.0, 1.0, shape=4)))

    refused("No sparse prior was found", nothing_sparse)
    refused("sparse='v' does not name a variable", nothing_sparse, asked=Asked(("w", "v")))

    def behind_a_prior():
        w = sparse_weights()
        pm.Normal("y", X @ w, pm.HalfNormal("sigma", pt.exp(w[0])), observed=REAL)

    refused("'w' reach the likelihood through another variable's prior", behind_a_prior)

    def captured():
        w, c = sparse_weights(), pm.Normal("c", 0.0, 1.0)
        pm.CustomDist("y", X @ w, logp=lambda value, eta: -((value - eta - c) ** 2), observed=REAL)

    refused("uses 'c' without being given it", captured)

    def together():
        pm.MvNormal("y", X @ sparse_weights(), np.eye(N), observed=REAL)

    refused("have one density together", together, observation_weights=np.ones(N))
    refused("30 finite numbers", lambda: bernoulli_logit(X @ sparse_weights()), observation_weights=np.ones(4))


@pytest.mark.filterwarnings("ignore:Data in y contains missing values")
def test_missing_values_are_refused():
    refused(
        "'y' has missing values",
        lambda: pm.Normal("y", X @ sparse_weights(), 1.0, observed=np.where(BINARY, REAL, np.nan)),
    )
