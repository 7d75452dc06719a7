"""The Gaussian posterior of an evidence fit against NUTS of the same declaration at the same hyper-parameters."""

import arviz as az
import numpy as np
import pymc as pm
import pytest
from pytensor.compile.mode import Mode
from scipy.special import expit

import bayes_sparse as bs
from bayes_sparse.prepare import prepare

# Models this small are quicker without compiling; the rewrites keep the log-density stable far out.
PLAIN = Mode(linker="py", optimizer="fast_run").excluding("fusion", "BlasOpt")


def sampled(data, evidence, likelihood, basis):
    """NUTS of the declaration with the precisions, and the noise if there is any, held at the evidence fit's values."""
    prepared = prepare(data, None, likelihood, basis, None, None, None)
    model = bs.models.ARDGaussian().declare(prepared, (1.0, 1.0), centred=True)
    held = {"alpha": evidence["alpha"].to_numpy()}
    if "sigma" in evidence:
        held["sigma"] = float(evidence["sigma"])
    with pm.do(model, held):
        return pm.sample(
            draws=600,
            tune=300,
            chains=2,
            cores=1,
            random_seed=1,
            progressbar=False,
            nuts_sampler="pymc",
            compile_kwargs={"mode": PLAIN},
        )["posterior"]


def agree(evidence, posterior, bias=0.0):
    """Means and sds within the Monte-Carlo error of the draws, plus ``bias`` posterior sds of approximation."""
    for name, mean, sd in (
        ("w", evidence["mean"].to_numpy(), evidence["sd"].to_numpy()),
        ("bias", float(evidence["bias"]), float(evidence["bias_sd"])),
    ):
        draws = posterior[name]
        error = np.asarray(az.mcse(draws, method="mean")[name] if False else draws.std(("chain", "draw")).to_numpy())
        ess = np.asarray(az.ess(posterior[[name]])[name])
        z = (draws.mean(("chain", "draw")).to_numpy() - mean) / sd
        # Four standard errors for a handful of numbers: a false alarm in a few thousand runs.
        assert np.all(np.abs(z) < 4 / np.sqrt(ess) + bias)
        spread = np.asarray(az.ess(posterior[[name]], method="sd")[name])
        assert np.all(np.abs(np.log(error / sd)) < 4 / np.sqrt(2 * spread) + bias)
    return True


@pytest.mark.filterwarnings("ignore:The number of samples is too small:UserWarning")
def test_a_normal_likelihood_is_exact():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = 1.0 + X @ [1.0, -0.6, 0.4] + 0.5 * rng.standard_normal(60)
    basis = bs.basis.linear(standardise=False)
    evidence = bs.fit("ard_gaussian", (X, y), basis=basis, smoothness=0, draws=0)["evidence"]
    assert bool(evidence["relevant"].all())
    assert agree(evidence, sampled((X, y), evidence, "normal", basis))


def test_bernoulli_with_plenty_of_data():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((800, 3))
    y = (rng.random(800) < expit(0.3 + X @ [1.0, -0.6, 0.4])).astype(int)
    basis = bs.basis.linear(standardise=False)
    evidence = bs.fit("ard_gaussian", (X, y), basis=basis, smoothness=0, draws=0)["evidence"]
    assert bool(evidence["relevant"].all())
    # Mode and mean of a posterior from n observations differ by about 1 / sqrt(n) of its sd times a skewness below
    # one, its sd and curvature by about 1 / n.
    assert agree(evidence, sampled((X, y), evidence, "bernoulli", basis), bias=1.5 / np.sqrt(800))
