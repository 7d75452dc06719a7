"""One row a measurement, one table at the end."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version

import numpy as np
from rich.table import Table

HEADINGS = ("task", "case", "ours", "peer", "difference", "ratio", "floor", "quality", "must reach", "met")


@dataclass(frozen=True)
class Row:
    """What one case of one task came to.

    Attributes
    ----------
    task, case : str
        What was measured.
    target : str
        What must be reached; empty for a row that only informs.
    met : bool, optional
        Whether it was; None without a target.
    seconds, peer_seconds : float
        Best of several repetitions; medians over data sets where there are several.
    peer : str
        Name of the other package.
    floor, floor_seconds
        The least work any program must do here (build the kernel, multiply the matrix once), and its time.
    quality : mapping
        What was reached in that time: evidence, terms kept, error, coverage ...
    """

    task: str
    case: str
    target: str = ""
    met: bool | None = None
    seconds: float = math.nan
    peer: str = ""
    peer_seconds: float = math.nan
    floor: str = ""
    floor_seconds: float = math.nan
    quality: Mapping[str, float | str] = field(default_factory=dict)

    def cells(self) -> tuple[str, ...]:
        return (
            self.task,
            self.case,
            _time(self.seconds),
            f"{self.peer} {_time(self.peer_seconds)}".strip(),
            _time(self.seconds - self.peer_seconds, sign="+"),
            _number(self.seconds / self.peer_seconds),
            f"{_number(self.seconds / self.floor_seconds)} x {self.floor}" if self.floor else "",
            ", ".join(f"{name} {_number(value)}" for name, value in self.quality.items()),
            self.target,
            {True: "yes", False: "NO", None: ""}[self.met],
        )


def table(rows: list[Row], machine: str) -> Table:
    out = Table(*HEADINGS, title="bayes_sparse beside its peers", caption=machine, show_lines=True)
    for row in rows:
        style = {True: "green", False: "bold red", None: ""}[row.met]
        *cells, met = row.cells()
        out.add_row(*cells, f"[{style}]{met}[/]" if style else met)
    return out


def as_json(rows: list[Row], machine: str) -> str:
    return json.dumps({"machine": machine, "rows": [_finite(asdict(row)) for row in rows]}, indent=1) + "\n"


def as_markdown(rows: list[Row], machine: str) -> str:
    lines = [f"| {' | '.join(HEADINGS)} |", "|" + " --- |" * len(HEADINGS)]
    lines += [f"| {' | '.join(cell.replace('|', '/') for cell in row.cells())} |" for row in rows]
    return f"{machine}\n\n" + "\n".join(lines) + "\n"


def machine() -> str:
    """Where this ran, in one line: what bears on the times and nothing else."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), one thread used; Python {platform.python_version()}; numpy "
        f"{version('numpy')}; {blas['name']} {blas['version']}; fastrvm {version('fastrvm')}, scikit-learn "
        f"{version('scikit-learn')}, python-glmnet {version('python-glmnet')}, skglm {version('skglm')}"
    )


def _time(seconds: float, sign: str = "") -> str:
    if math.isnan(seconds):
        return ""
    return f"{seconds:{sign}.2f} s" if abs(seconds) >= 0.95 else f"{1000 * seconds:{sign}.1f} ms"


def _number(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return "" if math.isnan(value) else f"{value:.3g}" if abs(value) < 100 else f"{value:.1f}"


def _finite(row: dict[str, object]) -> dict[str, object]:
    """JSON has no NaN: what was not measured is null."""
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}
