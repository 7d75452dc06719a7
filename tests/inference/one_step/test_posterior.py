"""Posteriors over directions and fixed weights: moments, draws, density; the quadratic model's against NUTS."""

import shutil

import arviz as az
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, logsumexp
from scipy.stats import multivariate_normal

from bayes_sparse.inference.one_step.eigen import eigen_coordinates
from bayes_sparse.inference.one_step.expansion import expand
from bayes_sparse.inference.priors import Gaussian, Laplace
from bayes_sparse.methods.revm import REVM
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.problem import Problem
from bayes_sparse.problem.surfaces import Linear

SIGMA = 0.7
PRIORS = {"gaussian": Gaussian(), "laplace": Laplace()}
FIXED = np.array([0.04, 0.3])
# numba takes most of a minute to compile a matrix product; a C++ compiler, where there is one, a few seconds.
COMPILING = {"compile_kwargs": {"mode": "CVM"}} if shutil.which("g++") else {}


def make(name, n=30, M=4, q=2, seed=0, effect=0.8):
    """Normal noise of known size or two classes; q fixed columns."""
    rng = np.random.default_rng(seed)
    Phi = rng.standard_normal((n, M)) * rng.uniform(0.3, 1, M)
    Z = np.column_stack([np.ones(n), rng.standard_normal(n) + Phi[:, 0]])[:, :q]
    eta = effect * Phi[:, :2].sum(axis=1) + 0.5 * Z.sum(axis=1)
    y = eta + SIGMA * rng.standard_normal(n) if name == "normal" else (rng.random(n) < expit(eta)).astype(float)

    def bernoulli(eta, theta):
        p = expit(eta)
        return y * eta - np.logaddexp(0, eta), y - p, -p * (1 - p), np.empty(0)

    problem = Problem(
        design=Design(Phi, extra=Z),
        y=y,
        free=np.arange(M + q) < M,
        fixed_precision=FIXED[:q],
        pointwise=bernoulli,
        offset=np.zeros(n),
        normal=name == "normal",
        sigma=SIGMA,
    )
    return Linear(problem, scale_free=name != "normal")


def run(surface, prior, expansion, posterior):
    return REVM(posterior=posterior)(surface, PRIORS[prior], expansion, 0.0, lambda *_: None)


def log_target(surface, out, v):
    """Log-likelihood plus log prior of every draw, normalised."""
    k = int(out.kept.sum())
    narrow = surface.along(out.loadings)
    likelihood = narrow.log_densities(v, np.empty((len(v), 0))).sum(axis=1)
    fixed = multivariate_normal.logpdf(v[:, k:], cov=np.diag(1 / surface.fixed_precision(np.empty(0))))
    return likelihood + out.prior.log_prior(v[:, :k], out.alpha[out.kept]).sum(axis=1) + fixed


@pytest.mark.parametrize("posterior", ["mode", "quadratic"])
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("name", ["normal", "bernoulli"])
def test_moments_are_those_of_the_draws(name, prior, posterior):
    out = run(make(name), prior, "ridge", posterior)
    count, of = 40_000, out.posterior
    v, _ = of.draw(count, np.random.default_rng(1))
    C = of.factor @ of.factor.T
    assert v.shape == (count, len(C)) == (count, out.kept.sum() + 2)
    sd = np.sqrt(C.diagonal())
    # Five standard errors; those of a covariance are at most sqrt(3) of these for tails up to a Laplace distribution's.
    assert np.all(np.abs(v.mean(axis=0) - of.mean) < 5 * sd / np.sqrt(count))
    assert np.all(np.abs(np.cov(v.T) - C) < 5 * np.sqrt(3) * np.outer(sd, sd) / np.sqrt(count))
    assert np.abs(C[-2:, :-2]).max() > 0.01  # fixed weights are not independent of the directions


@pytest.mark.parametrize("posterior", ["mode", "quadratic"])
@pytest.mark.parametrize("prior", PRIORS)
def test_every_draw_satisfies_bayes_rule_exactly(prior, posterior):
    """Of a normal likelihood, expanded at zero: prior times likelihood over density is the evidence, at any point."""
    for seed in range(3):
        surface = make("normal", seed=seed)
        out = run(surface, prior, "zero", posterior)
        assert out.kept.any()
        v, log_q = out.posterior.draw(200, np.random.default_rng(seed))
        assert_allclose(log_target(surface, out, v) - log_q, out.log_evidence, rtol=1e-9)


def importance(log_weights):
    """Log of their mean, and its standard error."""
    log_mean = logsumexp(log_weights) - np.log(len(log_weights))
    return log_mean, np.std(np.exp(log_weights - log_mean)) / np.sqrt(len(log_weights))


@pytest.mark.parametrize("prior", PRIORS)
def test_the_density_is_normalised_where_the_posterior_is_not_exact(prior):
    """Weights of draws average to the evidence, which a normal likelihood has in closed form for any alpha."""
    surface = make("normal", seed=1)
    out = run(surface, prior, "ridge", "quadratic")
    exact = eigen_coordinates(expand(surface, "zero", 1e-2, lambda *_: None), FIXED)
    truth = exact.height + out.prior.log_integral(exact.h, exact.u, out.alpha).sum()
    v, log_q = out.posterior.draw(20_000, np.random.default_rng(2))
    estimate, error = importance(log_target(surface, out, v) - log_q)
    assert error < 0.02
    assert abs(estimate - truth) < 5 * error
    assert np.ptp(log_target(surface, out, v) - log_q) > 1e-3


def nodes(low, high):
    """Gauss-Legendre."""
    x, weights = np.polynomial.legendre.leggauss(60)
    return 0.5 * (high - low) * x + 0.5 * (low + high), 0.5 * (high - low) * weights


@pytest.mark.parametrize("posterior", ["mode", "quadratic"])
@pytest.mark.parametrize("prior", PRIORS)
def test_importance_sampling_finds_the_evidence_of_two_classes(prior, posterior):
    """One direction and a bias, against a double integral."""
    surface = make("bernoulli", M=1, q=1, seed=4, effect=2.0)
    out = run(surface, prior, "ridge", posterior)
    assert out.kept.all()
    sd = np.sqrt(np.sum(out.posterior.factor**2, axis=1))
    low, high = out.posterior.mean - 9 * sd, out.posterior.mean + 9 * sd
    left, a = nodes(min(low[0], 0.0), 0.0)  # the prior may have a corner at zero
    right, b = nodes(max(low[0], 0.0), high[0])
    x, c = nodes(low[1], high[1])
    grid = np.stack(np.meshgrid(np.append(left, right), x, indexing="ij"), axis=-1)
    density = log_target(surface, out, grid.reshape(-1, 2)).reshape(grid.shape[:2])
    truth = logsumexp(density, b=np.outer(np.append(a, b), c))
    v, log_q = out.posterior.draw(20_000, np.random.default_rng(3))
    estimate, error = importance(log_target(surface, out, v) - log_q)
    assert error < 0.02
    assert abs(estimate - truth) < 5 * error


def test_a_normal_posterior_is_scipys():
    out = run(make("bernoulli"), "gaussian", "ridge", "mode")
    of = out.posterior
    v, log_q = of.draw(50, np.random.default_rng(4))
    assert_allclose(log_q, multivariate_normal.logpdf(v, of.mean, of.factor @ of.factor.T), rtol=1e-9)
    H = out.peak.look.curvature() + np.diag(np.append(out.alpha[out.kept], FIXED))
    assert_allclose(of.factor @ of.factor.T, np.linalg.inv(H), rtol=1e-8, atol=1e-12)
    assert np.array_equal(of.mean, out.peak.v)


def test_a_normal_posterior_of_the_quadratic_in_closed_form():
    """``(H + A)^-1`` over all weights confined to the directions kept, with the slope along the fixed ones."""
    surface = make("bernoulli", seed=3)
    out = run(surface, "gaussian", "ridge", "quadratic")
    quadratic, k = out.quadratic, int(out.kept.sum())
    whole = np.block([[out.loadings, np.zeros((k, 2))], [np.zeros((2, 4)), np.eye(2)]])
    P = whole @ quadratic.H @ whole.T + np.diag(np.append(out.alpha[out.kept], FIXED))
    slope = np.append(np.zeros(4), FIXED * quadratic.v[4:])
    mean = np.linalg.solve(P, whole @ (quadratic.H @ quadratic.v + slope))
    assert_allclose(out.posterior.mean, mean, rtol=1e-8, atol=1e-10)
    assert_allclose(out.posterior.factor @ out.posterior.factor.T, np.linalg.inv(P), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("posterior", ["mode", "quadratic"])
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("q", [0, 1])
def test_nothing_kept(q, prior, posterior):
    surface = make("normal", M=1, q=q, effect=0.0, seed=3)
    out = run(surface, prior, "zero", posterior)
    assert not out.kept.any()
    v, log_q = out.posterior.draw(7, np.random.default_rng(5))
    assert (v.shape, log_q.shape, out.posterior.factor.shape) == ((7, q), (7,), (q, q))
    assert_allclose(out.log_evidence_mode, out.log_evidence, rtol=1e-10)


def test_the_quadratic_model_sampled_by_nuts():
    """Laplace priors on three directions and a bias, the likelihood replaced by its quadratic, declared in PyMC."""
    surface = make("bernoulli", n=60, M=3, q=1, seed=4, effect=1.5)
    out = run(surface, "laplace", "ridge", "quadratic")
    assert out.kept.all()
    quadratic = out.quadratic
    whole = np.block([[out.loadings, np.zeros((3, 1))], [np.zeros((1, 3)), np.ones((1, 1))]])
    H, slope = whole @ quadratic.H @ whole.T, np.append(np.zeros(3), FIXED[:1] * quadratic.v[3:])
    with pm.Model():
        u = pm.Laplace("u", 0.0, 2 / out.alpha, shape=3)
        bias = pm.Normal("bias", 0.0, FIXED[0] ** -0.5, shape=1)
        step = pt.concatenate([u, bias]) - whole @ quadratic.v
        pm.Potential("likelihood", pt.sum(slope * step) - 0.5 * pt.sum(H * step[:, None] * step[None, :]))
        tree = pm.sample(
            draws=1000, tune=400, chains=2, cores=1, random_seed=1, progressbar=False, nuts_sampler="pymc", **COMPILING
        )
    sampled = tree["posterior"].to_dataset()
    mean, sd = out.posterior.mean, np.sqrt(np.sum(out.posterior.factor**2, axis=1))
    draws = np.concatenate([sampled["u"], sampled["bias"]], axis=-1)
    ess, spread = (
        np.concatenate([az.ess(sampled, method=of)[name] for name in ("u", "bias")]) for of in ("mean", "sd")
    )
    # Four standard errors for eight numbers: a false alarm in a few thousand seeds.
    assert np.all(np.abs(draws.mean(axis=(0, 1)) - mean) < 4 * sd / np.sqrt(ess))
    assert np.all(np.abs(np.log(draws.std(axis=(0, 1)) / sd)) < 4 / np.sqrt(2 * spread))
    assert ess.min() > 400
