"""``bayes-sparse models``."""

from __future__ import annotations

import click

from bayes_sparse.command_line.options import debug
from bayes_sparse.common import registry

__all__ = ["models"]


@click.command
@debug
def models() -> None:
    """List models, methods, likelihoods and bases."""
    import bayes_sparse as bs

    click.echo(f"{bs.models}\n\n{bs.methods}\n")
    for title, folder in (("Likelihoods", "likelihoods"), ("Bases", "basis")):
        click.echo(f"{title}: {', '.join(registry.options(f'bayes_sparse.inputs.{folder}'))}.")
