"""The multinomial relevance vector machine as its user sees it."""

import arviz as az
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import expit, log_softmax, softmax
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.model_selection import train_test_split

import bayes_sparse as bs
from bayes_sparse import basis as bases
from bayes_sparse.inputs.prepare import prepare

QUIET = pytest.mark.filterwarnings("ignore::bayes_sparse.FitWarning")
N, P = 90, 5
RNG = np.random.default_rng(7)
X = RNG.normal(size=(N, P)) * [1.0, 3.0, 0.2, 1.0, 1.0] + [0.0, 5.0, 1.0, -2.0, 0.0]
LABELS = np.array(["amber", "blue", "coral"])
Z = (X - X.mean(axis=0)) / X.std(axis=0)
Y = LABELS[np.argmax(1.5 * Z[:, :3] + RNG.gumbel(size=(N, 3)), axis=1)]
OWN = {"amber": X[:, :2], "blue": X[:, 1:4], "coral": X[:, [4]]}


def fit(X, y, **settings):
    return bs.fit("student_multinomial", (X, y), **{"draws": 200, "chains": 2, "random_seed": 1} | settings)


@pytest.fixture(params=[None, (0.0, 0.0)], ids=["student", "limit"])
def hyper(request):
    """The model's own prior, and the papers' limit of it."""
    return request.param


# --- what a fit gives ---------------------------------------------------------------------------------------------


@pytest.mark.quick
def test_the_tree(hyper):
    tree = fit(X, Y, hyper=hyper)
    evidence, posterior = tree["evidence"], tree["posterior"]
    assert evidence.attrs["status"] == "converged"
    assert evidence.attrs["method"] == "mackay"
    assert evidence.attrs["hyper"] == list(hyper or (1.0, 0.1))
    assert evidence.sizes["basis"] == 3 * P
    assert evidence["basis"].to_numpy()[P] == "x0[blue]"
    assert evidence["of_class"].to_numpy().tolist() == np.repeat(LABELS, P).tolist()
    assert evidence["of_column"].to_numpy().tolist() == [f"x{j}" for j in range(P)] * 3
    kept = evidence["kept"].to_numpy()
    assert 3 <= kept.sum() < 3 * P
    assert_array_equal(posterior["basis"], evidence["basis"][kept])
    assert posterior["bias"].dims == ("chain", "draw", "class")
    summary = az.summary(tree)  # warnings are errors: no draw is a constant
    assert len(summary) == kept.sum() + 3
    assert bs.unpruned(tree)["posterior"]["w"].shape == (2, 200, 3 * P)
    assert tree["log_likelihood"]["y"].shape == (2, 200, N)


def test_log_likelihood_and_log_target_of_a_draw():
    tree = fit(X, Y)
    whole = bs.unpruned(tree)["posterior"].isel(chain=1, draw=17)
    eta = X @ whole["w"].to_numpy().reshape(3, P).T + whole["bias"].to_numpy()
    log_p = log_softmax(eta, axis=1)[np.arange(N), np.searchsorted(LABELS, Y)]
    assert_allclose(tree["log_likelihood"]["y"].isel(chain=1, draw=17), log_p, rtol=1e-9, atol=1e-12)
    evidence = tree["evidence"]
    kept = evidence["kept"].to_numpy()
    scale = np.tile(X.std(axis=0), 3)[kept]
    w, alpha = whole["w"].to_numpy()[kept] * scale, evidence["alpha"].to_numpy()[kept] / scale**2
    bias = whole["bias"].to_numpy() + whole["w"].to_numpy().reshape(3, P) @ X.mean(axis=0)
    target = log_p.sum() + stats.norm.logpdf(w, scale=alpha**-0.5).sum() + stats.norm.logpdf(bias, scale=10.0).sum()
    assert_allclose(tree["sample_stats"]["log_p"].isel(chain=1, draw=17), target, rtol=1e-9)


def test_importance_sampling_finds_the_evidence():
    """The mean of exp(log_p - log_q) over draws is the true evidence at these precisions: Laplace's error is small."""
    stats_ = fit(X, Y, draws=4000)["sample_stats"]
    ratio = (stats_["log_p"] - stats_["log_q"]).to_numpy().ravel()
    weight = np.exp(ratio - ratio.max())
    estimate = np.log(weight.mean()) + ratio.max()
    error = weight.std() / weight.mean() / np.sqrt(len(weight))
    found = float(fit(X, Y)["evidence"]["log_evidence"])
    # k/n is the size of what Laplace's method leaves out
    assert abs(found - estimate) < 4 * error + 0.15


def test_probabilities_are_integrated_over_the_weights():
    tree = fit(X, Y, draws=4000)
    whole = bs.unpruned(tree)["posterior"].to_dataset().stack(sample=("chain", "draw"))
    W = whole["w"].transpose("sample", "basis").to_numpy().reshape(-1, 3, P)
    bias = whole["bias"].transpose("sample", "class").to_numpy()
    eta = np.einsum("nm,scm->snc", X[:9], W) + bias[:, None]
    each = softmax(eta, axis=2)
    error = each.std(axis=0) * np.sqrt(1 / 1000 + 1 / 8000)
    prediction = bs.predict(tree, X[:9])
    assert np.all(np.abs(prediction["probability"] - each.mean(axis=0)) < 5 * error)
    assert_allclose(prediction["probability"].sum("class"), 1.0, rtol=1e-12)


def test_relevance_by_weight_and_by_feature():
    tree = fit(X, Y)
    table, features = bs.relevance(tree), bs.relevance(tree, by="feature")
    assert table.index.names == ["basis", "class"]
    assert len(table) == 3 * P
    assert table["kept"].is_monotonic_decreasing
    assert table.loc[~table["kept"], "score"].is_monotonic_decreasing
    assert table["score"].notna().all()
    assert features.index.name == "basis"
    assert set(features.index[:3]) == {"x0", "x1", "x2"}  # those that the classes depend on
    for name, row in features.iterrows():
        own = table.xs(name, level="basis")
        kept = own[own["kept"]]
        assert row["classes"] == len(kept)
        assert row["gamma"] == pytest.approx(own["gamma"].sum())
        assert row["strength"] == pytest.approx(np.sqrt(np.sum((kept["mean"] / kept["sd"]) ** 2)))
    with pytest.raises(ValueError, match="`by` is 'weight', 'feature' or 'column'"):
        bs.relevance(tree, by="class")


def test_a_pruned_weight_that_scores_below_one_does_not_pay():
    table = bs.relevance(fit(X, Y, hyper=(0, 0)))
    assert (
        table.loc[~table["kept"], "score"] < 1
    ).mean() > 0.8  # MacKay's end is near the top of the evidence, not at it


def test_pictures():
    ax = bs.plot_relevance(fit(X, Y))
    assert all("[" in text.get_text() for text in ax.get_yticklabels())
    bs.plot_history(fit(X, Y))


def test_picture_of_the_features():
    tree = fit(X, Y)
    ax = bs.plot_relevance(tree, by="feature")
    table = bs.relevance(tree, by="feature")
    kept = table[table["kept"]]
    assert [text.get_text() for text in ax.get_yticklabels()] == kept.index.tolist()
    assert len(ax.containers) == 3
    ends = np.sum([[bar.get_width() for bar in bars] for bars in ax.containers], axis=0)
    assert_allclose(ends, kept["strength"])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == LABELS.tolist()


# --- features of each class's own ---------------------------------------------------------------------------------


def test_the_same_features_for_every_class_are_shared_features():
    shared = fit(X, Y)
    as_dict = fit({"coral": X, "amber": X, "blue": X}, Y)
    as_array = fit(np.stack([X] * 3, axis=1), Y)
    labelled = xr.DataArray(
        np.stack([X] * 3), dims=("class", "obs", "feature"), coords={"class": ["coral", "blue", "amber"]}
    )
    for other in (as_dict, as_array, fit(labelled, Y)):
        assert_allclose(other["evidence"]["log_evidence"], shared["evidence"]["log_evidence"], rtol=1e-10)
        assert_allclose(other["evidence"]["mean"], shared["evidence"]["mean"], rtol=1e-6, atol=1e-9)
        assert other["evidence"]["basis"].to_numpy().tolist() == shared["evidence"]["basis"].to_numpy().tolist()


def test_features_of_different_widths():
    frames = {
        "amber": pd.DataFrame(OWN["amber"], columns=["round", "red"]),
        "blue": pd.DataFrame(OWN["blue"], columns=["red", "tall", "old"]),
        "coral": OWN["coral"],
    }
    tree = fit(frames, Y)
    names = ["round[amber]", "red[amber]", "red[blue]", "tall[blue]", "old[blue]", "x0[coral]"]
    assert tree["evidence"]["basis"].to_numpy().tolist() == names
    table = bs.relevance(tree)
    assert ("red", "blue") in table.index
    assert bs.relevance(tree, by="feature").loc["red", "classes"] == table.xs("red", level="basis")["kept"].sum()
    prediction = bs.predict(tree, {"coral": OWN["coral"][:4], **{k: frames[k].iloc[:4] for k in ("amber", "blue")}})
    eta = np.zeros((4, 3))
    moments = tree["evidence"]["mean"].to_numpy()
    for c, (label, own) in enumerate(OWN.items()):
        inside = tree["evidence"]["of_class"].to_numpy() == label
        eta[:, c] = own[:4] @ moments[inside] + tree["evidence"]["bias"].to_numpy()[c]
    assert_array_equal(prediction["label"], LABELS[eta.argmax(axis=1)])


@pytest.mark.parametrize("method", ["mackay", "sequential", "em", "one_vs_rest"])
def test_own_features_by_every_method_and_from_a_file(method, tmp_path):
    tree = fit(OWN, Y, method=method, draws=0)
    tree.to_netcdf(tmp_path / "own.nc", engine="h5netcdf")
    with xr.open_datatree(tmp_path / "own.nc", engine="h5netcdf") as again:
        assert_array_equal(bs.predict(again, OWN)["probability"], bs.predict(tree, OWN)["probability"])


@pytest.mark.parametrize(
    ("features", "said"),
    [
        ({"amber": X, "blue": X}, "none for 'coral'"),
        ({"amber": X, "blue": X, "coral": X, "dun": X}, "'dun', which the target lacks"),
        ({"amber": X, "blue": X, "coral": X[:-1]}, "Features of class 'coral': X has 89 rows and y has 90 values"),
        ({"amber": X, "blue": X, "coral": np.where(X[3, 2] == X, np.nan, X)}, r"class 'coral'.*'x2'"),
        (np.zeros((N, 2, P)), "there are 3 classes"),
        (xr.DataArray(np.zeros((N, 3, P)), dims=("a", "b", "c")), "must be called 'class'"),
    ],
)
def test_features_that_do_not_fit_the_classes(features, said):
    with pytest.raises(ValueError, match=said):
        fit(features, Y)


def test_what_own_features_cannot_have():
    with pytest.raises(ValueError, match="take no kernels"):
        fit(OWN, Y, basis=bs.basis.rbf(width=1.0))
    with pytest.raises(ValueError, match="features that all of them share"):
        fit(OWN, Y, method="revm")
    with pytest.raises(ValueError, match="only classes have features of their own"):
        fit(OWN, RNG.normal(size=N))
    with pytest.raises(ValueError, match="need likelihood='categorical'"):
        bs.fit("ard_gaussian", ({"no": X, "yes": X}, np.where(Y == "blue", "yes", "no")), likelihood="bernoulli")
    tree = fit(OWN, Y, draws=0)
    with pytest.raises(ValueError, match="features of each class's own"):
        bs.predict(tree, X)
    with pytest.raises(ValueError, match="different numbers of rows"):
        bs.predict(tree, {**OWN, "blue": OWN["blue"][:7]})


# --- two classes, and one against the rest ------------------------------------------------------------------------


@pytest.mark.quick
def test_two_classes_are_the_logistic_machine():
    """Only w_1 - w_0 counts, whose prior variance is the sum of two: the largest evidences are equal."""
    y = np.where(Z[:, 0] - Z[:, 1] + RNG.logistic(size=N) > 0, "yes", "no")
    several = fit(X, y, method="sequential", bias_sd=5.0)["evidence"]
    logistic = bs.fit("ard_gaussian", (X, y), method="sequential", smoothness=0, bias_sd=5.0 * np.sqrt(2), draws=0)[
        "evidence"
    ]
    assert_allclose(several["log_evidence"], logistic["log_evidence"], atol=1e-4)
    difference = several["mean"].to_numpy().reshape(2, P)
    assert_allclose(difference[1] - difference[0], logistic["mean"], rtol=1e-3, atol=1e-6)


def test_one_vs_rest_is_one_logistic_regression_a_class():
    tree = fit(X, Y, method="one_vs_rest")
    evidence, total = tree["evidence"], 0.0
    probability = np.empty((N, 3))
    for c, label in enumerate(LABELS):
        alone = bs.fit("ard_gaussian", (X, label == Y), method="mackay", smoothness=0, draws=0)
        assert_allclose(evidence["mean"].to_numpy().reshape(3, P)[c], alone["evidence"]["mean"], rtol=1e-7, atol=1e-9)
        assert_allclose(evidence["sd"].to_numpy().reshape(3, P)[c], alone["evidence"]["sd"], rtol=1e-7, atol=1e-9)
        total += float(alone["evidence"]["log_evidence"])
        probability[:, c] = bs.predict(alone, X)["probability"].sel({"class": True})
    assert float(evidence["log_evidence"]) == pytest.approx(total)
    found = bs.predict(tree, X)["probability"]
    # each machine integrated by itself and divided by the sum, against the average of what is divided
    assert_allclose(found, probability / probability.sum(axis=1, keepdims=True), atol=0.06)


def test_the_draws_of_one_vs_rest():
    tree = fit(X, Y, method="one_vs_rest")
    whole = bs.unpruned(tree)["posterior"].isel(chain=0, draw=5)
    eta = X @ whole["w"].to_numpy().reshape(3, P).T + whole["bias"].to_numpy()
    own = Y[:, None] == LABELS
    p = expit(eta) / expit(eta).sum(axis=1, keepdims=True)
    assert_allclose(tree["log_likelihood"]["y"].isel(chain=0, draw=5), np.log(p[own]), rtol=1e-8)
    product = np.log(expit(np.where(own, eta, -eta))).sum()
    evidence, kept = tree["evidence"], tree["evidence"]["kept"].to_numpy()
    scale = np.tile(X.std(axis=0), 3)[kept]
    prior = stats.norm.logpdf(whole["w"].to_numpy()[kept] * scale, scale=scale / np.sqrt(evidence["alpha"][kept]))
    bias = whole["bias"].to_numpy() + whole["w"].to_numpy().reshape(3, P) @ X.mean(axis=0)
    expected = product + prior.sum() + stats.norm.logpdf(bias, scale=10.0).sum()
    assert_allclose(tree["sample_stats"]["log_p"].isel(chain=0, draw=5), expected, rtol=1e-8)


def test_one_vs_rest_is_for_classes():
    with pytest.raises(ValueError, match="'one_vs_rest' is for several classes"):
        bs.fit("ard_gaussian", (X, RNG.normal(size=N)), method="one_vs_rest")
    with pytest.raises(ValueError, match="`each` is one of 'mackay', 'em', 'sequential'"):
        fit(X, Y, method="one_vs_rest", each="newton")
    sequential = fit(X, Y, method="one_vs_rest", each="sequential", draws=0)
    assert sequential["evidence"].attrs["status"] == "converged"


# --- the prior ----------------------------------------------------------------------------------------------------


@pytest.mark.quick
def test_the_declared_density_by_hand():
    data = prepare((X, Y), None, "categorical", bases.resolve("linear"), None, None, None)
    model = bs.models.StudentMultinomial(bias_sd=3.0, slab=2.0).declare(data, (1.5, 0.7), centred=True)
    point = model.initial_point()
    point = {name: RNG.normal(size=np.shape(value)) for name, value in point.items()}
    alpha = np.exp(point["alpha_log__"])
    eta = Z @ point["w"].reshape(3, P).T + point["bias"]
    expected = log_softmax(eta, axis=1)[np.arange(N), np.searchsorted(LABELS, Y)].sum()
    expected += stats.norm.logpdf(point["w"], scale=(alpha + 0.25) ** -0.5).sum()
    expected += stats.gamma.logpdf(alpha, 1.5, scale=1 / 0.7).sum() + stats.norm.logpdf(point["bias"], scale=3.0).sum()
    assert_allclose(model.compile_logp(jacobian=False, mode="FAST_COMPILE")(point), expected, rtol=1e-9)


@pytest.mark.parametrize("own", [False, True])
def test_columns_that_have_a_mean_are_declared_around_it(own):
    """Each class around the mean of its own predictor."""
    basis = bs.basis.linear(standardise=False)
    data = prepare((OWN if own else X, Y), None, "categorical", basis, None, None, None)
    model = bs.models.StudentMultinomial(bias_sd=3.0).declare(data, (1.5, 0.7), centred=True)
    point = {name: RNG.normal(size=np.shape(value)) for name, value in model.initial_point().items()}
    w, bias = point["w"], np.array([0.3, -1.0, 0.5])
    parts = [X] * 3 if not own else list(OWN.values())
    ends = np.cumsum([part.shape[1] for part in parts])
    pieces = np.split(w, ends[:-1])
    eta = bias + np.stack([part @ piece for part, piece in zip(parts, pieces, strict=True)], axis=1)
    point["mean_predictor"] = eta.mean(axis=0)
    expected = log_softmax(eta, axis=1)[np.arange(N), np.searchsorted(LABELS, Y)].sum()
    expected += stats.norm.logpdf(bias, scale=3.0).sum()
    variables = [*model.observed_RVs, model["mean_predictor"]]
    found = model.compile_logp(vars=variables, jacobian=False, mode="FAST_COMPILE")(point)
    assert_allclose(found, expected, rtol=1e-9)


def test_the_declaration_with_own_features():
    data = prepare((OWN, Y), None, "categorical", bases.resolve("linear"), None, None, None)
    model = bs.models.StudentMultinomial().declare(data, (0.5, 0.5), centred=True)
    assert list(model.coords["basis"]) == data.names
    point = {name: RNG.normal(size=np.shape(value)) for name, value in model.initial_point().items()}
    own = [(part - part.mean(axis=0)) / part.std(axis=0) for part in OWN.values()]
    eta = np.stack([own[0] @ point["w"][:2], own[1] @ point["w"][2:5], own[2] @ point["w"][5:]], axis=1)
    log_p = log_softmax(eta + point["bias"], axis=1)[np.arange(N), np.searchsorted(LABELS, Y)].sum()
    likelihood = model.compile_logp(vars=model.observed_RVs, jacobian=False, mode="FAST_COMPILE")(point)
    assert_allclose(likelihood, log_p, rtol=1e-9)


def test_nuts_refuses_the_improper_limit():
    with pytest.raises(ValueError, match="improper prior"):
        fit(X, Y, method="nuts", hyper=(0.0, 0.0))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")  # few draws
def test_nuts_agrees_with_the_evidence_at_the_same_prior():
    """Student-t weights of 20 degrees of freedom are nearly normal: the two should be close."""
    small = (X[:, :2], Y)
    same = {"hyper": (10.0, 5.0), "bias_sd": 2.0, "random_seed": 4}
    short = {"draws": 150, "chains": 2, "tune": 150, "target_accept": 0.8, "progressbar": False}
    nuts = bs.fit(
        "student_multinomial", small, method="nuts", sampler="pymc", sample_kwargs={"cores": 1}, **same, **short
    )
    fast = bs.fit("student_multinomial", small, **same)
    assert nuts["posterior"]["w"].dims == ("chain", "draw", "basis")
    assert_array_equal(nuts["constant_data"]["of_class"], fast["constant_data"]["of_class"])
    p, q = bs.predict(nuts, X[:, :2])["probability"], bs.predict(fast, X[:, :2])["probability"]
    assert float(np.abs(p - q).max()) < 0.12
    draws = nuts["posterior"].to_dataset().stack(sample=("chain", "draw"))
    W = draws["w"].transpose("sample", "basis").to_numpy().reshape(-1, 3, 2)
    eta = np.einsum("nm,scm->snc", X[:, :2], W) + draws["bias"].transpose("sample", "class").to_numpy()[:, None]
    assert_allclose(p, softmax(eta, axis=2).mean(axis=0), rtol=1e-9)


@pytest.mark.parametrize("hyper", [(0.001, 0.001), (1.0, 0.1), (0.5, 0.5)])
def test_a_proper_prior_still_prunes(hyper):
    """Precisions stay finite, so what is kept is told by gamma and |w|: nothing kept is better left out alone."""
    noise = np.random.default_rng(0).normal(size=(N, 8))
    evidence = fit(np.column_stack([X, noise]), Y, hyper=hyper)["evidence"]
    kept = evidence["kept"].to_numpy()
    assert 3 <= kept.sum() < len(kept)
    assert np.all(np.diff(evidence["history"]) >= -1e-8)
    assert evidence.attrs["hyper"] == list(hyper)


# --- data ---------------------------------------------------------------------------------------------------------


@QUIET
@pytest.mark.parametrize(("load", "worst"), [(load_iris, 0.08), (load_wine, 0.05)])
def test_wine_and_iris_as_they_are(load, worst):
    table = load(as_frame=True)
    rows = np.arange(len(table.target)) % 3 > 0
    names = table.target_names[table.target]
    tree = bs.fit("student_multinomial", (table.data[rows], names[rows]), draws=0)
    assert tree["evidence"].attrs["status"] in ("converged", "separable")
    label = bs.predict(tree, table.data[~rows])["label"]
    assert np.mean(label.to_numpy() != names[~rows]) <= worst


SIX = {"digits": 6, "rows": 400}  # few enough rows for a short list to separate them
ALL = {"digits": 10, "rows": 1000}


@QUIET
@pytest.mark.filterwarnings("ignore:Columns that are the same")  # pixels at the edge
@pytest.mark.parametrize(
    ("size", "prior", "status", "worst", "most"),
    [
        (SIX, None, "separable", 0.035, 120),
        (SIX, (0.0, 0.0), "separable", 0.055, 60),
        pytest.param(ALL, None, "converged", 0.055, 220, marks=pytest.mark.slow),
        pytest.param(ALL, (0.0, 0.0), "converged", 0.060, 220, marks=pytest.mark.slow),
    ],
)
def test_digits(size, prior, status, worst, most):
    digits, y = load_digits(n_class=size["digits"], return_X_y=True)
    train, test, y_train, y_test = train_test_split(digits, y, train_size=size["rows"], random_state=0)
    varies = train.std(axis=0) > 0
    tree = bs.fit("student_multinomial", (train[:, varies], y_train), hyper=prior, draws=0)
    assert tree["evidence"].attrs["status"] == status
    prediction = bs.predict(tree, test[:, varies])
    assert np.mean(prediction["label"] != y_test) <= worst
    p = prediction["probability"].to_numpy()[np.arange(len(y_test)), y_test]
    assert -np.log(p).mean() < 0.22
    assert tree["evidence"]["kept"].sum() < most


@QUIET
def test_many_more_weights_than_rows():
    rng = np.random.default_rng(3)
    wide = rng.normal(size=(60, 300))
    y = np.argmax(3 * wide[:, :3] + rng.gumbel(size=(60, 3)), axis=1)
    tree = bs.fit("student_multinomial", (wide, y), draws=0, progressbar=False)
    first = bs.relevance(tree, by="feature").index[:3]
    assert set(first) == {"x0", "x1", "x2"}


def test_kernels_are_sparse_by_default():
    """Under a proper prior neighbours share what one of them could do; the limit keeps one."""
    two = Z[:, :2]
    tree = bs.fit("student_multinomial", (two, Y), basis=bs.basis.rbf(width=1.0), draws=0)
    assert tree["evidence"].attrs["hyper"] == [0.0, 0.0]
    assert 2 <= tree["evidence"]["kept"].sum() < 20
    assert_allclose(bs.predict(tree, two)["probability"].sum("class"), 1.0, rtol=1e-12)


def test_separable_classes_are_told():
    y = LABELS[np.digitize(Z[:, 0], [-0.5, 0.5])]
    with pytest.warns(bs.FitWarning, match="separate the classes perfectly"):
        tree = fit(Z[:, :1] ** [[1]] @ [[1.0, 0.5]] + np.column_stack([np.zeros(N), Z[:, 0] ** 2]), y)
    assert tree["evidence"].attrs["status"] == "separable"


def test_what_is_refused():
    with pytest.raises(ValueError, match="a categorical likelihood only"):
        fit(X, Y, likelihood="normal")
    with pytest.raises(ValueError, match="no `offset`: leave it out"):
        fit(X, Y, offset=np.ones(N))
    with pytest.raises(ValueError, match="one class only"):
        fit(X, np.full(N, "amber"))
    with pytest.raises(ValueError, match="90 classes for 90 observations"):
        fit(X, RNG.normal(size=N))
    with pytest.raises(ValueError, match="log-concave along one predictor"):
        bs.fit("jeffreys_laplace", (X, Y), likelihood="categorical")
    with pytest.raises(ValueError, match="no `offset`"):
        bs.predict(fit(X, Y, draws=0), X, offset=np.ones(N))


@pytest.mark.parametrize("method", ["mackay", "sequential", "one_vs_rest"])
def test_a_feature_that_is_kept(method):
    noise = np.random.default_rng(1).normal(size=(N, 1))
    wide = np.column_stack([X, noise])
    free, kept = fit(wide, Y, method=method), fit(wide, Y, method=method, keep="x5")
    assert bs.relevance(kept).xs("x5", level="basis")["kept"].all()
    assert not bs.relevance(free).xs("x5", level="basis")["kept"].all()
    own = np.array([f"x5[{label}]" for label in LABELS])
    assert_allclose(kept["evidence"]["alpha"].sel(basis=own), noise.var() / 10.0**2, rtol=1e-9)


def test_twins_are_named():
    with pytest.warns(UserWarning, match="'x5' is 'x1'|'x5.amber.' is 'x1.amber.'"):
        fit(np.column_stack([X, X[:, 1]]), Y, draws=0)


def test_ard_gaussian_with_several_classes_is_the_same_fit():
    one, two = fit(X, Y, hyper=(0, 0)), bs.fit("ard_gaussian", (X, Y), likelihood="categorical", draws=0)
    assert_allclose(one["evidence"]["log_evidence"], two["evidence"]["log_evidence"], rtol=1e-12)
