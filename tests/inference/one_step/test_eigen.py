"""Eigen-coordinates: a product of one-dimensional integrals is the exact evidence of a normal likelihood."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal
from scipy.stats import t as student

from bayes_sparse.inference.one_step.eigen import Profile, eigen_coordinates
from bayes_sparse.inference.one_step.expansion import expand
from bayes_sparse.inference.priors import Gaussian, Laplace
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.problem import Problem
from bayes_sparse.problem.surfaces import Linear

pytestmark = pytest.mark.quick

SIGMA, NU = 0.7, 4.0
FIXED = {0: np.empty(0), 1: np.array([0.04]), 2: np.array([0.04, 0.3])}


def normal_surface(n=30, M=4, q=1, seed=0):
    """Normal noise of known size, M free columns and q fixed ones."""
    rng = np.random.default_rng(seed)
    Phi = rng.standard_normal((n, M)) * rng.uniform(0.1, 1, M)
    Z = np.column_stack([np.ones(n), rng.standard_normal(n)])[:, :q]
    offset = rng.standard_normal(n)
    y = offset + Phi[:, :2].sum(axis=1) + Z.sum(axis=1) + SIGMA * rng.standard_normal(n)
    problem = Problem(
        design=Design(Phi, extra=Z),
        y=y,
        free=np.arange(M + q) < M,
        fixed_precision=FIXED[q],
        pointwise=lambda eta, theta: (),
        offset=offset,
        normal=True,
        sigma=SIGMA,
    )
    return Linear(problem, scale_free=False), Phi, Z


def at_zero(surface):
    quadratic = expand(surface, "zero", 1e-2, lambda *_: None)
    return quadratic, eigen_coordinates(quadratic, surface.fixed_precision(np.empty(0)))


def exact(surface, Phi, Z, Q, alpha):
    """Log-density of y with every normal weight integrated out at once."""
    kept = np.isfinite(alpha)
    C = SIGMA**2 * np.eye(surface.n) + (Z / FIXED[surface.q]) @ Z.T
    C += (Phi @ Q[kept].T / alpha[kept]) @ (Phi @ Q[kept].T).T
    return multivariate_normal.logpdf(surface.problem.y - surface.problem.offset, cov=C)


@pytest.mark.parametrize("q", [0, 1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_the_product_of_integrals_is_the_exact_evidence(seed, q):
    surface, Phi, Z = normal_surface(q=q, seed=seed)
    _, eigen = at_zero(surface)
    rng = np.random.default_rng(seed)
    choices = (
        Gaussian().best(eigen.h, eigen.u),
        10 ** rng.uniform(-3, 3, 4),
        np.full(4, np.inf),
        [1, np.inf, 2, np.inf],
    )
    for alpha in map(np.asarray, choices):
        product = eigen.height + Gaussian().log_integral(eigen.h, eigen.u, alpha).sum()
        assert_allclose(product, exact(surface, Phi, Z, eigen.Q, alpha), rtol=1e-11)


def test_columns_outnumber_rows():
    surface, Phi, Z = normal_surface(n=12, M=30)
    narrow, T = surface.reduced()
    _, eigen = at_zero(narrow)
    alpha = Gaussian().best(eigen.h, eigen.u)
    assert 0 < np.isfinite(alpha).sum() < 12
    product = eigen.height + Gaussian().log_integral(eigen.h, eigen.u, alpha).sum()
    assert_allclose(product, exact(surface, Phi, Z, eigen.Q @ T, alpha), rtol=1e-11)
    _, direct = at_zero(surface)
    assert_allclose(direct.h, eigen.h, rtol=1e-9)
    assert_allclose(direct.u, eigen.u, atol=1e-9)
    assert_allclose(direct.Q, eigen.Q @ T, atol=1e-8)
    assert (eigen.flat, direct.flat) == (0, 18)


def test_the_best_alpha_maximises_the_exact_evidence():
    pruned = found = 0
    for seed in range(8):
        surface, Phi, Z = normal_surface(M=5, seed=seed)
        _, eigen = at_zero(surface)
        best = Gaussian().best(eigen.h, eigen.u)
        top = exact(surface, Phi, Z, eigen.Q, best)
        for i, alpha in enumerate(best):
            others = (
                [0.97 * alpha, 1.03 * alpha, np.inf] if np.isfinite(alpha) else eigen.h[i] * 10.0 ** np.arange(-3, 6)
            )
            for other in others:
                moved = best.copy()
                moved[i] = other
                assert exact(surface, Phi, Z, eigen.Q, moved) < top
        pruned, found = pruned + np.isinf(best).sum(), found + np.isfinite(best).sum()
    assert pruned > 5
    assert found > 15


def nodes(eigen, alpha, i):
    """Gauss-Legendre on both sides of zero, as far as the likelihood or the prior reaches: 1e-14 is left out."""
    x, weight = np.polynomial.legendre.leggauss(120)
    ends = [min(eigen.u[i] - 10 / np.sqrt(eigen.h[i]), -1e-3), 0.0, eigen.u[i] + 10 / np.sqrt(eigen.h[i])]
    u = np.concatenate([0.5 * (b - a) * x + 0.5 * (a + b) for a, b in pairwise(ends)])
    w = np.concatenate([0.5 * (b - a) * weight for a, b in pairwise(ends)])
    return u, w * alpha[i] / 4 * np.exp(-alpha[i] * np.abs(u) / 2)


@pytest.mark.parametrize("q", [0, 1, 2])
def test_laplace_priors_against_a_double_integral(q):
    """Over two directions, by quadrature, with the fixed weights inside the covariance of y."""
    surface, Phi, Z = normal_surface(M=2, q=q, seed=3)
    _, eigen = at_zero(surface)
    C = SIGMA**2 * np.eye(surface.n) + (Z / FIXED[q]) @ Z.T
    t = surface.problem.y - surface.problem.offset
    for alpha in (Laplace().best(eigen.h, eigen.u), np.array([0.5, 3.0]), np.array([8.0, 0.1])):
        assert np.isfinite(alpha).all()
        (u, a), (v, b) = nodes(eigen, alpha, 0), nodes(eigen, alpha, 1)
        grid = np.stack(np.meshgrid(u, v, indexing="ij"), axis=-1)
        density = np.exp(multivariate_normal.logpdf(t - grid @ (Phi @ eigen.Q.T).T, cov=C))
        product = eigen.height + Laplace().log_integral(eigen.h, eigen.u, alpha).sum()
        assert_allclose(product, np.log(a @ density @ b), rtol=1e-9)


def test_coordinates():
    """Eigenvectors of the Hessian with the bias profiled out, the most curved first, all pointing to the centre."""
    surface, Phi, Z = normal_surface(M=6)
    quadratic, eigen = at_zero(surface)
    H = np.column_stack([Phi, Z]).T @ np.column_stack([Phi, Z]) / SIGMA**2
    S = H[:6, :6] - H[:6, 6:] @ np.linalg.solve(H[6:, 6:] + np.diag(FIXED[1]), H[6:, :6])
    assert_allclose(eigen.h, np.linalg.eigvalsh(S)[::-1], rtol=1e-11)
    assert_allclose(eigen.Q @ eigen.Q.T, np.eye(6), atol=1e-13)
    assert_allclose(eigen.Q.T @ np.diag(eigen.h) @ eigen.Q, S, atol=1e-11)
    slope = np.column_stack([Phi, Z]).T @ (surface.problem.y - surface.problem.offset) / SIGMA**2
    centre = np.linalg.solve(H + np.diag(np.append(np.zeros(6), FIXED[1])), slope)
    assert_allclose(eigen.Q.T @ eigen.u, centre[:6], rtol=1e-9, atol=1e-9)
    assert np.all(eigen.u >= 0)
    profile = Profile.of(quadratic.H, 6, FIXED[1])
    assert_allclose(profile.S, S, rtol=1e-10, atol=1e-10)
    assert_allclose(profile.L @ profile.L.T, H[6:, 6:] + FIXED[1], rtol=1e-12)
    # The fixed weight where all free ones are zero, led along the link, arrives at the joint maximum.
    assert_allclose(quadratic.v[6:] - profile.link @ centre[:6], centre[6:], rtol=1e-9)


def test_where_the_slope_was_dropped_the_point_is_the_centre():
    surface, _, _ = normal_surface()
    quadratic = expand(surface, "ridge", 1e-2, lambda *_: None)
    eigen = eigen_coordinates(quadratic, FIXED[1])
    assert_allclose(eigen.Q.T @ eigen.u, quadratic.v[:4], atol=1e-13)


def test_equal_columns_leave_a_flat_direction():
    surface, Phi, _ = normal_surface(q=0)
    double = Linear(
        Problem(
            design=Design(np.column_stack([Phi, Phi[:, :1], 0 * Phi[:, :1]])),
            y=surface.problem.y,
            free=np.ones(6, dtype=bool),
            fixed_precision=np.empty(0),
            pointwise=lambda eta, theta: (),
            offset=surface.problem.offset,
            normal=True,
            sigma=SIGMA,
        )
    )
    _, eigen = at_zero(double)
    assert (len(eigen.h), eigen.flat, eigen.dropped) == (4, 2, 0)


def test_directions_that_curve_the_wrong_way_are_counted_and_left_out():
    dropped = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        Phi, n = rng.standard_normal((25, 5)), 25
        y = Phi[:, 0] + 3 * rng.standard_t(1.2, n)

        def pointwise(eta, theta, y=y):
            r, tail = y - eta, NU + (y - eta) ** 2
            return student.logpdf(r, NU), (NU + 1) * r / tail, (NU + 1) * (r**2 - NU) / tail**2, np.empty(0)

        design = Design(Phi, extra=np.ones((n, 1)))
        surface = Linear(
            Problem(design, y, np.arange(6) < 5, np.array([0.01]), pointwise, np.zeros(n)), scale_free=False
        )
        quadratic, eigen = at_zero(surface)
        whole = np.column_stack([Phi, np.ones(n)])
        H = (whole.T * -pointwise(whole @ quadratic.v, None)[2]) @ whole
        h = np.linalg.eigvalsh(H[:5, :5] - np.outer(H[:5, 5], H[5, :5]) / (H[5, 5] + 0.01))
        assert_allclose(eigen.h, h[h > 0][::-1], rtol=1e-9)
        assert (eigen.dropped, eigen.flat) == (np.sum(h < 0), 0)
        assert_allclose(eigen.Q @ eigen.Q.T, np.eye(len(eigen.h)), atol=1e-13)
        dropped += eigen.dropped
    assert dropped > 10


def test_nothing_free():
    surface, Phi, Z = normal_surface(M=0, q=2)
    _, eigen = at_zero(surface)
    assert_allclose(eigen.height, exact(surface, Phi, Z, np.empty((0, 0)), np.empty(0)), rtol=1e-11)
    assert (eigen.h.shape, eigen.Q.shape) == ((0,), (0, 0))
