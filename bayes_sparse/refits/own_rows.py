"""Cross-validation of a `pm.Model` of the user's own: rows are left out by a weight of zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import logsumexp

from bayes_sparse.common.progress import quiet
from bayes_sparse.common.types import FloatArray
from bayes_sparse.fitting.fit import fit
from bayes_sparse.inputs.rows import Rows
from bayes_sparse.inputs.table import Table, vector_of
from bayes_sparse.refits.folds import Fold
from bayes_sparse.refits.refit import Refit, Scored
from bayes_sparse.trees.read import StoredFit, stored

__all__ = ["OwnRefit", "own_rows"]


def own_rows(tree: xr.DataTree, weights: Any) -> Rows:
    """The rows of a fit's observed variable; their numbers stand for their features."""
    observed = tree["observed_data"].to_dataset()
    if len(observed.data_vars) != 1:
        raise ValueError("Cross-validation needs a model with one observed variable: its rows are what is left out.")
    [name], [y] = list(observed.data_vars), list(observed.data_vars.values())
    n, dim = len(y), str(y.dims[0])
    labels = y[dim].to_numpy() if dim in y.coords else np.arange(n)
    targets = y.to_numpy().reshape(n, -1)[:, 0]  # of a table the first: folds are balanced by it
    table = Table(np.arange(float(n))[:, None], ["row"], labels, dim, targets, str(name))
    return Rows([table], False, None if weights is None else vector_of(weights, n, "weights", positive=True), None)


@dataclass(frozen=True, eq=False)
class OwnRefit(Refit):
    """Fits of a user's own model to some of its rows."""

    def whole(self) -> StoredFit:
        """The fit of all rows."""
        return stored(self._without(np.empty(0, dtype=int)))

    def _without(self, left_out: Any) -> xr.DataTree:
        weights = np.ones(self.rows.n) if self.rows.weights is None else self.rows.weights.copy()
        weights[left_out] = 0.0
        with quiet():
            return fit(**self.arguments, weights=weights, progressbar=False)

    def scores(self, fitted: StoredFit, rows: Rows) -> FloatArray:
        """Log density of each row, averaged over the draws."""
        [density] = fitted.tree["log_likelihood"].to_dataset().data_vars.values()
        own = density.transpose("chain", "draw", ...).to_numpy()
        own = own.reshape(-1, own.shape[2], int(np.prod(own.shape[3:]))).sum(axis=2)
        at = np.asarray(rows.tables[0].X)[:, 0].astype(int)
        return np.asarray(logsumexp(own[:, at], axis=0) - np.log(len(own)))

    def _scored(self, fold: Fold) -> Scored:
        tree = self._without(np.setdiff1d(np.arange(self.rows.n), fold.fitted(self.rows.n)))
        return Scored(self.scores(stored(tree), self.rows.at(fold.test)), str(stored(tree).status), 0)
