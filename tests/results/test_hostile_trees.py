"""Somebody else's file: it never says what is called here, and what is wrong with it is one sentence."""

import json
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

import bayes_sparse as bs
from bayes_sparse.inputs.basis._stored_function import was_handed_over
from tests.support import assert_one_sentence

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = X[:, 0] + 0.3 * RNG.normal(size=40)
CALLED = []


def squares(X):
    return np.hstack([X, X**2])


def other(X):
    return np.hstack([2 * X, X**2])


def noted(X):
    CALLED.append(len(X))
    return squares(X)


@pytest.fixture(scope="module")
def tree():
    return bs.fit("ard_gaussian", (X, Y), draws=200, random_seed=0)


@pytest.fixture(scope="module")
def by_function():
    return bs.fit("ard_gaussian", (X, Y), basis=squares, draws=0)


def with_settings(tree, **changes):
    changed = tree.copy()
    changed.attrs["bayes_sparse"] = json.dumps({**json.loads(tree.attrs["bayes_sparse"]), **changes})
    return changed


def naming(tree, call):
    return with_settings(tree, basis={"name": "function", "call": call, "bias": True, "standardise": False})


@pytest.mark.parametrize("call", ["evilmod:f", "sys:exit", "os:system", "", "a:b:c", None, 5])
def test_a_file_does_not_say_what_is_called(by_function, tmp_path, monkeypatch, call):
    (tmp_path / "evilmod.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    hostile = naming(by_function, call)
    for use in (lambda: bs.predict(hostile, X), lambda: bs.compare({"a": hostile, "b": by_function}, (X, Y))):
        with pytest.raises(ValueError, match="basis=f") as error:
            use()
        assert_one_sentence(str(error.value), repr(str(call)), "trust=True")
    bs.relevance(hostile)  # needs no function
    assert "evilmod" not in sys.modules


def test_a_function_handed_over_or_trusted(by_function):
    stranger = naming(by_function, f"{__name__}:noted")
    assert not was_handed_over(f"{__name__}:noted")
    expected = bs.predict(by_function, X)  # made in this process: the user has handed it over
    xr.testing.assert_equal(bs.predict(stranger, X, basis=squares), expected)
    assert CALLED == []
    assert not bs.predict(stranger, X, basis=other).equals(expected)
    xr.testing.assert_equal(bs.predict(stranger, X, trust=True), expected)
    assert CALLED == [40]


def test_a_function_is_not_asked_for_where_there_is_none(tree):
    with pytest.raises(ValueError, match="leave out `basis`") as error:
        bs.predict(tree, X, basis=squares)
    assert_one_sentence(str(error.value), "linear")


FUNCTIONS = {
    "predict": lambda tree: bs.predict(tree, X),
    "relevance": bs.relevance,
    "diagnose": bs.diagnose,
    "correct": bs.correct,
    "log_evidence": bs.log_evidence,
    "loo": bs.loo,
    "unpruned": bs.unpruned,
    "plot_relevance": bs.plot_relevance,
    "plot_history": bs.plot_history,
    "plot_curve": bs.plot_curve,
    "plot_spectrum": bs.plot_spectrum,
    "plot_path": bs.plot_path,
    "plot_cv": bs.plot_cv,
    "initvals": lambda tree: bs.initvals(tree, None),
}


ANSWERS = ("predict", "compare", "relevance", "diagnose", "log_evidence", "loo", "unpruned", "plot_history")
SEVERAL = {"compare": lambda tree: bs.compare({"one": tree, "other": tree})}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("thing", [5, None, "tree.nc", xr.Dataset(), {"a": 3}], ids=lambda thing: type(thing).__name__)
def test_what_is_no_fit(name, thing):
    with pytest.raises(TypeError) as error:
        FUNCTIONS[name](thing)
    assert_one_sentence(str(error.value), "bayes_sparse.fit")


def damaged(tree):
    """The tree with one thing wrong at a time."""
    for text in ("{", "[1]", "null", 5):
        changed = tree.copy()
        changed.attrs["bayes_sparse"] = text
        yield f"settings {text}", changed
    for name in json.loads(tree.attrs["bayes_sparse"]):
        yield f"{name} 5", with_settings(tree, **{name: 5})
    yield "likelihood's field", with_settings(tree, likelihood={"name": "normal", "more": 1})
    yield "likelihood's name", with_settings(tree, likelihood={"name": "../normal"})
    yield "basis's field", with_settings(tree, basis={"name": "rbf", "width": "wide"})
    evidence = tree["evidence"].to_dataset()
    for name in evidence.data_vars:
        yield f"no {name}", tree.assign({"evidence": xr.DataTree(evidence.drop_vars(name))})
    yield "no attributes", tree.assign({"evidence": xr.DataTree(evidence.drop_attrs())})
    yield "no groups", tree.filter(lambda node: node.name not in ("evidence", "posterior"))


def refusal(function, tree):
    try:
        function(tree)
    except (ValueError, TypeError) as error:
        return str(error)
    finally:
        plt.close("all")
    return None


def test_damage_is_one_sentence(tree):
    """Whatever is wrong, an answer that does not need it or a sentence of ours."""
    for what, changed in damaged(tree):
        for name in ANSWERS:
            function = (FUNCTIONS | SEVERAL)[name]
            said = refusal(function, changed)
            assert said is None or "Expecting" not in said, (what, name)
            if said is not None:
                assert_one_sentence(said)


@pytest.mark.parametrize(("name", "values"), [("column", [99]), ("column", [-3]), ("coordinate_mean", [np.nan])])
def test_moments_that_nobody_can_predict_from(tree, name, values):
    evidence = tree["evidence"].to_dataset()
    wrong = evidence.assign({name: evidence[name].copy(data=np.resize(values, evidence[name].shape))})
    with pytest.raises(ValueError, match=name) as error:
        bs.predict(tree.assign({"evidence": xr.DataTree(wrong)}), X)
    assert_one_sentence(str(error.value))
