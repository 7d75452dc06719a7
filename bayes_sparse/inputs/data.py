"""Data that are read when they are needed: `bs.data.parquet`."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath

from bayes_sparse.inputs.chunks.dask_chunks import need_dask
from bayes_sparse.inputs.chunks.sources import ChunkedFrame

__all__ = ["parquet"]


def parquet(path: str | PathLike[str] | Sequence[str], target: str | None = None) -> ChunkedFrame:
    """Rows in Parquet files, read chunk by chunk while they are fitted or predicted, and never held together.

    Parameters
    ----------
    path : str, path or list of str
        A file, several, a folder, or files by a pattern, ``"rows/*.parquet"``; also on a store that dask knows, "s3://...".
    target : str, optional
        Name of the target column.

    Returns
    -------
    ChunkedFrame
        For `fit` and `predict`, in the place of data.
    """
    where = fspath(path) if isinstance(path, PathLike) else path
    frames = need_dask("dask.dataframe")
    try:
        frame = frames.read_parquet(where)
        there = len(frame.columns) > 0
    except OSError:
        there = False
    if not there:
        raise ValueError(f"There are no Parquet files at {where!r} that could be read.")
    return ChunkedFrame(frame, target)
