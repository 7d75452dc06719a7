"""How hyper-parameters are found: one algorithm a file, the file's name is the option's name."""

from __future__ import annotations

from bayes_sparse.common import registry
from bayes_sparse.methods.coordinate_descent import CoordinateDescent
from bayes_sparse.methods.cv import CV
from bayes_sparse.methods.em import EM
from bayes_sparse.methods.full_matrix import FullMatrix
from bayes_sparse.methods.fuzzy import Fuzzy
from bayes_sparse.methods.global_local import GlobalLocal
from bayes_sparse.methods.mackay import MacKay
from bayes_sparse.methods.nuts import NUTS
from bayes_sparse.methods.one_vs_rest import OneVsRest
from bayes_sparse.methods.revm import REVM
from bayes_sparse.methods.reweighted import Reweighted
from bayes_sparse.methods.sequential import Sequential

__all__ = [
    "CV",
    "EM",
    "NUTS",
    "REVM",
    "CoordinateDescent",
    "FullMatrix",
    "Fuzzy",
    "GlobalLocal",
    "MacKay",
    "OneVsRest",
    "Reweighted",
    "Sequential",
]

__getattr__ = registry.by_class_name(__name__)
