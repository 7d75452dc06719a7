"""The papers' VGREVM and VLREVM: directions of Jaakkola's quadratic, by the textbook's rounds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bayes_sparse as bs

from .systems import BARE, BINARY, P, Z, fit

pytestmark = pytest.mark.quick


def textbook(rounds, ridge):
    """Curvatures and centres of the quadratic after so many rounds from xi = 0, the bias integrated out."""
    A, y, xi = np.column_stack([Z, np.ones(len(Z))]), np.asarray(BINARY, dtype=float), np.full(len(Z), 1e-6)
    prior = np.diag(np.append(np.full(P, ridge), 0.01))
    for _ in range(rounds):
        tight = np.tanh(xi / 2) / (2 * xi)
        H = A.T @ (tight[:, None] * A)
        Sigma = np.linalg.inv(H + prior)
        v = Sigma @ A.T @ (y - 0.5)
        xi = np.sqrt((A @ v) ** 2 + np.einsum("ij,jk,ik->i", A, Sigma, A))
    inner = H[P, P] + 0.01
    h, V = np.linalg.eigh(H[:P, :P] - np.outer(H[:P, P], H[P, :P]) / inner)
    return h[::-1], np.abs(V.T @ v[:P])[::-1]


@pytest.mark.parametrize(
    ("rounds", "ridge", "asked"),
    [(1, 0.0, {"steps": 1}), (10, 0.0, {"steps": 10}), (500, 1e-2, {"expansion": "ridge"})],
)
@pytest.mark.parametrize("system", ["GREVM", "LREVM"])
def test_directions_against_the_textbook(system, rounds, ridge, asked):
    """The early stop, and the well-posed one under the small ridge, where the rounds have come to their end."""
    tree = fit(system, (Z, BINARY), basis=BARE, approximation="variational", **asked)
    evidence, (h, u) = tree["evidence"], textbook(rounds, ridge * np.mean(Z**2))
    assert_allclose(evidence["h"], h, rtol=1e-5)
    assert_allclose(evidence["u_expansion"], u, rtol=1e-4, atol=1e-6)
    assert_array_equal(np.isfinite(evidence["alpha"]), h * u**2 > 1)
    if system == "GREVM":
        with np.errstate(divide="ignore"):
            assert_allclose(evidence["alpha"], np.where(h * u**2 > 1, h / (h * u**2 - 1), np.inf), rtol=1e-3)
    assert evidence.attrs["approximation"] == "variational"


@pytest.mark.filterwarnings("ignore:The quadratic at the expansion point:bayes_sparse.FitWarning")
def test_without_a_ridge_more_rounds_keep_more():
    """With as many kernels as rows every xi grows by about one per round for ever, and directions with it."""
    data = bs.datasets.two_gaussians(60, random_seed=3)
    asked = {"likelihood": "bernoulli", "basis": bs.basis.rbf(0.2), "approximation": "variational"}
    kept = [
        fit("GREVM", (data.X, data.y), steps=steps, **asked)["evidence"].attrs["directions_kept"]
        for steps in (2, 10, 40)
    ]
    assert kept[0] < kept[1] < kept[2]
