"""Sparse Bayesian learning for people who use PyMC."""

from __future__ import annotations

import logging as _logging
from importlib import import_module as _import_module
from typing import Any as _Any

from bayes_sparse import datasets, methods, models
from bayes_sparse.common.registry import shown_as as _shown_as
from bayes_sparse.common.warnings import FitWarning, LikelihoodWarning, UndecidedWarning
from bayes_sparse.fitting.evidence_op import EvidenceOp, log_evidence_op
from bayes_sparse.fitting.explain import Explanation, explain
from bayes_sparse.fitting.fit import fit
from bayes_sparse.fitting.grid import methods_grid as _methods_grid
from bayes_sparse.fitting.grid import models_grid as _models_grid
from bayes_sparse.fitting.weights_given import weights_given
from bayes_sparse.inputs import basis, likelihoods
from bayes_sparse.refits.kfold import kfold
from bayes_sparse.refits.ladder import ladder
from bayes_sparse.refits.loo import loo
from bayes_sparse.refits.refit_plots import plot_selection, plot_sensitivity
from bayes_sparse.refits.selection import selection_path
from bayes_sparse.refits.sensitivity import Sensitivity, sensitivity
from bayes_sparse.report import report
from bayes_sparse.results.comparison import Comparison, compare, plot_compare
from bayes_sparse.results.correct import correct
from bayes_sparse.results.diagnose import Diagnosis, SamplingDiagnosis, diagnose
from bayes_sparse.results.initvals import initvals
from bayes_sparse.results.log_evidence import LogEvidence, log_evidence
from bayes_sparse.results.plots.fits import plot_curve, plot_history, plot_relevance
from bayes_sparse.results.plots.searches import plot_cv, plot_evidence_1d, plot_path, plot_spectrum
from bayes_sparse.results.predict.predict import predict
from bayes_sparse.results.relevance import relevance, unpruned
from bayes_sparse.results.summary import Summary, summary

__all__ = [
    "Comparison",
    "Diagnosis",
    "EvidenceOp",
    "Explanation",
    "FitWarning",
    "LikelihoodWarning",
    "LogEvidence",
    "SamplingDiagnosis",
    "Sensitivity",
    "Summary",
    "UndecidedWarning",
    "basis",
    "compare",
    "correct",
    "datasets",
    "diagnose",
    "explain",
    "fit",
    "initvals",
    "kfold",
    "ladder",
    "likelihoods",
    "log_evidence",
    "log_evidence_op",
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
    "summary",
    "unpruned",
    "weights_given",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> _Any:
    """`estimators`, which need scikit-learn, are imported when they are first asked for."""
    if name == "estimators":
        return _import_module("bayes_sparse.estimators")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_shown_as(models, _models_grid)
_shown_as(methods, _methods_grid)

_log = _logging.getLogger(__name__)
if not _log.handlers:  # messages to a person at a terminal; an application that configures logging overrides this
    _log.addHandler(_logging.StreamHandler())
    _log.setLevel(_logging.INFO)
    _log.propagate = False
