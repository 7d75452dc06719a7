"""NUTS of a density given as a function: moments of a known one, the order of coordinates, counts and statistics."""

import importlib.util
import multiprocessing
import os
import signal
from dataclasses import replace

import arviz as az
import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayes_sparse.fitting.nuts.density import Density, _stopped, sample_density
from bayes_sparse.inference.sampling import Chains, Sampling, choose_sampler

MEAN = np.array([10.0, -2.0, 0.5])
COVARIANCE = np.array([[4.0, 1.2, -0.3], [1.2, 1.0, 0.2], [-0.3, 0.2, 0.25]])
PRECISION = np.linalg.inv(COVARIANCE)
# Neither the truth nor a multiple of it: the sampler's coordinates must not show in the draws.
FACTOR = np.array([[1.5, 0.0, 0.0], [0.9, 0.4, 0.0], [-0.2, 0.3, 0.6]])
STATS = {
    "diverging",
    "energy",
    "lp",
    "tree_depth",
    "n_steps",
    "step_size",
    "acceptance_rate",
    "reached_max_treedepth",
}


def normal(x):
    gap = x - MEAN
    return -0.5 * gap @ PRECISION @ gap, -PRECISION @ gap


DRAWS = {"pymc": 400, "nutpie": 1000}  # PyMC calls the function from Python, at ten times the cost


def settings(sampler, draws, tune=200):
    if sampler == "nutpie":
        pytest.importorskip("nutpie")
    return Sampling(draws, tune, 2, 0.8, sampler, 1, False, {"cores": 1})


def within(values, truth):
    """Whether the mean of draws (chains, draws) is within four Monte-Carlo standard errors."""
    ess = float(az.ess(values, method="mean"))
    return abs(values.mean() - truth) < 4 * values.std() / np.sqrt(ess)


@pytest.fixture(scope="module", params=["pymc", "nutpie"])
def run(request):
    calls = []

    def counting(x):
        calls.append(x)
        return normal(x)

    density = Density(counting, MEAN + np.array([1.0, -0.5, 0.1]), FACTOR)
    return request.param, sample_density(density, settings(request.param, DRAWS[request.param])), len(calls)


def test_mean_and_covariance_of_a_correlated_normal(run):
    x = run[1].x
    assert x.shape == (2, DRAWS[run[0]], 3)
    gap = x - MEAN
    for i in range(3):
        assert within(x[..., i], MEAN[i])
        for j in range(i + 1):
            assert within(gap[..., i] * gap[..., j], COVARIANCE[i, j])


def test_lp_is_the_density_of_its_own_draw(run):
    expected = [[normal(x)[0] for x in chain] for chain in run[1].x]
    assert_allclose(run[1].stats["lp"], expected, rtol=1e-10, atol=1e-12)


def test_statistics_have_the_names_of_arviz(run):
    stats = run[1].stats
    assert set(stats) == STATS
    assert all(values.shape == (2, DRAWS[run[0]]) for values in stats.values())
    assert not stats["diverging"].any()
    assert np.all((stats["acceptance_rate"] >= 0) & (stats["acceptance_rate"] <= 1))


def test_gradients_are_counted(run):
    """The leapfrog steps; beside them only the search for a first step size and, by PyMC, each draw's own start."""
    sampler, chains, calls = run
    assert chains.gradients == int(chains.stats["n_steps"].sum())
    assert chains.warmup_gradients > 0
    more = calls - chains.gradients - chains.warmup_gradients
    starts = 2 * (DRAWS[sampler] + 200) if sampler == "pymc" else 0
    assert 0 < more <= starts + 2 * 50


@pytest.mark.parametrize("sampler", ["pymc", "nutpie"])
def test_a_half_line_is_not_left(sampler):
    """Exponential: the density ends where it is largest, so there is no gradient to turn the path back."""

    def exponential(x):
        return (-x[0], -np.ones(1)) if x[0] > 0 else (-np.inf, np.zeros(1))

    density = Density(exponential, np.array([1.5]), np.array([[0.5]]))
    x = sample_density(density, settings(sampler, 2 * DRAWS[sampler])).x[..., 0]
    assert x.min() > 0
    assert within(x, 1.0)
    assert within(x**2, 2.0)


def test_coordinates_and_gradient_of_the_sampler():
    density, z = Density(normal, MEAN, FACTOR), np.array([0.3, -1.0, 2.0])
    value, gradient = density(z)
    assert_allclose(value, normal(MEAN + FACTOR @ z)[0])
    steps = 1e-5 * np.eye(3)
    assert_allclose(gradient, [(density(z + s)[0] - density(z - s)[0]) / 2e-5 for s in steps], rtol=1e-7)
    assert_allclose(density.x(np.stack([[z, 2 * z]])), [[MEAN + FACTOR @ z, MEAN + 2 * FACTOR @ z]])


def test_samplers_by_name():
    assert choose_sampler("pymc") == "pymc"
    assert choose_sampler("auto") == ("nutpie" if importlib.util.find_spec("nutpie") else "pymc")
    with pytest.raises(ValueError, match=r"^`sampler` is one of 'auto', 'nutpie', 'pymc', got 'stan'\.$"):
        choose_sampler("stan")


def test_without_nutpie_pymc_samples(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert choose_sampler("auto") == "pymc"
    with pytest.raises(ValueError, match="needs the package nutpie"):
        choose_sampler("nutpie")


@pytest.mark.parametrize("sampler", ["pymc", "nutpie"])
def test_chains_are_the_same_in_processes_of_their_own(sampler):
    density, alone = Density(normal, MEAN, FACTOR), settings(sampler, 30, tune=30)
    one, two = (sample_density(density, replace(alone, more={"cores": cores})) for cores in (1, 2))
    assert_allclose(one.x, two.x)
    assert_allclose(one.stats["energy"], two.stats["energy"])
    assert (one.gradients, one.warmup_gradients) == (two.gradients, two.warmup_gradients)
    assert not np.allclose(one.x[0], one.x[1])


@pytest.mark.parametrize("block", [np.array([0, 2]), np.array([1, 2]), slice(1, 3), slice(0)])
def test_some_coordinates_are_correlated(block):
    """Those in the block have the factor, the others sds of 1."""
    z, rows = np.array([[0.3, -1.0, 2.0], [1.0, 0.5, -0.4]]), np.arange(3)[block]
    whole = np.eye(3)
    whole[np.ix_(rows, rows)] = FACTOR[np.ix_([0, 2], [0, 2])][: len(rows), : len(rows)]
    density, dense = Density(normal, MEAN, whole[np.ix_(rows, rows)], block), Density(normal, MEAN, whole)
    assert_allclose(density.x(z), dense.x(z))
    for row in z:
        (value, slope), (other, expected) = density(row), dense(row)
        assert_allclose(value, other)
        assert_allclose(slope, expected)


@pytest.mark.parametrize("sampler", ["pymc", "nutpie"])
@pytest.mark.parametrize("cores", [1, 2])
def test_ctrl_c_leaves_the_draws_made_so_far(sampler, cores):
    parent, calls = os.getpid(), multiprocessing.get_context("fork").Value("i", 0)  # of all processes

    def stopped(x):
        with calls.get_lock():
            calls.value += 1
            if calls.value == 4000 * cores:
                os.kill(parent, signal.SIGINT)
        return normal(x)

    asked = replace(settings(sampler, 100_000), more={"cores": cores})
    made = sample_density(Density(stopped, MEAN, FACTOR), asked)
    assert made.stopped
    chains, draws = made.x.shape[:2]
    assert 1 <= chains <= cores
    assert 0 < draws < 100_000
    assert all(values.shape == (chains, draws) for values in made.stats.values())
    assert np.isfinite(made.x).all()


@pytest.mark.parametrize("sampler", ["pymc", "nutpie"])
def test_ctrl_c_during_the_warm_up_leaves_nothing(sampler):
    calls = 0

    def stopped(x):
        nonlocal calls
        calls += 1
        if calls == 1000:
            os.kill(os.getpid(), signal.SIGINT)
        return normal(x)

    with pytest.raises(KeyboardInterrupt):
        sample_density(Density(stopped, MEAN, FACTOR), settings(sampler, 10, tune=100_000))


def test_chains_that_were_stopped_are_cut_to_leave_most_draws():
    """Of 90, 50, 80 and 10 draws, two chains of 80 are most."""
    parts = [Chains(np.full((1, n, 2), n), {"lp": np.full((1, n), n)}, n, 1) for n in (90, 50, 80, 10)]
    made = _stopped(parts)
    assert made.x.shape == (2, 80, 2)
    assert made.x[:, 0, 0].tolist() == [90, 80]
    assert made.stats["lp"].shape == (2, 80)
