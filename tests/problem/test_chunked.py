"""Products over rows in chunks against the same of rows in memory; no dask here."""

from functools import reduce
from itertools import pairwise

import numpy as np
import pytest

from bayes_sparse.problem.active import LinearActive
from bayes_sparse.problem.chunked import Chunk, ChunkedDesign, ChunkedProblem, Narrow, RowSource, Standard, condensed
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.problem import Problem

rng = np.random.default_rng(0)
N, M = 60, 5
X = 2.0 + rng.normal(size=(N, M)) * np.arange(1.0, M + 1)
Y = rng.poisson(2.0, N).astype(float)
OFFSET, WEIGHTS = 0.1 * rng.normal(size=N), rng.integers(1, 4, N).astype(float)
SHIFT, SCALE = X.mean(axis=0), X.std(axis=0)
ALL = np.arange(M + 1)


def poisson(y, eta, theta):
    mean = np.exp(eta)
    return y * eta - mean, y - mean, -mean, -mean


class ListChunks:
    """Chunks in a list."""

    n = N

    def __init__(self, sizes=(20, 0, 37, 3)):
        starts = np.cumsum([0, *sizes])
        self.chunks = [Chunk(*(part[a:b] for part in (X, Y, OFFSET, WEIGHTS))) for a, b in pairwise(starts)]
        self.passes, self.needed = 0, []

    def fold(self, work, merge):
        self.passes += 1
        self.needed.append(work.needed)
        chunks = self.chunks
        if work.needed is not None:  # what is not needed is not there
            chunks = [chunk._replace(X=Narrow(chunk.X[:, work.needed], work.needed)) for chunk in chunks]
        return reduce(merge, map(work, chunks))


@pytest.fixture
def pair():
    """The same problem in chunks and in memory."""
    free = np.append(np.ones(M, dtype=bool), False)
    source = RowSource(ListChunks(), Standard(M, SHIFT, SCALE, bias=True), poisson, weighted=True)
    own = {"free": free, "fixed_precision": np.array([0.01])}
    chunked = ChunkedProblem(
        ChunkedDesign(source, M), None, pointwise=None, offset=None, observations=WEIGHTS.sum(), **own
    )
    design = Design(X, SHIFT, SCALE, extra=np.ones((N, 1)))
    here = Problem(design, Y, pointwise=lambda e, t: poisson(Y, e, t), offset=OFFSET, weights=WEIGHTS, **own)
    return chunked, here


def test_products_with_all_columns(pair):
    chunked, here = pair
    eta, theta = 0.1 * np.arange(6.0), np.empty(0)
    lazy = chunked.terms(chunked.offset + chunked.design.times(eta, ALL), theta)
    known = here.terms(OFFSET + here.design.times(eta, ALL), theta)
    np.testing.assert_allclose(lazy[0].sum(), known[0].sum())
    np.testing.assert_allclose(chunked.design.transposed_times(lazy[1]), here.design.transposed_times(known[1]))
    np.testing.assert_allclose(chunked.design.gram(-lazy[2]), here.design.gram(-known[2]))
    np.testing.assert_allclose(chunked.design.squares(chunked.weights), here.design.squares(WEIGHTS))
    np.testing.assert_allclose(chunked.design.squares(), here.design.squares())
    np.testing.assert_allclose(lazy[1] @ lazy[1], known[1] @ known[1])
    assert np.maximum(-lazy[2], 0.0).max() == pytest.approx(float(-known[2].min()))


def test_active_columns_in_few_passes(pair):
    chunked, here = pair
    index, alpha, theta = np.array([5, 1, 3]), np.array([0.1, 2.0, 3.0]), np.empty(0)
    w, chunks = np.array([0.3, -0.2, 0.4]), chunked.source.chunks
    active, known = chunked.active(index), LinearActive(here.design, index)
    lazy = chunked.derivatives(chunked.offset + active.predictor(w), theta)
    terms = here.derivatives(OFFSET + known.predictor(w), theta)
    lazy[0].sum()
    np.testing.assert_allclose(active.pulled_back(lazy[1]), known.pulled_back(terms[1]))
    np.testing.assert_allclose(active.steps(alpha, lazy).covariance, known.steps(alpha, terms).covariance)
    np.testing.assert_allclose(active.posterior(alpha, lazy, None).covariance, known.steps(alpha, terms).covariance)
    assert chunks.passes == 1  # log-likelihood, gradient and curvature together
    assert chunks.needed[0].tolist() == [1, 3]  # and only the columns that they are made of
    for one, other in zip(active.scan(lazy), known.scan(terms), strict=True):
        np.testing.assert_allclose(one, other)
    grown, more = np.array([5, 1, 3, 0]), np.append(alpha, 1.0)
    wider = LinearActive(here.design, grown)
    np.testing.assert_allclose(chunked.active(grown).steps(more, lazy).covariance, wider.steps(more, terms).covariance)
    np.testing.assert_allclose(chunked.active(grown).pulled_back(lazy[1]), wider.pulled_back(terms[1]))
    assert chunks.passes == 2  # what a scan has seen needs no other pass
    matrix = np.diag([1.0, 2.0, 3.0])
    leverages = active.leverages(lambda v, at: matrix[:, at] @ v)
    turned = known.turning(known.leverages(lambda v, at: matrix[:, at] @ v), terms)
    np.testing.assert_allclose(active.turning(leverages, lazy), turned)


def test_predictors_stay_predictors(pair):
    chunked, _ = pair
    first, second = chunked.active(np.array([0, 2])), chunked.active(np.array([2, 4]))
    eta = chunked.offset + first.predictor(np.array([1.0, 2.0]))
    eta = eta + 0.5 * second.predictor(np.array([1.0, 1.0])) - first.predictor(np.array([1.0, 0.0]))
    assert type(eta.node).__name__ == "Predictor"
    columns = (X - SHIFT) / SCALE
    np.testing.assert_allclose(eta.sum(), (OFFSET + columns[:, [2, 4]] @ [2.5, 0.5]).sum())


def test_combinations_of_columns(pair):
    chunked, here = pair
    Q = rng.normal(size=(2, M))
    np.testing.assert_allclose(chunked.design.along(Q).gram(), here.design.along(Q).gram(), atol=1e-12)
    order = np.array([2, 0, 1, 5, 3, 4])
    np.testing.assert_allclose(
        chunked.design.ordered(order, 3).gram(), here.design.ordered(order, 3).gram(), atol=1e-12
    )


def test_a_few_rows_stand_for_all(pair):
    chunked, here = pair
    design, t = condensed(chunked.source, M)
    assert design.n == M + 2
    w = rng.normal(size=M + 1)
    left = Y - OFFSET - here.design.times(w, ALL)
    np.testing.assert_allclose(np.sum((t - design.times(w, ALL)) ** 2), WEIGHTS @ left**2)


def test_separation_is_seen_across_chunks(pair):
    chunked, here = pair
    eta = np.append(np.zeros(M), 1.0)
    assert chunked.separates(chunked.row_predictor(eta, ALL)) == here.separates(here.row_predictor(eta, ALL))
