"""Reading a user's own model: the numbers against PyMC's log-density, derivatives against finite differences."""

import time

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from scipy import stats

from bayes_sparse import compiled
from bayes_sparse.graph import read_model

PLAIN = Mode(linker="py", optimizer=None)
N, P = 30, 4
RNG = np.random.default_rng(12)
X = RNG.normal(size=(N, P))
Z = RNG.normal(size=(N, 2))
REAL = RNG.normal(size=N)
COUNT = RNG.poisson(2.0, size=N)
BINARY = RNG.integers(0, 2, size=N)
POSITIVE = RNG.gamma(2.0, size=N)
GROUP = np.arange(N) % 3
EXPOSURE = RNG.uniform(0.5, 3.0, size=N)


def sparse_weights(name="w", p=P):
    alpha = pm.Gamma(f"alpha_{name}", 1.0, 1.0, shape=p)
    return pm.Normal(name, 0.0, tau=alpha, shape=p)


def random_state(declared, seed=3):
    rng = np.random.default_rng(seed)
    problem = declared.problem
    w = 0.4 * rng.normal(size=problem.design.width)
    theta = problem.theta + 0.3 * rng.normal(size=len(problem.theta))
    eta = problem.offset + problem.design.times(w, np.arange(problem.design.width))
    return w, theta, eta


def pymc_log_density(model, variables, declared, w, theta):
    """PyMC's own value at the same point, by the names of the user's variables."""
    point = {slot.name: slot.values(w) for slot in declared.sparse + declared.fixed}
    start = 0
    for name in declared.nuisance:
        value = model.rvs_to_values[model[name]]
        shape = model.initial_point()[value.name].shape
        size = int(np.prod(shape))
        point[value.name] = theta[start : start + size].reshape(shape)
        start += size
    assert start == len(theta)
    inputs = [value for value in model.value_vars if value.name in point]
    graph = model.logp(vars=variables)
    return float(
        pytensor.function(inputs, graph, mode=PLAIN, on_unused_input="ignore")(*[point[v.name] for v in inputs])
    )


def check(model, weights=None):
    """Likelihood, its derivatives and the nuisance prior of a model, against PyMC."""
    declared = read_model(model, weights)
    problem = declared.problem
    w, theta, eta = random_state(declared)
    values = problem.pointwise(eta, theta)
    assert all(v.shape == (len(problem.y),) for v in values)
    np.testing.assert_allclose(
        values[0].sum(), pymc_log_density(model, model.observed_RVs, declared, w, theta), rtol=1e-9
    )
    step = 1e-5
    above, below = problem.pointwise(eta + step, theta), problem.pointwise(eta - step, theta)
    for order in range(3):
        slope = (above[order] - below[order]) / (2 * step)
        np.testing.assert_allclose(values[order + 1], slope, rtol=2e-6, atol=2e-6)
    if len(theta):
        nuisance = [model[name] for name in declared.nuisance]
        np.testing.assert_allclose(
            problem.log_prior(theta), pymc_log_density(model, nuisance, declared, w, theta), rtol=1e-9
        )
        np.testing.assert_array_equal(problem.theta_bounds, problem.theta[:, None] + [-30.0, 30.0])
    else:
        assert problem.log_prior is None
    assert len(problem.fixed_precision(theta)) == (~problem.free).sum()
    assert len(problem.free) == problem.design.width
    return declared


# ----- likelihoods


def bernoulli_logit(eta):
    pm.Bernoulli("y", logit_p=eta, observed=BINARY)


def bernoulli_sigmoid(eta):
    pm.Bernoulli("y", p=pm.math.sigmoid(eta), observed=BINARY)


def bernoulli_probit(eta):
    pm.Bernoulli("y", p=pm.math.invprobit(eta), observed=BINARY)


def poisson(eta):
    pm.Poisson("y", pm.math.exp(eta), observed=COUNT)


def poisson_exposure(eta):
    pm.Poisson("y", pm.math.exp(eta) * EXPOSURE, observed=COUNT)


def poisson_offset(eta):
    pm.Poisson("y", pm.math.exp(eta + np.log(EXPOSURE)), observed=COUNT)


def negative_binomial(eta):
    pm.NegativeBinomial("y", mu=pm.math.exp(eta), alpha=pm.Exponential("shape", 1.0), observed=COUNT)


def student_t(eta):
    nu = pm.Gamma("nu", 2.0, 0.1)
    pm.StudentT("y", nu=nu, mu=eta, sigma=pm.HalfNormal("sigma", 1.0), observed=REAL)


def student_t_known(eta):
    pm.StudentT("y", nu=4, mu=eta, sigma=pm.HalfCauchy("sigma", 1.0), observed=REAL)


def normal(eta):
    pm.Normal("y", eta, pm.HalfNormal("sigma", 2.0), observed=REAL)


def normal_known(eta):
    pm.Normal("y", eta, 0.7, observed=REAL)


def normal_rows(eta):
    pm.Normal("y", eta, EXPOSURE, observed=REAL)


def normal_indirect(eta):
    pm.Normal("y", eta, pm.math.exp(pm.Normal("log_sigma", 0.0, 1.0)), observed=REAL)


def normal_by_group(eta):
    pm.Normal("y", eta, pm.HalfNormal("sigma", 1.0, shape=3)[GROUP], observed=REAL)


def normal_tau(eta):
    pm.Normal("y", eta, tau=pm.Gamma("tau", 2.0, 1.0), observed=REAL)


def gamma(eta):
    shape = pm.HalfNormal("shape", 2.0)
    pm.Gamma("y", alpha=shape, beta=shape / pm.math.exp(eta), observed=POSITIVE)


def exponential(eta):
    pm.Exponential("y", scale=pm.math.exp(eta), observed=POSITIVE)


def binomial(eta):
    pm.Binomial("y", n=COUNT + 3, logit_p=eta, observed=COUNT)


def laplace_log_density(value, mu, scale):
    return -(pt.abs(value - mu) ** 1.5) / scale - pt.log(scale)


def custom(eta):
    pm.CustomDist("y", eta, pm.HalfNormal("scale", 1.0), logp=laplace_log_density, observed=REAL)


def custom_with_data(eta):
    def log_density(value, mu):
        return -0.5 * pt.log1p((value - mu) ** 2 * EXPOSURE)

    pm.CustomDist("y", eta, logp=log_density, observed=REAL)


def zero_inflated(eta):
    pm.ZeroInflatedPoisson("y", psi=pm.Beta("psi", 2.0, 2.0), mu=pm.math.exp(eta), observed=COUNT)


def censored(eta):
    latent = pm.Normal.dist(eta, pm.HalfNormal("sigma", 1.0))
    pm.Censored("y", latent, lower=None, upper=1.0, observed=np.minimum(REAL, 1.0))


FAMILIES = {
    bernoulli_logit: "bernoulli",
    bernoulli_sigmoid: "bernoulli",
    bernoulli_probit: "bernoulli",
    poisson: "poisson",
    poisson_exposure: "poisson",
    poisson_offset: "poisson",
    negative_binomial: "negative_binomial",
    student_t: "student_t",
    student_t_known: "student_t",
    normal: "normal",
    normal_known: "normal",
    normal_rows: "normal",
    normal_indirect: "normal",
    normal_by_group: "normal",
    normal_tau: "normal",
    gamma: "gamma",
    exponential: "exponential",
    binomial: "binomial",
    custom: "custom",
    custom_with_data: "custom",
    zero_inflated: "mixture",
    censored: "censored",
}


def with_likelihood(family, X=X):
    with pm.Model() as model:
        family(pm.Normal("b", 0.5, 10.0) + X @ sparse_weights(p=X.shape[1]))
    return model


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
def test_likelihood(family):
    declared = check(with_likelihood(family))
    assert declared.describe == FAMILIES[family]
    assert declared.precision == {"w": ("alpha_w",)}
    assert declared.observed == "y"
    assert declared.problem.free.tolist() == [True] * P + [False]
    expected = {normal, normal_known, normal_rows}
    assert declared.problem.normal == (family in expected)


def test_normal_noise():
    problem = read_model(with_likelihood(normal)).problem
    np.testing.assert_allclose(problem.theta, np.log(2.0))  # the log of the prior's support point
    problem = read_model(with_likelihood(normal_known)).problem
    assert problem.theta.size == 0
    assert problem.sigma == pytest.approx(0.7)
    problem = read_model(with_likelihood(normal_rows)).problem
    np.testing.assert_array_equal(problem.sigma, EXPOSURE)


@pytest.mark.parametrize("family", [bernoulli_logit, bernoulli_sigmoid, bernoulli_probit, binomial])
def test_far_out_nothing_overflows(family):
    declared = read_model(with_likelihood(family))
    for far in (-35.0, 35.0):
        density, first, second, third = declared.problem.pointwise(np.full(N, far), declared.problem.theta)
        assert all(np.isfinite(v).all() for v in (density, first, second, third))
        if family is bernoulli_probit:
            exact = stats.norm.logcdf(np.where(BINARY == 1, far, -far))
            np.testing.assert_allclose(density, exact, rtol=1e-6, atol=1e-15)
            wrong = (BINARY == 1) == (far < 0)
            np.testing.assert_allclose(second[wrong], -1.0, atol=2e-3)  # -1 + 1 / far^2 + ...


def test_start_is_the_models_initial_point():
    with pm.Model() as model:
        scale = pm.Gamma("scale", 3.0, 2.0)
        sigma = pm.HalfNormal("sigma", scale)
        bounded = pm.Uniform("bounded", -1.0, 2.0, initval=0.25)
        pm.StudentT("y", nu=4 + bounded, mu=X @ sparse_weights(), sigma=sigma, observed=REAL)
    declared = read_model(model)
    initial = model.initial_point()
    expected = [initial["scale_log__"], initial["sigma_log__"], initial["bounded_interval__"]]
    np.testing.assert_allclose(declared.problem.theta, expected)
    values = declared.unpack(declared.problem.theta)
    assert values["bounded"] == pytest.approx(0.25)
    assert values["sigma"] == pytest.approx(np.exp(initial["sigma_log__"]))
    check(model)


# ----- predictors


def poisson_model(build):
    with pm.Model(coords={"feature": list("abcd"), "obs": np.arange(N), "group": ["g0", "g1", "g2"]}) as model:
        pm.Poisson("y", pm.math.exp(build()), observed=COUNT)
    return model


PREDICTORS = {
    "matmul": lambda: X @ sparse_weights(),
    "pt.dot": lambda: pt.dot(X, sparse_weights()),
    "pm.math.dot": lambda: pm.math.dot(X, sparse_weights()),
    "product summed": lambda: (X * sparse_weights()).sum(-1),
    "product summed, transposed": lambda: (X.T * sparse_weights()[:, None]).sum(0),
    "from the left": lambda: sparse_weights() @ X.T,
    "dot from the left": lambda: pt.dot(sparse_weights(), X.T),
    "pm.Data": lambda: pm.Data("X", X) @ sparse_weights(),
    "pm.Data transposed": lambda: sparse_weights() @ pm.Data("X", X).T,
    "einsum": lambda: pt.einsum("ij,j->i", X, sparse_weights()),
    "one-column matrix": lambda: (X @ sparse_weights()[:, None])[:, 0],
    "scaled inside": lambda: X @ (sparse_weights() * np.arange(1.0, P + 1)),
    "scaled outside": lambda: 2.0 * (X @ sparse_weights()) / EXPOSURE - 0.3,
    "subtracted": lambda: 1.5 - X @ sparse_weights(),
    "the same weights twice": lambda: sum([X @ (w := sparse_weights()), (X**2) @ w]),
    "column by column": lambda: sum(X[:, j] * w for j, w in enumerate(sparse_weights())),
    "in between": lambda: pm.Deterministic("eta", pm.Deterministic("part", X @ sparse_weights()) + 0.1),
    "standardised data": lambda: ((d := pm.Data("X", X)) - d.mean(0)) / 2.0 @ sparse_weights(),
    "random slopes": lambda: X @ sparse_weights() + (Z * pm.Normal("slope", 0.2, 1.0, shape=(3, 2))[GROUP]).sum(-1),
    "one column": lambda: X[:, :1] @ sparse_weights(p=1),
    "one column, summed": lambda: (X[:, :1] * sparse_weights()).sum(-1),
    "a mean": lambda: pt.mean(X * sparse_weights(), axis=1),
}


@pytest.mark.parametrize("name", PREDICTORS)
def test_predictor(name):
    check(poisson_model(PREDICTORS[name]))


@pytest.mark.parametrize(
    "name", ["matmul", "pt.dot", "pm.math.dot", "product summed", "from the left", "pm.Data", "pm.Data transposed"]
)
def test_usual_products_take_the_columns_as_they_are(name):
    declared = read_model(poisson_model(PREDICTORS[name]))
    np.testing.assert_array_equal(declared.problem.design.columns(np.arange(P)), X)


def test_the_matrix_is_not_copied():
    model = poisson_model(lambda: pm.Data("X", X) @ sparse_weights())
    held = model["X"].get_value(borrow=True)
    assert np.shares_memory(read_model(model).problem.design._X, held)


def test_integer_data():
    counts = RNG.integers(0, 5, size=(N, P))
    declared = check(poisson_model(lambda: 0.5 + pm.Data("X", counts) @ sparse_weights() / 7.0))
    np.testing.assert_allclose(declared.problem.design.columns(np.arange(P)), counts / 7.0, rtol=1e-14)


def test_new_data():
    with pm.Model() as model:
        data, target = pm.Data("X", X), pm.Data("target", COUNT)
        pm.Poisson("y", pm.math.exp(data @ sparse_weights()), observed=target)
    check(model)
    with model:
        pm.set_data({"X": X[:20] + 1.0, "target": COUNT[:20]})
    declared = check(model)
    np.testing.assert_array_equal(declared.problem.design.columns(np.arange(P)), X[:20] + 1.0)
    np.testing.assert_array_equal(declared.problem.y, COUNT[:20])


def test_two_sparse_terms():
    declared = check(poisson_model(lambda: X @ sparse_weights("v") + Z @ sparse_weights("w", 2)))
    assert [slot.name for slot in declared.sparse] == ["v", "w"]
    assert [slot.columns for slot in declared.sparse] == [slice(0, 4), slice(4, 6)]
    assert declared.problem.free.all()
    np.testing.assert_array_equal(declared.problem.design.columns(np.arange(6)), np.hstack([X, Z]))


def test_sparse_and_fixed_terms():
    declared = check(poisson_model(lambda: Z @ pm.Normal("v", 1.0, 2.0, shape=2) + X @ sparse_weights()))
    assert [slot.name for slot in declared.fixed] == ["v"]
    np.testing.assert_allclose(declared.problem.fixed_precision(declared.problem.theta), [0.25, 0.25])
    np.testing.assert_allclose(declared.problem.offset, Z.sum(1))
    np.testing.assert_array_equal(declared.problem.design.columns(np.arange(4, 6)), Z)


@pytest.mark.parametrize(
    ("intercept", "mean", "precision"),
    [
        (lambda: pm.Normal("b", 0.0, 10.0), 0.0, 0.01),
        (lambda: pm.Normal("b", 1.5, tau=4.0), 1.5, 4.0),
        (lambda: pm.Flat("b"), 0.0, 0.0),
        (lambda: pm.Normal("b", -1.0, 0.5, shape=1), -1.0, 4.0),
    ],
)
def test_intercept(intercept, mean, precision):
    declared = check(poisson_model(lambda: intercept() + X @ sparse_weights()))
    np.testing.assert_allclose(declared.problem.offset, np.full(N, mean))
    np.testing.assert_allclose(declared.problem.fixed_precision(declared.problem.theta), [precision])
    np.testing.assert_array_equal(declared.problem.design.extra, np.ones((N, 1)))
    [slot] = declared.fixed
    np.testing.assert_allclose(slot.values(np.arange(5.0)), np.full(slot.shape, 4.0 + mean))
    np.testing.assert_allclose(slot.values(np.ones((7, 5))), np.full((7, *slot.shape), 1.0 + mean))


def test_random_intercepts():
    def build():
        u = pm.Normal("u", 0.0, pm.HalfNormal("tau", 1.0), dims="group")
        return X @ sparse_weights() + u[GROUP]

    declared = check(poisson_model(build))
    assert declared.nuisance == ("tau",)
    np.testing.assert_allclose(declared.problem.fixed_precision(np.array([np.log(0.5)])), np.full(3, 4.0))
    np.testing.assert_array_equal(declared.problem.design.extra, np.eye(3)[GROUP])
    [slot] = declared.fixed
    assert slot.dims == ("group",)
    assert slot.coords["group"].tolist() == ["g0", "g1", "g2"]


def test_dims_and_coords():
    with pm.Model(coords={"feature": list("abcd"), "obs": np.arange(N) + 100}) as model:
        data = pm.Data("X", X, dims=("obs", "feature"))
        alpha = pm.HalfCauchy("alpha", 1.0, dims="feature")
        w = pm.Normal("w", 0.0, alpha, dims="feature")
        pm.Bernoulli("y", logit_p=data @ w, observed=BINARY, dims="obs")
    declared = check(model)
    [slot] = declared.sparse
    assert (slot.name, slot.shape, slot.dims) == ("w", (P,), ("feature",))
    assert slot.coords["feature"].tolist() == list("abcd")
    assert declared.obs_dims == ("obs",)
    assert declared.obs_coords["obs"].tolist() == list(range(100, 100 + N))


def test_weights_that_are_the_predictor():
    """One weight an observation, denoising: the design is the identity."""
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, pm.HalfCauchy("alpha", 1.0, shape=N))
        pm.StudentT("y", nu=4, mu=w, sigma=1.0, observed=REAL)
    declared = check(model)
    np.testing.assert_array_equal(declared.problem.design.columns(np.arange(N)), np.eye(N))


def test_named_weights_with_a_constant_sd():
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, 1.0, shape=P)
        pm.Bernoulli("y", logit_p=pm.Normal("b", 0, 1) + X @ w, observed=BINARY)
    declared = check(model, weights="w")
    assert declared.precision == {"w": ()}
    assert declared.hyper("w", np.ones(P)) is None
    assert declared.problem.free.tolist() == [True] * P + [False]


def test_naming_one_of_two_leaves_the_other_fixed():
    with pm.Model() as model:
        v = pm.Normal("v", 0.0, 2.0, shape=2)
        w = pm.Normal("w", 0.0, 1.0, shape=P)
        pm.Bernoulli("y", logit_p=Z @ v + X @ w, observed=BINARY)
    declared = check(model, weights="w")
    assert [slot.name for slot in declared.fixed] == ["v"]
    np.testing.assert_allclose(declared.problem.fixed_precision(np.empty(0)), [0.25, 0.25])


def test_naming_weights_keeps_those_with_their_own_precisions_sparse():
    with pm.Model() as model:
        v = pm.Normal("v", 0.0, 2.0, shape=2)
        pm.Bernoulli("y", logit_p=Z @ v + X @ sparse_weights(), observed=BINARY)
    declared = check(model, weights="v")
    assert [slot.name for slot in declared.sparse] == ["v", "w"]
    assert declared.nuisance == ()


# ----- the sparse prior


@pytest.mark.parametrize(
    ("prior", "alpha"),
    [
        (lambda a: {"tau": a}, lambda p: p),
        (lambda a: {"sigma": a}, lambda p: p**-0.5),
        (lambda a: {"sigma": 1 / a}, lambda p: p**0.5),
        (lambda a: {"sigma": a**-0.5}, lambda p: p),
        (lambda a: {"sigma": 3.0 * pm.math.sqrt(a)}, lambda p: 1 / (9 * p)),
        (lambda a: {"tau": a / np.arange(1.0, P + 1)}, lambda p: p * np.arange(1.0, P + 1)),
    ],
)
def test_hyper_values(prior, alpha):
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, **prior(pm.Gamma("alpha", 1.0, 1.0, shape=P)))
        pm.Bernoulli("y", logit_p=X @ w, observed=BINARY)
    precision = np.array([0.5, 2.0, 7.0, 100.0])
    np.testing.assert_allclose(read_model(model).hyper("w", precision)["alpha"], alpha(precision))


def test_hyper_values_of_pruned_weights():
    with pm.Model() as model:
        pm.Bernoulli("y", logit_p=X @ sparse_weights(), observed=BINARY)
    pruned = np.array([1.0, np.inf, 2.0, np.inf])
    np.testing.assert_allclose(read_model(model).hyper("w", pruned)["alpha_w"], pruned)


@pytest.mark.parametrize("sd", [lambda a: 1 + a, lambda a: a[::-1], pm.math.exp], ids=["sum", "permuted", "exp"])
def test_no_hyper_values_where_there_is_no_power_law(sd):
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, sd(pm.HalfNormal("alpha", 1.0, shape=P)))
        pm.Bernoulli("y", logit_p=X @ w, observed=BINARY)
    assert read_model(model).hyper("w", np.ones(P)) is None


def test_global_and_local_scales_are_both_named():
    with pm.Model() as model:
        scale, local = pm.HalfCauchy("scale", 1.0), pm.HalfCauchy("local", 1.0, shape=P)
        pm.Bernoulli("y", logit_p=X @ pm.Normal("w", 0.0, scale * local), observed=BINARY)
    declared = check(model)
    assert declared.precision == {"w": ("scale", "local")}
    assert declared.nuisance == ()
    assert declared.hyper("w", np.ones(P)) is None


# ----- prediction


def test_simulate_follows_the_users_distribution():
    declared = read_model(with_likelihood(negative_binomial))
    theta, eta = np.log([3.0]), np.full(N, np.log(5.0))
    rng = np.random.default_rng(5)
    draws = np.concatenate([declared.simulate(eta, theta, rng) for _ in range(200)])
    variance = 5.0 + 25.0 / 3.0
    # 4.5 standard errors of the mean of 6000 draws: a false alarm in 150,000 runs
    assert abs(draws.mean() - 5.0) < 4.5 * np.sqrt(variance / len(draws))
    share = (draws == 0).mean()
    exact = stats.nbinom(3.0, 3.0 / 8.0).pmf(0)
    assert abs(share - exact) < 4.5 * np.sqrt(exact * (1 - exact) / len(draws))
    again = declared.simulate(eta, theta, np.random.default_rng(1))
    np.testing.assert_array_equal(again, declared.simulate(eta, theta, np.random.default_rng(1)))
    assert (again != declared.simulate(eta, theta, np.random.default_rng(2))).any()


def test_simulate_leaves_the_users_model_alone():
    model = with_likelihood(zero_inflated)
    before = [str(rng.get_value().bit_generator.state) for rng in _random_states(model)]
    declared = read_model(model)
    draws = declared.simulate(np.full(N, 1.0), declared.problem.theta, np.random.default_rng(1))
    assert draws.shape == (N,)
    assert before == [str(rng.get_value().bit_generator.state) for rng in _random_states(model)]


def _random_states(model):
    graph = pytensor.graph.traversal.ancestors([model["y"]])
    return [v for v in graph if v.owner is None and "Random" in type(v.type).__name__ and hasattr(v, "get_value")]


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        (bernoulli_probit, lambda eta: stats.norm.cdf(eta)),
        (poisson_exposure, lambda eta: np.exp(eta) * EXPOSURE),
        (normal, lambda eta: eta),
        (gamma, lambda eta: np.exp(eta)),
        (binomial, lambda eta: (COUNT + 3) / (1 + np.exp(-eta))),
    ],
    ids=lambda f: getattr(f, "__name__", ""),
)
def test_mean(family, expected):
    declared = read_model(with_likelihood(family))
    _, theta, eta = random_state(declared)
    # PyMC keeps the probit link's square root of 2 in single precision
    np.testing.assert_allclose(
        declared.mean(eta, theta), expected(eta), rtol=1e-6 if family is bernoulli_probit else 1e-12
    )


def test_no_mean_of_a_users_own_distribution():
    assert read_model(with_likelihood(custom)).mean is None


def test_refuses_to_simulate_a_density_alone():
    declared = read_model(with_likelihood(custom))
    with pytest.raises(ValueError, match=r"'y' cannot be simulated; give pm\.CustomDist a function random=f"):
        declared.simulate(np.zeros(N), declared.problem.theta, np.random.default_rng(0))


def test_simulate_a_users_own_distribution():
    def draw(mu, rng=None, size=None):
        return rng.normal(mu, 0.1, size=size)

    with pm.Model() as model:
        eta = X @ sparse_weights()
        pm.CustomDist("y", eta, logp=lambda v, mu: -((v - mu) ** 2), random=draw, observed=REAL)
    drawn = read_model(model).simulate(np.arange(N) * 10.0, np.empty(0), np.random.default_rng(0))
    assert np.abs(drawn - np.arange(N) * 10.0).max() < 1.0


def test_predicting_other_rows_than_the_likelihoods_data():
    declared = read_model(with_likelihood(poisson_exposure))
    with pytest.raises(ValueError, match="uses data with 30 rows, but the predictor has 7; set the new data"):
        declared.simulate(np.zeros(7), np.empty(0), np.random.default_rng(0))


# ----- compiled once for every structure


@pytest.mark.parametrize("family", [negative_binomial, poisson_exposure, custom, custom_with_data, zero_inflated])
def test_a_second_model_of_the_same_structure_compiles_nothing(family, monkeypatch):
    check(with_likelihood(family))
    size = len(compiled._cache)
    monkeypatch.setitem(globals(), "EXPOSURE", EXPOSURE[:20] + 0.5)
    monkeypatch.setitem(globals(), "COUNT", COUNT[:20] + 1)
    monkeypatch.setitem(globals(), "REAL", REAL[:20] * 2)
    check(with_likelihood(family, X=X[:20, :3] + 1.0))
    assert len(compiled._cache) == size


def test_other_structures_and_constants_are_not_confused():
    check(with_likelihood(student_t_known))
    size = len(compiled._cache)

    def other(eta):
        pm.StudentT("y", nu=7, mu=eta, sigma=pm.HalfCauchy("sigma", 1.0), observed=REAL)

    check(with_likelihood(other))
    assert len(compiled._cache) == size + 1


def test_whole_numbers_and_fractions_are_not_confused():
    for exposure in (COUNT + 1, EXPOSURE):
        with pm.Model() as model:
            pm.Poisson("y", exposure * pm.math.exp(0.1 + X @ sparse_weights()), observed=COUNT)
        check(model)


def test_users_own_densities_are_not_confused():
    def with_power(power):
        def log_density(value, mu):
            return -power * pt.log1p((value - mu) ** 2)

        with pm.Model() as model:
            pm.CustomDist("y", X @ sparse_weights(), logp=log_density, observed=REAL)
        return model

    check(with_power(1.5))
    check(with_power(2.5))


def test_nuisance_priors_are_not_confused():
    """The compiled log-density of a prior is shared too: other numbers, shapes and families must not be."""
    for prior in (
        lambda: pm.HalfNormal("sigma", 1.0, shape=3),
        lambda: pm.HalfNormal("sigma", 2.0, shape=3),
        lambda: pm.HalfNormal("sigma", 2.0, shape=4),
        lambda: pm.HalfCauchy("sigma", 2.0, shape=4),
        lambda: pm.HalfNormal("sigma", np.array([1.0, 2.0, 3.0])),
        lambda: pm.HalfNormal("sigma", np.array([3.0, 2.0, 3.0])),
        lambda: pm.HalfNormal("sigma", pm.Exponential("scale", 1.0), shape=3),
    ):
        with pm.Model() as model:
            pm.Normal("y", X @ sparse_weights(), prior()[GROUP], observed=REAL)
        check(model)


def test_reading_is_quick():
    rng = np.random.default_rng(0)
    big = rng.normal(size=(500, 200))
    with pm.Model() as model:
        sigma = pm.HalfNormal("sigma", 1.0)
        mu = pm.Normal("b", 0.0, 10.0) + pm.Data("X", big) @ sparse_weights(p=200)
        pm.StudentT("y", nu=4, mu=mu, sigma=sigma, observed=rng.normal(size=500))
    seconds = []
    for _ in range(7):
        start = time.perf_counter()
        read_model(model)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.03


# ----- refusals


def refused(build, match, **kwargs):
    with pm.Model() as model:
        build()
    with pytest.raises(ValueError, match=match) as caught:
        read_model(model, **kwargs)
    assert str(caught.value).count(". ") == 0  # one sentence


def test_refuses_a_model_without_a_sparse_prior():
    def build():
        pm.Normal("y", pm.Normal("b", 0, 1) + X @ pm.Normal("w", 0, 1, shape=P), 1.0, observed=REAL)

    refused(build, r"No sparse prior was found.* are 'w', .*bayes_sparse\.models\.Declared\(model, weights=\"w\"\)")
    refused(build, "weights='v' does not name .* are 'w'", weights="v")
    refused(build, "weights='b' does not name", weights="b")


def test_refuses_a_shared_scale():
    def build():
        pm.Normal("y", X @ pm.Normal("w", 0, pm.HalfNormal("tau", 1.0), shape=P), 1.0, observed=REAL)

    refused(build, "'w' share the prior scale 'tau'; a sparse prior needs one precision a weight")
    refused(build, "'w' share the prior scale 'tau'", weights="w")


def test_refuses_discrete_latent_variables():
    def build():
        z = pm.Bernoulli("z", 0.5)
        pm.Normal("y", z + X @ sparse_weights(), 1.0, observed=REAL)

    refused(build, "'z' is discrete")


def test_refuses_several_observed_variables():
    def build():
        mu = X @ sparse_weights()
        pm.Normal("y1", mu, 1.0, observed=REAL)
        pm.Normal("y2", mu, 1.0, observed=REAL)

    refused(build, "exactly one observed variable; it has 'y1', 'y2'")
    refused(lambda: sparse_weights(), "exactly one observed variable; it has none")


@pytest.mark.filterwarnings("ignore:Data in y contains missing values")
def test_refuses_missing_values():
    def build():
        pm.Normal("y", X @ sparse_weights(), 1.0, observed=np.ma.masked_array(REAL, REAL > 1))

    refused(build, "'y' has missing values; leave those rows out")


@pytest.mark.parametrize(
    "predictor",
    [
        lambda w: X @ w**2,
        lambda w: np.eye(N) @ pm.math.exp(X @ w),
        lambda w: np.ones((N, 7)) @ pm.math.exp(np.ones((7, P)) @ w),
        lambda w: (X @ w).sum() * np.ones(N) + pm.math.exp(w[0]),
        lambda w: X @ (w * pm.HalfNormal("scale", 1.0)),
        lambda w: pm.math.softmax(X @ w),
    ],
    ids=["square", "nested", "nested, other length", "scalar", "random coefficients", "softmax"],
)
def test_refuses_a_predictor_that_is_not_linear(predictor):
    refused(lambda: pm.Normal("y", predictor(sparse_weights()), 1.0, observed=REAL), "need.* linear predictor|single")


def test_refuses_weights_in_two_predictors():
    def build():
        w = sparse_weights()
        pm.Normal("y", X @ w, pm.math.exp(X**2 @ w), observed=REAL)

    refused(build, "'w' enter the likelihood through 2 different linear predictors")


def test_one_predictor_used_twice_is_fine():
    with pm.Model() as model:
        eta = X @ sparse_weights()
        pm.Normal("y", eta, pm.math.exp(-0.5 * eta), observed=REAL)
    check(model)


def test_refuses_an_effect_inside_and_outside_the_predictor():
    def build():
        b = pm.Normal("b", 0, 1)
        pm.Normal("y", b + X @ sparse_weights(), pm.math.exp(b), observed=REAL)

    refused(build, "'b' reaches the likelihood both through the linear predictor and outside it")


def test_refuses_a_multivariate_prior():
    def build():
        pm.Normal("y", X @ pm.MvNormal("w", np.zeros(P), np.eye(P)), 1.0, observed=REAL)

    refused(build, "'w' has a multivariate normal prior, which is not supported")
    refused(build, "'w' has a multivariate normal prior, which is not supported", weights="w")


def test_refuses_a_random_prior_mean():
    def build():
        u = pm.Normal("u", pm.Normal("m", 0, 1), 1.0, shape=3)
        pm.Normal("y", X @ sparse_weights() + u[GROUP], 1.0, observed=REAL)

    refused(build, "prior mean of 'u' depends on 'm'")


def test_refuses_effects_multiplied_by_a_random_scale():
    def build():
        u = pm.Normal("u", 0, 1, shape=3) * pm.HalfNormal("tau", 1.0)
        pm.Normal("y", X @ sparse_weights() + u[GROUP], 1.0, observed=REAL)

    refused(build, "vector 'u' with a Normal prior reaches the likelihood other than through")


def test_refuses_a_potential():
    def build():
        pm.Potential("like", pm.logp(pm.Normal.dist(X @ sparse_weights(), 1.0), REAL).sum())

    refused(build, "has a pm.Potential, 'like'.* pm.CustomDist")


def test_refuses_a_density_that_is_not_a_term_an_observation():
    def build():
        pm.CustomDist("y", X @ sparse_weights(), logp=lambda v, mu: -((v - mu) ** 2).sum(), observed=REAL)

    refused(build, "mixes observations")


def test_refuses_a_density_that_captures_a_variable():
    def build():
        sigma = pm.HalfNormal("sigma", 1.0)
        pm.CustomDist("y", X @ sparse_weights(), logp=lambda v, mu: -((v - mu) ** 2) / sigma, observed=REAL)

    refused(build, "uses 'sigma' without being given it")


def test_refuses_a_table_of_observations():
    def build():
        eta = X @ sparse_weights()
        pm.Normal("y", eta[:, None], 1.0, observed=np.ones((N, 2)))

    refused(build, "'y' has 2 dimensions")


@pytest.mark.parametrize("bad", [np.ones(N - 1), np.full(N, np.nan), -np.ones(N)])
def test_refuses_bad_observation_weights(bad):
    refused(lambda: normal(X @ sparse_weights()), "weights must be 30 finite numbers", observation_weights=bad)


def test_observation_weights_are_passed_on():
    declared = read_model(with_likelihood(normal), observation_weights=EXPOSURE)
    np.testing.assert_array_equal(declared.problem.weights, EXPOSURE)
