"""Likelihoods that are not along one linear predictor: value, gradient and Hessian over all weights."""

import time

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats
from scipy.special import log_softmax, softmax

from bayes_sparse.inputs.pm_model import flat, read_general, read_model

from .networks import (
    CLASSES,
    INPUTS,
    LABELS,
    TARGETS,
    bernoulli_network,
    network,
    normal_network,
    softmax_model,
    sparse,
)
from .user_models import COUNT, EXPOSURE, N, X, bernoulli_logit, sparse_weights, student_t

RNG = np.random.default_rng(6)


def network_in_numpy(v, inputs=INPUTS, mean=0.0):
    """The same output from the flat vector; runs on complex numbers as well."""
    hidden = np.tanh(inputs @ (v[:6].reshape(2, 3) + mean) + v[6:9])
    return hidden @ v[9:12] + v[12] + 1.0


def normal_in_numpy(v, theta, mean=0.0):
    """Log-likelihood for theta the log of sigma."""
    z = (TARGETS - network_in_numpy(v, mean=mean)) * np.exp(-theta[0])
    return np.sum(-0.5 * z**2 - theta[0] - 0.5 * np.log(2 * np.pi))


def bernoulli_in_numpy(v, theta):
    return -np.sum(np.log(1 + np.exp((1 - 2 * LABELS) * network_in_numpy(v))))


def derivatives(function, v):
    """Gradient by complex steps, exact to rounding; Hessian by central differences of it, good to 1e-9."""

    def gradient(v):
        steps = 1e-30j * np.eye(len(v))
        return np.array([np.imag(function(v + step)) for step in steps]) / 1e-30

    step = 1e-5
    return gradient(v), np.array([(gradient(v + e) - gradient(v - e)) / (2 * step) for e in step * np.eye(len(v))])


def agrees(look, function, v):
    gradient, hessian = derivatives(function, v)
    np.testing.assert_allclose(look.value, function(v), rtol=1e-12)
    np.testing.assert_allclose(look.gradient, gradient, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(look.curvature(), -hessian, rtol=1e-7, atol=1e-7)


@pytest.fixture(scope="module")
def normal():
    return read_general(normal_network())


@pytest.fixture(scope="module")
def bernoulli():
    return read_general(bernoulli_network())


@pytest.fixture(scope="module")
def categorical():
    return read_general(softmax_model())


@pytest.mark.parametrize("seed", range(3))
def test_network_with_noise(normal, seed):
    rng = np.random.default_rng(seed)
    v, theta = rng.normal(size=13), rng.normal(size=1)
    agrees(normal.surface.look(v, theta), lambda v: normal_in_numpy(v, theta, mean=0.3), v)


def test_network_of_classes(bernoulli):
    v = RNG.normal(size=13)
    agrees(bernoulli.surface.look(v, np.empty(0)), lambda v: bernoulli_in_numpy(v, None), v)


def test_two_predictors():
    """A mean and a log-sd with weights of their own; the scalar in the noise is a Gaussian weight like any other."""
    with pm.Model() as model:
        mean, log_sd = INPUTS @ sparse("w", 2), INPUTS @ sparse("s", 2) + pm.Normal("s0", 0.0, 1.0)
        pm.Normal("y", mean, pm.math.exp(log_sd), observed=TARGETS)
    read = read_general(model)
    assert [block.name for block in read.fixed] == ["s0"]

    def log_likelihood(v):
        log_sd = INPUTS @ v[2:4] + v[4]
        z = (TARGETS - INPUTS @ v[:2]) * np.exp(-log_sd)
        return np.sum(-0.5 * z**2 - log_sd) - 12.5 * np.log(2 * np.pi)

    v = 0.5 * RNG.normal(size=5)
    agrees(read.surface.look(v, read.theta), log_likelihood, v)


def test_softmax_in_closed_form(categorical):
    v = RNG.normal(size=9)
    P = softmax(INPUTS @ v[:6].reshape(2, 3) + v[6:], axis=1)
    design = np.column_stack([INPUTS, np.ones(25)])
    look = categorical.surface.look(v, np.empty(0))
    np.testing.assert_allclose(look.value, np.log(P[np.arange(25), CLASSES]).sum(), rtol=1e-12)
    np.testing.assert_allclose(look.gradient, (design.T @ (np.eye(3)[CLASSES] - P)).ravel(), rtol=1e-10, atol=1e-12)
    inner = np.einsum("nc,ck->nck", P, np.eye(3)) - np.einsum("nc,nk->nck", P, P)
    H = np.einsum("ni,nck,nj->icjk", design, inner, design).reshape(9, 9)
    np.testing.assert_allclose(look.curvature(), H, rtol=1e-10, atol=1e-11)


def test_softmax_far_out(categorical):
    v = 300.0 * RNG.normal(size=9)
    logits = INPUTS @ v[:6].reshape(2, 3) + v[6:]
    look = categorical.surface.look(v, np.empty(0))
    np.testing.assert_allclose(look.value, log_softmax(logits, axis=1)[np.arange(25), CLASSES].sum(), rtol=1e-12)
    assert np.isfinite(look.gradient).all()
    assert np.isfinite(look.curvature()).all()


@pytest.mark.parametrize("likelihood", [bernoulli_logit, student_t])
def test_linear_models_agree_with_the_linear_reading(likelihood):
    with pm.Model() as model:
        weights = pm.Normal("w", [0.5, -0.2, 0.0, 1.0], tau=pm.Gamma("alpha", 1.0, 1.0, shape=4), shape=4)
        group = pm.Normal("u", 0.0, pm.HalfNormal("tau", 1.0), shape=3)
        likelihood(X @ weights + pm.Normal("c", -1.0, 2.0) + group[np.arange(N) % 3])
    linear, general = read_model(model), read_general(model)
    problem, surface = linear.problem, general.surface
    rng = np.random.default_rng(1)
    v, theta = rng.normal(size=8), problem.theta + 0.2 * rng.normal(size=problem.theta.size)
    Phi = problem.design.columns(np.arange(8))
    terms, first, second, _ = problem.pointwise(problem.offset + Phi @ v, theta)
    look = surface.look(v, theta)
    np.testing.assert_allclose(look.value, terms.sum(), rtol=1e-10)
    np.testing.assert_allclose(look.gradient, Phi.T @ first, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(look.curvature(), -(Phi.T * second) @ Phi, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(surface.log_densities(v[None], theta[None])[0], terms, rtol=1e-10)
    np.testing.assert_allclose(general.fixed_precision(theta), problem.fixed_precision(theta), rtol=1e-14)
    assert general.nuisance == linear.nuisance
    assert general.log_prior(theta) == linear.problem.log_prior(theta)
    np.testing.assert_array_equal(general.theta, problem.theta)
    np.testing.assert_array_equal(general.theta_bounds, problem.theta_bounds)
    assert (surface.d, surface.q, surface.n) == (4, 4, N)


def test_along_some_directions(normal):
    surface, theta, rng = normal.surface, np.array([0.2]), np.random.default_rng(8)
    Q, u = rng.normal(size=(4, 12)), rng.normal(size=5)
    T = np.vstack([np.hstack([Q, np.zeros((4, 1))]), np.eye(13)[12]])
    inside, whole = surface.along(Q).look(u, theta), surface.look(T.T @ u, theta)
    assert (surface.along(Q).d, surface.along(Q).q) == (4, 1)
    assert inside.value == whole.value
    np.testing.assert_allclose(inside.gradient, T @ whole.gradient, rtol=1e-12)
    np.testing.assert_allclose(inside.curvature(), T @ whole.curvature() @ T.T, rtol=1e-10, atol=1e-10)
    R = rng.normal(size=(2, 4))
    twice = surface.along(Q).along(R).look(u[2:], theta)
    agrees(twice, lambda x: normal_in_numpy(T.T @ np.append(R.T @ x[:2], x[2]), theta, mean=0.3), u[2:])
    draws = rng.normal(size=(2, 5))
    np.testing.assert_allclose(
        surface.along(Q).log_densities(draws, np.zeros((2, 1))), surface.log_densities(draws @ T, np.zeros((2, 1)))
    )


def test_log_densities_draw_by_draw(normal):
    rng = np.random.default_rng(2)
    v, theta = rng.normal(size=(4, 13)), rng.normal(size=(4, 1))
    found = normal.surface.log_densities(v, theta)
    for row, draw, log_sigma in zip(found, v, theta, strict=True):
        expected = stats.norm.logpdf(TARGETS, network_in_numpy(draw, mean=0.3), np.exp(log_sigma))
        np.testing.assert_allclose(row, expected, rtol=1e-10)
        np.testing.assert_allclose(row.sum(), normal.surface.look(draw, log_sigma).value, rtol=1e-12)


def test_steps_are_never_negative(normal):
    surface, theta = normal.surface, np.array([0.0])
    look = surface.look(np.zeros(13), theta)  # a saddle
    h, U = np.linalg.eigh(look.curvature())
    assert h[0] < -1.0
    np.testing.assert_allclose(look.steps(), (U * np.abs(h)) @ U.T, atol=1e-10)
    assert np.linalg.eigvalsh(look.steps())[0] > -1e-10


def test_steps_are_the_curvature_where_that_is_positive():
    with pm.Model() as model:
        pm.Normal("y", INPUTS @ sparse("w", 2), 0.5, observed=TARGETS)
    look = read_general(model).surface.look(np.ones(2), np.empty(0))
    np.testing.assert_allclose(look.curvature(), 4 * INPUTS.T @ INPUTS, rtol=1e-12)
    np.testing.assert_array_equal(look.steps(), look.curvature())


def test_callers_may_write_into_what_they_get(bernoulli):
    look = bernoulli.surface.look(bernoulli.surface.start(), np.empty(0))
    before = look.curvature()
    for H in (look.curvature(), look.steps()):
        H[:] = 0.0
    np.testing.assert_array_equal(look.curvature(), before)


def test_new_data_reach_what_was_compiled():
    with pm.Model() as model:
        targets = pm.Data("targets", TARGETS)
        pm.Normal("y", network(), 1.0, observed=targets + 0.0)
    read, v = read_general(model), RNG.normal(size=13)
    before = read.surface.look(v, read.theta)
    assert before.value == pytest.approx(normal_in_numpy(v, [0.0]), rel=1e-12)
    with model:
        pm.set_data({"inputs": INPUTS[:10], "targets": TARGETS[:10]})
    residual = TARGETS[:10] - network_in_numpy(v, INPUTS[:10])
    after = read.surface.look(v, read.theta)
    assert after.value == pytest.approx(stats.norm.logpdf(residual).sum(), rel=1e-12)


def test_the_model_is_left_as_it_was():
    """Graphs are rewritten in place; none of them may be the user's own."""
    with pm.Model() as model:
        targets = pm.Data("targets", TARGETS)
        scaled = pt.exp(pt.log(pt.exp(pm.Data("inputs", INPUTS)))) * 1.0
        pm.Normal("y", scaled @ sparse("w", 2), 1.0, observed=targets * 1.0 + 0.0)
    [observed] = model.observed_RVs
    before = [v.dprint(file="str") for v in (observed, model.rvs_to_values[observed])]
    read = read_general(model)
    read.surface.look(np.ones(2), read.theta).curvature()
    assert [v.dprint(file="str") for v in (observed, model.rvs_to_values[observed])] == before


def test_a_search_begins_off_the_saddle(bernoulli):
    surface, none = bernoulli.surface, np.empty(0)
    start = surface.start()
    assert len({*np.round(start[:12], 6)}) == 12
    np.testing.assert_array_equal(start, surface.start())
    H = surface.look(start, none).steps()
    assert surface.unit(none) == pytest.approx(np.trace(H[:12, :12]) / (25 * 12))
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(12, 3)))[0].T
    np.testing.assert_allclose(surface.along(Q).start(), np.append(Q @ start[:12], start[12]), atol=1e-12)
    assert surface.reduced() == (surface, None)


def test_a_search_begins_where_the_likelihood_is_finite():
    with pm.Model() as model:
        pm.Poisson("y", pm.math.exp(1e5 * X @ sparse("w", 4)), observed=COUNT)
    surface = read_general(model).surface
    assert surface.look(surface.begin, np.empty(0)).value == -np.inf
    assert np.isfinite(surface.look(surface.start(), np.empty(0)).value)


def test_parameters_out_of_range_are_not_a_value():
    with pm.Model() as model:
        pm.Bernoulli("y", p=0.5 + X @ sparse("w", 4), observed=np.ones(N, dtype=int))
    surface = read_general(model).surface
    eta = 0.5 + X @ np.full(4, 0.01)
    assert surface.look(np.full(4, 0.01), np.empty(0)).value == pytest.approx(np.log(eta).sum())
    assert surface.look(np.full(4, 10.0), np.empty(0)).value == -np.inf


def test_separated_classes():
    side = np.where(LABELS == 1, 1.0, -1.0)[:, None]
    with pm.Model() as model:
        pm.Bernoulli("y", logit_p=np.hstack([side, side]) @ sparse("w", 2), observed=LABELS)
    surface = read_general(model).surface
    assert surface.look(np.ones(2), np.empty(0)).separates
    assert not surface.look(-np.ones(2), np.empty(0)).separates


def test_numbers_do_not_separate(normal):
    assert not normal.surface.look(np.zeros(13), np.array([-3.0])).separates


def test_observation_weights_count_rows():
    def build(rows):
        with pm.Model() as model:
            pm.Categorical("y", logit_p=INPUTS[rows] @ sparse("W", (2, 3)), observed=CLASSES[rows])
        return model

    every, counts = np.arange(25), np.arange(25) % 3
    weighted = read_general(build(every), observation_weights=counts).surface
    repeated = read_general(build(np.repeat(every, counts))).surface
    v = RNG.normal(size=6)
    one, other = weighted.look(v, np.empty(0)), repeated.look(v, np.empty(0))
    np.testing.assert_allclose(one.value, other.value, rtol=1e-12)
    np.testing.assert_allclose(one.gradient, other.gradient, rtol=1e-10)
    np.testing.assert_allclose(one.curvature(), other.curvature(), rtol=1e-10, atol=1e-12)
    bare = log_softmax(INPUTS @ v.reshape(2, 3), axis=1)[every, CLASSES]
    np.testing.assert_allclose(weighted.log_densities(v[None], np.empty((1, 0)))[0], bare, rtol=1e-12)


def test_observations_of_several_numbers():
    counts = RNG.multinomial(6, [0.2, 0.3, 0.5], size=25)
    with pm.Model() as model:
        pm.Multinomial("y", 6, p=pm.math.softmax(INPUTS @ sparse("W", (2, 3)), axis=-1), observed=counts)
    surface, v = read_general(model).surface, RNG.normal(size=6)
    expected = stats.multinomial.logpmf(counts, 6, softmax(INPUTS @ v.reshape(2, 3), axis=1))
    np.testing.assert_allclose(
        surface.log_densities(v[None], np.empty((1, 0)))[0], expected, atol=1e-6
    )  # log 6! in single precision
    assert surface.n == 25


def test_observations_in_a_table():
    table = RNG.normal(size=(25, 2))
    with pm.Model() as model:
        pm.Normal("y", INPUTS @ sparse("W", (2, 2)), 1.0, observed=table)
    surface, v = read_general(model).surface, RNG.normal(size=4)
    expected = stats.norm.logpdf(table - INPUTS @ v.reshape(2, 2)).ravel()
    np.testing.assert_allclose(surface.log_densities(v[None], np.empty((1, 0)))[0], expected, rtol=1e-12)
    assert surface.n == 50


def test_a_long_hessian_is_made_in_blocks(bernoulli, monkeypatch):
    look = bernoulli.surface.look(np.ones(13), np.empty(0))
    whole = look.curvature()
    monkeypatch.setattr(flat, "_BLOCK", 100)
    blocks = bernoulli.surface.look(np.ones(13), np.empty(0)).curvature()
    np.testing.assert_allclose(blocks, whole, rtol=1e-12, atol=1e-12)


def test_a_density_linear_in_the_weights_has_no_curvature():
    with pm.Model() as model:
        eta = X @ sparse_weights()
        pm.CustomDist("y", eta, logp=lambda value, eta: value * eta, observed=EXPOSURE)
    look = read_general(model).surface.look(np.ones(4), np.empty(0))
    np.testing.assert_allclose(look.gradient, X.T @ EXPOSURE, rtol=1e-12)
    np.testing.assert_array_equal(look.curvature(), np.zeros((4, 4)))
    np.testing.assert_array_equal(look.steps(), np.zeros((4, 4)))


def test_compiling_is_said_only_when_it_takes_long(messages, monkeypatch):
    monkeypatch.setattr(flat, "_PATIENCE", 0.02)
    with flat._said_if_long():
        pass
    time.sleep(0.1)
    assert messages == []
    with flat._said_if_long():
        time.sleep(0.2)
    assert len(messages) == 1
    assert "Compiling the model's likelihood" in messages[0]


@pytest.mark.slow
def test_python_and_c_agree(normal, monkeypatch):
    v, theta = RNG.normal(size=13), np.array([0.1])
    python = normal.surface.look(v, theta)
    H, terms = python.curvature(), normal.surface.log_densities(v[None], theta[None])
    monkeypatch.setattr(flat, "_MUCH", -1)
    c = normal.surface.look(v, theta)
    np.testing.assert_allclose(c.value, python.value, rtol=1e-12)
    np.testing.assert_allclose(c.gradient, python.gradient, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(c.curvature(), H, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(normal.surface.log_densities(v[None], theta[None]), terms, rtol=1e-12)
