"""The study of digits, small: its steps are stored, and nothing but scores sees the rows held out."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from studies import digits
from studies import plan as plans
from studies.columns import pixel_columns, pooled, shape_columns
from studies.fold import FITS, RANKINGS, Fold
from studies.pictures import draw, importance
from studies.plan import Plan, stratified
from studies.results import once
from studies.settings import ShapeSettings
from studies.summary import curves, differences, fits, shape_share, write_summary

from .drawings import scrawls

pytest.importorskip("sklearn")
WHOLE, LABELS = scrawls(60, seed=3)
IMAGES = WHOLE[:, ::2, ::2]  # fewer pixels, quicker fits
SMALL = Plan(
    classes=(0, 1), digits=60, folds=2, counts=(2, 4), candidates=4, others=6, settings=ShapeSettings(points=8, patch=3)
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("study")


def run(place, plan=SMALL, images=IMAGES, labels=LABELS):
    return digits.run(plan, place / "out", digits=(images, labels), cache=place / "cache", progressbar=False)


@pytest.fixture(scope="module")
def results(place):
    return run(place)


@pytest.mark.slow
def test_every_step_of_every_fold_is_stored(place, results):
    assert len(results) == 2
    for k, done in enumerate(results):
        files = {path.stem for path in (place / "out" / "0-1" / f"fold{k + 1}").glob("*.json")}
        assert files == set(done)
        assert {f"fit-{name}" for name in FITS} | {f"curve-shapes-{name}" for name in RANKINGS} <= files
        assert {"anchors", "curve-pixels-l1_svm", "curve-pooled-cauchy_strength"} <= files


@pytest.mark.slow
def test_a_finished_run_computes_nothing(place, results, monkeypatch):
    def never(*_, **__):
        raise AssertionError("computed again")

    for name in ("fit", "plain_classifier", "shape_features"):
        monkeypatch.setattr(f"studies.fold.{name}", never)
    assert run(place) == results


def test_a_stopped_run_goes_on_where_it_was(tmp_path, place, results, monkeypatch):
    calls, compute = [], Fold._curve

    def stop(self, source, ranked, ranking, done):
        calls.append(ranked)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return compute(self, source, ranked, ranking, done)

    monkeypatch.setattr(Fold, "_curve", stop)
    images = (IMAGES, LABELS)
    with pytest.raises(KeyboardInterrupt):
        digits.run(SMALL, tmp_path, digits=images, cache=place / "cache", progressbar=False)
    stored = {path.name for path in (tmp_path / "0-1" / "fold1").iterdir()}
    assert "curve-shapes-student_t_strength.json" in stored
    assert "curve-shapes-cauchy.json" not in stored
    monkeypatch.setattr("studies.fold.FITS", {})  # a fit that was made again would fail
    monkeypatch.setattr(Fold, "_curve", compute)
    fold = Fold(SMALL, *images, stratified(LABELS, 2, 0) == 0, 1, place / "cache")
    done = {path.stem: json.loads(path.read_text())["result"] for path in (tmp_path / "0-1" / "fold1").iterdir()}
    assert fold.steps()["curve-shapes-cauchy"](done) == results[0]["curve-shapes-cauchy"]


def test_other_plans_are_other_results(tmp_path):
    made = []

    def compute():
        made.append(1)
        return {"value": len(made)}

    path = tmp_path / "a" / "step.json"
    assert once(path, {"counts": (1, 2)}, compute) == {"value": 1}
    assert once(path, {"counts": (1, 2)}, compute) == {"value": 1}
    assert once(path, {"counts": (1, 3)}, compute) == {"value": 2}
    path.write_text("{half")
    assert once(path, {"counts": (1, 3)}, compute) == {"value": 3}
    assert [file.name for file in path.parent.iterdir()] == ["step.json"]


@pytest.mark.slow
def test_rows_held_out_decide_nothing(place, results, tmp_path):
    """Other images and labels there: the same anchors, fits and rankings, other scores."""
    out = stratified(LABELS, 2, 0) == 0
    rng = np.random.default_rng(0)
    images, labels = IMAGES.copy(), LABELS.copy()
    images[out] = rng.permutation(images[out])[:, ::-1]
    labels[out] = rng.permutation(labels[out])
    fold = Fold(SMALL, images, labels, out, 1, tmp_path)
    steps, done = fold.steps(), {}
    for name in steps:
        done[name] = steps[name](done)
    for name, found in done.items():
        same = {"anchors", "kept", "order", "forward", "strength", "weights", "status"} & set(found)
        assert same, name
        for key in same:
            _close(found[key], results[0][name][key])
    errors = [[d[f"curve-shapes-{r}"]["log_loss"] for r in RANKINGS] for d in (done, results[0])]
    assert np.all(np.array(errors[0]) != np.array(errors[1]))


def _close(found, expected):
    """Equal, numbers up to the rounding of sums in another order."""
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for key in expected:
            _close(found[key], expected[key])
    elif isinstance(expected, list) and expected and not isinstance(expected[0], str):
        for one, other in zip(found, expected, strict=True):
            _close(one, other)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-9)
    else:
        assert found == expected


def test_scores_are_those_of_the_rows_held_out(results):
    for done in results:
        for name in FITS:
            found = done[f"fit-{name}"]
            assert 0 <= found["error"] <= 0.5
            assert round(found["error"] * 30) == pytest.approx(found["error"] * 30)
            assert found["log_loss"] > 0
            assert found["kept"] <= found["offered"] == 32


def test_folds_are_balanced_and_disjoint():
    labels = np.repeat([3, 6, 8], [40, 30, 50])
    fold = stratified(labels, 5, 0)
    for k in range(5):
        assert np.bincount(labels[fold == k])[[3, 6, 8]].tolist() == [8, 6, 10]
    assert (fold != stratified(labels, 5, 1)).any()


def test_columns_belong_to_their_class():
    values = np.arange(3 * 2 * 4 * 2, dtype=float).reshape(3, 2, 4, 2)
    shapes = shape_columns(values, [8, 9])
    assert shapes.names[:3] == ["8 context 0", "8 patch 0", "8 context 1"]
    np.testing.assert_array_equal(shapes.matrix[:, shapes.names.index("9 patch 2")], values[:, 1, 2, 1])
    images = np.zeros((3, 2, 2))
    images[:, 0, 1], images[2, 1, 1] = [1.0, 2.0, 5.0], 7.0
    train = np.array([True, True, False])
    pixels = pixel_columns(images, train)
    assert pixels.names == ["pixel 1"]  # the last differs in a row held out alone
    both = pooled(shapes, pixels).tables(train, [8, 9])
    assert list(both) == [8, 9]
    assert both[9].columns.tolist() == [*shapes.names[8:], "pixel 1"]
    assert both[8].shape == (2, 9)
    assert isinstance(pixels.tables(train, [8, 9]), pd.DataFrame)


def test_importance_adds_the_two_numbers_of_a_point():
    weights = {"8 context 1": 0.5, "8 patch 1": 0.25, "9 context 0": 2.0, "pixel 3": 9.0}
    np.testing.assert_array_equal(importance(weights, 8, 3), [0.0, 0.75, 0.0])
    np.testing.assert_array_equal(importance(weights, 9, 3), [2.0, 0.0, 0.0])


def test_tables_hold_the_figures(results):
    table = curves(SMALL, results)
    assert len(table) == 2 * 2 * (len(RANKINGS) + 4)
    one = table.query("source == 'shapes' and ranking == 'student_t' and count == 4")["error"]
    assert one.tolist() == [done["curve-shapes-student_t"]["error"][1] for done in results]
    gap = differences(table).query("ranking == 'student_t' and rival == 'l1_svm' and count == 4").iloc[0]
    each = [done["curve-shapes-student_t"]["error"][1] - done["curve-shapes-l1_svm"]["error"][1] for done in results]
    assert gap["mean"] == pytest.approx(np.mean(each))
    assert gap["sem"] == pytest.approx(np.std(each, ddof=1) / np.sqrt(2))
    assert len(fits(results)) == 2 * len(FITS)
    share = shape_share(SMALL, results)
    assert ((share["shapes"] >= 0) & (share["shapes"] <= share["count"])).all()


def test_summary_and_pictures_are_written(place, results):
    text = write_summary(SMALL, results, place / "out")
    folder = place / "out" / "0-1"
    assert (folder / "summary.md").read_text() == text
    assert "mutual information" in text
    assert len(pd.read_csv(folder / "curves.csv")) == len(curves(SMALL, results))
    assert json.loads((folder / "results.json").read_text())["plan"]["digits"] == 60
    for path in draw(SMALL, results, place / "out"):
        assert path.read_bytes().startswith(b"\x89PNG")


def test_digits_are_taken_class_by_class(monkeypatch):
    target = np.tile([9, 8, 3], 20)
    frame = pd.DataFrame(np.arange(60)[:, None] * np.ones(784, dtype=int)).assign(target=target)
    monkeypatch.setattr(plans, "load", lambda name: frame)
    images, labels = plans.load_digits(replace(SMALL, classes=(9, 8), digits=10, skip=3))
    assert labels.tolist() == [8] * 5 + [9] * 5
    assert images[:, 0, 0].tolist() == [10, 13, 16, 19, 22, 9, 12, 15, 18, 21]
    with pytest.raises(ValueError, match="beyond the first 18"):
        plans.load_digits(replace(SMALL, classes=(9, 8), digits=10, skip=18))


@pytest.mark.parametrize("change", [{"classes": (8, 8)}, {"classes": (8, 11)}, {"digits": 3}, {"folds": 1}])
def test_plans_that_make_no_sense_are_refused(change):
    with pytest.raises(ValueError, match=r"digits|folds"):
        replace(SMALL, **change)
