"""Counts out of a number, levels, sizes and shares, the whole way: fitted, stored, predicted, judged, sampled."""

import json

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import expit

import bayes_sparse as bs
from tests.support import as_sampled, assert_one_sentence

RNG = np.random.default_rng(21)
N, TRIALS, SHAPE, PRECISION = 150, 8, 3.0, 12.0
X = RNG.standard_normal((N, 4)) * [1.0, 3.0, 0.5, 1.0]
Z = (X - X.mean(axis=0)) / X.std(axis=0)
ETA = 0.3 + 0.8 * X[:, 0] - 0.25 * X[:, 1]
CUTS = [0.0, 0.8, 2.0]
NEW = RNG.standard_normal((5, 4)) * [1.0, 3.0, 0.5, 1.0]
TEN = bs.likelihoods.binomial(trials=TRIALS)
CASES = {
    "binomial": (TEN, RNG.binomial(TRIALS, expit(ETA))),
    "gamma": ("gamma", RNG.gamma(SHAPE, np.exp(ETA) / SHAPE)),
    "ordinal": (bs.likelihoods.ordinal(levels=4), np.digitize(ETA + RNG.logistic(size=N), CUTS)),
    "beta": ("beta", RNG.beta(PRECISION * expit(ETA), PRECISION * expit(-ETA))),
}
OWN = {
    "binomial": lambda eta, y: pm.Binomial("y", TRIALS, logit_p=eta, observed=y),
    "gamma": lambda eta, y: pm.Gamma("y", mu=pm.math.exp(eta), sigma=pm.math.exp(eta) / spread() ** 0.5, observed=y),
    "ordinal": lambda eta, y: pm.OrderedLogistic("y", eta, pm.math.stack([0.0, *cuts()]), observed=y),
    "beta": lambda eta, y: pm.Beta("y", mu=pm.math.sigmoid(eta), nu=spread(), observed=y),
}


class Levels:
    """Ordered levels, along the last axis of their probabilities."""

    def __init__(self, eta, *gaps):
        up = [expit(cut - eta) for cut in (0.0, *np.cumsum(gaps, axis=0))]
        self.p = np.diff(np.stack([np.zeros_like(eta), *up, np.ones_like(eta)]), axis=0)

    def mean(self):
        return np.einsum("k,k...->...", np.arange(len(self.p)), self.p)

    def var(self):
        return np.einsum("k,k...->...", np.arange(len(self.p)) ** 2, self.p) - self.mean() ** 2

    def logpmf(self, y):
        return np.log(np.take_along_axis(self.p, np.broadcast_to(y, (1, *self.p.shape[1:])), axis=0)[0])


SCIPY = {
    "ordinal": Levels,
    "binomial": lambda eta: stats.binom(TRIALS, expit(eta)),
    "gamma": lambda eta, shape: stats.gamma(shape, scale=np.exp(eta) / shape),
    "beta": lambda eta, precision: stats.beta(precision * expit(eta), precision * expit(-eta)),
}
every = pytest.mark.parametrize("name", CASES)
# Importance ratios of levels are at most e, but fall off slowly within that: ArviZ warns of their shape.
any_tail = pytest.mark.filterwarnings("ignore:Estimated shape parameter")


def spread():
    """Flat in its log, as ours."""
    return pm.math.exp(pm.Flat("log_spread"))


def fit(name, model="ard_gaussian", features=X, **options):
    likelihood, y = CASES[name]
    return bs.fit(model, (features, y), likelihood=likelihood, random_seed=0, **options)


def fitted_nuisance(tree, name):
    return [float(tree["evidence"][own]) for own in bs.likelihoods.resolve(CASES[name][0]).nuisance]


def cuts():
    gaps = [pm.math.exp(pm.Flat(f"log_gap_{k}")) for k in (1, 2)]
    return gaps[0], gaps[0] + gaps[1]


@pytest.fixture(scope="module")
def trees():
    return {name: fit(name) for name in CASES}


@every
@pytest.mark.parametrize(
    ("model", "method"),
    [
        ("ard_gaussian", "sequential"),
        ("ard_gaussian", "mackay"),
        ("horseshoe", "global_local"),
        ("laplace_eigen", "revm"),
        ("jeffreys_laplace", "reweighted"),
    ],
)
def test_every_family_of_methods_finds_the_truth(name, model, method):
    if (name, model) == ("beta", "jeffreys_laplace"):
        with pytest.raises(ValueError, match="log-concave"):
            fit(name, model, draws=0)
        return
    evidence = fit(name, model, method=method, draws=0)["evidence"]
    assert evidence.attrs["status"] in ("converged", "fixed-point", "jump")
    # Logits of shares and of 8 trials are known to 0.7 per row, logs of sizes to 0.6, those of levels to 1.8: five sds,
    # and shrinkage of one.
    error = (1.9 if name == "ordinal" else 0.75) / np.sqrt(N)
    assert np.all(np.abs(evidence["mean"] * X.std(axis=0) - [0.8, -0.75, 0.0, 0.0]) < 6 * error)
    for own, truth in (("shape", SHAPE), ("precision", PRECISION)):
        if own in evidence:
            assert abs(np.log(float(evidence[own]) / truth)) < 5 * np.sqrt(2 / N)


@every
def test_a_model_of_the_users_own_is_the_same_fit(name):
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, tau=pm.Gamma("alpha", 1.0, 0.1, shape=4), shape=4)
        OWN[name](pm.Normal("bias", 0.0, 10.0) + Z @ w, CASES[name][1])
    theirs = bs.fit(model, hyper=(0.0, 0.0), smoothness=1.0, draws=0)["evidence"]
    ours = fit(name, features=Z, smoothness=1.0, bias_sd=10.0, slab=None, draws=0)["evidence"]
    assert_array_equal(theirs["kept"], ours["kept"])
    assert_allclose(theirs["mean"], ours["mean"], rtol=1e-3, atol=1e-6)
    assert_allclose(theirs["log_evidence"], ours["log_evidence"], atol=1e-3)


@pytest.mark.slow
@every
def test_predictions_are_averages_over_the_draws(trees, name):
    tree = trees[name]
    posterior = bs.unpruned(tree)["posterior"].to_dataset()
    eta = posterior["w"].to_numpy() @ NEW.T + posterior["bias"].to_numpy()[..., None]
    reference = SCIPY[name](eta, *fitted_nuisance(tree, name))
    level, draws = reference.mean().reshape(-1, len(NEW)), 4000
    prediction = bs.predict(tree, NEW)
    assert np.all(np.abs(prediction["mean"] - level.mean(axis=0)) < 5 * level.std(axis=0) / np.sqrt(draws))
    sd = np.sqrt(reference.var().reshape(level.shape).mean(axis=0) + level.var(axis=0))
    assert_allclose(prediction["sd"], sd, rtol=0.04)


def test_levels_have_probabilities(trees):
    """Averaged over the draws, of an evidence fit and of draws by themselves."""
    tree = trees["ordinal"]
    posterior = bs.unpruned(tree)["posterior"].to_dataset()
    eta = posterior["w"].to_numpy() @ NEW.T + posterior["bias"].to_numpy()[..., None]
    truth = Levels(eta, *fitted_nuisance(tree, "ordinal")).p.mean(axis=(1, 2)).T
    probability = bs.predict(tree, NEW)["probability"]
    assert probability.dims == ("obs", "level")
    assert_allclose(probability, truth, atol=5 * 0.1 / np.sqrt(4000))
    assert_allclose(probability.sum("level"), 1.0)
    assert_allclose(probability @ xr.DataArray(np.arange(4), dims="level"), bs.predict(tree, NEW)["mean"])
    drawn = Levels(eta, *(posterior[f"gap_{k}"].to_numpy()[..., None] for k in (1, 2))).p.mean(axis=(1, 2)).T
    assert_allclose(bs.predict(as_sampled(tree), NEW)["probability"], drawn, rtol=1e-9)


@every
def test_a_stored_tree_predicts_the_same(trees, name, tmp_path):
    trees[name].to_netcdf(tmp_path / "fit.nc")
    with xr.open_datatree(tmp_path / "fit.nc") as back:
        xr.testing.assert_allclose(bs.predict(back.load(), NEW), bs.predict(trees[name], NEW))


@any_tail
@every
def test_what_judges_a_fit(trees, name, tmp_path):
    tree, y = trees[name], CASES[name][1]
    posterior = bs.unpruned(tree)["posterior"].to_dataset()
    eta = posterior["w"].to_numpy() @ X.T + posterior["bias"].to_numpy()[..., None]
    drawn = [posterior[own].to_numpy()[..., None] for own in bs.likelihoods.resolve(CASES[name][0]).nuisance]
    reference = SCIPY[name](eta, *drawn)
    truth = reference.logpmf(y) if name in ("binomial", "ordinal") else reference.logpdf(y)
    assert_allclose(tree["log_likelihood"]["y"], truth, rtol=1e-9, atol=1e-9)
    assert bs.diagnose(tree).trusted
    assert 2 < bs.loo(tree).p < 7  # a bias, two weights, and what tells of the spread or of the cut points
    assert name in bs.report(tree, tmp_path / "report.html", data=(X, y)).read_text()


@pytest.mark.slow
@any_tail
@every
def test_folds_score_rows_by_the_same_density(name):
    likelihood, y = CASES[name]
    folds = bs.kfold("ard_gaussian", (X, y), likelihood=likelihood, folds=3, random_seed=0, workers=1)
    assert abs(folds.elpd - bs.loo(fit(name)).elpd) < 3 * np.sqrt(N) / 4
    assert np.isfinite(folds.elpd_i).all()


@every
def test_weights_count_rows(name):
    likelihood, y = CASES[name]
    twice = np.r_[np.arange(N), np.arange(40)]
    one = fit(name, draws=0, weights=np.where(np.arange(N) < 40, 2.0, 1.0))["evidence"]
    other = bs.fit("ard_gaussian", (X[twice], y[twice]), likelihood=likelihood, draws=0)["evidence"]
    for own in ("mean", "bias", "log_evidence", *bs.likelihoods.resolve(likelihood).nuisance):
        assert_allclose(one[own], other[own], rtol=2e-3, atol=1e-6)


@every
def test_an_offset_moves_the_bias(name):
    one, moved = (fit(name, draws=0, bias_sd=1e6, offset=offset)["evidence"] for offset in (None, np.full(N, 0.7)))
    assert_allclose(moved["bias"] + 0.7, one["bias"], atol=1e-4)
    assert_allclose(moved["mean"], one["mean"], rtol=1e-3, atol=1e-6)


@every
def test_nuts_samples_the_same_model(name):
    """At the precisions found, where the posterior is nearly normal: means within the Monte-Carlo error."""
    found = fit(name, draws=1000)
    sampled = fit(name, method="nuts", condition="alpha", draws=400, tune=300, chains=2, progressbar=False)
    for own in ("w", "bias"):
        a, b = found["posterior"][own], sampled["posterior"][own]
        sd = np.asarray(a.std(("chain", "draw")))
        assert_allclose(b.mean(("chain", "draw")), a.mean(("chain", "draw")), atol=0.3 * sd.max())
        assert_allclose(b.std(("chain", "draw")), sd, rtol=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["binomial", "ordinal"])
def test_the_horseshoe_is_sampled_with_the_settings_of_the_likelihood(name):
    """Its start is chosen by the likelihood found, whose settings a name does not tell."""
    sampled = fit(name, "horseshoe", method="nuts", draws=20, tune=60, chains=1, progressbar=False)
    again = bs.likelihoods.from_settings(json.loads(sampled.attrs["bayes_sparse"])["likelihood"])
    assert again == CASES[name][0]


WRONG = [("binomial", -1, "from 0 to 8"), ("binomial", 9, "from 0 to 8"), ("binomial", 0.5, "from 0 to 8")]
WRONG += [("gamma", 0.0, "positive"), ("beta", 1.0, "strictly"), ("beta", 0.0, "strictly")]


@pytest.mark.parametrize(("name", "value", "words"), WRONG)
def test_targets_that_it_cannot_take(name, value, words):
    y = CASES[name][1].astype(float)
    y[3] = value
    with pytest.raises(ValueError, match=words):
        bs.fit("ard_gaussian", (X, y), likelihood=CASES[name][0])


def test_levels_are_whole_numbers_and_none_is_empty():
    for number in (2, 2.5):
        with pytest.raises(ValueError, match="a whole number of levels") as refused:
            bs.likelihoods.ordinal(levels=number)
        assert_one_sentence(str(refused.value), "bernoulli")
    for targets in (X[:, 0], -np.arange(len(X))):
        with pytest.raises(ValueError, match="whole numbers from 0 on"):
            bs.fit("ard_gaussian", (X, targets), likelihood="ordinal")
    y = CASES["ordinal"][1]
    with pytest.raises(ValueError, match="No target is at level 4 of the 5 levels"):
        bs.fit("ard_gaussian", (X, y), likelihood=bs.likelihoods.ordinal(levels=5))
    with pytest.raises(ValueError, match="from 0 to 3"):
        bs.fit("ard_gaussian", (X, y + 1), likelihood=bs.likelihoods.ordinal(levels=4))


def test_trials_are_one_whole_number():
    for trials in (None, 0, 2.5, np.array([3, 4])):
        with pytest.raises(ValueError, match="needs one whole number of trials") as refused:
            bs.likelihoods.binomial(trials=trials)
        assert_one_sentence(str(refused.value), "bernoulli", "weights")
    with pytest.raises(ValueError, match="needs one whole number of trials"):
        bs.fit("ard_gaussian", (X, CASES["binomial"][1]), likelihood="binomial")


def test_trials_that_differ_are_weights_of_two_classes():
    """What the refusal says: each row twice is the same likelihood, but for the number of ways."""
    y = CASES["binomial"][1]
    options = {"smoothness": 1.0, "slab": None, "draws": 0}
    one = fit("binomial", **options)["evidence"]
    rows, classes, weights = np.r_[X, X], np.repeat([1, 0], N), np.r_[y, TRIALS - y]
    two = bs.fit("ard_gaussian", (rows, classes), likelihood="bernoulli", weights=weights, **options)["evidence"]
    assert_allclose(two["mean"], one["mean"], rtol=1e-6)
    ways = stats.binom(TRIALS, 0.5).logpmf(y).sum() + N * TRIALS * np.log(2)
    assert_allclose(two["log_evidence"] + ways, one["log_evidence"], rtol=1e-8)


def test_trials_that_a_column_separates_say_so():
    apart = X + np.outer(np.sign(X[:, 0]), [0.5, 0.0, 0.0, 0.0])
    with pytest.warns(bs.FitWarning, match="separate"):
        found = bs.fit("ard_gaussian", (apart, TRIALS * (X[:, 0] > 0)), likelihood=TEN, draws=0)
    assert found["evidence"].attrs["status"] == "separable"
    assert found["evidence"].attrs["slab"] == bs.models.ARDGaussian().default_slab
    few = bs.fit("ard_gaussian", (apart, 1 * (X[:, 0] > 0)), likelihood=TEN, draws=0)  # one success of eight
    assert few["evidence"].attrs["status"] == "converged"


def test_counts_more_spread_out_than_a_binomials_say_so():
    rng = np.random.default_rng(0)
    wild = rng.binomial(TRIALS, rng.beta(3 * expit(ETA), 3 * expit(-ETA)))
    with pytest.warns(bs.FitWarning, match="more spread out") as told:
        bs.fit("ard_gaussian", (X, wild), likelihood=TEN, draws=0)
    assert_one_sentence(str(told[-1].message), "observe a pm.BetaBinomial, in a pm.Model of your own")


def test_the_check_of_binomial_counts_is_right_by_chance():
    """With known probabilities, many of them near zero: its p-values are about uniform where it matters."""
    rng = np.random.default_rng(1)
    eta = rng.normal(-3.0, 1.5, 200)
    p = np.array([TEN.check(rng.binomial(TRIALS, expit(eta)), eta, 0.0).p_value for _ in range(2000)])
    for level in (0.01, 0.1, 0.5):  # skewed: small ones are a little more often than they say
        assert level / 2 < np.mean(p < level) < 3 * level
