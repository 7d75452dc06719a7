"""The variational relevance vector machine against textbook updates, quadrature and its own Gamma factors."""

import arviz as az
import numpy as np
import pymc as pm
import pytest
import xarray as xr
from numpy.testing import assert_allclose
from scipy.integrate import trapezoid
from scipy.special import digamma, expit, gammaln, log_expit
from scipy.stats import multivariate_normal, norm
from scipy.stats import t as student

import bayes_sparse as bs
from bayes_sparse.inputs.likelihoods import resolve
from tests.methods.variational_by_hand import gamma_part, logistic_rvm, normal_part, normal_rvm
from tests.support import refused

PLAIN = bs.basis.linear(standardise=False)
VAGUE = (1e-6, 1e-6)


def data(likelihood="normal", n=60, p=5, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * rng.uniform(0.5, 2, p)
    eta = 0.3 + X[:, 0] - 0.7 * X[:, -1]
    if likelihood == "bernoulli":
        return X, (rng.random(n) < expit(eta)).astype(int)
    if likelihood == "poisson":
        return X, rng.poisson(np.exp(0.5 * eta))
    return X, eta + 0.5 * rng.standard_normal(n)


def fit(X, y, likelihood="normal", **settings):
    given = {"method": "variational", "likelihood": likelihood, "draws": 0, "tolerance": 1e-11, "progressbar": False}
    return bs.fit("ard_gaussian", (X, y), **{**given, **settings})


def by_hand(X, y, likelihood, hyper, noise, tree, rounds):
    """The textbook's updates in the units that the fit has, from where it ended or from afar."""
    Phi = np.column_stack([X, np.ones(len(y))])
    fixed, unit = resolve(likelihood).bias_sd(np.asarray(y, dtype=float)) ** -2, tree["evidence"].attrs["hyper_unit"]
    a, b = hyper[0], hyper[1] * unit**2
    rate = (a + 0.5) / tree["evidence"]["alpha"].to_numpy() if rounds == 1 else np.full(X.shape[1], unit**2)
    if likelihood == "bernoulli":
        return logistic_rvm(Phi, y, fixed, (a, b), rate, rounds)
    return normal_rvm(Phi, y, fixed, (a, b), (noise[0], noise[1] * unit**2), rate, rounds)


@pytest.mark.quick
@pytest.mark.parametrize(("hyper", "noise"), [((0.5, 0.2), (2.0, 0.3)), (VAGUE, VAGUE)])
def test_the_textbook_ends_at_the_same_place(hyper, noise):
    """Newton steps and 5000 rounds of updates: bound, factors and all."""
    X, y = data()
    tree = fit(X, 30 * y, basis=PLAIN, hyper=hyper, noise_hyper=noise)
    hand = by_hand(X, 30 * y, "normal", hyper, noise, tree, 5000)
    evidence = tree["evidence"]
    assert np.diff(hand.bounds).min() > -1e-9
    assert_allclose(float(evidence["bound"]), hand.bounds[-1], rtol=1e-10)
    assert_allclose(evidence["mean"], hand.mean[:-1], rtol=1e-5, atol=1e-7)
    assert_allclose(evidence["sd"], np.sqrt(hand.covariance.diagonal()[:-1]), rtol=1e-5)
    assert_allclose(evidence["alpha"], (hyper[0] + 0.5) / hand.rate, rtol=1e-5)
    assert_allclose(float(evidence["sigma"]) ** -2, float(evidence["noise_shape"]) / hand.noise_rate, rtol=1e-6)
    assert_allclose(float(evidence["bias"]), hand.mean[-1], rtol=1e-6)


@pytest.mark.quick
@pytest.mark.parametrize("hyper", [(0.5, 0.2), VAGUE])
def test_the_textbook_ends_at_the_same_place_with_two_classes(hyper):
    X, y = data("bernoulli", n=150)
    tree = fit(X, y, "bernoulli", basis=PLAIN, hyper=hyper)
    evidence, hand = tree["evidence"], by_hand(X, y, "bernoulli", hyper, None, tree, 5000)
    assert np.diff(hand.bounds).min() > -1e-9
    assert_allclose(float(evidence["bound"]), hand.bounds[-1], rtol=1e-10)
    assert_allclose(evidence["mean"], hand.mean[:-1], rtol=1e-5, atol=1e-6)
    # An unneeded precision near 4000 bends the bound by b alpha = 0.004 nats: 1e-11 of them are 7e-5 of its size.
    assert_allclose(evidence["sd"], np.sqrt(hand.covariance.diagonal()[:-1]), rtol=4e-5)
    assert_allclose(evidence["alpha"], (hyper[0] + 0.5) / hand.rate, rtol=7e-5)


def test_at_the_top_the_textbook_changes_nothing_with_two_classes():
    """One round of updates from the end of a fit with kernels: xi, the weights and the precisions."""
    X, y = data("bernoulli", n=80, p=2)
    tree = fit(X, y, "bernoulli", basis=bs.basis.rbf(1.0))
    alpha, n = tree["evidence"]["alpha"].to_numpy(), len(y)
    Phi = np.column_stack([np.exp(-0.5 * np.sum((X[:, None] - X) ** 2, axis=2)), np.ones(n)])
    fixed = resolve("bernoulli").bias_sd(y.astype(float)) ** -2
    hand = logistic_rvm(Phi, y, fixed, VAGUE, (1e-6 + 0.5) / alpha, 1, xi=predictor_size(tree, Phi))
    assert_allclose(hand.mean[:-1], tree["evidence"]["mean"], rtol=1e-5, atol=1e-7)
    assert_allclose((1e-6 + 0.5) / hand.rate, alpha, rtol=1e-5)
    assert_allclose(hand.xi, predictor_size(tree, Phi), rtol=1e-6)
    assert_allclose(hand.bounds[-1], float(tree["evidence"]["bound"]), rtol=1e-10)


def predictor_size(tree, Phi):
    """The root of ``<eta^2>``."""
    evidence = tree["evidence"]
    factor = Phi @ evidence["covariance_factor"].to_numpy()
    return np.hypot(Phi @ evidence["coordinate_mean"].to_numpy(), np.linalg.norm(factor, axis=1))


@pytest.mark.parametrize("basis", [bs.basis.linear(), bs.basis.rbf(1.0)], ids=["linear", "rbf"])
def test_at_the_top_the_textbook_changes_nothing(basis):
    """On kernels too, of which most have precisions that hardly matter: there the updates would take very long."""
    X, y = data(n=80, p=2)
    tree = fit(X, y, basis=basis)
    evidence, predicted = tree["evidence"], bs.predict(tree, X)
    sigma, unit = float(evidence["sigma"]), evidence.attrs["hyper_unit"]
    scale = tree["constant_data"].get("basis_scale", xr.DataArray(1.0)).to_numpy()
    rate = 1e-6 * unit**2 + 0.5 * (evidence["mean"] ** 2 + evidence["sd"] ** 2).to_numpy() * scale**2
    assert_allclose(evidence["alpha"] / scale**2, (1e-6 + 0.5) / rate, rtol=1e-5)
    power = np.sum((y - predicted["mean"]) ** 2 + predicted["sd"] ** 2 - sigma**2)
    assert_allclose(sigma**-2, (1e-6 + 40) / (1e-6 * unit**2 + 0.5 * float(power)), rtol=1e-7)


@pytest.mark.parametrize(("hyper", "noise"), [((0.5, 0.2), (2.0, 0.3)), (VAGUE, VAGUE)])
def test_the_bound_is_below_the_log_marginal_likelihood(hyper, noise):
    """One weight: everything integrated by quadrature over the logs of alpha and beta."""
    X, y = data(n=20, p=1)
    evidence = fit(X, y, basis=PLAIN, hyper=hyper, noise_hyper=noise)["evidence"]
    wide, unit = resolve("normal").bias_sd(y), evidence.attrs["hyper_unit"]
    log_alpha, log_beta = np.linspace(-40, 25, 400), np.linspace(-6, 6, 120)
    log_p = np.empty((400, 120))
    for j, beta in enumerate(np.exp(log_beta)):
        base = np.eye(20) / beta + wide**2
        own = multivariate_normal(np.zeros(20), base).logpdf(y)
        s, q = X[:, 0] @ np.linalg.solve(base, X[:, 0]), X[:, 0] @ np.linalg.solve(base, y)
        alpha = np.exp(log_alpha)  # the weight integrated out: a normal of rank one more
        log_p[:, j] = own + 0.5 * (log_alpha - np.log(alpha + s) + q**2 / (alpha + s))
        log_p[:, j] += log_gamma(log_beta[j], noise[0], noise[1] * unit**2)
    log_p += log_gamma(log_alpha, hyper[0], hyper[1] * unit**2)[:, None]
    top = log_p.max()
    log_marginal = top + np.log(trapezoid(trapezoid(np.exp(log_p - top), log_beta), log_alpha))
    # The factors are wrong by less than the two nats that mean-field posteriors of so few numbers lose.
    assert log_marginal - 2.0 < float(evidence["bound"]) < log_marginal


@pytest.mark.parametrize("hyper", [(0.5, 0.2), (1.0, 0.1)])
def test_the_bound_of_two_classes_is_below_the_log_marginal_likelihood(hyper):
    """One weight, which is Student-t without its precision, and the bias, by quadrature."""
    X, y = data("bernoulli", n=20, p=1)
    evidence = fit(X, y, "bernoulli", basis=PLAIN, hyper=hyper)["evidence"]
    a, b = hyper
    w, bias = np.linspace(-60, 60, 4001), np.linspace(-40, 40, 801)
    sign = 2 * y - 1
    log_p = sum(log_expit(s * (x * w[:, None] + bias)) for s, x in zip(sign, X[:, 0], strict=True))
    log_p += student(2 * a, 0, np.sqrt(b / a)).logpdf(w)[:, None]
    log_p += norm(0, resolve("bernoulli").bias_sd(y.astype(float))).logpdf(bias)
    log_marginal = np.log(trapezoid(trapezoid(np.exp(log_p), bias), w))
    assert log_marginal - 2.0 < float(evidence["bound"]) < log_marginal


def log_gamma(log_x, a, b):
    """Log density of log x where x is Gamma(a, b)."""
    return a * np.log(b) - gammaln(a) + a * log_x - b * np.exp(log_x)


def test_draws_come_from_the_factors():
    X, y = data()
    tree = fit(X, y, draws=2000, chains=4, random_seed=0)
    evidence, posterior = tree["evidence"], tree["posterior"]
    alpha = posterior["alpha"].to_numpy().reshape(8000, -1)
    mean, shape = evidence["alpha"].to_numpy(), evidence["alpha_shape"].to_numpy()
    assert_allclose(shape, 0.5 + 1e-6)
    # Standard errors: of the mean 1/sqrt(shape S), of the variance sqrt((2 + 6/shape)/S), four and a half of them.
    assert_allclose(alpha.mean(0), mean, rtol=4.5 / np.sqrt(0.5 * 8000))
    assert_allclose(alpha.var(0), mean**2 / shape, rtol=4.5 * np.sqrt(14 / 8000))
    beta, many = posterior["sigma"].to_numpy().ravel() ** -2, float(evidence["noise_shape"])
    assert_allclose(many, 30 + 1e-6)
    assert_allclose(beta.mean(), float(evidence["sigma"]) ** -2, rtol=4.5 / np.sqrt(many * 8000))
    assert_allclose(beta.var(), float(evidence["sigma"]) ** -4 / many, rtol=4.5 * np.sqrt(2.2 / 8000))
    assert abs(np.corrcoef(alpha[:, 0], posterior["w"].to_numpy()[..., 0].ravel())[0, 1]) < 4.5 / np.sqrt(8000)


@pytest.mark.parametrize("likelihood", ["normal", "bernoulli", "poisson"])
@pytest.mark.parametrize("basis", [bs.basis.linear(), bs.basis.rbf(1.0)], ids=["linear", "rbf"])
def test_the_bound_never_falls_and_nothing_is_pruned(basis, likelihood):
    X, y = data(likelihood, p=2)
    evidence = fit(X, y, likelihood, basis=basis, tolerance=1e-6)["evidence"]
    history = evidence["history"].to_numpy()
    assert np.diff(history).min() >= -1e-12 * abs(history[-1])  # a rounding error
    assert float(evidence["bound"]) == float(evidence["objective"]) == history[-1]
    assert bool(evidence["kept"].all())
    assert bool(np.isfinite(evidence["alpha"]).all())


def test_what_is_relevant():
    X, y = data(n=200, p=12)
    table = bs.relevance(fit(X, y))
    assert sorted(table.index[table["relevant"]]) == ["x0", "x11"]
    assert table["kept"].all()
    assert (table.loc[~table["relevant"], "gamma"] < 0.9).all()


def test_the_scores_of_two_classes_are_those_of_the_likelihood_itself():
    """Each term left out at the mode found by hand: Jaakkola's bound curves more and would say too much."""
    X, y = data("bernoulli", n=150)
    evidence = fit(X, y, "bernoulli", basis=PLAIN)["evidence"]
    Phi = np.column_stack([X, np.ones(150)])
    alpha = np.append(evidence["alpha"], resolve("bernoulli").bias_sd(y.astype(float)) ** -2)
    w = np.zeros(6)
    for _ in range(30):
        p = expit(Phi @ w)
        Sigma = np.linalg.inv((Phi.T * (p * (1 - p))) @ Phi + np.diag(alpha))
        w = w + Sigma @ (Phi.T @ (y - p) - alpha * w)
    variance = Sigma.diagonal()
    score = (w / variance) ** 2 / (1 / variance - alpha)
    assert_allclose(evidence["score"], score[:-1], rtol=1e-5)


def test_a_tree_like_any_other(tmp_path):
    """Stored and read, summarised, diagnosed and predicted with, beside draws by NUTS of the same names."""
    X, y = data()
    tree = fit(X, y, draws=200, chains=2, random_seed=0)
    tree.to_netcdf(tmp_path / "fit.nc")
    back = xr.open_datatree(tmp_path / "fit.nc")
    assert_allclose(bs.predict(back, X)["mean"], bs.predict(tree, X)["mean"])
    summary = az.summary(back)
    assert {"w[x0]", "alpha[x0]", "sigma", "bias"} <= set(summary.index)
    assert np.isfinite(bs.diagnose(back).k_hat)
    assert back["evidence"].attrs["hyper"].tolist() == [1e-6, 1e-6]
    back.close()


def own_model(X, y, weights):
    with pm.Model() as model:
        w = weights(pm.Gamma("precision", 1.0, 1.0, shape=X.shape[1]))
        pm.Normal("target", X @ w, pm.HalfNormal("noise", 2.0), observed=y)
    return model


@pytest.mark.parametrize(
    "weights",
    [
        lambda alpha: pm.Normal("coefficient", 0.0, tau=alpha, shape=5),
        lambda alpha: pm.Deterministic("coefficient", pm.Normal("z", shape=5) / alpha**0.5),
    ],
    ids=["centred", "not centred"],
)
def test_a_model_of_the_users_own(weights):
    """Its precisions and its noise, under their names and in its units."""
    X, y = data()
    model = own_model(X, y, weights)
    tree = bs.fit(model, method="variational", hyper=(1.0, 1.0), random_seed=0, progressbar=False)
    evidence, posterior = tree["evidence"], tree["posterior"]
    drawn = posterior["precision"].to_numpy().reshape(4000, 5)
    assert_allclose(drawn.mean(0), evidence["alpha"], rtol=4.5 / np.sqrt(1.5 * 4000))
    assert "noise_shape" not in evidence  # it has a prior that is no Gamma of its precision
    assert posterior["noise"].std() > 0


def test_columns_that_share_their_precision_have_one_factor():
    """Its shape counts them all; the bound by the textbook's terms, and the scale drawn for the group."""
    X, y = data()
    group = np.array([0, 0, 1, 1, 1])
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, pm.HalfCauchy("scale", 1.0, shape=2)[group], shape=5)
        pm.Normal("y", X @ w, 0.5, observed=y)
    given = {"hyper": (0.5, 0.2), "tolerance": 1e-11, "random_seed": 0, "progressbar": False}
    tree = bs.fit(model, method="variational", **given)
    evidence, shape = tree["evidence"], np.array([1.5, 2.0])
    assert_allclose(evidence["alpha_shape"], shape[group])
    mean, factor = evidence["coordinate_mean"].to_numpy(), evidence["covariance_factor"].to_numpy()
    Sigma, alpha, b = factor @ factor.T, evidence["alpha"].to_numpy(), 0.2 * evidence.attrs["hyper_unit"] ** 2
    rate = b + 0.5 * np.bincount(group, mean**2 + Sigma.diagonal())
    assert_allclose(alpha, (shape / rate)[group], rtol=1e-6)
    power = np.sum((y - X @ mean) ** 2) + np.trace(X @ Sigma @ X.T)
    bound = -30 * np.log(2 * np.pi * 0.25) - 2 * power + gamma_part(shape, rate, 0.5, b)
    bound += normal_part(mean, Sigma, alpha, (digamma(shape) - np.log(rate))[group])
    assert_allclose(float(evidence["bound"]), bound, rtol=1e-10)
    drawn = tree["posterior"]["scale"].to_numpy().reshape(4000, 2) ** -2
    assert_allclose(drawn.mean(0), alpha[[0, 2]], rtol=4.5 / np.sqrt(1.5 * 4000))


def test_refusals():
    X, y = data(n=30, p=2)
    refused(lambda: fit(X, y, hyper=(0.0, 0.0)), "proper hyper-prior")
    refused(lambda: fit(X, y, hyper=(0.0, 1.0)), "proper hyper-prior")
    refused(lambda: fit(X, y, slab=2.0), "slab")
    refused(lambda: fit(X, y, noise_hyper=(0.0, 1.0)), "noise_hyper")
    classes = np.arange(30) % 3
    call = {"method": "variational", "draws": 0, "progressbar": False}
    refused(lambda: bs.fit("student_multinomial", (X, classes), **call), "one predictor")
    refused(lambda: fit(X, y, "student_t"), "log-concave")
