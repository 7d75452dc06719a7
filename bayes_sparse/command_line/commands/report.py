"""``bayes-sparse report fit.nc -o report.html``."""

from __future__ import annotations

import click

from bayes_sparse.command_line.files import read_table, read_tree, read_trees, whole_file
from bayes_sparse.command_line.options import debug, drop, index, table_format

__all__ = ["report"]


@click.command
@click.argument("fits", nargs=-1, required=True)
@click.option("--out", "-o", default="report.html", metavar="FILE", help="The page to write; - for standard output.")
@click.option("--title", help="Heading of the page.")
@click.option("--names", metavar="A,B,...", help="What the fits are called; as their files if left out.")
@click.option("--data", metavar="FILE", help="Rows held out, to check the predictions by.")
@click.option("--target", "-t", metavar="COLUMN", help="Their target.")
@click.option("--quiet", "-q", is_flag=True, help="Show no progress.")
@index
@drop
@table_format
@debug
def report(
    fits: tuple[str, ...],
    out: str,
    title: str | None,
    names: str | None,
    data: str | None,
    target: str | None,
    quiet: bool,
    index: str | None,
    drop: tuple[str, ...],
    form: str | None,
) -> None:
    """Write a page about one fit or several.

    FITS are of the same data; the page is one HTML file that needs no network.
    """
    import bayes_sparse as bs

    with whole_file(out, binary=False) as place:
        rows = None if data is None else read_table(data, form, index=index, drop=drop)
        trees = read_tree(fits[0]) if len(fits) == 1 and names is None else read_trees(fits, names)
        bs.report(trees, place, title=title, data=rows, target=target, progressbar=not quiet)
