"""Named models by NUTS say what a Gibbs sampler says that shares nothing with them, in the user's units."""

import numpy as np
import pytest

import bayes_sparse as bs
from tests.reference.polya_gamma import ARD, Horseshoe, gibbs, largest_gap, moments_agree, simulate

BIAS_SD = 3.0


def simulated(n=100, M=5):
    """Columns in units of their own, with means of their own; three weights matter, two of them correlated."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((n, M))
    Z[:, 1] = 0.6 * Z[:, 0] + 0.8 * Z[:, 1]
    y = simulate(np.column_stack([Z, np.ones(n)]), np.array([1.5, -1.0, 0.4, *np.zeros(M - 3), 0.3]), rng)
    return Z * np.logspace(-1, 2, M) + np.arange(M), y.astype(int)


def standardised(X):
    return (X - X.mean(0)) / X.std(0)


def sampled(X, tree):
    """Draws of a tree for standardised columns, under the names that the Gibbs sampler has."""
    posterior = tree["posterior"].to_dataset()
    w, scale = posterior["w"].to_numpy(), X.std(0)
    draws = {"w": w * scale, "bias": posterior["bias"].to_numpy() + w @ X.mean(0)}
    if "tau" not in posterior:
        return draws | {"log_alpha": np.log(posterior["alpha"].to_numpy() / scale**2)}
    assert np.allclose(posterior["alpha"] / scale**2, (posterior["tau"] * posterior["lambda"]) ** -2.0)
    return draws | {f"log_{name}": np.log(posterior[name].to_numpy()) for name in ("lambda", "tau")}


def by_nuts(X, y, prior, relevant, **settings):
    same = {"method": "nuts", "slab": prior.slab, "bias_sd": BIAS_SD, "random_seed": 1, "progressbar": False}
    if isinstance(prior, ARD):
        tree = bs.fit("ard_gaussian", (X, y), hyper=(prior.a, prior.b), **same, **settings)
    else:
        tree = bs.fit("horseshoe", (X, y), relevant=relevant, **same, **settings)
    return sampled(X, tree)


def priors(n, M, relevant):
    """The default of `ard_gaussian` under NUTS, and a horseshoe."""
    return {"ard": ARD(1.0, 0.1, 2.5), "horseshoe": Horseshoe(relevant / (M - relevant) * 2 / np.sqrt(n), 2.5)}


@pytest.mark.parametrize("name", ["ard", "horseshoe"])
def test_a_small_set(name):
    # 32 or 34 numbers at 4.5 standard errors: a false alarm in 4,000 seeds.
    X, y = simulated()
    prior = priors(*X.shape, relevant=2)[name]
    nuts = by_nuts(X, y, prior, relevant=2)
    truth = gibbs(standardised(X), y, prior, bias_sd=BIAS_SD, draws=4000)
    assert set(nuts) == set(truth)
    assert moments_agree(nuts, truth), largest_gap(nuts, truth)
