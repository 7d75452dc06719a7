"""Options that several commands have."""

from __future__ import annotations

import click

from bayes_sparse.command_line.files import FORMATS

__all__ = ["DEBUG", "debug", "drop", "index", "table_format"]

DEBUG = "bayes_sparse.debug"


def _remember(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[DEBUG] = True


debug = click.option(
    "--debug",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_remember,
    help="Show the traceback of an error.",
)
table_format = click.option(
    "--format", "form", type=click.Choice(FORMATS), help="Format of the table read, where its name does not say."
)
index = click.option("--index", metavar="COLUMN", help="Column that labels the rows, and is no feature.")
drop = click.option("--drop", multiple=True, metavar="COLUMN", help="Column to leave out; may be given again.")
