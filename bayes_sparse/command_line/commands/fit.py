"""``bayes-sparse fit data.csv --target y``."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from bayes_sparse.command_line.choices import choice_of, hyper_of, settings_of
from bayes_sparse.command_line.files import PIPE, read_table, whole_file, write_tree
from bayes_sparse.command_line.options import debug, drop, index, table_format
from bayes_sparse.common.warnings import UndecidedWarning

__all__ = ["fit"]

_ENDED_BADLY = 3


@click.command
@click.argument("data")
@click.option("--target", "-t", metavar="COLUMN", help="Column to be explained by the others.")
@click.option("--formula", "-f", metavar="FORMULA", help="Instead of a target: 'y ~ a*b + C(site)'.")
@click.option(
    "--missing", type=click.Choice(["refuse", "drop", "mean"]), default="refuse", help="What to do with missing values."
)
@click.option("--model", "-m", default="ard_gaussian", metavar="NAME", help="One that `bayes-sparse models` lists.")
@click.option("--method", default="evidence", metavar="NAME", help="One that `bayes-sparse models` lists.")
@click.option(
    "--likelihood", default="auto", metavar="NAME[:SETTINGS]", help="normal, bernoulli, poisson, binomial:10 ..."
)
@click.option(
    "--basis", default="linear", metavar="NAME[:SETTINGS]", help="linear, rbf:0.5, rbf:evidence, polynomial:2 ..."
)
@click.option("--keep", multiple=True, metavar="TERM", help="Term never pruned; may be given again.")
@click.option("--weights", metavar="COLUMN", help="Column of how often a row counts.")
@click.option("--offset", metavar="COLUMN", help="Column of the known part of the linear predictor.")
@click.option("--draws", default=1000, type=click.IntRange(min=0), help="Posterior draws per chain.")
@click.option("--chains", default=4, type=click.IntRange(min=1), help="Number of chains.")
@click.option("--seed", type=int, help="Makes the draws reproducible.")
@click.option("--hyper", metavar="SHAPE,RATE", help="Gamma prior of the precisions.")
@click.option("--slab", type=float, help="How large weights may be.")
@click.option(
    "--set", "more", multiple=True, metavar="NAME=VALUE", help="Any other setting of the model or method, in JSON."
)
@click.option("--out", "-o", metavar="FILE", help="Write the fit, as NetCDF; - for a pipe.")
@click.option("--report", metavar="FILE", help="Write a page about the fit, as HTML.")
@click.option("--quiet", "-q", is_flag=True, help="Show the table alone, and no progress.")
@index
@drop
@table_format
@debug
def fit(
    data: str,
    target: str | None,
    form: str | None,
    index: str | None,
    drop: tuple[str, ...],
    out: str | None,
    report: str | None,
    quiet: bool,
    **asked: Any,
) -> None:
    r"""Fit a sparse model to a table.

    Every column of DATA (- for standard input) but the target is a feature; words become indicators. A summary is
    printed.

    \b
    bayes-sparse fit data.csv --target y --out fit.nc --report report.html
    bayes-sparse fit data.csv --target y --basis rbf:0.5 --likelihood student_t
    cat data.csv | bayes-sparse fit - --target y --method nuts --hyper 1,0.1 --slab 2.5
    """
    import bayes_sparse as bs
    from bayes_sparse.command_line.terms import bad_end, table_of

    if (target is None) == (asked["formula"] is None):
        raise click.UsageError("Name the column to be explained by --target, or say it by --formula; one of them.")
    if report == PIPE:
        raise click.BadParameter("a report goes to a file.", param_hint="--report")
    arguments = _arguments(asked)
    with _file(report) as page:
        with _file(out) as saved:
            table = read_table(data, form, index=index, drop=drop)
            if not quiet:
                warnings.simplefilter("ignore", UndecidedWarning)  # the summary names the rivals
            tree = bs.fit(data=table, target=target, progressbar=not quiet, **arguments)
            if saved:
                write_tree(tree, saved)
        if page:
            bs.report(tree, page, progressbar=not quiet)
    click.echo(table_of(tree) if quiet else _summary(tree, out), err=out == PIPE)
    bad = bad_end(tree)
    if bad:
        click.echo(f"Error: {bad}", err=True)
        raise click.exceptions.Exit(_ENDED_BADLY)


def _summary(tree: Any, out: str | None) -> str:
    """What `bayes_sparse.summary` prints, with what to do next at a prompt."""
    import bayes_sparse as bs

    told, steps = bs.summary(tree), "--method nuts says how sure the choice of terms is"
    if out in (None, PIPE):
        steps = f"--out fit.nc keeps the fit, for `bayes-sparse predict`, `relevance`, `compare` and `report`; {steps}"
    else:
        first = (
            f"`bayes-sparse relevance {out}` lists all terms; `bayes-sparse predict {out} new.csv` predicts new rows"
        )
        steps = f"{first}; `bayes-sparse report {out}` has the whole story; {steps}"
    return str(replace(told, next_steps=(*told.next_steps[:-1], f"Next: {steps}.")))


def _arguments(asked: dict[str, Any]) -> dict[str, Any]:
    """What `bayes_sparse.fit` is given; an option that was left out is left to it."""
    own = {name: value for name, value in asked.items() if value is not None and value != ()}
    own["likelihood"] = choice_of("bayes_sparse.inputs.likelihoods", "likelihood", own["likelihood"])
    own["basis"] = choice_of("bayes_sparse.inputs.basis", "basis", own["basis"])
    own["random_seed"] = own.pop("seed", None)
    if "hyper" in own:
        own["hyper"] = hyper_of(own["hyper"])
    further = settings_of(own.pop("more", ()))
    twice = sorted({*own, "data", "target", "progressbar"} & set(further))
    if twice:
        raise click.BadParameter(f"{twice[0]!r} has an option of its own.", param_hint="--set")
    return own | further


@contextmanager
def _file(name: str | None) -> Iterator[Path | None]:
    """A file to write to, or none."""
    if name is None:
        yield None
        return
    with whole_file(name) as place:
        yield place
