"""Formulas: the columns are those made by hand, what they have learnt is stored, and no stored code is run."""

import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr

import bayes_sparse as bs
from tests.support import refused

pytest.importorskip("formulaic")

RNG = np.random.default_rng(3)
N = 90
FRAME = pd.DataFrame(
    {
        "a": RNG.normal(size=N),
        "b": RNG.normal(size=N),
        "x": RNG.uniform(1, 3, N),
        "site": RNG.integers(0, 3, N),
        "colour": RNG.choice(["red", "green", "blue"], N),
        "flag": RNG.random(N) < 0.5,
    }
)
FRAME["y"] = FRAME["a"] * FRAME["b"] + FRAME["x"] ** 2 - (FRAME["site"] == 1) + 0.3 * RNG.normal(size=N)
WHOLE = (
    "y ~ a*colour + poly(x, 3) + C(site) + bs(x, df=4) + cs(x, df=4) + cc(x, df=4) + center(a) + scale(b) + "
    "standardize(b) + np.log(x) + sqrt(x) + I(a**2) + flag + C(colour, contr.sum) + a:b"
)


def fit(formula, frame=FRAME, **arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # many of the columns say the same
        return bs.fit("ard_gaussian", frame, formula=formula, draws=0, **arguments)


def polynomials(x, degree):
    """Orthonormal ones on the values of x, by a QR decomposition; and at new values, by solving for them."""
    powers = np.vander(x, degree + 1, increasing=True)
    Q, R = np.linalg.qr(powers)
    sign = np.sign(np.diag(R))
    return Q[:, 1:] * sign[
        1:
    ], lambda new: np.linalg.solve(R.T, np.vander(new, degree + 1, increasing=True).T).T[:, 1:] * sign[1:]


def by_hand(frame):
    _, at = polynomials(FRAME["x"].to_numpy(), 3)
    P = at(frame["x"].to_numpy())
    return pd.DataFrame(
        {
            "a": frame["a"],
            "b": frame["b"],
            **{f"poly(x, 3)[{k + 1}]": P[:, k] for k in range(3)},
            **{f"C(site)[{k}]": (frame["site"] == k).astype(float) for k in (1, 2)},
            "a:b": frame["a"] * frame["b"],
        }
    )


@pytest.mark.quick
def test_a_formula_is_columns_made_by_hand():
    tree = fit("y ~ a*b + poly(x, 3) + C(site)")
    hand = bs.fit("ard_gaussian", (by_hand(FRAME), FRAME["y"]), draws=0)
    assert tree["evidence"]["basis"].to_numpy().tolist() == list(by_hand(FRAME))
    for name in ("mean", "sd", "alpha", "bias"):
        np.testing.assert_allclose(tree["evidence"][name], hand["evidence"][name], rtol=1e-8, atol=1e-12)
    new = FRAME[:7].assign(x=FRAME["x"][:7] + 0.1)
    np.testing.assert_allclose(bs.predict(tree, new)["mean"], bs.predict(hand, by_hand(new))["mean"], rtol=1e-8)
    assert set(bs.relevance(tree, by="column").index) == {"a", "b", "poly(x, 3)", "C(site)", "a:b"}


def test_all_transforms_survive_storing(tmp_path):
    tree = fit(WHOLE)
    tree.to_netcdf(tmp_path / "fit.nc", engine="h5netcdf")
    with xr.open_datatree(tmp_path / "fit.nc", engine="h5netcdf") as back:
        whole = bs.predict(tree, FRAME)["mean"].to_numpy()
        eta = tree["evidence"]["coordinate_mean"].to_numpy()
        assert len(eta) > 3
        for rows in (slice(0, N), slice(4, 5), slice(10, 30)):  # of a few rows alone no state can be learnt again
            np.testing.assert_allclose(bs.predict(back, FRAME[rows])["mean"], whole[rows], rtol=1e-10)


def test_frames_of_all_kinds_agree():
    formula, expected = "y ~ a + colour + C(site) + flag", fit("y ~ a + colour + C(site) + flag")
    lists = {name: values.tolist() for name, values in FRAME.items()}
    columns = {name: ("obs", np.array(values)) for name, values in lists.items()}
    for form in (pl.DataFrame(lists), pa.table(lists), xr.Dataset(columns)):
        np.testing.assert_allclose(fit(formula, form)["evidence"]["mean"], expected["evidence"]["mean"], rtol=1e-12)
        np.testing.assert_allclose(bs.predict(expected, form)["mean"], bs.predict(expected, FRAME)["mean"], rtol=1e-12)
    pair = fit("a + colour + C(site) + flag", (FRAME.drop(columns="y"), FRAME["y"]))
    np.testing.assert_allclose(pair["evidence"]["mean"], expected["evidence"]["mean"], rtol=1e-12)


def test_a_dot_is_every_other_column(tmp_path):
    rows = FRAME.assign(**{"my column": FRAME["x"] ** 3, "heavy": 1.0 + FRAME["flag"]})
    dot = fit("y ~ . - b", rows, weights="heavy")
    named = fit("y ~ a + x + site + colour + flag + `my column`", rows, weights="heavy")
    assert dot["evidence"].to_dataset().equals(named["evidence"].to_dataset())
    assert (
        fit("~ . - b", rows, weights="heavy", target="y")["evidence"].to_dataset().equals(dot["evidence"].to_dataset())
    )
    dot.to_netcdf(tmp_path / "fit.nc")
    with xr.open_datatree(tmp_path / "fit.nc") as again:
        expected = bs.predict(named, rows[:5])["mean"]
        np.testing.assert_array_equal(bs.predict(again, rows[:5].drop(columns=["y", "b"]))["mean"], expected)


def test_names_with_spaces():
    spaced = FRAME.rename(columns={"a": "the dose", "y": "the answer"})
    one, other = fit("`the answer` ~ `the dose`:b + x", spaced), fit("y ~ a:b + x")
    np.testing.assert_allclose(one["evidence"]["mean"], other["evidence"]["mean"], rtol=1e-12)
    np.testing.assert_allclose(bs.predict(one, spaced)["mean"], bs.predict(other, FRAME)["mean"], rtol=1e-12)


def test_without_an_intercept_there_is_no_bias():
    tree = fit("y ~ a + colour - 1")
    assert "bias" not in tree["evidence"]
    assert tree["evidence"]["basis"].to_numpy().tolist() == ["a", "colour[blue]", "colour[green]", "colour[red]"]
    assert np.isfinite(bs.predict(tree, FRAME[:3])["mean"]).all()


def test_missing_values_weights_and_offset():
    holes = FRAME.assign(a=FRAME["a"].where(np.arange(N) % 7 > 0), flag=None, w=np.resize([0.0, 1.0, 2.0], N))
    refused(lambda: fit("y ~ a + x", holes), "Missing values in 'a' (13)")
    refused(lambda: fit("y ~ a + x", holes, missing="mean"), "refused or dropped")
    kept = holes[holes["a"].notna() & (holes["w"] > 0)]
    one, other = (
        fit("y ~ center(a) + x", holes, missing="drop", weights="w"),
        fit("y ~ center(a) + x", kept, weights="w"),
    )
    np.testing.assert_allclose(one["evidence"]["mean"], other["evidence"]["mean"], rtol=1e-12)
    assert bs.predict(one, holes).sizes["obs"] == holes["a"].notna().sum()
    offset = 0.1 * FRAME["b"]
    moved = fit("y ~ a + x", FRAME, offset=offset)
    by_column = fit("y ~ a + x", FRAME.assign(o=offset), offset="o")
    np.testing.assert_allclose(moved["evidence"]["mean"], by_column["evidence"]["mean"], rtol=1e-12)


def test_folds_refits_and_pruned_columns():
    formula = "y ~ a:b + poly(x, 2) + colour"
    found = bs.kfold("ard_gaussian", FRAME, 3, formula=formula, workers=1)
    assert np.isfinite(found.elpd)
    tree = fit(formula)
    again = bs.loo(tree, refit=True, data=FRAME, workers=1)
    assert abs(again.elpd - found.elpd) < 10
    bs.sensitivity("ard_gaussian", FRAME, formula=formula, draws=20, random_seed=0)
    assert not bs.relevance(tree, by="column").loc["colour", "kept"]
    lean = FRAME.drop(columns=["colour", "y", "site"])
    np.testing.assert_allclose(bs.predict(tree, lean)["mean"], bs.predict(tree, FRAME)["mean"], rtol=1e-12)
    refused(lambda: bs.predict(tree, FRAME[["a", "x"]]), "missing: 'b'")
    row = bs.predict(tree, FRAME.iloc[2])
    np.testing.assert_allclose(row["mean"], bs.predict(tree, FRAME[2:3])["mean"], rtol=1e-12)


def test_constant_columns_and_levels_not_seen():
    tree = fit("y ~ a + C(site) + flat + colour", FRAME.assign(flat=1.0))
    assert bs.relevance(tree).index[-1] == "flat"
    refused(lambda: bs.predict(tree, FRAME.assign(flat=1.0, colour="pink")), "Column 'colour'", "'pink'")
    refused(lambda: bs.predict(tree, FRAME.assign(flat=1.0, site=9)), "has not seen: 9;")
    refused(lambda: bs.predict(tree, FRAME.assign(flat=1.0), unseen="ignore"), "unseen='refuse'")
    refused(lambda: bs.predict(tree, FRAME[["a", "x"]].to_numpy()), "give new rows as a frame")


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("log(y) ~ a", "left side"),
        ("y ~ a +", "cannot be read"),
        ("y ~ 1", "no terms but the intercept"),
        ("y ~ nowhere", "no column 'nowhere'"),
        ("y ~ log(a)", "not a number in"),
        ("y ~ a | b", "several parts"),
        ("y ~ (1|site)", "Bambi model"),
        (3, "A formula is a string"),
    ],
)
def test_formulas_that_are_refused(formula, said):
    refused(lambda: fit(formula), said)


def test_what_does_not_go_with_a_formula():
    refused(lambda: fit("y ~ a", target="b"), "leave out `target`")
    refused(lambda: bs.fit("ard_gaussian", (np.ones((3, 2)), np.ones(3)), formula="y ~ x0"), "names columns")
    refused(lambda: fit("~ a"), "Name the target column")


HOSTILE = [
    "open('ran', 'w').write('x')",
    "I(open('ran', 'w').write('x'))",
    "C(open('ran', 'w').write)",
    "{open('ran', 'w').write('x')}",
    "open('ran', 'w').write(a):b",
    "__import__('os').system('true')",
    "I(__import__('os').getpid())",
    "I(open('/etc/passwd').read())",
    "I(a.__class__)",
    "I([n for n in (1, 2)])",
    "I((lambda: a)())",
    "np.load('file')",
    "np.lib.npyio.load('file')",
    "I(np)",
    "I(9**9**9)",
    "I(a[0])",
    "hashed(a)",
    "Q('a')",
    "I(f'{a}')",
    "contr.custom(a)",
    "{__import__('os').getpid()}",
]


@pytest.mark.parametrize("code", HOSTILE)
def test_no_code_is_run_but_what_is_known(code, monkeypatch, tmp_path):
    """Neither of a formula that is given, nor of one in a file; nor is any while it is only read."""
    monkeypatch.chdir(tmp_path)
    ran = []
    monkeypatch.setattr("os.getpid", lambda: ran.append(1) or 1)
    monkeypatch.setattr("os.system", lambda command: ran.append(command) or 0)
    with pytest.raises(ValueError, match=r"formula|column 'np'"):
        fit(f"y ~ a + {code}")
    tree = fit("y ~ a + x")
    settings = json.loads(tree.attrs["bayes_sparse"])
    settings["encodings"][0]["formula"]["text"] = f"y ~ a + x + {code}"
    tree.attrs["bayes_sparse"] = json.dumps(settings)
    with pytest.raises(ValueError, match="formula"):
        bs.predict(tree, FRAME)
    assert not ran
    assert not [*tmp_path.iterdir()]


def test_own_functions_are_to_be_columns():
    refused(lambda: fit("y ~ mine(a)"), "'mine(a)'", "as a column of the frame")
