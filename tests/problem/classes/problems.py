"""Softmax problems with their columns written out, and the likelihood from its definition, an observation at a time."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_softmax, softmax

from bayes_sparse.problem.classes import ClassDesign, ClassProblem
from bayes_sparse.problem.design import Design

NONE = np.empty(0)
BIAS = 0.01


@dataclass(frozen=True)
class Case:
    """A problem, and its columns written out for arithmetic by hand."""

    problem: ClassProblem
    J: np.ndarray  # d eta / d w, (n, C, width)

    @property
    def repeats(self):
        return np.ones(len(self.J)) if self.problem.weights is None else self.problem.weights

    def likelihood(self, w, index=slice(None)):
        """Weighted log-likelihood of some columns' weights."""
        total = 0.0
        for i, (count, y) in enumerate(zip(self.repeats, self.problem.y, strict=True)):
            total += count * log_softmax(self.J[i][:, index] @ w)[y]
        return total

    def gradient(self, w, index=slice(None)):
        total = 0.0
        for i, (count, y) in enumerate(zip(self.repeats, self.problem.y, strict=True)):
            onehot = np.arange(self.J.shape[1]) == y
            total = total + count * self.J[i][:, index].T @ (onehot - softmax(self.J[i][:, index] @ w))
        return total

    def hessian(self, w, index=slice(None)):
        """H of the negative log-likelihood: ``J_i' (diag(mu_i) - mu_i mu_i') J_i`` summed."""
        total = 0.0
        for i, count in enumerate(self.repeats):
            own = self.J[i][:, index]
            mu = softmax(own @ w)
            total = total + count * own.T @ (np.diag(mu) - np.outer(mu, mu)) @ own
        return total

    def evidence(self, w, alpha, index=slice(None)):
        """Laplace's log evidence as the textbooks write it, for a mode w."""
        log_prior = 0.5 * np.sum(np.log(alpha / (2 * np.pi))) - 0.5 * alpha @ w**2
        sign, log_determinant = np.linalg.slogdet(self.hessian(w, index) + np.diag(alpha))
        assert sign > 0
        return self.likelihood(w, index) + log_prior + 0.5 * len(w) * np.log(2 * np.pi) - 0.5 * log_determinant

    def terms(self, w, index):
        """What the problem says at some columns' weights."""
        return self.problem.derivatives(self.J[:, :, index] @ w, NONE)

    def precisions(self, seed=1, low=-1.0, high=1.0):
        """Precisions of all columns, those of the extra ones as declared."""
        design = self.problem.design
        free = 10 ** np.random.default_rng(seed).uniform(low, high, design.M)
        return np.append(free, self.problem.fixed_precision)

    def weighing(self, weights):
        return replace(self, problem=replace(self.problem, weights=weights))


def written_out(columns, extra):
    """``d eta / d w``: the columns of class 0, of class 1 ..., then each extra column for all classes."""
    n, C, q = len(extra), len(columns), extra.shape[1]
    J = np.zeros((n, C, sum(X.shape[1] for X in columns) + C * q))
    start = 0
    for c, X in enumerate(columns):
        J[:, c, start : start + X.shape[1]] = X
        start += X.shape[1]
    for j in range(q):
        for c in range(C):
            J[:, c, start + j * C + c] = extra[:, j]
    return J


def draw_classes(eta, rng):
    """A class an observation; the first ones in turn, so that none is empty."""
    y = np.array([rng.choice(len(p), p=p) for p in softmax(eta, axis=1)])
    C = eta.shape[1]
    y[:C] = np.arange(C)
    return y


def case(columns, y, *, q=1, weights=None, bias=BIAS, extra=None):
    """A problem from the columns of each class; the same array for every class makes them shared."""
    n, C = columns[0].shape[0], len(columns)
    extra = np.column_stack([np.ones(n), np.linspace(-1, 1, n)])[:, :q] if extra is None else extra
    if all(X is columns[0] for X in columns):
        designs = (Design(columns[0], extra=extra),) * C
    else:
        designs = tuple(Design(X, extra=extra) for X in columns)
    problem = ClassProblem(ClassDesign(designs), np.asarray(y), np.full(C * extra.shape[1], bias), weights)
    return Case(problem, written_out(columns, extra))


def make(kind="own", *, n=40, C=3, M=4, widths=None, q=1, weighted=False, seed=0, effect=1.0):
    """Random columns, shared or each class's own with different widths; targets that follow the first of them."""
    rng = np.random.default_rng(seed)
    if kind == "shared":
        X = rng.standard_normal((n, M))
        columns = [X] * C
    else:
        widths = [M + (-1) ** c * (c % 3) for c in range(C)] if widths is None else widths
        columns = [rng.standard_normal((n, width)) for width in widths]
    signal = [X[:, : min(2, X.shape[1])] @ rng.standard_normal(min(2, X.shape[1])) for X in columns]
    y = draw_classes(effect * np.stack(signal, axis=1), rng)
    weights = None
    if weighted:
        weights = rng.uniform(0.2, 2.5, n)
        weights[rng.choice(n, n // 5, replace=False)] = 0.0
    return case(columns, y, q=q, weights=weights)


def stencil(f, x, h):
    """Gradient (or Jacobian, by rows) by differences of fourth order."""
    rows = []
    for j in range(len(x)):
        step = np.zeros(len(x))
        step[j] = h
        rows.append((8 * (f(x + step) - f(x - step)) - (f(x + 2 * step) - f(x - 2 * step))) / (12 * h))
    return np.array(rows)
