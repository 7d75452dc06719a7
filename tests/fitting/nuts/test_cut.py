"""A graph cut at its matrix products computes what PyTensor computes of the whole, and so do its slopes."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose

import bayes_sparse as bs
from bayes_sparse.fitting.nuts.cut import Cut, Uncut
from bayes_sparse.fitting.nuts.whole import WholeModel
from bayes_sparse.inputs.prepare import prepare
from tests.support import UNCOMPILED, without_compiler

from .fits import TARGETS, X

RNG = np.random.default_rng(3)
A, B = RNG.standard_normal((5, 3)), RNG.standard_normal((5, 4))


@pytest.fixture(autouse=True)
def _uncompiled(monkeypatch):
    without_compiler(monkeypatch)


x, s = pt.dvector("x"), pt.dscalar("s")
GRAPHS = {
    "no product": (s * x).sum() ** 2,
    "from the left": pt.tanh(pt.dot(A, s * x)).sum(),
    "from the right": pt.exp(0.1 * pt.dot(x, A.T) - s).sum(),
    "twice in a row": pt.tanh(pt.dot(B.T, pt.tanh(pt.dot(A, x)))).sum() * s,
    "side by side": (pt.dot(A, x) * pt.dot(A, s * x**2)).sum(),
    "matrices": pt.log1p(pt.dot(A, x[:, None] * x[:2]) ** 2).sum() + s**2,
    "by an operator": pt.tanh(A @ (s * x)).sum(),
    "of a transposed constant": pt.sin(pt.dot(pt.as_tensor(A.T).T, x)).sum() + s,
}


@pytest.mark.quick
@pytest.mark.parametrize("name", GRAPHS)
def test_values_and_slopes(name):
    graph = GRAPHS[name]
    cut = Cut([x, s], [graph])
    at = RNG.standard_normal(3), np.array(0.7)
    whole = pytensor.function(
        [x, s], [graph, *pytensor.grad(graph, [x, s], disconnected_inputs="ignore")], mode=UNCOMPILED
    )
    height, *slopes = whole(*at)
    assert_allclose(cut(*at)[0], height, rtol=1e-12)
    ours, own = cut.slopes(*at)
    assert_allclose(ours, height, rtol=1e-12)
    for one, other in zip(own, slopes, strict=True):
        assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def test_no_product_is_left_to_be_compiled():
    cut = Cut([x, s], [GRAPHS["twice in a row"]])
    assert [len(layer) for layer in cut._layers] == [1, 1]
    left = pytensor.printing.debugprint([*cut._outputs, *cut._moving[0], *cut._moving[1]], file="str")
    assert "Dot" not in left


@pytest.mark.parametrize(
    ("graph", "why"),
    [
        (pt.dot(pt.outer(x, x), x).sum(), "two things that move are multiplied"),
        (pt.linalg.det(x[:, None] * x + np.eye(3)), "is not element-wise"),
    ],
)
def test_what_cannot_be_cut(graph, why):
    with pytest.raises(Uncut, match=why):
        Cut([x], [graph])


def test_discrete_variables_are_left_to_pymc():
    with pm.Model() as model:
        pm.Normal("y", pm.Poisson("k", 3.0), observed=2.0)
    with pytest.raises(Uncut, match="not all variables are continuous"):
        WholeModel(model)


MODELS = {
    "ard_gaussian": (
        "normal",
        "student_t",
        "bernoulli",
        "probit",
        "poisson",
        "negative_binomial",
        "gamma",
        "beta",
        "ordinal",
        "categorical",
    ),
    "horseshoe": ("normal", "bernoulli", "poisson", "categorical"),
    "student_multinomial": ("categorical",),
    "gaussian_eigen": ("normal", "bernoulli", "categorical"),
    "laplace_eigen": ("poisson", "categorical"),
    "jeffreys_laplace": ("normal", "bernoulli"),
}
CASES = [(model, likelihood) for model, likelihoods in MODELS.items() for likelihood in likelihoods]
MASK = np.array([True, False, False])


WEIGHTED = [(name, likelihood) for name, likelihood in CASES if likelihood in ("normal", "bernoulli", "categorical")]


@pytest.mark.parametrize(
    ("name", "likelihood", "weighted"), [*((*case, False) for case in CASES), *((*case, True) for case in WEIGHTED)]
)
def test_every_declaration_is_the_density_that_is_sampled(name, likelihood, weighted):
    targets = TARGETS["poisson" if likelihood == "negative_binomial" else likelihood]
    rows = RNG.uniform(0.5, 2.0, len(X)) if weighted else None
    chosen = bs.likelihoods.ordinal(levels=3) if likelihood == "ordinal" else likelihood
    data = prepare((X, targets), None, chosen, bs.basis.linear(), None, rows, None)
    model = getattr(bs.models, {c.lower(): c for c in bs.models.__all__}[name.replace("_", "")])()
    centred = np.resize(MASK, 9 if likelihood == "categorical" and name != "laplace_eigen" else 3)
    declared = model.declare(data, model.proper_hyper, centred=True if "eigen" in name or "jeff" in name else centred)
    whole = WholeModel(declared)
    at = whole._usual + 0.5 * RNG.standard_normal(len(whole._usual))
    point = dict(zip([v.name for v in whole._values], whole._pieces(at), strict=True))
    height, gradient = whole.evaluate(at)
    assert_allclose(height, declared.compile_logp(mode=UNCOMPILED)(point), rtol=1e-10)
    assert_allclose(gradient, declared.compile_dlogp(mode=UNCOMPILED)(point), rtol=1e-8, atol=1e-8)
