"""All digits against all anchors; kept on disk, and the same however they were computed."""

from dataclasses import replace

import numpy as np
import pytest

from studies import cells, features
from studies.features import shape_features
from studies.matching import describe, differences
from studies.settings import ShapeSettings

from .drawings import scrawls

IMAGES, LABELS = scrawls(26, seed=7)
TRAIN = np.arange(0, 26, 2).repeat(2)[:24] + np.tile([0, 1], 12)
QUICK = ShapeSettings(points=16)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(features, "_BLOCK", 10)


def run(directory, **others):
    given = {"images": IMAGES, "labels": LABELS, "train_rows": TRAIN, "settings": QUICK, "candidates": 6, "others": 9}
    return shape_features(**(given | {"directory": directory, "progressbar": False} | others))


@pytest.fixture
def calls(monkeypatch):
    """Names of the functions that were really called."""
    made, call = [], cells.Cell.__call__

    def counted(task):
        made.append(task.function.__name__)
        return call(task)

    monkeypatch.setattr(cells.Cell, "__call__", counted)
    return made


def test_features_are_those_of_each_pair(tmp_path):
    found = run(tmp_path)
    assert found.values.shape == (26, 2, 16, 2)
    assert found.values.dtype == np.float64
    for i in (0, 11, 25):
        for k, anchor in enumerate(found.anchors):
            expected = differences(describe(anchor.image, QUICK), describe(IMAGES[i], QUICK), QUICK)
            np.testing.assert_allclose(found.values[i, k], expected, rtol=1e-6)
    for k, anchor in enumerate(found.anchors):
        assert not found.values[anchor.row, k].any()


def test_the_second_call_computes_nothing(tmp_path, calls):
    first = run(tmp_path)
    assert calls == ["shape_distances"] * 2 + ["against"] * 6
    calls.clear()
    second = run(tmp_path)
    assert calls == []
    np.testing.assert_array_equal(first.values, second.values)
    assert [a.row for a in first.anchors] == [a.row for a in second.anchors]


def test_an_interrupted_run_goes_on_where_it_was(tmp_path, calls, monkeypatch):
    write, written = cells.write_whole, []

    def stop_after_five(path, content):
        if len(written) == 5:
            raise KeyboardInterrupt
        written.append(path)
        write(path, content)

    monkeypatch.setattr(cells, "write_whole", stop_after_five)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    monkeypatch.setattr(cells, "write_whole", write)
    calls.clear()
    found = run(tmp_path)
    assert calls == ["against"] * 3
    np.testing.assert_array_equal(found.values, run(tmp_path / "afresh").values)


def test_a_file_cut_short_is_computed_again(tmp_path, calls):
    first = run(tmp_path)
    for path, length in zip(sorted(tmp_path.glob("*.npy")), (0, 5, 100, 200), strict=False):
        whole = path.read_bytes()
        path.write_bytes(whole[:length])
        calls.clear()
        np.testing.assert_array_equal(run(tmp_path).values, first.values)
        assert len(calls) == 1
        assert path.read_bytes() == whole


def test_a_write_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(file, array, **settings):
        file.write(b"half")
        raise OSError("No space left on device")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(OSError, match="No space"):
        run(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".claims"]


def test_other_settings_are_other_files(tmp_path, calls):
    results = [run(tmp_path).values]
    for change in ({"position": 0.2}, {"patch": 7}, {"level": 0.4}):
        calls.clear()
        results.append(run(tmp_path, settings=replace(QUICK, **change)).values)
        assert len(calls) == 8
        assert all((results[-1] != earlier).any() for earlier in results[:-1])


def test_another_version_of_the_algorithm_is_another_file(tmp_path, calls, monkeypatch):
    run(tmp_path)
    calls.clear()
    monkeypatch.setattr(features, "VERSION", features.VERSION + 1)
    run(tmp_path)
    assert len(calls) == 8


def test_one_changed_pixel_is_another_file(tmp_path, calls):
    run(tmp_path)
    calls.clear()
    images = IMAGES.copy()
    images[25, 0, 0] = 1.0  # not a training row: the anchors stay, and only the last block is new
    run(tmp_path, images=images)
    assert calls == ["against"] * 2


@pytest.mark.slow
def test_two_workers_give_what_one_gives(tmp_path):
    one, two = run(tmp_path / "one"), run(tmp_path / "two", workers=2)
    np.testing.assert_array_equal(one.values, two.values)
    files = [sorted(path.name for path in (tmp_path / name).iterdir()) for name in ("one", "two")]
    assert files[0] == files[1]


def test_the_users_cache_is_the_place(tmp_path, monkeypatch):
    monkeypatch.setattr(features.pooch, "os_cache", lambda name: tmp_path / name)
    run(None)
    assert len(list((tmp_path / "bayes_sparse" / "shapes").glob("*.npy"))) == 8


def test_bytes_and_a_mask_will_do(tmp_path, calls):
    first = run(tmp_path)
    calls.clear()
    mask = np.isin(np.arange(26), TRAIN)
    names = np.array(["ring", "curve"])[LABELS]
    found = run(tmp_path, images=IMAGES.astype(np.uint8), labels=names, train_rows=mask)
    assert calls == []
    assert [anchor.label for anchor in found.anchors] == ["curve", "ring"]
    np.testing.assert_array_equal(found.values, first.values[:, ::-1])


@pytest.mark.parametrize(
    ("images", "labels", "rows", "says"),
    [
        (IMAGES.reshape(26, -1), LABELS, TRAIN, "`images`"),
        (IMAGES, LABELS[:5], TRAIN, "`labels`"),
        (IMAGES * (np.arange(26) != 3)[:, None, None], LABELS, TRAIN, "blank or not finite, at rows 3;"),
        (np.where(IMAGES > 300, 0, IMAGES) + np.nan, LABELS, TRAIN, "26 of the images"),
        (IMAGES, LABELS, [0, 26], "between 0 and 25"),
        (IMAGES, LABELS, [-1, 2], "between 0 and 25"),
        (IMAGES, LABELS, [], "not empty"),
        (IMAGES, LABELS, [0.5], "row numbers"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path, images, labels, rows, says):
    with pytest.raises(ValueError, match=says):
        shape_features(images, labels, rows, directory=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_zero_workers_are_refused(tmp_path):
    with pytest.raises(ValueError, match="`workers`"):
        run(tmp_path, workers=0)
