"""The honesty study, small: the data are what they are said to be, and what is counted is counted right."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import bayes_sparse as bs
from studies import honesty as study
from studies import regimes
from studies.honesty import MEASURES, honesty, judged, judged_rows, summary, write_honesty
from studies.regimes import REGIMES, Regime, sample

FEW = ("30 x 20", "bernoulli", "poisson")


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(study, "REGIMES", {name: REGIMES[name] for name in FEW})


def test_every_kind_has_as_many_true_weights_of_the_size_it_says():
    assert len(REGIMES) == 13
    for regime in REGIMES.values():
        data = sample(regime, [3])
        assert data.X.shape == (regime.rows, regime.columns)
        sizes = np.abs(data.weights[data.weights != 0])
        assert len(sizes) == regime.true
        assert np.all((sizes >= regime.size / 2) & (sizes <= 1.5 * regime.size))
        assert np.isfinite(data.oracle).all()


def test_columns_of_a_sequence_are_correlated_by_their_distance(monkeypatch):
    monkeypatch.setattr(regimes, "NEW_ROWS", 20_000)
    X = sample(Regime(10, 4, 1, 1.0, correlation=0.95), [0]).new_X
    gaps = np.abs(np.subtract.outer(range(4), range(4)))
    assert_allclose(np.cov(X.T), 0.95**gaps, atol=5 * np.sqrt(2 / 20_000))


# Mean and variance of an observation with x = 0 (nearly), by hand.
@pytest.mark.parametrize(
    ("noise", "mean", "variance"),
    [
        ("normal", 0.0, 1.0),
        ("uneven", 0.0, np.exp(1 / 2)),  # E exp(x) of a standard normal
        ("skewed", 0.0, 1.0 + 2 / 4),
        ("bernoulli", 0.5, 0.25),
        ("poisson", 1.0, 1.0),
        ("overdispersed", 1.0, 1.5),
    ],
)
def test_noise_has_the_moments_it_should(noise, mean, variance, monkeypatch):
    monkeypatch.setattr(regimes, "NEW_ROWS", 40_000)
    y = sample(Regime(10, 1, 1, 1e-9, noise), [1]).new_y
    assert_allclose(y.mean(), mean, atol=5 * np.sqrt(variance / 40_000))
    assert_allclose(y.var(), variance, rtol=0.06)


@pytest.mark.parametrize("noise", ["normal", "t2", "uneven", "skewed", "bernoulli", "poisson", "overdispersed"])
def test_the_oracle_beats_a_wrong_density_by_what_it_should(noise, monkeypatch):
    """The mean of q/p under p is 1 for every density q; here q is the oracle at shifted data sets of the same rows."""
    monkeypatch.setattr(regimes, "NEW_ROWS", 4000)
    data = sample(Regime(10, 3, 2, 0.4, noise), [2])
    q = {
        "bernoulli": np.full(4000, 0.5),
        "poisson": stats.poisson.pmf(data.new_y, 0.8),
        "overdispersed": stats.poisson.pmf(data.new_y, 0.8),
    }.get(noise)
    if q is None:
        # inside the support of the skewed noise as well
        q = stats.norm.pdf(data.new_y, data.new_X @ data.weights + 0.5, 0.5)
    ratio = q / np.exp(data.oracle)
    if noise == "skewed":  # q has mass where p has none
        assert ratio.mean() < 1 + 4 * ratio.std() / np.sqrt(4000)
    else:
        assert abs(ratio.mean() - 1) < 4 * ratio.std() / np.sqrt(4000)


def test_what_a_data_set_counts():
    found = dict(zip(MEASURES, judged("30 x 20", 1), strict=True))
    data = sample(REGIMES["30 x 20"], [1, list(REGIMES).index("30 x 20"), 1])
    tree = bs.fit("ard_gaussian", (data.X, data.y), progressbar=False)
    table = bs.relevance(tree)
    evidence = tree["evidence"].to_dataset()
    low, high = (evidence["mean"] + side * 1.959964 * evidence["sd"] for side in (-1, 1))
    held = ((low <= data.weights) & (data.weights <= high)).to_numpy()
    kept, true = evidence["sd"].to_numpy() > 0, data.weights != 0
    assert len(table) >= kept.sum()
    assert (found["kept"], found["found"], found["true"]) == (kept.sum(), (kept & true).sum(), 4)
    assert found["covered"] == (held & kept & true).sum()
    new = bs.predict(tree, data.new_X)
    assert_allclose(found["inside"], np.mean(np.abs(data.new_y - new["mean"]) <= 1.959964 * new["sd"]))
    assert found["score"] < found["oracle"]


def test_counts_and_classes_by_draws():
    rng = np.random.default_rng(0)
    for name in ("poisson", "bernoulli"):
        data = sample(REGIMES[name], [5])
        tree = bs.fit("ard_gaussian", (data.X, data.y), likelihood=name, progressbar=False)
        inside, score, promised = judged_rows(tree, data)
        evidence = tree["evidence"].to_dataset()
        column = evidence["column"].to_numpy()
        Phi = np.column_stack([data.new_X, np.ones(len(data.new_X))])[:, column]
        factor = evidence["covariance_factor"].to_numpy()
        w = evidence["coordinate_mean"].to_numpy() + rng.standard_normal((4000, factor.shape[1])) @ factor.T
        eta = Phi @ w.T
        if name == "bernoulli":
            p = np.mean(1 / (1 + np.exp(-eta)), axis=1)
            assert_allclose(promised, np.mean(p * np.log(p) + (1 - p) * np.log(1 - p)), atol=2e-3)
            assert_allclose(score, np.mean(np.log(np.where(data.new_y == 1, p, 1 - p))), atol=2e-3)
            assert np.isnan(inside)
            continue
        pmf = stats.poisson.pmf(data.new_y[:, None], np.exp(eta)).mean(axis=1)
        cdf = stats.poisson.cdf(data.new_y[:, None], np.exp(eta)).mean(axis=1)
        u = rng.random((400, len(pmf)))
        assert_allclose(inside, np.mean(np.abs(cdf - u * pmf - 0.5) < 0.475), atol=3e-3)
        assert_allclose(score, np.log(pmf).mean(), atol=5e-3)


def test_a_run_goes_on_where_it_was(few, tmp_path, monkeypatch):
    first = honesty(2, tmp_path / "sets", progressbar=False)
    assert first.sizes == {"regime": 3, "data_set": 2}

    def never(*_, **__):
        raise AssertionError("computed again")

    monkeypatch.setattr(study, "sample", never)
    again = honesty(2, tmp_path / "sets", progressbar=False)
    assert first.equals(again)
    table = summary(again)
    kept = again["covered"].sum("data_set") / again["found"].sum("data_set")
    assert_allclose(table["kept true"], kept)
    assert np.isnan(table.loc["bernoulli", "inside"])
    assert np.isnan(table.loc["poisson", "promised"])
    text = write_honesty(again, tmp_path)
    assert (tmp_path / "summary.md").read_text() == text
    assert text.count("\n") == 4 + len(FEW)
    assert "converged 2" in text
    with pytest.raises(RuntimeError, match="3 of 9 parts failed, the first by AssertionError: computed again"):
        honesty(3, tmp_path / "sets", progressbar=False)
