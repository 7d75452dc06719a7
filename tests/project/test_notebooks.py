"""Every notebook runs from top to bottom, and ends in a report: with fewer draws, and as it stands if there is time."""

import importlib.util
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from bayes_sparse import datasets

FOLDER = Path(__file__).parents[2] / "notebooks"
# What is long and may be short where only the running is tested, beside draws; a notebook not named runs with its own.
SHORTER = {
    "digits_by_softmax": {
        "pixels, digit.to_numpy(), train_size=1000": "pixels[::4], digit[::4].to_numpy(), train_size=250",
        "for seed in range(5)": "for seed in range(1)",
    },
    "formula_and_hierarchy": {"draws=1000, chains=4": "draws=300, chains=4"},
    "evidence_against_nuts": {'"draws": 1000, "chains": 4': '"draws": 300, "chains": 4'},
    "own_model_to_report": {
        "draws=1000, chains=4, random_seed": "draws=300, chains=4, random_seed",
        "draws=1000, chains=4, target_accept=0.975": "draws=300, chains=2, target_accept=0.9",
    },
    "lambda_without_a_knob": {
        "(0.01, 1300), (0.3, 30), (4, 40)": "(0.01, 1300), (4, 40)",
        '"chains": 4}': '"chains": 4, "tune": 300}',
    },
}
every_notebook = pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)


def _code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def _need_data(notebook):
    """Skip a notebook whose data are neither on this machine nor to be had from the network."""
    for name in {name for cell in _code(notebook) for name in re.findall(r'datasets\.load\("(\w+)"\)', cell.source)}:
        try:
            datasets.load(name)
        except FileNotFoundError as error:
            pytest.skip(str(error))


def _shortened(notebook, stem):
    """The same program with fewer draws and less data; with still fewer there is no bridge to the evidence."""
    whole = "\n".join(cell.source for cell in _code(notebook))
    changes = {text: text.replace("500", "200") for text in re.findall(r'\bdraws(?:=|": )500\b', whole)}
    changes |= SHORTER.get(stem, {})
    assert all(text in whole for text in changes)  # or it would not be shorter any more
    for cell in _code(notebook):
        for text, instead in changes.items():
            cell.source = cell.source.replace(text, instead)


def _check_run(notebook, folder):
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    assert any("image/png" in o.get("data", {}) for cell in _code(notebook) for o in cell.outputs)
    last = _code(notebook)[-1].outputs
    assert any("Settings and versions" in o.get("text", "") for o in last)  # the report has all of its sections
    assert not list(folder.iterdir())  # and nothing is left behind


of_the_kernel = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")


@pytest.mark.example
@every_notebook
@of_the_kernel
def test_notebook_runs(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    _need_data(notebook)
    _shortened(notebook, path.stem)
    _check_run(notebook, tmp_path)


@pytest.mark.slow
@every_notebook
@of_the_kernel
def test_notebook_runs_as_it_stands(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    _need_data(notebook)
    _check_run(notebook, tmp_path)


@every_notebook
def test_notebook_is_saved_as_it_ran(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert path.stat().st_size < 600_000
    assert [cell.execution_count for cell in _code(notebook)] == list(range(1, len(_code(notebook)) + 1))
    outputs = [o for cell in _code(notebook) for o in cell.outputs]
    assert not [o for o in outputs if o.output_type == "error" or o.get("name") == "stderr"]
    printed = " ".join(o.get("text", "") + o.get("data", {}).get("text/plain", "") for o in outputs)
    assert not re.search(r"/(home|root|tmp|usr|work|Users)/|site-packages", printed)


@every_notebook
def test_notebook_sets_the_evidence_against_nuts(path):
    source = "\n".join(cell.source for cell in _code(nbformat.read(path, as_version=4)))
    for tool in ("bs.diagnose(", "bs.compare(", "bs.plot_compare(", "bs.log_evidence(", "bs.report("):
        assert tool in source, tool


# `make notebooks`


@pytest.fixture
def tool(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("notebooks", FOLDER.parent / "tools" / "notebooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    return module


def _written(path, source):
    cell = nbformat.v4.new_code_cell(source, id="only", metadata={"execution": {"iopub.status.busy": "2026-01-01"}})
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)
    return path


@of_the_kernel
def test_a_refreshed_notebook_shows_its_run_and_no_more(tool, tmp_path, capsys):
    path = _written(tmp_path / "sum.ipynb", "1 + 2")
    other = _written(tmp_path / "other.ipynb", "1 + 3").read_bytes()
    tool.main(["sum"])
    first = path.read_bytes()
    (cell,) = nbformat.read(path, as_version=4).cells
    assert cell.outputs[0]["data"]["text/plain"] == "3"
    assert cell.execution_count == 1
    assert cell.metadata == {}
    tool.main(["sum"])
    assert path.read_bytes() == first  # so a later run that shows the same is no change
    assert (tmp_path / "other.ipynb").read_bytes() == other
    assert "sum: " in capsys.readouterr().out


@of_the_kernel
def test_a_notebook_that_fails_is_left_as_it_was(tool, tmp_path):
    path = _written(tmp_path / "wrong.ipynb", "1 / 0")
    before = path.read_bytes()
    with pytest.raises(CellExecutionError, match="division by zero"):
        tool.main([])
    assert path.read_bytes() == before


def test_a_notebook_that_is_not_there_is_named(tool, tmp_path):
    _written(tmp_path / "sum.ipynb", "1 + 2")
    with pytest.raises(SystemExit, match="no notebook summ; there are sum"):
        tool.main(["summ"])
