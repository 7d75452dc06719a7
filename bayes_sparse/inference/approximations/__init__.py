"""How a likelihood becomes Gaussian: one approximation a file."""

from __future__ import annotations

from bayes_sparse.inference.approximations.exact import Exact
from bayes_sparse.inference.approximations.laplace import LaplaceApproximation
from bayes_sparse.inference.evidence.state import Approximation, Objective
from bayes_sparse.problem.classes import AnyProblem
from bayes_sparse.problem.problem import Problem

__all__ = ["Exact", "LaplaceApproximation", "approximate"]


def approximate(problem: AnyProblem, objective: Objective) -> Approximation:
    """Choose the exact form where there is one, Laplace's method elsewhere."""
    if isinstance(problem, Problem) and problem.normal:
        return Exact(problem, objective)
    return LaplaceApproximation(problem, objective)
