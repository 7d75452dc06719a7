"""Rankings of features by other means than a fit, and the plain classifier that judges them."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.special import log_softmax

from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.inference.newton import climb
from bayes_sparse.inference.one_step.expansion import evidence_ridge
from bayes_sparse.problem.design import Design, column_moments
from bayes_sparse.problem.surfaces import Softmax

__all__ = ["IN_WORDS", "RIVALS", "Plain", "l1_svm", "mutual_information", "plain_classifier", "sklearn"]

IN_WORDS = {"mutual_information": "mutual information", "l1_svm": "1-norm SVM"}

_BIAS_SD = 10.0  # log odds beyond twenty are nobody's
_WIDEST, _STEPS = 1e3, 31  # the penalties of the 1-norm SVM: largest by smallest, and how many
_PATIENCE = 2000  # rounds of its solver at each of them


def mutual_information(X: FloatArray, y: NDArray[np.intp], random_seed: int) -> IntArray:
    """Columns by their mutual information with the class, each by itself.

    Parameters
    ----------
    X : array (n, K)
        Columns, none of them constant.
    y : int array (n,)
        Classes.
    random_seed : int
        Of the noise that the nearest-neighbour estimate adds.
    """
    information = sklearn("feature_selection").mutual_info_classif(X, y, random_state=random_seed)
    return np.argsort(-information, kind="stable")


def l1_svm(X: FloatArray, y: NDArray[np.intp], random_seed: int) -> IntArray:
    """Columns in the order in which a 1-norm SVM activates them as its penalty is relaxed.

    With several classes there is one SVM a class against the rest, and a column enters with the first of them. Columns
    that enter at the same penalty go by the size of their weights there, over all classes; those that never enter, by
    the slope of the loss at the last one: the nearest to entering first.

    Parameters
    ----------
    X : array (n, K)
        Columns, none of them constant; they are standardised here.
    y : int array (n,)
        Classes.
    random_seed : int
        Of the order in which the solver visits the columns.
    """
    svm, unsettled = sklearn("svm"), sklearn("exceptions").ConvergenceWarning
    shift, scale = column_moments(X)
    Z = (X - shift) / scale
    K = Z.shape[1]
    entry, size = np.full(K, np.inf), np.zeros(K)
    for C in svm.l1_min_c(Z, y, loss="squared_hinge") * np.geomspace(1.0, _WIDEST, _STEPS):
        machine = svm.LinearSVC(penalty="l1", dual=False, C=C, max_iter=_PATIENCE, random_state=random_seed)
        with warnings.catch_warnings():
            # What enters late is known well enough before the weights of a separable class have settled.
            warnings.simplefilter("ignore", unsettled)
            machine.fit(Z, y)
        weights = np.sqrt(np.sum(machine.coef_**2, axis=0))
        new = np.isinf(entry) & (weights > 0)
        entry[new], size[new] = C, weights[new]
        if np.isfinite(entry).all():
            break
    never = np.isinf(entry)
    size[never] = _slopes(machine, Z, y)[never]
    return np.lexsort((-size, entry))


RIVALS: dict[str, Callable[[FloatArray, NDArray[np.intp], int], IntArray]] = {
    "mutual_information": mutual_information,
    "l1_svm": l1_svm,
}


def _slopes(machine: Any, Z: FloatArray, y: NDArray[np.intp]) -> FloatArray:
    """Largest slope of the squared hinge loss along each column, over the machines of all classes."""
    margin = machine.decision_function(Z).reshape(len(Z), -1)
    labels = machine.classes_[-margin.shape[1] :]  # of two classes the machine of the second tells both
    sign = np.where(y[:, None] == labels, 1.0, -1.0)
    return np.asarray(np.abs(Z.T @ (sign * np.maximum(1.0 - sign * margin, 0.0))).max(axis=1))


def sklearn(part: str) -> Any:
    """A part of scikit-learn, which only the rivals need."""
    try:
        return importlib.import_module(f"sklearn.{part}")
    except ImportError:
        raise ImportError(
            "The rival rankings are scikit-learn's, which is not installed: "
            'pip install "bayes_sparse[sklearn]", or rivals=().'
        ) from None


@dataclass(frozen=True, eq=False)
class Plain:
    """A softmax with one ridge for all weights.

    Attributes
    ----------
    ridge : float
        Precision of every weight of a standardised column.
    W : array (k, classes)
        Weights of the standardised columns at the mode.
    bias : array (classes,)
        Of each class.
    shift, scale : array (k,)
        What standardises the columns.
    """

    ridge: float
    W: FloatArray
    bias: FloatArray
    shift: FloatArray
    scale: FloatArray

    def log_probability(self, X: FloatArray) -> FloatArray:
        """Log-probabilities (n, classes) of new rows."""
        return np.asarray(log_softmax((X - self.shift) / self.scale @ self.W + self.bias, axis=1))


def plain_classifier(X: FloatArray, y: NDArray[np.intp], classes: int) -> Plain:
    """Fit a softmax of all columns, its ridge by evidence.

    Parameters
    ----------
    X : array (n, k)
        Columns; they are standardised here, and a constant one is left at zero.
    y : int array (n,)
        Classes.
    classes : int
        How many there are.
    """
    shift, scale = column_moments(X)
    scale = np.where(scale > 0, scale, 1.0)
    Z, n = (X - shift) / scale, len(X)
    T: FloatArray | None = None
    if Z.shape[1] > n:  # a ridge does not see a rotation: n coordinates hold all that the rows can tell
        T, R = qr(Z.T, mode="economic", check_finite=False)
        Z = np.ascontiguousarray(R.T)
    fixed = np.full(classes, _BIAS_SD**-2.0)
    surface = Softmax(Design(Z, extra=np.ones((n, 1))), y, classes, fixed, mean_square=1.0)
    ridge = evidence_ridge(surface, lambda *_: None).precision
    peak = climb(surface, np.append(np.full(surface.d, ridge), fixed), surface.theta, surface.start())
    W = peak.v[: surface.d].reshape(classes, Z.shape[1]).T
    return Plain(ridge, W if T is None else T @ W, peak.v[surface.d :], shift, scale)
