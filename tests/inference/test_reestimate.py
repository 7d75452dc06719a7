"""Terms are selected at a price and estimated without it."""

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import multivariate_normal

import bayes_sparse as bs
from bayes_sparse.inference.approximations import Exact
from bayes_sparse.inference.evidence.ascent import Ascent
from bayes_sparse.inference.evidence.reestimate import reestimate
from bayes_sparse.inference.evidence.state import Objective
from bayes_sparse.inputs.basis import linear
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.problem import Problem

N, M, NOISE = 60, 8, 0.7


def regression(seed=0, n=N, M=M, size=0.4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, M))
    return X, X[:, :3] @ (size * np.array([1.0, -1.5, 2.0])) + NOISE * rng.standard_normal(n)


def fitted(X, y, **settings):
    return bs.fit("ard_gaussian", (X, y), progressbar=False, **settings)["evidence"]


def test_shrinkage_is_that_of_the_score_alone_for_orthogonal_columns():
    """The noise is the same in both, so the scores are; a column's own optimum is known in closed form."""
    rng = np.random.default_rng(1)
    X = np.linalg.qr(rng.standard_normal((N, M)))[0] * np.sqrt(N)
    y = X[:, :3] @ np.array([0.4, -0.6, 0.8]) + NOISE * rng.standard_normal(N)
    same = {"basis": linear(bias=False, standardise=False), "smoothness": 2.0}
    free, priced = fitted(X, y, **same), fitted(X, y, reestimate=False, **same)
    assert (free.attrs["reestimated"], priced.attrs["reestimated"]) == (1, 0)
    assert free.attrs["smoothness"] == priced.attrs["smoothness"] == 2.0
    assert_allclose(free["sigma"], priced["sigma"], rtol=1e-12)
    kept = free["kept"].to_numpy()
    assert_array_equal(kept, priced["kept"])
    assert kept[:3].all()
    ols, z2 = X.T @ y / N, (X.T @ y) ** 2 / N / float(free["sigma"]) ** 2
    for evidence, price in ((free, 0.0), (priced, 2.0)):
        shrunk = ols * (1 - 1 / (z2 - 2 * price))
        assert_allclose(
            evidence["mean"].to_numpy()[kept], shrunk[kept], rtol=1e-4
        )  # climbs end 1e-6 nats below the top


@pytest.mark.parametrize("method", ["sequential", "mackay", "em"])
def test_the_evidence_of_the_terms_is_largest_at_the_noise_found(method):
    X, y = regression()
    same = {"basis": linear(bias=False, standardise=False), "method": method}
    evidence, priced = fitted(X, y, **same), fitted(X, y, reestimate=False, **same)
    kept = np.flatnonzero(evidence["kept"])
    assert_array_equal(kept, np.flatnonzero(priced["kept"]))
    sigma = float(priced["sigma"])
    Phi = X[:, kept]

    def lost(log_alpha):
        covariance = sigma**2 * np.eye(N) + (Phi / np.exp(log_alpha)) @ Phi.T
        return -multivariate_normal(np.zeros(N), covariance).logpdf(y)

    best = minimize(lost, np.log(priced["alpha"].to_numpy()[kept]), method="BFGS", options={"gtol": 1e-6})
    assert_allclose(evidence["log_evidence"], -best.fun, atol=1e-5)
    assert_allclose(np.log(evidence["alpha"].to_numpy()[kept]), best.x, atol=3e-3)
    # What is stored belongs together; the history is of the search.
    assert float(evidence["objective"]) == float(evidence["log_evidence"])
    assert_allclose(evidence["history"][-1], priced["objective"], rtol=1e-9)
    assert_allclose(evidence.attrs["degrees_of_freedom"], evidence["gamma"].sum(), rtol=1e-12)


def test_two_classes_end_at_a_top_of_their_own_evidence():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((200, 6))
    y = (rng.random(200) < expit(X[:, 0] - 0.8 * X[:, 1])).astype(int)
    evidence, priced = fitted(X, y), fitted(X, y, reestimate=False)
    assert evidence.attrs["reestimated"] == 1
    assert float(evidence["log_evidence"]) > float(priced["log_evidence"])
    kept = evidence["kept"].to_numpy()
    assert np.all(np.abs(evidence["mean"])[kept] > np.abs(priced["mean"])[kept])
    pure = fitted(X[:, kept], y, smoothness=0)  # the same terms, none at a price
    assert_allclose(evidence["mean"].to_numpy()[kept], pure["mean"], rtol=1e-3)


def never(eta, theta):
    raise AssertionError("a normal likelihood is not compiled")


def test_nothing_is_deleted_on_the_way():
    X, y = regression()
    problem = Problem(
        design=Design(X),
        y=y,
        free=np.ones(M, dtype=bool),
        fixed_precision=lambda _: np.empty(0),
        pointwise=never,
        offset=np.zeros(N),
        theta=np.array([np.log(NOISE)]),
        theta_bounds=np.array([[-20.0, 20.0]]),
        normal=True,
    )
    approximation, index = Exact(problem, Objective(2.0)), np.arange(M)
    start = approximation.at(index, np.ones(M), problem.theta)
    free, state = reestimate(problem, approximation, start)
    assert_array_equal(state.index, index)
    assert_array_equal(state.theta, start.theta)
    assert free.objective == Objective(0.0)
    assert state.objective > free.at(index, start.alpha, start.theta).objective
    pruned, _ = Ascent(free, problem.theta_bounds, 1e-6)(start, 200)
    assert len(pruned.index) < len(index)


def test_the_price_stays_with_more_columns_than_rows():
    X, y = regression(n=40, M=41, size=1.0)
    assert fitted(X, y).attrs["reestimated"] == 0
    assert fitted(X[:, :40], y).attrs["reestimated"] == 1


@pytest.mark.filterwarnings("ignore::bayes_sparse.FitWarning")  # they say so themselves
def test_the_price_stays_where_counts_are_too_scattered():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((200, 6))
    rate = np.exp(0.7 + 0.5 * X[:, 0])
    even, scattered = rng.poisson(rate), rng.poisson(rate * rng.gamma(1.0, 1.0, 200))
    assert fitted(X, even, likelihood="poisson").attrs["reestimated"] == 1
    assert fitted(X, scattered, likelihood="poisson").attrs["reestimated"] == 0
    # a likelihood that has a parameter for it may go on
    assert fitted(X, scattered, likelihood="negative_binomial").attrs["reestimated"] == 1
    # a weight is as many rows: these are no more scattered than they are alone
    assert fitted(X, even, likelihood="poisson", weights=np.full(200, 3.0)).attrs["reestimated"] == 1
    assert fitted(X, scattered, likelihood="poisson", weights=np.full(200, 3.0)).attrs["reestimated"] == 0


def test_the_price_stays_where_classes_separate_or_nothing_is_kept():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((60, 3))
    with pytest.warns(UserWarning, match="separate"):
        evidence = fitted(X, (X[:, 0] > 0).astype(int))
    assert evidence.attrs["reestimated"] == 0
    with pytest.warns(UserWarning, match="No basis function"):
        assert fitted(X, np.resize([1.0, -1.0, 0.5], 60), likelihood="normal").attrs["reestimated"] == 0


def test_no_price_nothing_to_undo():
    X, y = regression()
    assert fitted(X, y, smoothness=0).attrs["reestimated"] == 0
    assert fitted(X, y, method="mackay", hyper=(0.5, 0.05)).attrs["reestimated"] == 0
    three = np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))
    several = fitted(X, three, likelihood="categorical", smoothness=1.0)
    assert several.attrs["smoothness"] == 1.0
    assert several.attrs["reestimated"] == 0


def test_it_is_stored(tmp_path):
    X, y = regression()
    tree = bs.fit("ard_gaussian", (X, y), progressbar=False)
    tree.to_netcdf(tmp_path / "fit.nc", engine="h5netcdf")
    with xr.open_datatree(tmp_path / "fit.nc", engine="h5netcdf") as read:
        assert read["evidence"].attrs["reestimated"] == 1
        assert read["evidence"].attrs["smoothness"] > 0
