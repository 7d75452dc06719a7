"""A Bambi model from its formula to what Bambi and ArviZ make of the tree, against simulated truth and Bambi itself."""

from functools import cache

import arviz as az
import bambi as bmb
import numpy as np
import pandas as pd
import pytensor
import pytest

import bayes_sparse as bs
from tests.fitting.bambi_models import AREAS, CASES, FRAME, N
from tests.support import refused

pytestmark = [
    pytest.mark.filterwarnings("ignore:For backward compatibility, 'str' dtypes"),  # Bambi's own, of text
    pytest.mark.filterwarnings("ignore:'sample_new_groups' is deprecated:FutureWarning"),  # Bambi's interpret gives it
]
every_case = pytest.mark.parametrize("name", CASES)
NEW = FRAME.iloc[:7].assign(x=np.linspace(1.0, 9.0, 7))


@cache
def fitted(name, **settings):
    """A model and its tree, of which nobody changes anything."""
    model = CASES[name].model()
    return model, bs.fit(model, draws=250, random_seed=1, progressbar=False, **settings)


def without_compiling():
    """For what Bambi computes of its own accord: each a small graph that runs once."""
    return pytensor.config.change_flags(linker="py", mode="FAST_COMPILE")


def relevant(tree):
    """Names of the terms that are claimed to matter."""
    evidence = tree["evidence"].to_dataset()
    return {
        str(label).partition("[")[0] for label in evidence["basis"].where(evidence["relevant"], drop=True).to_numpy()
    }


@every_case
def test_truth_is_found(name):
    _, tree = fitted(name)
    posterior = tree["posterior"].to_dataset()
    for term, truth in CASES[name].truth.items():
        draws = posterior[term] if term != "1|area" else posterior[term].sel(area__factor_dim=AREAS)
        mean, sd = draws.mean(("chain", "draw")).to_numpy(), draws.std(("chain", "draw")).to_numpy()
        # A pruned or shrunk term is off by its shrinkage; an area's effect by the mean of all areas, too.
        slack = 0.1 if term != "1|area" else 0.5
        assert np.all(np.abs(mean - truth) <= 3.5 * sd + slack), (term, mean, sd, truth)


@every_case
def test_what_matters_is_told_from_what_does_not(name):
    _, tree = fitted(name)
    slopes = {term: truth for term, truth in CASES[name].truth.items() if term in FRAME or ":" in term or "(" in term}
    found = relevant(tree)
    assert {term for term, truth in slopes.items() if np.any(truth)} <= found
    assert not {term for term, truth in slopes.items() if not np.any(truth)} & found


@every_case
def test_bambi_computes_the_same_log_likelihood(name):
    model, tree = fitted(name)
    with without_compiling():
        again = model.compute_log_likelihood(tree, inplace=False)["log_likelihood"]["y"]
    ours = tree["log_likelihood"]["y"]
    assert ours.dims == ("chain", "draw", "__obs__")
    np.testing.assert_allclose(ours.to_numpy(), again.to_numpy(), rtol=1e-8, atol=1e-8)


@every_case
def test_bambi_predicts_old_rows_and_new_ones(name):
    model, tree = fitted(name)
    parent = model.family.likelihood.parent
    old = model.predict(tree, inplace=False)["posterior"][parent]
    assert old.sizes["__obs__"] == N
    with without_compiling():
        new = model.predict(tree, kind="response", data=NEW, inplace=False, random_seed=2)
    assert new["posterior"][parent].sizes["__obs__"] == len(NEW)
    assert new["posterior_predictive"]["y"].dims == ("chain", "draw", "__obs__")
    if CASES[name].parameter is not None:
        mean, sd = old.mean(("chain", "draw")).to_numpy(), old.std(("chain", "draw")).to_numpy()
        z = (mean - np.asarray(CASES[name].parameter)) / sd
        assert np.mean(np.abs(z) <= 2.0) >= 0.75  # where terms are pruned rightly it is 0.95 of them


@every_case
def test_a_tree_is_laid_out_as_bambis_own(name):
    model, tree = fitted(name)
    posterior = tree["posterior"].to_dataset()
    graph = model.backend.model
    for rv in graph.free_RVs:
        assert rv.name in posterior, rv.name
        assert set(posterior[rv.name].dims) == {"chain", "draw", *graph.named_vars_to_dims.get(rv.name, ())}
    for dim in posterior.dims:
        if dim in graph.coords:
            assert posterior[dim].to_numpy().tolist() == list(graph.coords[dim])
    assert list(tree["observed_data"].coords) == ["__obs__"]


def test_a_categorical_term_is_kept_or_pruned_whole():
    _, tree = fitted("normal")
    posterior = tree["posterior"].to_dataset()
    assert np.all(posterior["kind"].std(("chain", "draw")) > 0)
    spread = posterior["dull"].std(("chain", "draw")).to_numpy()
    assert np.all(spread == 0) or np.all(spread > 0)
    evidence = tree["evidence"].to_dataset()
    of_kind = [str(label).startswith("kind[") for label in evidence["basis"].to_numpy()]
    precisions = evidence["alpha"].to_numpy()[of_kind]
    np.testing.assert_allclose(precisions, precisions[0], rtol=1e-12)


def test_the_intercept_is_of_the_columns_as_they_are():
    """Against least squares on what was kept."""
    _, tree = fitted("transforms")
    truth = 1.0 + 1.4 * (FRAME["x"].mean() - 5.0) / np.std(FRAME["x"])  # scale(x) is of the mean of x
    draws = tree["posterior"]["Intercept"]
    assert abs(float(draws.mean()) - truth) <= 4 * float(draws.std())


def test_a_random_effect_is_a_random_effect():
    _, tree = fitted("normal")
    posterior = tree["posterior"].to_dataset()
    assert "1|area" not in relevant(tree)
    np.testing.assert_allclose(posterior["1|area"], posterior["1|area_offset"] * posterior["1|area_sigma"], rtol=1e-10)
    assert 0.4 < float(posterior["1|area_sigma"].mean()) < 2.0  # eight areas with an sd of 0.96


def test_sparse_chooses_otherwise():
    _, tree = fitted("normal", sparse=("noise1", "noise2"))
    assert sorted(map(str, tree["evidence"]["basis"].to_numpy())) == ["noise1", "noise2"]
    _, tree = fitted("spline", sparse=("bs(time, df=5)",))
    assert relevant(tree) == {"bs(time, df=5)"}


def test_effects_of_groups_by_category_are_random_effects():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=240), "u": rng.normal(size=240)})
    frame["kind"], frame["area"] = (pd.Categorical(np.resize(list(names), 240)) for names in ("abc", "defgh"))
    effects = 0.6 * rng.normal(size=(5, 3))
    frame["y"] = 0.8 * frame["x"] + effects[frame["area"].cat.codes, frame["kind"].cat.codes] + rng.normal(size=240)
    tree = bs.fit(bmb.Model("y ~ x + u + (0 + kind|area)", frame), draws=50, random_seed=0, progressbar=False)
    assert set(tree["evidence"]["basis"].to_numpy()) == {"x", "u"}
    assert (tree["posterior"]["kind|area"].std(("chain", "draw")) > 0).all()


def test_interpret_takes_a_tree():
    model, tree = fitted("normal")
    frame = bmb.interpret.predictions(model, tree, conditional=["x", "kind"]).summary
    assert np.isfinite(frame["estimate"]).all()
    step = bmb.interpret.comparisons(model, tree, contrast={"x": [4.0, 6.0]}).summary
    np.testing.assert_allclose(step["estimate"], 2 * float(tree["posterior"]["x"].mean()), rtol=1e-6)
    slope = bmb.interpret.slopes(model, tree, wrt={"x": 5.0}).summary
    np.testing.assert_allclose(slope["estimate"], float(tree["posterior"]["x"].mean()), rtol=1e-4)


def test_arviz_takes_a_tree():
    _, tree = fitted("normal")
    assert {"x", "kind[b]", "sigma"} <= set(az.summary(tree, var_names=["x", "kind", "sigma"]).index)
    assert np.isfinite(az.loo(tree).elpd)


def test_our_own_functions_take_the_model():
    model, tree = fitted("normal")
    ours = bs.predict(tree, model=model)
    bambis = model.predict(tree, inplace=False)["posterior"]["mu"]
    error = bambis.std(("chain", "draw")).to_numpy() / np.sqrt(1000)
    assert np.all(np.abs(ours["mean"].to_numpy() - bambis.mean(("chain", "draw")).to_numpy()) < 5 * error)
    np.testing.assert_allclose(bs.diagnose(tree, model=model).k_hat, bs.diagnose(tree).k_hat, rtol=1e-6)
    assert "x" in str(bs.relevance(tree))


def test_a_corrected_tree_has_the_same_units():
    """`correct` re-weights draws of the graph's own intercept."""
    _, tree = fitted("bernoulli")
    better = bs.correct(tree)["posterior"]
    for name in ("Intercept", "x"):
        own = tree["posterior"][name]
        assert abs(float(better[name].mean()) - float(own.mean())) < float(own.std())


def test_sentences():
    model, tree = fitted("normal")
    refused(lambda: bs.fit(model, FRAME), "holds its data")
    refused(lambda: bs.predict(tree, NEW, model=model), "model.predict(tree, data=rows)")
    refused(lambda: bs.fit(model, sparse=("nobody",)), "nobody")
