"""Several classes: one predictor a class, coupled by a softmax."""

from __future__ import annotations

from bayes_sparse.classes.active import ClassActive
from bayes_sparse.classes.design import ClassDesign
from bayes_sparse.classes.posterior import Woodbury
from bayes_sparse.classes.problem import AnyProblem, ClassProblem

__all__ = ["AnyProblem", "ClassActive", "ClassDesign", "ClassProblem", "Woodbury"]
