"""The order in which the kept terms would be taken up, against brute force."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import bayes_sparse as bs
from bayes_sparse.results.relevance import taken_up

pytestmark = pytest.mark.quick

RNG = np.random.default_rng(5)
X = RNG.normal(size=(120, 6)) @ (np.eye(6) + 0.6 * RNG.random((6, 6))) * [1.0, 1e4, 1e-4, 1.0, 1.0, 1.0]
CODES = np.argmax(X[:, [0, 3, 4]] + RNG.gumbel(size=(120, 3)), axis=1)


def by_hand(mean, covariance, groups, start):
    """Maximise the quadratic over every set by solving for it anew."""
    P = np.linalg.inv(covariance)
    b = P @ mean

    def value(at):
        return 0.5 * b[at] @ np.linalg.solve(P[np.ix_(at, at)], b[at]) if at else 0.0

    order, taken = [], list(start)
    while len(order) < len(groups):
        worth = {g: value(taken + own) - value(taken) for g, own in groups.items() if g not in dict(order)}
        best = max(worth, key=worth.get)
        order.append((best, worth[best]))
        taken += groups[best]
    return pd.Series(dict(order))


@pytest.mark.parametrize("by", ["weight", "feature"])
def test_against_brute_force(by):
    tree = bs.fit("student_multinomial", (X, CODES), draws=0)
    evidence = tree["evidence"].to_dataset()
    column = evidence["column"].to_numpy()
    factor = evidence["covariance_factor"].to_numpy()
    key = evidence["of_column"] if by == "feature" else evidence["basis"]
    names, groups = key.to_numpy(), {}
    for position, j in enumerate(column):
        if j < 18:
            groups.setdefault(names[j], []).append(position)
    start = np.flatnonzero(column >= 18).tolist()
    unit = np.sqrt(np.einsum("ij,ij->i", factor, factor))
    scaled = factor / unit[:, None]
    expected = by_hand(evidence["coordinate_mean"].to_numpy() / unit, scaled @ scaled.T, groups, start)
    found = taken_up(evidence, pd.Series(names, index=evidence["basis"].to_numpy()))
    assert found.index.tolist() == expected.index.tolist()
    assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("model", ["ard_gaussian", "jeffreys_laplace"])
def test_one_predictor(model):
    tree = bs.fit(model, (X, CODES == 0), draws=0)
    plain, forward = bs.relevance(tree), bs.relevance(tree, order="forward")
    assert set(plain.index) == set(forward.index)
    kept = forward["kept"]
    assert kept.is_monotonic_decreasing
    assert (forward.loc[kept, "gain"] >= 0).all()
    assert forward.loc[~kept, "gain"].isna().all()
    assert forward.index.name == "basis"
    pd.testing.assert_frame_equal(forward.drop(columns="gain").sort_index(), plain.sort_index())


def test_what_is_refused():
    tree = bs.fit("ard_gaussian", (X, CODES == 0), method="revm", draws=0)
    with pytest.raises(ValueError, match="'forward' for a fit that prunes"):
        bs.relevance(tree, order="forward")
    with pytest.raises(ValueError, match="`order` is 'strength'"):
        bs.relevance(tree, order="alphabet")


def test_several_classes_keep_their_labels():
    tree = bs.fit("student_multinomial", (X, CODES), draws=0)
    table = bs.relevance(tree, order="forward")
    assert table.index.names == ["basis", "class"]
    assert bs.relevance(tree, by="feature", order="forward").index.name == "basis"
