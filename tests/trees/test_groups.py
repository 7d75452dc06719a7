"""Terms that share one precision, as trees and tables show them."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

import bayes_sparse as bs
from bayes_sparse.models.ard_gaussian import ARDGaussian

RNG = np.random.default_rng(0)
NAMES = [*(f"colour[{level}]" for level in "abcd"), "age", "height", "shape[x]", "shape[y]"]
LABELS = np.array([0, 0, 0, 0, 1, 2, 3, 3])
X = pd.DataFrame(RNG.standard_normal((200, 8)) * [1, 2, 3, 4, 1, 1, 1, 1], columns=NAMES)
Y = X.to_numpy() @ [0.6, -0.3, 0.25, 0.2, 0.8, 0, 0, 0] + RNG.standard_normal(200)


@dataclass(frozen=True)
class Grouped(ARDGaussian):
    """The ARD model with columns that share precisions."""

    names: tuple[str, ...] | None = None

    def problem(self, data):
        labelled = super().problem(data)
        search = replace(labelled.search, groups=np.append(LABELS, 0))
        return replace(labelled, search=search, group_names=None if self.names is None else list(self.names))


def fitted(method, names=None, **settings):
    return bs.fit(Grouped(names=names), (X, Y), method=method, draws=0, progressbar=False, **settings)


@pytest.mark.parametrize("method", ["sequential", "mackay", "em"])
def test_one_statement_per_group(method, tmp_path):
    tree = fitted(method)
    tree.to_netcdf(tmp_path / "tree.nc")
    with xr.open_datatree(tmp_path / "tree.nc") as again:
        table = bs.relevance(again)
    colour = table.loc[NAMES[:4]]
    assert set(colour["group"]) == {"colour[a] and 3 more"}
    assert colour["kept"].all()
    assert colour["relevant"].all()
    assert colour["score"].nunique() == colour["chance"].nunique() == 1
    assert not table.loc[NAMES[6:], "kept"].any()
    assert set(table.loc[NAMES[6:], "group"]) == {"shape[x] and 1 more"}
    assert table.loc[["age", "height"], "group"].tolist() == ["age", "height"]
    places = [table.index.get_loc(name) for name in NAMES[:4]]
    assert max(places) - min(places) == 3  # next to each other
    scale = tree["constant_data"]["basis_scale"].to_numpy()
    assert_allclose(np.ptp(tree["evidence"]["alpha"].to_numpy()[:4] / scale[:4] ** 2), 0, atol=1e-9)


def test_groups_have_the_names_they_are_given():
    table = bs.relevance(fitted("mackay", ("colour",) * 4 + ("age", "height", "shape", "shape")), order="forward")
    assert table["group"].tolist()[:5].count("colour") == 4
    gain = table.groupby("group", sort=False)["gain"].agg(["min", "max"])
    assert_array_equal(gain["min"].dropna(), gain["max"].dropna())  # a group is taken up at once
    assert np.all(np.diff(table["gain"].dropna()) <= 0)


def test_without_groups_there_is_no_such_column():
    tree = bs.fit("ard_gaussian", (X, Y), draws=0, progressbar=False)
    assert "group" not in tree["evidence"]
    assert "group" not in bs.relevance(tree)


def test_the_price_is_by_the_number_of_groups():
    tree, plain = fitted("sequential"), bs.fit("ard_gaussian", (X, Y), draws=0, progressbar=False)
    log_4, log_8 = np.log(4), np.log(8)
    assert_allclose(tree["evidence"].attrs["smoothness"], log_4 - 0.5 * np.log(log_4))
    assert_allclose(plain["evidence"].attrs["smoothness"], log_8 - 0.5 * np.log(log_8))


def test_a_fit_with_groups_draws_and_predicts():
    tree = bs.fit(Grouped(), (X, Y), draws=100, chains=1, random_seed=1, progressbar=False)
    assert tree["posterior"]["w"].sizes["basis"] == 5
    predicted = bs.predict(tree, X.iloc[:5])
    assert np.isfinite(predicted["mean"].to_numpy()).all()
