"""Simulation-based calibration: ranks of the truth are uniform under the exact posterior, and under no other."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from scipy.special import expit
from scipy.stats import bernoulli, gamma, halfcauchy, kstest, lognorm, norm

import bayes_sparse as bs
from bayes_sparse.models import ARDGaussian
from bayes_sparse.trees.read import RUNGS
from studies import calibration, counting
from studies.calibration import CASES, FITS, Settings, calibrate, quantities, simulated
from studies.coverage import coverage, draw_calibration, uniformity
from studies.ranks import band, chi_square, running_share, running_test

KEPT = 99


def toy_ranks(N, seed, shift=0.0, width=1.0):
    """Normal mean with a normal prior and five observations: the posterior is known, and can be made wrong."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal(N)
    mean_of_data = truth + rng.standard_normal(N) / np.sqrt(5)
    mean, sd = 5 * mean_of_data / 6, 1 / np.sqrt(6)
    draws = mean[:, None] + shift * sd + width * sd * rng.standard_normal((N, KEPT))
    return np.sum(draws < truth[:, None], axis=1)


def test_an_exact_posterior_passes_as_often_as_it_should():
    p = np.array([[test(toy_ranks(200, seed), KEPT) for test in (chi_square, running_test)] for seed in range(300)])
    for values in p.T:
        # Uniform p-values, but for the steps of a discrete statistic.
        assert kstest(values, "uniform").pvalue > 1e-3
        assert np.mean(values < 0.05) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 300)


@pytest.mark.parametrize("wrong", [{"shift": 0.5}, {"width": 0.6}, {"width": 1.6}])
def test_a_wrong_posterior_is_caught(wrong):
    for test in (running_test, chi_square):
        assert max(test(toy_ranks(200, seed, **wrong), KEPT) for seed in range(5)) < 1e-2


def test_a_band_holds_as_many_samples_as_it_says():
    limits = band(200)
    low, high = limits.limits(0.95)
    rng = np.random.default_rng(1)
    shares = np.array([running_share(rng.integers(0, KEPT + 1, 200), KEPT) for _ in range(4000)])
    inside = np.mean(np.all((shares >= low) & (shares <= high), axis=1))
    # Two Monte-Carlo errors, and counts that only change in steps.
    assert 0.95 - 4 * np.sqrt(0.95 * 0.05 / 4000) < inside < 0.975


def test_ranks_that_fit_no_bins_are_refused():
    with pytest.raises(ValueError, match="keep 20 k - 1 draws"):
        chi_square(np.arange(10), 100)
    with pytest.raises(ValueError, match="0 to 99"):
        running_test(np.array([100]), KEPT)


@pytest.mark.parametrize("case", CASES)
def test_the_simulation_is_the_prior_of_the_model(case):
    settings = replace(CASES[case], new_rows=1)
    truths = np.array([simulated(settings, number).truth for number in range(500)])
    values = dict(zip(quantities(settings), truths.T, strict=True))
    # One class alone, hardly ever seen, is left out. In all 12 to 13 p-values a case.
    laws = {
        "alpha": gamma(2, scale=0.5),
        "lambda": halfcauchy(),
        "tau": halfcauchy(scale=2 / 3 * 2 / np.sqrt(50)),
        "sigma": lognorm(0.5),
    }
    for name, drawn in values.items():
        if name.startswith("log ") and name != "log likelihood":
            assert kstest(np.exp(drawn), laws[re.findall("[a-z]+", name)[1]].cdf).pvalue > 1e-4, name
    assert kstest(values["bias"], "norm").pvalue > 1e-4
    for i in range(5):
        if settings.prior == "gamma":
            precision = np.exp(values[f"log alpha[x{i}]"])
        else:
            precision = np.exp(-2 * (values[f"log lambda[x{i}]"] + values["log tau"]))
        slab = 0.0 if settings.slab is None else settings.slab**-2
        assert kstest(values[f"w[x{i}]"] * np.sqrt(precision + slab), "norm").pvalue > 1e-4


def without_sampling(settings, data, seed):
    """The rungs that need no NUTS, in the places of all."""
    model, given = ARDGaussian(bias_sd=settings.bias_sd, slab=settings.slab), (data.X, data.y)
    same = {"likelihood": "bernoulli", "basis": bs.basis.linear(standardise=False), "random_seed": seed}
    rungs = bs.ladder(model, given, hyper=settings.hyper, rungs=RUNGS[:2], draws=2000, chains=1, **same)
    return [rungs["approximation"], rungs["plug_in"], *[rungs["approximation"]] * 3]


def test_data_sets_are_judged_once_and_rightly(tmp_path, monkeypatch):
    settings = Settings(rows=40, columns=2, new_rows=500)
    monkeypatch.setattr(calibration, "_fitted", without_sampling)
    found = calibrate(settings, 3, tmp_path, progressbar=False)
    for number in range(3):
        data = simulated(settings, number)
        tree = without_sampling(settings, data, number)[0]
        evidence = tree["evidence"]
        mean, sd = (np.append(evidence[a], evidence[b]) for a, b in (("mean", "bias"), ("sd", "bias_sd")))
        exact = norm.cdf((data.truth[:3] - mean) / sd)
        one = found.sel(fit="approximation").isel(data_set=number, quantity=slice(3))
        # Four standard errors of a share of 2000 draws, and of those ranked.
        assert np.all(np.abs(one["below"] - exact) < 4 * 0.5 / np.sqrt(2000))
        assert np.all(np.abs(one["rank"] / settings.kept - exact) < 4 * 0.5 / np.sqrt(settings.kept))
        at_truth = np.append(data.truth[:2], data.truth[2])
        eta = np.column_stack([data.X, np.ones(40)]) @ at_truth
        assert np.isclose(data.truth[-1], bernoulli.logpmf(data.y, expit(eta)).sum())
        p = bs.predict(tree, data.new_X)["probability"].to_numpy()[:, 1]
        assert np.isclose(found["score"].sel(fit="approximation")[number], bernoulli.logpmf(data.new_y, p).mean())
        assert np.isclose(found["promised"].sel(fit="approximation")[number], -bernoulli.entropy(p).mean())
    table = coverage(found)
    assert np.all(table.loc["plug_in", ["w 50%", "w 90%", "bias 50%", "bias 90%"]] == 0)
    assert len(draw_calibration({"one": found, "two": found}).axes) == 2 * (len(FITS) - 1)

    monkeypatch.setattr(calibration, "_fitted", None)  # a second run reads what is stored
    assert calibrate(settings, 3, tmp_path, progressbar=False).identical(found)


def test_a_pruned_weight_is_a_miss_and_is_also_left_out():
    """Two data sets of two weights: 1 of 2 covered with one pruned, then 1 of 2 covered with none."""
    below = np.array([[[0.5, 0.0]], [[0.99, 0.3]]])
    spread = np.array([[[1.0, 0.0]], [[1.0, 1.0]]])
    below, spread = (np.concatenate([x, np.full((2, 1, 1), 0.5)], axis=2).repeat(2, axis=1) for x in (below, spread))
    ranked, scores = ("data_set", "fit", "quantity"), ("data_set", "fit")
    found = xr.Dataset(
        {"below": (ranked, below), "spread": (ranked, spread)}
        | {name: (scores, np.zeros((2, 2))) for name in ("score", "promised")},
        coords={"fit": ["default", "full"], "quantity": ["w[x0]", "w[x1]", "bias"]},
    )
    row = coverage(found).loc["default"]
    assert row["w 95%"] == 0.5
    assert row["w 95% se"] == 0.0
    assert row["w 95%, kept"] == pytest.approx(2 / 3)
    # (1 - 2/3)^2 + (1 - 4/3)^2 under the root, over the three that are kept
    assert row["w 95%, kept se"] == pytest.approx(np.sqrt(2 / 9) / 3)


def test_ways_of_counting(tmp_path, monkeypatch):
    monkeypatch.setattr(counting, "ROWS", (50,))
    table = counting.counting(20, tmp_path)
    mean, sd, truth = [], [], []
    for number in range(20):
        data = simulated(Settings(columns=3, slab=None), number)
        same = {"basis": bs.basis.linear(standardise=False), "bias_sd": 1.0, "progressbar": False}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            evidence = bs.fit("ard_gaussian", (data.X, data.y), draws=0, **same)["evidence"]
        mean, sd = [*mean, *evidence["mean"].to_numpy()], [*sd, *evidence["sd"].to_numpy()]
        truth += data.truth[:3].tolist()
    low, high = norm.interval(0.95, mean, np.maximum(sd, 1e-300))
    inside, kept = (low < truth) & (truth < high), np.array(sd) > 0
    row = table.loc["the default fit"]
    assert row["50 rows, 95%"] == inside.mean()
    assert row["50 rows, 95%, kept alone"] == inside[kept].mean()
    assert 0 < kept.mean() < 1
    assert (
        table.loc["Gamma(2, 2), slab 2.5", "50 rows, 95%"]
        == table.loc["Gamma(2, 2), slab 2.5", "50 rows, 95%, kept alone"]
    )


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_everything_sampled_is_calibrated(case, tmp_path):
    """200 data sets. All quantities pass two tests at 1e-3 in all: a false alarm once in a thousand seeds, per case."""
    found = calibrate(CASES[case], 200, tmp_path, progressbar=False)
    p = uniformity(found)
    assert len(p) == len(quantities(CASES[case]))
    assert p.to_numpy().min() > 1e-3 / p.size, p
    table = coverage(found)
    for name in ("w", "bias"):
        for level in (0.5, 0.9, 0.95):
            share, se = table.loc["full", [f"{name} {level:.0%}", f"{name} {level:.0%} se"]]
            assert abs(share - level) < 3.5 * se
    # What is conditional on estimated precisions is too sure of the weights, and the pruning default more so.
    assert table.loc["approximation", "w 90%"] < table.loc["full", "w 90%"]
    assert table.loc["default", "w 90%"] < table.loc["approximation", "w 90%"]
    assert np.all(table.loc["plug_in", ["w 50%", "w 90%"]] == 0)
    # The test can fail: of weights that are often put at zero it says so.
    assert uniformity(found, "default").loc["w[x0]"].max() < 1e-4


def gibbs(data, rng, draws=1300, warm_up=200):
    """Draws (draws, 7) of five weights, bias and log noise of a regression: normals, Gammas, and Metropolis steps."""
    Z = np.column_stack([data.X, np.ones(len(data.X))])
    G, g, power = Z.T @ Z, Z.T @ data.y, data.y @ data.y
    precision, log_sigma, out = np.ones(6), np.log(data.y.std()), np.empty((warm_up + draws, 7))

    def height(value, rss):
        return -len(data.y) * value - 0.5 * rss * np.exp(-2 * value) - 0.5 * (value / 0.5) ** 2

    for row in out:
        P = G * np.exp(-2 * log_sigma) + np.diag(precision)
        row[:6] = np.linalg.solve(P, g * np.exp(-2 * log_sigma))
        row[:6] += np.linalg.solve(np.linalg.cholesky(P).T, rng.standard_normal(6))
        precision[:5] = rng.gamma(2.5, 1 / (2 + 0.5 * row[:5] ** 2))
        rss = power - 2 * row[:6] @ g + row[:6] @ G @ row[:6]
        for _ in range(3):
            new = log_sigma + 0.3 * rng.standard_normal()
            if np.log(rng.random()) < height(new, rss) - height(log_sigma, rss):
                log_sigma = new
        row[6] = log_sigma
    return out[warm_up:]


@pytest.mark.slow
def test_a_sampler_written_apart_covers_the_truths_of_the_regressions():
    """The simulation is right; that NUTS covers 83% of the first 200 biases by 90% intervals is these data sets."""
    settings, below = CASES["numbers, Gamma(2, 2), a pm.Model"], []
    for number in range(800):
        data = simulated(settings, number)
        truth = np.append(data.truth[:6], data.truth[11])
        below.append(np.mean(gibbs(data, np.random.default_rng([1, number])) < truth, axis=0))
    inside = np.abs(np.array(below) - 0.5) < 0.45
    # Three binomial errors; of the biases of the first 200 as many are missed as NUTS misses, within four of them.
    assert np.all(np.abs(inside.mean(axis=0) - 0.9) < 3 * np.sqrt(0.09 / 800))
    assert abs(inside[:200, 5].sum() - 167) <= 4
