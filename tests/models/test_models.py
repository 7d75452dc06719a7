"""Named models: where they are found, and that the declaration is the model the evidence methods fit."""

import dataclasses

import numpy as np
import pymc as pm
import pytest
from pytensor.compile.mode import Mode
from scipy import stats
from scipy.special import expit

import bayes_sparse as bs
from bayes_sparse.inputs.prepare import prepare

PLAIN = Mode(linker="py", optimizer=None)  # compiling a matrix product takes longer than all of these tests
RNG = np.random.default_rng(41)
N = 50
X = RNG.standard_normal((N, 3)) * [1.0, 4.0, 0.5] + [0.0, 10.0, -1.0]
Y = X[:, 0] + 0.4 * X[:, 1] + 0.5 * RNG.standard_normal(N)
TARGETS = {
    "normal": Y,
    "student_t": Y,
    "bernoulli": (X[:, 0] + RNG.logistic(size=N) > 0).astype(int),
    "poisson": RNG.poisson(np.exp(0.3 * X[:, 0] + 1)),
    "negative_binomial": RNG.poisson(RNG.gamma(2.0, np.exp(0.3 * X[:, 0] + 1) / 2.0)),
}


def prepared(likelihood, basis=None, **settings):
    arguments = {"keep": None, "weights": None, "offset": None} | settings
    return prepare((X, TARGETS[likelihood]), None, likelihood, basis or bs.basis.linear(), **arguments)


def log_likelihood(model, point):
    """PyMC's own log-density of every observation at a point of named values."""
    observed = model.observed_RVs[0]
    logp = model.compile_logp(vars=[observed], sum=False, jacobian=False, mode=PLAIN)
    full = {**model.initial_point(), **point}
    return logp(full)[0]


def test_the_models_are_public():
    public = {"ARDGaussian", "Declared", "GaussianEigen", "JeffreysLaplace", "LaplaceEigen", "StudentMultinomial"}
    assert set(bs.models.__all__) == public | {"Horseshoe"}
    assert bs.models.ARDGaussian() == bs.models.ARDGaussian(bias_sd=None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        bs.models.ARDGaussian().bias_sd = 1.0


def test_the_name_is_the_default_object():
    by_name = bs.fit("ard_gaussian", (X, Y), draws=0)["evidence"]
    by_object = bs.fit(bs.models.ARDGaussian(), (X, Y), draws=0)["evidence"]
    np.testing.assert_array_equal(by_name["mean"], by_object["mean"])


@pytest.mark.parametrize("centred", [True, False])
def test_the_declaration_has_the_documented_variables(centred):
    model = bs.models.ARDGaussian().declare(prepared("normal"), (0.5, 0.005), centred=centred)
    assert {rv.name for rv in model.free_RVs} == {"alpha", "w" if centred else "z", "bias", "sigma"}
    assert [rv.name for rv in model.observed_RVs] == ["y"]
    assert model.named_vars_to_dims["w"] == ("basis",)
    assert model.named_vars_to_dims["y"] == ("obs",)
    assert list(model.coords["basis"]) == ["x0", "x1", "x2"]


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("weights", [None, np.linspace(0.5, 2.0, N)])
@pytest.mark.parametrize("basis", [bs.basis.rbf(width=2.0), bs.basis.linear(standardise=False)], ids=["rbf", "linear"])
def test_columns_that_have_a_mean_are_declared_around_it(basis, weights, centred):
    """The density of bias and weights as they are documented, at the mean predictor that they make."""
    offset = np.linspace(-0.5, 0.5, N)
    data = prepared("bernoulli", basis, weights=weights, offset=offset)
    model = bs.models.ARDGaussian(bias_sd=3.0, slab=2.0).declare(data, (1.5, 0.7), centred=centred)
    point = {name: 0.3 * RNG.standard_normal(np.shape(value)) for name, value in model.initial_point().items()}
    alpha, bias, Phi = np.exp(point["alpha_log__"]), 0.7, np.asarray(data.Phi)
    w = point["w"] if centred else point["z"] / np.sqrt(alpha + 0.25)
    mean = np.average(Phi @ w + bias, weights=weights)
    by_row = stats.bernoulli.logpmf(TARGETS["bernoulli"], expit(offset + bias + Phi @ w))
    expected = np.sum(by_row if weights is None else weights * by_row) + stats.norm.logpdf(bias, scale=3.0)
    expected += stats.gamma.logpdf(alpha, 1.5, scale=1 / 0.7).sum()
    expected += stats.norm.logpdf(*((w, 0, (alpha + 0.25) ** -0.5) if centred else (point["z"],))).sum()
    found = model.compile_logp(jacobian=False, mode=PLAIN)({**point, "mean_predictor": np.asarray(mean)})
    np.testing.assert_allclose(found, expected, atol=1e-6)  # constants such as log 3 are in 32 bits


def test_a_basis_without_a_bias_declares_none():
    model = bs.models.ARDGaussian().declare(prepared("bernoulli", bs.basis.linear(bias=False)), (0.5, 0.005))
    assert {rv.name for rv in model.free_RVs} == {"alpha", "z"}


@pytest.mark.parametrize("likelihood", TARGETS)
def test_the_declared_likelihood_is_the_one_fitted(likelihood):
    """PyMC's log-likelihood of the declaration at one draw equals the tree's at that draw."""
    offset = np.linspace(-0.5, 0.5, N)
    tree = bs.fit(
        "ard_gaussian",
        (X, TARGETS[likelihood]),
        likelihood=likelihood,
        offset=offset,
        hyper=(0.5, 0.005),
        draws=2,
        chains=1,
        random_seed=0,
    )
    data = prepared(likelihood, offset=offset)
    draw = tree["posterior"].isel(chain=0, draw=1)
    w = draw["w"].to_numpy()
    point = {"w": w * data.scale, "bias": draw["bias"].item() + np.sum(w * data.shift)}
    for name in data.likelihood.nuisance:
        point[f"{name}_log__"] = np.log(draw[name].item())
    model = bs.models.ARDGaussian().declare(data, (0.5, 0.005), centred=True)
    np.testing.assert_allclose(
        tree["log_likelihood"]["y"].isel(chain=0, draw=1), log_likelihood(model, point), rtol=1e-8
    )


def test_weights_enter_the_declaration():
    data = prepared("normal", weights=np.linspace(0.5, 2.0, N))
    model = bs.models.ARDGaussian().declare(data, (0.5, 0.005))
    assert [potential.name for potential in model.potentials] == ["y"]
    twice = bs.models.ARDGaussian().declare(prepared("normal", weights=2 * data.weights), (0.5, 0.005))
    once, doubled = (m.compile_logp(vars=m.potentials, mode=PLAIN)(m.initial_point()) for m in (model, twice))
    np.testing.assert_allclose(doubled, 2 * once, rtol=1e-10)


def test_kept_columns_have_the_wide_prior_of_the_bias():
    data = prepared("normal", keep=["x1"])
    model = bs.models.ARDGaussian(bias_sd=7.0).declare(data, (0.5, 0.005), centred=True)
    sd = model["w"].owner.op.dist_params(model["w"].owner)[1]
    drawn = pm.draw(sd, draws=2, random_seed=0)
    np.testing.assert_allclose(drawn[:, 1], 7.0)
    assert not np.allclose(drawn[:, 0], 7.0)


CLASSES = np.argmax(np.stack([0 * Y, X[:, 0], 2 * X[:, 2]]) + RNG.gumbel(size=(3, N)), axis=0)
MASK = np.array([True, False, True])
PARAMETRISED = {
    "ard_gaussian": (bs.models.ARDGaussian(), prepared("normal"), "w"),
    "ard_gaussian, kept": (bs.models.ARDGaussian(slab=None), prepared("poisson", keep=["x1"]), "w"),
    "student_multinomial": (
        bs.models.StudentMultinomial(),
        prepare((X, CLASSES), None, "categorical", bs.basis.linear(), None, None, None),
        "w",
    ),
    "laplace_eigen": (bs.models.LaplaceEigen(), prepared("bernoulli"), "u"),
    "gaussian_eigen": (bs.models.GaussianEigen(), prepared("normal"), "u"),
}


@pytest.mark.quick
@pytest.mark.parametrize("name", PARAMETRISED)
def test_parametrisations_are_the_same_model(name):
    """Log densities of (w, alpha, ...) differ by the Jacobian of z = w / scale, where z stands for w."""
    model, data, weights = PARAMETRISED[name]
    directly = model.declare(data, (0.7, 0.3), centred=True)
    point = directly.initial_point(random_seed=0)
    rng = np.random.default_rng(8)
    point = {key: np.asarray(value) + 0.3 * rng.standard_normal(np.shape(value)) for key, value in point.items()}
    alpha = np.exp(point["alpha_log__"])
    slab = 0.0 if model.slab is None else (2.5 * data.unit) ** -2
    scale = 2 / alpha if name == "laplace_eigen" else (alpha + slab) ** -0.5
    if "kept" in name:
        scale[1] = 10.0  # the bias's sd: columns are standardised
    expected = directly.compile_logp(mode=PLAIN)(point)
    size = len(alpha)
    for centred in (False, np.resize(MASK, size)):
        rest = np.broadcast_to(np.logical_not(centred), (size,))
        other = {key: value for key, value in point.items() if key != weights}
        other["z"] = np.where(rest, point[weights] / scale, point[weights])
        value = model.declare(data, (0.7, 0.3), centred=centred).compile_logp(mode=PLAIN)(other)
        np.testing.assert_allclose(value - np.log(scale[rest]).sum(), expected, rtol=1e-8)


def test_a_declaration_says_w_in_every_parametrisation():
    data = prepared("normal")
    for centred in (True, False, MASK):
        model = bs.models.ARDGaussian().declare(data, (0.5, 0.005), centred=centred)
        assert model.named_vars_to_dims["w"] == ("basis",)
        assert ("w" in {rv.name for rv in model.free_RVs}) == (centred is True)
