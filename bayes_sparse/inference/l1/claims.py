"""What a point on an L1 path may claim of its terms.

The penalty shrinks every weight, so z-scores are not those of the weights as they are: one Newton step without the
penalty, on the support, is what the data alone say of them to second order. The same quadratic says what every other
column would score beside the support, and in the place of a term.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from bayes_sparse.inference.claims import UNDECIDED, Claims, chance_of, least_score, score_of, with_weaker_as_noise
from bayes_sparse.inference.evidence.exchanges import largest
from bayes_sparse.inference.l1.path import Point
from bayes_sparse.problem.gaussian import cholesky

__all__ = ["claims"]

_EACH = 5  # rivals looked at in the place of each term


def claims(point: Point, *, rivals: bool) -> Claims:
    """Scores beside the support, and, if wanted, exchanges on it by what the log-likelihood loses."""
    problem, index, k = point.path.problem, point.index, len(point.index)
    design, columns = problem.design, int(problem.free.sum())
    terms = problem.terms(point.spot.eta, point.theta)
    C, squares, gradient = problem.active(index).scan(terms)
    fixed = point.path.precision[index]
    L = cholesky(C[index] + np.diag(fixed)) if k else np.empty((0, 0))
    half = lapack.dtrtri(L, lower=1)[0].T if k else L
    Sigma = half @ half.T
    w = point.w + Sigma @ (gradient[index] - fixed * point.w)
    overlap = C @ Sigma
    S = squares - np.einsum("ij,ij->i", overlap, C)
    S[1e-9 * squares > S] = 0.0  # carried by the support already, to all digits
    Q = gradient - overlap @ (gradient[index] - fixed * point.w)
    score = score_of(Q, S)
    score[index] = w**2 / Sigma.diagonal()
    left, judged = np.inf, score.copy()
    if point.path.own_noise:
        left, priced = max(problem.count - k, 1.0), index[problem.free[index]]
        judged[priced] = with_weaker_as_noise(score[priced], left)
    found: list[tuple[int, int, float]] = []
    for i in np.flatnonzero(problem.free[index]).tolist() if rivals else []:
        r, variance = overlap[:, i], Sigma[i, i]
        instead = score_of(Q + r * (w[i] / variance), S + r**2 / variance)
        instead[index], instead[~point.path.allowed] = 0.0, 0.0
        for j in largest(instead, _EACH):
            loss = 0.5 * (score[index[i]] - instead[j])
            if instead[j] > least_score(columns) and loss < 2 * UNDECIDED:
                found.append((int(index[i]), j, float(loss)))
    found.sort(key=lambda exchange: exchange[2])
    return Claims(score[: design.M], chance_of(judged, columns, left)[: design.M], found)
