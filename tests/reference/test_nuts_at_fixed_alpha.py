"""The Gaussian posterior of an evidence fit against NUTS of the same declaration at the same hyper-parameters."""

import shutil

import arviz as az
import numpy as np
import pymc as pm
import pytest
from scipy.special import expit

import bayes_sparse as bs
from bayes_sparse.inputs.prepare import prepare

# numba takes most of a minute to compile a matrix product; a C++ compiler, where there is one, a few seconds.
COMPILING = {"compile_kwargs": {"mode": "CVM"}} if shutil.which("g++") else {}


def sampled(data, evidence, likelihood, basis, **model):
    """NUTS of the declaration with the precisions, and the noise if there is any, held at the evidence fit's values."""
    prepared = prepare(data, None, likelihood, basis, None, None, None)
    model = bs.models.ARDGaussian(**model).declare(prepared, (1.0, 1.0), centred=True)
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
            **COMPILING,
        )["posterior"].to_dataset()


def agree(evidence, posterior, bias=0.0):
    """Whether means and sds agree within Monte-Carlo error, plus ``bias`` posterior sds of approximation."""
    for name, mean, sd in (
        ("w", evidence["mean"].to_numpy(), evidence["sd"].to_numpy()),
        ("bias", float(evidence["bias"]), float(evidence["bias_sd"])),
    ):
        draws = posterior[name]
        ess, spread = (np.asarray(az.ess(posterior[[name]], method=of)[name]) for of in ("mean", "sd"))
        z = (draws.mean(("chain", "draw")).to_numpy() - mean) / sd
        # Four standard errors for a handful of numbers: a false alarm in a few thousand runs.
        if np.any(np.abs(z) > 4 / np.sqrt(ess) + bias):
            return False
        ratio = draws.std(("chain", "draw")).to_numpy() / sd
        if np.any(np.abs(np.log(ratio)) > 4 / np.sqrt(2 * spread) + bias):
            return False
    return True


@pytest.mark.slow
def test_a_normal_likelihood_is_exact():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = 1.0 + X @ [1.0, -0.6, 0.4] + 0.5 * rng.standard_normal(60)
    basis = bs.basis.linear(standardise=False)
    evidence = bs.fit("ard_gaussian", (X, y), basis=basis, smoothness=0, draws=0)["evidence"]
    assert bool(evidence["kept"].all())
    assert agree(evidence, sampled((X, y), evidence, "normal", basis))


@pytest.mark.slow
def test_bernoulli_with_plenty_of_data():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((800, 3))
    y = (rng.random(800) < expit(0.3 + X @ [1.0, -0.6, 0.4])).astype(int)
    basis = bs.basis.linear(standardise=False)
    evidence = bs.fit("ard_gaussian", (X, y), basis=basis, smoothness=0, draws=0)["evidence"]
    assert bool(evidence["kept"].all())
    # Mode and mean of a posterior from n observations differ by about 1 / sqrt(n) of its sd times a skewness below
    # one, its sd and curvature by about 1 / n.
    assert agree(evidence, sampled((X, y), evidence, "bernoulli", basis), bias=1.5 / np.sqrt(800))


@pytest.mark.slow
def test_expectation_propagation_with_few_data():
    """Where Laplace's method is half a sd off, moments that are matched are those of NUTS."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((40, 2))
    y = (rng.random(40) < expit(0.3 + X @ [2.5, -2.0])).astype(int)
    basis = bs.basis.linear(standardise=False)
    asked = {"basis": basis, "smoothness": 0, "draws": 0, "slab": None}
    evidence = bs.fit("ard_gaussian", (X, y), approximation="ep", **asked)["evidence"]
    assert bool(evidence["kept"].all())
    posterior = sampled((X, y), evidence, "bernoulli", basis, slab=None)
    laplace = bs.log_evidence_op((X, y), basis=basis).state(np.log(evidence["alpha"].to_numpy()), np.empty(0))
    gap = (posterior["w"].mean(("chain", "draw")).to_numpy() - laplace.mean[:2]) / posterior["w"].std(("chain", "draw"))
    assert np.abs(gap).max() > 0.3
    # A skewed posterior has moments of its own: expectation propagation leaves a twentieth of a sd.
    assert agree(evidence, posterior, bias=0.05)
