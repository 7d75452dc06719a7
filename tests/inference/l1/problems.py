"""Problems with a likelihood written out by hand, and the conditions of a minimum in plain numpy."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_array
from scipy.special import expit, gammaln

from bayes_sparse.inference.l1.lasso import ColumnStore, Lasso
from bayes_sparse.inference.l1.path import Path
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.problem import Problem
from bayes_sparse.problem.sparse_design import SparseDesign
from tests.support import NONE, bernoulli, poisson

LIKELIHOODS = ["bernoulli", "poisson", "normal", "negative_binomial"]


def negative_binomial(y, eta, theta):
    a = np.exp(theta[0])
    part = expit(eta - theta[0])  # mean / (mean + a)
    log_sum = np.logaddexp(eta, theta[0])
    value = gammaln(y + a) - gammaln(a) - gammaln(y + 1) + a * (theta[0] - log_sum) + y * (eta - log_sum)
    return value, y - (a + y) * part, -(a + y) * part * (1 - part), NONE


def normal(y, eta, theta):
    z, precision = y - eta, np.exp(-2 * theta[0])
    return -0.5 * z**2 * precision - theta[0] - 0.5 * np.log(2 * np.pi), z * precision, 0 * z - precision, NONE


TERMS = {"bernoulli": bernoulli, "poisson": poisson, "normal": normal, "negative_binomial": negative_binomial}


@dataclass(frozen=True)
class Case:
    """A problem, and the same in dense columns A (n, width) for arithmetic by hand."""

    name: str
    problem: Problem
    A: np.ndarray
    precision: np.ndarray

    @property
    def repeats(self):
        return np.ones(len(self.A)) if self.problem.weights is None else self.problem.weights

    def known(self, theta):
        return np.log([self.problem.sigma]) if self.name == "normal" and not len(theta) else theta

    def likelihood(self, w, theta=NONE):
        eta = self.problem.offset + self.A @ w
        return float(self.repeats @ TERMS[self.name](self.problem.y, eta, self.known(theta))[0])

    def height(self, w, theta=NONE):
        """Log-likelihood, less the normal prior of the unpriced weights."""
        return self.likelihood(w, theta) - 0.5 * float(self.precision @ w**2)

    def slope(self, w, theta=NONE):
        eta = self.problem.offset + self.A @ w
        first = TERMS[self.name](self.problem.y, eta, self.known(theta))[1]
        return self.A.T @ (self.repeats * first) - self.precision * w

    def objective(self, lam, w, theta=NONE):
        return -self.height(w, theta) + lam * np.abs(w[self.problem.free]).sum()

    def violation(self, lam, w, theta=NONE):
        """How far w is from the conditions of a minimum, relative to lambda."""
        slope, free = self.slope(w, theta), self.problem.free
        lack = np.where(w == 0, np.maximum(np.abs(slope) - lam, 0), np.abs(slope - lam * np.sign(w)))
        return float(np.where(free, lack, np.abs(slope)).max() / lam)

    def full(self, place):
        """Weights of all columns, of a spot or a point."""
        w = np.zeros(self.A.shape[1])
        w[place.index] = place.w
        return w

    def lasso(self, theta=NONE, allowed=None):
        problem = self.problem
        allowed = problem.free if allowed is None else allowed
        columns = ColumnStore(problem.design)
        return Lasso(
            columns, lambda eta: problem.terms(eta, theta), problem.offset, problem.free, self.precision, allowed
        )

    def path(self):
        return Path(self.problem)


def case(
    name, X, y, *, bias=True, unpriced=(), precision=0.0, sigma=None, standardise=False, sparse=False, **more
):  # fmt: skip
    """A case from columns and targets; a ``sigma`` makes the noise known, the others' theta starts at a guess."""
    n, M = X.shape
    shift, scale = (X.mean(axis=0), X.std(axis=0)) if standardise else (None, None)
    extra = np.ones((n, int(bias)))
    design = SparseDesign(csc_array(X), shift, scale, extra) if sparse else Design(X, shift, scale, extra)
    free = np.arange(M + bias) < M
    free[list(unpriced)] = False
    searched = name == "negative_binomial" or (name == "normal" and sigma is None)
    theta = np.array([np.log(np.std(y)) if name == "normal" else 0.5]) if searched else NONE
    problem = Problem(
        design=design,
        y=y,
        free=free,
        fixed_precision=np.full((~free).sum(), float(precision)),
        pointwise=lambda eta, theta: TERMS[name](y, eta, theta),
        offset=more.pop("offset", np.zeros(n)),
        weights=more.pop("weights", None),
        theta=theta,
        theta_bounds=np.column_stack([theta - 14.0, theta + 14.0]),
        normal=name == "normal",
        sigma=1.0 if sigma is None else sigma,
    )
    A = np.column_stack([(X - shift) / scale if standardise else X, extra])
    return Case(name, problem, A, np.where(free, 0.0, float(precision)))


def draw(name, n=60, M=8, seed=0, effect=1.0, alike=0.3, noise=1.0, active=None):
    """ColumnStore with correlation ``alike``, the first third of them with an effect; and targets."""
    rng = np.random.default_rng(seed)
    X = np.sqrt(1 - alike) * rng.standard_normal((n, M)) + np.sqrt(alike) * rng.standard_normal((n, 1))
    k = max(1, M // 3) if active is None else active
    eta = 0.3 + X[:, :k] @ (effect * rng.uniform(0.5, 1.5, k) * rng.choice([-1, 1], k))
    mean = np.exp(np.minimum(eta, 3.0))
    y = {
        "bernoulli": lambda: (rng.random(n) < expit(eta)).astype(float),
        "poisson": lambda: rng.poisson(mean).astype(float),
        "normal": lambda: eta + noise * rng.standard_normal(n),
        "negative_binomial": lambda: rng.negative_binomial(2, 2 / (2 + mean)).astype(float),
    }[name]()
    return X, y
