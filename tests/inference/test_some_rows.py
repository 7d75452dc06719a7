"""A search begun on some rows ends where one of all rows does."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import bayes_sparse as bs
from bayes_sparse.inference.evidence import some_rows
from bayes_sparse.problem.design import Design


@pytest.mark.parametrize("likelihood", ["poisson", "bernoulli"])
def test_it_ends_where_a_search_of_all_rows_does(likelihood, monkeypatch):
    rng = np.random.default_rng(3)
    X = 2.0 + rng.standard_normal((4000, 6))
    eta = X @ [0.4, -0.3, 0.1, 0.0, 0.0, 0.0] - 0.5
    y = rng.poisson(np.exp(eta)) if likelihood == "poisson" else rng.binomial(1, 1 / (1 + np.exp(-eta)))
    weights = rng.integers(1, 3, len(y))

    def found():
        return bs.fit("ard_gaussian", (X, y), likelihood=likelihood, weights=weights, draws=0)["evidence"]

    whole = found()
    monkeypatch.setattr(some_rows, "_MANY", 1000)
    monkeypatch.setattr(some_rows, "_EACH", 30)
    part = found()
    assert part.attrs["n_iterations"] != whole.attrs["n_iterations"]  # another way to the same place
    assert part["kept"].values.tolist() == whole["kept"].values.tolist()
    # A climb ends when the next step promises less than 1e-6 nats.
    assert_allclose(part["log_evidence"], whole["log_evidence"], atol=1e-5)
    assert_allclose(part["mean"], whole["mean"], atol=1e-5)


def test_all_rows_are_looked_at_for_other_columns_as_seldom_as_can_be(monkeypatch):
    """Once to find duplicates, once in the search, and once more where the terms are estimated anew."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 6))
    y = rng.poisson(np.exp(0.5 * X[:, 0]))
    looks, plain = [], Design.scan
    monkeypatch.setattr(Design, "scan", lambda self, *args: (looks.append(self.n), plain(self, *args))[1])
    monkeypatch.setattr(some_rows, "_MANY", 1000)
    monkeypatch.setattr(some_rows, "_EACH", 30)
    tree = bs.fit("ard_gaussian", (X, y), likelihood="poisson", draws=0)
    assert tree["evidence"]["kept"].values.tolist() == [True] + 5 * [False]
    assert looks.count(4000) == 3
