"""Log-densities along the predictor and their derivatives, written out, for problems made by hand."""

import numpy as np
from scipy.special import expit
from scipy.stats import t as student

BIAS_PRECISION, NU = 0.01, 4.0


def quiet(*_):
    """Progress that nobody follows."""


def bernoulli(y, eta):
    p = expit(eta)
    return y * eta - np.logaddexp(0, eta), y - p, -p * (1 - p), np.empty(0)


def student_t(y, eta):
    r, tail = y - eta, NU + (y - eta) ** 2
    return student.logpdf(r, NU), (NU + 1) * r / tail, (NU + 1) * (r**2 - NU) / tail**2, np.empty(0)
