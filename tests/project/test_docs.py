"""The programs in the pages about methods run as they stand, and their links lead somewhere."""

import importlib
import inspect
import re
import sys
from importlib.util import find_spec
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

import bayes_sparse as bs
from bayes_sparse.common import registry

mpl.use("Agg")

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [
    *sorted((DOCS / "methods").glob("*.md")),
    DOCS / "trust.md",
    DOCS / "loo.md",
    DOCS / "evidence_in_pymc.md",
    DOCS / "bambi.md",
    DOCS / "sklearn.md",
    DOCS / "data.md",
    DOCS / "own_models.md",
    DOCS / "start.md",
    DOCS / "which_model.md",
    DOCS / "how_to.md",
]
PROMISES = ("revm", "own_models", "trust")  # pages with tests of their own


def blocks_of(text):
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def on_this_machine(block):
    """Whether the data sets a program loads are here, a test fetches nothing, and what it needs is installed."""
    if "formula=" in block and not find_spec("formulaic"):
        return False
    for name in re.findall(r'datasets\.load\("(\w+)"', block):
        try:
            bs.datasets.load(name, download=False)
        except FileNotFoundError:
            return False
    return True


def run(page):
    """All programs of a page, one after the other, as a reader would paste them into one session."""
    names = {}
    for number, block in enumerate(blocks_of(page.read_text(encoding="utf-8")), start=1):
        if on_this_machine(block):
            exec(compile(block, f"{page.name}, program {number}", "exec"), names)
    return names


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem not in PROMISES], ids=lambda page: page.stem)
def test_programs_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # one of them writes a report
    run(page)


@pytest.mark.slow
def test_the_page_about_directions_promises_what_its_programs_give(capsys):
    """What stands beside its code and in its text, with room for another machine's rounding."""
    page = DOCS / "methods" / "revm.md"
    names = run(page)
    kept = names["lrevm"]["evidence"].attrs["directions_kept"]
    assert f"the {kept} directions kept" in page.read_text(encoding="utf-8")
    test, net = names["test"], names["net"]
    new = (test.X - names["middle"]) / names["scale"]
    wrong = bs.predict(names["tree"], {"X": new}, model=net)["label"].to_numpy() != test.y
    assert wrong.mean() < 0.11
    attributes = names["tree"]["evidence"].attrs
    assert attributes["directions_kept"] <= 12
    assert attributes["directions"] + attributes["directions_dropped"] <= 24
    assert abs(names["chosen"]["evidence"].attrs["width"] - 0.3) < 0.03
    assert "gamma" in capsys.readouterr().out
    assert np.all(names["lrevm"]["evidence"]["mean"] != 0)  # directions are selected, weights are not


def test_the_page_about_own_models_shows_what_its_programs_give(capsys):
    page = DOCS / "own_models.md"
    names = run(page)
    explained = repr(bs.explain(names["model"], sparse="slope"))
    assert explained in capsys.readouterr().out
    assert f"```text\n{explained}\n```" in page.read_text(encoding="utf-8")
    assert set(bs.relevance(names["tree"]).query("relevant").index) == {"x3", "x11", "x20"}
    assert set(names["start"]) == {"slope", "spread", "z", "level", "sigma"}


@pytest.mark.slow
def test_the_page_about_trust_shows_what_its_programs_print(tmp_path, monkeypatch):
    """But for the digits, which another machine may round otherwise, and what follows from their lengths."""
    monkeypatch.chdir(tmp_path)  # one of them writes a report
    page = DOCS / "trust.md"
    tree = run(page)["tree"]

    def words(text):
        return " ".join(re.sub(r"[-+]?\d+\.?\d*", "#", text).split())

    shown = re.findall(r"^```text\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert [words(text) for text in shown] == [words(str(bs.summary(tree))), words(str(bs.diagnose(tree)))]


@pytest.fixture
def new_files(tmp_path, monkeypatch):
    """Put the files that a page shows, named in their first line, into their folders for as long as a test runs."""
    added = []

    def put(path, text):
        folder, name = path.removesuffix(".py").rsplit("/", 1)
        package = importlib.import_module({"models": "bayes_sparse.models"}.get(folder, folder.replace("/", ".")))
        place = tmp_path / package.__name__
        place.mkdir()
        (place / f"{name}.py").write_text(text, encoding="utf-8")
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(place)])
        added.append((package, name))

    yield put
    for package, name in added:
        sys.modules.pop(f"{package.__name__}.{name}", None)
        package.__dict__.pop(name, None)


def test_every_file_of_the_page_about_extending_works_once_it_is_in_its_folder(
    new_files, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BAYES_SPARSE_DATA", "")  # the page sets it, and it is put back at the end
    names, files = {}, 0
    for block in blocks_of((DOCS / "extend.md").read_text(encoding="utf-8")):
        path = re.match(r"# (\S+\.py)\n", block)
        if path:
            new_files(path[1], block)
            files += 1
        else:
            exec(compile(block, "extend.md", "exec"), names)
    assert files == 8
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "['sin(1 x0)', 'cos(3 x0)']"
    assert [line.split()[0] for line in printed[3:5]] == ["x2", "x5"]
    mackay, halfway = (line.split() for line in printed[5:7])
    assert mackay[1:3] == halfway[1:3] == ["converged", "-105.7"]
    assert int(halfway[3]) > 1.5 * int(mackay[3])
    kl, three = (float(line.split()[1]) for line in printed[7:9])
    assert abs(kl - three) < 0.01
    spread, evidence = map(float, printed[9].split())
    plain = bs.fit("ard_gaussian", (names["truth"].X, names["truth"].y), method="revm", draws=0)
    assert spread == 0
    ridge = float(plain["evidence"]["ridge_log_evidence"])  # where revm starts, and not searched for to the last digit
    assert abs(evidence - ridge) < 0.01
    assert printed[10].endswith("True")
    assert printed[11:] == ["True", "[1.1, 1.9, 3.2]"]


def test_the_page_of_the_api_has_every_public_name():
    listed = set(re.findall(r"^   ([A-Za-z_.0-9]+)$", (DOCS / "api.md").read_text(encoding="utf-8"), flags=re.M))
    public = {name for name in bs.__all__ if not inspect.ismodule(getattr(bs, name))}
    for name in ("methods", "models", "basis", "likelihoods"):
        package = getattr(bs, name).__name__
        public |= {f"{name}.{registry.lookup(package, file, name).__name__}" for file in registry.options(package)}
    public |= {f"{name}.{each}" for name in ("estimators", "data", "datasets") for each in getattr(bs, name).__all__}
    assert listed == public | {"models.Declared"}


def test_the_front_page_begins_as_the_readme_does():
    readme = blocks_of((DOCS.parent / "README.md").read_text(encoding="utf-8"))
    assert blocks_of((DOCS / "index.md").read_text(encoding="utf-8")) == readme[:1]


def test_the_gallery_shows_every_notebook():
    text = (DOCS / "gallery.md").read_text(encoding="utf-8")
    for path in (DOCS.parent / "notebooks").glob("*.ipynb"):
        assert f"(../notebooks/{path.name})" in text, path.name


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.stem)
def test_pictures_and_links_exist(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_file_and_folder_that_the_page_about_the_layout_names_is_there():
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    package = DOCS.parent / "bayes_sparse"
    rooms = {path.name for path in package.iterdir() if path.is_dir()}
    named = [name for name in re.findall(r"`([a-z0-9_/.]+)`", text) if name.split("/")[0] in rooms and "/" in name]
    assert len(named) > 60
    lost = [name for name in named if not any((package / form).exists() for form in (name, f"{name}.py"))]
    assert lost == []
    table = text[text.index("| room |") : text.index("Beside the package")]
    assert {name.rstrip("/") for name in re.findall(r"^\| `([a-z_]+/)` \|", table, flags=re.M)} == rooms - {
        "__pycache__"
    }
