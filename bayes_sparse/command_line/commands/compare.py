"""``bayes-sparse compare a.nc b.nc``."""

from __future__ import annotations

import click

from bayes_sparse.command_line.files import read_table, read_trees
from bayes_sparse.command_line.options import debug, drop, index, table_format

__all__ = ["compare"]


@click.command
@click.argument("fits", nargs=-1, required=True)
@click.option("--names", metavar="A,B,...", help="What the fits are called; as their files if left out.")
@click.option("--reference", metavar="NAME", help="The fit to measure the others against; the most exact if left out.")
@click.option("--data", metavar="FILE", help="Rows held out, to score the predictions by.")
@click.option("--target", "-t", metavar="COLUMN", help="Their target.")
@index
@drop
@table_format
@debug
def compare(
    fits: tuple[str, ...],
    names: str | None,
    reference: str | None,
    data: str | None,
    target: str | None,
    index: str | None,
    drop: tuple[str, ...],
    form: str | None,
) -> None:
    """Compare FITS of the same data.

    How far apart they are, how fast each was and how well each predicts, measured against the most exact.
    """
    import bayes_sparse as bs

    rows = None if data is None else read_table(data, form, index=index, drop=drop)
    click.echo(bs.compare(read_trees(fits, names), rows, target=target, reference=reference))
