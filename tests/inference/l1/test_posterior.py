"""The normal posterior on the support against the truth: its curvature, importance sampling, and NUTS.

The target is ``p(y | w) R^-N`` over the weights of the support, the bias and the logs of the nuisance parameters,
written out here in numpy for many points at once.
"""

import arviz as az
import numpy as np
import pytest
from arviz_stats.base import array_stats
from numpy.testing import assert_allclose
from scipy.special import gammaln

import bayes_sparse as bs
from tests.support import fit_path

N = 400
LIKELIHOODS = ["normal", "bernoulli", "poisson", "negative_binomial"]
every_likelihood = pytest.mark.parametrize("likelihood", LIKELIHOODS)


def strong(likelihood):
    """Three weights that nobody would leave out, of columns of different sizes."""
    rng = np.random.default_rng(11)
    X = rng.standard_normal((N, 3)) @ (np.eye(3) + 0.2) * [1.0, 3.0, 0.2] + [0.0, 5.0, 1.0]
    eta = (X - X.mean(axis=0)) / X.std(axis=0) @ np.array([1.0, -0.8, 0.7])
    y = {
        "normal": lambda: 2.0 + eta + 1.3 * rng.standard_normal(N),
        "bernoulli": lambda: (eta + rng.logistic(size=N) > 0).astype(int),
        "poisson": lambda: rng.poisson(np.exp(0.5 * eta + 0.5)),
        "negative_binomial": lambda: rng.poisson(rng.gamma(3.0, np.exp(0.6 * eta + 1.0) / 3.0)),
    }[likelihood]()
    return X, y


def log_likelihood(likelihood, y, eta, theta):
    """Of predictors (..., n) and log nuisance parameters (...)."""
    if likelihood == "normal":
        each = -0.5 * ((y - eta) * np.exp(-theta)[..., None]) ** 2 - theta[..., None] - 0.5 * np.log(2 * np.pi)
    elif likelihood == "bernoulli":
        each = y * eta - np.logaddexp(0.0, eta)
    elif likelihood == "poisson":
        each = y * eta - np.exp(eta) - gammaln(y + 1)
    else:
        a, log_sum = np.exp(theta)[..., None], np.logaddexp(eta, theta[..., None])
        each = gammaln(y + a) - gammaln(a) - gammaln(y + 1) + a * (theta[..., None] - log_sum) + y * (eta - log_sum)
    return each.sum(axis=-1)


class Target:
    """The log density over standardised weights of the support, the bias, and the log of a nuisance parameter."""

    def __init__(self, likelihood, X, y, evidence, *, marginal=True):
        self.inside = np.flatnonzero(evidence["mean"].to_numpy())
        self.scale, shift = X.std(axis=0)[self.inside], X.mean(axis=0)[self.inside]
        self.Z, self.likelihood, self.y = (X[:, self.inside] - shift) / self.scale, likelihood, y
        self.k, self.marginal, self.lam = len(self.inside), marginal, float(evidence["lambda"])
        mean = evidence["mean"].to_numpy()[self.inside]
        theta = [np.log(float(evidence[name])) for name in ("sigma", "dispersion") if name in evidence]
        self.mode = np.array([*(mean * self.scale), float(evidence["bias"]) + mean @ shift, *theta])
        self.to_users = np.eye(self.k + 1)  # from standardised to the user's weights and bias
        self.to_users[: self.k, : self.k] = np.diag(1 / self.scale)
        self.to_users[self.k, : self.k] = -shift / self.scale

    def __call__(self, v):
        w, eta = v[..., : self.k], v[..., : self.k] @ self.Z.T + v[..., self.k, None]
        theta = v[..., self.k + 1] if v.shape[-1] > self.k + 1 else np.zeros(v.shape[:-1])
        R = np.abs(w).sum(axis=-1)
        prior = -self.k * np.log(R) if self.marginal else -self.lam * R
        return log_likelihood(self.likelihood, self.y, eta, theta) + prior

    def curvature(self, at, h=2e-4):
        """Minus the second derivatives, numerically."""
        steps = h * np.eye(len(at))
        corners = [self(at + s * steps[:, None] + t * steps[None]) for s, t in ((1, 1), (1, -1), (-1, 1), (-1, -1))]
        return -(corners[0] - corners[1] - corners[2] + corners[3]) / (4 * h**2)


def moments(evidence):
    """Mean and covariance of the weights kept and the bias, in the user's units, as the tree has them."""
    order = np.argsort(evidence["column"].to_numpy())
    factor = evidence["covariance_factor"].to_numpy()[order]
    return evidence["coordinate_mean"].to_numpy()[order], factor @ factor.T


@pytest.mark.parametrize("given", [{}, {"lam": 4.0}, {"method": "fuzzy"}], ids=["found", "given", "fuzzy"])
@every_likelihood
def test_the_curvature_is_that_of_the_criterion(likelihood, given):
    """With lambda found, the prior's own curvature is part of it; with lambda given a Laplace prior has none."""
    X, y = strong(likelihood)
    evidence = fit_path((X, y), likelihood=likelihood, **given)["evidence"]
    target = Target(likelihood, X, y, evidence, marginal="lam" not in given)
    assert target.k == 3
    says = "likelihood, lambda held" if given.get("lam") else "likelihood and marginal prior"
    assert evidence.attrs["curvature"] == says
    covariance = np.linalg.inv(target.curvature(target.mode))[: target.k + 1, : target.k + 1]
    truth = target.to_users @ covariance @ target.to_users.T
    mean, found = moments(evidence)
    sd = np.sqrt(np.diag(truth))
    assert_allclose(found / np.outer(sd, sd), truth / np.outer(sd, sd), atol=2e-5)
    assert_allclose(mean, target.to_users @ target.mode[: target.k + 1], rtol=1e-9)
    assert_allclose(evidence["sd"], sd[:3], rtol=1e-4)
    assert_allclose(evidence["bias_sd"], sd[3], rtol=1e-4)


def sampled(target, precision, count=20_000):
    """Draws from a t distribution around the mode, and their weights."""
    rng = np.random.default_rng(2)
    L, nu, m = np.linalg.cholesky(np.linalg.inv(precision)), 8.0, len(target.mode)
    z = rng.standard_normal((count, m)) * np.sqrt(nu / rng.chisquare(nu, count))[:, None]
    v = target.mode + z @ L.T
    log_density = np.concatenate([target(part) for part in np.array_split(v, 20)])
    log_weights = log_density + 0.5 * (nu + m) * np.log1p((z**2).sum(axis=1) / nu)
    weights = np.exp(log_weights - log_weights.max())
    return v, weights / weights.sum()


def first_correction(target, precision, h=1e-3):
    """How far the mean lies from the mode, to the first order that a normal approximation leaves out."""
    covariance = np.linalg.inv(precision)
    steps = h * np.eye(len(target.mode))
    slope = [
        np.sum(covariance * (target.curvature(target.mode + e) - target.curvature(target.mode - e))) / (2 * h)
        for e in steps
    ]
    return -0.5 * covariance @ np.array(slope)


@every_likelihood
def test_moments_are_those_of_the_exact_posterior(likelihood):
    """Importance sampling; what a normal approximation leaves out is one part in n of a weight, and known."""
    X, y = strong(likelihood)
    evidence = fit_path((X, y), likelihood=likelihood)["evidence"]
    target = Target(likelihood, X, y, evidence)
    precision = target.curvature(target.mode)
    v, weights = sampled(target, precision)
    size = 1 / np.sum(weights**2)
    assert size > 10_000
    own = v[:, :4] @ target.to_users.T
    mean = weights @ own
    exact_sd = np.sqrt(weights @ (own - mean) ** 2)
    found, covariance = moments(evidence)
    sd = np.sqrt(np.diag(covariance))
    corrected = found + target.to_users @ first_correction(target, precision)[:4]
    assert np.all(np.abs(mean - corrected) < (3 / np.sqrt(size) + 0.02) * exact_sd)
    assert np.all(np.abs(mean - found) < 0.25 * exact_sd)
    assert_allclose(sd, exact_sd, rtol=0.05)


@every_likelihood
def test_importance_weights_of_the_draws_are_tame(likelihood):
    """Of the marginal target over the density drawn from: nearly constant, and k-hat says so."""
    X, y = strong(likelihood)
    tree = fit_path((X, y), likelihood=likelihood, draws=500, chains=4, random_seed=4)
    ratio = (tree["sample_stats"]["log_p_marginal"] - tree["sample_stats"]["log_q"]).to_numpy().ravel()
    _, k = array_stats.psislw(-(ratio - ratio.max()))
    assert k < 0.7
    assert 1e-4 < ratio.std() < 0.5
    evidence = tree["evidence"]
    target = Target(likelihood, X, y, evidence)
    at_mode = target(target.mode) + gammaln(3) - 3 * np.log(2)
    assert_allclose(at_mode, evidence["log_likelihood_mode"] + evidence["log_prior"], rtol=1e-9)
    precision = target.curvature(target.mode)
    laplace = at_mode + 0.5 * len(precision) * np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(precision)[1]
    importance = np.log(np.mean(np.exp(ratio - ratio.max()))) + ratio.max()
    assert abs(importance - laplace) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", ["bernoulli", "normal"])
def test_nuts_of_the_proper_neighbour_agrees(likelihood):
    """Every column is in, so N is the number of columns for both; lambda's bounds are far outside where it lies."""
    X, y = strong(likelihood)
    evidence = fit_path((X, y), likelihood=likelihood)["evidence"]
    settings = {"draws": 1000, "chains": 4, "random_seed": 8, "progressbar": False, "sample_kwargs": {"cores": 1}}
    tree = bs.fit(
        "jeffreys_laplace",
        (X, y),
        likelihood=likelihood,
        method=bs.methods.NUTS(tune=1000, sampler="pymc"),
        bounds=(1e-3, 1e3),
        **settings,
    )
    posterior = tree["posterior"].to_dataset()
    lam = posterior["lambda"].to_numpy()
    assert 5e-3 < lam.min() < float(evidence["lambda"]) < lam.max() < 200
    target = Target(likelihood, X, y, evidence)
    shift = target.to_users @ first_correction(target, target.curvature(target.mode))[:4]
    names = [
        ("w", evidence["mean"], evidence["sd"], shift[:3]),
        ("bias", evidence["bias"], evidence["bias_sd"], shift[3]),
    ]
    for name, mean, sd, more in names:
        size = np.asarray(az.ess(posterior[[name]], method="mean")[name])
        drawn = posterior[name]
        gap = np.abs(drawn.mean(("chain", "draw")).to_numpy() - np.asarray(mean) - more)
        assert np.all(gap < (3 / np.sqrt(size) + 0.03) * np.asarray(sd))  # and the bias's prior, which is not flat
        assert_allclose(drawn.std(("chain", "draw")), sd, rtol=0.06)
