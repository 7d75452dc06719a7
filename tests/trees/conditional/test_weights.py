"""p(w | alpha*, data) after an evidence method: PyMC's own density with alpha and the nuisance parameters held."""

import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_allclose

import bayes_sparse as bs
from bayes_sparse.trees.description import moments_of
from tests.support import UNCOMPILED

from .fits import OFFSET, RNG, TARGETS, WEIGHTS, X, fitted, points, slopes, standardised_draws

HYPER = (0.5, 0.005)
ROUNDED = 1e-8  # PyMC holds the 2 pi of a normal density in single precision
GIVEN = {"weights": WEIGHTS, "offset": OFFSET, "keep": ["x2"]}
CASES = [
    *((likelihood, {}) for likelihood in TARGETS if likelihood != "categorical"),
    *((likelihood, GIVEN) for likelihood in TARGETS if likelihood != "categorical"),
]


def by_pymc(declaration, prepared, found):
    """Log density of the columns kept: those pruned have weight 0 and precision 1, and their prior is taken off."""
    state, M = found.outcome.state, found.labelled.M
    alpha = np.ones(M)
    kept = state.index < M
    alpha[state.index[kept]] = state.alpha[kept]
    held = {"alpha": alpha, **found.labelled.unpack(state.theta)}
    logp = pm.do(declaration, held).compile_logp(mode=UNCOMPILED)
    pruned = -0.5 * np.log(2 * np.pi) * (M - kept.sum())

    def density(x):
        w = np.zeros(M)
        w[state.index[kept]] = x[kept]
        bias = np.zeros(found.labelled.fixed[0].shape)
        bias.reshape(-1)[state.index[~kept] - M] = x[~kept]
        return float(logp({"w": w, "bias": bias})) - pruned

    return density


def agrees(declaration, prepared, found):
    density, truth = found.density, by_pymc(declaration, prepared, found)
    for x in points(density):
        value, gradient = density.evaluate(x)
        assert_allclose(value, truth(x), rtol=ROUNDED)
        assert_allclose(gradient, slopes(density.evaluate, x), rtol=1e-5, atol=1e-5)
    stored_at_its_draws(prepared, found, density)


def stored_at_its_draws(prepared, found, density):
    """The evidence tree's own log target is the same function."""
    tree, state = found.tree(3, 2, np.random.default_rng(1)), found.outcome.state
    both = np.concatenate(standardised_draws(prepared, tree), axis=1)[:, state.index]
    values = [density.evaluate(x)[0] for x in both]
    assert_allclose(values, tree["sample_stats"]["log_p"].to_numpy().ravel(), rtol=1e-9)


@pytest.mark.parametrize(("likelihood", "given"), CASES)
def test_one_predictor(likelihood, given):
    model = bs.models.ARDGaussian(slab=None)
    prepared, found = fitted(model, (X, TARGETS[likelihood]), likelihood, **given)
    assert 2 in found.outcome.state.index or not given
    agrees(model.declare(prepared, HYPER, centred=True), prepared, found)


def test_several_classes():
    model = bs.models.StudentMultinomial(slab=None)
    prepared, found = fitted(model, (X, TARGETS["categorical"]), "categorical", hyper=(1.0, 0.1), weights=WEIGHTS)
    agrees(model.declare(prepared, HYPER, centred=True), prepared, found)


def test_features_of_each_class_s_own():
    own = {label: RNG.standard_normal((len(X), 2)) + X[:, [label]] for label in range(3)}
    model = bs.models.StudentMultinomial(slab=None)
    prepared, found = fitted(model, (own, TARGETS["categorical"]), "categorical", hyper=(1.0, 0.1))
    agrees(model.declare(prepared, HYPER, centred=True), prepared, found)


def test_its_normal_is_the_evidence_fit_s():
    _, found = fitted(bs.models.ARDGaussian(), (X, TARGETS["normal"]), "normal")
    evidence = found.tree(0, 1, np.random.default_rng(0))["evidence"]
    x = found.density.x(np.random.default_rng(2).standard_normal((400_000, 3)))
    mean, factor = moments_of(found.description, x)
    covariance = evidence["covariance_factor"].to_numpy() @ evidence["covariance_factor"].to_numpy().T
    sd = np.sqrt(np.diag(covariance))
    assert_allclose(mean / sd, evidence["coordinate_mean"] / sd, atol=4 / np.sqrt(400_000))
    assert_allclose(factor @ factor.T / np.outer(sd, sd), covariance / np.outer(sd, sd), atol=4 * np.sqrt(2 / 400_000))


def test_models_of_one_class_each_have_no_joint_posterior():
    with pytest.raises(ValueError, match=r"^method='one_vs_rest' fits one model a class[^.]*\.$"):
        bs.fit(
            "student_multinomial",
            (X, TARGETS["categorical"]),
            method="nuts",
            start="one_vs_rest",
            condition="alpha",
            sampler="pymc",
            draws=4,
            chains=1,
            tune=1,
            progressbar=False,
        )
