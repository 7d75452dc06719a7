"""How a likelihood becomes Gaussian: one approximation a file."""

from __future__ import annotations

from bayes_sparse.common import registry
from bayes_sparse.inference.approximations.exact import Exact
from bayes_sparse.inference.approximations.laplace import LaplaceApproximation
from bayes_sparse.inference.evidence.state import Approximation, Objective
from bayes_sparse.problem.classes import AnyProblem

__all__ = ["Exact", "LaplaceApproximation", "approximate"]


def approximate(problem: AnyProblem, objective: Objective, name: str = "auto") -> Approximation:
    """The approximation of that name; ``"auto"`` is the exact form where there is one, Laplace's method elsewhere.

    A variational bound of a normal likelihood is exact.
    """
    chosen = "laplace" if name == "auto" else name
    if problem.normal and name in ("auto", "variational"):
        chosen = "exact"
    made: Approximation = registry.lookup(__name__, chosen, "approximation")(problem, objective)
    return made
