"""Ordered classes one class at a time: against the density that PyMC has of the whole matrix, and Bambi's graph."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from bayes_sparse.inputs.pm_model import read_model
from bayes_sparse.inputs.pm_model.class_columns import class_density
from tests.support import UNCOMPILED

from .user_models import N, P, X, sparse_weights

CUTS = np.array([-0.8, 0.3, 1.1])
RNG = np.random.default_rng(2)
ETA = RNG.normal(size=N)
Y = RNG.integers(0, 4, N)
EDGES = np.array([-np.inf, *CUTS, np.inf])


def from_edges(cdf, eta):
    """The probability of each observation's class, as a difference of the distribution function."""
    return np.log(np.diff(cdf(EDGES - eta[:, None]), axis=1)[np.arange(N), Y])


def by_hand(eta):
    inside = pt.sigmoid(CUTS - eta[:, None])
    below = pt.concatenate([pt.zeros((N, 1)), inside, pt.ones((N, 1))], axis=1)
    return pm.Categorical.dist(p=below[:, 1:] - below[:, :-1])


ORDERED = {
    "logistic": (lambda eta: pm.OrderedLogistic.dist(eta, CUTS), stats.logistic.cdf),
    "probit": (lambda eta: pm.OrderedProbit.dist(eta, CUTS), stats.norm.cdf),
    "by hand": (by_hand, stats.logistic.cdf),
}


@pytest.mark.parametrize("name", ORDERED)
def test_one_class_at_a_time(name):
    make, cdf = ORDERED[name]
    eta = pt.vector("eta", shape=(N,))
    variable = make(eta)
    p = variable.owner.op.dist_params(variable.owner)[0]
    density = class_density(p, pt.constant(Y.astype(float)))
    both = pytensor.function([eta], [density, pm.logp(variable, Y)], mode=UNCOMPILED)
    own, whole = both(ETA)
    assert_allclose(own, from_edges(cdf, ETA), rtol=1e-6)  # PyTensor has the cutpoints' normal in single precision
    assert_allclose(own, whole, rtol=1e-9)


def test_probabilities_made_otherwise_are_left_alone():
    assert class_density(pm.math.softmax(pt.matrix("logits", shape=(N, 3)), axis=-1), pt.vector("y")) is None


@pytest.mark.parametrize("name", ["logistic", "probit"])
def test_a_model_of_ordered_classes(name):
    with pm.Model() as model:
        cuts = pm.Normal("cuts", 0.0, 2.0, shape=3, transform=pm.distributions.transforms.ordered, initval=CUTS)
        kind = pm.OrderedLogistic if name == "logistic" else pm.OrderedProbit
        kind("y", eta=X @ sparse_weights(), cutpoints=cuts, observed=Y)
    read = read_model(model)
    theta = np.array([CUTS[0], *np.log(np.diff(CUTS))])
    assert_allclose(read.unpack(theta)["cuts"], CUTS)
    w, step = 0.5 * RNG.normal(size=P), 1e-5
    eta = read.problem.offset + read.problem.design.columns(np.arange(P)) @ w
    terms, above, below = (read.problem.pointwise(eta + way * step, theta) for way in (0, 1, -1))
    assert_allclose(terms[0], from_edges(ORDERED[name][1], X @ w), rtol=1e-6)
    for order in range(3):
        assert_allclose(terms[order + 1], (above[order] - below[order]) / (2 * step), rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore:For backward compatibility, 'str' dtypes")  # Bambi's own, of text
def test_bambis_cumulative_family():
    import bambi as bmb
    import pandas as pd

    frame = pd.DataFrame({"kind": pd.Categorical(Y, categories=range(4), ordered=True), "x": X[:, 0]})
    bambi = bmb.Model("kind ~ 0 + x", frame, family="cumulative")
    bambi.build()
    model = bambi.backend.model
    observed = model["kind"]
    p = observed.owner.op.dist_params(observed.owner)[0]
    density = class_density(p, pt.constant(Y.astype(float)))
    placed = {model["x"]: pt.constant(0.7), model["threshold"]: pt.constant(CUTS)}
    both = [density, pm.logp(observed, Y)]
    own, whole = (
        out.eval(mode=UNCOMPILED) for out in pytensor.graph.replace.clone_replace(both, placed, rebuild_strict=False)
    )
    assert_allclose(own, whole, rtol=1e-9)
    assert_allclose(own, from_edges(stats.logistic.cdf, 0.7 * X[:, 0]), rtol=1e-6)
