"""Leaving every row of a fit out in earnest, with what its tree tells of the fit."""

import json

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

import bayes_sparse as bs
from bayes_sparse.common.progress import quiet
from tests.support import as_sampled, assert_one_sentence

RNG = np.random.default_rng(6)
N = 20
X = RNG.standard_normal((N, 4))
NUMBERS = X[:, 0] + 0.6 * RNG.standard_normal(N)
LABELS = X[:, 0] + RNG.logistic(scale=0.7, size=N) > 0
THREE = np.array(["a", "b", "c"])[np.argmax(X[:, :3] + 0.5 * RNG.standard_normal((N, 3)), axis=1)]

FITS = {
    "defaults": ("ard_gaussian", (X, NUMBERS), {}),
    "classes": ("ard_gaussian", (X, LABELS), {"draws": 50}),
    "settings": (
        "ard_gaussian",
        (X, NUMBERS),
        {"method": "mackay", "hyper": (0.5, 0.01), "keep": ["x2"], "bias_sd": 3.0, "weights": 1.0 + np.arange(N) % 2}
        | {"offset": 0.2 * np.sin(np.arange(N)), "likelihood": bs.likelihoods.student_t(nu=5.0)},
    ),
    "price": ("ard_gaussian", (X, NUMBERS), {"smoothness": 0.3, "noise": (0.2, 0.5)}),
    "L1": ("jeffreys_laplace", (X, NUMBERS), {"lam": 2.0}),
    "directions": ("laplace_eigen", (X, NUMBERS), {"expansion": "evidence"}),
    "several classes": ("student_multinomial", (X, THREE), {"method": "one_vs_rest"}),
    "own features": ("student_multinomial", ({k: X + 0.1 * i for i, k in enumerate("abc")}, THREE), {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FITS)
def test_it_is_kfold_with_the_arguments_of_the_fit(name, tmp_path):
    model, data, arguments = FITS[name]
    with quiet():
        tree = bs.fit(model, data, **({"draws": 0} | arguments))
        tree.to_netcdf(tmp_path / "tree.nc", engine="h5netcdf")
        with xr.open_datatree(tmp_path / "tree.nc", engine="h5netcdf") as back:
            found = bs.loo(back, refit=True, data=data, workers=1)
        asked = bs.kfold(model, data, "loo", workers=1, **arguments)
    np.testing.assert_allclose(found.elpd_i, asked.elpd_i, rtol=0, atol=1e-9)
    assert found.p == pytest.approx(asked.p)
    assert found.kind == "loo"


@pytest.mark.slow
def test_a_kernels_tree_holds_its_rows_and_its_width_is_found_anew():
    basis = bs.basis.rbf(width="evidence")
    with quiet():
        tree = bs.fit("ard_gaussian", (X[:, :1], NUMBERS), basis=basis, draws=0)
        found = bs.loo(tree, refit=True, workers=1)
        asked = bs.kfold("ard_gaussian", (X[:, :1], NUMBERS), "loo", basis=basis, workers=1)
    np.testing.assert_allclose(found.elpd_i, asked.elpd_i, atol=1e-9)


def test_a_frame_may_hold_more_than_the_features():
    frame = pd.DataFrame(X, columns=list("pqrs"), index=[f"row {i}" for i in range(N)]).assign(y=NUMBERS, w=1.0)
    tree = bs.fit("ard_gaussian", frame, target="y", weights="w", draws=0)
    found = bs.loo(tree, refit=True, data=frame, workers=1)
    assert found.elpd_i["obs"].to_numpy().tolist() == frame.index.tolist()
    plain = bs.kfold("ard_gaussian", (X, NUMBERS), "loo", workers=1)
    np.testing.assert_allclose(found.elpd, plain.elpd, atol=1e-8)


def own_model():
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, tau=pm.Gamma("alpha", 0.5, 0.005, shape=4), shape=4)
        pm.Normal("y", X @ w, pm.HalfNormal("sigma", 10.0), observed=NUMBERS)
    return model


def without_what_was_asked(tree):
    other = tree.copy()
    del other["evidence"].attrs["asked"]
    return other


def test_refused():
    tree = bs.fit("ard_gaussian", (X, NUMBERS), random_seed=0)
    refusals = {
        "leave out `refit`": (bs.fit(own_model(), draws=0), {}),
        "for NUTS use bs.kfold": (as_sampled(tree), {"data": X}),
        "as it was before bs.correct": (bs.correct(tree), {"data": X}),
        "does not tell all that was asked": (without_what_was_asked(tree), {"data": X}),
        "does not hold the features": (tree, {}),
        "`data` have 3 rows, and 20 were fitted": (tree, {"data": X[:3]}),
        "did not give this tree": (tree, {"data": X[::-1]}),
        "the 4 columns of the fit": (tree, {"data": X[:, :2]}),
    }
    for said, (own, arguments) in refusals.items():
        with pytest.raises(ValueError, match=said) as refusal:
            bs.loo(own, refit=True, **arguments)
        assert_one_sentence(str(refusal.value))
    with pytest.raises(ValueError, match="give refit=True too"):
        bs.loo(tree, data=X)
    with pytest.raises(TypeError, match="takes a tree"):
        bs.loo(X, refit=True)


def test_settings_that_cannot_be_written_are_not_told():
    with quiet():
        point = bs.fit("laplace_eigen", (X, NUMBERS), expansion=np.full(4, 0.1), draws=0)
    assert "asked" not in point["evidence"].attrs
    told = json.loads(bs.fit("ard_gaussian", (X, NUMBERS), draws=0, keep="x1")["evidence"].attrs["asked"])
    assert told["keep"] == "x1"
    assert told["method"]["name"] == "sequential"
