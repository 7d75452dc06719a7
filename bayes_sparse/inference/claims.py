"""What a fit may claim of its terms: that chance is an unlikely explanation, and that no other column does as well."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, fdtrc

from bayes_sparse.common.types import FloatArray

__all__ = [
    "FALSE_FINDS",
    "UNDECIDED",
    "Claims",
    "chance_of",
    "least_score",
    "price_of",
    "score_of",
    "with_weaker_as_noise",
]

FALSE_FINDS = 0.05  # how often data without any signal may have a relevant term
UNDECIDED = 3.0  # nats: the data do not decide between a term and a column that would lose less than this in its place


@dataclass(frozen=True, eq=False)
class Claims:
    """What the data say of every basis function.

    Attributes
    ----------
    score : array (M,)
        Squared z-score with the other terms in: q^2 / s; of columns that share a precision the chi-squared of their
        group, on each of them. NaN where it is not known.
    chance : array (M,)
        How probable it is that the best of all columns scores as high if none has anything to do with the target.
    exchanges : list of (int, int, float)
        A term kept, a column left out that would pay in its place, and the nats lost by that, least first.
    """

    score: FloatArray
    chance: FloatArray
    exchanges: list[tuple[int, int, float]]


def chance_of(score: FloatArray, columns: int, left: float = np.inf, degrees: FloatArray | float = 1.0) -> FloatArray:
    """Probability that the largest score of so many null columns, or groups of them, is as hard to reach as this.

    Parameters
    ----------
    score : array
        Squared z-scores, or chi-squareds of groups.
    columns : int
        How many were offered.
    left : float
        Degrees of freedom left for the noise, where that is estimated; infinite where there is none to estimate.
    degrees : array or float
        Degrees of freedom of each score.
    """
    tail = fdtrc(degrees, left, score / degrees) if np.isfinite(left) else chdtrc(degrees, score)
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(columns * np.log1p(-tail)))


def with_weaker_as_noise(score: FloatArray, left: float, degrees: FloatArray | float = 1.0) -> FloatArray:
    """Scores of terms with the noise as it would be estimated without those that score less.

    They are squared z-scores, or chi-squareds of groups with so many degrees of freedom.

    Terms picked by chance take more out of the residuals than their degrees of freedom, and so make the noise look
    smaller than it is, and each other larger. A strong term must not owe anything to weaker ones that chance may
    explain; what it loses by them where they are real does not matter to it.
    """
    order = np.argsort(-score, kind="stable")
    surplus = np.maximum(score - degrees, 0.0)[order]
    weaker = np.append(np.cumsum(surplus[::-1])[::-1][1:], 0.0)[: len(score)]
    out = score.copy()
    out[order] /= 1 + weaker / left
    return out


def score_of(Q: FloatArray, S: FloatArray) -> FloatArray:
    """Squared z-scores from quality and sparsity; zero of columns that have nothing to add."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(S > 0, Q**2 / S, 0.0)


def price_of(columns: int) -> float:
    """Nats a degree of freedom costs where so many columns are offered that each mean something.

    M of them that have nothing to do with the target reach, by chance, a largest squared z-score of about
    2 log M - log log M; a column enters when its own exceeds 1 + 2c, and c is set to make this exceed the former by
    one.
    """
    log_m = float(np.log(max(columns, 3)))
    return float(log_m - 0.5 * np.log(log_m))


def least_score(columns: int) -> float:
    """The squared z-score that a column needs to pay for itself at that price."""
    return 1 + 2 * price_of(columns)
