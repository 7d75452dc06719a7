"""What one-step methods refuse, in one sentence."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bayes_sparse as bs

from .systems import BINARY, SYSTEMS, TARGETS, P, X, fit


@pytest.mark.parametrize(
    "expansion",
    [0, -2, True, 1.5, "foo", np.zeros(3), [], {"v": np.zeros(P)}, {"w": np.zeros(3)}, np.full(P, np.nan), ["a"] * P],
    ids=repr,
)
def test_no_expansion(expansion):
    with pytest.raises(ValueError, match=r"(`expansion` is 'ridge'.*got|[Ee]xpansion point .*'w').*\.$") as error:
        fit("GREVM", (X, BINARY), expansion=expansion)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"ridge": -1.0}, "`ridge` must be positive, got -1.0"),
        ({"ridge": np.nan}, "`ridge` must be positive, got nan"),
        ({"ridge": np.inf}, "`ridge`"),
        ({"ridge": "large"}, "`ridge`"),
        ({"posterior": "exact"}, "`posterior` is 'mode' or 'quadratic', got 'exact'"),
        ({"smoothness": "some"}, "`smoothness` is 'auto' or a number"),
    ],
    ids=str,
)
def test_settings_out_of_range(settings, words):
    with pytest.raises((ValueError, TypeError), match=words):
        fit("GREVM", (X, BINARY), **settings)


@pytest.mark.parametrize("name", ["octants", "max_iterations", "tolerance", "tune"])
def test_a_setting_that_does_not_exist_lists_those_that_do(name):
    has = (
        r"the method has approximation, expansion, octant, posterior, prior, ridge, smoothness, steps, "
        r"the model bias_sd, grouped, hyper, slab\."
    )
    listed = rf"has a setting '{name}'; {has}" + (" Did you mean 'octant'" if name == "octants" else "$")
    with pytest.raises(TypeError, match=listed):
        fit("GREVM", (X, BINARY), **{name: 3})
    with pytest.raises(TypeError, match=r"'full_matrix'.*the method has expansion, ridge"):
        fit("R_0", (X, BINARY), octant=True)


def test_settings_of_the_model_by_name():
    narrow = fit("GREVM", (X, TARGETS["normal"]), bias_sd=1e-3)["evidence"]
    assert abs(narrow["bias"].item() + X.mean(axis=0) @ narrow["mean"].to_numpy()) < 0.1
    assert json.loads(fit("LREVM", (X, BINARY), bias_sd=3.0).attrs["bayes_sparse"])["bias_sd"] == 3.0


@pytest.mark.parametrize("method", ["sequential", "mackay", "em"])
@pytest.mark.parametrize("model", ["laplace_eigen", "gaussian_eigen"])
def test_a_prior_on_eigen_coordinates_needs_a_method_that_knows_them(model, method):
    with pytest.raises(ValueError, match=f"The method '{method}' .* on eigen-coordinates is fitted by method='.*revm'"):
        bs.fit(model, (X, BINARY), method=method)


def test_the_full_matrix_is_of_a_normal_prior():
    with pytest.raises(
        ValueError,
        match=r"'full_matrix' finds the precisions of a gaussian prior on eigen-coordinates; a laplace prior",
    ):
        bs.fit("laplace_eigen", (X, BINARY), method="full_matrix")


def test_a_laplace_prior_has_no_price():
    with pytest.raises(ValueError, match=r"Laplace prior has no price .*smoothness is 1\.0"):
        fit("LREVM", (X, BINARY), smoothness=1.0)
    assert fit("LREVM", (X, BINARY), smoothness=0)["evidence"].attrs["status"] == "converged"


def test_a_normal_prior_has_one():
    """A direction enters when h u^2 exceeds 1 + 2c."""
    free, priced = (fit("GREVM", (X, TARGETS["normal"]), smoothness=c)["evidence"] for c in (0, 2.0))
    strength = free["h"] * free["u_expansion"] ** 2
    assert_array_equal(np.isfinite(priced["alpha"]), strength > 5)
    kept = (strength > 5).to_numpy()
    assert_allclose(priced["alpha"][kept], (free["h"] / (strength - 5))[kept])
    assert_allclose(priced["objective"], priced["log_evidence"] - 2.0 * priced["gamma"].sum())
    assert priced.attrs["smoothness"] == 2.0


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_proper_hyper_prior_is_refused(system):
    with pytest.raises(ValueError, match=r"needs the flat hyper-prior \(0, 0\)") as error:
        fit(system, (X, BINARY), hyper=(1.0, 1.0))
    if system == "LREVM":  # which would refuse the model
        assert "mackay" not in str(error.value)
    assert fit(system, (X, BINARY), hyper=(0.0, 0.0))["evidence"].attrs["status"] == "converged"
