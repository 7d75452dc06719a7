"""A graph whose products are left to BLAS computes what PyTensor computes of it, and so do its slopes."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose

import bayes_sparse as bs
from bayes_sparse.fitting.nuts.compiled import Compiled, Heavy
from bayes_sparse.fitting.nuts.products import Product
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
    compiled = Compiled([x, s], [graph])
    at = RNG.standard_normal(3), np.array(0.7)
    whole = pytensor.function(
        [x, s], [graph, *pytensor.grad(graph, [x, s], disconnected_inputs="ignore")], mode=UNCOMPILED
    )
    height, *slopes = whole(*at)
    assert_allclose(compiled(*at)[0], height, rtol=1e-12)
    ours, own = compiled.slopes(*at)
    assert_allclose(ours, height, rtol=1e-12)
    for one, other in zip(own, slopes, strict=True):
        assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def printed(*inputs, of):
    compiled = Compiled(inputs, [of])
    return pytensor.printing.debugprint(compiled._outputs, file="str"), compiled


def test_products_are_left_to_blas_and_data_are_handed_in():
    text, compiled = printed(x, s, of=GRAPHS["twice in a row"])
    assert text.count("Product") == 2
    assert "Dot" not in text
    assert [value.shape for value in compiled._still.values()] == [A.shape, B.T.shape]


def test_blas_in_compiled_code():
    """Vectors and matrices, of either order in memory, from either side; the rest of these tests compiles nothing."""
    M, v, V = pt.dmatrix(), pt.tensor(dtype="float64", shape=(None, 1)), pt.dmatrix()
    rows = Product(False)
    outputs = [rows(M, v), rows(M, V), rows(M.T, V.T), Product(True)(M, V.T[:, ::-1])]
    outputs.append(pytensor.grad((rows(M, V) ** 2).sum(), V))
    square, one, several = (RNG.standard_normal(shape) for shape in ((4, 4), (4, 1), (4, 4)))
    wanted = [square @ one, square @ several, square.T @ several.T, square.T @ several.T[:, ::-1]]
    wanted.append(2 * square.T @ square @ several)
    for ours, numpy in zip(pytensor.function([M, v, V], outputs)(square, one, several), wanted, strict=True):
        assert_allclose(ours, numpy, rtol=1e-12, atol=1e-12)


def two_classes(p, y):
    return pm.logp(pm.Bernoulli.dist(p=p), y).sum()


def test_two_classes_need_one_softplus_and_no_check():
    y = np.array([0, 1, 1])
    short, compiled = printed(x, of=two_classes(pt.sigmoid(x), y))
    assert "Check" not in short
    assert short.count("Softplus") == 1
    height, [slope] = compiled.slopes(np.array([800.0, -800.0, 0.0]))  # classes that are all but impossible
    assert_allclose(height, -1600 - np.log(2))
    assert_allclose(slope, [-1.0, 1.0, 0.5])


@pytest.mark.parametrize("p", [x, pt.sigmoid(x) * 1.5])
def test_what_may_not_be_a_probability_is_checked(p):
    text, compiled = printed(x, of=two_classes(p, np.array([0, 1, 1])))
    assert "Check" in text
    with pytest.raises(ValueError, match="0 <= p <= 1"):  # compiled code has a density of zero there
        compiled(np.array([0.5, 2.0, 0.5]))


@pytest.mark.parametrize(
    ("graph", "why"),
    [
        (pt.dot(pt.outer(x, x), x).sum(), "two things that move are multiplied"),
        (pt.linalg.det(x[:, None] * x + np.eye(3)), "is not element-wise"),
    ],
)
def test_what_is_too_heavy(graph, why):
    with pytest.raises(Heavy, match=why):
        Compiled([x], [graph])


def test_discrete_variables_are_left_to_pymc():
    with pm.Model() as model:
        pm.Normal("y", pm.Poisson("k", 3.0), observed=2.0)
    with pytest.raises(Heavy, match="not all variables are continuous"):
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


SOON = {  # each takes two seconds to compile: every model, and the likelihoods of each kind
    ("ard_gaussian", "student_t"),
    ("ard_gaussian", "bernoulli"),
    ("horseshoe", "normal"),
    ("student_multinomial", "categorical"),
    ("gaussian_eigen", "normal"),
    ("laplace_eigen", "poisson"),
    ("jeffreys_laplace", "bernoulli"),
}


@pytest.mark.parametrize(
    ("name", "likelihood", "weighted"),
    [
        *(pytest.param(*case, False, marks=[] if case in SOON else pytest.mark.slow) for case in CASES),
        *(pytest.param(*case, True, marks=pytest.mark.slow) for case in WEIGHTED),
    ],
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
