"""One-step evidence in plain dense algebra, for comparison."""

from itertools import pairwise

import numpy as np
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import expit, gammaln, log_expit


def logistic(eta, y):
    return log_expit(np.where(y == 1, eta, -eta)), y - expit(eta), -expit(eta) * expit(-eta)


def counts(eta, y):
    return y * eta - np.exp(eta) - gammaln(y + 1), y - np.exp(eta), -np.exp(eta)


def gauss(sigma):
    def terms(eta, y):
        z = (y - eta) / sigma
        return -0.5 * z**2 - np.log(sigma) - 0.5 * np.log(2 * np.pi), z / sigma, np.full_like(z, -(sigma**-2.0))

    return terms


class Hand:
    """The method as METHODS states it, with dense linear algebra, general optimisers and adaptive quadrature."""

    def __init__(self, terms, Phi, y, fixed=None, precision=(0.01,), offset=0.0, repeats=1.0):
        self.Phi, self.y, self.offset, self.repeats = Phi, np.asarray(y, dtype=float), offset, repeats
        self.fixed = np.ones((len(y), 1)) if fixed is None else fixed
        self.A, self.terms, self.d = np.hstack([Phi, self.fixed]), terms, Phi.shape[1]
        self.precision = np.asarray(precision, dtype=float)

    def look(self, v):
        value, first, second = self.terms(self.offset + self.A @ v, self.y)
        H = -(self.A * (self.repeats * second)[:, None]).T @ self.A
        return np.sum(self.repeats * value), self.A.T @ (self.repeats * first), H

    def climb(self, ridge, steps=100):
        v, prior = np.zeros(self.A.shape[1]), np.append(np.full(self.d, ridge), self.precision)
        for _ in range(steps):
            _, slope, H = self.look(v)
            v = v + np.linalg.solve(H + np.diag(prior), slope - prior * v)
        return v

    def best_fixed(self, w):
        v = np.append(w, np.zeros(len(self.precision)))
        for _ in range(100):
            _, slope, H = self.look(v)
            v[self.d :] += np.linalg.solve(
                H[self.d :, self.d :] + np.diag(self.precision), (slope[self.d :] - self.precision * v[self.d :])
            )
        return v

    def expand(self, v, *, keep_slope):
        """Curvatures, centres and directions of the quadratic at v, and its height with the fixed weights gone."""
        d, (value, slope, H) = self.d, self.look(v)
        inner = H[d:, d:] + np.diag(self.precision)
        S = H[:d, :d] - H[:d, d:] @ np.linalg.solve(inner, H[d:, :d])
        h, V = np.linalg.eigh(S)
        real = h > 1e-9 * h.max()
        h, Q = h[real][::-1], V[:, real].T[::-1]
        u, pull = Q @ v[:d], (Q @ slope[:d]) * keep_slope
        height = value + 0.5 * np.sum(np.log(self.precision)) - 0.5 * self.precision @ v[d:] ** 2
        height -= 0.5 * np.linalg.slogdet(inner)[1]
        return h, np.abs(u + pull / h), height + 0.5 * np.sum(pull**2 / h)


def log_integral(h, u, alpha, prior):
    def inside(x):
        density = {
            "gaussian": lambda: np.sqrt(alpha / (2 * np.pi)) * np.exp(-0.5 * alpha * x**2),
            "laplace": lambda: alpha / 4 * np.exp(-0.5 * alpha * abs(x)),
        }[prior]()
        return np.exp(-0.5 * h * (x - u) ** 2) * density

    width = 12 / np.sqrt(h)
    pieces = sorted({min(u - width, -width), 0.0, u, u + width})
    return np.log(sum(quad(inside, a, b, epsabs=0, epsrel=1e-11)[0] for a, b in pairwise(pieces)))


def best(h, u, prior):
    """The greatest log integral over alpha, and where."""
    if h * u**2 <= 1:
        return -0.5 * h * u**2, np.inf
    near = np.log(np.sqrt(h) / u)
    found = minimize_scalar(lambda log: -log_integral(h, u, np.exp(log), prior), bracket=(near - 1, near + 1), tol=1e-9)
    return -found.fun, np.exp(found.x)


def agrees(evidence, h, u, height, prior="gaussian"):
    assert_allclose(evidence["h"], h, rtol=1e-6)
    assert_allclose(evidence["u_expansion"], u, rtol=1e-6, atol=1e-8)
    found = [best(*hu, prior) for hu in zip(h, u, strict=True)]
    assert_allclose(evidence["alpha"], [alpha for _, alpha in found], rtol=2e-4)  # a maximum by values: half the digits
    assert_allclose(evidence["log_evidence"], height + sum(value for value, _ in found), rtol=1e-8)


def at_mode(hand, evidence):
    """Slope of the log-likelihood along the directions kept, and along the fixed weights, at the reported mode."""
    Q = evidence["loading"].to_numpy()
    w = evidence["mode"].to_numpy()
    v = hand.best_fixed(w)
    assert_allclose(Q.T @ (Q @ w), w, atol=1e-9)
    return Q @ hand.look(v)[1][: hand.d], Q @ w
