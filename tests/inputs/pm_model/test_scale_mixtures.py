"""Laplace, Student-t and Cauchy weights: their precisions, against quadrature."""

import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, optimize, stats

import bayes_sparse as bs
from bayes_sparse.inputs.pm_model import read_model
from bayes_sparse.inputs.pm_model.roles import Asked
from bayes_sparse.inputs.pm_model.scale_mixtures import mixing_of
from tests.support import refused

RNG = np.random.default_rng(3)
N, P, NOISE, SCALE = 60, 5, 0.5, 0.7
X = RNG.standard_normal((N, P))
TRUE = np.array([1.2, 0, 0, -0.9, 0])
Y = X @ TRUE + NOISE * RNG.standard_normal(N)
FEW = {"draws": 20, "random_seed": 1, "progressbar": False}

HEAVY = {
    "laplace": (lambda **k: pm.Laplace("w", 0, SCALE, **k), stats.laplace(scale=SCALE)),
    "student": (lambda **k: pm.StudentT("w", nu=3, mu=0, sigma=SCALE, **k), stats.t(3, scale=SCALE)),
    "cauchy": (lambda **k: pm.Cauchy("w", 0, SCALE, **k), stats.cauchy(scale=SCALE)),
}
heavy = pytest.mark.parametrize(("declare", "density"), HEAVY.values(), ids=HEAVY)


def model_of(declare, X=X, y=Y, **given):
    with pm.Model() as model:
        pm.Normal("y", X @ declare(shape=X.shape[1], **given), NOISE, observed=y)
    return model


def log_prior(alpha, a, b, inverse):
    """Of a precision, on the scale of its logarithm."""
    return a * np.log(alpha) - b * alpha - inverse / alpha


@heavy
def test_the_precision_integrated_out_leaves_the_declared_density(declare, density):
    model = model_of(declare)
    mixing = mixing_of(model, read_model(model, Asked(declared=True)).roles)

    def integral(weigh):
        return integrate.quad(lambda t: weigh(np.exp(t)) * np.exp(log_prior(np.exp(t), *mixing)), -40, 40, limit=500)[0]

    total = integral(lambda alpha: 1.0)
    for w in (0.1, 1.0, 4.0):
        mixed = integral(lambda alpha, w=w: stats.norm.pdf(w / SCALE, 0, alpha**-0.5) / SCALE) / total
        assert_allclose(mixed, density.pdf(w), rtol=1e-6)


@pytest.mark.parametrize("method", ["evidence", "em"])
@heavy
def test_the_declared_prior_of_one_weight_against_quadrature(declare, density, method):
    x, y = X[:20, 0], Y[:20]
    model = model_of(declare, x[:, None], y)
    mixing = mixing_of(model, read_model(model, Asked(declared=True)).roles)

    def log_evidence(alpha):
        def joint(w):
            return np.exp(stats.norm.logpdf(y, x * w, NOISE).sum() + 30) * stats.norm.pdf(w, 0, alpha**-0.5)

        return np.log(integrate.quad(joint, -6, 6, points=[0, 1], limit=300, epsabs=0)[0]) - 30

    found = optimize.minimize_scalar(
        lambda t: -log_evidence(np.exp(t)) - log_prior(SCALE**2 * np.exp(t), *mixing), bounds=(-4, 6), method="bounded"
    )
    evidence = bs.fit(model, method=method, hyper="declared", tolerance=1e-12, **FEW)["evidence"]
    assert_allclose(evidence["alpha"], [np.exp(found.x)], rtol=1e-4)  # of a maximum that is flat in its logarithm
    assert_allclose(evidence["log_evidence"], log_evidence(float(evidence["alpha"][0])), rtol=1e-8)


@heavy
def test_by_default_the_precisions_are_found_as_those_of_normal_weights(declare, density):
    def normal(**given):
        return pm.Normal("w", 0, pm.HalfCauchy("s", 1, shape=P), **given)

    trees = [bs.fit(model_of(kind), **FEW) for kind in (declare, normal)]
    assert_allclose(trees[0]["evidence"]["log_evidence"], trees[1]["evidence"]["log_evidence"], rtol=1e-9)
    assert_allclose(trees[0]["posterior"]["w"], trees[1]["posterior"]["w"], atol=1e-8)
    assert np.all(trees[0]["posterior"]["w"].std(("chain", "draw")).to_numpy()[TRUE == 0] == 0)


def test_one_scale_for_all_weights_is_integrated_out_where_that_is_asked_for():
    with pm.Model() as model:
        scale = pm.HalfCauchy("scale", 1)
        pm.Normal("y", X @ pm.Laplace("w", 0, scale, shape=P), NOISE, observed=Y)
    tree = bs.fit(model, prior="jeffreys", **FEW)
    w = tree["posterior"]["w"].mean(("chain", "draw")).to_numpy()
    assert tree["evidence"].attrs["method"] == "reweighted"
    assert_allclose(w[TRUE != 0], TRUE[TRUE != 0], atol=4 * NOISE / np.sqrt(N))
    assert_allclose(tree["posterior"]["scale"], 1.0)  # where PyMC starts it


def test_scaled_named_and_scalar_variables():
    with pm.Model() as model:
        tau = pm.HalfNormal("tau", 1)
        z = pm.Laplace("z", 0, 1, shape=P)
        w = pm.Deterministic("w", z * tau)
        slope, b = pm.StudentT("slope", nu=4, mu=0, sigma=1), pm.StudentT("b", nu=4, mu=0, sigma=10)
        pm.Normal("y", b + X @ w + slope * X[:, 0] ** 2, NOISE, observed=Y)
    read = read_model(model)
    assert [block.name for block in read.sparse] == ["w"]
    assert set(read.nuisance) == {"slope", "b"}
    read = read_model(model, Asked(("w", "slope")))
    assert [block.name for block in read.sparse] == ["w", "slope"]
    posterior = bs.fit(model, sparse=["slope"], **FEW)["posterior"].to_dataset()
    assert_allclose(posterior["tau"] * posterior["z"], posterior["w"], atol=1e-12)
    assert_allclose(posterior["tau"], 1.0)


def test_hyper_variables_are_held_where_they_begin():
    """Under the declared prior: as if the scale were known to be what PyMC starts it at."""

    def of(scale):
        return lambda **given: pm.StudentT("w", nu=3, mu=0, sigma=scale(), **given)

    trees = [
        bs.fit(model_of(of(scale)), hyper="declared", **FEW)
        for scale in (lambda: pm.HalfNormal("scale", 0.7), lambda: 0.7, lambda: np.full(P, 0.7))
    ]
    for tree in trees[1:]:
        assert_allclose(tree["posterior"]["w"], trees[0]["posterior"]["w"], rtol=1e-12)
    assert_allclose(trees[0]["posterior"]["scale"], 0.7)
    assert np.isfinite(trees[0]["evidence"]["alpha"]).all()  # nothing is pruned


def test_refusals():
    with pm.Model() as both:
        w, v = pm.Laplace("w", 0, 1, shape=P), pm.Cauchy("v", 0, 1, shape=P)
        pm.Normal("y", X @ w + X**2 @ v, NOISE, observed=Y)
    refused(lambda: bs.fit(both, hyper="declared"), "'w', 'v' differ in theirs")
    several = model_of(lambda **given: pm.StudentT("w", nu=np.arange(1, P + 1), mu=0, sigma=1, **given))
    refused(lambda: bs.fit(several, hyper="declared"), "degrees of freedom of 'w' differ")
    laplace = model_of(HEAVY["laplace"][0])
    refused(lambda: bs.fit(laplace, hyper="declared", method="sequential"), "'sequential' needs the flat hyper-prior")
    refused(lambda: bs.fit(laplace, hyper="declared", method="revm"), "'revm' needs the flat hyper-prior")
