"""The intercept of the columns as they are: there and back again, and beside what Bambi itself gives."""

import json

import numpy as np
import pytest
import xarray as xr

from bayes_sparse.trees.centring import recentred, uncentred

RNG = np.random.default_rng(8)
SHAPE = (2, 30)
MEANS = {"Intercept": {"x": [3.0], "c": [0.25, 0.5]}}


def drawn(name, *dims):
    sizes = {"c_dim": 2, "kind_reduced_dim": 3, "g__factor_dim": 4, "c__expr_dim": 2}
    values = RNG.normal(size=(*SHAPE, *(sizes[dim] for dim in dims)))
    return xr.DataArray(values, dims=("chain", "draw", *dims), name=name)


def tree_of(*variables):
    evidence = xr.Dataset({"Intercept": 1.0, "Intercept_sd": 0.1, "mean": ("basis", [1.0, 2.0, 0.0])})
    posterior = xr.Dataset({v.name: v for v in variables}, attrs={"method": "sequential"})
    tree = xr.DataTree.from_dict({"/posterior": posterior, "/evidence": evidence})
    tree.attrs["bayes_sparse"] = json.dumps({"model": "declared"})
    return tree


SCALAR = tree_of(drawn("Intercept"), drawn("x"), drawn("c", "c_dim"), drawn("1|g", "g__factor_dim"))
BY_CLASS = tree_of(
    drawn("Intercept", "kind_reduced_dim"),
    drawn("x", "kind_reduced_dim"),
    drawn("c", "c_dim", "kind_reduced_dim"),
    drawn("c|g", "g__factor_dim", "c__expr_dim", "kind_reduced_dim"),
)


@pytest.mark.parametrize("tree", [SCALAR, BY_CLASS], ids=["one predictor", "one per class"])
def test_the_predictor_is_the_same(tree):
    """At a row with any columns: centred columns and their intercept, or plain columns and theirs."""
    x, c = 1.7, np.array([0.0, 1.0])
    before, after = tree["posterior"].to_dataset(), uncentred(tree, MEANS)["posterior"].to_dataset()
    centred = (
        before["Intercept"]
        + before["x"] * (x - 3.0)
        + xr.dot(before["c"], xr.DataArray(c - [0.25, 0.5], dims="c_dim"), dim="c_dim")
    )
    plain = after["Intercept"] + after["x"] * x + xr.dot(after["c"], xr.DataArray(c, dims="c_dim"), dim="c_dim")
    np.testing.assert_allclose(plain.to_numpy(), centred.to_numpy(), rtol=0, atol=1e-13)


@pytest.mark.parametrize("tree", [SCALAR, BY_CLASS], ids=["one predictor", "one per class"])
def test_there_and_back_again(tree):
    back = recentred(uncentred(tree, MEANS))["posterior"].to_dataset()
    xr.testing.assert_allclose(back, tree["posterior"].to_dataset(), rtol=0, atol=1e-13)
    assert {name: v.dims for name, v in back.items()} == {name: v.dims for name, v in tree["posterior"].items()}
    assert back.attrs == tree["posterior"].attrs


def test_groups_are_the_last_dim():
    assert uncentred(BY_CLASS, MEANS)["posterior"]["c|g"].dims[2:] == (
        "c__expr_dim",
        "kind_reduced_dim",
        "g__factor_dim",
    )


def test_a_point_value_beside_centred_columns_says_so():
    evidence = uncentred(SCALAR, MEANS)["evidence"]
    assert float(evidence["Intercept_centred"]) == 1.0
    assert float(evidence["Intercept_centred_sd"]) == 0.1
    assert "Intercept" not in evidence


def test_what_is_not_wanted_is_left_out():
    found = uncentred(SCALAR, MEANS, ["1|g", "not there"])
    assert set(found["posterior"].data_vars) == {"Intercept", "x", "c"}
    assert set(recentred(found)["posterior"].data_vars) == {"Intercept", "x", "c"}


def test_nothing_else_is_touched():
    assert recentred(SCALAR) is SCALAR
    other = uncentred(SCALAR, {})
    xr.testing.assert_identical(other["posterior"].to_dataset(), SCALAR["posterior"].to_dataset())
    assert "centred" not in json.loads(SCALAR.attrs["bayes_sparse"])
    without = xr.DataTree.from_dict({"/evidence": SCALAR["evidence"].to_dataset()})
    without.attrs = SCALAR.attrs
    assert recentred(uncentred(without, MEANS)).children.keys() == {"evidence"}
