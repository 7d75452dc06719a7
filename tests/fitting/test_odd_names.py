"""Labels and names that a tree's own stand in the way of: they are stored, or refused in a sentence."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

import bayes_sparse as bs
from tests.support import assert_one_sentence

RNG = np.random.default_rng(5)
X = RNG.normal(size=(30, 2))
Y = X[:, 0] + 0.3 * RNG.normal(size=30)
LEVELS = pd.MultiIndex.from_product([range(3), list("abcdefghij")], names=["year", "site"])
MIXED = pd.Index(["a", 2, *range(3, 31)])
BRIEF = {"draws": 10, "progressbar": False}


@pytest.mark.parametrize("index", [LEVELS, MIXED], ids=["levels", "mixed"])
@pytest.mark.parametrize("basis", ["linear", bs.basis.rbf(width=1.0)])
def test_labels_of_rows_are_stored(index, basis, tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b"], index=index)
    tree = bs.fit("ard_gaussian", frame.assign(y=Y), target="y", basis=basis, **BRIEF)
    tree.to_netcdf(tmp_path / "tree.nc")
    with xr.open_datatree(tmp_path / "tree.nc") as again:
        found = bs.predict(again, frame)
    assert_array_equal(found["obs"][:2], ["0, a", "0, b"] if index is LEVELS else ["a", "2"])
    xr.testing.assert_allclose(found.drop_vars("obs"), bs.predict(tree, X).drop_vars("obs"))


@pytest.mark.parametrize("dim", ["chain", "draw", "class", "feature", "level", "basis", "coordinate"])
@pytest.mark.parametrize("y", [Y, Y > 0], ids=["numbers", "classes"])
@pytest.mark.parametrize("basis", ["linear", bs.basis.rbf(width=1.0)])
def test_dims_of_rows(dim, y, basis, tmp_path):
    rows = xr.Dataset({"a": (dim, X[:, 0]), "b": (dim, X[:, 1])}, coords={dim: np.arange(30)})
    tree = bs.fit("ard_gaussian", rows.assign(y=(dim, y)), target="y", basis=basis, **BRIEF)
    tree.to_netcdf(tmp_path / "tree.nc")
    found, plain = bs.predict(tree, rows), bs.predict(bs.fit("ard_gaussian", (X, y), basis=basis, **BRIEF), X)
    name = "mean" if "mean" in plain else "probability"
    assert_allclose(found[name], plain[name], rtol=1e-9)


def own(name):
    with pm.Model() as model:
        scales = pm.HalfNormal("scales", shape=2)
        w = pm.Normal("w", 0, scales, shape=2)
        pm.Normal("y", pm.math.dot(X, w), pm.HalfNormal(name), observed=Y)
    return model


@pytest.mark.parametrize("name", ["nuisance", "basis", "coordinate", "factor", "alpha", "mean"])
def test_variables_of_a_model(name):
    plain, model = bs.fit(own("sigma"), **BRIEF, random_seed=1), own(name)
    tree = bs.fit(model, **BRIEF, random_seed=1)
    assert_array_equal(tree["posterior"][name], plain["posterior"]["sigma"])
    assert np.isfinite(bs.diagnose(tree, model).log_evidence)


def test_variables_that_no_draws_can_have():
    with pytest.raises(ValueError, match="'draw' has the name of a dim") as error:
        bs.fit(own("draw"))
    assert_one_sentence(str(error.value))


@pytest.mark.parametrize("keep", [0, 1.5, True])
def test_what_is_kept_has_a_name(keep):
    with pytest.raises(TypeError, match="`keep` is the name") as error:
        bs.fit("ard_gaussian", (X, Y), keep=keep)
    assert_one_sentence(str(error.value))
