"""Sparse Bayesian learning for people who use PyMC."""

from __future__ import annotations

import logging as _logging

from bayes_sparse import basis, datasets, likelihoods, methods, models
from bayes_sparse.fit import fit
from bayes_sparse.l1.plots import plot_cv, plot_path
from bayes_sparse.one_step.plots import plot_evidence_1d, plot_spectrum
from bayes_sparse.plots import plot_curve, plot_history, plot_relevance
from bayes_sparse.predict import predict
from bayes_sparse.relevance import relevance, unpruned
from bayes_sparse.selection import plot_selection, selection_path
from bayes_sparse.verdict import FitWarning

__all__ = [
    "FitWarning",
    "basis",
    "datasets",
    "fit",
    "likelihoods",
    "methods",
    "models",
    "plot_curve",
    "plot_cv",
    "plot_evidence_1d",
    "plot_history",
    "plot_path",
    "plot_relevance",
    "plot_selection",
    "plot_spectrum",
    "predict",
    "relevance",
    "selection_path",
    "unpruned",
]

__version__ = "0.1.0"

_log = _logging.getLogger(__name__)
if not _log.handlers:  # messages to a person at a terminal; an application that configures logging overrides this
    _log.addHandler(_logging.StreamHandler())
    _log.setLevel(_logging.INFO)
    _log.propagate = False
