"""Pictures of one-step evidence show the numbers of the tree."""

from functools import cache

import matplotlib
import numpy as np
import pytest

import bayes_sparse as bs
from bayes_sparse.inference.priors import Gaussian, Laplace

matplotlib.use("Agg")

DATA = bs.datasets.two_gaussians(80, random_seed=0)


@cache
def fit(model):
    return bs.fit(
        model, (DATA.X, DATA.y), likelihood="bernoulli", basis=bs.basis.rbf(0.7), expansion="evidence", draws=0
    )


@pytest.mark.parametrize("name", ["gaussian_eigen", "laplace_eigen"])
def test_the_gain_of_a_direction_and_its_maximum(name):
    evidence = fit(name)["evidence"].to_dataset()
    ax = bs.plot_evidence_1d(fit(name), top=2)
    strength = (evidence["h"] * evidence["u_expansion"] ** 2).to_numpy()
    best, kept = int(strength.argmax()), np.isfinite(evidence["alpha"].to_numpy())
    assert f"direction {evidence['direction'].to_numpy()[best]} " in ax.get_legend().get_texts()[0].get_text()
    [alpha], [gain] = ax.lines[2].get_data()  # after the line at zero and the first curve comes its maximum
    assert alpha == evidence["alpha"].to_numpy()[best]
    curve = ax.lines[1].get_ydata()
    assert gain >= curve.max()
    assert gain == pytest.approx(curve.max(), abs=0.01)
    shown = min(2, kept.sum()) + 1  # and the pruned one that came nearest, without a maximum
    assert len(ax.get_legend().get_texts()) == shown
    assert name.split("_")[0] in ax.get_title()
    assert ax.lines[-1].get_ydata().max() < 1e-3


@pytest.mark.parametrize(("name", "prior"), [("gaussian", Gaussian()), ("laplace", Laplace())])
def test_directions_of_ones_own(name, prior):
    ax = bs.plot_evidence_1d(h=[1.0, 4.0], u=[0.9, 1.0], prior=name)
    grid, curve = ax.lines[1].get_data()
    expected = prior.log_integral(np.ones_like(grid), np.full_like(grid, 0.9), grid) + 0.405
    np.testing.assert_allclose(curve, expected)
    markers = [line for line in ax.lines if line.get_marker() == "o"]
    assert len(markers) == 1  # h u^2 = 0.81 has no maximum
    np.testing.assert_allclose(markers[0].get_xdata(), prior.best(np.array([4.0]), np.array([1.0])))


@pytest.mark.parametrize("name", ["gaussian_eigen", "laplace_eigen"])
def test_the_spectrum_and_what_was_kept(name):
    evidence = fit(name)["evidence"].to_dataset()
    ax = bs.plot_spectrum(fit(name))
    np.testing.assert_allclose(ax.lines[0].get_ydata(), evidence["h"])
    relevant = evidence["relevant"].to_numpy()
    kept = ax.lines[-1]
    np.testing.assert_array_equal(kept.get_xdata(), evidence["direction"].to_numpy()[relevant])
    np.testing.assert_allclose(kept.get_ydata(), (evidence["h"] * evidence["u_expansion"] ** 2).to_numpy()[relevant])
    assert ax.get_title() == f"{relevant.sum()} of {len(relevant)} directions kept"


def test_what_cannot_be_drawn():
    weights = bs.fit("ard_gaussian", (DATA.X, DATA.y), likelihood="bernoulli", draws=0)
    for draw in (bs.plot_spectrum, bs.plot_evidence_1d):
        with pytest.raises(ValueError, match="no directions: fit with method='revm'"):
            draw(weights)
    bare = fit("gaussian_eigen").copy()
    bare["evidence"] = bare["evidence"].to_dataset().isel(direction=[])
    for draw in (bs.plot_spectrum, bs.plot_evidence_1d):
        with pytest.raises(ValueError, match="curves downwards along no direction"):
            draw(bare)
    with pytest.raises(TypeError, match=r"takes a tree from bayes_sparse.fit, not one of type int"):
        bs.plot_evidence_1d(5)
    for given in ({}, {"h": 1.0}, {"tree": fit("gaussian_eigen"), "h": 1.0, "u": 2.0}):
        with pytest.raises(ValueError, match="either a tree or directions of your own"):
            bs.plot_evidence_1d(**given)
