"""More features than rows, truth known: what the default settings find, and whether their intervals are honest."""

import numpy as np
import pytest

import bayes_sparse as bs

HARD = {"correlated": {"correlation": 0.9}, "heavy tails": {"heavy_tails": True}, "weak": {"signal": 0.25}}


def judged(seed, **settings):
    data = bs.datasets.sparse_linear(n=200, p=2000, k=10, noise=0.5, n_test=2000, random_seed=seed, **settings)
    tree = bs.fit("ard_gaussian", (data.X, data.y), draws=0)
    chosen = tree["evidence"]["kept"].to_numpy()
    predicted = bs.predict(tree, data.X_test)
    mean, sd = predicted["mean"].to_numpy(), predicted["sd"].to_numpy()
    return {
        "missed": int(np.sum(data.relevant & ~chosen)),
        "false": int(np.sum(chosen & ~data.relevant)),
        "coverage": float(np.mean(np.abs(data.y_test - mean) < 1.96 * sd)),
        "rmse": float(np.sqrt(np.mean((mean - data.mean_test) ** 2))),
    }


@pytest.mark.parametrize("seed", range(10))
def test_all_true_features_are_found_with_honest_intervals(seed):
    got = judged(seed)
    assert got["missed"] == 0
    assert got["false"] <= 2
    assert 0.90 <= got["coverage"] <= 0.99
    assert got["rmse"] < 0.25


@pytest.mark.slow
@pytest.mark.parametrize("case", HARD)
@pytest.mark.parametrize("seed", range(10))
def test_intervals_stay_honest_when_it_is_hard(case, seed):
    got = judged(seed, **HARD[case])
    assert got["false"] <= 5
    assert 0.88 <= got["coverage"] <= 0.99


NOISE = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "bernoulli": lambda rng, n: rng.integers(0, 2, n),
    "poisson": lambda rng, n: rng.poisson(2.0, n),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:No basis function pays", "ignore:.*degrees of freedom", "ignore:.*variance")
@pytest.mark.parametrize("p", [2, 5, 10, 30, 100, 1000, 5000])
@pytest.mark.parametrize("likelihood", NOISE)
def test_chance_is_called_relevant_in_one_of_twenty_data_sets(likelihood, p):
    """And kept, for prediction, in about one of four. Two standard errors of 400 data sets are allowed."""
    relevant, kept, sets = 0, 0, 400
    for seed in range(sets):
        rng = np.random.default_rng([seed, p])
        X = rng.standard_normal((200, p))
        data = X, NOISE[likelihood](rng, 200)
        found = bs.fit("ard_gaussian", data, likelihood=likelihood, draws=0, progressbar=False)["evidence"]
        relevant, kept = relevant + bool(found["relevant"].any()), kept + bool(found["kept"].any())
    assert relevant / sets <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / sets)
