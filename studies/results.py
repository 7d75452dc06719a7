"""Results of a study on disk: what is finished is read, never computed again."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["Record", "once", "write_whole"]

type Record = dict[str, Any]  # what JSON can hold: numbers, words, lists and records of them


def once(path: Path, plan: Record, compute: Callable[[], Record]) -> Record:
    """The stored result of the same plan, or a new one, which is stored.

    Parameters
    ----------
    path : Path
        A JSON file.
    plan : dict
        All that the result depends on. A file with another plan is replaced.
    compute : callable
        Makes the result.

    Returns
    -------
    dict
        As it is read from the file, also the first time.
    """
    found = _read(path)
    # A plan that was stored has lists in place of tuples: compare it as it would be stored.
    if found is None or found.get("plan") != json.loads(json.dumps(plan)):
        text = json.dumps({"plan": plan, "result": compute()})
        write_whole(path, text)
        found = json.loads(text)
    result: Record = found["result"]
    return result


def write_whole(path: Path, text: str) -> None:
    """Write a text file in one piece, so that an interrupted run leaves none that is cut short."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(partial, path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise


def _read(path: Path) -> Record | None:
    if not path.is_file():
        return None
    try:
        found: Record = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError:
        return None  # not a file of ours, or damaged: it is replaced
    return found
