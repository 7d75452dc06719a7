"""Every notebook runs from top to bottom as it stands, and ends in a report."""

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from bayes_sparse import datasets

FOLDER = Path(__file__).parents[2] / "notebooks"
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


@every_notebook
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")  # of the kernel's own machinery
def test_notebook_runs(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    _need_data(notebook)
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    assert any("image/png" in o.get("data", {}) for cell in _code(notebook) for o in cell.outputs)
    last = _code(notebook)[-1].outputs
    assert any("Settings and versions" in o.get("text", "") for o in last)  # the report has all of its sections
    assert not list(tmp_path.iterdir())  # and nothing is left behind


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
