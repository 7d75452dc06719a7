"""One-step methods through the front door: every number by hand, the tree, the settings, how a fit can end."""

import json
import warnings
from itertools import pairwise

import arviz as az
import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, gammaln, log_expit
from scipy.stats import multivariate_normal

import bayes_sparse as bs

mpl.use("Agg")

RNG = np.random.default_rng(93)
N, P = 60, 4
X = RNG.standard_normal((N, P)) * [1.0, 5.0, 0.2, 1.0] + [0.0, 20.0, -3.0, 0.0]
Z = (X - X.mean(axis=0)) / X.std(axis=0)
NEW = X[:7] + 0.1 * RNG.standard_normal((7, P))
ETA = 1.2 * Z[:, 0] - 0.8 * Z[:, 1]
TARGETS = {
    "normal": ETA + 7.0 + 0.5 * RNG.standard_normal(N),
    "student_t": ETA + 0.5 * RNG.standard_t(4, N),
    "bernoulli": np.where(ETA + RNG.logistic(size=N) > 0, "yes", "no"),
    "poisson": RNG.poisson(np.exp(ETA + 0.5)),
    "negative_binomial": RNG.poisson(RNG.gamma(4.0, np.exp(ETA + 0.5) / 4.0)),
    "categorical": np.array(["a", "b", "c"])[np.argmax(np.c_[ETA, -ETA, Z[:, 2]] + RNG.gumbel(size=(N, 3)), axis=1)],
}
BINARY = (TARGETS["bernoulli"] == "yes").astype(int)
NUISANCE = {"normal": ["sigma"], "student_t": ["sigma"], "negative_binomial": ["dispersion"]}
SYSTEMS = {
    "GREVM": ("ard_gaussian", {"method": "revm"}),
    "LREVM": ("laplace_eigen", {}),
    "R_0": ("ard_gaussian", {"method": "full_matrix"}),
}
BARE = bs.basis.precomputed()
SMALL = {"draws": 20, "chains": 2, "random_seed": 0}


def fit(system, data, **settings):
    model, own = SYSTEMS[system]
    return bs.fit(model, data, **({"draws": 0} | own | settings))


# --- by hand -----------------------------------------------------------------------------------------------------


def logistic(eta, y):
    return log_expit(np.where(y == 1, eta, -eta)), y - expit(eta), -expit(eta) * expit(-eta)


def counts(eta, y):
    return y * eta - np.exp(eta) - gammaln(y + 1), y - np.exp(eta), -np.exp(eta)


def gauss(sigma):
    def terms(eta, y):
        z = (y - eta) / sigma
        return -0.5 * z**2 - np.log(sigma) - 0.5 * np.log(2 * np.pi), z / sigma, np.full_like(z, -(sigma**-2.0))

    return terms


class Hand:
    """The method as METHODS states it, with dense linear algebra, general optimisers and adaptive quadrature."""

    def __init__(self, terms, Phi, y, fixed=None, precision=(0.01,), offset=0.0, repeats=1.0):
        self.Phi, self.y, self.offset, self.repeats = Phi, np.asarray(y, dtype=float), offset, repeats
        self.fixed = np.ones((len(y), 1)) if fixed is None else fixed
        self.A, self.terms, self.d = np.hstack([Phi, self.fixed]), terms, Phi.shape[1]
        self.precision = np.asarray(precision, dtype=float)

    def look(self, v):
        value, first, second = self.terms(self.offset + self.A @ v, self.y)
        H = -(self.A * (self.repeats * second)[:, None]).T @ self.A
        return np.sum(self.repeats * value), self.A.T @ (self.repeats * first), H

    def climb(self, ridge, steps=100):
        v, prior = np.zeros(self.A.shape[1]), np.append(np.full(self.d, ridge), self.precision)
        for _ in range(steps):
            _, slope, H = self.look(v)
            v = v + np.linalg.solve(H + np.diag(prior), slope - prior * v)
        return v

    def best_fixed(self, w):
        v = np.append(w, np.zeros(len(self.precision)))
        for _ in range(100):
            _, slope, H = self.look(v)
            v[self.d :] += np.linalg.solve(
                H[self.d :, self.d :] + np.diag(self.precision), (slope[self.d :] - self.precision * v[self.d :])
            )
        return v

    def expand(self, v, *, keep_slope):
        """Curvatures, centres and directions of the quadratic at v, and its height with the fixed weights gone."""
        d, (value, slope, H) = self.d, self.look(v)
        inner = H[d:, d:] + np.diag(self.precision)
        S = H[:d, :d] - H[:d, d:] @ np.linalg.solve(inner, H[d:, :d])
        h, V = np.linalg.eigh(S)
        real = h > 1e-9 * h.max()
        h, Q = h[real][::-1], V[:, real].T[::-1]
        u, pull = Q @ v[:d], (Q @ slope[:d]) * keep_slope
        height = value + 0.5 * np.sum(np.log(self.precision)) - 0.5 * self.precision @ v[d:] ** 2
        height -= 0.5 * np.linalg.slogdet(inner)[1]
        return h, np.abs(u + pull / h), height + 0.5 * np.sum(pull**2 / h)


def log_integral(h, u, alpha, prior):
    def inside(x):
        density = {
            "gaussian": lambda: np.sqrt(alpha / (2 * np.pi)) * np.exp(-0.5 * alpha * x**2),
            "laplace": lambda: alpha / 4 * np.exp(-0.5 * alpha * abs(x)),
        }[prior]()
        return np.exp(-0.5 * h * (x - u) ** 2) * density

    width = 12 / np.sqrt(h)
    pieces = sorted({min(u - width, -width), 0.0, u, u + width})
    return np.log(sum(quad(inside, a, b, epsabs=0, epsrel=1e-11)[0] for a, b in pairwise(pieces)))


def best(h, u, prior):
    """The greatest log integral over alpha, and where."""
    if h * u**2 <= 1:
        return -0.5 * h * u**2, np.inf
    near = np.log(np.sqrt(h) / u)
    found = minimize_scalar(lambda log: -log_integral(h, u, np.exp(log), prior), bracket=(near - 1, near + 1), tol=1e-9)
    return -found.fun, np.exp(found.x)


def agrees(evidence, h, u, height, prior="gaussian"):
    assert_allclose(evidence["h"], h, rtol=1e-6)
    assert_allclose(evidence["u_expansion"], u, rtol=1e-6, atol=1e-8)
    found = [best(*hu, prior) for hu in zip(h, u, strict=True)]
    assert_allclose(evidence["alpha"], [alpha for _, alpha in found], rtol=2e-4)  # a maximum by values: half the digits
    assert_allclose(evidence["log_evidence"], height + sum(value for value, _ in found), rtol=1e-8)


def at_mode(hand, evidence):
    """Slope of the log-likelihood along the directions kept, and along the fixed weights, at the reported mode."""
    Q = evidence["loading"].to_numpy()
    w = evidence["mode"].to_numpy()
    v = hand.best_fixed(w)
    assert_allclose(Q.T @ (Q @ w), w, atol=1e-9)
    return Q @ hand.look(v)[1][: hand.d], Q @ w


@pytest.mark.parametrize("system", ["GREVM", "LREVM"])
@pytest.mark.parametrize("n", [N, 3], ids=["n > M", "n < M"])
def test_logistic_regression_by_hand(system, n):
    """Also with more columns than rows, where the fit takes another road and the hand does not."""
    prior = {"GREVM": "gaussian", "LREVM": "laplace"}[system]
    Phi, y = (Z, BINARY) if n == N else (RNG.standard_normal((24, 40)) * 2, np.arange(24) % 3 == 0)
    hand = Hand(logistic, Phi, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bs.FitWarning)  # 40 columns separate 24 rows
        tree = fit(system, (Phi, y), basis=BARE)
    agrees(tree["evidence"], *hand.expand(hand.climb(1e-2 * np.mean(Phi**2)), keep_slope=False), prior)


@pytest.mark.parametrize("system", ["GREVM", "LREVM"])
@pytest.mark.parametrize("likelihood", ["bernoulli", "poisson"])
def test_the_last_step_is_the_mode_of_the_true_likelihood(system, likelihood):
    terms, y = (logistic, BINARY) if likelihood == "bernoulli" else (counts, TARGETS["poisson"])
    evidence = fit(system, (Z, y), likelihood=likelihood, basis=BARE)["evidence"]
    slope, u = at_mode(Hand(terms, Z, y), evidence)
    alpha = evidence["alpha"].to_numpy()[np.isfinite(evidence["alpha"])]
    assert_allclose(u, evidence["u_mode"].sel(direction=evidence["kept"]), atol=1e-8)
    if system == "GREVM":
        assert_allclose(slope, alpha * u, atol=1e-5)
    else:  # the slope balances the price of |u|, or falls short of it where u is zero
        assert_allclose(slope[u != 0], (alpha / 2 * np.sign(u))[u != 0], atol=1e-5)
        assert np.all(np.abs(slope[u == 0]) <= alpha[u == 0] / 2)


@pytest.mark.parametrize("bias", [True, False])
def test_a_normal_likelihood_has_the_exact_evidence(bias):
    """With the centre kept (expansion at zero) nothing is approximated: the density of the targets, given the prior."""
    basis, y = bs.basis.precomputed(bias=bias), TARGETS["normal"] - (0.0 if bias else 7.0)
    evidence = fit("GREVM", (Z, y), basis=basis, expansion="zero")["evidence"]
    Q = evidence["loading"].to_numpy()
    alpha = evidence["alpha"].sel(direction=evidence["kept"]).to_numpy()
    covariance = evidence["sigma"].item() ** 2 * np.eye(N) + (Z @ Q.T / alpha) @ (Z @ Q.T).T
    if bias:
        covariance += 100 * np.mean(y**2)
    expected = multivariate_normal(np.zeros(N), covariance).logpdf(y)
    assert_allclose(evidence["log_evidence"], expected, rtol=1e-9)
    assert_allclose(evidence["log_evidence_mode"], expected, rtol=1e-9)
    assert ("bias" in evidence) == bias


def test_the_noise_is_that_of_the_best_ridge():
    """One precision for all weights and the noise, by the exact density of the targets."""
    y = TARGETS["normal"]

    def lack(logs):
        ridge, noise = np.exp(logs)
        covariance = noise**2 * np.eye(N) + Z @ Z.T / ridge + 1e4 * np.mean(y**2)
        return -multivariate_normal(np.zeros(N), covariance).logpdf(y)

    found = minimize(lack, [0.0, np.log(0.5)], method="Nelder-Mead", options={"xatol": 1e-5, "fatol": 1e-7})
    evidence = fit("GREVM", (Z, y), basis=BARE)["evidence"]
    assert_allclose(np.log(evidence["sigma"]), found.x[1], atol=1e-3)
    assert_allclose(np.log(evidence["ridge"]), found.x[0], atol=2e-2)  # a flat maximum


@pytest.mark.filterwarnings("ignore:The quadratic:bayes_sparse.FitWarning")  # counts are far from quadratic at zero
def test_a_fixed_column_an_offset_and_weights_by_hand():
    """Poisson regression with an exposure, a column that is never pruned and rows that count more than once."""
    offset, repeats = np.linspace(-1, 1, N), np.arange(N) % 3 + 1.0
    y = RNG.poisson(np.exp(offset + ETA))
    free, size = [0, 2, 3], Z[:, 1].std()
    hand = Hand(counts, Z[:, free], y, np.c_[Z[:, 1], np.ones(N)], [size**2 / 100, 0.01], offset, repeats)
    settings = {"likelihood": "poisson", "keep": "x1", "offset": offset, "weights": repeats, "basis": BARE}
    evidence = fit("GREVM", (Z, y), expansion="zero", **settings)["evidence"]
    agrees(evidence, *hand.expand(hand.best_fixed(np.zeros(3)), keep_slope=True))
    assert np.all(evidence["loading"].sel(basis="x1") == 0)
    assert evidence["mean"].sel(basis="x1") < 0
    tree = fit("GREVM", (Z, y), expansion="zero", **settings, **SMALL)
    assert_array_equal(bs.predict(tree, Z, offset=offset)["mean"] > 0, True)
    w = tree["posterior"]["w"].sel(basis="x1")
    assert w.std() > 0


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("likelihood", ["bernoulli", "poisson", "normal", "categorical"])
def test_a_weight_of_two_is_a_row_twice(system, likelihood):
    repeats = np.arange(N) % 3 + 1
    rows, y = np.repeat(np.arange(N), repeats), TARGETS[likelihood]
    model, own = SYSTEMS[system]
    settings = {"likelihood": likelihood, "basis": BARE, "draws": 0, "bias_sd": 10.0, **own}
    one = bs.fit(model, (Z, y), weights=repeats, **settings)["evidence"]
    two = bs.fit(model, (Z[rows], y[rows]), **settings)["evidence"]
    for name in ("log_evidence", "log_evidence_mode", "h", "gamma", "mean", "sd"):
        assert_allclose(one[name], two[name], rtol=1e-6, atol=1e-8, err_msg=name)


# --- where the likelihood is expanded ----------------------------------------------------------------------------


def test_zero_keeps_the_slope_there():
    hand = Hand(logistic, Z, BINARY)
    evidence = fit("GREVM", (Z, BINARY), basis=BARE, expansion="zero")["evidence"]
    agrees(evidence, *hand.expand(hand.best_fixed(np.zeros(P)), keep_slope=True))
    assert evidence.attrs["expansion"] == "zero"


@pytest.mark.parametrize("steps", [1, 2, 5, np.int64(3)])
def test_a_number_of_newton_steps(steps):
    hand = Hand(logistic, Z, BINARY)
    evidence = fit("GREVM", (Z, BINARY), basis=BARE, expansion=steps)["evidence"]
    agrees(evidence, *hand.expand(hand.climb(1e-8 * np.mean(Z**2), int(steps)), keep_slope=False))
    assert evidence.attrs["expansion"] == str(steps)


def test_the_number_of_steps_may_be_numpys_with_more_columns_than_rows():
    wide = RNG.standard_normal((20, 30))
    y = wide[:, 0] + RNG.standard_normal(20)
    one, two = (fit("GREVM", (wide, y), expansion=k)["evidence"] for k in (2, np.int64(2)))
    assert one.to_dataset().equals(two.to_dataset())


@pytest.mark.parametrize("form", [np.asarray, list, lambda w: {"w": w}], ids=["array", "list", "dict"])
def test_a_point_of_the_users_keeps_its_slope(form):
    """The ridge's own solution, given as a point: the same quadratic but for the slope."""
    hand = Hand(logistic, Z, BINARY)
    v = hand.climb(1e-2 * np.mean(Z**2))
    evidence = fit("GREVM", (Z, BINARY), basis=BARE, expansion=form(v[:P]))["evidence"]
    agrees(evidence, *hand.expand(v, keep_slope=True))
    ridge = fit("GREVM", (Z, BINARY), basis=BARE)["evidence"]
    assert_allclose(evidence["h"], ridge["h"], rtol=1e-6)
    assert np.all(evidence["u_expansion"] > ridge["u_expansion"])  # the ridge had drawn them all towards zero


def test_a_point_is_in_the_users_units():
    w = np.array([1.0, -0.1, 0.5, 0.0])
    point = fit("GREVM", (X, BINARY), expansion=w)["evidence"]
    bare = fit("GREVM", (Z, BINARY), expansion=w * X.std(axis=0), basis=BARE)["evidence"]
    for name in ("log_evidence", "h", "alpha", "u_mode"):
        assert_allclose(point[name], bare[name], rtol=1e-6)
    assert_allclose(point["mean"] * X.std(axis=0), bare["mean"], rtol=1e-6)


def test_the_ridge_of_greatest_evidence():
    hand = Hand(logistic, Z, BINARY)
    evidence = fit("GREVM", (Z, BINARY), basis=BARE, expansion="evidence")["evidence"]

    def lack(log_ridge):
        ridge = np.exp(log_ridge)
        v = hand.climb(ridge)
        value, _, H = hand.look(v)
        prior = np.append(np.full(P, ridge), 0.01)
        inside = 0.5 * np.sum(np.log(prior)) - 0.5 * prior @ v**2 - 0.5 * np.linalg.slogdet(H + np.diag(prior))[1]
        return -(value + inside)

    found = minimize_scalar(lack, bounds=(-6, 6), method="bounded")
    assert_allclose(np.log(evidence["ridge"]), found.x, atol=0.01)
    assert_allclose(evidence["ridge_log_evidence"], -found.fun, atol=1e-5)
    agrees(evidence, *hand.expand(hand.climb(evidence["ridge"].item()), keep_slope=False))


def test_the_size_of_the_small_ridge_is_a_setting():
    hand = Hand(logistic, Z, BINARY)
    evidence = fit("LREVM", (Z, BINARY), basis=BARE, ridge=0.5)["evidence"]
    agrees(evidence, *hand.expand(hand.climb(0.5 * np.mean(Z**2)), keep_slope=False), "laplace")


def test_the_model_may_say_where():
    by_model = bs.fit(bs.models.LaplaceEigen(expansion="zero"), (X, BINARY), draws=0)["evidence"]
    by_name = fit("LREVM", (X, BINARY), expansion="zero")["evidence"]
    by_method = bs.fit("laplace_eigen", (X, BINARY), method=bs.methods.REVM(expansion="zero"), draws=0)["evidence"]
    assert by_model.to_dataset().equals(by_name.to_dataset())
    assert by_model.to_dataset().equals(by_method.to_dataset())
    assert by_model.attrs["expansion"] == "zero"


@pytest.mark.parametrize("system", ["GREVM", "LREVM"])
def test_the_posterior_of_a_normal_likelihood_is_that_of_the_quadratic_where_the_centre_is_kept(system):
    settings = {"likelihood": "normal", "expansion": "zero"}
    one, two = (fit(system, (X, TARGETS["normal"]), posterior=p, **settings)["evidence"] for p in ("mode", "quadratic"))
    for name in ("mean", "sd", "bias", "bias_sd", "u_mean", "u_sd"):
        assert_allclose(one[name], two[name], rtol=1e-6, atol=1e-9)


def test_the_octant_of_the_papers_has_the_same_mode():
    one, two = (fit("LREVM", (X, TARGETS["poisson"]), likelihood="poisson", octant=o)["evidence"] for o in (0, 1))
    assert_allclose(one["mode"], two["mode"], rtol=1e-6)


# --- the tree ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trees():
    made = {}

    def make(system, likelihood):
        if (system, likelihood) not in made:
            made[system, likelihood] = fit(
                system, (X, TARGETS[likelihood]), likelihood=likelihood, draws=250, chains=4, random_seed=9
            )
        return made[system, likelihood]

    return make


EVERY = [(system, likelihood) for system in SYSTEMS for likelihood in TARGETS]


@pytest.mark.parametrize(("system", "likelihood"), EVERY)
def test_groups_and_dims(trees, system, likelihood):
    tree = trees(system, likelihood)
    evidence, posterior = tree["evidence"], tree["posterior"]
    groups = {"posterior", "sample_stats", "log_likelihood", "observed_data", "constant_data", "evidence"}
    assert groups == set(tree.children)
    several = likelihood == "categorical"
    kept, total = int(np.isfinite(evidence["alpha"]).sum()), evidence.sizes["direction"]
    assert 0 < kept <= total
    assert posterior["u"].dims == ("chain", "draw", "direction")
    assert posterior["u"].shape == (4, 250, kept)
    assert posterior["w"].dims == ("chain", "draw", *(["class"] if several else []), "basis")
    assert posterior["w"].shape == (4, 250, *([3] if several else []), P)
    assert set(posterior.data_vars) == {"u", "w", "bias", *NUISANCE.get(likelihood, [])}
    assert tree["log_likelihood"]["y"].shape == (4, 250, N)
    for name in ("h", "u_expansion", "alpha", "u_mode", "u_mean", "u_sd", "gamma", "relevant"):
        assert evidence[name].dims == ("direction",)
    for name in ("mean", "mode", "sd"):
        assert evidence[name].dims == ("basis",)
    assert evidence.sizes["basis"] == (3 * P if several else P)
    assert evidence["loading"].dims == ("kept", "basis")
    assert_array_equal(posterior["direction"], evidence["kept"])
    assert all(evidence[name].item() > 0 for name in NUISANCE.get(likelihood, []))


@pytest.mark.parametrize(("system", "likelihood"), EVERY)
def test_attributes(trees, system, likelihood):
    evidence = trees(system, likelihood)["evidence"]
    attributes = evidence.attrs
    assert attributes["method"] == {"R_0": "full_matrix"}.get(system, "revm")
    assert attributes["prior"] == {"LREVM": "laplace"}.get(system, "gaussian")
    assert attributes["approximation"] == "quadratic"
    assert attributes["status"] == "converged"
    assert attributes["expansion"] == "ridge"
    assert attributes["separable"] == attributes["directions_dropped"] == attributes["smoothness"] == 0
    assert attributes["directions"] == evidence.sizes["direction"]
    assert attributes["directions_kept"] == int(evidence["relevant"].sum())
    assert_allclose(attributes["degrees_of_freedom"], evidence["gamma"].sum())
    assert attributes["n_iterations"] > 0
    assert attributes["seconds"] > 0
    assert {"bayes_sparse", "pymc"} <= set(json.loads(attributes["versions"]))


@pytest.mark.parametrize(("system", "likelihood"), EVERY)
def test_draws_have_the_moments_of_the_evidence_group(trees, system, likelihood):
    tree = trees(system, likelihood)
    evidence, posterior = tree["evidence"], tree["posterior"].to_dataset().stack(sample=("chain", "draw"))
    own = {"u": evidence.to_dataset().sel(direction=evidence["kept"])[["u_mean", "u_sd"]], "w": evidence, "bias": None}
    for name, moments in own.items():
        drawn = posterior[name].transpose(..., "sample").to_numpy().reshape(-1, 1000)
        mean, sd = {"u": ("u_mean", "u_sd"), "w": ("mean", "sd"), "bias": ("bias", "bias_sd")}[name]
        mean, sd = (np.ravel((evidence if moments is None else moments)[key]) for key in (mean, sd))
        assert np.all(np.abs(drawn.mean(axis=1) - mean) < 5 * sd / np.sqrt(1000))
        assert_allclose(
            drawn.std(axis=1), sd, rtol=0.25
        )  # a Laplace posterior may have heavier tails than a normal one


@pytest.mark.parametrize(("system", "likelihood"), EVERY)
def test_draws_of_weights_are_those_of_the_directions(trees, system, likelihood):
    """w = Q'u, in the user's units."""
    tree = trees(system, likelihood)
    u = tree["posterior"]["u"].to_numpy()
    w = u @ tree["evidence"]["loading"].to_numpy()
    assert_allclose(tree["posterior"]["w"].to_numpy().reshape(w.shape), w / np.tile(X.std(axis=0), w.shape[-1] // P))


# One row of sixty has much leverage: its k-hat is near the limit for any posterior.
@pytest.mark.filterwarnings("ignore:Estimated shape parameter of Pareto:UserWarning")
@pytest.mark.parametrize(("system", "likelihood"), [*(("LREVM", name) for name in TARGETS), ("GREVM", "normal")])
def test_arviz_takes_the_tree_as_it_is(trees, system, likelihood):
    tree = trees(system, likelihood)
    summary, loo = az.summary(tree), az.loo(tree)
    assert any(name.startswith("u[") for name in summary.index)
    assert np.isfinite(summary["mean"].astype(float)).all()
    pointwise = tree["log_likelihood"]["y"].stack(sample=("chain", "draw")).to_numpy()
    in_sample = np.sum(np.log(np.mean(np.exp(pointwise), axis=1)))
    assert in_sample - 15 < loo.elpd < in_sample


@pytest.mark.parametrize("system", SYSTEMS)
def test_importance_weights_average_to_the_evidence(trees, system):
    """p(y, u) / q(u) at the draws, for a normal likelihood with the slope at the ridge dropped: nearly constant."""
    tree = trees(system, "normal")
    ratio = (tree["sample_stats"]["log_p"] - tree["sample_stats"]["log_q"]).to_numpy()
    assert ratio.std() < 0.2
    assert_allclose(np.log(np.mean(np.exp(ratio))), tree["evidence"]["log_evidence_mode"], atol=0.05)


@pytest.mark.parametrize(("system", "likelihood"), EVERY)
def test_a_tree_without_draws_predicts_the_same(trees, system, likelihood):
    bare = fit(system, (X, TARGETS[likelihood]), likelihood=likelihood)
    assert set(bare.children) == {"evidence", "observed_data", "constant_data"}
    assert bs.predict(bare, NEW).identical(bs.predict(trees(system, likelihood), NEW))


@pytest.mark.parametrize(
    ("system", "likelihood"), [("GREVM", "normal"), ("LREVM", "categorical"), ("R_0", "bernoulli")]
)
def test_a_saved_tree_predicts_the_same(trees, tmp_path, system, likelihood):
    tree = trees(system, likelihood)
    expected = bs.predict(tree, NEW)
    tree.to_netcdf(tmp_path / "fit.nc")
    with xr.open_datatree(tmp_path / "fit.nc") as back:
        found = bs.predict(back, NEW)
        for variable in expected.variables:
            assert found[variable].to_numpy().tolist() == expected[variable].to_numpy().tolist()
        assert back["evidence"].attrs["status"] == "converged"
        assert back["evidence"]["relevant"].dtype == bool
        pd.testing.assert_frame_equal(bs.relevance(back, space="eigen"), bs.relevance(tree, space="eigen"))


@pytest.mark.parametrize("likelihood", TARGETS)
def test_the_gaussian_model_on_eigen_coordinates_is_the_same_fit(trees, likelihood):
    one = trees("GREVM", likelihood)
    two = bs.fit("gaussian_eigen", (X, TARGETS[likelihood]), likelihood=likelihood, draws=250, random_seed=9)
    for group in ("evidence", "posterior", "sample_stats", "log_likelihood"):
        assert one[group].to_dataset().equals(two[group].to_dataset())


@pytest.mark.parametrize("system", SYSTEMS)
def test_seeds(system):
    one, two, other = (fit(system, (X, TARGETS["normal"]), **SMALL | {"random_seed": s}) for s in (5, 5, 6))
    assert one["posterior"].to_dataset().identical(two["posterior"].to_dataset())
    assert one["log_likelihood"].to_dataset().identical(two["log_likelihood"].to_dataset())
    assert not np.array_equal(one["posterior"]["w"], other["posterior"]["w"])
    assert one["evidence"].to_dataset().equals(other["evidence"].to_dataset())


def test_a_fit_without_a_bias_has_none():
    tree = fit("LREVM", (X, TARGETS["poisson"]), likelihood="poisson", basis=bs.basis.linear(bias=False), **SMALL)
    assert "bias" not in tree["posterior"]
    assert "bias" not in tree["evidence"]
    assert bs.predict(tree, NEW)["mean"].shape == (7,)


# --- bases -------------------------------------------------------------------------------------------------------

BASES = {
    "linear": bs.basis.linear(),
    "rbf": bs.basis.rbf(1.5, standardise=True),
    "polynomial": bs.basis.polynomial(standardise=True),
    "precomputed": bs.basis.precomputed(),
    "inner_product": bs.basis.inner_product(standardise=True),
}


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("name", BASES)
def test_predictions_are_those_of_the_reported_weights(system, name):
    basis, y = BASES[name], TARGETS["normal"]
    tree = fit(system, (X, y), basis=basis)
    evidence = tree["evidence"]
    scale = basis.kernel and basis.standardise
    new, old = (((A - X.mean(axis=0)) / X.std(axis=0)) if scale else A for A in (NEW, X))
    Phi = basis.matrix(new, old if basis.kernel else None)
    bias = evidence["bias"].item() if basis.bias else 0.0
    prediction = bs.predict(tree, NEW)
    assert_allclose(prediction["mean"], Phi @ evidence["mean"].to_numpy() + bias, rtol=1e-8)
    assert np.all(prediction["sd"] > evidence["sigma"])
    assert np.corrcoef(bs.predict(tree, X)["mean"], ETA)[0, 1] > 0.9


@pytest.mark.parametrize("system", SYSTEMS)
def test_kernels_learn_a_curve(system):
    x = np.linspace(-3, 3, 60)[:, None]
    y = np.sin(2 * x[:, 0]) + 0.1 * np.random.default_rng(3).standard_normal(60)
    tree = fit(system, (x, y), basis=bs.basis.rbf(0.6))
    assert_allclose(bs.predict(tree, x[5:-5])["mean"], np.sin(2 * x[5:-5, 0]), atol=0.2)
    assert_allclose(tree["evidence"]["sigma"], 0.1, rtol=0.3)


def test_several_columns_can_be_kept():
    evidence = fit("GREVM", (X, BINARY), keep=["x2", "x3"])["evidence"]
    assert evidence.attrs["directions"] == 2
    assert np.all(evidence["loading"].sel(basis=["x2", "x3"]) == 0)
    assert np.all(evidence["sd"] > 0)


@pytest.mark.parametrize("likelihood", ["bernoulli", "normal"])
def test_all_columns_can_be_kept(likelihood):
    """A plain regression with nothing to find, which is not the model without any term."""
    tree = fit("GREVM", (X, TARGETS[likelihood]), keep=["x0", "x1", "x2", "x3"])
    assert tree["evidence"].attrs["directions"] == 0
    assert tree["evidence"].attrs["status"] == "converged"
    assert np.all(tree["evidence"]["sd"] > 0)
    truth = {"bernoulli": lambda: bs.predict(tree, X)["probability"].sel({"class": "yes"})}
    assert np.corrcoef(truth.get(likelihood, lambda: bs.predict(tree, X)["mean"])(), ETA)[0, 1] > 0.9


# --- how a fit can end -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("likelihood", ["bernoulli", "categorical"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_separable_classes_are_reported(system, likelihood, messages):
    y = Z[:, 1] > 0.1 if likelihood == "bernoulli" else np.digitize(Z[:, 1], [-0.5, 0.5])
    with pytest.warns(bs.FitWarning, match="separate the classes perfectly.*check with method='nuts'") as caught:
        tree = fit(system, (X, y), likelihood=likelihood)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert tree["evidence"].attrs["separable"] == 1
    assert tree["evidence"].attrs["status"] == "separable"
    assert len(messages) == 1
    assert "separate the classes" in messages[0]
    assert "`expansion`" in messages[0]
    probability = bs.predict(tree, X)["probability"].to_numpy()
    assert np.all((probability > 0) & (probability < 1))


def test_separable_at_the_expansion_but_not_at_the_answer():
    """Kernels separate anything; the few directions kept do not, and the status speaks of them."""
    with pytest.warns(bs.FitWarning, match="misjudges the evidence"):
        evidence = fit("GREVM", (Z, BINARY), basis=bs.basis.rbf(0.5))["evidence"]
    assert evidence.attrs["separable"] == 1
    assert evidence.attrs["status"] == "converged"
    assert 0 < evidence.attrs["directions_kept"] < 60


RARE = np.arange(N) % 4 == 0
NOTHING = {  # targets that have nothing to do with X: what is predicted, and its value for a new row
    "bernoulli": (RARE, lambda p: p["probability"].sel({"class": True}), RARE.mean()),
    "categorical": (np.arange(N) % 4 // 2 + RARE, lambda p: p["probability"].sel({"class": 1}), 0.75),
    "normal": (np.arange(N) % 4 + 3.5, lambda p: p["mean"], 5.0),
    "poisson": (np.arange(N) % 4, lambda p: p["mean"], 1.5),
}


@pytest.mark.parametrize("likelihood", NOTHING)
@pytest.mark.parametrize("system", SYSTEMS)
def test_the_answer_when_nothing_is_kept_is_the_base_rate(system, likelihood):
    """Columns orthogonal to the target: every direction is pruned, and the prediction is the bias's, never 0.5."""
    y, of, rate = NOTHING[likelihood]
    wave = 2 * np.pi * np.arange(N)[:, None] / N * np.array([1, 2, 7])
    with pytest.warns(bs.FitWarning, match="No basis function pays for itself.*bias only") as caught:
        tree = fit(system, (np.cos(wave), y), likelihood=likelihood, **SMALL)
    assert len(caught) == 1
    evidence = tree["evidence"]
    assert evidence.attrs["status"] == "null"
    assert evidence.attrs["directions_kept"] == evidence.attrs["degrees_of_freedom"] == 0
    assert np.isposinf(evidence["alpha"]).all()
    assert np.all(evidence["mean"] == 0)
    assert "u" not in tree["posterior"]
    assert "w" not in tree["posterior"]
    assert_allclose(of(bs.predict(tree, np.cos(wave[:5]))), rate, rtol=0.03)  # a wide prior and an average over it


@pytest.mark.filterwarnings("ignore:No basis function pays:bayes_sparse.FitWarning")
@pytest.mark.parametrize("system", SYSTEMS)
def test_nothing_kept_and_no_bias_is_an_even_chance_and_quiet(system, capfd):
    wave = np.cos(2 * np.pi * np.arange(N)[:, None] / N * np.array([1, 2]))
    tree = fit(system, (wave, np.arange(N) % 2), likelihood="bernoulli", basis=bs.basis.linear(bias=False), **SMALL)
    assert tree["evidence"].attrs["status"] == "null"
    assert_allclose(bs.predict(tree, wave[:3])["probability"], 0.5)
    assert capfd.readouterr().out == ""  # an empty matrix makes LAPACK complain to the terminal


def test_a_kept_column_is_not_nothing():
    wave = np.cos(2 * np.pi * np.arange(N)[:, None] / N * np.array([1, 2]))
    tree = fit("GREVM", (np.column_stack([wave, Z[:, 0]]), BINARY), keep="x2", expansion=1)
    kept = tree["evidence"]
    assert kept["mean"].sel(basis="x2") > 0
    assert kept.attrs["status"] == "converged"


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_target_without_noise(system):
    with pytest.warns(bs.FitWarning, match="noise has collapsed"):
        tree = fit(system, (X, 1.0 + 2.0 * X[:, 0] - X[:, 1]))
    assert tree["evidence"].attrs["status"] == "noise_collapsed"
    assert_allclose(tree["evidence"]["mean"], [2.0, -1.0, 0.0, 0.0], atol=1e-2)


@pytest.mark.parametrize("system", ["GREVM", "LREVM"])
def test_a_fit_that_uses_up_the_data(system):
    rng = np.random.default_rng(4)
    wide = rng.standard_normal((20, 60))
    with pytest.warns(bs.FitWarning, match="noise has collapsed|uses up the data") as caught:
        tree = fit(system, (wide, wide @ rng.standard_normal(60)))
    assert "offer fewer basis functions" in str(caught[0].message)
    assert tree["evidence"].attrs["degrees_of_freedom"] > 10


def student_curvature(r, sigma, nu=4.0):
    return (nu + 1) * (nu * sigma**2 - r**2) / (nu * sigma**2 + r**2) ** 2


@pytest.mark.parametrize("system", SYSTEMS)
def test_gross_outliers_turn_directions_upwards_and_that_is_said(system, messages):
    y = ETA + 0.3 * np.random.default_rng(1).standard_normal(N)
    y[:5] += 50 * Z[:5, 3]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bs.FitWarning)
        evidence = fit(system, (Z, y), likelihood="student_t", expansion="zero", basis=BARE)["evidence"]
    found = minimize_scalar(lambda b: np.sum(np.log1p((y - b) ** 2 / (4 * evidence["sigma"].item() ** 2))))
    A = np.column_stack([Z, np.ones(N)])
    H = (A * student_curvature(y - found.x, evidence["sigma"].item())[:, None]).T @ A
    S = H[:P, :P] - np.outer(H[:P, P], H[P, :P]) / (H[P, P] + 0.01 / np.median(y**2))
    upwards = int(np.sum(np.linalg.eigvalsh(S) < 0))
    assert upwards > 0
    assert evidence.attrs["directions_dropped"] == upwards
    assert f"{upwards} of 4 directions along which it curves upwards were dropped" in messages[0]
    assert evidence.attrs["directions"] == (1 if system == "R_0" else P - upwards)


@pytest.mark.parametrize(("outliers", "seed"), [(1, 0), (5, 6), (20, 0)])
@pytest.mark.parametrize("system", SYSTEMS)
def test_an_evidence_is_never_above_the_highest_likelihood(system, outliers, seed):
    """Whatever outliers do to the quadratic, the evidence at the mode is an average of likelihoods."""
    rng = np.random.default_rng(seed)
    y = ETA + 0.3 * rng.standard_normal(N)
    y[:outliers] += 50 * Z[:outliers, 3]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bs.FitWarning)
        evidence = fit(system, (X, y), likelihood="student_t", expansion="zero")["evidence"]
    highest = N * (np.log(0.375) - np.log(evidence["sigma"].item()))  # the density of t with 4 degrees at zero is 3/8
    assert evidence["log_evidence_mode"] < highest


def test_a_quadratic_far_from_the_likelihood_is_pointed_out():
    with pytest.warns(bs.FitWarning, match=r"misjudges the evidence by \d+ nats.*expansion='evidence' is safer"):
        evidence = fit("GREVM", (X, TARGETS["poisson"]), likelihood="poisson", expansion="zero")["evidence"]
    assert evidence.attrs["status"] == "converged"
    assert abs(evidence["log_evidence"] - evidence["log_evidence_mode"]) > 10


def test_a_normal_likelihood_is_never_called_far_from_quadratic():
    """What the small ridge leaves out may be large when the noise is small; that is another sentence."""
    y = 1.0 + 2.0 * X[:, 0] - X[:, 1] + 1e-3 * RNG.standard_normal(N)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit("GREVM", (X, y))
    assert not any("far from quadratic" in str(w.message) for w in caught)


# --- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "expansion",
    [0, -2, True, 1.5, "foo", np.zeros(3), [], {"v": np.zeros(P)}, {"w": np.zeros(3)}, np.full(P, np.nan), ["a"] * P],
    ids=repr,
)
def test_no_expansion(expansion):
    with pytest.raises(ValueError, match=r"(`expansion` is 'ridge'.*got|[Ee]xpansion point .*'w').*\.$") as error:
        fit("GREVM", (X, BINARY), expansion=expansion)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"ridge": -1.0}, "`ridge` must be positive, got -1.0"),
        ({"ridge": np.nan}, "`ridge` must be positive, got nan"),
        ({"ridge": np.inf}, "`ridge`"),
        ({"ridge": "large"}, "`ridge`"),
        ({"posterior": "exact"}, "`posterior` is 'mode' or 'quadratic', got 'exact'"),
        ({"smoothness": "some"}, "`smoothness` is 'auto' or a number"),
    ],
    ids=str,
)
def test_settings_out_of_range(settings, words):
    with pytest.raises((ValueError, TypeError), match=words):
        fit("GREVM", (X, BINARY), **settings)


@pytest.mark.parametrize("name", ["octants", "max_iterations", "tolerance", "tune"])
def test_a_setting_that_does_not_exist_lists_those_that_do(name):
    listed = rf"has a setting '{name}'; the method has expansion, octant, posterior, ridge, the model bias_sd\."
    with pytest.raises(TypeError, match=listed):
        fit("GREVM", (X, BINARY), **{name: 3})
    with pytest.raises(TypeError, match=r"'full_matrix'.*the method has expansion, ridge"):
        fit("R_0", (X, BINARY), octant=True)


def test_settings_of_the_model_by_name():
    narrow = fit("GREVM", (X, TARGETS["normal"]), bias_sd=1e-3)["evidence"]
    assert abs(narrow["bias"].item() + X.mean(axis=0) @ narrow["mean"].to_numpy()) < 0.1
    assert json.loads(fit("LREVM", (X, BINARY), bias_sd=3.0).attrs["bayes_sparse"])["bias_sd"] == 3.0


@pytest.mark.parametrize("method", ["sequential", "mackay", "em"])
@pytest.mark.parametrize("model", ["laplace_eigen", "gaussian_eigen"])
def test_a_prior_on_eigen_coordinates_needs_a_method_that_knows_them(model, method):
    with pytest.raises(ValueError, match=f"The method '{method}' .* on eigen-coordinates is fitted by method='revm'"):
        bs.fit(model, (X, BINARY), method=method)


def test_the_full_matrix_is_of_a_normal_prior():
    with pytest.raises(ValueError, match=r"'full_matrix' finds the precisions of a normal prior; a laplace prior"):
        bs.fit("laplace_eigen", (X, BINARY), method="full_matrix")


def test_a_laplace_prior_has_no_price():
    with pytest.raises(ValueError, match=r"Laplace prior has no price .*smoothness is 1\.0"):
        fit("LREVM", (X, BINARY), smoothness=1.0)
    assert fit("LREVM", (X, BINARY), smoothness=0)["evidence"].attrs["status"] == "converged"


def test_a_normal_prior_has_one():
    """A direction enters when h u^2 exceeds 1 + 2c."""
    free, priced = (fit("GREVM", (X, TARGETS["normal"]), smoothness=c)["evidence"] for c in (0, 2.0))
    strength = free["h"] * free["u_expansion"] ** 2
    assert_array_equal(np.isfinite(priced["alpha"]), strength > 5)
    kept = (strength > 5).to_numpy()
    assert_allclose(priced["alpha"][kept], (free["h"] / (strength - 5))[kept])
    assert_allclose(priced["objective"], priced["log_evidence"] - 2.0 * priced["gamma"].sum())
    assert priced.attrs["smoothness"] == 2.0


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_proper_hyper_prior_is_refused(system):
    with pytest.raises(ValueError, match=r"needs the flat hyper-prior \(0, 0\)") as error:
        fit(system, (X, BINARY), hyper=(1.0, 1.0))
    if system == "LREVM":  # which would refuse the model
        assert "mackay" not in str(error.value)
    assert fit(system, (X, BINARY), hyper=(0.0, 0.0))["evidence"].attrs["status"] == "converged"
