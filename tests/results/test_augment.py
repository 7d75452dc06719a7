"""The augmented prediction equals a refit, at the same hyper-parameters, with one more basis function."""

import json

import numpy as np
import pytest

import bayes_sparse as bs


def kernel(a, b):
    return np.exp(-((a - b.T) ** 2) / (2 * 2.0**2))


@pytest.fixture(scope="module")
def curve():
    data = bs.datasets.sinc(n=60, noise=0.2, random_seed=3)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 60)
    tree = bs.fit("ard_gaussian", (data.X, data.y), basis=bs.basis.rbf(2.0), weights=weights, draws=0)
    return data, weights, tree


def test_equals_the_posterior_with_one_more_column(curve):
    data, weights, tree = curve
    evidence = tree["evidence"].to_dataset()
    beta = float(evidence["sigma"]) ** -2
    kept = evidence["column"].to_numpy()
    precision = np.append(evidence["alpha"].to_numpy(), json.loads(tree.attrs["bayes_sparse"])["bias_sd"] ** -2)
    full = np.hstack([kernel(data.X, data.X), np.ones((60, 1))])[:, kept]
    fitted = full @ evidence["coordinate_mean"].to_numpy()
    middle = np.average(fitted, weights=weights)
    signal = max(np.average((fitted - middle) ** 2, weights=weights), 1 / beta)
    new = np.array([[-3.3], [0.7], [25.0]])
    got = bs.predict(tree, new, augment=True)
    for row, x in enumerate(new[:, None]):
        Phi = np.hstack([full, kernel(data.X, x)])
        at = np.hstack([kernel(x, data.X), [[1.0]]])[:, kept]
        at = np.append(at[0], 1.0)
        A = np.diag(np.append(precision[kept], 1 / signal))
        covariance = np.linalg.inv(beta * Phi.T @ (weights[:, None] * Phi) + A)
        mean = covariance @ (beta * Phi.T @ (weights * data.y))
        np.testing.assert_allclose(float(got["mean"][row]), at @ mean, rtol=1e-8)
        np.testing.assert_allclose(float(got["sd"][row]), np.sqrt(at @ covariance @ at + 1 / beta), rtol=1e-8)


def test_far_away_the_sd_grows_instead_of_shrinking(curve):
    _, _, tree = curve
    far = np.array([[40.0]])
    with pytest.warns(UserWarning, match="1 of 1 rows lie far from the data"):
        plain = float(bs.predict(tree, far)["sd"][0])
    assert float(bs.predict(tree, far, augment=True)["sd"][0]) > plain


def test_other_fits_are_refused_in_one_sentence():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    tree = bs.fit("ard_gaussian", (X, X[:, 0] + 0.1 * rng.normal(size=40)), draws=0)
    with pytest.raises(ValueError, match="rbf basis"):
        bs.predict(tree, X, augment=True)
