"""Tables and fits, read and written: formats by the file's name, ``-`` for a pipe, never half a file."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, BinaryIO

from bayes_sparse.common.files import as_netcdf, from_netcdf

if TYPE_CHECKING:  # both are slow to import
    import pandas as pd
    import xarray as xr

__all__ = [
    "FORMATS",
    "PIPE",
    "as_text",
    "format_of",
    "read_table",
    "read_tree",
    "read_trees",
    "whole_file",
    "write_table",
    "write_tree",
]

FORMATS = ("csv", "tsv", "parquet", "netcdf")
PIPE = "-"
_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".nc": "netcdf",
    ".nc4": "netcdf",
    ".json": "json",
    ".txt": "text",
}
_PACKED = {".gz", ".bz2", ".xz", ".zip", ".zst"}  # pandas unpacks and packs them by itself
_BINARY = ("parquet", "netcdf")
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def format_of(name: str, known: Sequence[str] = FORMATS, *, piped: str = "csv") -> str:
    """The format that a file's name says it has."""
    if name == PIPE:
        return piped
    endings = [own for own in Path(name).suffixes if own.lower() not in _PACKED]
    found = _SUFFIXES.get(endings[-1].lower(), "") if endings else ""
    if found not in known:
        raise ValueError(f"The name of {name!r} does not say its format; say it with --format: {', '.join(known)}.")
    return found


def read_table(
    name: str, form: str | None, *, index: str | None = None, drop: Sequence[str] = ()
) -> pd.DataFrame | xr.Dataset:
    """A table of rows and named columns.

    Parameters
    ----------
    name : str
        File, or ``-`` for standard input.
    form : str, optional
        One of `FORMATS`; None for what the name says.
    index : str, optional
        Column that labels the rows.
    drop : sequence of str
        Columns to leave out.
    """
    source = _source(name)
    form = form or format_of(name)
    try:
        table: Any = _readers()[form](source)
    except ImportError:
        raise ImportError('Parquet files need pyarrow: pip install "bayes_sparse[parquet]".') from None
    except (ValueError, OSError) as error:
        reason = "" if form == "netcdf" else f" ({str(error).splitlines()[0]})"  # xarray advises to install packages
        raise ValueError(f"{_called(name)} cannot be read as {form}{reason}.") from error
    absent = [own for own in (*drop, *([index] if index else [])) if own not in table]
    if absent:
        raise ValueError(f"There is no column {absent[0]!r} in {_called(name)}.")
    if form == "netcdf":
        if index:
            raise ValueError("The rows of a NetCDF file are labelled by its coordinates: leave out --index.")
        rest: xr.Dataset = table.drop_vars(list(drop))
        return rest
    rows: pd.DataFrame = table.drop(columns=list(drop))
    return rows.set_index(index) if index else rows


def _readers() -> dict[str, Callable[[Any], Any]]:
    import pandas as pd
    import xarray as xr

    return {
        "csv": pd.read_csv,
        "tsv": lambda source: pd.read_csv(source, sep="\t"),
        "parquet": pd.read_parquet,
        "netcdf": xr.load_dataset,
    }


def _source(name: str) -> str | BinaryIO:
    """What a reader opens: the file, or all of a pipe, for some formats are not read from front to back."""
    if name == PIPE:
        return io.BytesIO(sys.stdin.buffer.read())
    if not Path(name).exists():
        raise FileNotFoundError(f"There is no file {name!r}.")
    if Path(name).is_dir():
        raise ValueError(f"{name!r} is a folder: name a file in it.")
    return name if Path(name).is_file() else io.BytesIO(Path(name).read_bytes())


def _called(name: str) -> str:
    return "Standard input" if name == PIPE else repr(name)


def read_tree(name: str) -> xr.DataTree:
    """A fit that was written by `write_tree`, or by `to_netcdf` of any tree."""
    source = _source(name)
    try:
        tree: xr.DataTree = from_netcdf(source)
    except ValueError as error:
        raise ValueError(
            f"{_called(name)} is no NetCDF file, as `bayes-sparse fit --out` writes it, or it is damaged."
        ) from error
    if not any("bayes_sparse" in own.attrs for own in (tree, *tree.children.values())):  # a ladder is a tree of trees
        raise ValueError(f"{_called(name)} holds no fit of bayes_sparse.")
    return tree


def read_trees(names: Sequence[str], called: str | None) -> dict[str, xr.DataTree]:
    """Fits by what they are called: as told, or as their files are."""
    stems = [Path(name).stem for name in names]
    labels = called.split(",") if called else stems if len(set(stems)) == len(stems) else list(names)
    if len(labels) != len(names):
        raise ValueError(f"--names has {len(labels)} names for {len(names)} fits: give as many, with commas between.")
    twice = [own for own in labels if labels.count(own) > 1]
    if twice:
        raise ValueError(f"Two fits have the name {twice[0]!r}: give every fit its own, with --names.")
    return {label.strip(): read_tree(name) for label, name in zip(labels, names, strict=True)}


def write_tree(tree: xr.DataTree | xr.Dataset, place: Path) -> None:
    """As NetCDF."""
    place.write_bytes(as_netcdf(tree))


def write_table(table: pd.DataFrame | xr.Dataset, out: str, form: str) -> None:
    """A table in one of `FORMATS`, as JSON records, or as text for people."""
    import xarray as xr

    if form == "netcdf":
        whole = table if isinstance(table, xr.Dataset) else table.to_xarray()
        with whole_file(out) as place:
            write_tree(whole, place)
        return
    frame = _as_frame(table) if isinstance(table, xr.Dataset) else table
    with whole_file(out, binary=form in _BINARY) as place:
        if form == "parquet":
            frame.to_parquet(place)
        elif form == "json":
            frame.reset_index().to_json(place, orient="records", indent=1, double_precision=15)
        elif form == "text":
            place.write_text(f"{as_text(frame)}\n", encoding="utf-8")
        else:
            frame.to_csv(place, sep="\t" if form == "tsv" else ",")


def as_text(frame: pd.DataFrame) -> str:
    """A table for people: numbers in four digits, nothing where there is none."""
    named = frame if frame.index.nlevels > 1 else frame.rename_axis(None)
    return str(named.to_string(float_format="{:.4g}".format, na_rep="", sparsify=False))


def _as_frame(found: xr.Dataset) -> pd.DataFrame:
    """A column a vector; of a matrix, such as the probabilities of classes, one a column of it."""
    import pandas as pd

    columns: dict[str, Any] = {}
    dim = str(min(found.data_vars.values(), key=lambda own: own.ndim).dims[0])
    for name, variable in sorted(found.data_vars.items(), key=lambda own: own[1].ndim):
        if variable.ndim == 1:
            columns[str(name)] = variable.to_numpy()
            continue
        other = next(own for own in variable.dims if own != dim)
        labels = found[other].to_numpy().tolist()
        columns |= {f"{name}_{label}": variable.isel({other: j}).to_numpy() for j, label in enumerate(labels)}
    return pd.DataFrame(columns, index=pd.Index(found[dim].to_numpy(), name=dim))


@contextmanager
def whole_file(out: str, *, binary: bool = True) -> Iterator[Path]:
    """A path to write to, which becomes ``out`` when all is written: a run that fails leaves what was there before.

    Entered before long work, so that a place that cannot be written to is known at once.
    """
    place = Path(os.path.realpath(out))
    if out == PIPE or (place.exists() and not place.is_file() and not place.is_dir()):
        if binary and out == PIPE and sys.stdout.isatty():
            raise ValueError("This is no text for a terminal: name a file with --out, or pipe it on.")
        with TemporaryDirectory() as folder:
            part = Path(folder) / "whole"
            yield part
            _pass_on(part.read_bytes(), out)
        return
    if place.is_dir():
        raise ValueError(f"{out!r} is a folder: name a file in it.")
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(f".{os.getpid()}.{place.name}")  # with its ending, by which pandas packs it
    try:
        part.touch()
        yield part
        part.replace(place)
    except OSError as error:
        reason = error if error.errno else error.__cause__  # of a sentence about the part
        if isinstance(reason, OSError) and reason.errno in _NO_ROOM:
            raise OSError(
                f"{out!r} cannot be written ({os.strerror(reason.errno)}), and what was there before is there still: "
                "make room, or name another place."
            ) from error
        raise
    finally:
        part.unlink(missing_ok=True)


def _pass_on(content: bytes, out: str) -> None:
    if out != PIPE:
        Path(out).write_bytes(content)
        return
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()
