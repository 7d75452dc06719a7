"""A fit is the same in one thread of many as it is alone, for every likelihood, also where nothing is compiled yet."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pymc as pm
import pytest

import bayes_sparse as bs
from bayes_sparse.common.registry import options
from tests.laws.threads import LIKELIHOODS, MODELS, differences

ROOT = Path(__file__).parents[2]
COLD = "from tests.laws.threads import differences; print(differences({}, {!r}, cold=True))"


def cold(fits, models=MODELS):
    done = subprocess.run([sys.executable, "-c", COLD.format(fits, models)], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or done.stderr[-2000:]


def test_the_law_is_about_every_likelihood():
    assert sorted(LIKELIHOODS) == options("bayes_sparse.inputs.likelihoods")


def test_eight_threads_at_a_cold_start():
    assert cold(1, ["ard_gaussian"]) == "[]"


@pytest.mark.slow
def test_eight_threads_once_all_is_compiled():
    assert differences(1, ["laplace_eigen"]) == []


def own_models():
    """Of which one is read node by node, and one is differentiated as a whole."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    for link in (lambda eta: eta, pm.math.tanh):
        with pm.Model() as model:
            w = pm.Normal("w", 0, pm.HalfNormal("scales", shape=3), shape=3)
            pm.Normal("y", link(pm.math.dot(X, w)), pm.HalfNormal("s"), observed=X[:, 0] + 0.3 * rng.normal(size=40))
        yield model


@pytest.mark.slow
def test_eight_threads_at_models_of_the_user():
    """Each model is shared by the threads."""
    models = list(own_models())

    def answer(k):
        tree = bs.fit(models[k], method=("evidence", "revm")[k], draws=10, random_seed=1, progressbar=False)
        return tree["posterior"]["w"].to_numpy().tobytes()

    often = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(8) as pool:
            beside = list(pool.map(answer, [0, 1] * 8))
    finally:
        sys.setswitchinterval(often)
    assert beside == [answer(0), answer(1)] * 8


@pytest.mark.slow
def test_eight_threads_a_hundred_fits_at_a_cold_start():
    """19,800 fits of 14 to 17 ms: six or seven minutes of the processor, a fifth of it for switching so often."""
    assert cold(100) == "[]"


@pytest.mark.slow
def test_eight_threads_a_hundred_fits_once_all_is_compiled():
    """As long."""
    assert differences(100) == []
