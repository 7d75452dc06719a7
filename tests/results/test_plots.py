"""Pictures show what the tree says."""

import matplotlib as mpl
import numpy as np
import pytest

import bayes_sparse as bs

mpl.use("Agg")


@pytest.fixture(scope="module")
def wide():
    truth = bs.datasets.sparse_linear(n=100, p=40, k=5, random_seed=0)
    return bs.fit("ard_gaussian", (10 * truth.X, truth.y), draws=0)


def test_relevance_draws_the_effect_of_one_sd_most_relevant_on_top(wide):
    ax = bs.plot_relevance(wide, top=3)
    table = bs.relevance(wide).query("kept")
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == list(table.index[:3])
    assert ax.get_yticks()[0] > ax.get_yticks()[-1]
    points = ax.lines[1].get_xdata()
    scale = wide["constant_data"]["basis_scale"].sel(basis=table.index[:3].to_numpy()).to_numpy()
    np.testing.assert_allclose(np.asarray(points, dtype=float), table["mean"].to_numpy()[:3] * scale)
    found = f"{len(table)} of 40 terms kept, {table['relevant'].sum()} of them relevant; the first 3 shown"
    assert ax.get_title() == found


def test_curve_circles_the_relevance_vectors():
    data = bs.datasets.sinc(n=50, random_seed=0)
    tree = bs.fit("ard_gaussian", (data.X, data.y), basis=bs.basis.rbf(2.0), draws=0)
    ax = bs.plot_curve(tree)
    kept = tree["evidence"]["kept"].to_numpy()
    np.testing.assert_allclose(ax.lines[-1].get_xdata(), data.X[kept, 0])


def test_curve_refuses_what_it_cannot_draw(wide):
    with pytest.raises(ValueError, match="one feature"):
        bs.plot_curve(wide)


def test_history_is_drawn_as_stored(wide):
    ax = bs.plot_history(wide)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), wide["evidence"]["history"].to_numpy())
