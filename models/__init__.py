"""The models: one PyMC declaration a file; the file's name is the model's name.

A model of your own needs no file: pass the `pm.Model` itself to `bayes_sparse.fit`, or wrap it in `Declared` to say
which variable is the sparse one.
"""

from __future__ import annotations

from bayes_sparse.common import registry
from bayes_sparse.inputs.pm_model.declared import Declared
from bayes_sparse.models.ard_gaussian import ARDGaussian
from bayes_sparse.models.gaussian_eigen import GaussianEigen
from bayes_sparse.models.horseshoe import Horseshoe
from bayes_sparse.models.jeffreys_laplace import JeffreysLaplace
from bayes_sparse.models.laplace_eigen import LaplaceEigen
from bayes_sparse.models.student_multinomial import StudentMultinomial

__all__ = [
    "ARDGaussian",
    "Declared",
    "GaussianEigen",
    "Horseshoe",
    "JeffreysLaplace",
    "LaplaceEigen",
    "StudentMultinomial",
]

__getattr__ = registry.by_class_name(__name__)
