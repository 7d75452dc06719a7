"""The models on eigen-coordinates as PyMC sees them: the density they declare, and NUTS of them as they stand."""

import dataclasses

import numpy as np
import pytensor
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pytensor.compile.mode import Mode
from scipy import stats
from scipy.integrate import quad
from scipy.special import expit, log_softmax, softmax

import bayes_sparse as bs
from bayes_sparse.inputs.prepare import prepare

PLAIN = Mode(linker="py", optimizer=None)  # compiling a matrix product takes longer than all of these tests
QUICK = Mode(linker="py", optimizer="fast_run").excluding("fusion", "BlasOpt")
RNG = np.random.default_rng(47)
N = 40
X = RNG.standard_normal((N, 3)) * [1.0, 5.0, 0.3] + [0.0, 10.0, -1.0]
Z = (X - X.mean(axis=0)) / X.std(axis=0)
Y = 2.0 + Z @ [1.0, -0.8, 0.0] + 0.5 * RNG.standard_normal(N)
TARGETS = {
    "normal": Y,
    "bernoulli": (2.0 + RNG.logistic(size=N) < Y).astype(int),
    "poisson": RNG.poisson(np.exp(0.5 * Z[:, 0] + 1)),
    "categorical": np.digitize(Y + 0.5 * RNG.standard_normal(N), [1.5, 3.0]),
}
MODELS = {"laplace_eigen": bs.models.LaplaceEigen, "gaussian_eigen": bs.models.GaussianEigen}
HYPER = (0.7, 0.3)


def prepared(likelihood, **settings):
    arguments = {"basis": bs.basis.linear(), "keep": None, "weights": None, "offset": None} | settings
    return prepare((X, TARGETS[likelihood]), None, likelihood, **arguments)


def value_of(model, name, point):
    """A variable of the model at a point."""
    [graph] = model.replace_rvs_by_values([model[name]])
    inputs = model.value_vars
    return np.asarray(model.compile_fn(graph, inputs=inputs, mode=PLAIN, on_unused_input="ignore")(point))


def point_of(model, centred):
    rng = np.random.default_rng(0)
    r, shape = len(model.coords["direction"]), np.shape(model.initial_point().get("bias", 0.0))
    point = {
        "alpha_log__": rng.standard_normal(r),
        "u" if centred else "z": rng.standard_normal(r),
        "bias": np.asarray(0.3 * rng.standard_normal(shape)),
        "sigma_log__": np.asarray(-0.4),
    }
    return {name: value for name, value in point.items() if name in model.initial_point()}


def log_likelihood(likelihood, eta, point):
    y = TARGETS[likelihood]
    if likelihood == "normal":
        return stats.norm.logpdf(y, eta, np.exp(point["sigma_log__"])).sum()
    if likelihood == "bernoulli":
        return stats.bernoulli.logpmf(y, expit(eta)).sum()
    if likelihood == "poisson":
        return stats.poisson.logpmf(y, np.exp(eta)).sum()
    return log_softmax(eta, axis=1)[np.arange(N), y].sum()


def log_gamma(name, alpha, h):
    """The hyper-prior speaks of alpha in units of the likelihood's curvature."""
    unit = np.sqrt(h) if name == "laplace_eigen" else h
    return stats.gamma.logpdf(alpha, HYPER[0], scale=unit / HYPER[1]).sum()


@pytest.mark.parametrize(("likelihood", "centred"), [*((name, True) for name in TARGETS), ("normal", False)])
@pytest.mark.parametrize("name", MODELS)
def test_the_declared_density_by_hand(name, likelihood, centred):
    """Likelihood, prior of the directions, Gamma, bias and noise, each by scipy."""
    data = prepared(likelihood)
    model = MODELS[name]().declare(data, HYPER, centred=centred)
    point = point_of(model, centred)
    alpha, w = np.exp(point["alpha_log__"]), value_of(model, "w", point)
    u = value_of(model, "u", point)
    eta = Z @ (w.reshape(3, -1).T if likelihood == "categorical" else w) + point["bias"]
    h = bs.fit(name, (X, TARGETS[likelihood]), likelihood=likelihood, draws=0)["evidence"]["h"].to_numpy()
    expected = log_likelihood(likelihood, eta, point) + log_gamma(name, alpha, h)
    if name == "laplace_eigen":
        scale = 2 / alpha
        assert_allclose(u, point["u"] if centred else point["z"] * scale)
        prior = stats.laplace.logpdf(u, scale=scale) if centred else stats.laplace.logpdf(point["z"])
        assert_allclose(stats.laplace.logpdf(u, scale=scale), np.log(alpha / 4) - alpha * np.abs(u) / 2)
    else:
        scale = (alpha + (2.5 * data.unit) ** -2.0) ** -0.5  # beside the slab
        assert_allclose(u, point["u"] if centred else point["z"] * scale)
        prior = stats.norm.logpdf(u, scale=scale) if centred else stats.norm.logpdf(point["z"])
    wide = 10 * np.sqrt(np.mean(Y**2)) if likelihood == "normal" else 10.0
    expected += prior.sum() + np.sum(stats.norm.logpdf(point["bias"], 0, wide))
    if likelihood == "normal":
        expected += stats.lognorm.logpdf(np.exp(point["sigma_log__"]), 3.0, scale=np.std(Y))
    # The ridge of greatest evidence is found twice, to its tolerance.
    assert_allclose(model.compile_logp(jacobian=False, mode=PLAIN)(point), expected, rtol=1e-8)


@pytest.mark.parametrize("likelihood", TARGETS)
def test_the_directions_declared_are_those_of_the_fit(likelihood):
    data = prepared(likelihood)
    model = bs.models.LaplaceEigen().declare(data, HYPER, centred=True)
    evidence = bs.fit("laplace_eigen", (X, TARGETS[likelihood]), likelihood=likelihood, draws=0)["evidence"]
    assert_array_equal(model.coords["direction"], evidence["direction"])
    point = point_of(model, True)
    unit = np.eye(evidence.sizes["direction"])
    Q = np.array([value_of(model, "w", point | {"u": row}).ravel() for row in unit])
    assert_allclose(Q @ Q.T, unit, atol=1e-10)
    assert_allclose(Q[evidence["kept_direction"].to_numpy() - 1], evidence["loading"], atol=1e-8)


def test_the_directions_of_a_normal_likelihood_are_principal_components():
    """Whatever the noise, eigenvectors of Z'Z: the bias is orthogonal to centred columns."""
    model = bs.models.GaussianEigen().declare(prepared("normal"), HYPER, centred=True)
    Q = np.array([value_of(model, "w", point_of(model, True) | {"u": row}) for row in np.eye(3)])
    _, V = np.linalg.eigh(Z.T @ Z)
    assert_allclose(np.abs(np.sum(Q * V.T[::-1], axis=1)), 1.0, rtol=1e-9)


def test_where_the_hessian_is_taken_is_a_setting_of_the_model():
    data = prepared("bernoulli")
    at = {e: bs.models.LaplaceEigen(expansion=e).declare(data, HYPER, centred=True) for e in ("zero", "ridge")}
    w = {e: value_of(model, "w", point_of(model, True) | {"u": np.eye(3)[0]}) for e, model in at.items()}
    _, V = np.linalg.eigh(Z.T @ Z)  # at zero every observation has the same curvature
    assert_allclose(np.abs(w["zero"] @ V[:, -1]), 1.0, rtol=1e-9)
    assert abs(w["ridge"] @ V[:, -1]) < 0.9999
    with pytest.raises(ValueError, match="`expansion` is 'ridge'"):
        bs.models.LaplaceEigen(expansion="nowhere").declare(data, HYPER)


def test_fewer_directions():
    model = bs.models.LaplaceEigen(directions=2).declare(prepared("normal"), HYPER)
    assert list(model.coords["direction"]) == [1, 2]
    assert model.initial_point()["z"].shape == (2,)


def test_keep_offset_weights_and_no_bias_enter_the_declaration():
    offset, weights = np.linspace(-1, 1, N), np.linspace(0.5, 2.0, N)
    settings = {"keep": ["x1"], "offset": offset, "weights": weights, "basis": bs.basis.linear(bias=False)}
    data = prepared("poisson", **settings)
    model = bs.models.GaussianEigen(bias_sd=7.0, slab=None).declare(data, HYPER, centred=True)
    assert {rv.name for rv in model.free_RVs} == {"alpha", "u", "kept"}
    point = {"alpha_log__": np.zeros(2), "u": np.array([0.3, -0.2]), "kept": np.array([0.4])}
    w = value_of(model, "w", point)
    assert_allclose(w[1], 0.4)
    assert_allclose(np.sum(w[[0, 2]] ** 2), 0.13)
    scale = np.sqrt(np.average((X - np.average(X, axis=0, weights=weights)) ** 2, axis=0, weights=weights))
    eta = offset + X / scale @ w
    terms = weights @ stats.poisson.logpmf(TARGETS["poisson"], np.exp(eta))
    prior = stats.norm.logpdf(point["u"]).sum() + stats.norm.logpdf(0.4, 0, 7.0)
    fitted = bs.fit("gaussian_eigen", (X, TARGETS["poisson"]), likelihood="poisson", bias_sd=7.0, draws=0, **settings)
    prior += log_gamma("gaussian_eigen", np.ones(2), fitted["evidence"]["h"].to_numpy())
    assert_allclose(model.compile_logp(jacobian=False, mode=PLAIN)(point), terms + prior, rtol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_the_models_are_frozen_choices(name):
    model = MODELS[name]()
    assert model == MODELS[name](bias_sd=None, expansion=None, directions=None)
    assert model.default_method == "revm"
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.bias_sd = 1.0
    with pytest.raises(ValueError, match=r"improper.*a proper neighbour is hyper="):
        bs.fit(name, (X, Y), method="nuts", hyper=(0, 0))


@pytest.mark.parametrize("name", MODELS)
def test_half_of_the_default_prior_is_within_one_sd_of_the_likelihood(name):
    """Integrated over alpha, for a direction of curvature 1: a Cauchy prior, and one with tails as heavy."""
    a, b = MODELS[name].proper_hyper

    def inside(alpha):
        prior = stats.laplace(scale=2 / alpha) if name == "laplace_eigen" else stats.norm(scale=alpha**-0.5)
        return (2 * prior.cdf(1) - 1) * stats.gamma.pdf(alpha, a, scale=1 / b)

    assert_allclose(quad(inside, 0, 1)[0] + quad(inside, 1, np.inf)[0], 0.5, atol=1e-6)


# --- NUTS --------------------------------------------------------------------------------------------------------


def sample(name, likelihood):
    """NUTS in Python, with short trajectories: what the draws mean is looked at, not whether they have mixed."""
    quick = {"tune": 30, "compute_convergence_checks": False, "compile_kwargs": {"mode": QUICK}, "cores": 1}
    quick["nuts"] = {"max_treedepth": 2, "early_max_treedepth": 2}
    with pytensor.config.change_flags(mode=QUICK):
        return bs.fit(
            name,
            (X, TARGETS[likelihood]),
            method="nuts",
            sampler="pymc",
            likelihood=likelihood,
            draws=100,
            chains=2,
            random_seed=1,
            progressbar=False,
            sample_kwargs=quick,
            hyper=(2.0, 1.0),
        )


@pytest.mark.slow
@pytest.mark.parametrize(("name", "likelihood"), [("laplace_eigen", "normal"), ("gaussian_eigen", "categorical")])
def test_nuts_of_the_declaration(name, likelihood):
    tree = sample(name, likelihood)
    reference = bs.fit(name, (X, TARGETS[likelihood]), likelihood=likelihood, draws=100, chains=2, random_seed=0)
    posterior = tree["posterior"]
    for variable in ("w", "bias"):
        assert posterior[variable].dims == reference["posterior"][variable].dims
        assert posterior[variable].shape == reference["posterior"][variable].shape
    assert posterior["u"].dims == ("chain", "draw", "direction")
    assert_array_equal(posterior["direction"], reference["evidence"]["direction"])
    assert tree["log_likelihood"]["y"].shape == (2, 100, N)
    same_units(posterior, likelihood)
    predictions_of_its_draws(tree, likelihood)
    with pytest.raises(ValueError, match="this has none"):
        bs.relevance(tree, space="eigen")
    assert posterior["alpha"].dims == ("chain", "draw", "direction")


def same_units(posterior, likelihood):
    """Draws of w are in the user's units: with them and X the pointwise log-likelihood can be had again."""
    draw = posterior.isel(chain=1, draw=50)
    w = draw["w"].to_numpy()
    eta = X @ (w.reshape(3, -1).T if likelihood == "categorical" else w) + draw["bias"].to_numpy()
    own = {"sigma_log__": np.log(draw["sigma"].item())} if likelihood == "normal" else {}
    total = posterior.parent["log_likelihood"]["y"].isel(chain=1, draw=50).sum()
    assert_allclose(total, log_likelihood(likelihood, eta, own), rtol=1e-8)


def predictions_of_its_draws(tree, likelihood):
    posterior = tree["posterior"].to_dataset().stack(sample=("chain", "draw"))
    w, bias = (posterior[name].transpose("sample", ...).to_numpy() for name in ("w", "bias"))
    prediction = bs.predict(tree, X[:8])
    if likelihood == "categorical":
        eta = np.einsum("nm,scm->snc", X[:8], w.reshape(len(w), 3, -1)) + bias[:, None, :]
        assert_allclose(prediction["probability"], softmax(eta, axis=2).mean(axis=0), rtol=1e-9)
        return
    eta = X[:8] @ w.T + bias
    if likelihood == "bernoulli":
        assert_allclose(prediction["probability"].sel({"class": 1}), expit(eta).mean(axis=1), rtol=1e-9)
        return
    assert_allclose(prediction["mean"], eta.mean(axis=1), rtol=1e-9)
    variance = eta.var(axis=1) + np.mean(posterior["sigma"].to_numpy() ** 2)
    assert_allclose(prediction["sd"], np.sqrt(variance), rtol=1e-9)
