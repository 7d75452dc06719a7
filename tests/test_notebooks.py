"""Every notebook runs from top to bottom; NUTS is shortened, since only its numbers would be better for longer."""

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "notebooks"
SHORTER = (
    (r"draws=\d+", "draws=60"),
    (r"chains=\d+", "chains=2"),
    (r'"target_accept"', '"tune": 150, "target_accept"'),
)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")  # of the kernel's own machinery
def test_notebook_runs(path):
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code" and 'method="nuts"' in cell.source:
            for long, short in SHORTER:
                cell.source = re.sub(long, short, cell.source)
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    printed = [o for cell in notebook.cells if cell.cell_type == "code" for o in cell.outputs]
    assert any("image/png" in o.get("data", {}) for o in printed)
