"""The width by evidence: the search against functions whose maximum is known, the fit against a fine grid of fits."""

import json
import logging
import warnings

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import bayes_sparse as bs
from bayes_sparse.common.warnings import FitWarning
from bayes_sparse.inference.approximations import approximate
from bayes_sparse.inference.evidence.state import Objective
from bayes_sparse.inputs import kernel_width as widths
from bayes_sparse.inputs.prepare import prepare
from bayes_sparse.methods.sequential import Sequential

LOW, HIGH = 0.1, 20.0
STEP = np.log(HIGH / LOW) / 7  # between neighbours of the grid
WITHIN = np.log(1.05)  # the log of a width is known to this when the search ends
SINC = bs.datasets.sinc(60, 0.1, random_seed=3)
CLASSES = bs.datasets.two_gaussians(100, random_seed=0)
EVIDENCE = bs.basis.rbf(width="evidence")


def rated(function):
    """A rating whose log evidence differs from what is maximised."""
    return lambda width: widths.Rating(function(width) + 7.0, function(width))


def hill(top, height=0.0, slope=3.0):
    return lambda width: height - slope * np.log(width / top) ** 2


def never(width):
    raise np.linalg.LinAlgError("not positive definite")


@given(st.floats(LOW * 1.01, HIGH * 0.99), st.floats(0.1, 100.0))
def test_one_hill(top, slope):
    found = widths.search(rated(hill(top, slope=slope)), LOW, HIGH)
    assert abs(np.log(found.best / top)) <= WITHIN
    assert len(found.widths) <= 19
    np.testing.assert_allclose(np.sort(found.widths[:8]), np.geomspace(LOW, HIGH, 8))
    np.testing.assert_array_equal(found.objectives, [hill(top, slope=slope)(width) for width in found.widths])
    np.testing.assert_array_equal(found.log_evidences, found.objectives + 7.0)
    assert found.best == found.widths[found.objectives.argmax()]


@pytest.mark.parametrize("gap", [1.0, -1.0])
def test_the_higher_of_two_hills(gap):
    low, high = hill(0.4, gap), hill(6.0)
    found = widths.search(rated(lambda width: max(low(width), high(width))), LOW, HIGH)
    assert abs(np.log(found.best / (0.4 if gap > 0 else 6.0))) <= WITHIN


@pytest.mark.parametrize("top", [LOW * np.exp(-1.7 * STEP), HIGH * np.exp(1.7 * STEP)])
def test_a_maximum_somewhat_outside_the_limits_is_found(top):
    assert abs(np.log(widths.search(rated(hill(top)), LOW, HIGH).best / top)) <= WITHIN


@pytest.mark.parametrize(("sign", "end", "advice"), [(1, "widest", "basis='linear'"), (-1, "narrowest", "new rows")])
def test_a_rise_without_end_is_said(sign, end, advice):
    with pytest.warns(FitWarning, match=f"still rises at the {end} kernels tried .*{advice}"):
        found = widths.search(rated(lambda width: sign * np.log(width)), LOW, HIGH)
    np.testing.assert_allclose(found.best, (HIGH if sign > 0 else LOW) * np.exp(3 * sign * STEP))
    assert len(found.widths) == 11


def test_no_rise_is_said_where_there_is_none():
    found = widths.search(rated(lambda width: 0.0), LOW, HIGH)
    assert found.best == found.widths[0]


@pytest.mark.parametrize("broken", [lambda width: widths.Rating(np.nan, np.nan), never, rated(lambda width: np.inf)])
def test_what_fails_is_recorded_and_passed_by(broken):
    def half(width):
        return broken(width) if width < 1.0 else rated(hill(2.0))(width)

    found = widths.search(half, LOW, HIGH)
    assert abs(np.log(found.best / 2.0)) <= WITHIN
    failed = found.widths < 1.0
    assert failed.sum() >= 3
    assert np.all(found.objectives[failed] == -np.inf)
    assert np.all(found.log_evidences[failed] == -np.inf)
    assert np.isfinite(found.objectives[~failed]).all()


def test_a_maximum_beside_a_failure_is_found():
    def half(width):
        return never(width) if width < 0.9 else rated(lambda width: -width)(width)

    assert 0 <= np.log(widths.search(half, LOW, HIGH).best / 0.9) <= WITHIN


def test_no_fit_at_all():
    with pytest.raises(ValueError, match=r"No width from 0\.1 to 20 gave a finite log evidence"):
        widths.search(never, LOW, HIGH)


def test_errors_that_are_not_numerical_are_passed_on():
    def wrong(width):
        raise KeyError("a mistake")

    with pytest.raises(KeyError, match="a mistake"):
        widths.search(wrong, LOW, HIGH)


def test_progress_is_told_before_every_fit():
    lines = []
    found = widths.search(rated(hill(0.7, -70.2)), LOW, HIGH, lines.append)
    assert len(lines) == len(found.widths)
    assert lines[0] == "Width 1 of about 16: 20"
    assert lines[-1].startswith(f"Width {len(lines)} of about ")
    assert lines[-1].endswith(f": {found.widths[-1]:.3g} (best {found.best:.3g}, log evidence -63.2)")


def test_limits_of_a_ladder():
    X = np.arange(41.0)[:, None]
    assert widths.limits(X) == (2.0, 40.0)  # two rows on either side
    assert widths.limits(5 * X - 3) == (10.0, 200.0)
    assert widths.limits(np.repeat(X, 3, axis=0)) == (2.0, 40.0)


def test_limits_mean_the_same_for_both_kernels():
    X = np.random.default_rng(0).standard_normal((50, 3))
    for squared in (True, False):
        for width, distance in zip(widths.limits(X, squared=squared), widths.limits(X), strict=True):
            apart = np.array([[0.0], [distance]])
            kernel = bs.basis.rbf(width, squared=squared).matrix(apart, apart)
            np.testing.assert_allclose(kernel[0, 1], np.exp(-0.5))


def test_limits_of_many_rows_are_those_of_some():
    X = np.random.default_rng(0).standard_normal((1500, 2))
    apart = np.sort(np.linalg.norm(X[:, None] - X, axis=-1), axis=1)
    low, high = widths.limits(X)
    # A median of 500: its standard error is 1.25 sd / sqrt(500); the furthest row is furthest from most others too.
    assert abs(low - np.median(apart[:, 4])) < 4 * 1.25 * apart[:, 4].std() / np.sqrt(500)
    assert 0.9 * apart.max() < high <= apart.max()
    assert widths.limits(X) == (low, high)


def test_limits_of_few_rows():
    low, high = widths.limits(np.array([[0.0], [0.0], [3.0]]))
    assert 0 < low < high == 3.0
    with pytest.raises(ValueError, match="All rows of X are the same"):
        widths.limits(np.ones((5, 2)))


def sequential(prepared, price=0.0):
    """What `fit` does at one price, by hand."""
    problem = bs.models.ARDGaussian().problem(prepared).problem
    state = Sequential()(problem, approximate(problem, Objective(price)), lambda *now: None).state
    return widths.Rating(state.log_evidence, state.objective)


@pytest.mark.parametrize("settings", [{}, {"standardise": True}, {"squared": False}])
def test_every_width_tried_is_a_fit_at_that_width(settings):
    X = SINC.X * 100.0 + 3.0
    start = widths.provisional(bs.basis.rbf(width="evidence", **settings))
    prepared = prepare((X, SINC.y), None, "normal", start, None, None, None)
    chosen, found = widths.choose(prepared, lambda data: sequential(data, 2.0), lambda line: None)
    assert chosen.basis == bs.basis.rbf(found.best, **settings)
    for number in (0, 4, len(found.widths) - 1):
        basis = bs.basis.rbf(found.widths[number], **settings)
        settings_of_fit = {"smoothness": 2.0, "reestimate": False, "draws": 0}
        fit = bs.fit("ard_gaussian", (X, SINC.y), basis=basis, **settings_of_fit)["evidence"]
        np.testing.assert_allclose(found.log_evidences[number], fit["log_evidence"], rtol=1e-9)
        np.testing.assert_allclose(found.objectives[number], fit["objective"], rtol=1e-9)
    again = prepare((X, SINC.y), None, "normal", chosen.basis, None, None, None)
    np.testing.assert_array_equal(chosen.Phi, again.Phi)


def test_what_the_fits_on_the_way_say_is_not_passed_on(messages):
    prepared = prepare((SINC.X, SINC.y), None, "normal", bs.basis.rbf(1.0), None, None, None)

    def loud(data):
        warnings.warn("the noise has collapsed", FitWarning, stacklevel=1)
        logging.getLogger("bayes_sparse").info("the kernels are narrow")
        return rated(hill(2.0))(data.basis.width)

    _, found = widths.choose(prepared, loud, lambda line: None)  # a warning is an error in this test suite
    assert abs(np.log(found.best / 2.0)) <= WITHIN
    assert len(messages) == 1
    assert messages[0].startswith("Width 2")


def test_an_error_on_the_way_leaves_the_messages_on(messages):
    prepared = prepare((SINC.X, SINC.y), None, "normal", bs.basis.rbf(1.0), None, None, None)
    with pytest.raises(KeyError, match="a mistake"):
        widths.choose(prepared, lambda data: {}["a mistake"], lambda line: None)
    logging.getLogger("bayes_sparse").info("still here")
    assert messages == ["still here"]


def test_other_bases_are_left_alone():
    for basis in (bs.basis.linear(), bs.basis.rbf(0.3), bs.basis.polynomial()):
        assert not widths.wanted(basis)
        assert widths.provisional(basis) is basis
    assert widths.wanted(EVIDENCE)


@pytest.mark.parametrize("method", ["sequential", "mackay", "em", "revm"])
def test_every_evidence_method_finds_a_width(method):
    data = (SINC.X[::2], SINC.y[::2])
    tree = bs.fit("ard_gaussian", data, method=method, basis=EVIDENCE, draws=0)
    evidence = tree["evidence"]
    best = evidence.attrs["width"]
    assert 0.5 < best < 5.0  # sinc turns every three units
    tried = evidence["width"].to_numpy()
    assert best == tried[evidence["width_objective"].to_numpy().argmax()]
    at_best = bs.fit("ard_gaussian", data, method=method, basis=bs.basis.rbf(best), draws=0)["evidence"]
    # Evidences of directions taken from the data are not comparable between widths, that of one isotropic prior is.
    compared = "ridge_log_evidence" if method == "revm" else "log_evidence"
    np.testing.assert_allclose(at_best[compared], evidence[compared], rtol=1e-9)
    # Fixed points are told apart before they are found to the last digit: a round gains a thousandth of a nat there.
    # Those of EM are compared by the sequential search, which ends where it ends.
    near = {"atol": 1e-2} if method == "mackay" else {"rtol": 1e-9}
    if method == "em":
        compared, at_best = "log_evidence", bs.fit("ard_gaussian", data, basis=bs.basis.rbf(best), draws=0)["evidence"]
        assert abs(at_best[compared] - evidence[compared]) < 3
    np.testing.assert_allclose(evidence["width_log_evidence"][tried == best], at_best[compared], **near)


def priced(evidence, n):
    """The log evidence less the automatic price of n columns, as `bayes_sparse.fitting.smoothness` states it."""
    price = np.log(n) - 0.5 * np.log(np.log(n))
    return evidence["log_evidence"].item() - price * evidence.attrs["degrees_of_freedom"]


@pytest.mark.parametrize("data", [SINC, CLASSES], ids=["sinc", "classes"])
def test_the_width_found_is_the_best_of_a_fine_grid(data):
    found = bs.fit("ard_gaussian", (data.X, data.y), basis=EVIDENCE, draws=0)["evidence"]
    low, high = widths.limits(data.X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        fits = [
            bs.fit("ard_gaussian", (data.X, data.y), basis=bs.basis.rbf(width), draws=0)["evidence"]
            for width in np.geomspace(low, high, 25)
        ]
    reached = priced(found, len(data.y))
    np.testing.assert_allclose(reached, found["width_objective"].max(), rtol=1e-9)
    # A term more or less makes the curve jump; a peak of such a jump's own height may lie between the widths tried.
    assert reached > max(priced(fit, len(data.y)) for fit in fits) - 1.0


def test_classes_are_not_overfitted():
    new = bs.datasets.two_gaussians(2000, random_seed=9)

    def wrong(tree):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".* rows lie far from the data")
            return np.mean(bs.predict(tree, new.X)["label"].to_numpy() != new.y)

    tree = bs.fit("ard_gaussian", (CLASSES.X, CLASSES.y), basis=EVIDENCE, slab=None, draws=0)
    tried = tree["evidence"]
    narrow = tried["width"].to_numpy()[tried["width_log_evidence"].to_numpy().argmax()]
    assert narrow < 0.7 * tried.attrs["width"]  # where the log evidence by itself is greatest
    overfitted = bs.fit("ard_gaussian", (CLASSES.X, CLASSES.y), basis=bs.basis.rbf(narrow), slab=None, draws=0)
    # Both see the same rows, so the difference of two error rates near 0.13 has an sd below sqrt(0.05 / 2000) = 0.005.
    assert wrong(tree) < wrong(overfitted) - 0.01
    assert wrong(tree) < np.mean((new.mean > 0.5) != new.y) + 0.03


def test_a_price_of_nothing_compares_log_evidences():
    settings = {"smoothness": 0.5, "reestimate": False, "draws": 0}  # widths are compared by what was selected
    evidence = bs.fit("ard_gaussian", (SINC.X, SINC.y), basis=EVIDENCE, **settings)["evidence"]
    assert evidence["objective"] == evidence["width_objective"].max()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        pure = bs.fit("ard_gaussian", (SINC.X, SINC.y), basis=EVIDENCE, smoothness=0, draws=0)["evidence"]
    np.testing.assert_array_equal(pure["width_objective"], pure["width_log_evidence"])


def test_a_saved_fit_predicts(tmp_path):
    tree = bs.fit("ard_gaussian", (SINC.X, SINC.y), basis=EVIDENCE, draws=20, random_seed=1)
    best = tree["evidence"].attrs["width"]
    assert json.loads(tree.attrs["bayes_sparse"])["basis"]["width"] == best
    plain = bs.fit("ard_gaussian", (SINC.X, SINC.y), basis=bs.basis.rbf(best), draws=20, random_seed=1)
    xr.testing.assert_equal(tree["posterior"].to_dataset(), plain["posterior"].to_dataset())
    tree.to_netcdf(tmp_path / "fit.nc")
    with xr.open_datatree(tmp_path / "fit.nc") as stored:
        assert stored["evidence"].attrs["width"] == best
        assert stored["evidence"]["width"].dims == ("width_try",)
        ahead = bs.predict(stored, SINC.X[:5])
    xr.testing.assert_equal(ahead, bs.predict(plain, SINC.X[:5]))


def test_the_width_follows_the_units_of_x():
    one, two = (
        bs.fit("ard_gaussian", (factor * SINC.X, SINC.y), basis=EVIDENCE, draws=0)["evidence"] for factor in (1.0, 1e3)
    )
    np.testing.assert_allclose(two["width"], 1e3 * one["width"], rtol=1e-9)
    np.testing.assert_allclose(two.attrs["width"], 1e3 * one.attrs["width"], rtol=1e-9)


def test_a_straight_line_needs_no_bumps():
    x = np.linspace(-1, 1, 40)[:, None]
    y = 3 * x[:, 0] + 0.1 * np.random.default_rng(2).standard_normal(40)
    with pytest.warns(FitWarning, match="still rises at the widest kernels tried") as said:
        bs.fit("ard_gaussian", (x, y), basis=EVIDENCE, draws=0)
    assert [warning.filename for warning in said] == [__file__]


def test_only_the_last_fit_speaks(messages):
    # The narrowest kernels would use up the data and are given a price, which is said when a fit ends there.
    data = bs.datasets.friedman(60, extra=0, random_seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        bs.fit("ard_gaussian", (data.X, data.y), basis=bs.basis.rbf(widths.limits(data.X)[0]), draws=0)
    assert len(messages) == 1
    assert "price" in messages.pop()
    bs.fit("ard_gaussian", (data.X, data.y), basis=EVIDENCE, draws=0)
    assert len(messages) == 1
    assert messages[0].startswith("Width ")


def test_nuts_is_refused():
    with pytest.raises(
        ValueError, match=r"only a fit by an evidence method finds one: do that first.*rbf\(width=\.\.\.\)"
    ):
        bs.fit("ard_gaussian", (SINC.X, SINC.y), method="nuts", basis=EVIDENCE)
