"""Sparse Bayesian learning for people who use PyMC.

Public names are imported when they are first asked for: PyMC takes more than a second, which ``bayes-sparse --help``
has no use for. A new name goes into ``_PLACES``, and into the stub beside this file for editors and type checkers.
"""

from __future__ import annotations

import logging as _logging
import sys as _sys
from importlib import import_module as _import_module
from types import ModuleType as _ModuleType
from typing import Any as _Any

from bayes_sparse.common.registry import shown_as as _shown_as

_PLACES = {  # a name's file, or the package that it is a file or folder of
    "Comparison": "bayes_sparse.results.comparison",
    "Diagnosis": "bayes_sparse.results.diagnose",
    "EvidenceOp": "bayes_sparse.fitting.evidence_op",
    "Explanation": "bayes_sparse.fitting.explain",
    "FitWarning": "bayes_sparse.common.warnings",
    "LikelihoodWarning": "bayes_sparse.common.warnings",
    "LogEvidence": "bayes_sparse.results.log_evidence",
    "SamplingDiagnosis": "bayes_sparse.results.diagnose",
    "Sensitivity": "bayes_sparse.refits.sensitivity",
    "Summary": "bayes_sparse.results.summary",
    "UndecidedWarning": "bayes_sparse.common.warnings",
    "basis": "bayes_sparse.inputs",
    "compare": "bayes_sparse.results.comparison",
    "correct": "bayes_sparse.results.correct",
    "data": "bayes_sparse.inputs",
    "datasets": "bayes_sparse",
    "diagnose": "bayes_sparse.results.diagnose",
    "explain": "bayes_sparse.fitting.explain",
    "fit": "bayes_sparse.fitting.fit",
    "initvals": "bayes_sparse.results.initvals",
    "kfold": "bayes_sparse.refits.kfold",
    "ladder": "bayes_sparse.refits.ladder",
    "likelihoods": "bayes_sparse.inputs",
    "log_evidence": "bayes_sparse.results.log_evidence",
    "log_evidence_op": "bayes_sparse.fitting.evidence_op",
    "loo": "bayes_sparse.refits.loo",
    "methods": "bayes_sparse",
    "models": "bayes_sparse",
    "plot_compare": "bayes_sparse.results.comparison",
    "plot_curve": "bayes_sparse.results.plots.fits",
    "plot_cv": "bayes_sparse.results.plots.searches",
    "plot_evidence_1d": "bayes_sparse.results.plots.searches",
    "plot_history": "bayes_sparse.results.plots.fits",
    "plot_path": "bayes_sparse.results.plots.searches",
    "plot_relevance": "bayes_sparse.results.plots.fits",
    "plot_selection": "bayes_sparse.refits.refit_plots",
    "plot_sensitivity": "bayes_sparse.refits.refit_plots",
    "plot_spectrum": "bayes_sparse.results.plots.searches",
    "predict": "bayes_sparse.results.predict.predict",
    "relevance": "bayes_sparse.results.relevance",
    "report": "bayes_sparse.report",
    "selection_path": "bayes_sparse.refits.selection",
    "sensitivity": "bayes_sparse.refits.sensitivity",
    "summary": "bayes_sparse.results.summary",
    "unpruned": "bayes_sparse.results.relevance",
    "weights_given": "bayes_sparse.fitting.weights_given",
}
_FOLDERS = {
    "basis",
    "data",
    "datasets",
    "estimators",
    "likelihoods",
    "methods",
    "models",
}  # not in a file, but one themselves

__all__ = sorted(_PLACES)  # `estimators` needs scikit-learn, so `import *` leaves it out
__version__ = "0.1.0"


def __getattr__(name: str) -> _Any:
    """Import a public name when it is first asked for."""
    if name not in _PLACES and name not in _FOLDERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    place = _PLACES.get(name, __name__)
    found = _import_module(f"{place}.{name}") if name in _FOLDERS else getattr(_import_module(place), name)
    setattr(_sys.modules[__name__], name, found)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES, *_FOLDERS})


class _Package(_ModuleType):
    """Sees to names that the import of a folder sets here."""

    def __setattr__(self, name: str, value: _Any) -> None:
        if name == "report" and isinstance(value, _ModuleType):
            return  # the name is the function's, whoever imports its folder first
        if name in ("models", "methods"):
            _shown_as(value, lambda: getattr(_import_module("bayes_sparse.fitting.grid"), f"{name}_grid")())
        super().__setattr__(name, value)


_sys.modules[__name__].__class__ = _Package

_log = _logging.getLogger(__name__)
if not _log.handlers:  # messages to a person at a terminal; an application that configures logging overrides this
    _log.addHandler(_logging.StreamHandler())
    _log.setLevel(_logging.INFO)
    _log.propagate = False
