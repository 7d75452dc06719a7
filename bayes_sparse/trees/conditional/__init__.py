"""The exact posterior at the hyper-parameters of an evidence fit, p(w | alpha*, data), as a density to be sampled."""

from __future__ import annotations

from bayes_sparse.trees.conditional.conditional import Conditional
from bayes_sparse.trees.conditional.directions import of_directions
from bayes_sparse.trees.conditional.support import of_support
from bayes_sparse.trees.conditional.weights import of_weights

__all__ = ["Conditional", "of_directions", "of_support", "of_weights"]
