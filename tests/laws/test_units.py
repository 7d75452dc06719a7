"""The answer to a regression does not depend on the unit of its targets, under any hyper-prior, by any method."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bayes_sparse as bs
from bayes_sparse.fitting.choices import choose_model
from bayes_sparse.fitting.nuts.whole import WholeModel
from bayes_sparse.inputs.prepare import prepare
from tests.support import refused, without_compiler

RNG = np.random.default_rng(12)
X = RNG.standard_normal((70, 6)) * [1, 10, 0.1, 1, 1, 1]
Y = X[:, 0] - 0.1 * X[:, 1] + 0.4 * X[:, 3] + 0.7 * RNG.standard_t(5, 70)
TIMES, SHIFT = 50.0, 7.0

FITS = [
    ("ard_gaussian", "sequential", {}),
    ("ard_gaussian", "sequential", {"slab": 0.3}),
    ("ard_gaussian", "mackay", {}),
    ("ard_gaussian", "mackay", {"hyper": (1.0, 0.1)}),
    ("ard_gaussian", "mackay", {"hyper": (1.0, 0.1), "slab": 0.5}),
    ("ard_gaussian", "em", {"hyper": (0.5, 0.005)}),
    ("ard_gaussian", "em", {"slab": 0.3}),
    ("ard_gaussian", "variational", {}),
    ("ard_gaussian", "variational", {"hyper": (1.0, 0.1), "noise_hyper": (2.0, 0.3)}),
    ("gaussian_eigen", "revm", {}),
    ("gaussian_eigen", "revm", {"slab": 1.0}),
    ("laplace_eigen", "revm", {}),
    ("jeffreys_laplace", "reweighted", {}),
    ("horseshoe", "global_local", {"tolerance": 1e-9}),
    ("horseshoe", "global_local", {"tolerance": 1e-9, "slab": 0.5}),
]


def fitted(y, model, method, settings, *, inputs=X):
    return bs.fit(model, (inputs, y), method=method, **{"draws": 0, "progressbar": False, **settings})


@pytest.mark.quick
@pytest.mark.parametrize("kernels", [False, True])
@pytest.mark.parametrize("likelihood", ["normal", "student_t"])
@pytest.mark.parametrize(("model", "method", "own"), FITS)
def test_targets_in_other_units(model, method, own, likelihood, kernels):
    settings = own | {"likelihood": likelihood}
    if likelihood == "student_t" and (model == "jeffreys_laplace" or method == "variational"):
        with pytest.raises(ValueError, match="log-concave"):
            fitted(Y, model, method, settings)
        return
    settings |= {"basis": bs.basis.rbf(3.0)} if kernels else {}
    # By itself the prior of the bias is as wide as ten times the targets about zero, which a shift makes wider.
    wide = {} if model == "jeffreys_laplace" else {"bias_sd": 1e3}
    one = fitted(Y, model, method, settings | wide)
    other = fitted(TIMES * Y + SHIFT, model, method, settings | {name: TIMES * sd for name, sd in wide.items()})
    assert_allclose(
        bs.predict(other, X[:9])["mean"], TIMES * bs.predict(one, X[:9])["mean"] + SHIFT, rtol=2e-3, atol=1e-2 * TIMES
    )
    a, b = one["evidence"].to_dataset(), other["evidence"].to_dataset()
    assert a.attrs["status"] == b.attrs["status"]
    size = TIMES * float(np.abs(a["mean"]).max())
    assert_allclose(b["mean"], TIMES * a["mean"], rtol=5e-3, atol=5e-3 * size)
    if "kept" in a:
        assert_array_equal(a["kept"], b["kept"])
        assert_allclose(b["chance"], a["chance"], rtol=0.05, atol=1e-3)
    if "hyper" in own:
        assert_allclose(b.attrs["hyper"], own["hyper"])
        assert_allclose(b.attrs["hyper_unit"], TIMES * a.attrs["hyper_unit"])
    assert b.attrs.get("slab") == own.get("slab", 2.0 if model == "horseshoe" else None)


FAR = {"targets": (2.0**-240, 2.0**-60, 2.0**60, 2.0**240), "columns": (2.0**-490, 2.0**-100, 2.0**100, 2.0**490)}


@pytest.mark.parametrize("what", FAR)
@pytest.mark.parametrize(("model", "method", "own"), FITS)
def test_numbers_far_from_one(model, method, own, what):
    """Targets up to 1e72 or down to 1e-72, columns to 1e147 and 1e-147: the same answer, in those units."""
    one = bs.predict(fitted(Y, model, method, own), X[:9])
    for times in FAR[what]:
        y, inputs, unit = (times * Y, X, times) if what == "targets" else (Y, times * X, 1.0)
        other = bs.predict(fitted(y, model, method, own, inputs=inputs), inputs[:9])
        assert_allclose(other["mean"] / unit, one["mean"], rtol=1e-5, atol=1e-6)
        assert_allclose(other["sd"] / unit, one["sd"], rtol=1e-5)


@pytest.mark.parametrize("times", [1e-310, 1e-180, 1e-80, 1e80, 1e160, 1e300])
@pytest.mark.parametrize("method", ["sequential", "revm", "variational"])
def test_numbers_of_which_powers_cannot_be_computed(method, times):
    refused(lambda: fitted(times * Y, "ard_gaussian", method, {}), "target 'y'", "change the units")
    if method == "sequential":
        shifted = {"offset": times * np.ones(70)}
        refused(lambda: fitted(times * Y, "ard_gaussian", method, shifted), "target 'y'", "change the units")


CLASSES = np.digitize(Y + RNG.logistic(size=70), [-1.0, 1.0])
OF_CLASSES = [
    ("student_multinomial", "mackay", {}),
    ("student_multinomial", "mackay", {"slab": 1.0}),
    ("student_multinomial", "em", {"hyper": (0, 0), "slab": 1.0}),
    ("student_multinomial", "one_vs_rest", {"slab": 1.0}),
]


@pytest.mark.parametrize(("model", "method", "own"), FITS + OF_CLASSES)
def test_columns_in_other_units(model, method, own):
    """Weights are one over the unit of their column, and everything else stays: columns are standardised."""
    times = np.array([50.0, 1.0, 0.01, 3.0, 1.0, 1000.0])
    target = CLASSES if model == "student_multinomial" else Y
    a, b = (fitted(target, model, method, own, inputs=inputs)["evidence"] for inputs in (X, X * times + 2.0))
    full = np.tile(times, a.sizes["basis"] // len(times))
    size = float(np.abs(a["mean"] * np.tile(X.std(axis=0), len(full) // 6)).max())
    assert_allclose(b["mean"] * full, a["mean"], rtol=1e-5, atol=1e-6 * size)
    assert a.attrs["status"] == b.attrs["status"]
    if "log_evidence" in a:
        assert_allclose(b["log_evidence"], a["log_evidence"], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", ["normal", "student_t", "poisson"])
def test_the_declaration_has_the_same_prior_in_every_unit(likelihood):
    """Its density of weights and precisions moves with the targets; counts have no unit."""
    model, hyper = bs.models.ARDGaussian(), (0.5, 0.005)
    counts = likelihood == "poisson"
    target, times = (RNG.poisson(2.0, 70), 1.0) if counts else (Y, TIMES)
    densities = []
    for y, unit in ((target, 1.0), (times * target, times)):
        data = prepare((X, y), None, likelihood, bs.basis.linear(), None, None, None)
        assert data.unit == 1.0 if counts else data.unit > 0
        declared = model.declare(data, hyper, centred=True)
        logp = declared.compile_logp(jacobian=False)
        values = []
        for scale in (0.3, 1.0, 2.0):
            w = scale * np.linspace(-1, 1, 6)
            point = {"w": unit * w, "alpha_log__": np.log(np.linspace(1, 9, 6) / unit**2), "bias": unit * 0.2}
            if not counts:
                point["sigma_log__"] = np.log(unit * 0.8)
            values.append(float(logp(point)))
        densities.append(np.diff(values))
    assert_allclose(*densities, rtol=1e-9)


SAMPLED = [
    ("ard_gaussian", "normal", False),
    ("ard_gaussian", "normal", np.arange(6) < 3),
    ("ard_gaussian", "student_t", True),
    ("horseshoe", "normal", False),
    ("horseshoe", "normal", True),
    ("jeffreys_laplace", "normal", True),
    ("jeffreys_laplace", "normal", False),
]
POWERS = {"w": 1, "bias": 1, "sigma_log__": 1, "tau_log__": 1, "alpha_log__": -2}  # of the unit of the targets


def declared_density(y, model, likelihood, centred, *, inputs=X):
    """Density of what NUTS samples, and the names of its coordinates."""
    chosen = choose_model(model)
    data = prepare((inputs, y), None, likelihood, bs.basis.linear(), None, None, None)
    whole = WholeModel(chosen.declare(data, chosen.proper_hyper, centred=centred))
    sizes = {name: np.size(value) for name, value in whole.model.initial_point().items()}
    names = np.concatenate([np.repeat(v.name, sizes[v.name]) for v in whole.model.value_vars])
    return whole.evaluate, names


def in_other_units(x, names, centred, unit):
    """The same weights, scales and noise, for targets in another unit."""
    powers = np.array([POWERS.get(name, 0) for name in names])
    powers[names == "z"] = centred  # weights themselves where centred, else in units of their scale
    logs = np.char.endswith(names, "_log__")
    return np.where(logs, x + powers * np.log(unit), x * unit**powers)


@pytest.mark.parametrize(
    ("model", "likelihood", "centred"),
    [pytest.param(*case, marks=pytest.mark.slow if i % 3 else []) for i, case in enumerate(SAMPLED)],
)
def test_nuts_samples_the_same_density_in_every_unit(model, likelihood, centred, monkeypatch):
    """Of targets in another unit it is the same function of the weights in theirs, up to a constant."""
    without_compiler(monkeypatch)
    (one, names), (other, same) = (declared_density(y, model, likelihood, centred) for y in (Y, TIMES * Y))
    assert_array_equal(names, same)
    points = np.random.default_rng(5).normal(0.0, 0.7, (4, len(names)))
    here = [one(x) for x in points]
    there = [other(in_other_units(x, names, centred, TIMES)) for x in points]
    heights = np.array([[height for height, _ in at] for at in (here, there)])
    assert np.ptp(heights[0]) > 1
    assert_allclose(np.diff(heights[1]), np.diff(heights[0]), rtol=1e-9)
    unit = in_other_units(np.ones(len(names)), names, centred, TIMES)
    unit[np.char.endswith(names, "__")] = 1.0
    for (_, slope), (_, moved) in zip(here, there, strict=True):
        assert_allclose(unit * moved, slope, rtol=1e-9, atol=1e-9 * np.abs(slope).max())


@pytest.mark.slow
@pytest.mark.parametrize(("model", "likelihood", "centred"), SAMPLED)
def test_nuts_hardly_sees_a_shift_of_the_targets(model, likelihood, centred, monkeypatch):
    """The bias takes it up. Its prior, ten times as wide as the targets about zero, pulls by 1% of its sd at most."""
    without_compiler(monkeypatch)
    shift = 40.0
    (one, names), (other, _) = (declared_density(y, model, likelihood, centred) for y in (Y, Y + shift))
    x = np.random.default_rng(6).normal(0.0, 0.7, len(names))
    slope, moved = one(x)[1], other(np.where(names == "bias", x + shift, x))[1]
    assert_allclose(np.where(names == "bias", 0.0, moved - slope), 0.0, atol=1e-9 * np.abs(slope).max())
    [bias] = np.flatnonzero(names == "bias")
    assert 0 < abs(moved[bias] - slope[bias]) * Y.std() / np.sqrt(len(Y)) < 0.01


@pytest.mark.slow
@pytest.mark.parametrize(("model", "likelihood", "centred"), SAMPLED)
def test_nuts_samples_the_same_density_for_columns_in_other_units(model, likelihood, centred, monkeypatch):
    without_compiler(monkeypatch)
    times = np.array([50.0, 1.0, 0.01, 3.0, 1.0, 1000.0])
    (one, names), (other, _) = (
        declared_density(Y, model, likelihood, centred, inputs=inputs) for inputs in (X, X * times + 2.0)
    )
    for x in np.random.default_rng(7).normal(0.0, 0.7, (2, len(names))):
        assert_allclose(other(x)[0], one(x)[0], rtol=1e-9)
        assert_allclose(other(x)[1], one(x)[1], rtol=1e-9, atol=1e-9 * np.abs(one(x)[1]).max())


@pytest.mark.slow
def test_nuts_makes_the_same_draws_in_every_unit():
    """In the coordinates of the fit that it starts at the density is the same function, so the draws are the same."""
    rng = np.random.default_rng(12)
    inputs = rng.standard_normal((150, 6))
    y = inputs[:, 0] + 0.5 * inputs[:, 3] + 0.7 * rng.standard_normal(150)
    start = bs.methods.MacKay(tolerance=1e-12, max_iterations=5000)  # what is left of its error moves the draws
    short = {"draws": 100, "tune": 200, "chains": 1, "retry": False, "random_seed": 1, "start": start}
    one, other = (fitted(t, "ard_gaussian", "nuts", short, inputs=inputs)["posterior"]["w"] for t in (y, 100 * y))
    assert_allclose(other, 100 * one, rtol=0, atol=1e-6 * 100 * float(one.std()))
