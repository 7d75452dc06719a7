"""Several classes: one predictor a class, coupled by a softmax."""

from __future__ import annotations

from bayes_sparse.problem.classes.active import ClassActive
from bayes_sparse.problem.classes.design import ClassDesign
from bayes_sparse.problem.classes.posterior import Woodbury
from bayes_sparse.problem.classes.problem import AnyProblem, ClassProblem, Link, log_probability

__all__ = ["AnyProblem", "ClassActive", "ClassDesign", "ClassProblem", "Link", "Woodbury", "log_probability"]
