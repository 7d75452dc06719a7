"""How a likelihood becomes Gaussian: one approximation a file."""

from __future__ import annotations

from bayes_sparse.approximations.exact import Exact
from bayes_sparse.approximations.laplace import Laplace
from bayes_sparse.approximations.state import Approximation, Scores, State
from bayes_sparse.classes import AnyProblem
from bayes_sparse.objective import Objective
from bayes_sparse.problem import Problem

__all__ = ["Approximation", "Exact", "Laplace", "Scores", "State", "approximate"]


def approximate(problem: AnyProblem, objective: Objective) -> Approximation:
    """Choose the exact form where there is one, Laplace's method elsewhere."""
    if isinstance(problem, Problem) and problem.normal:
        return Exact(problem, objective)
    return Laplace(problem, objective)
