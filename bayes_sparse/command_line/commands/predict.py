"""``bayes-sparse predict fit.nc new.csv > predictions.csv``."""

from __future__ import annotations

from typing import Any

import click

from bayes_sparse.command_line.files import FORMATS, PIPE, format_of, read_table, read_tree, write_table
from bayes_sparse.command_line.options import debug, drop, index, table_format

__all__ = ["predict"]

_WRITTEN = (*FORMATS, "json")


@click.command
@click.argument("fit")
@click.argument("new", default=PIPE)
@click.option("--out", "-o", default=PIPE, metavar="FILE", help="Where the predictions go; - for standard output.")
@click.option("--out-format", type=click.Choice(_WRITTEN), help="Format of the predictions; CSV for a pipe.")
@click.option("--offset", metavar="COLUMN", help="Column of the known part of the linear predictor.")
@click.option(
    "--missing", type=click.Choice(["refuse", "drop", "mean"]), help="Missing values; as in the fit by default."
)
@click.option(
    "--unseen",
    type=click.Choice(["refuse", "ignore"]),
    default="refuse",
    help="Categories that the fit has not seen.",
)
@click.option("--augment", is_flag=True, help="With an rbf basis: have the sd grow away from the data.")
@index
@drop
@table_format
@debug
def predict(
    fit: str,
    new: str,
    out: str,
    out_format: str | None,
    offset: str | None,
    augment: bool,
    missing: Any,
    unseen: Any,
    index: str | None,
    drop: tuple[str, ...],
    form: str | None,
) -> None:
    """Predict the rows of a table.

    FIT is what `bayes-sparse fit --out` wrote, NEW the table (- for standard input). For each of its rows:
    mean and sd of a new observation, or for classes the label and the probability of each.
    """
    import bayes_sparse as bs

    if fit == new == PIPE:
        raise click.UsageError("The fit and the new rows cannot both come from one pipe: name a file for one of them.")
    written = out_format or format_of(out, _WRITTEN)
    tree = read_tree(fit)
    rows = read_table(new, form, index=index, drop=drop)
    known: Any = None
    if offset is not None:
        if offset not in rows:
            raise ValueError(f"There is no column {offset!r} in the new rows.")
        known = rows[offset].to_numpy()
    write_table(bs.predict(tree, rows, offset=known, augment=augment, missing=missing, unseen=unseen), out, written)
