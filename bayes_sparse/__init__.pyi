# What editors and type checkers see of the package, whose names are imported when they are first asked for.

from bayes_sparse import datasets as datasets
from bayes_sparse import estimators as estimators
from bayes_sparse import methods as methods
from bayes_sparse import models as models
from bayes_sparse.common.warnings import FitWarning as FitWarning
from bayes_sparse.common.warnings import LikelihoodWarning as LikelihoodWarning
from bayes_sparse.common.warnings import UndecidedWarning as UndecidedWarning
from bayes_sparse.fitting.evidence_op import EvidenceOp as EvidenceOp
from bayes_sparse.fitting.evidence_op import log_evidence_op as log_evidence_op
from bayes_sparse.fitting.explain import Explanation as Explanation
from bayes_sparse.fitting.explain import explain as explain
from bayes_sparse.fitting.fit import fit as fit
from bayes_sparse.fitting.weights_given import weights_given as weights_given
from bayes_sparse.inputs import basis as basis
from bayes_sparse.inputs import likelihoods as likelihoods
from bayes_sparse.refits.kfold import kfold as kfold
from bayes_sparse.refits.ladder import ladder as ladder
from bayes_sparse.refits.loo import loo as loo
from bayes_sparse.refits.refit_plots import plot_selection as plot_selection
from bayes_sparse.refits.refit_plots import plot_sensitivity as plot_sensitivity
from bayes_sparse.refits.selection import selection_path as selection_path
from bayes_sparse.refits.sensitivity import Sensitivity as Sensitivity
from bayes_sparse.refits.sensitivity import sensitivity as sensitivity
from bayes_sparse.report import report as report
from bayes_sparse.results.comparison import Comparison as Comparison
from bayes_sparse.results.comparison import compare as compare
from bayes_sparse.results.comparison import plot_compare as plot_compare
from bayes_sparse.results.correct import correct as correct
from bayes_sparse.results.diagnose import Diagnosis as Diagnosis
from bayes_sparse.results.diagnose import SamplingDiagnosis as SamplingDiagnosis
from bayes_sparse.results.diagnose import diagnose as diagnose
from bayes_sparse.results.initvals import initvals as initvals
from bayes_sparse.results.log_evidence import LogEvidence as LogEvidence
from bayes_sparse.results.log_evidence import log_evidence as log_evidence
from bayes_sparse.results.plots.fits import plot_curve as plot_curve
from bayes_sparse.results.plots.fits import plot_history as plot_history
from bayes_sparse.results.plots.fits import plot_relevance as plot_relevance
from bayes_sparse.results.plots.searches import plot_cv as plot_cv
from bayes_sparse.results.plots.searches import plot_evidence_1d as plot_evidence_1d
from bayes_sparse.results.plots.searches import plot_path as plot_path
from bayes_sparse.results.plots.searches import plot_spectrum as plot_spectrum
from bayes_sparse.results.predict.predict import predict as predict
from bayes_sparse.results.relevance import relevance as relevance
from bayes_sparse.results.relevance import unpruned as unpruned

__version__: str
