"""Priors of one coordinate, with their integrals against a quadratic likelihood: one prior a file.

In REVM the quadratic likelihood is diagonal, so the evidence is a product of one-dimensional integrals (Kropotov
and Vetrov 2007, equation 8). Everything a prior has to know is here, vectorised over the coordinates: the best
hyper-parameter, the integral, the posterior and draws from it, the last step under it and the posterior at its mode.
"""

from __future__ import annotations

from bayes_sparse.common import registry
from bayes_sparse.inference.priors._prior import DirectionPosterior, Independent, Joint, Prior
from bayes_sparse.inference.priors.gaussian import Gaussian
from bayes_sparse.inference.priors.laplace import Laplace

__all__ = ["DirectionPosterior", "Gaussian", "Independent", "Joint", "Laplace", "Prior", "named"]


def named(name: str) -> Prior:
    """The prior in the file of that name."""
    prior: Prior = registry.lookup(__name__, name, "prior")()
    return prior
