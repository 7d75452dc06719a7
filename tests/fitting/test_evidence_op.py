"""The log evidence inside PyMC: value against independent truth, gradient, optimum, and samplers that take it."""

import arviz as az
import cloudpickle
import mpmath
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose
from pytensor.compile.maker import function
from pytensor.gradient import hessian, verify_grad
from scipy.special import expit, log_expit, logsumexp
from scipy.stats import multivariate_normal, norm

import bayes_sparse as bs
from tests.support import UNCOMPILED, assert_one_sentence

TALL, WIDE = (40, 4), (15, 30)


def data(kind, n, M, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(3.0, 2.0, (n, M))
    eta = 0.4 * (X[:, 0] - 3) - 0.2 * (X[:, 1] - 3)
    y = {
        "normal": lambda: eta + rng.standard_normal(n),
        "student_t": lambda: eta + rng.standard_t(4, n),
        "bernoulli": lambda: (rng.random(n) < expit(eta)).astype(int),
        "poisson": lambda: rng.poisson(np.exp(eta)),
        "negative_binomial": lambda: rng.negative_binomial(3, 3 / (3 + np.exp(eta))),
        "categorical": lambda: np.array(["a", "b", "c"])[np.arange(n) % 3],
    }[kind]()
    return X, y


def make(kind, shape, **settings):
    return bs.log_evidence_op(data(kind, *shape), likelihood=kind, **settings)


def point(evidence, seed=1):
    rng = np.random.default_rng(seed)
    return rng.normal(0.0, 1.0, len(evidence.names)), evidence.log_start + 0.3


def value_of(evidence):
    """A compiled function of numbers."""
    x, logs = pt.dvector(), [pt.dscalar() for _ in evidence.nuisance]
    f = function([x, *logs], evidence(x, *logs), mode=UNCOMPILED)
    return lambda log_alpha, theta: float(f(log_alpha, *theta))


@pytest.mark.quick
@pytest.mark.parametrize("shape", [TALL, WIDE], ids=["tall", "wide"])
@pytest.mark.parametrize("kind", ["normal", "bernoulli", "poisson", "negative_binomial", "student_t"])
def test_gradient(kind, shape):
    if kind == "student_t" and shape is WIDE:
        return  # refused, see below
    rng = np.random.default_rng(2)
    weights, offset = rng.uniform(0.5, 2.0, shape[0]), rng.normal(0.0, 0.3, shape[0])
    evidence = make(kind, shape, keep=["x1"], weights=weights, offset=offset)
    log_alpha, theta = point(evidence)
    verify_grad(lambda a, *t: evidence(a, *t), [log_alpha, *map(np.asarray, theta)], rng=rng, mode=UNCOMPILED)
    value, slope = evidence._evidence(np.append(log_alpha, theta))
    assert np.isfinite(value)
    assert slope[1] == 0  # of the column kept
    assert np.all(slope[[0, 2, 3]] != 0)


@pytest.mark.parametrize("shape", [(40, 3), (9, 12)], ids=["tall", "wide"])
def test_gradient_of_several_classes(shape):
    evidence = make("categorical", shape)
    assert evidence.names[0] == "x0[a]"
    x = np.random.default_rng(3).normal(0.0, 1.0, len(evidence.names))
    _, slope = evidence._evidence(x)
    for j in (0, len(x) // 2, len(x) - 1):
        step = 1e-3 * np.eye(len(x))[j]
        near, far = (evidence._evidence(x + k * step)[0] - evidence._evidence(x - k * step)[0] for k in (1, 2))
        # On the side of the rows the evidence of classes is known to 1e-11, which a step of 1e-3 turns into 1e-8.
        assert_allclose(slope[j], (8 * near - far) / 12e-3, atol=2e-7)


@pytest.mark.quick
@pytest.mark.parametrize("shape", [TALL, WIDE], ids=["tall", "wide"])
def test_a_normal_likelihood_has_the_evidence_of_a_multivariate_normal(shape):
    X, y = data("normal", *shape)
    offset = np.linspace(-1, 1, len(y))
    evidence = bs.log_evidence_op((X, y), keep=["x1"], offset=offset)
    log_alpha, theta = point(evidence)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    wide = 10 * np.sqrt(np.mean((y - offset) ** 2))
    variance = np.exp(-log_alpha)
    variance[1] = wide**2
    cov = (Z * variance) @ Z.T + wide**2 + np.exp(2 * theta[0]) * np.eye(len(y))
    assert_allclose(value_of(evidence)(log_alpha, theta), multivariate_normal(offset, cov).logpdf(y), rtol=1e-9)
    assert evidence.approximation == "exact"
    assert evidence.unit == pytest.approx(np.std(y - offset))


def test_a_very_weak_prior_with_more_columns_than_rows_loses_no_digits():
    X, y = data("normal", 6, 9)
    evidence = bs.log_evidence_op((X, y))
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    with mpmath.workdps(60):
        Phi = mpmath.matrix(np.column_stack([Z, np.ones(6)]).tolist())
        prior = mpmath.diag([mpmath.exp(30)] * 9 + [mpmath.mpf(100 * np.mean(y**2))])
        C, t = Phi * prior * Phi.T + mpmath.eye(6), mpmath.matrix(y.tolist())
        exact = -(mpmath.log(mpmath.det(C)) + (t.T * mpmath.lu_solve(C, t))[0] + 6 * mpmath.log(2 * mpmath.pi)) / 2
    assert_allclose(evidence.state(np.full(9, -30.0), np.zeros(1)).log_evidence, float(exact), rtol=1e-6)


def test_a_logistic_regression_of_one_column_against_quadrature():
    X, y = data("bernoulli", 100, 2)
    evidence = bs.log_evidence_op((X[:, :1], y))
    z = (X[:, 0] - X[:, 0].mean()) / X[:, 0].std()
    w, b = np.linspace(-2.0, 4.0, 121), np.linspace(-3.0, 3.0, 121)  # twelve sds each way: sums are exact
    eta = np.where(y == 1, 1.0, -1.0) * (b[:, None] + w[:, None, None] * z)
    height = log_expit(eta).sum(axis=-1) + norm(0, np.exp(-0.25)).logpdf(w)[:, None] + norm(0, 10).logpdf(b)
    exact = logsumexp(height) + np.log((w[1] - w[0]) * (b[1] - b[0]))
    # Laplace's error is of the order of 1 / n an integrated weight.
    assert_allclose(value_of(evidence)(np.array([0.5]), np.empty(0)), exact, atol=0.02)


@pytest.mark.parametrize("kind", ["normal", "bernoulli", "poisson"])
def test_at_the_precisions_of_a_fit_it_is_the_fit_s_own(kind):
    X, y = data(kind, *TALL)
    settings = {"likelihood": kind, "weights": np.linspace(0.5, 1.5, len(y)), "keep": "x1"}
    tree = bs.fit("ard_gaussian", (X, y), method="mackay", hyper=(1.0, 0.1), draws=0, progressbar=False, **settings)
    found = tree["evidence"]
    scale = tree["constant_data"]["basis_scale"].to_numpy()
    evidence = bs.log_evidence_op((X, y), **settings)
    log_alpha = np.log(found["alpha"].to_numpy() / scale**2)
    # The fit leaves its mode where a step would gain 1e-11, 3e-6 sds away.
    assert_allclose(
        value_of(evidence)(log_alpha, found["theta"].to_numpy()), float(found["log_evidence"]), atol=1e-5, rtol=0
    )


@pytest.mark.parametrize("kind", ["normal", "bernoulli", "poisson", "student_t"])
def test_the_maximum_under_a_gamma_prior_is_that_of_mackay(kind):
    X, y = data(kind, 60, 4)
    a, b = 1.0, 0.1
    tree = bs.fit(
        "ard_gaussian", (X, y), likelihood=kind, method="mackay", hyper=(a, b), tolerance=1e-10, draws=0,
        progressbar=False,
    )  # fmt: skip
    evidence = bs.log_evidence_op((X, y), likelihood=kind)
    rate = b * evidence.unit**2
    with pm.Model(coords=evidence.coords) as model:
        log_alpha = pm.Flat("log_alpha", dims="basis")
        logs = [pm.Flat(f"log_{name}") for name in evidence.nuisance]
        pm.Potential("prior", a * log_alpha - rate * pt.exp(log_alpha))
        pm.Potential("evidence", evidence(log_alpha, *logs))
        with pytensor.config.change_flags(linker="py"):
            best = pm.find_MAP(progressbar=False, tol=1e-10)
    height = float(model.compile_logp(mode=UNCOMPILED)({name: best[name] for name in model.initial_point()}))
    found, scale = tree["evidence"], tree["constant_data"]["basis_scale"].to_numpy()
    assert_allclose(height, float(found["objective"]), atol=1e-6, rtol=0)
    state = evidence.state(best["log_alpha"], np.array([best[f"log_{name}"] for name in evidence.nuisance]))
    # At a maximum of the sum, one part moves by no more than the root of what is left of it.
    assert_allclose(state.log_evidence, float(found["log_evidence"]), atol=1e-3, rtol=0)
    assert_allclose(best["log_alpha"], np.log(found["alpha"].to_numpy() / scale**2), atol=1e-3)


@pytest.mark.parametrize(("kind", "shape"), [("poisson", TALL), ("bernoulli", WIDE), ("student_t", TALL)])
def test_the_value_does_not_depend_on_what_was_asked_before(kind, shape):
    evidence, fresh = make(kind, shape), make(kind, shape)
    rng, (log_alpha, theta) = np.random.default_rng(4), point(evidence)
    x = np.append(log_alpha, theta)
    expected = fresh._evidence(x)
    for _ in range(5):
        evidence._evidence(x + rng.normal(0.0, 2.0, len(x)))
        value, slope = evidence._evidence(x)
        assert value == expected[0]  # to the last digit: NUTS repeats itself under a seed
        assert (slope == expected[1]).all()


def test_what_cannot_be_computed_is_impossible_and_forgotten():
    evidence = make("poisson", TALL)
    log_alpha, _ = point(evidence)
    before = evidence._evidence(log_alpha)
    value, slope = evidence._evidence(np.full(4, 800.0))  # precisions beyond the largest double
    assert value == -np.inf
    assert not slope.any()
    assert evidence._evidence(log_alpha)[0] == before[0]


def test_one_precision_for_all_and_groups():
    evidence = make("bernoulli", TALL)
    f, g = pt.dscalar(), pt.dvector()
    shared = function([f], evidence(f), mode=UNCOMPILED)
    grouped = function([g], evidence(g[np.array([0, 0, 1, 1])]), mode=UNCOMPILED)
    each = value_of(evidence)
    assert float(shared(0.7)) == pytest.approx(each(np.full(4, 0.7), []), abs=1e-10)
    assert float(grouped(np.array([0.1, 2.0]))) == pytest.approx(each(np.array([0.1, 0.1, 2.0, 2.0]), []), abs=1e-10)


def test_the_object_says_what_it_is():
    evidence = make("negative_binomial", TALL, keep="x2")
    assert evidence.names == ["x0", "x1", "x2", "x3"]
    assert evidence.coords == {"basis": evidence.names}
    assert evidence.kept.tolist() == [False, False, True, False]
    assert evidence.nuisance == ("dispersion",)
    assert repr(evidence) == "EvidenceOp(log_alpha, log_dispersion): 4 basis functions, approximation 'laplace'"


def test_kernels_and_laplace_by_name():
    X, y = data("normal", 20, 2)
    exact, laplace = (
        bs.log_evidence_op((X, y), basis=bs.basis.rbf(width=2.0), approximation=name) for name in ("exact", "laplace")
    )
    log_alpha, theta = np.zeros(len(exact.names)), exact.log_start
    assert len(exact.names) == 20
    assert exact.state(log_alpha, theta).log_evidence == pytest.approx(laplace.state(log_alpha, theta).log_evidence)


def test_refusals():
    evidence = make("normal", TALL)
    with pytest.raises(TypeError) as no_noise:
        evidence(np.zeros(4))
    assert_one_sentence(str(no_noise.value), "log_alpha, log_sigma", "0 logs")
    with pytest.raises(ValueError, match="one entry per basis function") as matrix:
        evidence(np.zeros((4, 2)), 0.0)
    assert_one_sentence(str(matrix.value))
    with pytest.raises(ValueError, match="not log-concave") as student:
        make("student_t", WIDE)
    assert_one_sentence(str(student.value), "31", "15")
    with pytest.raises(ValueError, match="exact"):
        make("poisson", TALL, approximation="exact")
    x = pt.dvector()
    with pytest.raises(NotImplementedError, match="no second derivatives"):
        hessian(evidence(x, 0.0), x)


def test_it_travels_to_another_process():
    evidence = make("poisson", TALL)
    log_alpha, theta = point(evidence)
    copy = cloudpickle.loads(cloudpickle.dumps(evidence))
    assert copy.state(log_alpha, theta).log_evidence == evidence.state(log_alpha, theta).log_evidence


def groups(evidence):
    """A precision for the first two columns, one for the others."""
    with pm.Model(coords={**evidence.coords, "group": ["signal", "noise"]}) as model:
        of_group = pm.Normal("of_group", 0.0, 2.0, dims="group")
        log_alpha = pm.Deterministic("log_alpha", of_group[np.array([0, 0, 1, 1])], dims="basis")
        logs = [
            pm.Normal(f"log_{name}", start, 3.0)
            for name, start in zip(evidence.nuisance, evidence.log_start, strict=True)
        ]
        pm.Potential("evidence", evidence(log_alpha, *logs))
    return model


@pytest.mark.parametrize(
    ("kind", "sampler", "more"),
    [
        pytest.param("normal", "pymc", {"compile_kwargs": {"mode": UNCOMPILED}}, marks=pytest.mark.slow),
        pytest.param("bernoulli", "nutpie", {}, marks=pytest.mark.slow),
    ],
)
def test_nuts_of_precisions_by_group(kind, sampler, more):
    """Against the same posterior on a grid of the two precisions, where there is no nuisance parameter."""
    if sampler == "nutpie":
        pytest.importorskip("nutpie")
    evidence = make(kind, (80, 4))
    with groups(evidence):
        tree = pm.sample(
            500, tune=500, chains=2, cores=1, random_seed=5, nuts_sampler=sampler, progressbar=False, quiet=True,
            compute_convergence_checks=False, **more,
        )  # fmt: skip
    drawn = tree["posterior"]["of_group"]
    assert int(tree["sample_stats"]["diverging"].sum()) == 0
    assert float(az.rhat(tree)["of_group"].max()) < 1.03
    if kind == "normal":
        return
    grid = np.linspace(-8.0, 8.0, 41)
    height = np.array([[evidence._evidence(np.array([a, a, b, b]))[0] for b in grid] for a in grid])
    p = np.exp(height - height.max() + norm(0, 2).logpdf(grid)[:, None] + norm(0, 2).logpdf(grid))
    p /= p.sum()
    for axis, name in ((0, "signal"), (1, "noise")):
        own = p.sum(axis=1 - axis)
        mean = own @ grid
        sd = np.sqrt(own @ grid**2 - mean**2)
        # Four standard errors of a mean over at least 250 effective draws.
        assert abs(float(drawn.sel(group=name).mean()) - mean) < 4 * sd / np.sqrt(250)
