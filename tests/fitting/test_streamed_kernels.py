"""Kernels beyond a size are computed in blocks, with the same answers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import bayes_sparse as bs
from bayes_sparse.inference.evidence import some_columns
from bayes_sparse.inputs import kernels
from bayes_sparse.inputs.basis import _basis, far_below
from bayes_sparse.problem import streamed_design
from bayes_sparse.problem.streamed_design import StreamedDesign
from tests.support import refused

RNG = np.random.default_rng(2)
X = RNG.uniform(-3, 3, (150, 2))
MEAN = 3 * np.sinc(np.linalg.norm(X, axis=1) / 2)
Y = {"normal": MEAN + 0.2 * RNG.standard_normal(150), "bernoulli": (MEAN + RNG.logistic(size=150) > 0.5) * 1}
TWICE = np.arange(150) % 140  # ten rows are others over again


def fit(X, y, basis=None, **settings):
    basis = bs.basis.rbf(0.9) if basis is None else basis
    return bs.fit("ard_gaussian", (X, y), basis=basis, **({"draws": 0, "progressbar": False} | settings))


@pytest.fixture
def streamed(monkeypatch):
    """Have kernels computed in blocks of 32, and count how many were."""
    made, blocks = [], StreamedDesign._blocks

    def watched(self, shift):
        for block in blocks(self, shift):
            made.append(1)
            yield block

    def begin():
        monkeypatch.setattr(kernels, "_LARGE", 0)
        monkeypatch.setattr(streamed_design, "_SIDE", 32)
        monkeypatch.setattr(StreamedDesign, "_blocks", watched)
        return made

    return begin


@pytest.mark.parametrize("case", ["as they are", "rows twice, weights", "among some columns", "polynomial"])
@pytest.mark.parametrize("likelihood", ["normal", "bernoulli"])
def test_weights_and_evidence_are_those_of_the_whole_matrix(likelihood, case, streamed, monkeypatch):
    data, settings = (X, Y[likelihood]), {"likelihood": likelihood, "draws": 20, "random_seed": 0}
    if case == "rows twice, weights":
        data, settings["weights"] = (X[TWICE], Y[likelihood][TWICE]), RNG.uniform(0.5, 2, 150)
    if case == "among some columns":
        for name, value in (("_LARGE", 0), ("_TOP", 20), ("_SPREAD", 20)):
            monkeypatch.setattr(some_columns, name, value)
    if case == "polynomial":
        settings["basis"] = bs.basis.polynomial(degree=3)
    whole, made = fit(*data, **settings), streamed()
    tree = fit(*data, **settings)
    assert made
    assert tree["evidence"]["kept"].equals(whole["evidence"]["kept"])
    assert int(tree["evidence"]["kept"].sum()) >= 2
    for name in ("log_evidence", "objective", "mean", "sd", "alpha", "score"):
        # Cross-products of columns that hardly differ lose digits; so do weights that follow from them.
        scale = np.abs(whole["evidence"][name].where(np.isfinite(whole["evidence"][name]))).max().item()
        assert_allclose(tree["evidence"][name], whole["evidence"][name], rtol=1e-10, atol=1e-10 * scale, err_msg=name)
    assert_allclose(
        tree["constant_data"]["far_below"] if case != "polynomial" else 0,
        whole["constant_data"].get("far_below", 0),
        rtol=1e-10,
    )
    new = X[:20] + 0.1
    for name, values in bs.predict(whole, new).data_vars.items():
        assert_allclose(bs.predict(tree, new)[name], values, rtol=1e-8, atol=1e-8)
    assert_allclose(tree["log_likelihood"]["y"], whole["log_likelihood"]["y"], atol=1e-7)


def test_a_width_is_found_all_the_same(streamed):
    basis = bs.basis.rbf("evidence")
    whole, made = fit(X[:60], Y["normal"][:60], basis), streamed()
    tree = fit(X[:60], Y["normal"][:60], basis)
    assert made
    assert_allclose(tree["evidence"].attrs["width"], whole["evidence"].attrs["width"], rtol=1e-12)
    assert_allclose(tree["evidence"]["width_objective"], whole["evidence"]["width_objective"], rtol=1e-8)


def test_methods_that_look_too_often_have_the_whole_matrix(streamed):
    whole, made = fit(X, Y["normal"], method="mackay"), streamed()
    assert fit(X, Y["normal"], method="mackay")["evidence"].equals(whole["evidence"])
    y = np.digitize(MEAN[:40], [0, 1])
    classes = fit(X[:40], y, likelihood="categorical", method="sequential", smoothness=2.0)
    assert classes["evidence"].sizes["basis"] == 3 * 40
    assert not made


def test_kernels_of_no_use_are_refused_whether_in_blocks_or_not(streamed):
    for _ in range(2):
        refused(lambda: fit(X, Y["normal"], bs.basis.rbf(1e9)), "the same at all rows")
        refused(lambda: fit(X, Y["normal"], bs.basis.rbf(1e-9)), "No kernel reaches")
        refused(lambda: fit(1e70 * X, Y["normal"], bs.basis.polynomial()), "powers cannot be computed")
        streamed()


def test_of_very_many_rows_some_say_what_is_far(monkeypatch):
    K = bs.basis.rbf(0.5).matrix(X, X)
    monkeypatch.setattr(_basis, "_MANY", 100)
    monkeypatch.setattr(_basis, "_SOME", 150)
    assert far_below(K) == far_below(K, np.arange(150))
    monkeypatch.setattr(_basis, "_SOME", 50)
    others = K - np.eye(150)
    some = np.linspace(0, 149, 50).astype(int)
    assert_allclose(far_below(K), np.quantile(others[some].max(axis=1), 0.005, method="lower") ** 1.5, rtol=1e-12)
