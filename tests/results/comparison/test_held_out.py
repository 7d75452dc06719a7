"""Log predictive densities of rows held out, against closed forms and quadrature."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from scipy.integrate import quad
from scipy.special import gammaln
from scipy.stats import norm

import bayes_sparse as bs
from bayes_sparse.results.comparison import compare
from bayes_sparse.results.comparison.held_out import HeldOut, held_out_rows, log_scores
from bayes_sparse.trees.read import stored

from .by_hand import approximate, normal_values, sampled

pytestmark = pytest.mark.quick

X = np.random.default_rng(0).standard_normal((80, 3))
NEW = np.random.default_rng(1).standard_normal((15, 3))


def scores(tree, X, y):
    return log_scores(stored(tree), held_out_rows((X, y), None))


def test_a_normal_likelihood_against_its_closed_form():
    rng = np.random.default_rng(2)
    tree = bs.fit("ard_gaussian", (X, X[:, 0] + 0.5 * rng.standard_normal(80)), draws=0)
    y = NEW[:, 0] + 0.5 * rng.standard_normal(15)
    predicted = bs.predict(tree, NEW)
    exact = norm.logpdf(y, predicted["mean"], predicted["sd"])
    np.testing.assert_allclose(scores(tree, NEW, y), exact, rtol=1e-12)
    drawn = bs.fit("ard_gaussian", (X, X[:, 0] + np.sin(np.arange(80))), random_seed=0)
    none = bs.fit("ard_gaussian", (X, X[:, 0] + np.sin(np.arange(80))), draws=0)
    np.testing.assert_array_equal(scores(drawn, NEW, y), scores(none, NEW, y))


def test_a_point_against_its_density():
    tree = approximate([1.0, -0.5, 0.0], np.zeros(3), bias=(0.3, 0.0))
    y = np.linspace(-1, 1, 15)
    exact = norm.logpdf(y, 0.3 + NEW[:, 0] - 0.5 * NEW[:, 1], 0.5)
    np.testing.assert_allclose(scores(tree, NEW, y), exact, rtol=1e-12)


def test_draws_of_weights_and_noise_are_averaged_over():
    w, bias, sigma = normal_values(1.0, 0.3, 1000), normal_values(0.2, 0.1, 1000, 1), normal_values(0.6, 0.05, 1000, 2)
    tree = sampled({"b": w}, bias=bias, sigma=sigma)
    y = np.linspace(-1, 1, 15)
    density = norm.pdf(y, np.multiply.outer(w, NEW[:, 1]) + bias[:, None], sigma[:, None])
    np.testing.assert_allclose(scores(tree, NEW, y), np.log(density.mean(axis=0)), rtol=1e-10)


def test_counts_against_quadrature():
    rng = np.random.default_rng(3)
    tree = bs.fit("ard_gaussian", (X, rng.poisson(np.exp(X[:, 0]))), likelihood="poisson", random_seed=0)
    y = rng.poisson(np.exp(NEW[:, 0]))
    evidence = tree["evidence"]
    Phi = np.column_stack([NEW, np.ones(15)])[:, evidence["column"].to_numpy()]
    mean = Phi @ evidence["coordinate_mean"].to_numpy()
    sd = np.linalg.norm(Phi @ evidence["covariance_factor"].to_numpy(), axis=1)

    def density(count, m, s):
        return quad(
            lambda eta: np.exp(count * eta - np.exp(eta) - gammaln(count + 1)) * norm.pdf(eta, m, s),
            m - 9 * s,
            m + 9 * s,
        )[0]

    exact = np.log([density(*each) for each in zip(y, mean, sd, strict=True)])
    np.testing.assert_allclose(scores(tree, NEW, y), exact, rtol=1e-7)  # as good as scipy's quad says it is


@pytest.mark.parametrize("model", ["ard_gaussian", "student_multinomial"])
def test_classes_by_their_probability(model):
    rng = np.random.default_rng(4)
    labels = np.array(["no", "yes"])
    tree = bs.fit(model, (X, labels[(X[:, 0] + rng.logistic(size=80) > 0).astype(int)]), draws=0)
    y = labels[(NEW[:, 0] > 0).astype(int)]
    probability = bs.predict(tree, NEW)["probability"]
    exact = [float(np.log(probability.isel(obs=i).sel({"class": label}))) for i, label in enumerate(y)]
    # The probability of two classes is by another quadrature there.
    np.testing.assert_allclose(scores(tree, NEW, y), exact, rtol=1e-9 if model == "ard_gaussian" else 1e-12)
    with pytest.raises(ValueError, match="classes that the fit has not: 'perhaps'"):
        scores(tree, NEW[:1], np.array(["perhaps"]))


def test_draws_of_two_classes_are_averaged_over():
    y = np.where(X[:, 0] + np.random.default_rng(4).logistic(size=80) > 0, "yes", "no")
    tree = bs.correct(bs.fit("ard_gaussian", (X, y), draws=100, random_seed=0))  # its draws say more than its moments
    drawn = tree["posterior"].to_dataset().stack(sample=("chain", "draw"))
    eta = (
        NEW[:, [int(name[1:]) for name in drawn["basis"].to_numpy()]]
        @ drawn["w"].transpose("basis", "sample").to_numpy()
    )
    p = (1 / (1 + np.exp(-eta - drawn["bias"].to_numpy()))).mean(axis=1)
    np.testing.assert_allclose(scores(tree, NEW, np.full(15, "yes")), np.log(p), rtol=1e-10)
    np.testing.assert_allclose(scores(tree, NEW, np.full(15, "no")), np.log(1 - p), rtol=1e-10)


def test_draws_of_a_posterior_that_is_not_normal_are_averaged_over():
    y = X[:, 0] + 0.5 * np.random.default_rng(2).standard_normal(80)
    tree = bs.fit("laplace_eigen", (X, y), draws=250, random_seed=0)
    drawn = tree["posterior"].to_dataset().stack(sample=("chain", "draw"))
    eta = drawn["bias"].to_numpy() + NEW @ drawn["w"].transpose("basis", "sample").to_numpy()
    density = norm.pdf(NEW[:, :1], eta, drawn["sigma"].to_numpy()).mean(axis=1)
    np.testing.assert_allclose(scores(tree, NEW, NEW[:, 0]), np.log(density), rtol=1e-10)


def test_the_summary_has_means_and_paired_errors():
    frame = pd.DataFrame(NEW, columns=["a", "b", "c"]).assign(y=np.linspace(-1, 1, 15))
    trees = {
        "good": approximate([1.0, -0.5, 0.0], [0.1, 0.1, 0.0]),
        "bad": approximate([-2.0, 0.0, 0.0], [0.1, 0.0, 0.0]),
    }
    comparison = compare(trees, frame, target="y", reference="good")
    good, bad = (scores(tree, NEW, frame["y"]) for tree in trees.values())
    summary = comparison.summary
    np.testing.assert_allclose(summary["log_score"], [good.mean(), bad.mean()])
    np.testing.assert_allclose(summary["log_score_difference"], [0.0, (bad - good).mean()])
    np.testing.assert_allclose(summary["log_score_difference_se"]["bad"], (bad - good).std(ddof=1) / np.sqrt(15))
    assert "log_score" not in compare(trees).summary


@pytest.mark.parametrize(
    ("data", "target", "error", "said"),
    [
        (pd.DataFrame(NEW, columns=list("abc")), None, ValueError, "Name the target column"),
        (pd.DataFrame(NEW, columns=list("abc")), "d", ValueError, "Name the target column"),
        (NEW, None, TypeError, r"are \(X, y\)"),
        ((NEW, np.full(15, np.nan)), None, ValueError, "none missing"),
        ((NEW, np.zeros(3)), None, ValueError, "15 rows and y has 3 values"),
        ((NEW[:, :2], np.zeros(15)), None, ValueError, "the 3 columns of the fit"),
    ],
)
def test_refused_rows(data, target, error, said):
    trees = {"one": approximate([1.0, 0.0, 0.0], [0.1, 0.0, 0.0]), "two": approximate([1.0, 0.0, 0.0], [0.1, 0.0, 0.0])}
    with pytest.raises(error, match=said):
        compare(trees, data, target=target)


def test_an_offset_that_is_not_known_and_a_model_of_your_own_are_refused():
    y = X[:, 0] + 0.1 * np.arange(80) + np.sin(np.arange(80))
    with_offset = bs.fit("ard_gaussian", (X, y), offset=0.1 * np.arange(80), draws=0)
    with pytest.raises(ValueError, match="fit with an offset are not scored"):
        scores(with_offset, NEW, np.zeros(15))
    rows = HeldOut(NEW, np.zeros(15), offset=np.linspace(0, 3, 15))
    predicted = bs.predict(with_offset, NEW, offset=rows.offset)
    exact = norm.logpdf(0.0, predicted["mean"], predicted["sd"])
    np.testing.assert_allclose(log_scores(stored(with_offset), rows), exact, rtol=1e-12)
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", 0.5, 0.005, shape=3)
        w = pm.Normal("w", 0.0, tau=alpha, shape=3)
        pm.Normal("y", X @ w, pm.HalfNormal("sigma", 10.0), observed=X[:, 0] + np.sin(np.arange(80)))
    own = bs.fit(model, draws=50, random_seed=0)
    with pytest.raises(ValueError, match=r"pm\.Model of your own are not scored"):
        scores(own, NEW, np.zeros(15))
    table = compare({"sequential": own, "em": bs.fit(model, method="em", draws=0)}).parameters
    assert ("w[0]", "em") in table.index
