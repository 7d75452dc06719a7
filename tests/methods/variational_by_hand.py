"""The variational relevance vector machine as in textbooks: one factor after another, and the bound term by term."""

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, expit, gammaln


class Textbook(NamedTuple):
    """Where the updates ended; ``rate`` and ``noise_rate`` are those of the Gamma factors."""

    mean: np.ndarray
    covariance: np.ndarray
    rate: np.ndarray
    noise_rate: float
    xi: np.ndarray
    bounds: list


def gamma_part(shape, rate, a, b):
    """E[log p] - E[log q] of a Gamma factor under a Gamma prior."""
    log, mean = digamma(shape) - np.log(rate), shape / rate
    prior = a * np.log(b) - gammaln(a) + (a - 1) * log - b * mean
    entropy = shape - np.log(rate) + gammaln(shape) + (1 - shape) * digamma(shape)
    return np.sum(prior + entropy)


def normal_part(mean, covariance, precision, log_precision):
    """E[log p(w)] - E[log q(w)] with E[alpha] and E[log alpha]."""
    square = mean**2 + np.diag(covariance)
    prior = 0.5 * np.sum(log_precision - np.log(2 * np.pi) - precision * square)
    return prior + 0.5 * (len(mean) * (1 + np.log(2 * np.pi)) + np.linalg.slogdet(covariance)[1])


def normal_rvm(Phi, t, fixed, hyper, noise, rate, rounds):
    """Of a normal likelihood; the last column has the fixed precision, ``rate`` is where q(alpha) starts."""
    (a, b), (c, d), n = hyper, noise, len(t)
    shape, noise_shape = a + 0.5, c + 0.5 * n
    noise_rate, bounds = noise_shape * np.var(t), []
    for _ in range(rounds):
        precision, beta = np.append(shape / rate, fixed), noise_shape / noise_rate
        covariance = np.linalg.inv(np.diag(precision) + beta * Phi.T @ Phi)
        mean = beta * covariance @ Phi.T @ t
        rate = b + 0.5 * (mean**2 + covariance.diagonal())[:-1]
        noise_rate = d + 0.5 * (np.sum((t - Phi @ mean) ** 2) + np.trace(Phi @ covariance @ Phi.T))
        precision, beta = np.append(shape / rate, fixed), noise_shape / noise_rate
        log_precision = np.append(digamma(shape) - np.log(rate), np.log(fixed))
        likelihood = 0.5 * n * (digamma(noise_shape) - np.log(noise_rate) - np.log(2 * np.pi)) - beta * (noise_rate - d)
        bounds.append(
            likelihood
            + normal_part(mean, covariance, precision, log_precision)
            + gamma_part(shape, rate, a, b)
            + gamma_part(noise_shape, noise_rate, c, d)
        )
    return Textbook(mean, covariance, rate, noise_rate, np.empty(0), bounds)


def logistic_rvm(Phi, y, fixed, hyper, rate, rounds, xi=None):
    """Of two classes, with Jaakkola and Jordan's bound of the logistic function."""
    (a, b), bounds = hyper, []
    shape, xi = a + 0.5, np.ones(len(y)) if xi is None else xi
    for _ in range(rounds):
        precision, curvature = np.append(shape / rate, fixed), np.tanh(0.5 * xi) / (2 * xi)
        covariance = np.linalg.inv(np.diag(precision) + (Phi.T * curvature) @ Phi)
        mean = covariance @ Phi.T @ (y - 0.5)
        rate = b + 0.5 * (mean**2 + covariance.diagonal())[:-1]
        xi = np.sqrt(np.einsum("ij,jk,ik->i", Phi, covariance + np.outer(mean, mean), Phi))
        log_precision = np.append(digamma(shape) - np.log(rate), np.log(fixed))
        likelihood = np.sum(np.log(expit(xi)) + (y - 0.5) * (Phi @ mean) - 0.5 * xi)  # at xi^2 = <eta^2>
        factors = normal_part(mean, covariance, np.append(shape / rate, fixed), log_precision)
        bounds.append(likelihood + factors + gamma_part(shape, rate, a, b))
    return Textbook(mean, covariance, rate, np.nan, xi, bounds)
