"""What type-II maximum likelihood maximises.

``J = log E - c DF + sum_i (a log alpha_i - b alpha_i) + log p(theta)``: the log evidence, less the smoothness
prior's price of c nats a degree of freedom (Schmolck & Everson), plus the Gamma(a, b) prior on each precision (as a
density of log alpha), plus the prior of the nuisance parameters. With c = a = b = 0 it is the log evidence alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.problem.design import FloatArray
from bayes_sparse.problem.gaussian import Dual, Primal

__all__ = ["Objective"]


@dataclass(frozen=True)
class Objective:
    """The criterion over precisions and nuisance parameters.

    Attributes
    ----------
    smoothness : float
        c, the cost of a degree of freedom in nats.
    a, b : float
        Shape and rate of the Gamma prior on each free precision.
    log_prior : callable, optional
        Log-density of the nuisance parameters on the unconstrained scale.
    """

    smoothness: float = 0.0
    a: float = 0.0
    b: float = 0.0
    log_prior: Callable[[FloatArray], float] | None = None

    def value(self, log_evidence: float, posterior: Primal | Dual, free: NDArray[np.bool_], theta: FloatArray) -> float:
        """J from its parts; ``free`` says which of the posterior's columns have their precision estimated."""
        J, alpha = log_evidence, posterior.alpha
        if self.smoothness:
            J -= self.smoothness * float(np.sum(1 - alpha * posterior.variance))
        if self.a or self.b:
            J += float(np.sum(self.a * np.log(alpha[free]) - self.b * alpha[free]))
        return J + self.prior(theta)

    def prior(self, theta: FloatArray) -> float:
        """Log prior of the nuisance parameters."""
        return 0.0 if self.log_prior is None or not theta.size else self.log_prior(theta)
