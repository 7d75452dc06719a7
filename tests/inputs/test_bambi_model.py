"""Which variables of a Bambi model are sparse, which of them as a whole, and how its columns were centred."""

import bambi as bmb
import numpy as np
import pandas as pd
import pymc as pm
import pytest

from bayes_sparse.inputs.bambi_model import built, column_means, graph_of, is_bambi, of_rows, sparse_terms

pytestmark = pytest.mark.filterwarnings("ignore:For backward compatibility, 'str' dtypes")  # Bambi's own, of text

RNG = np.random.default_rng(3)
N = 60
FRAME = pd.DataFrame(
    {
        "y": RNG.normal(size=N),
        "x": RNG.normal(5.0, 2.0, N),
        "z": RNG.normal(size=N),
        "c": np.resize(list("abcd"), N),
        "d": np.resize(["u", "v", "v"], N),
        "g": np.resize(["g1", "g2", "g3", "g4", "g5"], N),
        "kind": np.resize(["p", "q", "r"], N),
    }
)


def model(formula, **more):
    return bmb.Model(formula, FRAME, **more)


def test_a_model_is_told_by_its_class():
    assert is_bambi(model("y ~ x"))
    assert not is_bambi(pm.Model())
    assert not is_bambi("ard_gaussian")

    class Mine(bmb.Model):
        pass

    assert is_bambi(Mine("y ~ x", FRAME))


def test_a_model_is_built_once():
    one = model("y ~ x")
    graph = built(one)
    assert isinstance(graph, pm.Model)
    assert built(one) is graph
    assert graph_of(one) is graph
    assert graph_of(graph) is graph


@pytest.mark.parametrize(
    ("formula", "alone", "grouped"),
    [
        ("y ~ x + c + d", ("x", "d"), ("c",)),
        ("y ~ 0 + x + c", ("x",), ("c",)),
        ("y ~ x * z + x:c", ("x", "z", "x:z"), ("x:c",)),
        ("y ~ scale(x) + poly(z, 2)", ("scale(x)",), ("poly(z, 2)",)),
        ("y ~ z + bs(x, df=5)", ("z",), ()),
        ("y ~ z + d:bs(x, df=5)", ("z",), ()),
        ("y ~ z + hsgp(x, m=5, c=2)", ("z",), ()),
        ("y ~ x + (x|g)", ("x",), ()),
        ("y ~ x + offset(z)", ("x",), ()),
        ("y ~ (1|g)", (), ()),
    ],
)
def test_slopes_are_sparse_and_neither_smooths_nor_groups(formula, alone, grouped):
    made = model(formula)
    assert sparse_terms(made) == (alone, grouped)
    assert {*alone, *grouped} <= set(built(made).named_vars)


def test_every_component_has_slopes():
    made = model(bmb.Formula("y ~ x + c", "sigma ~ z + c"))
    assert sparse_terms(made) == (("x", "sigma_z"), ("c", "sigma_c"))


def test_what_has_a_value_for_each_row():
    assert of_rows(model(bmb.Formula("y ~ x", "sigma ~ z"))) == ("mu", "sigma")
    made = model("y ~ x")
    made.set_alias({"mu": "mean"})
    assert of_rows(made) == ("mean",)


def test_a_term_of_several_responses_is_one_group():
    made = model("kind ~ x + c", family="categorical")
    assert sparse_terms(made) == ((), ("x", "c"))


def test_a_prior_that_is_not_normal_stays():
    made = model("y ~ x + z", priors={"z": bmb.Prior("Laplace", mu=0, b=1)})
    assert sparse_terms(made) == (("x",), ())


def test_names_choose_other_terms():
    made = model("y ~ x + z + c + bs(x, df=5) + (1|g)")
    assert sparse_terms(made, ["x", "bs(x, df=5)"]) == (("x",), ("bs(x, df=5)",))
    assert sparse_terms(made, "c") == ((), ("c",))
    assert sparse_terms(made, ["1|g", "Intercept"]) == (("1|g", "Intercept"), ())


def test_an_alias_is_the_name():
    made = model("y ~ x + c")
    made.set_alias({"x": "slope", "c": "kind", "Intercept": "level"})
    assert sparse_terms(made) == (("slope",), ("kind",))
    assert list(column_means(made)) == ["level"]
    assert list(column_means(made)["level"]) == ["slope", "kind"]


def test_means_are_those_that_the_graph_was_centred_by():
    made = model(bmb.Formula("y ~ x + c", "sigma ~ z"))
    built(made)
    means = column_means(made)
    for component, name in (("mu", "Intercept"), ("sigma", "sigma_Intercept")):
        columns = made.backend.components[component].design_matrix_without_intercept
        np.testing.assert_allclose(np.concatenate(list(means[name].values())), columns.mean(axis=0), rtol=1e-14)
    assert [len(own) for own in means["Intercept"].values()] == [1, 3]


@pytest.mark.parametrize(
    ("formula", "more"),
    [
        ("y ~ 0 + x", {}),
        ("y ~ x", {"center_predictors": False}),
        ("y ~ 1 + (1|g)", {}),
        ("kind ~ 0 + x", {"family": "cumulative"}),
    ],
)
def test_nothing_is_centred_without_an_intercept_beside_slopes(formula, more):
    frame = FRAME.assign(kind=pd.Categorical(FRAME["kind"], ordered=True))
    assert column_means(bmb.Model(formula, frame, **more)) == {}
