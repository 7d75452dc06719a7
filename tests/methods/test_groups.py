"""Columns that share one precision, by every method: what is found, and where a search ends."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.stats import binom, multivariate_normal

import bayes_sparse as bs
from bayes_sparse.inference.approximations import approximate
from bayes_sparse.inference.claims import FALSE_FINDS, price_of
from bayes_sparse.inference.evidence.ascent import Ascent
from bayes_sparse.inference.evidence.claims import claims
from bayes_sparse.inference.evidence.groups import offered
from bayes_sparse.inference.evidence.reestimate import reestimate
from bayes_sparse.inference.evidence.state import Objective
from bayes_sparse.problem.classes import ClassDesign, ClassProblem
from bayes_sparse.problem.design import Design
from tests.grouped import LABELS, MATTER, problem_of, simulated, targets
from tests.problem.several.problems import mean_and_log_sd, several, written_out
from tests.support import quiet, refused

SEARCHES = [bs.methods.Sequential(), bs.methods.MacKay(), bs.methods.EM()]
METHODS = pytest.mark.parametrize("method", SEARCHES, ids=lambda method: type(method).__name__)


def over(*objectives):
    """Every method with every objective that it takes: what adds and deletes columns needs the flat hyper-prior."""
    cases = [(method, o) for method in SEARCHES for o in objectives if not (o.b and method.needs_flat_hyper)]
    return pytest.mark.parametrize(("method", "objective"), cases)


def searched(method, problem, objective):
    approximation = approximate(problem, objective)
    return approximation, method(problem, approximation, quiet)


@METHODS
@pytest.mark.parametrize("family", ["normal", "bernoulli", "poisson"])
def test_the_groups_that_matter_are_found_whole(method, family):
    """Chance keeps a null term now and then, and hides a single column: over four sets, one of 48 and one of 8 at most.

    What is said of a group is said of all its columns.
    """
    more = missed = 0
    for seed in range(4):
        problem = simulated(family, seed)
        approximation, outcome = searched(method, problem, Objective(price_of(offered(problem))))
        kept = np.isin(np.arange(len(LABELS)), outcome.state.index)
        assert not set(LABELS[kept]) & set(LABELS[~kept])
        assert set(MATTER) <= set(LABELS[kept].tolist())
        more += len(set(LABELS[kept].tolist()) - set(MATTER))
        fitted, state = reestimate(problem, approximation, outcome.state)
        said = claims(problem, fitted, state, outcome.state, approximation, rivals=False)
        relevant = set(LABELS[said.chance <= FALSE_FINDS].tolist())
        assert {1, 4} <= relevant
        missed += len(set(MATTER) - relevant)
        for label in np.unique(LABELS):
            assert len(set(said.chance[label == LABELS])) == len(set(said.score[label == LABELS])) == 1
    assert more <= 1
    assert missed <= 1


@pytest.mark.parametrize("family", ["normal", "poisson"])
@over(Objective(), Objective(2.0, floor=0.05), Objective(0.0, 1.0, 0.1))
def test_groups_of_one_column_are_no_groups(method, objective, family):
    problem = simulated(family, 0, n=80)
    one = searched(method, replace(problem, groups=np.arange(len(problem.free))[::-1]), objective)[1].state
    none = searched(method, replace(problem, groups=None), objective)[1].state
    assert_array_equal(one.index, none.index)
    assert_allclose(one.alpha, none.alpha, rtol=1e-10)
    assert_allclose([one.objective, *one.theta], [none.objective, *none.theta], rtol=1e-10)
    assert_allclose(one.mean, none.mean, rtol=1e-10, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["normal", "bernoulli", "poisson"])
def test_noise_has_a_relevant_group_no_more_often_than_is_said(family):
    labels, sets, found = np.append(np.repeat(np.arange(8), [2, 3, 4, 5] * 2), np.arange(10, 16)), 200, 0
    for seed in range(sets):
        rng = np.random.default_rng(1000 + seed)
        X = rng.standard_normal((200, len(labels)))
        problem = problem_of(family, X, targets(family, np.zeros(200), rng), labels)
        approximation, outcome = searched(bs.methods.Sequential(), problem, Objective(price_of(offered(problem))))
        fitted, state = reestimate(problem, approximation, outcome.state)
        said = claims(problem, fitted, state, outcome.state, approximation, rivals=False)
        found += bool(np.any(said.chance[state.index[state.free]] <= FALSE_FINDS))
    assert found <= binom.ppf(0.999, sets, FALSE_FINDS)


@over(Objective(), Objective(0.0, 1.0, 0.1))
def test_the_end_is_the_top_of_the_dense_evidence(method, objective):
    """Scipy over one log precision per group and the noise, on the n x n normal density; all groups matter."""
    rng, a, b = np.random.default_rng(2), objective.a, objective.b
    groups = np.array([0, 0, 0, 1, 1, 2])
    X = rng.standard_normal((60, 6))
    y = X @ [1.0, -0.8, 0.5, 0.6, 0.9, -1.0] + 0.5 * rng.standard_normal(60)
    problem = problem_of("normal", X, y, groups, bias=False)

    def negative(x):
        alpha = np.exp(x[:3])
        cov = np.exp(2 * x[3]) * np.eye(60) + (X / alpha[groups]) @ X.T
        return -multivariate_normal(cov=cov).logpdf(y) - np.sum(a * x[:3] - b * alpha)

    best = minimize(negative, np.zeros(4), method="BFGS")
    state = searched(replace(method, tolerance=1e-10, max_iterations=20_000), problem, objective)[1].state
    order = np.argsort(state.index)
    assert_array_equal(state.index[order], np.arange(6))
    assert_allclose(state.objective, -best.fun, atol=1e-6)
    # 1e-6 nats from a top whose curvature in log alpha is of order one
    assert_allclose(np.log(state.alpha[order]), best.x[:3][groups], atol=5e-3)
    assert_allclose(state.theta, best.x[3:], atol=5e-3)


def alike(seed, n=100, G=12):
    """Twelve groups of one to four columns, all made of four hidden ones; four matter."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(G), rng.integers(1, 5, G))
    hidden, M = rng.standard_normal((n, 4)), len(labels)
    X = hidden @ rng.standard_normal((4, M)) + 0.5 * rng.standard_normal((n, M))
    w = np.isin(labels, rng.choice(G, 4, replace=False)) * rng.standard_normal(M) * 0.5
    return problem_of("normal", X, targets("normal", X @ w, rng), labels), labels


@pytest.mark.parametrize("seed", [0, 1, 7, 33])
def test_no_group_would_do_better_in_the_place_of_another(seed):
    """Every exchange of one term for another, and every deletion, climbed to its top.

    Seeds 7 and 33 are such that a search without exchanges of groups ends lower.
    """
    problem, labels = alike(seed)
    approximation, outcome = searched(bs.methods.Sequential(), problem, Objective(1.0))
    state, bias = outcome.state, len(labels)
    terms = set(labels[state.index[state.free]].tolist())
    climb = Ascent(approximation, problem.theta_bounds, 1e-6)
    for gone in terms:
        for come in [None, *(set(labels.tolist()) - terms)]:
            index = np.append(np.flatnonzero(np.isin(labels, list(terms - {gone} | {come}))), bias)
            known = dict(zip(state.index.tolist(), state.alpha.tolist(), strict=True))
            alpha = np.array([known.get(column, np.median(state.alpha)) for column in index.tolist()])
            changed, _ = climb(approximation.at(index, alpha, state.theta), 50)
            assert changed.objective < state.objective + 0.02


def test_mackay_ends_at_its_fixed_point():
    problem = simulated("normal", 3)
    state = searched(bs.methods.MacKay(tolerance=1e-12), problem, Objective())[1].state
    label = problem.grouping.label[state.index]
    for own in np.unique(label[state.free]):
        at = label == own
        assert_allclose(state.alpha[at], state.gamma[at].sum() / np.sum(state.mean[at] ** 2), rtol=1e-3)


@METHODS
def test_more_columns_than_rows(method):
    """A posterior on the side of the rows; a group larger than the data is left out by a search that adds."""
    rng = np.random.default_rng(4)
    groups = np.repeat(np.arange(13), [3] * 12 + [50])
    X = rng.standard_normal((40, len(groups)))
    y = X[:, :3] @ [2.0, -1.5, 2.0] + 0.3 * rng.standard_normal(40)
    problem = problem_of("normal", X, y, groups)
    state = searched(method, problem, Objective(price_of(13)))[1].state
    kept = np.isin(np.arange(len(groups)), state.index)
    assert kept[:3].all()
    assert not set(groups[kept]) & set(groups[~kept])
    assert len(set(groups[kept])) <= 2


@METHODS
@pytest.mark.parametrize("link", ["shared", "own"])
def test_a_feature_over_all_classes(method, link):
    """One precision per feature, whatever the class; or one per weight, which is no groups at all."""
    rng = np.random.default_rng(5)
    n, M, C = 240, 6, 3
    X = rng.standard_normal((n, M))
    eta = X[:, :2] @ [[1.5, -1.5, 0.0], [0.0, 1.5, -1.5]]
    y = np.argmax(eta + rng.gumbel(size=(n, C)), axis=1)
    features = np.append(np.tile(np.arange(M), C), np.zeros(C, dtype=int))
    labels = features if link == "shared" else np.arange(len(features))
    design = ClassDesign((Design(X, extra=np.ones((n, 1))),) * C)
    problem = ClassProblem(design, y, np.full(C, 0.01), groups=labels)
    state = searched(method, problem, Objective(1.5))[1].state
    if link == "shared":
        kept = np.bincount(features[state.index[state.free]], minlength=M)
        assert_array_equal(kept, [C, C, 0, 0, 0, 0])
        assert len(np.unique(state.alpha[state.free])) == 2
        return
    none = searched(method, replace(problem, groups=None), Objective(1.5))[1].state
    assert_array_equal(state.index, none.index)
    assert_allclose(state.alpha, none.alpha, rtol=1e-10)


@METHODS
def test_a_feature_in_the_mean_and_in_the_log_sd(method):
    """One precision for what a feature does to either: the two that matter to both are kept, in both."""
    rng = np.random.default_rng(6)
    n, M = 300, 6
    X = rng.standard_normal((n, M))
    y = X[:, :2] @ [0.8, -0.7] + np.exp(X[:, :2] @ [0.4, 0.5] - 0.5) * rng.standard_normal(n)
    features = np.append(np.tile(np.arange(M), 2), [0, 0])
    problem = several(written_out(X, X, 0, 0), y, mean_and_log_sd(y), groups=features)
    state = searched(method, problem, Objective(price_of(offered(problem))))[1].state
    assert offered(problem) == M
    assert_array_equal(np.bincount(features[state.index[state.free]], minlength=M), [2, 2, 0, 0, 0, 0])
    assert len(np.unique(state.alpha[state.free])) == 2


def test_methods_that_give_every_weight_its_own_scale_refuse_groups():
    problem = simulated("bernoulli", 0)
    refused(lambda: searched(bs.methods.GlobalLocal(), problem, Objective(tau0=0.1)), "nuts")
    design = ClassDesign((problem.design,) * 3)
    classes = ClassProblem(design, np.arange(300) % 3, np.full(3, 0.01), groups=np.zeros(design.width, dtype=int))
    refused(lambda: searched(bs.methods.OneVsRest(), classes, Objective()), "mackay")
