"""L1 regression with lambda by cross-validation: every number of the curve computed again, row by row."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Lasso

import bayes_sparse as bs
from bayes_sparse.methods import CV
from bayes_sparse.methods import cv as module
from bayes_sparse.problem.folds import balanced_folds, fold_weights
from tests.support import fit_path as fit

from .l1_by_hand import TARGETS, N, X, Z, assert_minimum, log_density, nuisance_of, predictor, standardised

every_likelihood = pytest.mark.parametrize("likelihood", TARGETS)
BARE = bs.basis.linear(standardise=False)


def fitted(likelihood, y, Z, rows, penalty, weights):
    """Predictor of all rows and nuisance parameters, from some rows; by scikit-learn where it has the model."""
    if likelihood == "normal":
        total = weights[rows].sum()
        model = Lasso(alpha=penalty / total, tol=1e-10, max_iter=100_000).fit(Z[rows], y[rows], weights[rows])
        eta = model.predict(Z)
        return eta, [np.sqrt(np.average((y - eta)[rows] ** 2, weights=weights[rows]))]
    settings = {"likelihood": likelihood, "basis": BARE, "weights": weights[rows]}
    try:
        evidence = fit((Z[rows], y[rows]), lam=penalty, **settings)["evidence"]
    except bs.FitWarning:  # nothing is left, and the answer is the same at any larger penalty
        with pytest.warns(bs.FitWarning, match="bias only"):
            evidence = fit((Z[rows], y[rows]), lam=1e9, **settings)["evidence"]
    return predictor(evidence, Z), nuisance_of(evidence)


PLAIN, WEIGHTS = np.ones(N), np.linspace(0.5, 2.0, N)


@pytest.mark.parametrize(
    ("likelihood", "weights"),
    [("normal", PLAIN), ("normal", WEIGHTS), ("bernoulli", PLAIN), ("poisson", WEIGHTS), ("negative_binomial", PLAIN)],
    ids=["normal", "normal weights", "bernoulli", "poisson weights", "negative_binomial"],
)
def test_every_loss_by_hand(likelihood, weights, monkeypatch):
    """A penalty is in units of the whole: a fold's share of the weight is taken off it."""
    y, settings = TARGETS[likelihood], {"points": 4, "weakest": 0.01, "folds": 3, "fold_seed": 3}
    Z = standardised(X, weights)
    likeness = Z @ (Z.T @ (weights * (y - np.average(y, weights=weights))))
    held = fold_weights(y.astype(float), likeness, weights, CV(**settings).folds, CV(**settings).fold_seed)
    fold = held.argmax(axis=0)
    assert_array_equal(held.sum(axis=0), weights)
    settings |= {"weights": None if np.all(weights == 1) else weights, "likelihood": likelihood, "method": "cv"}
    rough = fit((X, y), **settings)["evidence"]
    monkeypatch.setattr(module, "_ROUGH", 1e-9)
    evidence = fit((X, y), **settings)["evidence"]
    assert np.all(np.abs(rough["cv_loss"] - evidence["cv_loss"]) < 0.02 * evidence["cv_se"])
    penalty = evidence["cv_penalty"].to_numpy()
    losses = np.empty((3, 4))
    for k in range(3):
        rows, out = fold != k, fold == k
        for i, whole in enumerate(penalty):
            share = weights[rows].sum() / weights.sum()
            eta, nuisance = fitted(likelihood, y, Z, rows, share * whole, weights)
            losses[k, i] = -np.average(log_density(likelihood, y, eta, nuisance)[out], weights=weights[out])
    assert_allclose(evidence["cv_loss"], losses.mean(axis=0), rtol=1e-7)
    assert_allclose(evidence["cv_se"], losses.std(axis=0, ddof=1) / np.sqrt(3), rtol=1e-5)
    best = int(np.argmin(losses.mean(axis=0)))
    assert_allclose(evidence["penalty_chosen"], penalty[best])


@every_likelihood
def test_penalties_run_down_from_the_largest(likelihood):
    y = TARGETS[likelihood]
    evidence = fit((X, y), likelihood=likelihood, method="cv", points=7, weakest=0.05)["evidence"]
    penalty = evidence["cv_penalty"].to_numpy()
    assert_allclose(penalty[1:] / penalty[:-1], 0.05 ** (1 / 6), rtol=1e-10)
    if likelihood != "negative_binomial":  # where the dispersion at the start would have to be known
        assert_allclose(penalty[0], np.abs(Z.T @ (y - y.mean())).max(), rtol=1e-8)


@every_likelihood
def test_the_answer_is_the_fit_at_the_lambda_chosen(likelihood):
    y = TARGETS[likelihood]
    evidence = fit((X, y), likelihood=likelihood, method="cv", points=10)["evidence"]
    again = fit((X, y), likelihood=likelihood, lam=float(evidence["lambda"]))["evidence"]
    for name in ("lambda", "N", "R", "mean", "sd", "criterion", "log_prior", "pull"):
        assert_allclose(evidence[name], again[name], rtol=1e-5, atol=1e-7, err_msg=name)
    assert_minimum(evidence, likelihood, y)
    unit = float(evidence["sigma"]) ** 2 if likelihood == "normal" else 1.0  # its penalty is lambda sigma^2
    assert_allclose(evidence["penalty_chosen"], evidence["lambda"] * unit, rtol=1e-8)
    attributes = evidence.attrs
    assert (attributes["method"], attributes["status"], attributes["prior"]) == ("cv", "converged", "laplace")


@pytest.mark.parametrize("likelihood", ["normal", "bernoulli", "poisson"])
def test_one_standard_error_gives_the_sparser_model(likelihood):
    y = TARGETS[likelihood]
    best, sparser = (
        fit((X, y), likelihood=likelihood, method="cv", rule=rule)["evidence"] for rule in ("best", "one_se")
    )
    loss, error, penalty = (sparser[f"cv_{name}"].to_numpy() for name in ("loss", "se", "penalty"))
    assert_array_equal(loss, best["cv_loss"])
    lowest = np.argmin(loss)
    within = penalty[loss <= loss[lowest] + error[lowest]]
    assert_allclose(sparser["penalty_chosen"], within.max())
    assert sparser["penalty_chosen"] > best["penalty_chosen"]
    assert 0 < sparser["N"] <= best["N"]


@pytest.mark.parametrize("folds", [2, 3, 5, 7])
@every_likelihood
def test_folds_are_balanced_in_the_target(likelihood, folds):
    y = TARGETS[likelihood].astype(float)
    fold = balanced_folds(y, folds, 0)
    assert np.ptp(np.bincount(fold, minlength=folds)) <= 1
    for level in np.quantile(y, [0.1, 0.3, 0.5, 0.8]):
        assert np.ptp(np.bincount(fold[y <= level], minlength=folds)) <= 1
    assert_array_equal(balanced_folds(y, folds, 0), fold)
    assert np.any(balanced_folds(y, folds, 1) != fold) or likelihood == "normal"


def test_rows_come_in_any_order():
    """Ties between equal targets are broken by chance, not by the order of the rows."""
    y = np.repeat([0.0, 1.0], 50)
    fold = balanced_folds(y, 5, 0)
    assert not np.array_equal(fold[:50], np.arange(50) % 5)


def test_too_few_rows():
    with pytest.raises(ValueError, match=r"^9 rows are too few for 5 folds; give fewer `folds`\.$"):
        fit((X[:9], TARGETS["normal"][:9]), method="cv")
    assert fit((X[:10, :2], TARGETS["normal"][:10]), method="cv")["evidence"].sizes["penalty"] == 20


def test_nothing_to_find():
    rng = np.random.default_rng(1)
    with pytest.warns(bs.FitWarning, match="bias only"):
        evidence = fit((rng.standard_normal((80, 4)), rng.standard_normal(80)), method="cv")["evidence"]
    assert (evidence.attrs["status"], int(evidence["N"])) == ("null", 0)
    assert np.argmin(evidence["cv_loss"].to_numpy()) == 0
    assert_allclose(evidence["penalty_chosen"], evidence["cv_penalty"].max())


def test_a_given_split_is_kept_whatever_the_seed_of_the_draws():
    one, other = (fit((X, TARGETS["poisson"]), likelihood="poisson", method="cv", random_seed=s) for s in (1, 2))
    assert_array_equal(one["evidence"]["cv_loss"], other["evidence"]["cv_loss"])
    third = fit((X, TARGETS["poisson"]), likelihood="poisson", method="cv", fold_seed=5)
    assert np.any(third["evidence"]["cv_loss"] != one["evidence"]["cv_loss"])
