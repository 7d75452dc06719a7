"""A fit says when its likelihood is wrong: against scipy and sums by hand, and on data whose noise is known."""

import warnings

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy import stats

import bayes_sparse as bs
from bayes_sparse.inputs import likelihoods
from tests.support import assert_one_sentence

X = np.random.default_rng(0).standard_normal((150, 6))
ETA = 1.0 + 0.5 * X[:, 0] - 0.5 * X[:, 3]
WILD = np.random.default_rng(0).poisson(np.random.default_rng(1).gamma(1.0, np.exp(ETA)))
TAME = np.random.default_rng(2).poisson(np.exp(ETA))
HEAVY = ETA + 0.3 * np.random.default_rng(3).standard_t(2, 150)
LIGHT = ETA + 0.5 * np.random.default_rng(4).standard_normal(150)
MODELS = ["ard_gaussian", "jeffreys_laplace", "laplace_eigen"]


def fitted(y, model="ard_gaussian", **settings):
    return bs.fit(model, (X, y), **({"draws": 0, "progressbar": False} | settings))


@pytest.mark.parametrize("model", MODELS)
def test_overdispersed_counts_name_the_negative_binomial(model):
    with pytest.warns(bs.FitWarning, match="more spread out") as told:
        tree = fitted(WILD, model, likelihood="poisson")
    assert_one_sentence(str(told[-1].message), "likelihood='negative_binomial'", "Pearson chi2 / (n - k) = ")
    assert tree["evidence"].attrs["likelihood_check"] == str(told[-1].message)
    assert fitted(TAME, model, likelihood="poisson")["evidence"].attrs["likelihood_check"] == ""


@pytest.mark.parametrize("model", MODELS)
def test_heavy_tails_name_student_t(model):
    with pytest.warns(bs.FitWarning, match="heavier tails") as told:
        tree = fitted(HEAVY, model)
    assert_one_sentence(str(told[-1].message), "likelihood='student_t'", "excess kurtosis = ")
    assert tree["evidence"].attrs["likelihood_check"] == str(told[-1].message)
    assert fitted(LIGHT, model)["evidence"].attrs["likelihood_check"] == ""


def test_the_cures_are_silent():
    for y, likelihood in ((WILD, "negative_binomial"), (HEAVY, "student_t"), (WILD > 2, "bernoulli")):
        assert "likelihood_check" not in fitted(y, likelihood=likelihood)["evidence"].attrs


@pytest.mark.parametrize("model", MODELS)
def test_the_statistic_is_of_the_residuals_that_predict_leaves(model):
    attributes = fitted(LIGHT, model)["evidence"].attrs
    residual = LIGHT - bs.predict(fitted(LIGHT, model), X)["mean"].to_numpy()
    assert attributes["likelihood_statistic"] == "excess kurtosis"
    np.testing.assert_allclose(attributes["likelihood_value"], stats.kurtosis(residual), rtol=1e-6)
    expected = stats.kurtosistest(residual, alternative="greater").pvalue
    np.testing.assert_allclose(attributes["likelihood_p"], expected, rtol=1e-6)


def test_pearson_of_counts_by_hand():
    tree = fitted(TAME, likelihood="poisson")
    evidence = tree["evidence"]
    mean = np.exp(X @ evidence["mean"].to_numpy() + float(evidence["bias"]))
    left = len(TAME) - evidence.attrs["degrees_of_freedom"] - 1  # and the bias
    np.testing.assert_allclose(evidence.attrs["likelihood_value"], np.sum((TAME - mean) ** 2 / mean) / left, rtol=1e-4)


@pytest.mark.parametrize("mean", [0.02, 0.3, 40.0])
def test_the_score_of_counts_has_its_mean_and_variance_whatever_the_mean(mean):
    """The guard beside Pearson's chi2: moments under a Poisson, summed over its probabilities."""
    y = np.arange(400)
    p = stats.poisson.pmf(y, mean)
    score = ((y - mean) ** 2 - y) / mean
    np.testing.assert_allclose([p @ score, p @ score**2], [0.0, 2.0], atol=1e-9)


def test_a_single_rare_count_is_no_alarm():
    """Pearson's chi2 alone would cry out: one count where 0.005 was expected."""
    y, eta = np.zeros(100), np.full(100, np.log(0.005))
    y[0] = 1.0
    eta[1:] = np.log(0.01)
    check = likelihoods.poisson().check(y, eta, 1.0)
    assert check.value > 1.5
    assert check.wrong == ""


def test_too_little_to_say():
    poisson, normal = likelihoods.poisson(), likelihoods.normal()
    assert poisson.check(np.ones(5), np.zeros(5), 5.0) is None
    assert poisson.check(np.ones(5), np.full(5, -1e4), 1.0) is None  # a mean of zero
    assert normal.check(np.arange(19.0), np.zeros(19), 1.0, 1.0) is None
    assert normal.check(np.ones(50), np.ones(50), 1.0, 1.0) is None


def test_weighted_rows_and_bad_ends_are_not_judged():
    assert "likelihood_check" not in fitted(HEAVY, weights=np.full(150, 2.0))["evidence"].attrs
    with pytest.warns(bs.FitWarning, match="did not converge"):
        tree = fitted(HEAVY, method="mackay", max_iterations=1)
    assert "likelihood_check" not in tree["evidence"].attrs


def own(y, family):
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", 1e-3, 1e-3, shape=6)
        eta = X @ pm.Normal("w", 0, 1 / pm.math.sqrt(alpha), shape=6) + pm.Normal("bias", 0, 10)
        if family == "poisson":
            pm.Poisson("y", mu=pm.math.log1pexp(eta), observed=y)  # a link of its own
        else:
            pm.Normal("y", eta, pm.HalfNormal("sigma", 5.0), observed=y)
    return model


def test_a_model_of_ones_own():
    with pytest.warns(bs.FitWarning, match=r"observe a pm\.NegativeBinomial instead"):
        tree = bs.fit(own(WILD, "poisson"), draws=0, progressbar=False)
    evidence = tree["evidence"]
    mean = np.logaddexp(0.0, X @ evidence["mean"].to_numpy() + float(evidence["bias"]))
    left = 150 - evidence.attrs["degrees_of_freedom"] - 1
    np.testing.assert_allclose(evidence.attrs["likelihood_value"], np.sum((WILD - mean) ** 2 / mean) / left, rtol=1e-4)
    with pytest.warns(bs.FitWarning, match=r"observe a pm\.StudentT instead"):
        bs.fit(own(HEAVY, "normal"), draws=0, progressbar=False)


@pytest.fixture(scope="module")
def heavy():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bs.FitWarning)
        return fitted(HEAVY, draws=100, random_seed=0)


def test_diagnose_leads_with_it(heavy, tmp_path):
    found = bs.diagnose(heavy)
    assert found.likelihood == heavy["evidence"].attrs["likelihood_check"]
    assert found.verdict.startswith(found.likelihood)
    assert found.trusted  # the posterior of the model as given is exact
    heavy.to_netcdf(tmp_path / "tree.nc")
    with xr.open_datatree(tmp_path / "tree.nc") as again:
        assert bs.diagnose(again).likelihood == found.likelihood
    assert bs.diagnose(fitted(LIGHT, draws=100, random_seed=0)).likelihood == ""


def test_the_report_says_it(heavy, tmp_path):
    page = bs.report(heavy, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "With care" in page
    assert "Trust it" not in page
    assert page.index("heavier tails") < page.index("All importance weights are the same")
    assert "excess kurtosis" in page


def test_nuts_passes_it_on():
    with pytest.warns(bs.FitWarning, match="heavier tails"):
        tree = bs.fit(
            "ard_gaussian", (X, HEAVY), method="nuts", condition="alpha", draws=50, chains=2, random_seed=0,
            progressbar=False,
        )  # fmt: skip
    assert "heavier tails" in bs.diagnose(tree).likelihood


@pytest.mark.slow
def test_false_alarms_and_catches():
    """At most 5% of well-specified sets are called wrong, small means and few rows among them."""
    calls = {"right": [], "wrong": []}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        for n, p, mean in ((50, 5, 0.3), (50, 100, 1.0), (100, 20, 5.0), (200, 20, 0.2), (100, 20, 50.0)):
            Z = rng.standard_normal((n, p))
            eta = np.log(mean) + 0.5 * Z[:, :3].sum(axis=1)
            counts = rng.poisson(np.exp(eta))
            sets = [(counts, "poisson", "right"), (eta + rng.standard_normal(n), "normal", "right")]
            if n >= 100:
                sets.append((eta + rng.standard_t(2, n), "normal", "wrong"))
            if mean >= 1 and p < n:
                sets.append((rng.poisson(rng.gamma(1.0, np.exp(eta))), "poisson", "wrong"))
            for y, likelihood, kind in sets:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", bs.FitWarning)
                    tree = bs.fit("ard_gaussian", (Z, y), likelihood=likelihood, draws=0, progressbar=False)
                calls[kind].append(bool(tree["evidence"].attrs.get("likelihood_check")))
    assert np.mean(calls["right"]) < 0.025  # of 400: 5% less three standard errors
    assert np.mean(calls["wrong"]) > 0.9
