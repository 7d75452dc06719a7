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


def compared(X, y, name, relevant, length, *, telling=True, **settings):
    """Whether the two samplers agree, and that they would not if the prior of one of them were another."""
    n, M = X.shape
    tau_0 = relevant / (M - relevant) * 2 / np.sqrt(n)
    # The default of `ard_gaussian` under NUTS, and a horseshoe; beside each one that is a little different.
    prior, other = {
        "ard": (ARD(1.0, 0.1, 2.5), ARD(1.0, 0.2, 2.5)),
        "horseshoe": (Horseshoe(tau_0, 2.5), Horseshoe(2.5 * tau_0, 2.5)),
    }[name]
    nuts = by_nuts(X, y, prior, relevant, **settings)
    truth = gibbs(standardised(X), y, prior, bias_sd=BIAS_SD, draws=length)
    assert set(nuts) == set(truth)
    assert moments_agree(nuts, truth), largest_gap(nuts, truth)
    if telling:
        assert not moments_agree(nuts, gibbs(standardised(X), y, other, bias_sd=BIAS_SD, draws=length))


@pytest.mark.parametrize("name", ["ard", pytest.param("horseshoe", marks=pytest.mark.slow)])
def test_a_small_set(name):
    # 22 or 24 numbers at 4.5 standard errors: a false alarm in 6,000 seeds.
    compared(*simulated(), name, relevant=2, length=2000, chains=2, draws=700, retry=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ard", "horseshoe"])
@pytest.mark.parametrize("set_name", ["heart_statlog", "wdbc"])
def test_a_real_set(set_name, name):
    # Up to 124 numbers a test: a false alarm in 1,000 seeds. WDBC has 30 columns, many of which say the same.
    try:
        frame = bs.datasets.load(set_name, download=False)
    except FileNotFoundError:
        pytest.skip(f"{set_name} is not on this machine, and a test fetches nothing")
    X, y = frame.drop(columns="target").to_numpy(float), frame["target"].to_numpy()
    # The data of WDBC tell the scale of a horseshoe: one ten times as wide has the same posterior to Monte-Carlo error.
    telling = (set_name, name) != ("wdbc", "horseshoe")
    compared(X, (y == np.unique(y)[1]).astype(int), name, relevant=5, length=10_000, telling=telling)
