"""A model in the coordinates of an evidence fit has the density of the model itself, and its draws come back whole."""

from dataclasses import dataclass, replace

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from numpy.testing import assert_allclose
from pytensor.compile.mode import Mode
from scipy.special import logit

import bayes_sparse as bs
from bayes_sparse.fitting.choices import choose_method, choose_model
from bayes_sparse.fitting.families import Task, find
from bayes_sparse.fitting.nuts.sample import start_of
from bayes_sparse.fitting.nuts.start import Start
from bayes_sparse.fitting.nuts.whole import WholeModel
from bayes_sparse.inputs.pm_model.own_problem import declared_problem
from tests.support import UNCOMPILED, without_compiler

from .fits import TARGETS, Z, fitted

PLAIN = Mode(linker="py", optimizer=None)
HYPER = (0.5, 0.005)
MASK = np.array([True, False, False])


def own():
    with pm.Model(coords={"feature": ["a", "b", "c"]}) as model:
        alpha = pm.Gamma("alpha", 0.5, 0.005, dims="feature")
        w = pm.Normal("w", 0.0, 1 / pm.math.sqrt(alpha), dims="feature")
        eta = pm.Deterministic("eta", pm.Normal("b", 0.5, 10.0) + Z @ w)
        pm.Normal("y", eta, pm.HalfNormal("sigma", 2.0), observed=TARGETS["normal"])
    return model


def of_own():
    model = own()
    chosen = choose_model(model)
    labelled = declared_problem(chosen, None, None)
    method = replace(choose_method("evidence", chosen, None), smoothness=0.0)
    found = find(Task(labelled, chosen, method, None), False)
    return model, start_of(found, model)


def named(model, likelihood, hyper=HYPER, centred=False, smoothness=0.0, **given):
    def build():
        prepared, found = fitted(model, likelihood, smoothness=smoothness, **given)
        declaration = model.declare(prepared, hyper, centred=centred)
        return declaration, start_of(found, declaration, centred)

    return build


ARD, JEFFREYS = bs.models.ARDGaussian(), bs.models.JeffreysLaplace(bounds=(0.01, 100.0))
CASES = {
    "centred": named(ARD, "normal", centred=True),
    "not centred": named(ARD, "student_t"),
    "some centred": named(ARD, "normal", centred=MASK, keep=["x2"]),
    "laplace directions": named(bs.models.LaplaceEigen(), "bernoulli", hyper=(1.0, 0.5)),
    "normal directions, some centred": named(bs.models.GaussianEigen(), "poisson", hyper=(0.5, 0.5), centred=MASK),
    "common lambda": named(JEFFREYS, "normal", hyper=None, centred=True, smoothness="auto"),
    "common lambda, kept": named(JEFFREYS, "poisson", hyper=None, centred=True, smoothness="auto", keep=["x2"]),
    "classes": named(bs.models.StudentMultinomial(), "categorical", hyper=(1.0, 0.1), method="mackay"),
    "the user's own": of_own,
}


@dataclass(frozen=True)
class Case:
    """A model, its start, and what comes back from z = 0, from unit steps and from a few points of no meaning."""

    model: pm.Model
    start: Start
    seen: WholeModel
    middle: xr.Dataset
    steps: xr.Dataset
    z: np.ndarray
    draws: xr.Dataset


LATER = {"centred", "normal directions, some centred", "common lambda", "common lambda, kept"}


@pytest.fixture(
    scope="module", params=[pytest.param(name, marks=pytest.mark.slow if name in LATER else []) for name in CASES]
)
def case(request):
    with pytest.MonkeyPatch.context() as patch:
        without_compiler(patch)
        model, start = CASES[request.param]()
        seen = WholeModel(model)
        dim = len(seen._usual)
        z = 0.7 * np.random.default_rng(0).standard_normal((3, dim))
        back = put_back(seen, start, np.concatenate([np.zeros((1, dim)), np.eye(dim), z])).isel(chain=0)
        parts = (slice(0, 1), slice(1, dim + 1), slice(dim + 1, None))
        middle, steps, draws = (back.isel(draw=part) for part in parts)
        yield Case(model, start, seen, middle, steps, z, draws)


def put_back(seen, start, z):
    """The model's own variables at rows of z."""
    return seen.posterior(seen.density(start).x(z)[None])


def unconstrained(model, draws, i):
    """The point of PyMC's log density at one draw of the variables themselves, transformed by hand."""
    point = {}
    for rv in model.free_RVs:
        value, name = draws[rv.name].to_numpy()[i], model.rvs_to_values[rv].name
        if name.endswith("_log__"):
            value = np.log(value)
        elif name.endswith("_interval__"):
            value = logit((value - np.log(0.01)) / np.log(1e4))
        point[name] = value
    return point


def test_the_density_is_the_model_s(case):
    theirs, slope = case.model.compile_logp(mode=UNCOMPILED), case.model.compile_dlogp(mode=UNCOMPILED)
    for i, z in enumerate(case.z):
        point = unconstrained(case.model, case.draws, i)
        x = np.concatenate([np.ravel(point[case.model.rvs_to_values[rv].name]) for rv in case.model.free_RVs])
        height, gradient = case.seen.evaluate(x)
        assert_allclose(height, theirs(point), rtol=1e-10)
        assert_allclose(gradient, slope(point), rtol=1e-8, atol=1e-8)
        assert_allclose(case.seen.density(case.start)(z)[0], height, rtol=1e-9)


def test_the_log_likelihood_is_pymc_s(case):
    terms = case.model.compile_logp(vars=case.model.observed_RVs, jacobian=False, sum=False, mode=UNCOMPILED)
    found = case.seen.log_likelihood(case.seen.density(case.start).x(case.z)[None])
    for i in range(len(case.z)):
        expected = terms(unconstrained(case.model, case.draws, i))
        for rv, value in zip(case.model.observed_RVs, expected, strict=True):
            assert_allclose(found[rv.name].to_numpy()[0, i], value, rtol=1e-9)


def test_deterministics_are_pymc_s(case):
    model, draws = case.model, case.draws
    outputs = model.replace_rvs_by_values(model.deterministics)
    expected = model.compile_fn(outputs, inputs=model.value_vars, on_unused_input="ignore", mode=PLAIN)
    for variable, value in zip(model.deterministics, expected(unconstrained(model, draws, 1)), strict=True):
        assert_allclose(draws[variable.name].to_numpy()[1], value, rtol=1e-10)
        plain = tuple(f"{variable.name}_dim_{i}" for i in range(np.ndim(value)))
        assert draws[variable.name].dims[1:] == model.named_vars_to_dims.get(variable.name, plain)
    for dim in {dim for dims in model.named_vars_to_dims.values() for dim in dims} & set(draws.dims):
        assert draws[dim].to_numpy().tolist() == list(model.coords[dim])


def test_the_middle_is_the_start(case):
    for name, value in case.start.values.items():
        assert_allclose(case.middle[name].to_numpy()[0], value, rtol=1e-9, atol=1e-12)
    assert {rv.name for rv in case.model.free_RVs} <= set(case.middle.data_vars)


def test_the_metric_is_the_start_s(case):
    """Unit steps of z, as the covariance of the entries that are correlated."""
    start, dim = case.start, case.z.shape[1]
    gap = {name: (case.steps[name] - case.middle[name].isel(draw=0)).to_numpy().reshape(dim, -1) for name in case.steps}
    moved = np.array([gap[name][:, position] for name, position in start.places]).reshape(-1, dim)
    covariance = start.factor @ start.factor.T
    assert len(start.places) != 1  # weights in units of the prior are left uncorrelated, and so is a bias beside them
    assert_allclose(moved @ moved.T, covariance, rtol=1e-7, atol=1e-10 * np.abs(covariance).max(initial=0.0))


def test_a_start_outside_the_support_falls_back(monkeypatch):
    without_compiler(monkeypatch)
    with pm.Model() as model:
        pm.Uniform("x", 0.0, 1.0)
        pm.HalfNormal("s", shape=2)
    seen, start = WholeModel(model), Start({"x": np.array(3.0), "s": np.array([-1.0, 2.0])})
    draws = put_back(seen, start, np.zeros((1, 3)))
    assert_allclose(draws["x"], 0.5)  # where PyMC itself starts a uniform
    assert_allclose(draws["s"].to_numpy()[0, 0], [1.0, 2.0])
    assert np.isfinite(seen.density(start)(np.zeros(3))[0])
