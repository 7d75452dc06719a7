"""``python -m studies NAME``: run a study, or go on with a stopped one."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame

    from studies.cells import Crew

_NEEDED = {
    "bambi": "bambi",
    "contourpy": "contourpy",
    "distributed": "distributed",
    "joblib": "joblib",
    "pooch": "pooch",
    "sklearn": "scikit-learn",
    "threadpoolctl": "threadpoolctl",
}
_PROBLEMS = ((8, 9), (3, 6, 8, 9))  # the paper's
_EACH = 500  # digits of a class
_STUDIES = ("blogreg", "digits", "calibration", "honesty", "kropotov2007", "own_models", "rvm2018", "wide")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what the command line asks for."""
    parser = _parser()
    given = parser.parse_args(arguments)
    missing = [name for module, name in _NEEDED.items() if importlib.util.find_spec(module) is None]
    if missing:
        parser.error(f"{' and '.join(missing)} not installed: pip install -e '.[studies]'")
    output = given.output or Path(f"{given.study}_study")
    run = {
        "blogreg": _blogreg,
        "calibration": _calibration,
        "honesty": _honesty,
        "digits": _digits,
        "kropotov2007": _kropotov2007,
        "own_models": _own_models,
        "rvm2018": _rvm2018,
        "wide": _wide,
    }
    run[given.study](given, output)


# The imports below are late: they need what is missing above, and seconds that an answer to --help does not have.


def _calibration(given: argparse.Namespace, output: Path) -> None:
    from studies.calibration import CASES, calibrate
    from studies.counting import counting
    from studies.coverage import write_calibration

    number, where = given.data_sets or 200, output / "data_sets"
    by_way = counting(number, where, workers=given.workers)
    found = {name: calibrate(case, number, where, workers=given.workers) for name, case in CASES.items()}
    sys.stdout.write(f"{write_calibration(found, by_way, output)}{output / 'calibration.png'}\n")


def _honesty(given: argparse.Namespace, output: Path) -> None:
    from studies.honesty import honesty, write_honesty

    found = honesty(given.data_sets or 100, output / "data_sets", workers=given.workers)
    sys.stdout.write(write_honesty(found, output))


def _digits(given: argparse.Namespace, output: Path) -> None:
    from studies.digits import run
    from studies.pictures import draw
    from studies.plan import Plan
    from studies.summary import write_summary

    for classes in [tuple(given.classes)] if given.classes else _PROBLEMS:
        digits = _EACH * len(classes) if given.digits is None else given.digits
        plan = Plan(classes=classes, digits=digits, skip=given.skip, folds=given.folds, pixels=not given.without_pixels)
        results = run(plan, output, workers=given.workers)
        sys.stdout.write(write_summary(plan, results, output))
        for path in draw(plan, results, output):
            sys.stdout.write(f"{path}\n")


def _kropotov2007(given: argparse.Namespace, output: Path) -> None:
    from studies import kropotov2007 as study
    from studies.kropotov2007_page import page, picture

    asked = {
        "sets": given.sets,
        "methods": given.methods,
        "widths": given.widths,
        "repeats": given.repeats,
        "squared": not given.unsquared,
    }
    plan = study.cells_of(**{name: value for name, value in asked.items() if value is not None})
    table = study.run(plan, output, _crew(given), retry=given.retry)
    _written(table, page(table), output, given.study)
    picture(table, output / "kropotov2007.png")


def _blogreg(given: argparse.Namespace, output: Path) -> None:
    from studies import blogreg as study
    from studies.blogreg_page import page, picture

    asked = {"sets": given.sets, "methods": given.methods, "repeats": given.repeats}
    plan = study.cells_of(**{name: value for name, value in asked.items() if value is not None})
    table = study.run(plan, output, _crew(given), retry=given.retry)
    _written(table, page(table), output, given.study)
    picture(table, output / "blogreg.png")


def _rvm2018(given: argparse.Namespace, output: Path) -> None:
    from studies import rvm2018 as study
    from studies.rvm2018_page import page, picture

    asked = {"sets": given.sets, "methods": given.methods, "repeats": given.repeats}
    plan = study.cells_of(**{name: value for name, value in asked.items() if value is not None})
    table = study.run(plan, output, _crew(given), retry=given.retry)
    _written(table, page(table), output, given.study)
    picture(output / "rvm2018.png")


def _crew(given: argparse.Namespace) -> Crew:
    from studies.cells import Crew

    return Crew(given.workers, given.scheduler)


def _written(table: DataFrame, text: str, output: Path, name: str) -> None:
    """The tidy table and the page."""
    from studies.results import write_whole

    write_whole(output / f"{name}.csv", table.to_csv(index=False))
    write_whole(output / f"{name}.md", text)
    sys.stdout.write(text)


def _own_models(given: argparse.Namespace, output: Path) -> None:
    from studies.own_models import own_models, table
    from studies.results import write_whole

    text = table(own_models(output))
    write_whole(output / "own_models.md", text)
    sys.stdout.write(text)


def _wide(given: argparse.Namespace, output: Path) -> None:
    from threadpoolctl import threadpool_limits

    from studies.results import write_whole
    from studies.wide import table, wide

    with threadpool_limits(1):  # times are compared
        text = table(wide(given.repeats or 1))
    write_whole(output / "wide.md", text)
    sys.stdout.write(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m studies", description=__doc__)
    parser.add_argument("study", choices=_STUDIES, help="which study")
    parser.add_argument("--classes", type=int, nargs="+", help="digits to tell apart (default: 8 9, then 3 6 8 9)")
    parser.add_argument("--digits", type=int, help=f"how many in all (default: {_EACH} of each class)")
    parser.add_argument("--skip", type=int, default=0, help="how many of each class to pass over (default: none)")
    parser.add_argument("--folds", type=int, default=5, help="parts of the cross-validation (default: 5)")
    parser.add_argument("--without-pixels", action="store_true", help="shape features alone: most of the time is saved")
    parser.add_argument("--workers", type=int, default=1, help="processes that compute (default: 1)")
    parser.add_argument("--data-sets", type=int, help="how many are simulated (calibration: 200; honesty: 100 a kind)")
    parser.add_argument("--repeats", type=int, help="splits into folds (default: wide 1, the papers' tables 5)")
    parser.add_argument("--sets", nargs="+", help="data sets of a paper's tables (default: all)")
    parser.add_argument("--methods", nargs="+", help="methods of a paper's tables (default: all)")
    parser.add_argument(
        "--widths", type=float, nargs="+", help="kernel widths (kropotov2007; default: the paper's ten)"
    )
    parser.add_argument("--unsquared", action="store_true", help="the kernel as it is printed (kropotov2007)")
    parser.add_argument("--retry", action="store_true", help="make fits of a paper's tables again that failed before")
    parser.add_argument("--scheduler", help="dask.distributed computes a paper's tables, at this address")
    parser.add_argument("--output", type=Path, help="folder of results and pictures (default: digits_study ...)")
    return parser


if __name__ == "__main__":
    main()
