"""The other packages, called as their users would, and their answers judged by our definition of the evidence."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from fastrvm import RVC, RVR
from glmnet import ElasticNet, LogitNet
from skglm.datafits import Logistic
from skglm.penalties import L1
from skglm.solvers import ProxNewton
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ARDRegression

import bayes_sparse as bs
from bayes_sparse.inference.approximations import approximate
from bayes_sparse.inference.evidence.ascent import Ascent
from bayes_sparse.inference.evidence.state import Objective
from bayes_sparse.inference.l1.lasso import ColumnStore, Lasso
from bayes_sparse.inputs.likelihoods import bernoulli, compiled
from bayes_sparse.inputs.prepare import prepare
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.problem import Problem


def ours(X: Any, y: Any, model: str = "ard_gaussian", **settings: Any) -> Callable[[], Any]:
    """A fit through the front door, ready to be timed: kernel, search and tree."""

    def call() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bs.FitWarning)  # the status stands in the row
            return bs.fit(model, (X, y), draws=0, progressbar=False, **settings)

    return call


def kept(tree: Any) -> Any:
    """Which basis functions a fit kept."""
    return tree["evidence"]["kept"].to_numpy()


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


def our_lasso(X: Any, y: Any, lam: float, tolerance: float) -> Callable[[], Any]:
    """Our L1 solver from nothing, X as it stands and a free intercept: weights, intercept last.

    Columns are taken out of X anew each time, so that nothing is kept from the last.
    """
    terms, target, priced = compiled(bernoulli()), np.asarray(y, dtype=float), np.arange(X.shape[1] + 1) < X.shape[1]
    offset, flat = np.zeros(len(y)), np.zeros(len(priced))

    def call() -> Any:
        columns = ColumnStore(Design(X, extra=np.ones((len(y), 1))))
        spot = Lasso(columns, lambda eta: terms(eta, target), offset, priced, flat, priced).cold(lam, tolerance)
        w = np.zeros(len(priced))
        w[spot.index] = spot.w
        return w

    return call


def prox_newton(X: Any, y: Any, lam: float, tolerance: float) -> Callable[[], Any]:
    """skglm's solver for logistic regression with its own working sets, from nothing: weights, intercept last.

    It wants X in Fortran order, and minimises the mean where we minimise the sum. More rounds are allowed than its
    default of 20, which is too few for narrow tolerances.
    """
    solver = ProxNewton(tol=tolerance, fit_intercept=True, max_iter=200)
    X, target = np.asfortranarray(X), 2.0 * np.asarray(y) - 1.0
    datafit, penalty = Logistic(), L1(lam / len(y))

    def call() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # its objective is looked at
            return solver.solve(X, target, datafit, penalty)[0]

    return call


def problem(X: Any, y: Any, likelihood: str, basis: bs.basis.Basis) -> Problem:
    """What our evidence methods would see."""
    return bs.models.ARDGaussian().problem(prepare((X, y), None, likelihood, basis, None, None, None)).problem


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
