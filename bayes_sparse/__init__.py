"""Sparse Bayesian learning for people who use PyMC."""

from __future__ import annotations

import logging as _logging

from bayes_sparse import basis, datasets, likelihoods, methods, models
from bayes_sparse.comparison import Comparison, compare, plot_compare, plot_sensitivity
from bayes_sparse.correct import correct
from bayes_sparse.diagnose import Diagnosis, SamplingDiagnosis, diagnose
from bayes_sparse.fit import fit
from bayes_sparse.l1.plots import plot_cv, plot_path
from bayes_sparse.ladder import ladder
from bayes_sparse.log_evidence import LogEvidence, log_evidence
from bayes_sparse.loo import loo
from bayes_sparse.one_step.plots import plot_evidence_1d, plot_spectrum
from bayes_sparse.plots import plot_curve, plot_history, plot_relevance
from bayes_sparse.predict import predict
from bayes_sparse.relevance import relevance, unpruned
from bayes_sparse.report import report
from bayes_sparse.selection import plot_selection, selection_path
from bayes_sparse.sensitivity import Sensitivity, sensitivity
from bayes_sparse.told import FitWarning

__all__ = [
    "Comparison",
    "Diagnosis",
    "FitWarning",
    "LogEvidence",
    "SamplingDiagnosis",
    "Sensitivity",
    "basis",
    "compare",
    "correct",
    "datasets",
    "diagnose",
    "fit",
    "ladder",
    "likelihoods",
    "log_evidence",
    "loo",
    "methods",
    "models",
    "plot_compare",
    "plot_curve",
    "plot_cv",
    "plot_evidence_1d",
    "plot_history",
    "plot_path",
    "plot_relevance",
    "plot_selection",
    "plot_sensitivity",
    "plot_spectrum",
    "predict",
    "relevance",
    "report",
    "selection_path",
    "sensitivity",
    "unpruned",
]

__version__ = "0.1.0"

_log = _logging.getLogger(__name__)
if not _log.handlers:  # messages to a person at a terminal; an application that configures logging overrides this
    _log.addHandler(_logging.StreamHandler())
    _log.setLevel(_logging.INFO)
    _log.propagate = False
