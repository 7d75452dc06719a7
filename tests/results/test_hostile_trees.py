"""Somebody else's file: it never says what is called here, and what is wrong with it is one sentence."""

import json
import re
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

import bayes_sparse as bs
from bayes_sparse.command_line.files import read_tree
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
    "summary": bs.summary,
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


FRAME = pd.DataFrame(X, columns=["a", "b"]).assign(c=np.repeat(["u", "v", "w", "x"], 10), y=Y)


def own_model():
    with pm.Model() as model:
        scale = pm.HalfCauchy("scale", 1.0, shape=2)
        pm.Normal("y", X @ pm.Normal("w", 0.0, scale, shape=2), pm.HalfNormal("sigma", 1.0), observed=Y)
    return model


KINDS = {
    "columns": lambda: (bs.fit("ard_gaussian", (X, Y), draws=200, random_seed=0), X),
    "categories": lambda: (bs.fit("ard_gaussian", FRAME, target="y", draws=200, random_seed=0), FRAME),
    "formula": lambda: (
        bs.fit("ard_gaussian", FRAME, formula="y ~ poly(a, 2) + C(c)", draws=200, random_seed=0),
        FRAME,
    ),
    "kernels": lambda: (bs.fit("ard_gaussian", (X, Y), basis=bs.basis.rbf(1.0), draws=200, random_seed=0), X),
    "classes": lambda: (bs.fit("student_multinomial", (X, np.digitize(Y, [-0.5, 0.5])), draws=200, random_seed=0), X),
    "path": lambda: (bs.fit("jeffreys_laplace", (X, Y), draws=200, random_seed=0), X),
    "directions": lambda: (bs.fit("laplace_eigen", (X, Y), draws=200, random_seed=0), X),
    "own model": lambda: (bs.fit(own_model(), draws=200, random_seed=0), None),
}


@pytest.mark.filterwarnings("ignore:Estimated shape:UserWarning")
@pytest.mark.parametrize("kind", ["columns", *(pytest.param(kind, marks=pytest.mark.slow) for kind in list(KINDS)[1:])])
def test_damage_is_one_sentence(kind):
    """Whatever is wrong, an answer that does not need it or a sentence of ours."""
    tree, rows = KINDS[kind]()
    functions = {**FUNCTIONS, **SEVERAL, "predict": lambda tree: bs.predict(tree, rows)}
    for what, changed in damaged(tree):
        for name in ANSWERS:
            said = refusal(functions[name], changed)
            assert said is None or "Expecting" not in said, (what, name)
            if said is not None:
                assert_one_sentence(said)


def test_damage_that_nobody_has_thought_of(tree):
    """What ends in an error of another library is said in a sentence that shows it; errors of the user's code stay."""
    evidence = tree["evidence"].to_dataset()
    words = evidence.assign(kept=evidence["kept"].copy(data=np.full(evidence["kept"].shape, "<b>", dtype=object)))
    said = refusal(bs.relevance, tree.assign({"evidence": xr.DataTree(words)}))
    assert_one_sentence(said, "relevance cannot read this tree (TypeError: ", "report it")
    said = refusal(lambda changed: bs.predict(changed, X), with_settings(tree, vectors={"w": 5}))
    assert_one_sentence(said, "predict cannot read this tree (TypeError: 'int' object")
    with pytest.raises(TypeError, match="unexpected keyword"):
        bs.relevance(tree, no_such_thing=1)


def test_errors_of_a_basis_function_are_its_own(by_function):
    def wrong(X):
        raise KeyError("of the user's")

    with pytest.raises(KeyError, match="of the user's"):
        bs.predict(by_function, X, basis=wrong)


HOSTILE = "__import__('os').system('touch {}')"


def test_a_stored_formula_runs_nothing(tmp_path):
    """Wherever code is put into what a formula has stored."""
    frame, mark = pd.DataFrame(X, columns=["a", "b"]).assign(y=Y), tmp_path / "ran"
    made = bs.fit("ard_gaussian", frame, formula="y ~ poly(a, 2) + b", draws=0)
    settings, code = made.attrs["bayes_sparse"], HOSTILE.format(mark)
    for word in ("poly(a, 2)", "poly", "b"):
        changed = made.copy()
        changed.attrs["bayes_sparse"] = settings.replace(json.dumps(word)[1:-1], json.dumps(code)[1:-1])
        assert changed.attrs["bayes_sparse"] != settings
        said = refusal(lambda changed: bs.predict(changed, frame), changed)
        assert said is not None
        assert_one_sentence(said)
    assert not mark.exists()


def test_words_of_a_tree_are_text_in_a_report(tree, tmp_path):
    """Every attribute that holds words holds an element too."""
    changed, page, hostile = tree.copy(), tmp_path / "page.html", "<script>alert(1)</script>"
    words = [(group, name, own) for group in ("evidence", "posterior") for name, own in tree[group].attrs.items()]
    for group, name, own in words:
        if isinstance(own, str) and name != "status" and own[:1] not in ("{", "["):  # words, not JSON
            changed[group].attrs[name] = own + hostile
    bs.report({"<script>": changed}, page, title="<script>", progressbar=False)
    assert "<script" not in page.read_text()
    assert page.read_text().count("&lt;script") > 5
    assert "<script" not in bs.summary(changed)._repr_html_()
    changed["evidence"].attrs["status"] = hostile
    assert_one_sentence(refusal(bs.summary, changed), "'status' names no end of a fit")


def test_nothing_is_unpickled_and_no_text_is_run():
    """But for jobs that this package sends to processes of its own."""
    package = Path(bs.__file__).parent
    calls = re.compile(r"pickle\.loads?\(|allow_pickle=True|(?<![\w.])(eval|exec|__import__)\(|\.read_pickle\(")
    found = {str(file.relative_to(package)) for file in package.rglob("*.py") if calls.search(file.read_text())}
    assert found <= {"refits/workers.py"}


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_file_that_is_cut_short(tree, tmp_path, share):
    whole, path = bytes(tree.to_netcdf(None, engine="h5netcdf")), tmp_path / "tree.nc"
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(ValueError, match="is no NetCDF file") as error:
        read_tree(str(path))
    assert_one_sentence(str(error.value))


def test_a_file_with_other_bytes_in_it(tree, tmp_path):
    """HDF5 finds most of them by its checksums, and has many errors for that; other numbers are numbers."""
    whole, path = bytes(tree.to_netcdf(None, engine="h5netcdf")), tmp_path / "tree.nc"
    rng, said = np.random.default_rng(0), []
    for _ in range(20):
        damaged = bytearray(whole)
        for place in rng.integers(len(whole), size=12):
            damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        said.append(refusal(read_tree, str(path)))
        assert_one_sentence(refusal(lambda store: bs.ladder("ard_gaussian", (X, Y), store=store), path))
    found = [sentence for sentence in said if sentence is not None]
    assert len(found) >= 10
    for sentence in found:
        assert_one_sentence(sentence, "or it is damaged")


@pytest.mark.parametrize(("name", "values"), [("column", [99]), ("column", [-3]), ("coordinate_mean", [np.nan])])
def test_moments_that_nobody_can_predict_from(tree, name, values):
    evidence = tree["evidence"].to_dataset()
    wrong = evidence.assign({name: evidence[name].copy(data=np.resize(values, evidence[name].shape))})
    with pytest.raises(ValueError, match=name) as error:
        bs.predict(tree.assign({"evidence": xr.DataTree(wrong)}), X)
    assert_one_sentence(str(error.value))
