"""The study of wide data, on small data whose scores are known."""

import re
from collections import Counter

import numpy as np
import pytest
from sklearn.metrics import log_loss

import bayes_sparse as bs
from studies import wide as study
from studies.wide import CANDIDATES, LASSO, Score, Told, score, table

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 60))
Y = (X[:, 0] + X[:, 1] + 0.5 * RNG.standard_normal(40) > 0).astype(int)


def rate(X, y, new):
    """The base rate of the rows fitted."""
    return Told(np.full(len(new), y.mean()), "null")


def test_the_score_of_the_base_rate():
    found = score(rate, X, np.arange(40) % 2)
    # Every fold of ten has two rows of each class, so the rest are balanced.
    np.testing.assert_allclose(found.loss, np.log(2))
    assert found.words == {"null": 10}
    assert 0 <= found.seconds < 10


def test_rows_are_scored_by_fits_that_have_not_seen_them():
    seen = []

    def first_column(X, y, new):
        seen.append((set(X[:, 0]), set(new[:, 0])))
        return Told(np.where(new[:, 0] > 0, 0.9, 0.2), "fitted")

    found = score(first_column, X, Y, random_seed=3)
    folds = seen[1:]  # the first call is the one that does not count
    assert len(folds) == 10
    assert not any(fitted & new for fitted, new in folds)
    assert set().union(*(new for _, new in folds)) == set(X[:, 0])
    probability = np.where(X[:, 0] > 0, 0.9, 0.2)
    assert found.loss.mean() == pytest.approx(log_loss(Y, probability))
    assert found.error == np.mean((probability > 0.5) != Y)


def test_a_column_constant_in_the_rows_fitted_is_left_out():
    rare = np.column_stack([X, np.arange(40) == 7])
    widths = []

    def width(X, y, new):
        widths.append(X.shape[1])
        return rate(X, y, new)

    score(width, rare, Y)
    assert sorted(widths[1:]) == [60] + 9 * [61]


def test_certain_and_wrong_is_a_finite_loss():
    assert np.isfinite(score(lambda X, y, new: Told(np.ones(len(new)), "sure"), X, Y).loss).all()


@pytest.mark.parametrize("name", CANDIDATES)
def test_every_candidate_gives_probabilities(name):
    with study.quiet():
        told = CANDIDATES[name](X[:30], Y[:30], X[30:])
    assert told.probability.shape == (10,)
    assert ((told.probability > 0) & (told.probability < 1)).all()
    assert told.word


def test_ours_are_the_fits_of_the_package():
    with study.quiet():
        told = CANDIDATES["jeffreys_laplace"](X[:30], Y[:30], X[30:])
        tree = bs.fit("jeffreys_laplace", (X[:30], Y[:30]), draws=0)
    np.testing.assert_array_equal(told.probability, bs.predict(tree, X[30:])["probability"].sel({"class": 1}))


def test_table_of_two_splits():
    loss = np.array([0.1, 0.3])
    peer = [Score(loss, 0.5, 4.0, Counter(fitted=10)), Score(loss + 0.2, 0.0, 4.0, Counter(fitted=10))]
    mine = [Score(loss, 0.5, 1.0, Counter(null=10))]
    lines = table({("s", LASSO): peer, ("s", "ours"): mine}).splitlines()
    assert re.sub(r" +", " ", lines[2]) == f"| s | {LASSO} | 0.300 | | 25.0% | 4.00 | | 20 fitted |"
    # Both rows are better by 0.1: a difference without any error.
    assert lines[3] == "| s | ours | 0.200 | -0.100 ± 0.000 | 50.0% | 1.00 | 0.25 | 10 null |"


def test_sets_candidates_and_seeds_all_run(monkeypatch):
    small = bs.datasets.load("wdbc", download=False).iloc[::15, [0, 1, 2, -1]]
    monkeypatch.setattr(study.datasets, "load", lambda name: small.assign(target=(small["target"] == "M").astype(int)))
    found = study.wide(2, sets=("a", "b"), candidates={"rate": rate}, progressbar=False)
    assert {key: len(scores) for key, scores in found.items()} == {("a", "rate"): 2, ("b", "rate"): 2}
