"""Several solutions, and none that is exact: what `reweighted` says of a path that has them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.support import fit_path as fit

from .l1_by_hand import assert_minimum, log_density, predictor, standardised


def several(seed):
    """Two columns that are nearly the same: one may stand for both, and there are several solutions."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 6))
    X[:, 1] += 0.9 * X[:, 0]
    return X, (X[:, 0] + 0.4 * X[:, 2] + rng.logistic(size=60) > 0).astype(int)


def test_a_jump_is_where_the_count_passes_lambda_R(messages):
    X, y = several(8)
    evidence = fit((X, y))["evidence"]
    lam = float(evidence["lambda"])
    assert evidence.attrs["status"] == "jump"
    assert [message for message in messages if "jumps past it" in message and f"{lam:.4g}" in message]
    assert_minimum(evidence, "bernoulli", y, X=X, Z=standardised(X))
    weaker, stronger = (fit((X, y), lam=lam * (1 + h))["evidence"] for h in (-1e-6, 1e-6))
    assert weaker["N"] == stronger["N"] + 1 == evidence["N"] + 1
    assert weaker["N"] > weaker["lambda"] * weaker["R"]
    assert stronger["N"] < stronger["lambda"] * stronger["R"]


@pytest.mark.parametrize("seed", [106, 113])
def test_all_points_hold_the_one_found_and_each_is_a_solution(seed):
    X, y = several(seed)
    alone, evidence = fit((X, y))["evidence"], fit((X, y), all_points=True)["evidence"]
    lam, count, R = (evidence[f"solution_{name}"].to_numpy() for name in ("lambda", "N", "R"))
    assert len(lam) > 2
    assert np.all(np.diff(lam) > 0)
    assert_allclose(lam[0], alone["lambda"], rtol=1e-8)  # a weak start is drawn to the weakest
    for name in ("lambda", "N", "R", "r", "criterion", "log_prior"):
        assert float(evidence[f"solution_{name}"][0]) == float(evidence[name])
    assert_array_equal(evidence["solution_w"][0], evidence["mean"])
    for i, w in enumerate(evidence["solution_w"].to_numpy()):
        at = fit((X, y), lam=lam[i])["evidence"]  # both sides of a jump have the same weights
        assert_allclose(at["mean"], w, atol=1e-6)
        assert_allclose([np.count_nonzero(w), np.abs(w * X.std(axis=0)).sum()], [count[i], R[i]], rtol=1e-10)
        log_likelihood = log_density("bernoulli", y, predictor(at, X), []).sum()
        assert_allclose(evidence["solution_criterion"][i], -log_likelihood + count[i] * np.log(R[i]), rtol=1e-6)
        if evidence["solution_status"][i] == "fixed-point":
            assert_allclose(lam[i] * R[i], count[i], rtol=1e-8)
            assert evidence["solution_r"][i] < 1


@pytest.mark.parametrize("seed", [103, 106, 108])
def test_all_points_are_all_turns_of_the_path(seed):
    """A scan of the path by fits at given lambdas, 5% apart, meets as many turns."""
    X, y = several(seed)
    top = np.abs(standardised(X).T @ (y - y.mean())).max()
    seen = [fit((X, y), lam=lam)["evidence"] for lam in np.geomspace(0.99 * top, 0.1 * top, 60)]
    grows = np.array([float(e["N"] - e["lambda"] * e["R"]) for e in seen]) > 0
    found = fit((X, y), all_points=True)["evidence"]["solution_lambda"]
    assert np.sum(found > 0.1 * top) == np.sum(grows[1:] & ~grows[:-1])


@pytest.mark.parametrize(("columns", "seed"), [(1, 50), (1, 58), (1, 0), (4, 9), (4, 19), (4, 50)])
def test_an_exact_solution_is_not_called_a_jump(columns, seed):
    """With a dispersion to be found as well, whose rounding errors must not hide that lambda R = N."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, columns))
    data = (X, rng.poisson(rng.gamma(2.0, np.exp(0.5 + X[:, 0]) / 2.0)))
    evidence = fit(data, likelihood="negative_binomial")["evidence"]
    exact = abs(float(evidence["lambda"] * evidence["R"] / evidence["N"]) - 1) < 1e-6
    assert evidence.attrs["status"] == ("fixed-point" if exact else "jump")


@pytest.mark.parametrize(("seed", "rows", "columns"), [(80, 141, 11), (215, 138, 13), (250, 95, 5), (350, 90, 13)])
def test_a_solution_beside_a_point_of_the_way_is_not_passed_by(seed, rows, columns):
    """A rough look and a closer one at the end that two intervals share may see the gap with different signs."""
    rng = np.random.default_rng(seed)
    assert (rng.integers(60, 150), rng.integers(3, 15)) == (rows, columns)
    X, w = rng.standard_normal((rows, columns)), rng.standard_normal(columns)
    y = (rng.random(rows) < 1 / (1 + np.exp(-X @ w))).astype(int)
    evidence = fit((X, y))["evidence"]
    assert evidence.attrs["status"] == "fixed-point"
    assert_allclose(evidence["lambda"] * evidence["R"], evidence["N"], rtol=1e-8)
    assert_minimum(evidence, "bernoulli", y, X=X, Z=standardised(X))
