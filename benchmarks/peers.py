"""The other packages, called as their users would, and their answers judged by our definition of the evidence."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from fastrvm import RVC, RVR
from glmnet import ElasticNet, LogitNet
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ARDRegression

import bayes_sparse as bs
from bayes_sparse.approximations import approximate
from bayes_sparse.ascent import Ascent
from bayes_sparse.objective import Objective
from bayes_sparse.prepare import prepare
from bayes_sparse.problem import Problem


def ours(X: Any, y: Any, **settings: Any) -> Callable[[], Any]:
    """A fit through the front door, ready to be timed: kernel, search and tree."""

    def call() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bs.FitWarning)  # the status stands in the row
            return bs.fit("ard_gaussian", (X, y), draws=0, progressbar=False, **settings)

    return call


def kept(tree: Any) -> Any:
    """Which basis functions a fit kept."""
    return tree["evidence"]["relevant"].to_numpy()


def fast_rvm(X: Any, y: Any, *, classify: bool = False, **settings: Any) -> Callable[[], Any]:
    """fastrvm with its own defaults beside what is given: a new estimator each time, kernel included."""
    return lambda: (RVC if classify else RVR)(**settings).fit(X, y)


def ard_regression(X: Any, y: Any) -> Callable[[], Any]:
    def call() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return ARDRegression().fit(X, y)

    return call


def glmnet(X: Any, y: Any, *, classify: bool = False) -> Callable[[], Any]:
    """The lasso path with its penalty chosen by the package's own cross-validation."""
    settings = {"random_state": 0, "n_jobs": 1}
    return lambda: (LogitNet(scoring="log_loss", **settings) if classify else ElasticNet(**settings)).fit(X, y)


def problem(X: Any, y: Any, likelihood: str, basis: bs.basis.Basis) -> Problem:
    """What our evidence methods would see."""
    return bs.models.ARDGaussian().subject(prepare((X, y), None, likelihood, basis, None, None, None)).problem


def fast_rvm_evidence(peer: Any, judged: Problem) -> tuple[float, float]:
    """Log evidence of fastrvm's answer in our definition: as it stands, and climbed on to the top of its own terms.

    It works on columns of norm 1 and reports precisions divided by the squared norm once too often; undone, they give
    back its own weights to eight digits and its own score up to the factors of 2 pi it leaves out. The second number
    re-optimises all precisions and the noise on the terms it chose: the most its choice of terms could give.
    """
    index = np.append(np.asarray(peer.relevance_, dtype=np.intp), np.flatnonzero(~judged.free))
    fixed = len(index) - len(peer.relevance_)
    alpha = np.append(np.ravel(peer.alpha_), np.ones(fixed)) * judged.design.squares()[index] ** 2
    theta = np.array([-0.5 * np.log(peer.beta_)]) if judged.normal else np.empty(0)
    approximation = approximate(judged, Objective())
    state = approximation.at(index, alpha, theta)
    climbed, _ = Ascent(approximation, judged.theta_bounds, 1e-8)(state, 500)
    return state.log_evidence, climbed.log_evidence
