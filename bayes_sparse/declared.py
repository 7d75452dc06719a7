"""A `pm.Model` of the user's own as a subject of fit and predict."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import xarray as xr

from bayes_sparse.data import vector_of
from bayes_sparse.graph import read_model
from bayes_sparse.methods.nuts import NUTS
from bayes_sparse.models import Declared
from bayes_sparse.subject import Subject

__all__ = ["declared_subject", "nuts_of_declared", "predict_declared"]


def declared_subject(declared: Declared, data: Any, weights: Any) -> Subject:
    raise ValueError

def nuts_of_declared(declared: Declared, data: Any, hyper: Any, method: NUTS, sampling: dict[str, Any]) -> xr.DataTree:
    raise ValueError

def predict_declared(tree: Any, model: Any, X: Any, offset: Any, random_seed: Any) -> xr.Dataset:
    raise ValueError
