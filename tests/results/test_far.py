"""Rows far from the data are marked, fresh rows of the same kind are not; against distances taken by hand."""

import warnings

import numpy as np
import pytest
import xarray as xr
from scipy.spatial.distance import cdist

import bayes_sparse as bs
from bayes_sparse.inputs.basis import far_below
from tests.support import as_sampled, assert_one_sentence

DATA = bs.datasets.two_gaussians(250, random_seed=0)
OUT = np.array([[2.0, 2.0], [10.0, -10.0]])


def fitted(X=DATA.X, y=DATA.y, width=0.5, model="ard_gaussian", **settings):
    settings = {"draws": 0, "progressbar": False, "basis": bs.basis.rbf(width)} | settings
    return bs.fit(model, (X, y), **settings)


@pytest.fixture(scope="module")
def classes():
    return fitted()


@pytest.mark.parametrize("width", [0.2, 0.5, 1.0, 2.0])
def test_the_papers_synthetic_set_at_two_two(width):
    with pytest.warns(UserWarning, match="2 of 2 rows lie far from the data") as told:
        found = bs.predict(fitted(width=width), OUT)
    assert_one_sentence(str(told[0].message), "`far`", "probabilities")
    assert found["far"].to_numpy().tolist() == [True, True]
    assert found["far"].dims == ("obs",)


def test_how_sure_it_would_sound(classes):
    with pytest.warns(UserWarning, match="far"):
        assert bs.predict(classes, OUT)["probability"].max() > 0.99  # why it has to be marked


@pytest.mark.parametrize(("n", "width"), [(50, 0.2), (100, 0.5), (250, 0.2), (250, 1.0)])
def test_fresh_rows_of_the_same_kind_are_near(n, width):
    marked = []
    for seed in range(10):
        data, fresh = (bs.datasets.two_gaussians(m, random_seed=s) for m, s in ((n, seed), (500, 100 + seed)))
        K = bs.basis.rbf(width).matrix(data.X, data.X.copy())
        largest = bs.basis.rbf(width).matrix(fresh.X, data.X).max(axis=1)
        marked.append(np.mean(largest < far_below(K)))
    assert np.mean(marked) < 0.02


def test_the_threshold_by_distances():
    """Far is beyond sqrt(1.5) times the largest distance of a training row from its nearest, and 2/3 of a width."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 3))
    own = cdist(X, X) + np.diag(np.full(60, np.inf))
    for width in (0.5, 3.0, 30.0):
        reach = max(np.sqrt(1.5) * own.min(axis=1).max(), width * np.sqrt(-2 * np.log(0.8)))
        new = 4 * rng.standard_normal((200, 3))
        largest = bs.basis.rbf(width).matrix(new, X).max(axis=1)
        below = far_below(bs.basis.rbf(width).matrix(X, X))
        np.testing.assert_array_equal(largest < below, cdist(new, X).min(axis=1) > reach)
    assert far_below(np.ones((1, 1))) == 0.0  # a single row has no neighbour to judge by


def test_in_blocks_it_is_the_same(classes, monkeypatch):
    grid = np.random.default_rng(0).uniform(-3, 3, (50, 2))
    with pytest.warns(UserWarning, match="far"):
        whole = bs.predict(classes, grid)["far"].to_numpy()
    monkeypatch.setattr("bayes_sparse.results.predict.far._BLOCK", 500)
    monkeypatch.setattr("bayes_sparse.inputs.basis._basis._BLOCK", 500)
    with pytest.warns(UserWarning, match="far"):
        np.testing.assert_array_equal(bs.predict(fitted(), grid)["far"], whole)
    assert 0 < whole.sum() < 50


def test_regression_counts_and_several_classes_have_it():
    data = bs.datasets.sinc(n=60, noise=0.1, random_seed=1)
    curve = fitted(data.X, data.y, 2.0)
    with pytest.warns(UserWarning, match="the sd there is too small"):
        assert bs.predict(curve, [[30.0]])["far"].all()
    assert not bs.predict(curve, data.X)["far"].any()
    assert bs.predict(curve, [[30.0]], augment=True)["far"].all()  # and no warning: it is mended
    three = fitted(y=np.where(DATA.X[:, 0] > 0.2, 2, DATA.y), likelihood="categorical")
    with pytest.warns(UserWarning, match="1 of 2 rows"):
        assert bs.predict(three, [[2.0, 2.0], [0.0, 0.5]])["far"].to_numpy().tolist() == [True, False]


def test_units_and_files_change_nothing(classes, tmp_path):
    X = DATA.X * [1.0, 1000.0]
    scaled = fitted(X, basis=bs.basis.rbf(2.0, standardise=True))
    with pytest.warns(UserWarning, match="1 of 2 rows"):
        assert bs.predict(scaled, [[2.0, 2000.0], [0.0, 500.0]])["far"].to_numpy().tolist() == [True, False]
    classes.to_netcdf(tmp_path / "tree.nc")
    with xr.open_datatree(tmp_path / "tree.nc") as again, pytest.warns(UserWarning, match="2 of 2"):
        assert bs.predict(again, OUT)["far"].all()


def test_of_draws_too():
    tree = as_sampled(fitted(draws=20, chains=2, random_seed=0))
    with pytest.warns(UserWarning, match="2 of 2"):
        assert bs.predict(tree, OUT)["far"].all()


def test_what_does_not_vanish_is_not_marked():
    for basis in ("linear", bs.basis.polynomial()):
        tree = fitted(basis=basis)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert "far" not in bs.predict(tree, OUT)
