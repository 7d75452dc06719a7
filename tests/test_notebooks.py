"""Every notebook runs from top to bottom; NUTS is shortened, since only its numbers would be better for longer."""

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from bayes_sparse import datasets

FOLDER = Path(__file__).parents[1] / "notebooks"
SHORTER = (
    (r"draws=\d+", "draws=60"),
    (r"chains=\d+", "chains=2"),
    (r'"tune": \d+, ', ""),
    (r'"target_accept"', '"tune": 150, "target_accept"'),
)
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
def test_notebook_runs(path):
    notebook = nbformat.read(path, as_version=4)
    _need_data(notebook)
    for cell in _code(notebook):
        if 'method="nuts"' in cell.source:
            for long, short in SHORTER:
                cell.source = re.sub(long, short, cell.source)
            assert '"tune": 150' in cell.source  # a notebook that is not shortened takes minutes
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    assert any("image/png" in o.get("data", {}) for cell in _code(notebook) for o in cell.outputs)


@every_notebook
def test_notebook_is_saved_as_it_ran(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert [cell.execution_count for cell in _code(notebook)] == list(range(1, len(_code(notebook)) + 1))
    outputs = [o for cell in _code(notebook) for o in cell.outputs]
    assert not [o for o in outputs if o.output_type == "error" or o.get("name") == "stderr"]
    printed = " ".join(o.get("text", "") + o.get("data", {}).get("text/plain", "") for o in outputs)
    assert not re.search(r"/(home|root|tmp|usr|work|Users)/|site-packages", printed)
