"""Four rungs on the same data and hyper-prior; nothing is fitted twice."""

import importlib
import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from numpy.testing import assert_allclose

import bayes_sparse as bs
from bayes_sparse.fitting.fit import fit
from bayes_sparse.trees.read import rung_of
from tests.support import assert_one_sentence, without_compiler

RNG = np.random.default_rng(31)
X = RNG.standard_normal((40, 2)) * [1.0, 20.0]
Y = 1.0 + X @ [1.0, -0.03] + 0.5 * RNG.standard_normal(40)
SHORT = {"draws": 60, "chains": 2, "random_seed": 3, "sampler": "pymc", "progressbar": False}
BRIEF = {"sample_kwargs": {"tune": 50, "cores": 1, "max_treedepth": 2, "early_max_treedepth": 2}}
LOWER = ("plug_in", "approximation", "conditional")
MODULE = importlib.import_module("bayes_sparse.refits.ladder")  # the name in the package is the function


def climb(data=(X, Y), model="ard_gaussian", **arguments):
    return bs.ladder(model, data, **(SHORT | BRIEF | arguments))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """All four, stored as they come; a handful of draws needs no C compiler."""
    file = tmp_path_factory.mktemp("ladder") / "deep" / "ladder.nc"
    with pytest.MonkeyPatch.context() as patch:
        without_compiler(patch)
        return climb(store=file), file


@pytest.fixture
def fits(monkeypatch):
    """The methods that are fitted from here on."""
    calls = []

    def counted(*arguments, **named):
        calls.append(named["method"])
        return fit(*arguments, **named)

    monkeypatch.setattr(MODULE, "fit", counted)
    return calls


def test_four_rungs_and_what_each_holds(whole):
    ladder, _ = whole
    assert list(ladder.children) == ["plug_in", "approximation", "conditional", "full"]
    for name, tree in ladder.children.items():
        assert rung_of(tree) == name
        assert json.loads(tree.attrs["bayes_sparse"])["model"] == "ard_gaussian"
    assert set(ladder["plug_in"].children) == {"evidence", "observed_data", "constant_data"}
    assert "log_q" in ladder["approximation"]["sample_stats"]
    assert "bridge" in ladder["conditional"].children
    assert "evidence" not in ladder["full"].children
    assert "alpha" in ladder["full"]["posterior"]


def test_a_plug_in_is_the_mode_alone(whole):
    plugged, reference = whole[0]["plug_in"]["evidence"], whole[0]["approximation"]["evidence"]
    assert not plugged["sd"].any()
    assert not plugged["covariance_factor"].any()
    assert float(plugged["bias_sd"]) == 0
    for name in ("mean", "bias", "sigma", "alpha"):
        assert_allclose(plugged[name], reference[name])
    prediction = bs.predict(whole[0]["plug_in"], X[:3])
    eta = X[:3] @ plugged["mean"].to_numpy() + float(plugged["bias"])
    assert_allclose(prediction["mean"], eta)
    assert_allclose(prediction["sd"], float(plugged["sigma"]))


def test_a_plug_in_of_directions_is_their_mode():
    y = (Y > 1).astype(int)
    ladder = climb((X, y), "laplace_eigen", rungs=["plug_in", "approximation"])
    plugged, reference = ladder["plug_in"]["evidence"], ladder["approximation"]["evidence"]
    assert_allclose(plugged["mean"], reference["mode"])
    assert not np.allclose(reference["mean"], reference["mode"], rtol=1e-4)


def test_the_same_hyper_prior_on_all_rungs(whole):
    for name in ("plug_in", "approximation", "conditional"):
        assert_allclose(whole[0][name]["evidence"].attrs["hyper"], [1.0, 0.1])
    assert_allclose(whole[0]["full"]["posterior"].attrs["hyper"], [1.0, 0.1])
    assert whole[0]["approximation"]["evidence"].attrs["slab"] == whole[0]["full"]["posterior"].attrs["slab"] == 2.5
    other = climb(rungs=LOWER, hyper=(1.0, 0.3), slab=None)
    for name in LOWER:
        assert_allclose(other[name]["evidence"].attrs["hyper"], [1.0, 0.3])
        assert "slab" not in other[name]["evidence"].attrs


def test_rungs_agree_where_nothing_is_approximate(whole):
    """A normal likelihood: the second rung is the third, up to four times the error of a hundred draws."""
    evidence = whole[0]["approximation"]["evidence"]
    gap = whole[0]["conditional"]["posterior"]["w"].mean(("chain", "draw")) - evidence["mean"]
    assert bool((np.abs(gap) < 0.4 * evidence["sd"]).all())


def test_nothing_is_fitted_twice(whole, fits):
    ladder, file = whole
    again, from_file = climb(earlier=ladder), climb(store=file)
    assert not fits
    assert again.identical(ladder)
    assert from_file["full"]["posterior"]["w"].equals(ladder["full"]["posterior"]["w"])


def test_every_rung_is_one_fit(fits):
    climb(rungs=LOWER)
    assert len(fits) == 3


def test_an_interrupted_one_goes_on(tmp_path, monkeypatch):
    file, calls = tmp_path / "ladder.nc", []

    def interrupted(*arguments, **named):
        calls.append(named["method"])
        if len(calls) == 3:
            raise KeyboardInterrupt
        return fit(*arguments, **named)

    monkeypatch.setattr(MODULE, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        climb(rungs=LOWER, store=file)
    assert list(tmp_path.iterdir()) == [file]
    ladder = climb(rungs=LOWER, store=file)
    assert len(calls) == 4
    assert list(ladder.children) == list(LOWER)


def test_more_rungs_of_the_same_ladder(fits):
    first = climb(rungs=["approximation"])
    both = climb(rungs=["plug_in", "approximation"], earlier=first)
    assert len(fits) == 2
    assert list(both.children) == ["plug_in", "approximation"]


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"data": (X, Y + 1e-9)}, "data"),
        ({"data": (X[:, ::-1], Y)}, "data"),
        ({"hyper": (1.0, 0.3)}, "hyper"),
        ({"random_seed": 4}, "random_seed"),
        ({"draws": 61, "chains": 3}, "draws, chains"),
        ({"basis": bs.basis.polynomial()}, "basis"),
        ({"method": "em"}, "method"),
        ({"offset": np.ones(40)}, "more"),
        ({"model": bs.models.ARDGaussian(bias_sd=3.0)}, "model"),
    ],
)
def test_another_ladder_is_refused(change, names, fits):
    first = climb(rungs=["approximation"])
    with pytest.raises(ValueError, match=rf"another one: it differs in {names}\. Give the same arguments"):
        climb(rungs=["approximation"], earlier=first, **change)
    assert len(fits) == 1


def test_what_is_not_a_ladder_is_refused(tmp_path):
    tree = bs.fit("ard_gaussian", (X, Y), draws=0)
    with pytest.raises(ValueError, match=r"holds no ladder: give a tree from bs\.ladder"):
        climb(earlier=tree)
    tree.to_netcdf(tmp_path / "fit.nc")
    with pytest.raises(ValueError, match="holds no ladder"):
        climb(store=tmp_path / "fit.nc")


@pytest.mark.parametrize("rungs", [["plug_in", "top"], "full", ["Full"]])
def test_rungs_that_are_not_there(rungs):
    wrong = rungs if isinstance(rungs, str) else rungs[-1]
    with pytest.raises(ValueError, match=rf"`rungs` are some of 'plug_in', .*in a list; got '{wrong}'\."):
        climb(rungs=rungs)


def test_a_stored_ladder_predicts_as_before(whole):
    ladder, file = whole
    with xr.open_datatree(file, engine="h5netcdf") as back:
        for name in ladder.children:
            assert bs.predict(back[name], X[:5]).identical(bs.predict(ladder[name], X[:5]))
        assert back.attrs == ladder.attrs


def test_settings_of_the_sampler_serve_every_rung():
    """PyMC writes into the settings that it is given, and the next rung would be refused for it."""
    given = {"cores": 1, "nuts": {"max_treedepth": 2, "early_max_treedepth": 2}}
    climb(rungs=["conditional"], sample_kwargs=given)
    assert given == {"cores": 1, "nuts": {"max_treedepth": 2, "early_max_treedepth": 2}}


def test_it_says_where_it_is(messages):
    climb(rungs=["plug_in", "conditional"])
    assert [m for m in messages if m.startswith("Rung")] == ["Rung 1 of 4: plug-in.", "Rung 3 of 4: conditional."]


SINC = np.linspace(-3, 3, 25)[:, None]
WAVE = np.sinc(SINC[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(25)


def test_a_width_found_by_evidence_is_the_width_of_all_rungs(monkeypatch):
    """The last rung is handed the width that the ones below it found."""
    wanted = {"data": (SINC, WAVE), "basis": bs.basis.rbf(width="evidence"), "draws": 10}
    first = climb(**wanted, rungs=["conditional"])
    taken = []

    def watched(*arguments, **named):
        taken.append(named["basis"])
        return first["conditional"]

    monkeypatch.setattr(MODULE, "fit", watched)
    climb(**wanted, rungs=["conditional", "full"])
    width = first["conditional"]["evidence"].attrs["width"]
    assert [basis.width for basis in taken] == ["evidence", pytest.approx(width)]


def test_kernels_under_the_default_hyper_prior():
    """It keeps all of them: with the bias one term more than there are observations."""
    ladder = climb((SINC, WAVE), basis=bs.basis.rbf(width=1.0), rungs=["plug_in", "approximation"])
    assert ladder["approximation"]["evidence"].sizes["coordinate"] == 26
    assert np.isfinite(ladder["approximation"]["posterior"]["sigma"]).all()


def test_a_one_step_method_has_no_hyper_prior_below_the_last_rung():
    ladder = climb(model="laplace_eigen", rungs=LOWER)
    assert "u" in ladder["conditional"]["posterior"]
    assert json.loads(ladder.attrs["ladder"])["hyper"] == [1.0, 0.5]


def test_a_common_scale():
    ladder = climb(model="jeffreys_laplace", rungs=LOWER)
    assert "lambda" in ladder["conditional"]["evidence"]
    assert json.loads(ladder.attrs["ladder"])["hyper"] == []


def declared():
    with pm.Model() as model:
        data = pm.Data("X", X)
        observed = pm.Data("targets", Y)
        w = pm.Normal("w", 0.0, tau=pm.Gamma("alpha", 0.5, 0.005, shape=2), shape=2)
        pm.Normal("y", pm.Normal("b", 0.0, 10.0) + data @ w, 0.5, observed=observed)
    return model


def test_a_model_of_the_user_s(fits):
    model = declared()
    ladder = climb(None, model, rungs=LOWER)
    again = climb(None, model, rungs=LOWER, earlier=ladder)
    assert len(fits) == 3
    assert again.identical(ladder)
    with model:
        pm.set_data({"targets": Y + 1.0})
    with pytest.raises(ValueError, match="differs in data"):
        climb(None, model, rungs=LOWER, earlier=ladder)


def test_new_values_for_a_model_of_the_user_s(fits):
    """They stay set by the first call, so that the second sees another model before and the same one after."""
    model, new = declared(), {"targets": Y + 1.0}
    ladder = climb(new, model, rungs=["approximation"])
    assert climb(new, model, rungs=["approximation"], earlier=ladder).identical(ladder)
    assert len(fits) == 1
    with pytest.raises(ValueError, match="differs in data"):
        climb({"targets": Y + 2.0}, model, rungs=["approximation"], earlier=ladder)


def test_a_store_that_is_cut_short(tmp_path, whole):
    file = tmp_path / "ladder.nc"
    file.write_bytes(whole[1].read_bytes()[:3000])
    with pytest.raises(ValueError, match="cannot be read as a ladder") as error:
        climb(store=file)
    assert_one_sentence(str(error.value), "ladder.nc")


def test_several_at_one_store_at_once(tmp_path):
    """None fails, and the file has what all have found; each opens the file by itself, as processes do."""
    file = tmp_path / "ladder.nc"
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(climb, rungs=[rung], store=file) for rung in ("plug_in", "approximation") * 2]
        for job in jobs:
            job.result()
    with xr.open_datatree(file, engine="h5netcdf") as stored:
        assert set(stored.children) == {"plug_in", "approximation"}
    assert list(tmp_path.iterdir()) == [file]


def test_what_another_process_finishes_meanwhile_is_taken_over(tmp_path, whole, monkeypatch):
    file, calls = tmp_path / "ladder.nc", []

    def overtaken(*arguments, **named):
        calls.append(named["method"])
        file.write_bytes(whole[1].read_bytes())
        return fit(*arguments, **named)

    monkeypatch.setattr(MODULE, "fit", overtaken)
    ladder = climb(store=file)
    assert len(calls) == 1
    assert list(ladder.children) == ["plug_in", "approximation", "conditional", "full"]
