"""More features than rows, truth known: what the default settings find, and whether their intervals are honest."""

import numpy as np
import pytest

import bayes_sparse as bs

HARD = {"correlated": {"correlation": 0.9}, "heavy tails": {"heavy_tails": True}, "weak": {"signal": 0.25}}


def judged(seed, **settings):
    data = bs.datasets.sparse_linear(n=200, p=2000, k=10, noise=0.5, n_test=2000, random_seed=seed, **settings)
    tree = bs.fit("ard_gaussian", (data.X, data.y), draws=0)
    chosen = tree["evidence"]["relevant"].to_numpy()
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


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:No basis function pays")
def test_pure_noise_is_rarely_taken_for_signal():
    """With 500 features and no signal at all, a chance find is the exception: at most 12 in 40 data sets."""
    finds = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(100, 500)), rng.normal(size=100)
        finds += bool(bs.fit("ard_gaussian", (X, y), draws=0)["evidence"]["relevant"].any())
    assert finds <= 12
