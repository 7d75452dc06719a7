"""Problems of several predictors with their columns written out, and densities with their derivatives by hand."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_softmax, softmax
from scipy.stats import norm

from bayes_sparse.problem.design import Design
from bayes_sparse.problem.several_predictors import SeveralProblem

NONE = np.empty(0)
BIAS = 0.01


def mean_and_log_sd(y):
    """A normal density along its mean and, times ``exp(theta)`` where there is one, the log of its sd."""

    def pointwise(eta, theta):
        c = np.exp(theta[0]) if len(theta) else 1.0
        r, s = y - eta[0], c * eta[1]
        with np.errstate(over="ignore", invalid="ignore"):  # far out on the way the density is zero
            v = np.exp(-2 * s)
            value = -0.5 * r**2 * v - s - 0.5 * np.log(2 * np.pi)
            first = np.stack([r * v, c * (r**2 * v - 1)])
            mixed = -2 * c * r * v
            second = np.array([[-v, mixed], [mixed, -2 * c**2 * r**2 * v]])
            a, b, d = 2 * c * v, 4 * c**2 * r * v, 4 * c**3 * r**2 * v
            third = np.array([[[0 * v, a], [a, b]], [[a, b], [b, d]]])
        return value, first, second, third

    return pointwise


def classes(y, C):
    """A softmax along the predictors of C classes."""
    onehot, eye = np.eye(C)[:, y], np.eye(C)

    def pointwise(eta, theta):
        value, mu = log_softmax(eta, axis=0)[y, np.arange(len(y))], softmax(eta, axis=0)
        spread = np.einsum("an,ab->abn", mu, eye) - np.einsum("an,bn->abn", mu, mu)
        third = np.einsum("acn,ab->abcn", spread, eye)
        third -= np.einsum("acn,bn->abcn", spread, mu) + np.einsum("an,bcn->abcn", mu, spread)
        return value, onehot - mu, -spread, -third

    return pointwise


def log_density(y, eta, theta=NONE):
    """The normal one from scipy."""
    return norm.logpdf(y, eta[0], np.exp((np.exp(theta[0]) if len(theta) else 1.0) * eta[1]))


@dataclass(frozen=True)
class Case:
    """A normal regression with its mean and log sd linear, and its columns written out for arithmetic by hand."""

    problem: SeveralProblem
    J: np.ndarray  # d eta / d w, (n, 2, width)

    @property
    def repeats(self):
        return np.ones(len(self.J)) if self.problem.weights is None else self.problem.weights

    def eta(self, w, index=slice(None)):
        return self.problem.offset + np.stack([self.J[:, k][:, index] @ w for k in range(2)])

    def likelihood(self, w, index=slice(None), theta=NONE):
        return self.repeats @ log_density(self.problem.y, self.eta(w, index), theta)

    def gradient(self, w, index=slice(None), theta=NONE):
        slopes = self.problem.pointwise(self.eta(w, index), theta)[1]
        return sum(count * self.J[i][:, index].T @ slopes[:, i] for i, count in enumerate(self.repeats))

    def hessian(self, w, index=slice(None), theta=NONE):
        """H of the negative log-likelihood, an observation at a time."""
        second = self.problem.pointwise(self.eta(w, index), theta)[2]
        return sum(
            -count * self.J[i][:, index].T @ second[:, :, i] @ self.J[i][:, index]
            for i, count in enumerate(self.repeats)
        )

    def evidence(self, w, alpha, index=slice(None), theta=NONE):
        """Laplace's log evidence as the textbooks write it, for a mode w."""
        log_prior = 0.5 * np.sum(np.log(alpha / (2 * np.pi))) - 0.5 * alpha @ w**2
        sign, log_determinant = np.linalg.slogdet(self.hessian(w, index, theta) + np.diag(alpha))
        assert sign > 0
        return self.likelihood(w, index, theta) + log_prior + 0.5 * len(w) * np.log(2 * np.pi) - 0.5 * log_determinant

    def terms(self, w, index, theta=NONE):
        return self.problem.derivatives(self.eta(w, index), theta)

    def precisions(self, seed=1, low=-1.0, high=1.0):
        """Precisions of all columns, those of the extra ones as declared."""
        M = self.problem.design.M
        return np.append(10 ** np.random.default_rng(seed).uniform(low, high, M), self.problem.fixed_precision)

    def weighing(self, weights):
        return replace(self, problem=replace(self.problem, weights=weights))


def stacked(J):
    """Columns written out (n, K, width) as the rows of a design: predictor after predictor."""
    return np.ascontiguousarray(J.transpose(1, 0, 2)).reshape(-1, J.shape[2])


def several(J, y, pointwise, *, fixed=2, **given):
    """A problem whose last columns are fixed."""
    n, K, width = J.shape
    rows, M = stacked(J), width - fixed
    return SeveralProblem(
        **{
            "design": Design(np.ascontiguousarray(rows[:, :M]), extra=rows[:, M:]),
            "predictors": K,
            "y": y,
            "free": np.arange(width) < M,
            "fixed_precision": np.full(fixed, BIAS),
            "pointwise": pointwise,
            "offset": np.zeros((K, n)),
        }
        | given
    )


def written_out(X, Z, shared, seed):
    """Columns of the mean alone, of the log sd alone, in both, and a bias of each."""
    n = len(X)
    one, none = np.ones((n, 1)), np.zeros
    both = np.random.default_rng(seed).standard_normal((2, n, shared))
    mean = np.hstack([X, none(Z.shape), both[0], one, none((n, 1))])
    log_sd = np.hstack([none(X.shape), Z, 0.5 * both[1], none((n, 1)), one])
    return np.stack([mean, log_sd], axis=1)


def make(*, n=60, p=4, q=3, shared=2, weighted=False, seed=0, nuisance=False):
    """Random columns, some of them in both predictors; targets that follow the first of each."""
    rng = np.random.default_rng(seed)
    X, Z = rng.standard_normal((n, p)), rng.standard_normal((n, q))
    y = X[:, 0] - 0.5 * X[:, 1] + np.exp(0.6 * Z[:, 0] - 0.3) * rng.standard_normal(n)
    J = written_out(X, Z, shared, seed + 100)
    weights = None
    if weighted:
        weights = rng.uniform(0.2, 2.5, n)
        weights[rng.choice(n, n // 5, replace=False)] = 0.0
    given = {"theta": np.array([0.1]), "theta_bounds": np.array([[-3.0, 3.0]])} if nuisance else {}
    offset = np.stack([np.linspace(-0.2, 0.2, n), np.linspace(0.1, -0.1, n)])
    return Case(several(J, y, mean_and_log_sd(y), offset=offset, weights=weights, **given), J)


def stencil(f, x, h):
    """Gradient (or Jacobian, by rows) by differences of fourth order."""
    steps = h * np.eye(len(x))
    return np.array([(8 * (f(x + s) - f(x - s)) - (f(x + 2 * s) - f(x - 2 * s))) / (12 * h) for s in steps])
