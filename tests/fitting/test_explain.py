"""What is said of a model before it is fitted is what the fit then does."""

import time

import bambi as bmb
import numpy as np
import pandas as pd
import pymc as pm
import pytest

import bayes_sparse as bs
from tests.support import assert_one_sentence

N, P, G = 60, 6, 5
RNG = np.random.default_rng(0)
X, GROUP = RNG.normal(size=(N, P)), np.arange(N) % G
Y = 1.0 + X[:, 0] - X[:, 3] + 0.5 * RNG.normal(size=N)


def everything():
    """Non-centred groups of weights, random effects, an intercept, two likelihoods."""
    with pm.Model(coords={"feature": list("abcdef")}) as model:
        s = pm.HalfCauchy("s", 1, shape=3)
        w = pm.Deterministic("w", pm.Normal("z", 0, 1, dims="feature") * s[np.arange(P) // 2], dims="feature")
        u = pm.Normal("u", 0, pm.HalfNormal("tau", 1), shape=G)
        b = pm.Normal("b", 1, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ w + u[GROUP], sigma, observed=Y)
        pm.Poisson("visits", pm.math.exp(X[:9] @ w), observed=np.arange(9))
    return model


def known_scales():
    with pm.Model() as model:
        w = pm.Normal("w", 0, 1, shape=P)
        pm.Normal("y", X @ w, 1.0, observed=Y)
    return model


def test_every_variable_has_its_line():
    assert repr(bs.explain(everything())).splitlines() == [
        "sparse       w = z times its scales (6 weights): 3 precisions, one per group: {a, b}, {c, d}, {e, f}, found "
        "in place of the prior on s",
        "one scale    u (5 weights): prior scale found through tau, never pruned",
        "known prior  b: Normal(1, 5)",
        "nuisance     tau, sigma",
        "observed     y: normal, 60 rows, 1 linear predictor",
        "             visits: poisson, 9 rows, 1 linear predictor",
        "method       sequential",
    ]


def test_it_is_what_the_fit_does():
    tree = bs.fit(everything(), draws=0, progressbar=False)
    assert tree["evidence"].attrs["method"] == dict(bs.explain(everything()).rows)["method"]
    alpha = tree["evidence"]["alpha"].to_numpy()
    assert np.array_equal(alpha[::2], alpha[1::2])  # a, b; c, d; e, f
    assert len(np.unique(alpha)) > 1


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"sparse": ["w"]}, "w (6 weights): one precision per weight, found by evidence"),
        (
            {"grouped": ["w"]},
            "w (6 weights): one precision for all of them, kept or pruned together, found by evidence",
        ),
    ],
)
def test_what_is_named(settings, said):
    assert dict(bs.explain(known_scales(), **settings).rows)["sparse"] == said
    assert bs.explain(bs.models.Declared(known_scales(), **settings)) == bs.explain(known_scales(), **settings)


def test_a_refusal_is_said_and_not_raised():
    explained = bs.explain(known_scales())
    assert_one_sentence(explained.refusal, "'w'", "sparse=")
    assert repr(explained) == f"refused  {explained.refusal}"
    with pytest.raises(ValueError, match="No sparse prior") as refusal:
        bs.fit(known_scales(), progressbar=False)
    assert str(refusal.value) == explained.refusal


def test_scales_that_are_declared_prune_nothing():
    rows = dict(bs.explain(everything(), hyper="declared").rows)
    assert "sparse" not in rows
    assert rows["method"] == "sequential, which prunes nothing here"


def test_methods():
    with pm.Model() as model:
        lam, tau = pm.HalfCauchy("lam", 1, shape=P), pm.HalfCauchy("tau", 0.1)
        w = pm.Normal("w", 0, tau * lam, shape=P)
        pm.Normal("y", X @ w, 1.0, observed=Y)
    assert dict(bs.explain(model).rows) == {
        "sparse": "w (6 weights): a horseshoe, its scales behind lam, tau",
        "observed": "y: normal, 60 rows, 1 linear predictor",
        "method": "global_local",
    }
    assert dict(bs.explain(model, method="mackay").rows)["method"] == "mackay"
    assert "one precision per weight" in dict(bs.explain(model, method="mackay").rows)["sparse"]
    assert dict(bs.explain(model, method="nuts").rows)["method"] == "nuts"


def test_a_likelihood_that_is_not_linear_for_a_one_step_method():
    with pm.Model() as model:
        w = pm.Normal("w", 0, pm.HalfCauchy("s", 1, shape=P), shape=P)
        pm.Normal("y", X @ w**2, 1.0, observed=Y)
    assert "not linear in 'w'" in bs.explain(model).refusal
    assert dict(bs.explain(model, method="revm").rows)["observed"] == "y: normal, 60 rows, no linear predictor needed"


def test_classes_and_missing_values():
    with pm.Model() as model:
        w = pm.Normal("w", 0, pm.HalfCauchy("s", 1, shape=(P, 3)), shape=(P, 3))
        pm.Categorical("kind", logit_p=X @ w, observed=np.arange(N) % 3)
    assert dict(bs.explain(model).rows)["observed"] == "kind: categorical, 60 rows, softmax of 3 linear predictors"
    with pm.Model() as model:
        w = pm.Normal("w", 0, pm.HalfCauchy("s", 1, shape=P), shape=P)
        with pytest.warns(match="missing values"):
            pm.Normal("y", X @ w, 1.0, observed=np.where(np.arange(N) < 10, np.nan, Y))
    said = dict(bs.explain(model).rows)["observed"]
    assert said == "y_observed: normal, 50 rows, missing values left out, 1 linear predictor"


def test_a_bambi_model():
    frame = pd.DataFrame(X[:, :2], columns=["u", "v"]).assign(y=Y, area=pd.Categorical(GROUP))
    explained = bs.explain(bmb.Model("y ~ u + v + (1|area)", frame))
    assert [text.split(":")[0] for heading, text in explained.rows if heading == "sparse"] == ["u", "v"]
    assert "1|area" in dict(explained.rows)["one scale"]


def test_a_page_of_a_notebook():
    html = bs.explain(everything())._repr_html_()
    assert html.count("<tr>") == 7
    assert "{a, b}" in html


def test_named_models_are_not_read():
    with pytest.raises(TypeError, match="explain takes a"):
        bs.explain("ard_gaussian")


def test_nothing_is_compiled():
    bs.explain(everything())  # PyTensor's own first time
    start = time.perf_counter()
    bs.explain(everything())
    assert time.perf_counter() - start < 2.0  # a tenth of a second on a machine with nothing else to do
