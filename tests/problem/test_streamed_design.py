"""Columns computed in blocks have the products of the same columns in memory."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import bayes_sparse as bs
from bayes_sparse.common import memory
from bayes_sparse.inputs.kernels import StreamedKernels
from bayes_sparse.problem import streamed_design as module
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.sparse_design import make_design
from bayes_sparse.problem.streamed_design import StreamedDesign

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 2))
EXTRA = np.ones((40, 1))
WEIGHTS, V = RNG.uniform(0, 2, 40), RNG.standard_normal(40)


@pytest.fixture(params=["all rows", "some rows"])
def pair(request, monkeypatch):
    """The design of kernels in blocks of seven, and the one in memory."""
    monkeypatch.setattr(module, "_SIDE", 7)
    kernels = StreamedKernels(bs.basis.rbf(1.5), X, None if request.param == "all rows" else np.arange(0, 40, 3))
    assert kernels.symmetric == (request.param == "all rows")
    return make_design(kernels, None, None, EXTRA), Design(kernels.toarray(), extra=EXTRA)


def test_every_product(pair):
    streamed, whole = pair
    assert isinstance(streamed, StreamedDesign)
    index = np.array([2, 0, 11, whole.M])
    right, directions = RNG.standard_normal((40, 3)), RNG.standard_normal((whole.M, 2))
    asked = {
        "columns": (index,),
        "times": (V[:4], index),
        "transposed_times": (V,),
        "squares": (WEIGHTS,),
        "cross": (right, WEIGHTS),
        "scan": (right, WEIGHTS, V),
        "project": (directions,),
        "gram": (WEIGHTS,),
    }
    for name, given in asked.items():
        found, expected = getattr(streamed, name)(*given), getattr(whole, name)(*given)
        pieces = zip(found, expected, strict=True) if name == "scan" else [(found, expected)]
        for own, truth in pieces:
            assert_allclose(own, truth, rtol=1e-12, atol=1e-12, err_msg=name)
    every = np.arange(whole.width)
    assert_allclose(streamed.times(np.ones(whole.width), every), whole.columns(every).sum(axis=1), rtol=1e-12)


def test_a_symmetric_matrix_is_computed_by_halves(monkeypatch):
    computed, matrix = [], bs.basis.rbf.matrix

    def counted(self, rows, centres):
        computed.append(len(rows) * len(centres))
        return matrix(self, rows, centres)

    monkeypatch.setattr(bs.basis.rbf, "matrix", counted)
    monkeypatch.setattr(module, "_SIDE", 4)
    make_design(StreamedKernels(bs.basis.rbf(1.0), X, None), None, None, EXTRA).transposed_times(V)
    assert sum(computed) == (40 * 40 + 4 * 40) / 2


def test_what_does_not_fit_is_refused(monkeypatch, pair):
    streamed, _ = pair
    M = streamed.M
    monkeypatch.setattr(memory, "physical_memory", lambda: 2 * 8 * 40 * M)
    assert streamed.columns(np.arange(M)).shape == (40, M)
    with pytest.raises(ValueError, match=rf"40 rows by {M + 1} columns, .*method='sequential'"):
        streamed.columns(np.arange(M + 1))
    monkeypatch.setattr(memory, "physical_memory", lambda: 8 * M)
    with pytest.raises(ValueError, match=rf"{M + 1} rows by {M + 1} columns"):
        streamed.gram()
