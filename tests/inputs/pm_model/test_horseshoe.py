"""A horseshoe in a model of the user's own: known by its sd, fitted as the named one, put back under its names."""

import logging

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose
from scipy.stats import halfnorm, invgamma

import bayes_sparse as bs
from bayes_sparse.inputs.pm_model import read_model
from bayes_sparse.inputs.pm_model.horseshoe import find_horseshoe
from bayes_sparse.inputs.pm_model.own_problem import _say_once

N, M = 80, 6
RNG = np.random.default_rng(3)
X = RNG.standard_normal((N, M))
X = (X - X.mean(axis=0)) / X.std(axis=0)
ETA = 0.3 + 1.5 * X[:, 0] - X[:, 1]
TARGETS = {
    "bernoulli": (RNG.random(N) < 1 / (1 + np.exp(-ETA))).astype(int),
    "poisson": RNG.poisson(np.exp(0.6 * ETA)),
    "normal": 50 * (ETA + 0.8 * RNG.standard_normal(N)) + 7,
}

SHORT = {"draws": 50, "tune": 100, "chains": 1, "retry": False, "progressbar": False}


@pytest.fixture(autouse=True)
def say_it_again():
    _say_once.cache_clear()


def half_cauchys(tau0=0.1, scale=1.0):
    return pm.HalfCauchy("tau", tau0), pm.HalfCauchy("lam", scale, shape=M)


def within(sd, c2):
    return sd * pt.sqrt(c2 / (c2 + sd**2))


def observed(w, kind="bernoulli", bias_sd=10.0, start=0.0):
    eta = pm.Normal("b", 0.0, bias_sd) + pt.dot(X, w)
    if kind == "bernoulli":
        pm.Bernoulli("y", logit_p=eta, observed=TARGETS[kind])
    elif kind == "poisson":
        pm.Poisson("y", pt.exp(eta), observed=TARGETS[kind])
    else:  # flat in log sigma, as for named models
        pm.Normal("y", eta, pt.exp(pm.Flat("log_sigma", initval=start)), observed=TARGETS[kind])


def declared(sd, **known):
    with pm.Model() as model:
        observed(pm.Normal("w", 0.0, sd(), shape=M), **known)
    return model


def plain():
    tau, lam = half_cauchys()
    return tau * lam


def scaled():
    tau, lam = half_cauchys(0.2, 3.0)
    return 0.5 * tau * lam


def nested():
    return pm.HalfCauchy("lam", 2.0 * pm.HalfCauchy("tau", 0.1), shape=M)


def constant_slab():
    return within(plain(), 2.0**2)


def narrow_slab():
    return 1 / pt.sqrt(1 / plain() ** 2 + 1 / 1e-3**2)


def random_slab():
    return within(plain(), pm.InverseGamma("c2", 2.0, 8.0))


def half_cauchy_slab():
    c = pm.HalfCauchy("c", 2.0)  # declared before tau: which of them is tau is seen in the sd
    return within(plain(), c**2)


def half_normal_slab():
    return within(plain(), pm.HalfNormal("c", 3.0) ** 2)


def held_in_data():
    return pm.HalfCauchy("tau", pm.Data("tau0", 0.3)) * pm.HalfCauchy("lam", 1.0, shape=M)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("sd", "tau0", "slab"),
    [
        (plain, 0.1, np.inf),
        (scaled, 0.3, np.inf),
        (nested, 0.2, np.inf),
        (held_in_data, 0.3, np.inf),
        (constant_slab, 0.1, 2.0),
        (narrow_slab, 0.1, 1e-3),
        (random_slab, 0.1, invgamma.median(2.0, scale=8.0) ** 0.5),
        (half_cauchy_slab, 0.1, 2.0),
        (half_normal_slab, 0.1, halfnorm.median(scale=3.0)),
    ],
)
def test_its_scale_and_its_slab_are_found(sd, tau0, slab):
    model = declared(sd)
    read = read_model(model)
    found = find_horseshoe(model, read.roles[0], read.nuisance)
    assert_allclose([found.tau0, found.floor], [tau0, slab**-2.0], rtol=1e-7)
    assert (found.tau, found.local) == ("tau", "lam")
    # The values put back into the user's own sd give the precisions that they were found for.
    precision = found.floor + np.linspace(0.5, 90, M)
    values = found.points(precision)
    given = pm.do(model, values)
    assert_allclose(given["w"].owner.op.dist_params(given["w"].owner)[1].eval() ** -2.0, precision, rtol=1e-7)


@pytest.mark.parametrize("slab", [None, 1.5])
@pytest.mark.parametrize("kind", TARGETS)
def test_it_is_fitted_as_the_named_one(kind, slab):
    bias_sd = 500.0 if kind == "normal" else 10.0
    settings = {"draws": 0, "tolerance": 1e-10, "progressbar": False}
    named = bs.fit("horseshoe", (X, TARGETS[kind]), likelihood=kind, slab=slab, bias_sd=bias_sd, **settings)["evidence"]
    tau0, unit = named.attrs["tau0"], named.attrs["hyper_unit"]

    def sd():
        tau, lam = half_cauchys(tau0)
        return tau * lam if slab is None else within(tau * lam, (slab * unit) ** 2)

    own = bs.fit(declared(sd, kind=kind, bias_sd=bias_sd, start=np.log(unit)), **settings)["evidence"]
    assert own.attrs["method"] == "global_local"
    assert_allclose(own["objective"], named["objective"], rtol=1e-9)
    assert_allclose(own["mean"], named["mean"], rtol=0, atol=1e-6 * np.abs(named["mean"]).max())
    for name in ("sd", "alpha"):
        assert_allclose(own[name], named[name], rtol=1e-4 if kind == "normal" else 1e-6)
    for name in ("tau", "tau0", "slab"):
        assert_allclose(own.attrs.get(name, 0.0), named.attrs.get(name, 0.0), rtol=1e-5)
    assert_allclose(own["tau"], own.attrs["tau"], rtol=1e-9)
    above = own["alpha"] - (0.0 if slab is None else (slab * unit) ** -2.0)
    assert_allclose((float(own["tau"]) * own["lam"]) ** -2.0, above, rtol=1e-6)


def test_a_random_slab_is_held_at_its_median_and_that_is_said(caplog):
    with caplog.at_level(logging.INFO, logger="bayes_sparse"):
        evidence = bs.fit(declared(random_slab), draws=0)["evidence"]
    assert "c2 is held at its prior median, 4.767" in caplog.text
    assert_allclose(evidence["c2"], invgamma.median(2.0, scale=8.0), rtol=1e-7)


def half_normal_scales():
    return pm.HalfNormal("tau", 0.1) * pm.HalfCauchy("lam", 1.0, shape=M)


def half_t_scales():
    return pm.HalfCauchy("tau", 0.1) * pm.HalfStudentT("lam", 3.0, shape=M)


def not_a_product():
    tau, lam = half_cauchys()
    return tau + lam


def one_scale_a_column():
    tau, lam = half_cauchys()
    return tau * lam * np.arange(1.0, M + 1)


def random_scale():
    return pm.HalfCauchy("tau", pm.HalfNormal("sigma", 1.0)) * pm.HalfCauchy("lam", 1.0, shape=M)


def slab_of_groups():
    return within(plain(), pm.HalfNormal("c", 1.0, shape=2)[np.arange(M) % 2] ** 2)


OTHERS = [
    (slab_of_groups, "'c' is a vector"),
    (half_normal_scales, "'tau' is not a pm.HalfCauchy"),
    (half_t_scales, "'lam' is not a pm.HalfCauchy"),
    (not_a_product, "another function"),
    (one_scale_a_column, "another function"),
    (random_scale, "'sigma' is behind 'tau' too"),
]


@pytest.mark.parametrize(("sd", "why"), OTHERS)
def test_any_other_is_fitted_by_its_precisions_and_the_reason_is_said(sd, why, caplog):
    with caplog.at_level(logging.INFO, logger="bayes_sparse"):
        tree = bs.fit(declared(sd), draws=0)
    assert tree["evidence"].attrs["method"] == "sequential"
    assert why in caplog.text
    with pytest.raises(ValueError, match=why):
        bs.fit(declared(sd), method="global_local")


def test_a_scale_with_a_part_elsewhere():
    with pm.Model() as model:
        tau, lam = half_cauchys()
        w = pm.Normal("w", 0.0, tau * lam)
        pm.Bernoulli("y", logit_p=X @ w + pm.Normal("b", 0.0, tau), observed=TARGETS["bernoulli"])
    with pytest.raises(ValueError, match="'tau' is behind the likelihood too"):
        bs.fit(model, method="global_local")


def test_two_horseshoes():
    with pm.Model() as model:
        tau, lam = half_cauchys()
        both = [pm.Normal(name, 0.0, tau * lam) for name in "uv"]
        pm.Bernoulli("y", logit_p=X @ both[0] + X**2 @ both[1], observed=TARGETS["bernoulli"])
    with pytest.raises(ValueError, match="one horseshoe"):
        bs.fit(model, method="global_local")


@pytest.mark.parametrize(
    ("asked", "method"),
    [({"method": "mackay"}, "mackay"), ({"hyper": (1.0, 0.1)}, "mackay"), ({"prior": "gaussian"}, "sequential")],
)
def test_its_precisions_are_fitted_where_that_is_asked_for(asked, method):
    evidence = bs.fit(declared(plain), draws=0, **asked)["evidence"]
    assert evidence.attrs["method"] == method
    assert "tau0" not in evidence.attrs
    with pytest.raises(ValueError, match="a horseshoe prior is fitted by method='global_local'"):
        bs.fit(declared(plain), method="mackay", prior="horseshoe")


def test_nuts_samples_it_as_it_stands_from_the_evidence_fit():
    tree = bs.fit(
        declared(constant_slab),
        method="nuts",
        draws=50,
        tune=100,
        chains=1,
        random_seed=0,
        retry=False,
        progressbar=False,
    )
    told = tree["posterior"].attrs
    assert (told["start"], told["compiled"]) == ("global_local", "all but the matrix products")
    assert {"w", "b", "tau", "lam"} == set(tree["posterior"].data_vars)
    assert np.isfinite(tree["sample_stats"]["lp"]).all()


def not_centred():
    with pm.Model() as model:
        tau, lam = half_cauchys()
        observed(pm.Deterministic("w", pm.Normal("z", 0.0, 1.0, shape=M) * tau * lam))
    return model


def test_one_that_is_not_centred_is_fitted_as_the_centred_one():
    asked = {"draws": 20, "random_seed": 0, "progressbar": False}
    centred, other = bs.fit(declared(plain), **asked), bs.fit(not_centred(), **asked)
    assert other["evidence"].attrs["method"] == "global_local"
    for name in ("objective", "mean", "sd", "alpha", "tau", "lam"):
        assert_allclose(other["evidence"][name], centred["evidence"][name], rtol=1e-9, atol=1e-12)
    for name in ("w", "tau", "lam", "b"):
        assert_allclose(other["posterior"][name], centred["posterior"][name], rtol=1e-9, atol=1e-12)
    z, w, tau, lam = (other["posterior"][name].to_numpy() for name in ("z", "w", "tau", "lam"))
    assert_allclose(z * tau[..., None] * lam, w, rtol=1e-9)


@pytest.mark.slow
def test_nuts_samples_one_that_is_not_centred():
    tree = bs.fit(not_centred(), method="nuts", random_seed=0, **SHORT)
    assert tree["posterior"].attrs["start"] == "global_local"
    assert np.isfinite(tree["posterior"]["w"]).all()


def test_a_wide_one_predicts_as_the_named_one_and_may_call_its_scales_lambda():
    n, many = 60, 1100  # so many that the covariance is stored as a thin factor beside the prior
    wide = np.random.default_rng(0).standard_normal((n, many))
    wide = (wide - wide.mean(axis=0)) / wide.std(axis=0)
    y = (wide[:, 0] + wide[:, 1] + 0.3 > 0).astype(int)
    named = bs.fit("horseshoe", (wide, y), bias_sd=10.0, draws=100, random_seed=0, progressbar=False)
    with pm.Model() as model:
        X_now = pm.Data("X", wide)
        tau, lam = pm.HalfCauchy("tau", named["evidence"].attrs["tau0"]), pm.HalfCauchy("lambda", 1.0, shape=many)
        w = pm.Normal("w", 0.0, within(tau * lam, 4.0))
        pm.Bernoulli("y", logit_p=pm.Normal("bias", 0.0, 10.0) + X_now @ w, observed=y)
    own = bs.fit(model, draws=100, random_seed=0, progressbar=False)
    assert own["evidence"]["lambda"].size == many
    new = np.random.default_rng(1).standard_normal((7, many))
    one = bs.predict(own, {"X": new}, model=model)["probability"].to_numpy()
    assert_allclose(one, bs.predict(named, new)["probability"], rtol=0, atol=1e-6)
    assert_allclose(bs.diagnose(own, model=model).k_hat, bs.diagnose(named).k_hat, rtol=1e-3)
