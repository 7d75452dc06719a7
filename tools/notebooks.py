"""Run notebooks from top to bottom and store what they show, without the times at which they did."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"


def main(names: list[str]) -> None:
    """Refresh the notebooks named, or all of them."""
    there = {path.stem: path for path in sorted(FOLDER.glob("*.ipynb"))}
    unknown = [name for name in names if name not in there]
    if unknown:
        sys.exit(f"There is no notebook {', '.join(unknown)}; there are {', '.join(there)}.")
    for name in names or there:
        started = time.perf_counter()
        refresh(there[name])
        sys.stdout.write(f"{name}: {time.perf_counter() - started:.0f} s\n")
        sys.stdout.flush()


def refresh(path: Path) -> None:
    """Run a notebook in its own folder and write it back; one that fails is left as it was."""
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    # Without times and versions there is no difference between two runs that show the same.
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    resources = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, timeout=1200, kernel_name="python3", record_timing=False, resources=resources).execute()
    notebook.metadata.language_info.pop("version")
    nbformat.write(notebook, path)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main(sys.argv[1:])
