"""The generators against their own truth; the sets without any network."""

import functools
import gzip
import hashlib
import http.server
import importlib.util
import re
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from bayes_sparse import datasets
from bayes_sparse.datasets import files
from bayes_sparse.datasets.sources import Copy, copies, origins, sets
from bayes_sparse.datasets.sources.papers import COPIES, MNIST, MNIST_URL, SETS

pytestmark = pytest.mark.quick

SHARED = files._beside_checkout()
USERS_CACHE = files._cache
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=f"the papers' data are not in {SHARED}")

GENERATORS = {
    "friedman": datasets.friedman,
    "sinc": datasets.sinc,
    "sinc_random": functools.partial(datasets.sinc, grid=False),
    "sparse_linear": functools.partial(datasets.sparse_linear, p=30, n_test=5),
    "sparse_logistic": functools.partial(datasets.sparse_logistic, p=30, n_test=5),
    "two_gaussians": datasets.two_gaussians,
}
BINARY = ("sparse_logistic", "two_gaussians")


# Generators. Tolerances are 4.5 standard errors: a false alarm once in 150,000, and the seeds are fixed.


@pytest.mark.parametrize("name", GENERATORS)
def test_shapes_types_and_seed(name):
    first, again, other = (GENERATORS[name](n=40, random_seed=seed) for seed in (1, 1, 2))
    assert first.X.shape[0] == len(first.y) == len(first.mean) == 40
    assert first.X.ndim == 2
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.y, again.y)
    assert not np.array_equal(first.y, other.y)
    if name in BINARY:
        assert first.y.dtype.kind == "i"
        assert set(np.unique(first.y)) == {0, 1}
        assert first.noise is None


@pytest.mark.parametrize("name", [name for name in GENERATORS if name not in BINARY])
def test_noise_is_normal_with_the_stated_deviation(name):
    n = 20_000
    data = GENERATORS[name](n=n, noise=0.3, random_seed=3)
    residual = (data.y - data.mean) / data.noise
    assert data.noise == 0.3
    assert abs(residual.mean()) < 4.5 / np.sqrt(n)
    assert abs((residual**2).mean() - 1) < 4.5 * np.sqrt(2 / n)


@pytest.mark.parametrize("name", BINARY)
def test_probabilities_are_calibrated(name):
    data = GENERATORS[name](n=100_000, random_seed=4)
    which = np.digitize(data.mean, np.linspace(0, 1, 11)[1:-1])
    for b in range(10):
        p, y = data.mean[which == b], data.y[which == b]
        assert abs((y - p).sum()) < 4.5 * np.sqrt((p * (1 - p)).sum())


def test_sinc_knows_zero_and_its_range():
    data = datasets.sinc(n=201, noise=0.0, random_seed=0)
    x = data.X[:, 0]
    assert (x[0], x[-1]) == (-10, 10)
    assert data.mean[100] == 1
    away = x != 0
    np.testing.assert_allclose(data.y[away], (np.sin(x) / np.where(away, x, 1))[away], atol=1e-12)
    assert np.abs(datasets.sinc(grid=False, random_seed=0).X).max() <= 10


def test_two_gaussians_probability_is_bayes_rule():
    data = datasets.two_gaussians(n=50_000, random_seed=5)
    centres = {0: [(-0.7, 0.3), (0.3, 0.3)], 1: [(-0.3, 0.7), (0.4, 0.7)]}
    zero, one = (sum(scipy.stats.multivariate_normal(m, 0.03).pdf(data.X) for m in centres[c]) for c in (0, 1))
    np.testing.assert_allclose(data.mean, one / (zero + one), rtol=1e-8)
    assert ((data.mean > 0.5) != data.y).mean() == pytest.approx(0.08, abs=0.01)  # the figure Ripley gives


def test_friedman_ignores_the_extra_inputs():
    data = datasets.friedman(n=50, noise=0.0, extra=3, random_seed=6)
    x1, x2, x3, x4, x5 = data.X[:, :5].T
    expected = 10 * np.sin(np.pi * x1 * x2) + 20 * (x3 - 0.5) ** 2 + 10 * x4 + 5 * x5
    np.testing.assert_allclose(data.y, expected)
    assert data.relevant.tolist() == [True] * 5 + [False] * 3


def test_sparse_linear_truth():
    data = datasets.sparse_linear(n=50, p=300, k=7, noise=0.0, signal=2.0, random_seed=7)
    sizes = np.abs(data.weights[data.relevant])
    assert data.relevant.sum() == 7
    assert (data.weights[~data.relevant] == 0).all()
    assert sizes.min() >= 1.0
    assert sizes.max() <= 3.0
    np.testing.assert_allclose(data.y, data.X @ data.weights)


@pytest.mark.parametrize("make", [datasets.sparse_linear, datasets.sparse_logistic])
def test_new_observations_share_the_truth_and_change_nothing(make):
    with_new = make(n=20, p=50, k=3, n_test=4000, random_seed=8)
    without = make(n=20, p=50, k=3, random_seed=8)
    np.testing.assert_array_equal(with_new.X, without.X)
    np.testing.assert_array_equal(with_new.y, without.y)
    assert without.X_test is without.y_test is without.mean_test is None
    eta = with_new.X_test @ with_new.weights
    logistic = with_new.noise is None
    np.testing.assert_allclose(with_new.mean_test, 1 / (1 + np.exp(-eta)) if logistic else eta)
    variance = with_new.mean_test * (1 - with_new.mean_test) if logistic else np.full(4000, with_new.noise**2)
    assert abs((with_new.y_test - with_new.mean_test).sum()) < 4.5 * np.sqrt(variance.sum())


def test_logistic_has_the_features_of_linear():
    linear = datasets.sparse_linear(n=10, p=20, k=3, random_seed=9)
    logistic = datasets.sparse_logistic(n=10, p=20, k=3, random_seed=9)
    np.testing.assert_array_equal(linear.X, logistic.X)
    np.testing.assert_array_equal(linear.weights, logistic.weights)


@pytest.mark.parametrize("correlation", [0.0, 0.9, -0.5])
def test_neighbours_are_correlated_as_an_ar1(correlation):
    n = 40_000
    X = datasets.sparse_linear(n=n, p=6, k=1, correlation=correlation, random_seed=10).X
    expected = correlation ** np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    np.testing.assert_allclose(np.cov(X.T), expected, atol=4.5 * np.sqrt(2 / n))


def test_heavy_tails_are_a_student_t_of_variance_one():
    X = datasets.sparse_linear(n=200, p=200, heavy_tails=True, k=1, random_seed=11).X
    assert scipy.stats.kstest(X.ravel() * np.sqrt(3), scipy.stats.t(3).cdf).pvalue > 1e-4
    assert scipy.stats.kstest(X.ravel(), "norm").pvalue < 1e-4


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: datasets.sinc(n=0), "n is 0"),
        (lambda: datasets.sinc(noise=-1), "noise is -1"),
        (lambda: datasets.friedman(noise=float("nan")), "noise is nan"),
        (lambda: datasets.friedman(extra=-1), "extra is -1"),
        (lambda: datasets.sparse_linear(p=3, k=4), "k is 4 and p is 3"),
        (lambda: datasets.sparse_logistic(correlation=1.0), "correlation is 1.0"),
        (lambda: datasets.sparse_logistic(n_test=-1), "n_test is -1"),
        (lambda: datasets.two_gaussians(n=-3), "n is -3"),
    ],
)
def test_impossible_requests_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


# Sets


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Empty directories in place of the three a set is looked for in, and a network that is down."""
    found = {name: tmp_path / name for name in ("own", "shared", "cache")}
    for directory in found.values():
        directory.mkdir()
    monkeypatch.setenv(files.VARIABLE, str(found["own"]))
    monkeypatch.setattr(files, "_beside_checkout", lambda: found["shared"])
    monkeypatch.setattr(files, "_cache", lambda: found["cache"])
    monkeypatch.setattr(files, "_retrieve", _offline)
    return found


def _offline(url, path):
    path.write_bytes(b"half of a f")
    raise ConnectionError("no route to host")


def _table(first):
    """A table of the shape of ripley_synth_train whose first value tells which file it came from."""
    frame = pd.DataFrame({"xs": np.arange(250.0), "ys": 0.0, "target": 0})
    frame.loc[0, "xs"] = first
    return frame.to_csv(index=False).encode()


def _know(monkeypatch, content, name="ripley_synth_train"):
    monkeypatch.setitem(SETS, name, replace(SETS[name], sha256=hashlib.sha256(content).hexdigest()))


@pytest.fixture
def sklearn_file():
    """The raw text of wdbc, which scikit-learn ships: a real copy that needs no network."""
    spec = importlib.util.find_spec("sklearn")
    return Path(spec.submodule_search_locations[0]) / "datasets" / "data" / "breast_cancer.csv"


def test_every_set_is_either_fetchable_or_says_who_made_it():
    assert set(copies()) | set(origins()) == set(sets())
    assert not set(copies()) & set(origins())
    assert datasets.names() == sorted([*sets(), *MNIST])
    for copy in COPIES.values():
        assert re.fullmatch(r"https://raw\.githubusercontent\.com/[\w.-]+/[\w.-]+/[0-9a-f]{40}/\S+", copy.url)
    for name, copy in COPIES.items():
        assert len(copy.columns.split()) == SETS[name].features


def test_unknown_name_lists_the_real_ones(places):
    with pytest.raises(ValueError, match=r"no data set 'wdcb'; did you mean 'wdbc'\? .*bupa, .*wpbc"):
        datasets.load("wdcb")
    with pytest.raises(ValueError, match=r"no data set 'qqqqqq'\. The sets are australian"):
        datasets.load("qqqqqq")


def test_lookup_order(places, monkeypatch):
    # The cache holds what the checksum asks for; the others come before it when they are there.
    name, known = "ripley_synth_train", _table(3)
    _know(monkeypatch, known)
    (places["cache"] / f"{name}.csv").write_bytes(known)
    assert datasets.load(name, download=False)["xs"][0] == 3

    known = _table(2)
    _know(monkeypatch, known)
    (places["shared"] / f"{name}.csv.gz").write_bytes(gzip.compress(known))
    assert datasets.load(name, download=False)["xs"][0] == 2

    (places["own"] / f"{name}.csv").write_bytes(_table(1))  # the user's own: no checksum asked
    assert datasets.load(name, download=False)["xs"][0] == 1
    monkeypatch.delenv(files.VARIABLE)
    assert datasets.load(name, download=False)["xs"][0] == 2


def test_own_file_of_another_shape_is_refused(places):
    (places["own"] / "bupa.csv").write_bytes(_table(0))
    with pytest.raises(ValueError, match=r"bupa\.csv is not the set 'bupa': it has 250 rows and 3 columns"):
        datasets.load("bupa")


def test_own_directory_that_is_none(places, monkeypatch):
    monkeypatch.setenv(files.VARIABLE, str(places["own"] / "gone"))
    with pytest.raises(ValueError, match=r"BAYES_SPARSE_DATA names .*gone', which is not a directory"):
        datasets.load("bupa")


@pytest.mark.parametrize("where", ["shared", "cache"])
def test_tampered_file_is_refused(places, where):
    (places[where] / "ripley_synth_train.csv").write_bytes(_table(0))
    with pytest.raises(ValueError, match=r"does not have the checksum of 'ripley_synth_train'; delete it"):
        datasets.load("ripley_synth_train")


def test_only_an_empty_field_is_missing(places):
    frame = pd.DataFrame({"xs": ["NA", None] * 125, "ys": "None", "target": "nan"})
    (places["own"] / "ripley_synth_train.csv").write_text(frame.to_csv(index=False))
    loaded = datasets.load("ripley_synth_train")
    assert loaded["xs"][0] == "NA"
    assert loaded.isna().sum().tolist() == [125, 0, 0]


def test_wdbc_comes_with_scikit_learn(places):
    frame = datasets.load("wdbc", download=False)
    assert frame.shape == (569, 31)
    assert frame.target.value_counts().to_dict() == {"B": 357, "M": 212}
    assert list(places["cache"].iterdir()) == []


@pytest.mark.parametrize("text", ["569,30\n1,2,3\n", "nonsense"])
def test_another_installed_file_is_passed_over(tmp_path, monkeypatch, text):
    (tmp_path / "notsklearn").mkdir()
    (tmp_path / "notsklearn" / "__init__.py").touch()
    (tmp_path / "notsklearn" / "wdbc.csv").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    changed = replace(COPIES["wdbc"], installed="notsklearn/wdbc.csv")
    assert files._installed(changed, SETS["wdbc"].sha256) is None
    assert files._installed(replace(changed, installed="no_such_package/x"), SETS["wdbc"].sha256) is None


def test_fetched_once_converted_and_kept(places, monkeypatch, sklearn_file):
    calls = []

    def retrieve(url, path):
        calls.append(url)
        path.write_bytes(sklearn_file.read_bytes())

    monkeypatch.setattr(files, "_installed", lambda copy, sha256: None)
    monkeypatch.setattr(files, "_retrieve", retrieve)
    first, second = datasets.load("wdbc"), datasets.load("wdbc")
    pd.testing.assert_frame_equal(first, second)
    assert calls == [COPIES["wdbc"].url]
    kept = places["cache"] / "wdbc.csv"
    assert list(places["cache"].iterdir()) == [kept]
    assert hashlib.sha256(kept.read_bytes()).hexdigest() == SETS["wdbc"].sha256


@pytest.mark.parametrize(
    "tampered",
    [
        lambda raw: raw.replace(b"17.99", b"17.98", 1),
        lambda raw: b"<html>moved</html>",
        lambda raw: b"",
        lambda raw: b"\xff\xfe" + raw,
    ],
)
def test_tampered_download_is_refused(places, monkeypatch, sklearn_file, tampered):
    monkeypatch.setattr(files, "_installed", lambda copy, sha256: None)
    monkeypatch.setattr(files, "_retrieve", lambda url, path: path.write_bytes(tampered(sklearn_file.read_bytes())))
    with pytest.raises(ValueError, match=r"https://\S+ does not hold the set 'wdbc' as we know it"):
        datasets.load("wdbc")
    assert list(places["cache"].iterdir()) == []


def test_numbers_that_are_none_are_refused(places, monkeypatch):
    monkeypatch.setattr(files, "_retrieve", lambda url, path: path.write_text("<html>\n<p>gone\n</html>\n"))
    with pytest.raises(ValueError, match="does not hold the set 'boston_housing'"):
        datasets.load("boston_housing")


@pytest.mark.parametrize("name", ["bupa", "mnist_test"])
def test_offline_says_how_to_get_it(places, name):
    with pytest.raises(
        FileNotFoundError, match=rf"'{name}' is not on .* \(ConnectionError\): go online .*{files.VARIABLE}"
    ):
        datasets.load(name)
    with pytest.raises(FileNotFoundError, match=rf"'{name}' is not on .* download is False: .*{files.VARIABLE}"):
        datasets.load(name, download=False)
    assert [path for path in places["cache"].rglob("*") if path.is_file()] == []


@pytest.fixture
def no_pooch(places, monkeypatch):
    monkeypatch.setattr(files, "_cache", USERS_CACHE)
    monkeypatch.setitem(sys.modules, "pooch", None)  # its import fails
    return places


@pytest.mark.parametrize(("name", "file"), [("bupa", "bupa.csv"), ("mnist_test", "mnist/t10k-images-idx3-ubyte.gz")])
def test_without_pooch_the_cure_is_said(no_pooch, name, file):
    cure = re.escape(
        f"'{name}' is not on this machine, and to fetch it takes pooch, which is not installed: pip install "
        f'"bayes_sparse[data]", or put {file} into the directory named by BAYES_SPARSE_DATA.'
    )
    with pytest.raises(ImportError, match=cure):
        datasets.load(name)
    with pytest.raises(FileNotFoundError, match=r"download is False"):
        datasets.load(name, download=False)


def test_without_pooch_what_is_on_this_machine_loads(no_pooch):
    (no_pooch["own"] / "ripley_synth_train.csv").write_bytes(_table(1))
    assert datasets.load("ripley_synth_train")["xs"][0] == 1
    assert datasets.load("wdbc").shape == (569, 31)  # with scikit-learn


@pytest.mark.parametrize("name", sorted(origins()))
def test_no_public_copy_names_the_source(places, name):
    with pytest.raises(FileNotFoundError, match=rf"No public copy of '{name}' .*{files.VARIABLE}") as caught:
        datasets.load(name)
    assert origins()[name] in str(caught.value)
    assert f"{name}.csv" in str(caught.value)


@pytest.mark.parametrize("name", ["bupa", "mnist_train"])
def test_interrupted_download_leaves_nothing(places, monkeypatch, name):
    def interrupted(url, path):
        path.write_bytes(b"half of a f")
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "_retrieve", interrupted)
    with pytest.raises(KeyboardInterrupt):
        datasets.load(name)
    assert [path for path in places["cache"].rglob("*") if path.is_file()] == []


def test_retrieve_speaks_http_and_fails_as_an_oserror(tmp_path):
    (tmp_path / "there").write_bytes(b"1,2\n")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            """Keep the test's output clean."""

    handler = functools.partial(Quiet, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}"
        try:
            files._retrieve(f"{address}/there", tmp_path / "got")
            with pytest.raises(OSError, match="404"):
                files._retrieve(f"{address}/nowhere", tmp_path / "not")
        finally:
            server.shutdown()
            thread.join()
    assert (tmp_path / "got").read_bytes() == b"1,2\n"
    with pytest.raises(OSError, match="refused"):
        files._retrieve(f"{address}/there", tmp_path / "not")


def test_copy_reads_commas_blanks_heads_and_codes():
    copy = Copy("a/b", "0" * 40, "c", "x z", skip=1, target=1, drop=(0,), numbers={"x": float}, labels={"0": "no"})
    text = "% a remark\r\n@data\r\nid class x z \r\n7, 0, 1e0, ?\r\n\r\n8  1  .5   q\r\n"
    assert copy.to_csv(text) == "x,z,target\n1.0,,no\n0.5,q,1\n"
    assert replace(copy, first_row=1).to_csv(text) == "x,z,target\n0.5,q,1\n"


@pytest.mark.parametrize("name", sorted(COPIES))
@needs_shared
def test_copy_in_its_layout_becomes_our_csv(name):
    # Undo what to_csv does, from the description of the copy, and do it again.
    copy = COPIES[name]
    codes = {ours: theirs for theirs, ours in copy.labels.items()}
    lines = ["of the head"] * (copy.skip + copy.first_row)
    for line in (SHARED / f"{name}.csv").read_text().splitlines()[1:]:
        *row, label = (value or "?" for value in line.split(","))
        row = [*row, codes.get(label, label)]
        if copy.target != -1:
            row.insert(copy.target - len(copy.drop), row.pop())
        for position in copy.drop:
            row.insert(position, "1234")
        lines.append(",".join(row))
    content = copy.to_csv("\n".join(lines)).encode()
    assert hashlib.sha256(content).hexdigest() == SETS[name].sha256


def _published():
    """Rows, features and missing cells of each set, read from the table that comes with the shared data."""
    text = (SHARED / "README.md").read_text() if SHARED.is_dir() else ""
    row = re.compile(r"^\| (\w+)\.csv(?:\.gz)? \|[^|]*\| (\d+) \| (\d+) \([^|]*\| (\d+) \(", re.MULTILINE)
    wide = re.compile(r"^\| (\w+)\.csv\.gz \| (\d+) x (\d+), \d+ \|", re.MULTILINE)  # nothing is missing in these
    found = [*row.findall(text), *((*numbers, "0") for numbers in wide.findall(text))]
    return {name: tuple(map(int, numbers)) for name, *numbers in found}


@needs_shared
def test_the_table_of_the_shared_data_is_ours():
    assert set(_published()) == set(sets())


@pytest.mark.parametrize("name", sets())
@needs_shared
def test_every_set_loads(name, monkeypatch):
    monkeypatch.delenv(files.VARIABLE, raising=False)
    rows, features, missing = _published()[name]
    frame = datasets.load(name, download=False)
    assert frame.shape == (rows, features + 1) == (sets()[name].rows, sets()[name].features + 1)
    assert frame.columns[-1] == "target"
    assert frame.isna().sum().sum() == missing
    assert not frame.target.isna().any()


@pytest.mark.parametrize(("name", "rows"), [("mnist_train", 60_000), ("mnist_test", 10_000)])
@needs_shared
def test_mnist_loads(name, rows, monkeypatch):
    monkeypatch.delenv(files.VARIABLE, raising=False)
    frame = datasets.load(name, download=False)
    assert frame.shape == (rows, 785)
    assert set(frame.dtypes.astype(str)) == {"uint8"}
    assert sorted(frame.target.unique()) == list(range(10))
    images = frame.drop(columns="target").to_numpy().reshape(-1, 28, 28)
    assert not images[:, 0, :2].any()  # digits are centred: the corner is empty
    assert images[:, 10:18, 10:18].mean() > 60


def test_mnist_is_fetched_checked_and_kept(places, monkeypatch):
    images = np.arange(2 * 784, dtype=np.uint32).astype(np.uint8)
    served = {
        "images.gz": gzip.compress(bytes(16) + images.tobytes()),
        "labels.gz": gzip.compress(bytes(8) + bytes([7, 3])),
    }
    monkeypatch.setitem(MNIST, "mnist_test", {f: hashlib.sha256(c).hexdigest() for f, c in served.items()})
    monkeypatch.setattr(files, "_retrieve", lambda url, path: path.write_bytes(served[url.removeprefix(MNIST_URL)]))
    frame = datasets.load("mnist_test")
    np.testing.assert_array_equal(frame.drop(columns="target").to_numpy().ravel(), images)
    assert frame.target.tolist() == [7, 3]
    assert sorted(p.name for p in (places["cache"] / "mnist").iterdir()) == ["images.gz", "labels.gz"]
    pd.testing.assert_frame_equal(frame, datasets.load("mnist_test", download=False))
    (places["cache"] / "mnist" / "labels.gz").write_bytes(b"tampered")
    with pytest.raises(ValueError, match="does not have the checksum of 'mnist_test'"):
        datasets.load("mnist_test")
