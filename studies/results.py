"""Results of a study on disk: what is finished is read, never computed again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bayes_sparse.common.files import write_whole

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


def _read(path: Path) -> Record | None:
    if not path.is_file():
        return None
    try:
        found: Record = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError:
        return None  # not a file of ours, or damaged: it is replaced
    return found
