"""What a fit of an estimator left: found once, and laid out only as far as somebody asks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from bayes_sparse.common.types import BoolArray, FloatArray, IntArray, Variables
from bayes_sparse.fitting.families import Found
from bayes_sparse.trees.read import StoredFit

__all__ = ["Result"]

_DRAWS, _CHAINS = 1000, 4  # as `bayes_sparse.fit` has them


@dataclass(eq=False)
class Result:
    """The end of a method, and the features that it saw. It is pickled with its data, and without compiled functions.

    Attributes
    ----------
    found : Found
        From the method's family.
    columns : array
        The features that were fitted: all but constant ones.
    features : int
        How many there are in all.
    """

    found: Found[Any]
    columns: IntArray
    features: int

    @cached_property
    def tree(self) -> xr.DataTree:
        """As `bayes_sparse.fit` gives it with ``random_seed=0``."""
        return self.found.tree(_DRAWS, _CHAINS, np.random.default_rng(0))

    @cached_property
    def at_hand(self) -> StoredFit:
        """As much of that tree as predictions need."""
        return self.found.at_hand()

    @cached_property
    def moments(self) -> Variables:
        """Mean and covariance of the weights, in the units of X and y."""
        return self.found.description.moments()

    @property
    def _inside(self) -> BoolArray:
        """Which coordinates are weights of basis functions, as opposed to a bias."""
        return np.asarray(self.moments["column"][1] < self.found.labelled.M)

    @property
    def weights(self) -> FloatArray:
        """Means (predictors, basis functions); zero where pruned or constant."""
        return np.asarray(self._laid_out(self.moments["coordinate_mean"][1][self._inside]))

    @property
    def kept(self) -> BoolArray:
        """Which basis functions any predictor keeps."""
        return np.asarray(self._laid_out(np.ones(self._inside.sum(), dtype=bool)).any(axis=0))

    @property
    def intercepts(self) -> FloatArray:
        """Means (predictors,) of the bias; zero without one."""
        bias = self.moments["coordinate_mean"][1][~self._inside]
        return np.asarray(bias if len(bias) else np.zeros(self.found.labelled.predictors))

    @property
    def covariance(self) -> FloatArray:
        """Of the weights kept, in the order of their columns."""
        at = np.flatnonzero(self._inside)
        at = at[np.argsort(self.moments["column"][1][at])]
        F = self.moments["covariance_factor"][1][at]
        if "narrowed" not in self.moments:
            return np.asarray(F @ F.T)
        S = F * self.moments["narrowed"][1]  # see `bayes_sparse.trees.spread`
        return np.asarray(np.diag(self.moments["prior_variance"][1][at]) - S @ S.T + F @ F.T)

    def over_features(self, values: Any, other: Any) -> Any:
        """Values along the basis functions fitted, with another for constant features in between."""
        if len(self.columns) == self.features:
            return values
        out = np.full((*values.shape[:-1], self.features), other, dtype=values.dtype)
        out[..., self.columns] = values
        return out

    def _laid_out(self, values: Any) -> Any:
        """Values of the weights kept as (predictors, basis functions), zero elsewhere."""
        out = np.zeros(self.found.labelled.M, dtype=values.dtype)
        out[self.moments["column"][1][self._inside]] = values
        return self.over_features(out.reshape(self.found.labelled.predictors, -1), 0)
