"""Data with a known truth to generate, and the papers' data sets to load.

``load("wdbc")`` gives a DataFrame whose last column is ``target``; ``names()`` lists the sets; the generators
return a `Generated` that holds the truth beside the data.
"""

from bayes_sparse.datasets.files import load, names
from bayes_sparse.datasets.generators import (
    Generated,
    friedman,
    sinc,
    sparse_linear,
    sparse_logistic,
    two_gaussians,
)

__all__ = [
    "Generated",
    "friedman",
    "load",
    "names",
    "sinc",
    "sparse_linear",
    "sparse_logistic",
    "two_gaussians",
]
