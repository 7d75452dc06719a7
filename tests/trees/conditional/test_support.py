"""p(w, theta | lambda*, data) after a method on the L1 path, written out with scipy's densities."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import expit

import bayes_sparse as bs

from .fits import TARGETS, WEIGHTS, ZW, X, fitted, points, slopes, standardised_draws

pytestmark = pytest.mark.quick


def truth_of(found, likelihood, sd, weights=1.0):
    """Laplace on the weights that are priced, a normal or flat bias, the nuisance parameter as it comes."""
    point, y = found.outcome.point, TARGETS[likelihood]
    Phi, k = np.column_stack([ZW, np.ones(len(ZW))])[:, point.index], len(point.index)
    bias = point.index == 3

    def density(x):
        w, eta = x[:k], Phi @ x[:k]
        if likelihood == "normal":
            terms = stats.norm.logpdf(y, eta, np.exp(x[k]))
        elif likelihood == "poisson":
            terms = stats.poisson.logpmf(y, np.exp(eta))
        else:
            terms = stats.bernoulli.logpmf(y, expit(eta))
        value = np.sum(weights * terms) + stats.laplace.logpdf(w[~bias], scale=1 / point.lam).sum()
        return value if sd is None else value + stats.norm.logpdf(w[bias], scale=sd).sum()

    return density


@pytest.mark.parametrize("likelihood", ["normal", "bernoulli", "poisson"])
@pytest.mark.parametrize("sd", [None, 3.0])
def test_the_density(likelihood, sd):
    model = bs.models.JeffreysLaplace(bias_sd=sd)
    data = (X, TARGETS[likelihood])
    prepared, found = fitted(model, data, likelihood, smoothness="auto", weights=WEIGHTS)
    density, truth = found.density, truth_of(found, likelihood, sd, WEIGHTS)
    assert found.outcome.point.N > 0
    for x in points(density):
        value, gradient = density.evaluate(x)
        assert_allclose(value, truth(x), rtol=1e-10)
        assert_allclose(gradient, slopes(density.evaluate, x), rtol=1e-5, atol=1e-4)
    tree = found.tree(3, 2, np.random.default_rng(1))
    both = np.concatenate(standardised_draws(prepared, tree), axis=1)[:, found.outcome.point.index]
    if likelihood == "normal":
        both = np.column_stack([both, np.log(tree["posterior"]["sigma"].to_numpy().ravel())])
    values = [density.evaluate(x)[0] for x in both]
    assert_allclose(values, tree["sample_stats"]["log_p"].to_numpy().ravel(), rtol=1e-9)


def test_nuisance_parameters_stay_within_their_bounds():
    _, found = fitted(bs.models.JeffreysLaplace(), (X, TARGETS["normal"]), "normal", smoothness="auto")
    density = found.density
    low, high = found.labelled.problem.theta_bounds[0]
    for theta in (low - 0.01, high + 0.01):
        assert density.evaluate(np.append(density.mean[:-1], theta))[0] == -np.inf
    assert np.isfinite(density.evaluate(density.mean)[0])
