"""One new file is enough: put into its folder it is an option, fits, and is tested by the laws.

Every file here delegates to a member of the folder, so that what it must give is known to the last digit.
"""

import importlib
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import xarray as xr

import bayes_sparse as bs

RNG = np.random.default_rng(3)
X = RNG.standard_normal((60, 5))
ETA = X[:, 0] - 0.7 * X[:, 1]
NORMAL = ETA + 0.4 * RNG.standard_normal(60)
CLASSES = (ETA + RNG.logistic(size=60) > 0).astype(int)
COUNTS = RNG.poisson(np.exp(0.5 * ETA))
QUIET = pytest.mark.filterwarnings("ignore::bayes_sparse.FitWarning")

METHOD = """
    from dataclasses import dataclass
    from typing import ClassVar

    from bayes_sparse.methods import {of}

    __all__ = ["Yours"]


    @dataclass(frozen=True)
    class Yours:
        {settings}
        priors: ClassVar[tuple[str, ...] | None] = {of}.priors
        family: ClassVar[str] = {of}.family
        {more}

        def __call__(self, *arguments):
            return {of}({limits})(*arguments)
"""
SEARCH = "max_iterations: int = 1000\n        tolerance: float = 1e-6\n        "
FILES = {
    "methods: evidence": METHOD.format(
        of="MacKay",
        limits="self.max_iterations, self.tolerance",
        settings=SEARCH
        + 'smoothness: str | float = "auto"\n        reestimate: bool = True\n        approximation: str = "auto"',
        more="needs_flat_hyper: ClassVar[bool] = False\n        own_hyper: ClassVar[None] = None\n        "
        'link: ClassVar[str] = "softmax"',
    ),
    "methods: one_step": METHOD.format(
        of="REVM",
        limits="",
        settings='smoothness: str | float = "auto"\n        expansion: str | None = None',
        more="prior: ClassVar[str | None] = None\n        ridge: ClassVar[float | None] = None",
    ),
    "methods: l1_path": METHOD.format(of="Reweighted", limits="", settings="", more=""),
    "inference.priors": """
        from bayes_sparse.inference.priors.gaussian import Gaussian

        __all__ = ["Yours"]


        class Yours:
            name = "yours"

            def __getattr__(self, name):
                return getattr(Gaussian(), name)
    """,
    "inference.approximations": """
        from bayes_sparse.inference.approximations.laplace import LaplaceApproximation

        __all__ = ["Yours"]


        class Yours:
            name = "yours"

            def __init__(self, problem, objective):
                self.inner = LaplaceApproximation(problem, objective)

            def with_objective(self, objective):
                return Yours(self.inner.problem, objective)

            def __getattr__(self, name):
                return getattr(self.inner, name)
    """,
    "inputs.likelihoods": """
        from dataclasses import dataclass
        from typing import ClassVar

        from bayes_sparse.inputs.likelihoods.poisson import poisson

        __all__ = ["yours"]


        @dataclass(frozen=True)
        class yours(poisson):
            name: ClassVar[str] = "yours"
    """,
    "inputs.basis": """
        from dataclasses import dataclass

        from bayes_sparse.inputs.basis.polynomial import polynomial

        __all__ = ["yours"]


        @dataclass(frozen=True)
        class yours(polynomial):
            degree: int = 3
    """,
    "models": """
        from dataclasses import dataclass

        from bayes_sparse.models.ard_gaussian import ARDGaussian

        __all__ = ["Yours"]


        @dataclass(frozen=True)
        class Yours(ARDGaussian):
            pass
    """,
    "report.sections": """
        from bayes_sparse.report.markup import paragraph
        from bayes_sparse.report.material import Section

        __all__ = ["SECTION"]

        SECTION = Section("Something of yours", 15, lambda material: paragraph("Words of yours."))
    """,
    "datasets.sources": """
        import hashlib

        from bayes_sparse.datasets.sources import Source

        __all__ = ["SETS"]

        SETS = {"yours": Source(2, 1, hashlib.sha256(b"a,target\\n1,0\\n2,1\\n").hexdigest())}
    """,
}


@pytest.fixture
def new_file(tmp_path, monkeypatch):
    """Put a file into the folder of a package, for as long as a test runs."""

    def put(what):
        package = "bayes_sparse." + what.partition(":")[0]
        (tmp_path / "yours.py").write_text(textwrap.dedent(FILES[what]))
        folder = importlib.import_module(package)
        monkeypatch.setattr(folder, "__path__", [*folder.__path__, str(tmp_path)])
        added.append((folder, f"{package}.yours"))
        return folder

    added = []
    yield put
    for folder, module in added:
        sys.modules.pop(module, None)
        folder.__dict__.pop("yours", None)


def same(tree, other):
    """The same numbers in every group."""
    assert list(tree.children) == list(other.children)
    for name in tree.children:
        xr.testing.assert_equal(tree[name].to_dataset(), other[name].to_dataset())


@QUIET
@pytest.mark.parametrize(
    ("family", "model", "original"),
    [
        ("evidence", "ard_gaussian", "mackay"),
        ("one_step", "ard_gaussian", "revm"),
        ("l1_path", "jeffreys_laplace", "reweighted"),
    ],
)
def test_a_method_of_each_family(new_file, family, model, original):
    methods = new_file(f"methods: {family}")
    theirs, ours = (bs.fit(model, (X, CLASSES), method=m, draws=20, random_seed=0) for m in (original, "yours"))
    same(theirs, ours)
    assert ours["evidence"].attrs["method"] == "yours"
    by_object = bs.fit(model, (X, CLASSES), method=methods.Yours(), draws=20, random_seed=0)
    same(by_object, ours)
    assert "yours" in repr(bs.methods)
    assert "yours" in repr(bs.models)
    with pytest.raises(ValueError, match=r"Did you mean 'yours'"):
        bs.fit(model, (X, CLASSES), method="yuors")


def test_a_method_without_what_its_family_needs_is_refused_in_a_sentence(new_file, monkeypatch):
    monkeypatch.setitem(
        FILES,
        "methods: bare",
        METHOD.format(of="MacKay", limits="", settings="", more="needs_flat_hyper: ClassVar[bool] = False"),
    )
    new_file("methods: bare")
    with pytest.raises(TypeError, match=r"'yours' says that its family is 'evidence', but it has no .*approximation"):
        bs.fit("ard_gaussian", (X, NORMAL), method="yours")


@QUIET
@pytest.mark.parametrize("y", [NORMAL, CLASSES], ids=["normal", "classes"])
def test_a_prior(new_file, y):
    new_file("inference.priors")
    theirs = bs.fit("ard_gaussian", (X, y), method="revm", draws=20, random_seed=0)
    ours = bs.fit("ard_gaussian", (X, y), method="revm", prior="yours", draws=20, random_seed=0)
    same(theirs, ours)
    assert ours["evidence"].attrs["prior"] == "yours"
    assert bs.diagnose(ours) == bs.diagnose(theirs)
    with pytest.raises(ValueError, match=r"There is no prior 'mine'; there are gaussian, laplace, yours"):
        bs.fit("ard_gaussian", (X, y), method="revm", prior="mine")


@pytest.mark.parametrize("method", ["sequential", "mackay", "em"])
def test_an_approximation(new_file, method):
    new_file("inference.approximations")
    asked = {"method": method, "draws": 20, "random_seed": 0}
    theirs = bs.fit("ard_gaussian", (X, CLASSES), **asked)
    ours = bs.fit("ard_gaussian", (X, CLASSES), approximation="yours", **asked)
    same(theirs, ours)
    assert ours["evidence"].attrs["approximation"] == "yours"


def test_a_likelihood(new_file, tmp_path):
    likelihoods = new_file("inputs.likelihoods")
    theirs, ours = (
        bs.fit("ard_gaussian", (X, COUNTS), likelihood=name, draws=20, random_seed=0) for name in ("poisson", "yours")
    )
    same(theirs, ours)
    assert likelihoods.yours() == likelihoods.resolve("yours")
    xr.testing.assert_equal(bs.predict(theirs, X), bs.predict(ours, X))
    page = bs.report(ours, tmp_path / "report.html", data=(X, COUNTS), progressbar=False).read_text()
    assert "yours" in page
    assert "could not be made" not in page


def test_a_basis(new_file, tmp_path):
    basis = new_file("inputs.basis")
    theirs, ours = (
        bs.fit("ard_gaussian", (X, NORMAL), basis=b, draws=20, random_seed=0)
        for b in (bs.basis.polynomial(degree=3), "yours")
    )
    assert np.array_equal(theirs["evidence"]["mean"], ours["evidence"]["mean"])
    ours.to_netcdf(tmp_path / "tree.nc", engine="h5netcdf")
    with xr.open_datatree(tmp_path / "tree.nc", engine="h5netcdf") as opened:
        xr.testing.assert_equal(bs.predict(opened, X), bs.predict(theirs, X))
    assert basis.yours(degree=2).degree == 2


def test_a_model(new_file):
    new_file("models")
    for asked in ({"method": "mackay"}, {"method": "nuts", "sampler": "pymc", "tune": 5, "chains": 2}):
        theirs, ours = (
            bs.fit(model, (X, NORMAL), draws=5, random_seed=0, progressbar=False, **asked)
            for model in ("ard_gaussian", "yours")
        )
        same(theirs, ours)
    assert "yours" in repr(bs.models)


def test_a_section_of_the_report(new_file, tmp_path):
    new_file("report.sections")
    tree = bs.fit("ard_gaussian", (X, NORMAL), draws=20, random_seed=0)
    page = bs.report(tree, tmp_path / "report.html", progressbar=False).read_text()
    assert "Words of yours." in page
    assert page.index('id="data"') < page.index('id="yours"') < page.index('id="relevance"')


def test_a_data_set(new_file, tmp_path, monkeypatch):
    new_file("datasets.sources")
    (tmp_path / "yours.csv").write_text("a,target\n1,0\n2,1\n")
    monkeypatch.setenv("BAYES_SPARSE_DATA", str(tmp_path))
    assert "yours" in bs.datasets.names()
    assert bs.datasets.load("yours")["a"].tolist() == [1, 2]


LAWS = """
import sys, importlib, pytest
for package, folder in (("bayes_sparse.methods", sys.argv[1]), ("bayes_sparse.inference.priors", sys.argv[2])):
    importlib.import_module(package).__path__.append(folder)
laws = "yours and normal and (falls or rows or quadratic)"
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-k", laws, *sys.argv[3:]]))
"""


@pytest.mark.slow
def test_the_laws_run_over_new_files(tmp_path, pytestconfig):
    """In a process of their own, for they ask the folders when they are collected."""
    for what in ("methods: evidence", "inference.priors"):
        folder = tmp_path / what.partition(":")[0]
        folder.mkdir()
        (folder / "yours.py").write_text(textwrap.dedent(FILES[what]))
    laws = ["tests/laws/test_methods.py", "tests/laws/test_one_step.py"]
    done = subprocess.run(
        [sys.executable, "-c", LAWS, str(tmp_path / "methods"), str(tmp_path / "inference.priors"), *laws],
        cwd=pytestconfig.rootpath,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout
