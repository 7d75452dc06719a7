"""The answer to a regression does not depend on the unit of its targets, under any hyper-prior, by any method."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bayes_sparse as bs
from bayes_sparse.inputs.prepare import prepare

RNG = np.random.default_rng(12)
X = RNG.standard_normal((70, 6)) * [1, 10, 0.1, 1, 1, 1]
Y = X[:, 0] - 0.1 * X[:, 1] + 0.4 * X[:, 3] + 0.7 * RNG.standard_t(5, 70)
TIMES, SHIFT = 50.0, 7.0

FITS = [
    ("ard_gaussian", "sequential", None),
    ("ard_gaussian", "mackay", None),
    ("ard_gaussian", "mackay", (1.0, 0.1)),
    ("ard_gaussian", "em", (0.5, 0.005)),
    ("gaussian_eigen", "revm", None),
    ("laplace_eigen", "revm", None),
    ("jeffreys_laplace", "reweighted", None),
]


def fitted(y, model, method, hyper, **settings):
    given = settings | ({} if hyper is None else {"hyper": hyper})
    return bs.fit(model, (X, y), method=method, draws=0, progressbar=False, **given)


@pytest.mark.quick
@pytest.mark.parametrize("kernels", [False, True])
@pytest.mark.parametrize("likelihood", ["normal", "student_t"])
@pytest.mark.parametrize(("model", "method", "hyper"), FITS)
def test_targets_in_other_units(model, method, hyper, likelihood, kernels):
    if model == "jeffreys_laplace" and likelihood == "student_t":
        with pytest.raises(ValueError, match="log-concave"):
            fitted(Y, model, method, hyper, likelihood=likelihood)
        return
    settings = {"likelihood": likelihood} | ({"basis": bs.basis.rbf(3.0)} if kernels else {})
    # The prior of the bias is as wide as ten times the targets about zero, which a shift makes wider.
    shift = 0.0 if kernels else SHIFT
    one, other = (fitted(y, model, method, hyper, **settings) for y in (Y, TIMES * Y + shift))
    assert_allclose(
        bs.predict(other, X[:9])["mean"], TIMES * bs.predict(one, X[:9])["mean"] + shift, rtol=2e-3, atol=1e-2 * TIMES
    )
    a, b = one["evidence"].to_dataset(), other["evidence"].to_dataset()
    assert a.attrs["status"] == b.attrs["status"]
    size = TIMES * float(np.abs(a["mean"]).max())
    assert_allclose(b["mean"], TIMES * a["mean"], rtol=5e-3, atol=5e-3 * size)
    if "kept" in a:
        assert_array_equal(a["kept"], b["kept"])
        assert_allclose(b["chance"], a["chance"], rtol=0.05, atol=1e-3)
    if hyper is not None:
        assert_allclose(b.attrs["hyper"], hyper)
        assert_allclose(b.attrs["hyper_unit"], TIMES * a.attrs["hyper_unit"])


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
