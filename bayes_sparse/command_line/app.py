"""The program ``bayes-sparse``: its commands, and how it ends.

Exit codes: 0 where all is well; 1 where what was handed in is wrong, which one sentence says; 2 for a command that is
misspelt; 3 for a fit that ended badly, which is written all the same; 130 where it was stopped by Ctrl-C.
"""

from __future__ import annotations

import warnings
from typing import Any, NoReturn, TextIO

import click

from bayes_sparse import __version__
from bayes_sparse.command_line.options import DEBUG, debug
from bayes_sparse.common import registry
from bayes_sparse.common.warnings import FitWarning

__all__ = ["main"]

_FOLDER = "bayes_sparse.command_line.commands"
_STOPPED = 130
_SAID = (ValueError, TypeError, ImportError, RuntimeError, NotImplementedError, MemoryError)  # with a sentence


def as_written(command: click.Command) -> click.Command:
    """With click's sign for lines that stay as they are, which a raw docstring spells out."""
    command.help = (command.help or "").replace(r"\b", "\b")
    return command


class _Commands(click.Group):
    """The files of the folder `commands`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return registry.options(_FOLDER)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in registry.options(_FOLDER):
            return None  # click says what there is
        found: click.Command = registry.lookup(_FOLDER, cmd_name, "command")
        return as_written(found)

    def invoke(self, ctx: click.Context) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("always", FitWarning)
            warnings.showwarning = _tell
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                click.echo("Stopped.", err=True)
                ctx.exit(_STOPPED)
            except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
                raise
            except Exception as error:
                _end(error, show=DEBUG in ctx.meta)


def _tell(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A warning on a line of its own, without the line of the code that gave it."""
    click.echo(f"Warning: {_one_line(message)}", err=True)


def _end(error: Exception, *, show: bool) -> NoReturn:
    """One sentence about what went wrong, or the traceback where that was asked for."""
    if show:
        raise error
    if isinstance(error, OSError) and error.strerror:
        raise click.ClickException(f"{error.filename or 'The output'}: {error.strerror}.") from None
    if isinstance(error, (*_SAID, OSError)) and str(error):
        raise click.ClickException(_one_line(error)) from None
    said = _one_line(f"{type(error).__name__}: {error}")
    raise click.ClickException(f"This should not have happened ({said}); --debug shows where it did.") from None


def _one_line(text: object) -> str:
    """Without line breaks, and without the traceback that an error in another process brings along."""
    return " ".join(str(text).partition("Traceback (most recent call last)")[0].split())


@click.group(
    name="bayes-sparse",
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True, "max_content_width": 100},
)
@click.version_option(__version__, prog_name="bayes-sparse")
@debug
def main() -> None:
    r"""Sparse Bayesian learning: the few columns or kernels that matter, and how sure that is.

    Tables are CSV, TSV, Parquet or NetCDF by the file's name (--format says otherwise), and - is a pipe. A fit is a
    NetCDF file that ArviZ and xarray open.

    \b
    bayes-sparse fit data.csv --target y --out fit.nc --report report.html
    bayes-sparse predict fit.nc new.csv > predictions.csv
    """


as_written(main)
