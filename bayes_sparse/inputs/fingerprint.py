"""A short digest of data, to know the same data again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr
from pytensor.graph.basic import Constant
from pytensor.graph.traversal import ancestors
from pytensor.tensor.sharedvar import TensorSharedVariable
from scipy.sparse import issparse

from bayes_sparse.inputs.frames import frame_parts, is_frame

__all__ = ["fingerprint"]


def fingerprint(value: Any) -> str:
    """Sixteen hexadecimal digits that are equal for equal data."""
    digest = hashlib.sha256()
    for part in _parts(value):
        digest.update(part)
    return digest.hexdigest()[:16]


def _parts(value: Any) -> Iterator[bytes]:
    if isinstance(value, pm.Model):
        yield from _of_model(value)
    elif isinstance(value, xr.Dataset | xr.DataArray):
        named = value if isinstance(value, xr.Dataset) else value.to_dataset(name=str(value.name))
        for name in sorted(map(str, named.variables)):
            yield f"{name} {named[name].dims}".encode()
            yield from _of_array(named[name].to_numpy())
    elif isinstance(value, Mapping):
        for key in value:
            yield str(key).encode()
            yield from _parts(value[key])
    elif isinstance(value, tuple | list):
        yield str(len(value)).encode()
        for item in value:
            yield from _parts(item)
    elif issparse(value):
        held: Any = value
        rows = held.tocoo()
        yield str(rows.shape).encode()
        for array in (*rows.coords, rows.data):
            yield from _of_array(array)
    elif is_frame(value):
        for name, part in frame_parts(value)[0].items():
            yield name.encode()
            yield from _of_array(np.asarray(part))
    elif hasattr(value, "__array__"):
        yield str(getattr(value, "name", "")).encode()
        yield from _of_array(np.asarray(value))
    else:
        yield repr(value).encode()


def _of_array(array: np.ndarray[Any, Any]) -> Iterator[bytes]:
    yield str(array.shape).encode()
    plain = array.dtype.kind in "biufcSU"
    yield np.ascontiguousarray(array).tobytes() if plain else repr(array.tolist()).encode()


def _of_model(model: pm.Model) -> Iterator[bytes]:
    """Its variables, and all the numbers it holds: data, observations, and the constants of its priors."""
    for rv in model.basic_RVs:
        yield f"{rv.name} {rv.owner.op}".encode()
    values = [model.rvs_to_values[rv] for rv in model.observed_RVs]
    for variable in ancestors([*model.basic_RVs, *model.potentials, *values]):
        if isinstance(variable, Constant):
            yield from _of_array(np.asarray(variable.data))
        elif isinstance(variable, TensorSharedVariable):
            yield from _of_array(np.asarray(variable.container.data))
