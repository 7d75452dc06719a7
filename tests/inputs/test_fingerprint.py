"""The digest of data: the same for the same data, another after any change."""

import copy

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pymc as pm
import pytest
import xarray as xr
from hypothesis import given
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.sparse import csc_array, csr_array

from bayes_sparse.inputs.fingerprint import fingerprint

VALUES = np.random.default_rng(0).standard_normal((6, 3))
Y = np.arange(6.0)


def frame(values, names=("a", "b", "c")):
    return pd.DataFrame(values, columns=list(names))


HOLDERS = {
    "array": lambda values: values,
    "tuple": lambda values: (values, Y),
    "list": lambda values: [values, Y],
    "dict": lambda values: {"X": values, "y": Y},
    "pandas": frame,
    "polars": lambda values: pl.DataFrame(values, schema=["a", "b", "c"]),
    "rows": csr_array,
    "columns": csc_array,
    "Dataset": lambda values: xr.Dataset({"X": (("obs", "feature"), values), "y": ("obs", Y)}),
    "DataArray": lambda values: xr.DataArray(values, dims=("obs", "feature")),
    "by class": lambda values: ({"one": frame(values), "two": frame(VALUES)}, Y),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_copies_are_known_again_and_any_change_is_seen(holder):
    hold = HOLDERS[holder]
    before = fingerprint(hold(VALUES.copy()))
    assert before == fingerprint(hold(VALUES.copy())) == fingerprint(copy.deepcopy(hold(VALUES)))
    assert len(before) == 16
    assert set(before) <= set("0123456789abcdef")
    for place in np.ndindex(*VALUES.shape):
        changed = VALUES.copy()
        changed[place] = np.nextafter(changed[place], np.inf)
        assert fingerprint(hold(changed)) != before
    assert fingerprint(hold(VALUES[:, [1, 0, 2]])) != before


@given(arrays(np.float64, array_shapes(max_dims=3, max_side=4), elements=st.floats(-10, 10)), st.data())
def test_one_value_more_or_less(values, data):
    place = tuple(data.draw(st.integers(0, size - 1)) for size in values.shape)
    changed = values.copy()
    changed[place] += 1.0
    assert fingerprint(values) == fingerprint(np.asfortranarray(values))
    assert fingerprint(changed) != fingerprint(values)
    assert fingerprint(values[None]) != fingerprint(values)


def test_names_are_part_of_the_data():
    assert fingerprint(frame(VALUES)) != fingerprint(frame(VALUES, ("a", "b", "d")))
    assert fingerprint({"a": Y}) != fingerprint({"b": Y})
    assert fingerprint(xr.Dataset({"a": ("obs", Y)})) != fingerprint(xr.Dataset({"b": ("obs", Y)}))


def test_the_name_of_the_target_is_part_of_the_data():
    assert fingerprint(pd.Series(Y, name="height")) != fingerprint(pd.Series(Y, name="weight"))


def test_labels_of_an_array_are_part_of_the_data():
    labels = [["a", "b", "c"], ["a", "b", "d"]]
    one, other = (xr.DataArray(VALUES, dims=("obs", "feature"), coords={"feature": names}) for names in labels)
    assert fingerprint(one) != fingerprint(other)
    assert fingerprint(xr.Dataset({"X": one})) != fingerprint(xr.Dataset({"X": other}))


def test_labels_and_words():
    words = pd.DataFrame({"kind": ["a", "b", None]})
    assert fingerprint(words) == fingerprint(words.copy())
    assert fingerprint(words) != fingerprint(words.fillna("a"))
    assert fingerprint(words.astype("category")) == fingerprint(words.astype("category"))
    assert fingerprint("normal") != fingerprint("poisson")
    assert fingerprint(None) == fingerprint(None)


def test_the_shape_of_a_sparse_matrix_counts():
    wide = csr_array((np.ones(1), ([0], [0])), shape=(2, 3))
    assert fingerprint(wide) != fingerprint(csr_array((np.ones(1), ([0], [0])), shape=(2, 4)))


def test_the_names_of_a_tuple_do_not_run_together():
    assert fingerprint(["ab", "c"]) != fingerprint(["a", "bc"])
    assert fingerprint(([Y], Y)) != fingerprint([Y, Y])


def declared(values=VALUES, y=Y, shape=1.0, container=False):
    with pm.Model() as model:
        X = pm.Data("X", values) if container else values
        alpha = pm.Gamma("alpha", shape, 1.0, shape=3)
        w = pm.Normal("w", 0.0, 1 / pm.math.sqrt(alpha), shape=3)
        pm.Normal("y", X @ w, 1.0, observed=y)
    return model


@pytest.mark.parametrize("container", [True, False], ids=["pm.Data", "constants"])
def test_a_model_of_the_user_s(container):
    before = fingerprint(declared(container=container))
    changed = VALUES.copy()
    changed[2, 1] += 1e-6
    assert before == fingerprint(declared(VALUES.copy(), Y.copy(), container=container))
    assert before != fingerprint(declared(y=Y + 1e-6, container=container))
    assert before != fingerprint(declared(changed, container=container))


def test_a_prior_of_the_user_s_is_part_of_the_model():
    assert fingerprint(declared()) != fingerprint(declared(shape=2.0))
