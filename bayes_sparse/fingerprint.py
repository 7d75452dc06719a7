"""A short digest of data, to know the same data again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr
from pytensor.compile.sharedvalue import SharedVariable
from scipy.sparse import issparse

__all__ = ["fingerprint"]


def fingerprint(value: Any) -> str:
    """Sixteen hexadecimal digits that are equal for equal data, whatever holds them."""
    digest = hashlib.sha256()
    for part in _parts(value):
        digest.update(part)
    return digest.hexdigest()[:16]


def _parts(value: Any) -> Iterator[bytes]:
    yield type(value).__name__.encode()
    if isinstance(value, pm.Model):
        yield from _of_model(value)
    elif isinstance(value, Mapping | xr.Dataset):
        for key in value:
            yield str(key).encode()
            yield from _parts(value[key])
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _parts(item)
    elif issparse(value):
        held: Any = value
        rows = held.tocoo()
        for array in (*rows.coords, rows.data):
            yield from _of_array(array)
    elif hasattr(value, "columns"):  # a frame of pandas or polars
        for name in value.columns:
            yield str(name).encode()
            yield from _of_array(np.asarray(value[name]))
    elif hasattr(value, "__array__"):
        yield from _of_array(np.asarray(value))
    else:
        yield repr(value).encode()


def _of_array(array: np.ndarray[Any, Any]) -> Iterator[bytes]:
    yield str(array.shape).encode()
    plain = array.dtype.kind in "biufcSU"
    yield np.ascontiguousarray(array).tobytes() if plain else repr(array.tolist()).encode()


def _of_model(model: pm.Model) -> Iterator[bytes]:
    """Names of its variables, and the numbers it holds."""
    for rv in model.free_RVs:
        yield str(rv.name).encode()
    values = [model.rvs_to_values[rv] for rv in model.observed_RVs]
    variables: list[Any] = [*values, *model.data_vars]
    for variable in variables:
        if isinstance(variable, SharedVariable):
            yield from _of_array(np.asarray(variable.container.data))
        elif hasattr(variable, "data"):
            yield from _of_array(np.asarray(variable.data))
