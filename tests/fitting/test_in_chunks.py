"""The same call with rows in chunks gives the same numbers as with rows in memory."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import bayes_sparse as bs
from tests.support import refused

da = pytest.importorskip("dask.array")

SIZES = (130, 1, 0, 269)  # uneven, and one of them empty


def _rows(likelihood, n=400, p=6, seed=0):
    rng = np.random.default_rng(seed)
    X = 3.0 + rng.normal(size=(n, p)) * np.arange(1.0, p + 1)
    eta = (X[:, 0] - 3.0) * 0.8 - (X[:, 1] - 3.0) * 0.3
    if likelihood == "normal":
        return X, eta + rng.normal(size=n)
    if likelihood == "bernoulli":
        return X, np.where(rng.random(n) < 1 / (1 + np.exp(-eta)), "yes", "no")
    if likelihood == "negative_binomial":
        return X, rng.negative_binomial(3, 1 / (1 + np.exp(0.3 * eta)))
    return X, rng.poisson(np.exp(0.3 * eta))


def _chunked(*arrays, sizes=SIZES):
    return [da.from_array(a, chunks=(sizes, *(-1 for _ in a.shape[1:]))) for a in arrays]


def _fit(data, **how):
    how = {"model": "ard_gaussian", "draws": 30, "chains": 2, "random_seed": 1, "progressbar": False, **how}
    return bs.fit(how.pop("model"), data, **how)


def _same(one, other, tolerance=1e-10):
    """Every number of the group `evidence`, and the draws."""
    a, b = one["evidence"].to_dataset(), other["evidence"].to_dataset()
    assert a.attrs["status"] == b.attrs["status"]
    for name in a.data_vars:
        if a[name].dtype.kind == "f":
            least = 1e-12 if name == "chance" else 1e-14  # what is zero in exact arithmetic
            np.testing.assert_allclose(b[name], a[name], rtol=tolerance, atol=least, err_msg=name)
        else:
            np.testing.assert_array_equal(b[name], a[name], err_msg=name)
    xr.testing.assert_allclose(other["posterior"].to_dataset(), one["posterior"].to_dataset(), rtol=1e-7)
    for name in ("log_p", "log_q"):
        np.testing.assert_allclose(other["sample_stats"][name], one["sample_stats"][name], rtol=1e-9)


@pytest.mark.parametrize("likelihood", ["normal", "bernoulli", "poisson"])
@pytest.mark.parametrize("method", ["sequential", "mackay"])
def test_likelihoods_and_methods(likelihood, method):
    X, y = _rows(likelihood)
    apart = _fit(tuple(_chunked(X, y)), likelihood=likelihood, method=method)
    _same(_fit((X, y), likelihood=likelihood, method=method), apart)
    assert apart["evidence"].attrs["passes"] >= 2


@pytest.mark.parametrize("likelihood", ["normal", "poisson"])
def test_weights_offset_keep_and_no_standardising(likelihood):
    X, y = _rows(likelihood)
    rng = np.random.default_rng(2)
    weights, offset = rng.integers(0, 3, len(y)).astype(float), 0.3 * rng.normal(size=len(y))
    X[:, 5] = 7.0  # constant: left out beside a bias
    for basis in (bs.basis.linear(), bs.basis.linear(standardise=False)):
        how = {"likelihood": likelihood, "basis": basis, "keep": ["x2", "x3"]}
        here = _fit((X, y), weights=weights, offset=offset, **how)
        cX, cy, cw, co = _chunked(X, y, weights, offset)
        _same(here, _fit((cX, cy), weights=cw, offset=co, **how))


@pytest.mark.slow
def test_a_nuisance_parameter_that_is_not_the_noise():
    X, y = _rows("negative_binomial")
    how = {"likelihood": "negative_binomial", "max_iterations": 20}
    _same(_fit((X, y), **how), _fit(tuple(_chunked(X, y)), **how), 1e-7)  # by differences, which lose digits


def test_normal_likelihood_takes_three_passes_whatever_the_search():
    X, y = _rows("normal")
    for method in ("sequential", "em"):
        assert _fit(tuple(_chunked(X, y)), method=method)["evidence"].attrs["passes"] == 3


def test_frames_datasets_and_files(tmp_path):
    dd = pytest.importorskip("dask.dataframe")
    X, y = _rows("poisson")
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(count=y, w=np.where(X[:, 3] > 0, 1.0, 2.0))
    here = _fit(frame, target="count", weights="w", likelihood="poisson")
    for i in range(3):
        frame.iloc[i * 150 : (i + 1) * 150].to_parquet(tmp_path / f"{i}.parquet")
    dataset = xr.Dataset(
        {"X": (("row", "feature"), X), "count": ("row", y), "w": ("row", frame["w"].to_numpy())},
        coords={"feature": list("abcdef")},
    )
    for data in (
        dd.from_pandas(frame, npartitions=3),
        bs.data.parquet(tmp_path / "*.parquet", target="count"),
        dataset.chunk({"row": 150}),
    ):
        _same(here, _fit(data, target="count", weights="w", likelihood="poisson"))


def test_the_tree_holds_the_rows_lazily():
    X, y = _rows("bernoulli")
    tree = _fit(tuple(_chunked(X, y)))
    observed = tree["observed_data"]["y"]
    assert observed.chunks is not None
    np.testing.assert_array_equal(observed.to_numpy(), y == "yes")
    assert "log_likelihood" not in tree.children


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda X, y: X.__setitem__((200, 2), np.nan), r"Missing values in 'x2' \(1\).*missing='drop'"),
        (lambda X, y: X.__setitem__((200, 4), np.inf), r"Infinite values in 'x4' \(1\)"),
        (lambda X, y: y.__setitem__(7, np.nan), r"target 'y' has 1 NaN or infinite"),
    ],
)
def test_what_is_wrong_in_one_chunk_is_said_in_one_sentence(spoil, words):
    X, y = _rows("normal")
    spoil(X, y)
    with pytest.raises(ValueError, match=words):
        _fit(tuple(_chunked(X, y)))


def test_rows_with_missing_values_left_out():
    X, y = _rows("normal")
    X[[3, 200], 2] = np.nan
    _same(_fit((X, y), missing="drop"), _fit(tuple(_chunked(X, y)), missing="drop"))


def test_a_file_that_is_gone(tmp_path):
    X, y = _rows("normal")
    for i in range(3):
        pd.DataFrame(X).rename(columns=str).assign(y=y).to_parquet(tmp_path / f"{i}.parquet")
    data = bs.data.parquet(tmp_path / "*.parquet", target="y")
    (tmp_path / "1.parquet").unlink()
    with pytest.raises(ValueError, match=r"A file of the data is gone .*1\.parquet"):
        _fit(data)
    with pytest.raises(ValueError, match="There are no Parquet files at"):
        bs.data.parquet(tmp_path / "nowhere" / "*.parquet")


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"basis": bs.basis.rbf(width=1.0)}, "Data in chunks take basis='linear'"),
        ({"missing": "mean"}, "plain columns of numbers"),
        ({"likelihood": "categorical"}, "one predictor per row"),
        ({"weights": "w"}, "as arrays"),
    ],
)
def test_what_chunks_do_not_do_is_said(how, words):
    X, y = _rows("poisson")
    with pytest.raises(ValueError, match=words):
        _fit(tuple(_chunked(X, y)), **how)


def test_fewer_rows_than_columns_belong_into_memory():
    X = np.random.default_rng(0).normal(size=(5, 9))
    with pytest.raises(ValueError, match=r"5 rows of 9 columns.*\.compute\(\)"):
        _fit(tuple(_chunked(X, X[:, 0].copy(), sizes=(2, 3))))


@pytest.mark.parametrize("likelihood", ["bernoulli", "poisson"])
@pytest.mark.parametrize(("model", "method"), [("laplace_eigen", "revm"), ("jeffreys_laplace", "reweighted")])
def test_directions_and_the_l1_path(likelihood, model, method):
    X, y = _rows(likelihood)
    how = {"model": model, "method": method, "likelihood": likelihood, "draws": 5}
    _same(_fit((X, y), **how), _fit(tuple(_chunked(X, y)), **how), 1e-9)


def test_methods_that_need_all_rows_say_so_unless_the_noise_is_normal():
    X, y = _rows("poisson")
    with pytest.raises(ValueError, match="'global_local' needs all rows in one place"):
        _fit(tuple(_chunked(X, y)), model="horseshoe", likelihood="poisson")
    with pytest.raises(ValueError, match="keeps a number per row"):
        _fit(tuple(_chunked(X, y)), likelihood="poisson", approximation="ep")
    X, y = _rows("normal")
    for model, method, tolerance in (("horseshoe", "global_local", 1e-7), ("ard_gaussian", "variational", 1e-6)):
        how = {"model": model, "method": method}
        _same(_fit((X, y), **how), _fit(tuple(_chunked(X, y)), **how), tolerance)  # searched to a tolerance


def test_predictions_stay_in_chunks():
    for likelihood in ("normal", "bernoulli"):
        X, y = _rows(likelihood)
        here = _fit((X, y), likelihood=likelihood)
        cX, cy, offset = _chunked(X, y, X[:, 0] / 10)
        made = bs.predict(_fit((cX, cy), likelihood=likelihood), cX, offset=offset)
        known = bs.predict(here, X, offset=X[:, 0] / 10)
        for name in known.data_vars:
            assert made[name].chunks[0] == tuple(size for size in SIZES if size)
            if name != "label":
                np.testing.assert_allclose(made[name], known[name], rtol=1e-10)
        if likelihood == "bernoulli":
            assert (made["label"].to_numpy() == known["label"].to_numpy()).all()


def test_predictions_of_a_dask_frame_lack_what_was_pruned():
    dd = pytest.importorskip("dask.dataframe")
    X, y = _rows("normal")
    tree = _fit((X, y))
    kept = tree["evidence"]["basis"].to_numpy()[tree["evidence"]["kept"].to_numpy()]
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])[list(kept)]
    made = bs.predict(tree, dd.from_pandas(frame, npartitions=3))
    assert made["mean"].chunks is not None
    np.testing.assert_allclose(made["mean"], bs.predict(tree, X)["mean"], rtol=1e-12)


def test_nuts_says_the_size():
    with pytest.raises(ValueError, match=r"these are 400 x 6, 1\.92e-05 GB: fit by evidence first.*keep_columns=tree"):
        _fit(tuple(_chunked(*_rows("normal"))), method="nuts")


@pytest.mark.slow
def test_nuts_samples_the_columns_kept():
    data = tuple(_chunked(*_rows("normal")))
    tree = _fit(data)
    sampled = _fit(data, method="nuts", keep_columns=tree, sampler="pymc", draws=100, tune=100, retry=False)
    assert list(sampled["posterior"]["basis"].to_numpy()) == ["x0", "x1"]
    mean, sd = (tree["evidence"][name].to_numpy()[:2] for name in ("mean", "sd"))
    assert (np.abs(sampled["posterior"]["w"].mean(("chain", "draw")) - mean) < sd).all()


def test_what_fits_again_says_that_it_needs_the_rows():
    X, y = _rows("normal")
    with pytest.raises(ValueError, match="rows in memory"):
        bs.kfold("ard_gaussian", tuple(_chunked(X, y)))


def test_what_needs_every_row_says_so():
    chunked = tuple(_chunked(*_rows("normal")))
    refused(lambda: bs.loo(_fit(chunked)), "lie in chunks", "a sample of the rows")
    refused(lambda: bs.ladder("ard_gaussian", chunked), "needs the rows in memory")
