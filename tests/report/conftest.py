"""Small trees of every kind, and a page read back element by element."""

import json
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import bayes_sparse as bs
from bayes_sparse.report import report

_VOID = {"meta", "img", "br", "link", "input", "hr"}
SCRIPT = "<script>window.flag=1</script>"
IMAGE = '"><img src=x onerror=window.flag=1>'
NASTY = [SCRIPT, IMAGE, "$x_1$", r"$\frac{$", "a & b's", "中文 " + "very_long_name_" * 8, "__dunder__", "back\\$slash"]


class Page(HTMLParser):
    """A page taken apart: elements with their attributes, texts, and whatever was not closed in order."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.texts, self.wrong, self._open = [], [], [], []
        self.raw = text
        self.feed(text)
        self.close()
        self.wrong += [f"never closed: {name}" for name in self._open]

    def handle_starttag(self, name, attributes):
        self.elements.append((name, dict(attributes)))
        if name not in _VOID:
            self._open.append(name)

    def handle_endtag(self, name):
        if not self._open or self._open.pop() != name:
            self.wrong.append(f"closed out of order: {name} at {self.getpos()}")

    def handle_data(self, data):
        if self._open and self._open[-1] not in ("style", "title"):
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())

    def all(self, name):
        return [attributes for found, attributes in self.elements if found == name]

    def section(self, anchor):
        """The source of one section."""
        start = self.raw.index(f'id="{anchor}"')
        end = self.raw.find("<section", start + 1)
        return self.raw[start : end if end > 0 else None]


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """Writes a report and reads it back."""

    def write(trees, **settings):
        place = tmp_path_factory.mktemp("page") / "report.html"
        return Page(report(trees, place, **settings).read_text(encoding="utf-8"))

    return write


def as_sampled(tree, *, random_seed=0):
    """A tree in the layout of a full NUTS tree, its draws those of an evidence fit with all terms put back."""
    rng = np.random.default_rng(random_seed)
    posterior = bs.unpruned(tree)["posterior"].to_dataset()
    shape = (posterior.sizes["chain"], posterior.sizes["draw"])
    for name in json.loads(tree.attrs["bayes_sparse"])["vectors"]:
        values = posterior[name]
        posterior[name] = values.where(values != 0, 0.1 * rng.standard_normal(values.shape))
    posterior.attrs = {"method": "nuts", "condition": "", "sampler": "pymc", "seconds": 3.5, "hyper": [0.5, 0.005]}
    posterior.attrs["versions"] = tree["evidence"].attrs["versions"]
    stats = xr.Dataset(
        {
            "diverging": (("chain", "draw"), rng.uniform(size=shape) < 0.02),
            "energy": (("chain", "draw"), rng.standard_normal(shape).cumsum(axis=1)),
            "lp": (("chain", "draw"), rng.standard_normal(shape)),
            "tree_depth": (("chain", "draw"), np.full(shape, 4)),
        },
        coords={name: posterior[name] for name in ("chain", "draw")},
    )
    groups = {name: tree[name].to_dataset() for name in ("log_likelihood", "observed_data", "constant_data")}
    sampled = xr.DataTree.from_dict({"posterior": posterior, "sample_stats": stats, **groups})
    sampled.attrs = dict(tree.attrs)
    return sampled


@pytest.fixture(scope="session")
def sampled_like():
    """Makes a sampled tree out of an evidence tree."""
    return as_sampled


@pytest.fixture(scope="session")
def linear_data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6))
    return X, 2.0 * X[:, 0] - X[:, 3] + rng.normal(size=120)


@pytest.fixture(scope="session")
def linear(linear_data):
    return bs.fit("ard_gaussian", linear_data, draws=200, chains=2, random_seed=0)


@pytest.fixture(scope="session")
def logistic_data():
    truth = bs.datasets.sparse_logistic(n=200, p=6, k=2, random_seed=0)
    names = [f"x{j}" for j in range(6)]
    return pd.DataFrame(truth.X, columns=names).assign(label=np.where(truth.y == 1, "yes", "no"))


@pytest.fixture(scope="session")
def logistic(logistic_data):
    return bs.fit("ard_gaussian", logistic_data.iloc[:150], target="label", draws=200, chains=2, random_seed=0)


@pytest.fixture(scope="session")
def counts_data():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 4))
    return X, rng.poisson(np.exp(0.5 + 0.7 * X[:, 0]))


@pytest.fixture(scope="session")
def counts(counts_data):
    return bs.fit("ard_gaussian", counts_data, likelihood="poisson", draws=200, chains=2, random_seed=0)


@pytest.fixture(scope="session")
def kernel():
    data = bs.datasets.sinc(n=60, noise=0.2, random_seed=1)
    return bs.fit("ard_gaussian", (data.X, data.y), basis=bs.basis.rbf(2.0), draws=300, chains=2, random_seed=0)


@pytest.fixture(scope="session")
def nasty():
    """Two classes whose columns, target and labels try to be code."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(150, len(NASTY))), columns=NASTY)
    eta = frame.to_numpy() @ np.linspace(2, 1, len(NASTY))
    frame["<b>target"] = np.where(rng.uniform(size=150) < 1 / (1 + np.exp(-eta)), "<i>M</i>", "B & C")
    return bs.fit("ard_gaussian", frame, target="<b>target", draws=200, chains=2, random_seed=0, smoothness=0)
