"""Groups have no order: columns in another order, or groups under other labels, give the same answer."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import bayes_sparse as bs
from bayes_sparse.inference.approximations import approximate
from bayes_sparse.inference.evidence.claims import claims
from bayes_sparse.inference.evidence.state import Objective
from bayes_sparse.problem.design import Design
from tests.grouped import problem_of, targets
from tests.support import examples, quiet

pytestmark = pytest.mark.quick


def described(method, problem, price):
    """Precisions of all columns, infinite where left out, their scores, and the objective."""
    approximation = approximate(problem, Objective(price))
    state = method(problem, approximation, quiet).state
    alpha = np.full(problem.design.width, np.inf)
    alpha[state.index] = state.alpha
    said = claims(problem, approximation, state, state, approximation, rivals=False)
    return alpha[:-1], said.score, said.chance, state.objective


@pytest.mark.parametrize("method", [bs.methods.Sequential(), bs.methods.MacKay(), bs.methods.EM()], ids=repr)
@examples(8)
@given(
    seed=st.integers(0, 2**32 - 1), family=st.sampled_from(["normal", "bernoulli"]), price=st.sampled_from([0.5, 2.0])
)
def test_neither_the_order_of_columns_nor_the_labels_matter(method, seed, family, price):
    rng = np.random.default_rng(seed)
    n, M = 60, 12
    groups = rng.integers(0, 6, M)
    X = rng.standard_normal((n, M))
    eta = X @ (rng.standard_normal(M) * (groups % 2))
    problem = problem_of(family, X, targets(family, eta, rng), groups)
    order, labels = rng.permutation(M), rng.permutation(100)[:6] - 50
    moved = replace(
        problem,
        design=Design(X[:, order], extra=np.ones((n, 1))),
        groups=np.append(labels[groups[order]], 3),
    )
    here, there = described(method, problem, price), described(method, moved, price)
    # Sums in another order differ in their last digits, and a search that stops within its tolerance of the top may
    # stop a round sooner: that much in the objective, its square root in log alpha.
    close = 2 * method.tolerance
    assert_allclose(there[3], here[3], atol=close)
    for one, other in zip(here[:3], there[:3], strict=True):
        with np.errstate(over="ignore"):
            assert_allclose(other, one[order], rtol=3 * np.sqrt(close), atol=1e-8)
    whole = np.isfinite(here[0])
    for own in np.unique(groups):
        assert len(set(whole[groups == own])) == len(set(here[0][groups == own])) == 1
