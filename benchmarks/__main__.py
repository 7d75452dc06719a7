"""The command line: choose tasks, run them on one thread, end in one table."""

from __future__ import annotations

import argparse
import ast
import importlib.util
import inspect
import logging
import os
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

# Nothing above imports numpy, whose thread pools read these once. Ratios mean something only on equal terms.
for _name in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMBA", "VECLIB_MAXIMUM"):
    os.environ[f"{_name}_NUM_THREADS"] = "1"

HERE = Path(__file__).parent / "tasks"
TASKS = sorted(path.stem for path in HERE.glob("[a-z]*.py"))
PEERS = {"fastrvm": "fastrvm", "sklearn": "scikit-learn", "glmnet": "python-glmnet", "skglm": "skglm"}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Speed and accuracy beside other packages."
    )
    parser.add_argument("tasks", nargs="*", metavar="task", help=f"from {', '.join(TASKS)}; all of them by default")
    parser.add_argument("--list", action="store_true", help="say what there is, and stop")
    parser.add_argument("--seeds", type=int, help="data sets a case (each task has its own default)")
    parser.add_argument("--large", action="store_true", help="with the sizes that take minutes each")
    parser.add_argument("--cpu", action="store_true", help="processor time, not wall time: for a machine that is busy")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows here too")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table here too")
    chosen = parser.parse_args(arguments)
    unknown = [name for name in chosen.tasks if name not in TASKS]
    if unknown:
        parser.error(f"there is no task {unknown[0]!r}; there are {', '.join(TASKS)}")
    if chosen.seeds is not None and chosen.seeds < 1:
        parser.error(f"--seeds must be at least 1, got {chosen.seeds}")
    if chosen.list:
        show_list()
        return 0
    missing = [name for module, name in PEERS.items() if importlib.util.find_spec(module) is None]
    if missing:
        parser.error(f"{' and '.join(missing)} not installed: pip install -e '.[bench]', or make bench")
    run(chosen)
    return 0


def show_list() -> None:
    """Each task with the first line of its file; read, not imported, because importing takes seconds."""
    for name in TASKS:
        text = ast.get_docstring(ast.parse((HERE / f"{name}.py").read_text())) or ""
        Console().print(f"[bold]{name:14}[/] {text.splitlines()[0]}", highlight=False)


def run(chosen: argparse.Namespace) -> None:
    from benchmarks import clock, report

    if chosen.cpu:
        clock.use_processor_time()
    console = Console(width=None if sys.stdout.isatty() else 200)
    names = chosen.tasks or TASKS
    modules = {name: importlib.import_module(f"benchmarks.tasks.{name}") for name in names}
    logging.getLogger("bayes_sparse").setLevel(logging.WARNING)  # what a fit tells its user would drown the table
    rows: list[report.Row] = []
    shown = (
        SpinnerColumn(),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*shown, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("", total=len(names))
        for name in names:
            settings = {} if chosen.seeds is None else {"seeds": chosen.seeds}
            if chosen.large and "large" in inspect.signature(modules[name].run).parameters:
                settings["large"] = True

            def say(what: str, name: str = name) -> None:
                progress.update(bar, description=f"{name}: {what}")

            say("starting")
            rows += modules[name].run(say, **settings)
            progress.advance(bar)
    machine = f"{report.machine()}; {'processor' if chosen.cpu else 'wall'} time"
    console.print(report.table(rows, machine))
    if chosen.json:
        chosen.json.write_text(report.as_json(rows, machine))
    if chosen.markdown:
        chosen.markdown.write_text(report.as_markdown(rows, machine))


if __name__ == "__main__":
    sys.exit(main())
