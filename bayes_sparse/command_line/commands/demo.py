"""``bayes-sparse demo``."""

from __future__ import annotations

import click

from bayes_sparse.command_line.options import debug

__all__ = ["demo"]


@click.command
@click.argument("folder", default="demo_output")
@debug
def demo(folder: str) -> None:
    """Fit a real data set and check it by NUTS.

    Which of 30 measurements tell a malignant tumour? A picture and a report go into FOLDER. It takes a minute, and
    needs scikit-learn for the data: pip install "bayes_sparse[demo]".
    """
    from bayes_sparse.command_line.tumours import tumours

    tumours(folder)
