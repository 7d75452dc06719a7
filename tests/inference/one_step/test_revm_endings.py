"""How a one-step fit can end, and what is said."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar

import bayes_sparse as bs
from bayes_sparse.common.statuses import Status
from bayes_sparse.fitting.families import Task
from bayes_sparse.fitting.families.one_step import OneStepFamily, Weighed
from bayes_sparse.inference.one_step import expansion
from bayes_sparse.inference.priors import Gaussian
from bayes_sparse.inputs.prepare import prepare
from bayes_sparse.methods import REVM
from bayes_sparse.models import ARDGaussian
from tests.support import assert_one_sentence

from .systems import BARE, BINARY, ETA, RNG, SMALL, SYSTEMS, TARGETS, N, P, X, Z, fit


@pytest.mark.parametrize("likelihood", ["bernoulli", "categorical"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_separable_classes_are_reported(system, likelihood, messages):
    y = Z[:, 1] > 0.1 if likelihood == "bernoulli" else np.digitize(Z[:, 1], [-0.5, 0.5])
    with pytest.warns(bs.FitWarning, match="separate the classes perfectly.*check with method='nuts'") as caught:
        tree = fit(system, (X, y), likelihood=likelihood)
    assert len(caught) == 1
    assert caught[0].filename == fit.__code__.co_filename  # the line of the user's own that called bs.fit
    assert tree["evidence"].attrs["separable"] == 1
    assert tree["evidence"].attrs["status"] == "separable"
    assert len(messages) == 1
    assert "separate the classes" in messages[0]
    assert "`expansion`" in messages[0]
    probability = bs.predict(tree, X)["probability"].to_numpy()
    assert np.all((probability > 0) & (probability < 1))


def test_separable_at_the_expansion_but_not_at_the_answer():
    """Kernels separate anything; the few directions kept do not, and the status speaks of them."""
    with pytest.warns(bs.FitWarning, match="misjudges the evidence"):
        evidence = fit("GREVM", (Z, BINARY), basis=bs.basis.rbf(0.5), expansion="ridge")["evidence"]
    assert evidence.attrs["separable"] == 1
    assert evidence.attrs["status"] == "converged"
    assert 0 < evidence.attrs["directions_kept"] < 60


RARE = np.arange(N) % 4 == 0
NOTHING = {  # targets that have nothing to do with X: what is predicted, and its value for a new row
    "bernoulli": (RARE, lambda p: p["probability"].sel({"class": True}), RARE.mean()),
    "categorical": (np.arange(N) % 4 // 2 + RARE, lambda p: p["probability"].sel({"class": 1}), 0.75),
    "normal": (np.arange(N) % 4 + 3.5, lambda p: p["mean"], 5.0),
    "poisson": (np.arange(N) % 4, lambda p: p["mean"], 1.5),
}


@pytest.mark.parametrize("likelihood", NOTHING)
@pytest.mark.parametrize("system", SYSTEMS)
def test_the_answer_when_nothing_is_kept_is_the_base_rate(system, likelihood):
    """Columns orthogonal to the target: every direction is pruned, and the prediction is the bias's, never 0.5."""
    y, of, rate = NOTHING[likelihood]
    wave = 2 * np.pi * np.arange(N)[:, None] / N * np.array([1, 2, 7])
    with pytest.warns(bs.FitWarning, match="No basis function pays for itself.*bias only") as caught:
        tree = fit(system, (np.cos(wave), y), likelihood=likelihood, **SMALL)
    assert len(caught) == 1
    evidence = tree["evidence"]
    assert evidence.attrs["status"] == "null"
    assert evidence.attrs["directions_kept"] == evidence.attrs["degrees_of_freedom"] == 0
    assert np.isposinf(evidence["alpha"]).all()
    assert np.all(evidence["mean"] == 0)
    assert "u" not in tree["posterior"]
    assert "w" not in tree["posterior"]
    assert_allclose(of(bs.predict(tree, np.cos(wave[:5]))), rate, rtol=0.03)  # a wide prior and an average over it


@pytest.mark.parametrize("system", ["GREVM", "LREVM"])
def test_nothing_kept_far_out_names_a_cure_that_works(system):
    """Many columns separate the classes: at a small ridge the likelihood is flat, at the evidence's it is not."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    wide = rng.standard_normal((40, 300)) + 0.5 * y[:, None] * (np.arange(300) < 100)
    with pytest.warns(bs.FitWarning) as caught:
        tree = fit(system, (wide, y), expansion="ridge")
    assert tree["evidence"].attrs["status"] == "null"
    assert len(caught) == 1
    assert_one_sentence(str(caught[0].message), "bias only", "expansion='evidence'")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bs.FitWarning)  # the classes are separable
        cured = fit(system, (wide, y), expansion="evidence")["evidence"]
    assert cured.attrs["directions_kept"] > 0


@pytest.mark.parametrize("system", ["GREVM", "LREVM"])
def test_nothing_kept_of_a_few_columns_among_many_names_a_cure_that_works(system):
    """Two columns of 500 matter; every direction is a mix of all, and none pays for itself."""
    data = bs.datasets.sparse_logistic(n=100, p=500, k=2, signal=1.5, random_seed=0)
    with pytest.warns(bs.FitWarning) as caught:
        tree = fit(system, (data.X, data.y))
    assert tree["evidence"].attrs["status"] == "null"
    assert len(caught) == 1
    assert_one_sentence(str(caught[0].message), "bias only", "bs.fit('jeffreys_laplace', ...)")
    cured = bs.fit("jeffreys_laplace", (data.X, data.y), draws=0)["evidence"]
    assert bool(cured["kept"].to_numpy()[data.relevant].any())


@pytest.mark.filterwarnings("ignore:No basis function pays:bayes_sparse.FitWarning")
@pytest.mark.parametrize("system", SYSTEMS)
def test_nothing_kept_and_no_bias_is_an_even_chance_and_quiet(system, capfd):
    wave = np.cos(2 * np.pi * np.arange(N)[:, None] / N * np.array([1, 2]))
    tree = fit(system, (wave, np.arange(N) % 2), likelihood="bernoulli", basis=bs.basis.linear(bias=False), **SMALL)
    assert tree["evidence"].attrs["status"] == "null"
    assert_allclose(bs.predict(tree, wave[:3])["probability"], 0.5)
    assert capfd.readouterr().out == ""  # an empty matrix makes LAPACK complain to the terminal


def test_a_kept_column_is_not_nothing():
    wave = np.cos(2 * np.pi * np.arange(N)[:, None] / N * np.array([1, 2]))
    tree = fit("GREVM", (np.column_stack([wave, Z[:, 0]]), BINARY), keep="x2", expansion=1)
    kept = tree["evidence"]
    assert kept["mean"].sel(basis="x2") > 0
    assert kept.attrs["status"] == "converged"


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_target_without_noise(system):
    with pytest.warns(bs.FitWarning, match="noise has collapsed"):
        tree = fit(system, (X, 1.0 + 2.0 * X[:, 0] - X[:, 1]))
    assert tree["evidence"].attrs["status"] == "noise_collapsed"
    assert_allclose(tree["evidence"]["mean"], [2.0, -1.0, 0.0, 0.0], atol=1e-2)


@pytest.mark.parametrize("system", ["GREVM", "LREVM"])
def test_a_fit_that_uses_up_the_data(system):
    rng = np.random.default_rng(4)
    wide = rng.standard_normal((20, 60))
    with pytest.warns(bs.FitWarning, match="noise has collapsed|uses up the data") as caught:
        tree = fit(system, (wide, wide @ rng.standard_normal(60)))
    assert "offer fewer basis functions" in str(caught[0].message)
    assert tree["evidence"].attrs["degrees_of_freedom"] > 10


def test_a_ridge_that_takes_too_many_newton_steps_is_left_and_that_is_said(monkeypatch):
    monkeypatch.setattr(expansion, "_ENOUGH", 5)
    with pytest.warns(bs.FitWarning, match="did not converge") as caught:
        tree = fit("GREVM", (X, TARGETS["negative_binomial"]), likelihood="negative_binomial")
    assert tree["evidence"].attrs["status"] == "max_iterations"
    assert np.isfinite(tree["evidence"]["log_evidence"])
    assert_one_sentence(str(caught[0].message))
    assert "method='mackay'" in str(caught[0].message)


def student_curvature(r, sigma, nu=4.0):
    return (nu + 1) * (nu * sigma**2 - r**2) / (nu * sigma**2 + r**2) ** 2


@pytest.mark.parametrize("system", SYSTEMS)
def test_gross_outliers_turn_directions_upwards_and_that_is_said(system, messages):
    y = ETA + 0.3 * np.random.default_rng(1).standard_normal(N)
    y[:5] += 50 * Z[:5, 3]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bs.FitWarning)
        evidence = fit(system, (Z, y), likelihood="student_t", expansion="zero", basis=BARE)["evidence"]
    found = minimize_scalar(lambda b: np.sum(np.log1p((y - b) ** 2 / (4 * evidence["sigma"].item() ** 2))))
    A = np.column_stack([Z, np.ones(N)])
    H = (A * student_curvature(y - found.x, evidence["sigma"].item())[:, None]).T @ A
    S = H[:P, :P] - np.outer(H[:P, P], H[P, :P]) / (H[P, P] + 0.01 / np.median(y**2))
    upwards = int(np.sum(np.linalg.eigvalsh(S) < 0))
    assert upwards > 0
    assert evidence.attrs["directions_dropped"] == upwards
    assert f"{upwards} of 4 directions along which it curves upwards were dropped" in messages[0]
    assert evidence.attrs["directions"] == (1 if system == "R_0" else P - upwards)


@pytest.mark.parametrize(("outliers", "seed"), [(1, 0), (5, 6), (20, 0)])
@pytest.mark.parametrize("system", SYSTEMS)
def test_an_evidence_is_never_above_the_highest_likelihood(system, outliers, seed):
    """Whatever outliers do to the quadratic, the evidence at the mode is an average of likelihoods."""
    rng = np.random.default_rng(seed)
    y = ETA + 0.3 * rng.standard_normal(N)
    y[:outliers] += 50 * Z[:outliers, 3]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bs.FitWarning)
        evidence = fit(system, (X, y), likelihood="student_t", expansion="zero")["evidence"]
    highest = N * (np.log(0.375) - np.log(evidence["sigma"].item()))  # the density of t with 4 degrees at zero is 3/8
    assert evidence["log_evidence_mode"] < highest


def test_a_quadratic_far_from_the_likelihood_is_pointed_out():
    with pytest.warns(bs.FitWarning, match=r"misjudges the evidence by \d+ nats.*expansion='evidence' is safer"):
        evidence = fit("GREVM", (X, TARGETS["poisson"]), likelihood="poisson", expansion="zero")["evidence"]
    assert evidence.attrs["status"] == "converged"
    assert abs(evidence["log_evidence"] - evidence["log_evidence_mode"]) > 10


@pytest.mark.parametrize(
    ("expansion", "cure"),
    [("ridge", "expansion='evidence' is safer"), ("evidence", "check with method='nuts'")],
)
def test_the_cure_is_never_what_was_already_done(expansion, cure):
    labelled = ARDGaussian().problem(prepare((X, BINARY), None, "bernoulli", BARE, None, None, None))
    outcome = REVM()(labelled.surface, Gaussian(), expansion, 0.0, lambda *_: None)
    far = replace(outcome, log_evidence=outcome.log_evidence_mode + 50.0)
    task = Task(labelled, ARDGaussian(), REVM(), None)
    with pytest.warns(bs.FitWarning, match="misjudges the evidence by 50 nats") as caught:
        OneStepFamily().warn(task, Weighed(far, expansion, 0.0), Status.CONVERGED)
    assert str(caught[0].message).endswith(f"{cure}.")


def test_a_normal_likelihood_is_never_called_far_from_quadratic():
    """What the small ridge leaves out may be large when the noise is small; that is another sentence."""
    y = 1.0 + 2.0 * X[:, 0] - X[:, 1] + 1e-3 * RNG.standard_normal(N)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit("GREVM", (X, y))
    assert not any("far from quadratic" in str(w.message) for w in caught)
