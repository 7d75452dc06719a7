"""What a diagnosis says, against quadrature, closed forms and PyMC's own density."""

import arviz as az
import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy import stats
from scipy.special import log_expit, log_softmax, logsumexp

import bayes_sparse as bs
from bayes_sparse.results.diagnose import SamplingDiagnosis, diagnose
from bayes_sparse.results.importance import coordinate_draws, importance, log_densities

CLAUSE = "given the terms selected and alpha*; their own uncertainty is not checked."
PLAIN = bs.basis.linear(standardise=False, bias=False)
RNG = np.random.default_rng(8)
X = RNG.standard_normal((40, 3)) * [1.0, 2.0, 0.5] + [0.0, 1.0, 0.0]
ETA = 1.2 * X[:, 0] - 0.4
REAL = ETA + 0.6 * RNG.standard_normal(40)
BINARY = (ETA + RNG.logistic(size=40) > 0).astype(int)
COUNT = RNG.poisson(np.exp(0.7 * ETA))


def log_integral(log_density, *axes):
    """Log of the integral of a density over a grid of evenly spaced points; exact to many digits for smooth ones."""
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    step = np.prod([axis[1] - axis[0] for axis in axes])
    return float(logsumexp(np.concatenate([log_density(part) for part in np.array_split(grid, 20)])) + np.log(step))


def around(mean, sd, points=81, width=8.0):
    return mean + sd * np.linspace(-width, width, points)


def declared(observe):
    """A user's model: sparse weights, an intercept with a prior mean of its own."""
    with pm.Model(coords={"feature": ["a", "b", "c"]}) as model:
        alpha = pm.Gamma("alpha", 1.0, 1.0, dims="feature")
        w = pm.Normal("w", 0.0, tau=alpha, dims="feature")
        intercept = pm.Normal("intercept", 0.5, 2.0)
        observe(intercept + pm.math.dot(pm.Data("X", X), w))
    return model


def normal(eta):
    pm.Normal("y", eta, pm.HalfNormal("sigma", 2.0), observed=REAL)


def known_noise(eta):
    pm.Normal("y", eta, 0.6, observed=REAL)


def poisson(eta):
    pm.Poisson("y", pm.math.exp(eta), observed=COUNT)


def bernoulli(eta):
    pm.Bernoulli("y", logit_p=eta, observed=BINARY)


LIKELIHOODS = {
    bernoulli: lambda eta: log_expit(np.where(BINARY, eta, -eta)),
    poisson: lambda eta: stats.poisson.logpmf(COUNT, np.exp(eta)),
}


def near(diagnosis, truth):
    """Within four standard errors, and these are small."""
    return abs(diagnosis.log_evidence_importance - truth) < 4 * diagnosis.log_evidence_se < 0.2


# The weights


@pytest.mark.parametrize("rate", [0.4, 0.5, 0.7])
def test_k_hat_of_a_known_tail(rate):
    # Draws of Exp(1) weighted towards Exp(rate): the weights have a Pareto tail of shape 1 - rate.
    x = np.random.default_rng(0).exponential(size=40_000)
    found = importance(np.log(rate) - rate * x, -x)
    assert found.k_hat == pytest.approx(1 - rate, abs=0.12)
    assert found.threshold == 0.7
    assert np.exp(found.log_weights).sum() == pytest.approx(1.0)
    weights = np.exp(found.log_weights)
    assert found.effective_draws == pytest.approx(1 / np.sum(weights**2))
    assert weights @ x == pytest.approx(1 / rate, rel=0.05)  # towards the target, not away from it


def test_standard_error_of_the_mean_weight_covers():
    z = []
    for seed in range(200):
        x = np.random.default_rng(seed).standard_normal(1000)
        found = importance(stats.norm.logpdf(x, 0.2, 0.9) + 3.0, stats.norm.logpdf(x))
        z.append((found.log_mean - 3.0) / found.log_mean_se)
    assert 0.8 < np.std(z) < 1.25


def test_equal_weights_have_no_tail():
    log_q = np.random.default_rng(0).standard_normal(100)
    found = importance(log_q + 5.0, log_q)
    assert (found.k_hat, found.effective_draws) == (0.0, 100.0)
    assert found.log_mean == pytest.approx(5.0, abs=1e-12)


def test_few_draws_have_a_lower_threshold_and_fewer_are_refused():
    x = np.random.default_rng(1).standard_normal(100)
    assert importance(-(x**2) / 1.9, -(x**2) / 2).threshold == pytest.approx(0.5)
    with pytest.raises(ValueError, match="at least 25 draws"):
        importance(x[:20], x[:20] ** 2)
    with pytest.raises(ValueError, match="not a number"):
        importance(np.where(x > 0, np.nan, x), x)


# Against the truth


def test_a_normal_likelihood_is_its_own_posterior():
    tree = bs.fit(declared(known_noise), random_seed=0)
    found, evidence = diagnose(tree), tree["evidence"].to_dataset()
    alpha = evidence["alpha"].to_numpy()
    covariance = 0.36 * np.eye(40) + 4.0 * np.ones((40, 40)) + (X / alpha) @ X.T
    truth = stats.multivariate_normal(np.full(40, 0.5), covariance).logpdf(REAL)
    assert found.log_evidence_importance == pytest.approx(truth, abs=1e-9)
    assert found.log_evidence == pytest.approx(truth, abs=1e-9)
    assert found.log_evidence_se < 1e-9
    assert (found.k_hat, found.trusted, found.effective_draws) == (0.0, True, 4000)
    assert "the posterior itself" in found.verdict


@pytest.mark.parametrize("observe", [bernoulli, poisson])
def test_two_coordinates_against_quadrature(observe):
    tree = bs.fit(declared(observe), random_seed=1)
    evidence = tree["evidence"].to_dataset()
    assert evidence["kept"].to_numpy().tolist() == [True, False, False]

    def log_density(v):
        eta = v[:, :1] * X[:, 0] + v[:, 1:]
        terms = LIKELIHOODS[observe](eta)
        prior = stats.norm.logpdf(v[:, 0], 0, float(evidence["alpha"][0]) ** -0.5) + stats.norm.logpdf(v[:, 1], 0.5, 2)
        return terms.sum(axis=1) + prior

    axes = [around(float(evidence["mean"][0]), float(evidence["sd"][0]))]
    axes.append(around(float(evidence["intercept"]), float(evidence["intercept_sd"])))
    truth = log_integral(log_density, *axes)
    found = diagnose(tree)
    assert near(found, truth)
    assert found.trusted
    assert found.coordinates == 2
    assert found.conditional_on == "the terms selected and alpha*"


def test_several_classes_against_quadrature():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((60, 1))
    label = np.argmax(np.hstack([2 * x, -x, 0 * x]) + rng.gumbel(size=(60, 3)), axis=1)
    tree = bs.fit("student_multinomial", (x, label.astype(str)), basis=PLAIN, random_seed=0)
    evidence = tree["evidence"].to_dataset()
    column, alpha = evidence["column"].to_numpy(), evidence["alpha"].to_numpy()
    assert 1 <= len(column) <= 3

    def log_density(v):
        w = np.zeros((len(v), 3))
        w[:, column] = v
        terms = log_softmax(w[:, None, :] * x, axis=2)[:, np.arange(60), label]
        return terms.sum(axis=1) + stats.norm.logpdf(v, 0, alpha[column] ** -0.5).sum(axis=1)

    sd = evidence["sd"].to_numpy()[column]
    truth = log_integral(
        log_density, *[around(m, s, 41) for m, s in zip(evidence["coordinate_mean"].to_numpy(), sd, strict=True)]
    )
    assert near(diagnose(tree), truth)


def test_laplace_priors_on_directions_against_quadrature():
    tree = bs.fit("laplace_eigen", (X[:, :2], BINARY), likelihood="bernoulli", basis=PLAIN, random_seed=0)
    evidence = tree["evidence"].to_dataset()
    loading = evidence["loading"].to_numpy()
    kept = evidence["kept_direction"].to_numpy() - 1
    alpha = evidence["alpha"].to_numpy()[kept]

    def log_density(u):
        eta = u @ loading @ X[:, :2].T
        prior = np.log(alpha / 4) - alpha * np.abs(u) / 2
        return log_expit(np.where(BINARY, eta, -eta)).sum(axis=1) + prior.sum(axis=1)

    # Half a step off zero, where the prior has a corner.
    step = 0.02 * evidence["u_sd"].to_numpy()[kept]
    axes = [(np.arange(-600, 600) + 0.5) * s for s in step]
    found = diagnose(tree)
    assert near(found, log_integral(log_density, *axes))
    assert found.coordinates == len(kept)
    assert found.conditional_on == "the directions kept and alpha*"
    assert f"{float(evidence['log_evidence_mode']):.3f}" in found.verdict


def test_lambda_integrated_out_is_judged_at_the_lambda_found():
    tree = bs.fit("jeffreys_laplace", (X, BINARY), likelihood="bernoulli", random_seed=0)
    evidence = tree["evidence"].to_dataset()
    lam, kept = float(evidence["lambda"]), np.flatnonzero(evidence["kept"])
    assert 1 <= len(kept) <= 2
    Z = ((X - X.mean(axis=0)) / X.std(axis=0))[:, kept]

    def log_density(v):
        eta = v[:, 1:] @ Z.T + v[:, :1]
        prior = np.log(lam / 2) - lam * np.abs(v[:, 1:])
        return log_expit(np.where(BINARY, eta, -eta)).sum(axis=1) + prior.sum(axis=1)

    found = diagnose(tree)
    axes = [np.linspace(-4, 4, 101), *[(np.arange(-150, 150) + 0.5) * 0.03] * len(kept)]
    assert near(found, log_integral(log_density, *axes))
    assert np.isnan(found.log_evidence)
    assert f"lambda* = {lam:.4g}" in found.conditional_on
    assert found.verdict.endswith(CLAUSE)


def test_lambda_integrated_out_with_unknown_noise():
    tree = bs.fit("jeffreys_laplace", (X[:, :1], REAL), basis=PLAIN, random_seed=0)
    lam = float(tree["evidence"]["lambda"])

    def log_density(v):
        w, log_sigma = v[:, :1], v[:, 1:]
        terms = stats.norm.logpdf(REAL, w * X[:, 0], np.exp(log_sigma))
        return terms.sum(axis=1) + (np.log(lam / 2) - lam * np.abs(w))[:, 0]

    truth = log_integral(log_density, np.linspace(-1, 4, 801), np.linspace(-2, 2, 401))
    found = diagnose(tree)
    assert near(found, truth)
    assert found.coordinates == 2


def test_a_skewed_posterior_is_flagged():
    # Of a rate that three rows without a single event only say to be small.
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, tau=pm.Gamma("alpha", 1.0, 1.0, shape=1), shape=1)
        pm.Poisson("y", 100 * pm.math.exp(pm.math.dot(np.ones((3, 1)), w)), observed=[0, 0, 0])
    tree = bs.fit(model, smoothness=0, random_seed=0)
    sd = float(tree["evidence"]["alpha"][0]) ** -0.5
    x = np.linspace(-8 * sd, 8 * sd, 20_001)
    p = np.exp(stats.norm.logpdf(x, 0, sd) - 300 * np.exp(x))
    mean = p @ x / p.sum()
    third, second = (p @ (x - mean) ** power / p.sum() for power in (3, 2))
    assert third / second**1.5 < -0.7  # skewed indeed
    found = diagnose(tree)
    assert found.k_hat > found.threshold
    assert not found.trusted
    assert 'bs.fit(..., method="nuts", condition="alpha")' in found.verdict
    assert found.verdict.endswith(CLAUSE)


def test_classes_that_are_separated_are_not_certified():
    """k-hat is computed over draws, none of which sees that only the prior holds the weights."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    with pytest.warns(bs.FitWarning, match="separate the classes"):
        tree = bs.fit("ard_gaussian", (X, (X[:, 0] > 0).astype(int)), slab=None, random_seed=0)
    found = bs.diagnose(tree)
    assert not found.trusted
    if found.correctable:
        assert "ended as 'separable'" in found.verdict
        assert "bs.correct" in found.verdict


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"log_evidence": 0.9}, "its log evidence is off by"),
        ({"status": "max_iterations"}, "the fit ended as 'max_iterations'"),
        ({"status": "null"}, None),
    ],
    ids=lambda change: str(change)[:20],
)
def test_a_small_k_hat_alone_is_not_enough(change, words):
    """A fit that is its own posterior, but for one thing."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((80, 2))
    tree = bs.fit("ard_gaussian", (X, X[:, 0] + 0.3 * rng.standard_normal(80)), random_seed=0)
    assert bs.diagnose(tree).trusted
    evidence = tree["evidence"].to_dataset()
    if "log_evidence" in change:
        evidence["log_evidence"] = evidence["log_evidence"] + change["log_evidence"]
    else:
        evidence = evidence.assign_attrs(change)
    found = bs.diagnose(tree.assign({"evidence": xr.DataTree(evidence)}))
    assert found.correctable
    assert found.trusted == (words is None)
    assert words is None or words in found.verdict
    assert [words in own for own in found.wrong] == ([] if words is None else [True])


def test_many_rows_are_nearly_normal():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4000, 2))
    y = rng.poisson(np.exp(1.0 + 0.5 * x[:, 0]))
    found = diagnose(bs.fit("ard_gaussian", (x, y), likelihood="poisson", draws=500, random_seed=0))
    assert found.trusted
    assert found.k_hat < 0.5
    assert found.effective_draws > 0.98 * found.draws
    assert "bs.correct(tree)" in found.verdict
    assert found.verdict.endswith(CLAUSE)
    text = str(found)
    assert " ".join(text.split()).endswith(found.verdict)
    rows = dict(line.split(maxsplit=1) for line in text.splitlines()[:3])  # the small table comes first
    assert rows == {
        "trusted": "yes",
        "k-hat": f"{found.k_hat:.2f}, below {found.threshold:.2f}",
        "draws": f"2000 of 2 coordinates, worth {found.effective_draws:.0f} re-weighted",
    }
    assert max(map(len, text.splitlines())) <= 100
    page = found._repr_html_()
    assert page.startswith("<table ")
    assert f">{rows['k-hat']}</td>" in page


# A model of the user's own


@pytest.mark.parametrize("observe", [normal, poisson])
def test_pymc_agrees_with_the_log_target_stored(observe):
    model = declared(observe)
    tree = bs.fit(model, draws=50, random_seed=0)
    found, log_q = log_densities(tree, model)
    np.testing.assert_allclose(found, tree["sample_stats"]["log_p"], rtol=0, atol=1e-8)
    np.testing.assert_array_equal(log_q, tree["sample_stats"]["log_q"])
    without = tree.copy()
    without["sample_stats"] = xr.DataTree(tree["sample_stats"].to_dataset().drop_vars("log_p"))
    again, stored = diagnose(without, model), diagnose(tree)
    assert again.log_evidence_importance == pytest.approx(stored.log_evidence_importance, abs=1e-8)
    assert again.effective_draws == pytest.approx(stored.effective_draws, rel=1e-6)
    with pytest.raises(ValueError, match="fit with fewer"):
        diagnose(without)


@pytest.mark.parametrize(
    ("prior", "method"), [("gaussian", "revm"), ("laplace", "revm"), ("jeffreys", "reweighted")], ids=str
)
def test_pymc_agrees_with_other_priors(prior, method):
    model = declared(bernoulli)
    tree = bs.fit(bs.models.Declared(model, prior=prior), method=method, draws=20, random_seed=0)
    found, _ = log_densities(tree, model)
    np.testing.assert_allclose(found, tree["sample_stats"]["log_p"], rtol=0, atol=1e-8)


def test_pymc_agrees_where_there_is_no_linear_predictor():
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, tau=pm.Gamma("alpha", 1.0, 1.0, shape=3), shape=3)
        v = pm.Normal("v", 1.0, 0.5)
        pm.Normal("y", v * pm.math.tanh(pm.math.dot(X, w)), pm.HalfNormal("sigma", 1.0), observed=REAL)
    tree = bs.fit(model, method="revm", expansion="evidence", draws=20, random_seed=0)
    found, _ = log_densities(tree, model)
    np.testing.assert_allclose(found, tree["sample_stats"]["log_p"], rtol=0, atol=1e-8)


def test_coordinates_of_several_variables():
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, tau=pm.Gamma("alpha", 1.0, 1.0, shape=(1, 3)), shape=(1, 3))
        level = pm.Normal("level", 0.0, 3.0, shape=2)
        pm.Bernoulli("y", logit_p=pm.math.dot(X, w[0]) + level[np.arange(40) % 2], observed=BINARY)
    tree = bs.fit(model, draws=30, random_seed=0)
    evidence, posterior = tree["evidence"].to_dataset(), tree["posterior"].to_dataset()
    drawn = coordinate_draws(tree)
    for column, values in zip(evidence["column"].to_numpy(), drawn.T, strict=True):
        own = posterior["w"][:, :, 0, column] if column < 3 else posterior["level"][:, :, column - 3]
        np.testing.assert_array_equal(values, own.to_numpy().ravel())


def test_coordinates_in_the_order_they_were_taken_up():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((80, 5))
    tree = bs.fit(
        "ard_gaussian", (x, x @ [1.0, 0, 2.0, 0, 4.0] + 0.5 * rng.standard_normal(80)), draws=30, random_seed=0
    )
    evidence, posterior = tree["evidence"].to_dataset(), tree["posterior"].to_dataset()
    column = evidence["column"].to_numpy()
    assert np.any(np.diff(column) < 0)  # or this would show nothing
    assert sorted(column) == [0, 2, 4, 5]
    for label, values in zip(evidence["coordinate"].to_numpy(), coordinate_draws(tree).T, strict=True):
        own = posterior["bias"] if label == "bias" else posterior["w"].sel(basis=label)
        np.testing.assert_array_equal(values, own.to_numpy().ravel())


def test_a_model_that_does_not_belong():
    model = declared(poisson)
    tree = bs.fit(model, draws=30, random_seed=0)
    with model:
        pm.set_data({"X": X + 0.1})
    with pytest.raises(ValueError, match="Data have changed"):
        diagnose(tree, model)
    with pytest.raises(ValueError, match="leave out `model`"):
        diagnose(bs.fit("ard_gaussian", (X, REAL), draws=30), model)


def test_no_draws():
    with pytest.raises(ValueError, match="draws > 0"):
        diagnose(bs.fit("ard_gaussian", (X, REAL), draws=0))
    with pytest.raises(ValueError, match="takes a tree"):
        diagnose(xr.DataTree())


# Chains


def chains(rng, shift=0.0, **stats_of):
    """Four chains, the last one somewhere else by ``shift``."""
    w = rng.standard_normal((4, 500, 2))
    w[3, :, 1] += shift
    shape = {"chain": 4, "draw": 500}
    stats_ = {"diverging": np.zeros((4, 500), dtype=bool), "energy": rng.standard_normal((4, 500))} | stats_of
    return xr.DataTree.from_dict(
        {
            "/posterior": xr.Dataset(
                {"w": (("chain", "draw", "basis"), w), "zero": (("chain", "draw"), np.zeros((4, 500)))},
                coords={"basis": ["a", "b"], **{dim: np.arange(size) for dim, size in shape.items()}},
                attrs={"method": "nuts", "condition": ""},
            ),
            "/sample_stats": xr.Dataset({name: (("chain", "draw"), value) for name, value in stats_.items()}),
        }
    )


def test_good_chains():
    tree = chains(np.random.default_rng(0), tree_depth=np.full((4, 500), 3))
    found = diagnose(tree)
    assert isinstance(found, SamplingDiagnosis)
    assert found.trusted
    assert (found.draws, found.chains, found.divergences, found.max_treedepth) == (2000, 4, 0, 0)
    r_hat = az.rhat(tree["posterior"].to_dataset()[["w"]])["w"]
    assert found.r_hat_max == pytest.approx(float(r_hat.max()))
    assert found.worst == f"w[{r_hat['basis'].to_numpy()[np.argmax(r_hat.to_numpy())]}]"
    assert found.ess_bulk_min == pytest.approx(float(az.ess(tree["posterior"].to_dataset()[["w"]])["w"].min()))
    assert found.bfmi_min == pytest.approx(2.0, abs=0.2)  # independent energies
    lines = str(found).splitlines()
    assert lines[0].split() == ["trusted", "yes"]
    assert f"{found.r_hat_max:.3f}, of {found.worst}" in lines[1]
    assert "agree" in lines[-1]
    assert repr(found) == str(found)


def test_bad_chains():
    rng = np.random.default_rng(1)
    found = diagnose(chains(rng, shift=0.5))
    assert not found.trusted
    assert found.worst == "w[b]"
    assert "R-hat" in found.verdict
    assert any("R-hat" in words for words in found.wrong)
    diverging = np.zeros((4, 500), dtype=bool)
    diverging[0, :7] = True
    found = diagnose(chains(rng, diverging=diverging, tree_depth=np.full((4, 500), 10)))
    assert (found.divergences, found.max_treedepth, found.trusted) == (7, 2000, False)
    assert "7 draws diverged" in found.verdict
    slow = np.cumsum(0.05 * rng.standard_normal((4, 500)), axis=1)
    assert "BFMI" in diagnose(chains(rng, energy=slow)).verdict
    with pytest.raises(ValueError, match="leave out `model`"):
        diagnose(chains(rng), declared(poisson))


def test_chains_given_alpha_say_so():
    tree = chains(np.random.default_rng(0))
    tree["posterior"].attrs["condition"] = "alpha"
    assert diagnose(tree).verdict.endswith(CLAUSE)


def test_even_weights_can_be_used_whatever_their_largest_say():
    """Matched moments of a skewed posterior: the largest weights have a heavy tail, and the correction is right."""
    rng = np.random.default_rng(11)
    x = rng.standard_normal((12, 1))
    y = rng.random(12) < 1 / (1 + np.exp(-1.5 * x[:, 0]))
    tree = bs.fit("ard_gaussian", (x, y), basis=PLAIN, approximation="ep", draws=4000, random_seed=1)
    found = diagnose(tree)
    assert found.k_hat > found.threshold
    assert found.effective_draws > 0.9 * found.draws
    assert found.correctable
    assert found.trusted
    assert "they are few and matter little" in found.verdict
    corrected = bs.correct(tree)["evidence"]
    alpha = float(tree["evidence"]["alpha"][0])
    axis = np.linspace(-6.0, 12.0, 4001)
    log_p = log_expit(np.where(y, 1, -1) * axis[:, None] * x[:, 0]).sum(axis=1) - 0.5 * alpha * axis**2
    p = np.exp(log_p - log_p.max())
    mean = float(p @ axis / p.sum())
    sd = float(np.sqrt(p @ (axis - mean) ** 2 / p.sum()))
    # 16,000 draws: four standard errors of a mean, and of a log sd.
    assert abs(float(corrected["mean"][0]) - mean) < 4 * sd / np.sqrt(16000)
    assert abs(np.log(float(corrected["sd"][0]) / sd)) < 4 / np.sqrt(2 * 16000)
