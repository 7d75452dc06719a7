"""The declaration behind `jeffreys_laplace`: the density that it says it is, its bounds, and NUTS of it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from pytensor.compile.mode import Mode
from scipy import stats
from scipy.special import expit

import bayes_sparse as bs
from bayes_sparse.inputs.prepare import prepare
from bayes_sparse.models import JeffreysLaplace

PLAIN = Mode(linker="py", optimizer=None)  # compiling a matrix product takes longer than all of these tests
RNG = np.random.default_rng(17)
N = 40
X = RNG.standard_normal((N, 3)) * [1.0, 4.0, 0.5] + [0.0, 10.0, -1.0]
ETA = X[:, 0] + 0.2 * (X[:, 1] - 10.0)
TARGETS = {
    "normal": ETA + 0.5 * RNG.standard_normal(N),
    "bernoulli": (ETA + RNG.logistic(size=N) > 0).astype(int),
    "poisson": RNG.poisson(np.exp(0.5 * ETA + 1.0)),
    "negative_binomial": RNG.poisson(RNG.gamma(2.0, np.exp(0.5 * ETA + 1.0) / 2.0)),
}
GIVEN = {
    "plain": {},
    "keep": {"keep": ["x1"]},
    "weights": {"weights": np.linspace(0.5, 2.0, N)},
    "offset": {"offset": np.sin(np.arange(N))},
    "all": {"keep": ["x0", "x2"], "weights": np.linspace(0.5, 2.0, N), "offset": np.sin(np.arange(N))},
}
every_likelihood = pytest.mark.parametrize("likelihood", TARGETS)


def prepared(likelihood, basis=None, **given):
    arguments = {"keep": None, "weights": None, "offset": None} | given
    return prepare((X, TARGETS[likelihood]), None, likelihood, basis or bs.basis.linear(), **arguments)


def log_likelihood(likelihood, y, eta, nuisance):
    if likelihood == "normal":
        return stats.norm.logpdf(y, eta, nuisance)
    if likelihood == "bernoulli":
        return y * eta - np.logaddexp(0.0, eta)
    if likelihood == "poisson":
        return stats.poisson.logpmf(y, np.exp(eta))
    return stats.nbinom.logpmf(y, nuisance, nuisance / (nuisance + np.exp(eta)))


def moments(values, weights):
    """Mean and variance of columns, each row as often as its weight says."""
    mean = np.average(values, axis=0, weights=weights)
    return mean, np.average((values - mean) ** 2, axis=0, weights=weights)


def start(likelihood, y, offset, weights):
    """Where the wide log-normal prior of a nuisance parameter has its median."""
    # Counts are not in the units of an offset, which is a log.
    mean, variance = moments(y if likelihood == "negative_binomial" else y - offset, weights)
    if likelihood == "normal":
        return np.sqrt(variance)
    return np.clip(mean**2 / max(variance - mean, 1e-12), 0.1, 100.0)


def by_hand(likelihood, point, priced, kept, given, bounds, sd):
    """Log density of the declaration at a point of the scale of each variable; log lambda has a flat one."""
    log_lambda, w, bias, log_nuisance = point
    y, lam = TARGETS[likelihood], np.exp(log_lambda)
    offset, weights = given.get("offset", np.zeros(N)), given.get("weights", np.ones(N))
    mean, variance = moments(X, weights)
    Z = (X - mean) / np.sqrt(variance)
    total = -np.log(np.log(bounds[1] / bounds[0]))
    total += stats.laplace.logpdf(w[priced], 0.0, 1 / lam).sum() + stats.norm.logpdf(w[kept], 0.0, sd).sum()
    total += stats.norm.logpdf(bias, 0.0, sd)
    if likelihood in ("normal", "negative_binomial"):
        total += stats.norm.logpdf(log_nuisance, np.log(start(likelihood, y, offset, weights)), 3.0)
    return total + weights @ log_likelihood(likelihood, y, offset + Z @ w + bias, np.exp(log_nuisance))


CASES = [(likelihood, "all") for likelihood in TARGETS] + [("normal", given) for given in GIVEN if given != "all"]


@pytest.mark.parametrize("centred", [True, False], ids=["centred", "non-centred"])
@pytest.mark.parametrize(("likelihood", "what"), CASES)
def test_the_density_is_the_one_written_down(likelihood, what, centred):
    """At random points; a change of variables from w to z = lambda w costs log lambda a weight, the bounds theirs."""
    bounds, sd, given = (0.05, 30.0), 7.0, GIVEN[what]
    model = JeffreysLaplace(bias_sd=sd, bounds=bounds).declare(prepared(likelihood, **given), centred=centred)
    density = model.compile_logp(mode=PLAIN)
    kept = np.isin(["x0", "x1", "x2"], given.get("keep", []))
    rng = np.random.default_rng(5)
    for _ in range(3):
        share = rng.uniform(0.1, 0.9)  # of the way from the lower to the upper bound of log lambda
        log_lambda = np.log(bounds[0]) + share * np.log(bounds[1] / bounds[0])
        w, bias, log_nuisance = rng.standard_normal(3), rng.standard_normal(), 0.5 * rng.standard_normal()
        truth = by_hand(likelihood, (log_lambda, w, bias, log_nuisance), ~kept, kept, given, bounds, sd)
        point = {"log_lambda_interval__": np.log(share / (1 - share)), "bias": bias}
        truth += np.log(np.log(bounds[1] / bounds[0]) * share * (1 - share))  # of the interval's own coordinate
        if not centred:
            truth -= np.sum(~kept) * log_lambda
        point["z" if kept.any() or not centred else "w"] = w[~kept] * (1.0 if centred else np.exp(log_lambda))
        point |= {"w_kept": w[kept]} if kept.any() else {}
        point |= {f"{name}_log__": log_nuisance for name in prepared(likelihood).likelihood.nuisance}
        assert set(point) == set(model.initial_point())
        assert_allclose(density({name: np.asarray(value) for name, value in point.items()}), truth, rtol=1e-8)


@pytest.mark.parametrize("centred", [True, False])
def test_the_declaration_has_the_documented_variables(centred):
    model = JeffreysLaplace().declare(prepared("normal"), centred=centred)
    assert {rv.name for rv in model.free_RVs} == {"log_lambda", "w" if centred else "z", "bias", "sigma"}
    assert "lambda" in {variable.name for variable in model.deterministics}
    assert model.named_vars_to_dims["w"] == ("basis",)
    assert list(model.coords["basis"]) == ["x0", "x1", "x2"]
    without = JeffreysLaplace().declare(prepared("bernoulli", bs.basis.linear(bias=False)), centred=centred)
    assert "bias" not in {rv.name for rv in without.free_RVs}


def limits(model):
    """Between which lambda lies."""
    owner = model["log_lambda"].owner
    return [float(np.exp(end.eval(mode=PLAIN))) for end in owner.op.dist_params(owner)]


@every_likelihood
def test_bounds_are_those_given_or_wide_ones_that_are_said(likelihood, messages):
    assert_allclose(limits(JeffreysLaplace(bounds=(0.3, 20.0)).declare(prepared(likelihood))), [0.3, 20.0])
    assert messages == []
    low, high = limits(JeffreysLaplace().declare(prepared(likelihood)))
    unit = TARGETS["normal"].std() if likelihood == "normal" else 1.0
    assert_allclose([low, high], [0.01 / unit, 300.0 / unit])
    assert [m for m in messages if f"between {low:.3g} and {high:.3g}" in m and "bounds=(lo, hi)" in m]


def test_the_posterior_does_not_depend_on_the_units_of_the_targets():
    """Where no bounds are given, those of a regression follow its targets."""
    small, large = (
        limits(
            JeffreysLaplace().declare(
                prepare((X, c * TARGETS["normal"]), None, "normal", bs.basis.linear(), *[None] * 3)
            )
        )
        for c in (1.0, 1000.0)
    )
    assert_allclose(small, 1000.0 * np.array(large))


@pytest.mark.parametrize(
    "bounds",
    [
        (1.0,),
        (1.0, 2.0, 3.0),
        (2.0, 1.0),
        (1.0, 1.0),
        (0.0, 1.0),
        (-1.0, 1.0),
        (1.0, np.inf),
        (np.nan, 1.0),
        3,
        "ab",
        ("a", "b"),
    ],
    ids=str,
)
def test_bad_bounds_are_refused(bounds):
    with pytest.raises((TypeError, ValueError), match=r"^`bounds` of lambda are two numbers 0 < lo < hi, got .*\.$"):
        bs.fit("jeffreys_laplace", (X, TARGETS["normal"]), method="nuts", bounds=bounds)


@pytest.mark.parametrize("likelihood", ["bernoulli", pytest.param("normal", marks=pytest.mark.slow)])
def test_nuts_gives_weights_in_the_users_units_and_predicts(likelihood):
    y = TARGETS[likelihood]
    settings = {"draws": 150, "chains": 1, "random_seed": 3, "progressbar": False, "sample_kwargs": {"cores": 1}}
    method = bs.methods.NUTS(tune=200, target_accept=0.8, sampler="pymc")
    tree = bs.fit("jeffreys_laplace", (X, y), method=method, bounds=(0.1, 50.0), **settings)
    posterior = tree["posterior"].to_dataset()
    assert {"lambda", "w", "bias"} <= set(posterior.data_vars)
    assert posterior["lambda"].min() > 0.1
    assert posterior["lambda"].max() < 50.0
    draw = posterior.isel(chain=0, draw=7)
    eta = X @ draw["w"].to_numpy() + float(draw["bias"])
    nuisance = float(draw["sigma"]) if likelihood == "normal" else None
    found = tree["log_likelihood"]["y"].isel(chain=0, draw=7)
    assert_allclose(found, log_likelihood(likelihood, y, eta, nuisance), rtol=1e-8)
    drawn = X[:4] @ posterior["w"].isel(chain=0).to_numpy().T + posterior["bias"].isel(chain=0).to_numpy()
    prediction = bs.predict(tree, X[:4])
    if likelihood == "normal":
        assert_allclose(prediction["mean"], drawn.mean(axis=1), rtol=1e-8)
    else:
        assert_allclose(prediction["probability"].sel({"class": 1}), expit(drawn).mean(axis=1), rtol=1e-8)


@pytest.mark.parametrize("hyper", [(1.0, 1.0), (0, 0), (0.5, 0.005)])
@pytest.mark.parametrize("method", ["evidence", "nuts"])
def test_there_is_no_gamma_prior(method, hyper):
    with pytest.raises(ValueError, match=r"^`hyper` is the Gamma prior .* leave it out .*bounds=.*\.$"):
        bs.fit("jeffreys_laplace", (X, TARGETS["normal"]), method=method, hyper=hyper)
