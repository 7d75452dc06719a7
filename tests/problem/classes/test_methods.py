"""MacKay's fixed point and the sequential search for several classes: they climb, they end, and where they end."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from bayes_sparse.inference.approximations import LaplaceApproximation, approximate
from bayes_sparse.inference.evidence.exchanges import addition_gain
from bayes_sparse.inference.evidence.state import Objective
from bayes_sparse.methods.mackay import MacKay
from bayes_sparse.methods.sequential import Sequential
from tests.support import quiet

from .problems import NONE, case, draw_classes, make

SHAPES = {"plain": (40, 4), "separable": (30, 3), "collinear": (40, 4), "wide": (15, 12), "few of a class": (40, 4)}


def hard(shape, kind, seed):
    """Random problems of one kind of trouble."""
    rng = np.random.default_rng(seed)
    C, (n, M) = int(rng.integers(2, 5)), SHAPES[shape]
    columns = [rng.standard_normal((n, M)) for _ in range(C)]
    if shape == "collinear":
        for X in columns:
            X[:, 1], X[:, 3] = X[:, 0], X[:, 0] + X[:, 2]
    columns = [columns[0]] * C if kind == "shared" else [X[:, : max(1, M - c)] for c, X in enumerate(columns)]
    eta = np.stack([2 * X[:, 0] * rng.standard_normal() for X in columns], axis=1)
    y = eta.argmax(axis=1) if shape == "separable" else draw_classes(eta, rng)
    if shape == "few of a class":
        y[C:] = 0
    return case(columns, y)


def climbs_and_ends(method, c, objective):
    heights = []
    outcome = method(c.problem, approximate(c.problem, objective), lambda _, height, active: heights.append(height))
    history, state = np.array(outcome.history), outcome.state
    assert np.isfinite(history).all()
    assert len(heights) >= len(history) - 2  # all rounds but the start and the last deletions are told
    # Deleting what is useless may cost 1e-9 nats.
    assert np.diff(history).min(initial=0.0) >= -2e-9
    if not objective.b:  # with a proper prior columns are told apart after the search, by the evidence alone
        assert state.objective >= history[-1] - 1e-3 * (1 + c.problem.design.M)  # phantoms go after the history ends
    assert set(np.flatnonzero(~c.problem.free)) <= set(state.index)
    assert (state.alpha > 0).all()
    assert_allclose(state.log_evidence, c.evidence(state.mean, state.alpha, state.index), rtol=1e-6, atol=1e-5)
    return outcome


@pytest.mark.parametrize("objective", [Objective(), Objective(1.0), Objective(0.0, 0.5, 0.1)], ids=["flat", "c", "ab"])
@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=3)
@given(seed=st.integers(0, 2**32 - 1), kind=st.sampled_from(["shared", "own"]))
def test_mackay_never_falls(shape, objective, seed, kind):
    outcome = climbs_and_ends(MacKay(max_iterations=300), hard(shape, kind, seed), objective)
    assert outcome.converged or outcome.iterations >= 300  # more, where what was told apart is estimated again


@pytest.mark.parametrize("smoothness", [0.0, 1.0])
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape not in ("separable", "wide")])
@settings(max_examples=3)
@given(seed=st.integers(0, 2**32 - 1), kind=st.sampled_from(["shared", "own"]))
def test_sequential_never_falls(shape, smoothness, seed, kind):
    c = hard(shape, kind, seed)
    outcome = climbs_and_ends(Sequential(), c, Objective(smoothness))
    assert outcome.converged
    # At its end no column outside promises much that it could have taken, and the slope is gone.
    laplace = LaplaceApproximation(c.problem, Objective(smoothness))
    slope = laplace.slope(outcome.state)
    assert np.abs(slope).max(initial=0.0) < 0.02


@pytest.mark.parametrize("shape", ["separable", "wide"])
@pytest.mark.parametrize("kind", ["shared", "own"])
def test_sequential_ends_where_precisions_run_to_zero(shape, kind):
    """Classes that can be told apart perfectly: the weights grow, and with them the work; a few problems do."""
    assert climbs_and_ends(Sequential(), hard(shape, kind, 9), Objective()).converged


def test_mackay_ends_at_its_own_fixed_point():
    """``alpha = gamma / w^2`` wherever another whole step would not fall, in which case the guard has stopped it."""
    offs = []
    for kind, seed in product(["shared", "own"], range(5)):
        c = hard("plain", kind, seed)
        laplace = LaplaceApproximation(c.problem, Objective())
        state = MacKay(tolerance=1e-10, max_iterations=3000)(c.problem, laplace, quiet).state
        with np.errstate(divide="ignore"):
            move = np.where(state.free, np.log(state.gamma / state.mean**2) - np.log(state.alpha), 0.0)
        beyond = laplace.at(state.index, state.alpha * np.exp(move), NONE, state).objective - state.objective
        offs.append((np.abs(move).max(), beyond >= 0))
    reached = [off for off, free in offs if free]
    assert len(reached) >= 3
    # A gain of 1e-10 nats along a direction of unit curvature is a way of 1e-5; slower directions are less near.
    assert max(reached) < 3e-4
    # The formula holds H fixed and the evidence does not, so its top, where the guard stops, is not quite there.
    assert max(off for off, _ in offs) < 0.3


@pytest.mark.parametrize("hyper", [(0.5, 0.1), (1e-2, 1e-2)])
def test_mackay_with_a_gamma_prior(hyper):
    """The paper's loop as it stands, ``alpha = (gamma + 2a) / (w^2 + 2b)``: over all columns, then over those kept."""
    a, b = hyper
    c = make("own", seed=2)
    objective, M = Objective(0.0, a, b), c.problem.design.M
    outcome = MacKay(tolerance=1e-11)(c.problem, LaplaceApproximation(c.problem, objective), quiet)
    laplace = LaplaceApproximation(c.problem, objective)

    def by_hand(index):
        alpha = np.ones(len(index))
        for _ in range(1000):
            state = laplace.at(index, alpha, NONE)
            before, alpha = alpha, (state.gamma + 2 * a) / (state.mean**2 + 2 * b)
            if np.abs(np.log(alpha / before))[index < M].max() < 1e-9:
                break
        return state

    state = by_hand(np.arange(c.problem.design.width))
    assert_allclose(outcome.history[-1], state.objective, atol=1e-7)
    kept = outcome.state.index
    free = kept < M
    again = by_hand(kept)
    # The paper's equation is not quite that of the top; the guard stops higher up.
    assert outcome.state.objective > again.objective - 1e-7
    assert outcome.state.objective > laplace.at(kept, state.alpha[kept], NONE).objective + 5e-4
    off, before = (np.abs(np.log(alpha / again.alpha))[free] for alpha in (outcome.state.alpha, state.alpha[kept]))
    assert off.max() < min(0.06, before.max() / 2)
    assert outcome.iterations > len(outcome.history) - 1
    # What is deleted the evidence is better without, and of what is kept no column alone.
    assert 0 < free.sum() < M
    assert outcome.state.log_evidence > state.log_evidence
    for i in np.flatnonzero(free):
        fewer = laplace.at(np.delete(kept, i), np.delete(outcome.state.alpha, i), NONE)
        assert fewer.log_evidence < outcome.state.log_evidence + 0.1


def test_against_all_precisions_of_three_columns():
    """The evidence on a grid over every subset and every precision: no point lies above either end by much."""
    rng = np.random.default_rng(4)
    columns = [rng.standard_normal((40, 1)) for _ in range(3)]
    eta = np.column_stack([1.5 * columns[0], columns[1], 0.1 * columns[2]])
    c = case(columns, draw_classes(eta, rng))
    laplace, bias = LaplaceApproximation(c.problem, Objective()), np.arange(3, 6)
    grid, best = [*np.exp(np.linspace(-3, 4, 6)), np.inf], -np.inf
    for precisions in product(grid, repeat=3):
        alpha = np.array(precisions)
        index = np.append(np.flatnonzero(np.isfinite(alpha)), bias)
        state = laplace.at(index, np.append(alpha[np.isfinite(alpha)], np.ones(3)), NONE)
        best = max(best, state.objective)
    for method, near in ((Sequential(), 1e-4), (MacKay(), 5e-2)):
        assert method(c.problem, laplace, quiet).state.objective >= best - near


def test_sequential_leaves_nothing_that_pays():
    c = make("own", n=60, seed=5, effect=2.0)
    laplace = LaplaceApproximation(c.problem, Objective())
    state = Sequential()(c.problem, laplace, quiet).state
    assert state.free.any()
    scores = laplace.scores(state)
    gain, alpha = addition_gain(scores.S, scores.Q, 0.0)
    for i in np.setdiff1d(np.arange(c.problem.design.M), state.index):
        precision = alpha[i] if gain[i] > 0 else 1e3
        new = laplace.at(np.append(state.index, i), np.append(state.alpha, precision), NONE, state)
        assert new.objective < state.objective + 1e-3
    for i in np.flatnonzero(state.free):
        fewer = laplace.at(np.delete(state.index, i), np.delete(state.alpha, i), NONE, state)
        assert fewer.objective < state.objective + 1e-2
