"""Priors that are written out as independent Normals: against PyMC's own densities of the variables."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import bayes_sparse as bs
from bayes_sparse.inputs.pm_model.graph import number_of
from bayes_sparse.inputs.pm_model.normal_priors import normal_prior
from bayes_sparse.results.importance import coordinate_draws
from tests.support import UNCOMPILED

RNG = np.random.default_rng(4)
ROOT = np.tril(RNG.standard_normal((4, 4))) + 3 * np.eye(4)
START = pm.Normal.dist(0.3, 0.9)
DECLARED = {
    "effects that sum to zero": lambda: pm.ZeroSumNormal("a", sigma=0.7, shape=5),
    "rows that sum to zero": lambda: pm.ZeroSumNormal("a", sigma=[[0.7], [0.2], [3.0]], shape=(3, 5)),
    "a random walk": lambda: pm.GaussianRandomWalk("a", mu=0.2, sigma=0.4, init_dist=START, steps=6),
    "random walks": lambda: pm.GaussianRandomWalk("a", mu=0.2, sigma=0.4, init_dist=START, shape=(3, 6)),
    "by a covariance": lambda: pm.MvNormal("a", np.arange(4.0), cov=ROOT @ ROOT.T),
    "rows by a Cholesky factor": lambda: pm.MvNormal("a", np.arange(4.0), chol=ROOT, shape=(3, 4)),
}


@pytest.mark.parametrize("declare", DECLARED.values(), ids=DECLARED)
def test_the_density_is_that_of_independent_normals(declare):
    with pm.Model() as model:
        a = declare()
    prior = normal_prior(model, a)
    values = RNG.standard_normal(prior.shape)
    made = number_of(prior.make(pt.constant(values)))
    assert made.shape == tuple(a.type.shape)
    stretch = np.log(np.diag(ROOT)).sum() * (values.size // 4) if "MvNormal" in str(a.owner.op) else 0.0
    expected = stats.norm.logpdf(values, prior.mean, number_of(prior.sd)).sum() - stretch
    found = pm.logp(a, made).sum().eval(mode=UNCOMPILED)
    assert_allclose(found, expected, rtol=1e-10)


def test_what_is_not_made_of_known_normals_is_left_alone():
    with pm.Model() as model:
        scale = pm.HalfNormal("scale", 1)
        others = [
            pm.MvNormal("a", np.zeros(3), cov=scale * np.eye(3)),
            pm.ZeroSumNormal("b", shape=(3, 3), n_zerosum_axes=2),
            pm.RandomWalk("c", init_dist=pm.Normal.dist(), innovation_dist=pm.Laplace.dist(0, 1), steps=4),
            pm.StudentT("d", nu=3, mu=0, sigma=1),
            pm.Laplace("e", 0, 1, shape=3, transform=pm.distributions.transforms.ordered),
        ]
    assert [normal_prior(model, rv) for rv in others] == [None] * len(others)


def test_a_walk_with_a_drift_to_be_found_comes_back_under_its_name():
    """Several series, each with a drift: the truth is found, and PyMC predicts from it."""
    rng, T = np.random.default_rng(7), 40
    trend = np.cumsum(rng.normal([[0.3], [-0.2]], 0.1, size=(2, T)), axis=1)
    X = rng.standard_normal((2 * T, 4))
    y = trend.ravel() + X @ [1.0, 0, 0, -1.0] + 0.2 * rng.standard_normal(2 * T)
    with pm.Model(coords={"series": ["up", "down"], "time": range(T)}) as model:
        w = pm.Normal("w", 0, pm.HalfCauchy("s", 1, shape=4))
        drift, step = pm.Normal("drift", 0, 1, dims="series"), pm.HalfNormal("step", 0.5)
        walk = pm.GaussianRandomWalk(
            "walk", mu=drift, sigma=step, init_dist=pm.Normal.dist(0, 1), dims=("series", "time")
        )
        pm.Normal("y", walk.ravel() + X @ w, pm.HalfNormal("sigma", 1), observed=y)
    tree = bs.fit(model, draws=200, random_seed=1, progressbar=False)
    posterior = tree["posterior"].to_dataset()
    assert posterior["walk"].dims == ("chain", "draw", "series", "time")
    off = (posterior["walk"].mean(("chain", "draw")) - trend) / posterior["walk"].std(("chain", "draw"))
    assert float((off**2).mean()) < 2
    assert_allclose(posterior["drift"].mean(("chain", "draw")), [0.3, -0.2], atol=4 * 0.1 / np.sqrt(T))
    drawn = pm.sample_posterior_predictive(
        tree, model, progressbar=False, random_seed=1, compile_kwargs={"mode": UNCOMPILED}
    )
    assert abs(float(drawn["posterior_predictive"]["y"].mean() - y.mean())) < 0.1


def test_effects_that_sum_to_zero_come_back_as_they_are_and_are_diagnosed():
    rng, groups, n = np.random.default_rng(9), 6, 120
    kind, x = np.arange(n) % groups, rng.standard_normal((n, 2))
    truth = rng.standard_normal(groups)
    y = (truth - truth.mean())[kind] + x[:, 0] + 0.3 * rng.standard_normal(n)
    with pm.Model(coords={"kind": list("abcdef")}) as model:
        w = pm.Normal("w", 0, pm.HalfCauchy("s", 1, shape=2))
        a = pm.ZeroSumNormal("a", sigma=pm.HalfNormal("spread", 1), dims="kind")
        pm.Normal("y", x @ w + a[kind], pm.HalfNormal("sigma", 1), observed=y)
    tree = bs.fit(model, draws=100, random_seed=1, progressbar=False)
    found = tree["posterior"]["a"]
    assert list(found["kind"].to_numpy()) == list("abcdef")
    assert_allclose(found.sum("kind"), 0.0, atol=1e-12)
    assert_allclose(found.mean(("chain", "draw")), truth - truth.mean(), atol=4 * 0.3 / np.sqrt(n / groups))
    assert bs.diagnose(tree).k_hat < 0.5
    drawn, evidence = coordinate_draws(tree), tree["evidence"]
    assert_allclose(drawn.mean(axis=0), evidence["coordinate_mean"], atol=5 * drawn.std(axis=0).max() / np.sqrt(400))
