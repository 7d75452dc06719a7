"""What is said of data in chunks before they are fitted, and the columns of a fit taken into memory for NUTS."""

from __future__ import annotations

from dataclasses import replace

import xarray as xr

from bayes_sparse.common import registry
from bayes_sparse.inference.method import Method
from bayes_sparse.inputs.chunks import gathered, is_chunked, size_of
from bayes_sparse.inputs.model import Handed
from bayes_sparse.problem.chunked import ChunkedProblem
from bayes_sparse.problem.labelled import LabelledProblem

__all__ = ["check_method_in_chunks", "rows_for_nuts"]

_ABLE = ("sequential", "mackay", "em", "revm", "reweighted")  # with other likelihoods than a normal one


def check_method_in_chunks(labelled: LabelledProblem, method: Method) -> None:
    """Refuse a method that needs all rows in one place; a normal likelihood needs none, after a pass or two."""
    if not isinstance(labelled.search, ChunkedProblem):
        return
    name, approximation = registry.name_of(method), getattr(method, "approximation", "auto")
    if name not in _ABLE:
        raise ValueError(
            f"The method {name!r} needs all rows in one place where the likelihood is not normal: for data in chunks "
            f"use {', '.join(map(repr, _ABLE[:-1]))}, or 'reweighted' for 'jeffreys_laplace'."
        )
    if approximation not in ("auto", "laplace"):
        raise ValueError(f"approximation={approximation!r} keeps a number per row: leave it out for data in chunks.")
    if name == "reweighted" and labelled.search.theta.size:
        raise ValueError("An L1 path of data in chunks takes a likelihood without parameters beside the predictor.")


def rows_for_nuts(handed: Handed, columns: xr.DataTree | None) -> Handed:
    """What NUTS samples: rows in memory as they are, and of rows in chunks the columns that a fit has kept."""
    if not is_chunked(handed.data):
        if columns is not None:
            raise ValueError("`keep_columns` is for data in chunks: give NUTS the columns that it is to sample.")
        return handed
    if columns is None:
        raise ValueError(
            f"NUTS needs the rows in memory, and these are {size_of(handed.data)}: fit by evidence first, then sample "
            "with the columns that it keeps, by method='nuts', keep_columns=tree."
        )
    evidence = columns["evidence"].to_dataset()
    kept = evidence["basis"].to_numpy()[evidence["kept"].to_numpy()]
    frame, target, beside = gathered(handed, [str(name) for name in kept])
    return replace(handed, data=(frame, target), target=str(target.name), missing="refuse", **beside)
