"""``bayes-sparse relevance fit.nc``."""

from __future__ import annotations

import sys
from typing import Any

import click

from bayes_sparse.command_line.files import FORMATS, PIPE, format_of, read_tree, write_table
from bayes_sparse.command_line.options import debug

__all__ = ["relevance"]

_WRITTEN = ("text", "csv", "tsv", "json", *FORMATS[2:])


@click.command
@click.argument("fit")
@click.option("--kept", is_flag=True, help="Only the terms kept.")
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="Only the first so many.")
@click.option(
    "--by", type=click.Choice(["weight", "feature", "column"]), default="weight", help="Of classes and categories."
)
@click.option("--space", type=click.Choice(["weights", "eigen"]), default="weights", help="Of a one-step method.")
@click.option(
    "--order", type=click.Choice(["strength", "forward"]), default="strength", help="Order of the terms kept."
)
@click.option("--false-finds", type=float, help="The chance at most of a relevant term.")
@click.option("--delta", type=float, help="Of NUTS: how large a weight would have to be to matter.")
@click.option("--out", "-o", default=PIPE, metavar="FILE", help="Where the table goes; - for standard output.")
@click.option(
    "--format", "form", type=click.Choice(_WRITTEN), help="Format of the table; text on a terminal, CSV in a pipe."
)
@debug
def relevance(fit: str, kept: bool, top: int | None, out: str, form: str | None, **asked: Any) -> None:
    """List the terms of a FIT, most relevant first."""
    import bayes_sparse as bs
    from bayes_sparse.command_line.terms import for_people

    form = form or format_of(out, _WRITTEN, piped="text" if sys.stdout.isatty() else "csv")
    given = {name: value for name, value in asked.items() if value is not None}
    table = bs.relevance(read_tree(fit), **given)
    if kept:
        if "kept" not in table:
            raise ValueError("This fit keeps all terms: leave out --kept.")
        table = table[table["kept"]]
    table = table.head(top) if top else table
    if form == "text":
        table = for_people(table)
    elif "rival" in table:
        table = table.assign(rival=[", ".join(names) for names in table["rival"]])
    write_table(table, out, form)
