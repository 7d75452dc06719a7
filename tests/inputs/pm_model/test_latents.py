"""Gaussian variables as the predictor sees them, against what the user's own graph makes of them."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.graph.replace import clone_replace

from bayes_sparse.inputs import compiled
from bayes_sparse.inputs.pm_model import read_model
from bayes_sparse.inputs.pm_model.held import MovingCoefficients
from tests.support import UNCOMPILED

from .against_pymc import PLAIN
from .user_models import EXPOSURE, GROUP, REAL, N, P, X, Z, sparse_weights

pytestmark = pytest.mark.quick

G = np.array([0, 1, 0, 1])  # groups of columns


def scales(name="s", shape=P):
    return pm.HalfNormal(name, 1.0, shape=shape)


def standard(name="z", shape=P):
    return pm.Normal(name, 0.0, 1.0, shape=shape)


def scaled_slopes():
    return X @ (standard() * scales())


def effects(mean, sd=0.5):
    return X @ sparse_weights() + pm.Normal("u", mean, sd, shape=3)[GROUP]


NOT_CENTRED = {
    "a scale each": scaled_slopes,
    "the scale first": lambda: pt.dot(X, scales() * standard()),
    "named": lambda: X @ pm.Deterministic("w", standard() * scales()),
    "global and local": lambda: X @ (standard() * scales() * scales("tau", ())),
    "by steps with names": lambda: X @ (scales("tau", ()) * pm.Deterministic("part", standard() * scales())),
    "divided": lambda: X @ (standard() / pt.sqrt(scales())),
    "negative": lambda: X @ (-standard() * scales()),
    "exp of a Normal": lambda: X @ (standard() * pt.exp(pm.Normal("log_s", 0.0, 1.0, shape=P))),
    "scaled columns": lambda: (X * scales()) @ standard(),
    "scales of groups": lambda: X @ (standard() * scales(shape=2)[G]),
    "not standard": lambda: X @ (pm.Normal("z", 0.0, np.arange(1.0, P + 1)) * scales()),
    "a scale outside the product": lambda: X @ sparse_weights() + (Z @ standard(shape=2)) * scales("tau", ()),
    "a scale after an index": lambda: X @ sparse_weights() + standard(shape=3)[GROUP] * scales("tau", ()),
    "a scale before it": lambda: X @ sparse_weights() + (standard(shape=3) * scales("tau", ()))[GROUP],
    "a table of slopes": lambda: (
        X @ sparse_weights() + (Z * (standard(shape=(3, 2)) * scales("tau", 2))[GROUP]).sum(axis=-1)
    ),
    "a mean outside": lambda: (
        scaled_slopes() + (pm.Normal("m", 0.2, 1.0) + scales("tau", ()) * standard("u", 3))[GROUP]
    ),
}
MEANS = {
    "random": lambda: effects(pm.Normal("m", 0.0, 1.0)),
    "random, of a known mean": lambda: effects(pm.Normal("m", 0.7, 1.0)),
    "of a mean that has one itself": lambda: effects(pm.Normal("m", pm.Normal("top", 0.5, 1.0), 1.0)),
    "one of each": lambda: effects(pm.Normal("m", 0.0, 1.0, shape=3)),
    "linear in others": lambda: effects(pt.as_tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]) @ standard("v", 2)),
    "with a random sd": lambda: effects(pm.Normal("m", 0.0, 1.0), scales("tau", ())),
    "known": lambda: effects(0.3),
    "known, times a number": lambda: X @ sparse_weights() + 2.0 * pm.Normal("u", 0.3, 1.0, shape=3)[GROUP],
    "known, times a random scale": lambda: (
        X @ sparse_weights() + scales("tau", ()) * (Z @ pm.Normal("u", 0.3, 1.0, shape=2))
    ),
    "known, times data": lambda: X @ sparse_weights() + EXPOSURE * pm.Normal("u", 0.3, 1.0),
}


def declared(build):
    with pm.Model() as model:
        pm.Normal("y", pm.Deterministic("mu", pm.Normal("b", 0.5, 2.0) + build()), 1.0, observed=REAL)
    return model


def value(model, node, point):
    """Of a node of the user's graph, where its free variables have these values."""
    placed = {model[name]: pt.constant(own) for name, own in point.items()}
    return np.asarray(clone_replace([node], placed, rebuild_strict=False)[0].eval(mode=PLAIN))


def some_point(model, latents=()):
    """Values of what stands for each variable, and of all free variables."""
    rng, point, raw = np.random.default_rng(5), {}, {}
    made = {latent.rv: latent.make for latent in latents if latent.make is not None}
    for rv in model.free_RVs:
        raw[rv] = rng.uniform(0.3, 2.0, np.shape(rv.eval(mode=PLAIN)))
        point[rv.name] = value(model, made[rv](pt.constant(raw[rv])), point) if rv in made else raw[rv]
    return raw, point


@pytest.mark.parametrize("name", [*NOT_CENTRED, *MEANS])
def test_columns_times_values_are_the_graphs_own(name):
    model = declared((NOT_CENTRED | MEANS)[name])
    read = read_model(model)
    raw, point = some_point(model, [role.latent for role in read.roles])
    w = []
    for role in read.roles:
        latent = role.latent
        factor = 1.0 if latent.factor is None else value(model, latent.factor, point)
        w.append(((np.broadcast_to(raw[latent.rv] * factor, latent.shape) - latent.mean) / role.unit).ravel())
    columns = read.problem.design.columns(np.arange(read.problem.design.width))
    assert len(np.concatenate(w)) == columns.shape[1]
    theta = np.log([point[name] for name in read.nuisance])
    _, slope, curvature, _ = read.problem.pointwise(read.problem.offset + columns @ np.concatenate(w), theta)
    np.testing.assert_allclose(REAL + slope / curvature, value(model, model["mu"], point), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", [*NOT_CENTRED, *MEANS])
def test_their_prior_is_the_declared_one(name):
    model = declared((NOT_CENTRED | MEANS)[name])
    latents = [role.latent for role in read_model(model).roles]
    _, point = some_point(model, latents)
    for latent in latents:
        mean, sd = (value(model, own, point) for own in latent.rv.owner.op.dist_params(latent.rv.owner))
        factor = 1.0 if latent.factor is None else value(model, latent.factor, point)
        above = 0.0 if latent.make is None else mean
        np.testing.assert_allclose(latent.mean, np.broadcast_to((mean - above) * factor, latent.shape), rtol=1e-6)
        found = np.broadcast_to(value(model, latent.sd, point), latent.shape)
        np.testing.assert_allclose(found, np.broadcast_to(sd * np.abs(factor), latent.shape), rtol=1e-6)


@pytest.mark.parametrize("name", NOT_CENTRED)
def test_scales_of_weights_are_no_nuisance_parameters(name):
    read = read_model(declared(NOT_CENTRED[name]))
    behind = {rv.name for role in read.roles if not role.free for rv in role.scales.hypers}
    assert set(read.nuisance) == behind


def test_a_product_has_the_name_and_dims_of_its_deterministic():
    with pm.Model(coords={"feature": list("abcd")}) as model:
        w = pm.Deterministic("w", standard() * scales(), dims="feature")
        pm.Normal("y", X @ w, 1.0, observed=REAL)
    [latent] = [role.latent for role in read_model(model).roles]
    assert (latent.name, latent.dims, latent.rv.name) == ("w", ("feature",), "z")
    assert latent.coords["feature"].tolist() == list("abcd")


def test_a_variable_with_a_random_mean_is_what_is_above_it():
    read = read_model(declared(MEANS["random"]))
    by_name = {role.latent.name: role.latent for role in read.roles}
    assert set(by_name) == {"w", "b", "m", "u"}
    assert by_name["u"].make is not None
    assert by_name["m"].make is None


@pytest.mark.parametrize(
    ("build", "demoted"),
    [
        (lambda: pt.exp(pm.Normal("v", 0.0, 1.0)) * (Z @ np.ones(2)), "v"),
        (lambda: pm.Normal("v", 0.0, 1.0) ** 2, "v"),
        (lambda: pt.sigmoid(pm.Normal("v", 0.0, 1.0, shape=2).sum()) * EXPOSURE, "v"),
    ],
    ids=["in a coefficient", "squared", "inside a curve"],
)
def test_what_is_not_linear_is_a_nuisance_parameter(build, demoted, monkeypatch):
    monkeypatch.setattr(compiled, "elementwise_mode", lambda: UNCOMPILED)
    monkeypatch.setattr(compiled, "_cache", {})
    with pm.Model() as model:
        pm.Normal("y", X @ sparse_weights() + build(), 1.0, observed=REAL)
    read = read_model(model)
    assert read.nuisance == (demoted,)
    assert [role.latent.name for role in read.roles] == ["w"]
    _, point = some_point(model)
    theta, w = np.ravel(point["v"]), point["w"]
    eta = read.problem.offset + read.problem.design.columns(np.arange(P)) @ w
    expected = -0.5 * (REAL - value(model, model["y"].owner.op.dist_params(model["y"].owner)[0], point)) ** 2
    np.testing.assert_allclose(read.problem.pointwise(eta, theta)[0], expected - 0.5 * np.log(2 * np.pi), rtol=1e-9)
    assert eta.shape == (N,)


def test_a_scale_each_of_weights_with_a_known_mean_moves_the_coefficients():
    model = declared(lambda: X @ sparse_weights() + Z @ (scales("tau", 2) * pm.Normal("u", 0.3, 1.0, shape=2)))
    with pytest.raises(MovingCoefficients, match="not linear") as caught:
        read_model(model)
    assert caught.value.names == ("tau",)
