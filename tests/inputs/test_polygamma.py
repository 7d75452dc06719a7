"""Polygamma functions in compiled code: with forty digits, against scipy, and inside the density of a share."""

import mpmath
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose
from scipy.special import polygamma as of_scipy

from bayes_sparse.inputs.compiled import elementwise_mode
from bayes_sparse.inputs.polygamma import polygamma
from tests.support import UNCOMPILED

AT = np.array([1e-8, 1e-3, 0.1, 0.5, 1.0, 1.4616, 3.7, 14.99, 15.0, 16.0, 17.01, 40.0, 1e3, 1e8])


@pytest.mark.quick
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_with_forty_digits(n):
    with mpmath.workdps(40):
        truth = [float(mpmath.polygamma(n, mpmath.mpf(float(x)))) for x in AT]
    assert_allclose([polygamma(n, float(x)) for x in AT], truth, rtol=4e-15)


@pytest.mark.quick
def test_against_scipy():
    for n in (1, 2, 3):
        assert_allclose([polygamma(n, float(x)) for x in AT], of_scipy(n, AT), rtol=1e-13)


@pytest.mark.quick
@pytest.mark.parametrize("x", [0.0, -0.5, -3.0, np.nan])
def test_elsewhere_it_is_not_a_number(x):
    assert np.isnan(polygamma(1, x))


def test_compiled_code_uses_it():
    """The third derivative of the density of a share, as PyTensor has it without a compiler."""
    eta, y = pt.vector("eta"), pt.vector("y")
    a, b = pt.exp(eta), 2.5
    density = (a - 1) * pt.log(y) + (b - 1) * pt.log1p(-y) + pt.gammaln(a + b) - pt.gammaln(a)
    terms = [density]
    for _ in range(3):
        terms.append(pytensor.grad(terms[-1].sum(), eta))
    compiled, plain = (
        pytensor.function([eta, y], terms[3], mode=mode, on_unused_input="ignore")
        for mode in (elementwise_mode(), UNCOMPILED)
    )
    at = np.linspace(-2.0, 3.0, 40), np.linspace(0.05, 0.95, 40)
    assert_allclose(compiled(*at), plain(*at), rtol=1e-11, atol=1e-12)
