"""Problems whose columns share precisions, for the tests of several rooms."""

import numpy as np
from scipy.special import expit, gammaln

from bayes_sparse.problem.design import Design
from bayes_sparse.problem.problem import Problem


def pointwise_of(family, y):
    """Log-density and three derivatives along the predictor."""

    def normal(eta, theta):
        raise AssertionError("a normal likelihood needs nothing but cross-products")

    def bernoulli(eta, theta):
        p = expit(eta)
        return y * eta - np.logaddexp(0, eta), y - p, -p * (1 - p), -p * (1 - p) * (1 - 2 * p)

    def poisson(eta, theta):
        rate = np.exp(eta)
        return y * eta - rate - gammaln(y + 1), y - rate, -rate, -rate

    return {"normal": normal, "bernoulli": bernoulli, "poisson": poisson}[family]


def problem_of(family, X, y, groups, *, sigma=None, bias=True):
    """With a bias of precision 0.01, and noise to be found unless it is given."""
    n, M = X.shape
    q = int(bias)
    noise = {}
    if family == "normal":
        noise = {"normal": True, "sigma": 1.0 if sigma is None else sigma}
        if sigma is None:
            noise |= {"theta": np.log([np.std(y)]), "theta_bounds": np.array([[-12.0, 5.0]])}
    return Problem(
        design=Design(X, extra=np.ones((n, q))),
        y=y,
        free=np.arange(M + q) < M,
        fixed_precision=np.full(q, 0.01),
        pointwise=pointwise_of(family, y),
        offset=np.zeros(n),
        groups=None if groups is None else np.append(groups, np.zeros(q, dtype=int)),
        **noise,
    )


def targets(family, eta, rng):
    """Drawn from a likelihood at predictors."""
    if family == "normal":
        return eta + rng.standard_normal(len(eta))
    if family == "bernoulli":
        return (rng.random(len(eta)) < expit(eta)).astype(float)
    return rng.poisson(np.exp(0.5 * eta)).astype(float)


LABELS = np.append(np.repeat(np.arange(6), [3, 4, 5, 3, 4, 5]), np.arange(10, 20))
MATTER = (1, 4, 12, 17)


def simulated(family, seed, n=300):
    """Six groups of three to five columns, of which two matter, and ten single columns, of which two matter."""
    rng = np.random.default_rng(seed)
    X, M = rng.standard_normal((n, len(LABELS))), len(LABELS)
    w = np.where(np.isin(LABELS, MATTER), rng.choice([-1.0, 1.0], M) * rng.uniform(0.5, 0.8, M), 0.0)
    return problem_of(family, X, targets(family, X @ w, rng), LABELS)
