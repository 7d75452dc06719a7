"""How a likelihood becomes Gaussian: one approximation a file."""

from __future__ import annotations

from bayes_sparse.approximations.exact import Exact
from bayes_sparse.approximations.laplace import Laplace
from bayes_sparse.approximations.state import Approximation, Scores, State
from bayes_sparse.objective import Objective
from bayes_sparse.problem import Problem

__all__ = ["Approximation", "Exact", "Laplace", "Scores", "State", "approximate"]


def approximate(problem: Problem, objective: Objective) -> Approximation:
    """Choose the exact form where there is one, Laplace's method elsewhere."""
    return Exact(problem, objective) if problem.normal else Laplace(problem, objective)
