"""Cells: computed once whatever happens, by whoever, with the same numbers."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from studies.cells import Cell, Crew, answers, arrays, failure, forget_failures, progress

from .calls import array, made, told, wrong

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
from pathlib import Path
from studies.cells import Cell, answers
from tests.studies.calls import told
place, seconds, numbers = Path(sys.argv[1]), float(sys.argv[2]), range(int(sys.argv[3]))
answers([Cell(told, (str(place / "diary"), number, seconds)) for number in numbers], place / "cells")
"""


def cells(place, numbers, seconds=0.0):
    return [Cell(told, (str(place / "diary"), number, seconds)) for number in numbers]


def started(place, seconds, number):
    return subprocess.Popen([sys.executable, "-c", PROGRAM, str(place), str(seconds), str(number)], cwd=ROOT)


def without_nan(found):
    return [{**one, "gone": None} for one in found]


def test_answers_come_in_order_and_once(tmp_path):
    first = answers(cells(tmp_path, [3, 1, 2]), tmp_path / "cells")
    assert [one["number"] for one in first] == [3, 1, 2]
    assert all(np.isnan(one["gone"]) for one in first)
    again = answers(cells(tmp_path, [1, 2, 3, 4]), tmp_path / "cells")
    assert made(tmp_path / "diary")[0] == [3, 1, 2, 4]
    assert [one["norm"] for one in again[:3]] == [first[1]["norm"], first[2]["norm"], first[0]["norm"]]


def test_a_call_that_fails_is_recorded_and_the_rest_goes_on(tmp_path):
    plan, reports = [Cell(wrong, (number,)) for number in range(4)], []
    found = answers(plan, tmp_path, report=lambda *counts: reports.append(counts))
    assert [failure(one) for one in found] == [None, "ArithmeticError: no 1", None, "ArithmeticError: no 3"]
    assert reports[0] == (0, 4, 0)
    assert reports[-1] == (4, 4, 2)
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.json")}
    assert answers(plan, tmp_path) == found
    assert stamps == {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.json")}  # failed is finished
    forget_failures(plan, tmp_path)
    assert len(list(tmp_path.glob("*.json"))) == 2


def test_arrays_are_whole_or_refused(tmp_path):
    plan = [Cell(array, (number,)) for number in (2, 5)]
    for _ in range(2):
        first, second = arrays(plan, tmp_path)
        np.testing.assert_array_equal(first, [0, 1 / 3])
        assert len(second) == 5
    with pytest.raises(RuntimeError, match="1 of 3 parts failed, the first by ArithmeticError: below zero"):
        arrays([*plan, Cell(array, (-1,))], tmp_path)


def test_arguments_function_and_version_make_the_key():
    keys = {
        Cell(function, arguments, version).key()
        for function in (array, wrong)
        for arguments in ((1,), (1.0,), ("1",), (np.array([1]),), (np.array([1.0]),), (1, 2))
        for version in (1, 2)
    }
    assert len(keys) == 24


def test_a_file_cut_short_is_computed_again(tmp_path):
    plan = [Cell(wrong, (0,)), Cell(array, (4,))]
    first = answers(plan, tmp_path)
    for path in [*tmp_path.glob("*.json"), *tmp_path.glob("*.npy")]:
        path.write_bytes(path.read_bytes()[:7])
    again = answers(plan, tmp_path)
    assert first[0] == again[0]
    np.testing.assert_array_equal(first[1], again[1])


def test_killed_it_repeats_only_what_was_unfinished(tmp_path):
    running, number = started(tmp_path, 0.1, 40), 40
    while len(list((tmp_path / "cells").glob("*.json"))) < 5:
        assert running.poll() is None
        time.sleep(0.02)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    done = len(list((tmp_path / "cells").glob("*.json")))
    assert 5 <= done < number
    found = answers(cells(tmp_path, range(number), 0.1), tmp_path / "cells")
    calls, _ = made(tmp_path / "diary")
    assert len(calls) <= number + 1  # the one that was under way
    assert set(calls) == set(range(number))
    afresh = answers(cells(tmp_path, range(number)), tmp_path / "afresh")
    assert without_nan(found) == without_nan(afresh)
    assert not [path for path in (tmp_path / "cells").iterdir() if path.name.endswith(".part")]


def test_two_processes_share_the_cells(tmp_path):
    both = [started(tmp_path, 0.05, 40) for _ in range(2)]
    assert [one.wait() for one in both] == [0, 0]
    calls, processes = made(tmp_path / "diary")
    assert sorted(calls) == list(range(40))  # none twice
    assert processes == {one.pid for one in both}


def test_a_claim_ends_with_its_process(tmp_path):
    first = started(tmp_path, 60, 1)
    while not (tmp_path / "diary").is_file():
        assert first.poll() is None
        time.sleep(0.02)
    second = started(tmp_path, 60, 1)
    time.sleep(2)
    assert made(tmp_path / "diary")[0] == [0]  # it waits
    first.kill()
    first.wait()
    while len(made(tmp_path / "diary")[0]) < 2:
        assert second.poll() is None
        time.sleep(0.05)
    second.kill()
    second.wait()


def test_workers_give_the_same_to_the_last_digit(tmp_path):
    alone = answers(cells(tmp_path, range(12)), tmp_path / "alone")
    assert made(tmp_path / "diary")[1] == {os.getpid()}
    (tmp_path / "diary").unlink()
    two = answers(cells(tmp_path, range(12), 0.05), tmp_path / "two", Crew(workers=2))
    assert json.dumps(alone) == json.dumps(two)
    calls, processes = made(tmp_path / "diary")
    assert sorted(calls) == list(range(12))
    assert os.getpid() not in processes


def test_a_scheduler_gives_the_same_to_the_last_digit(tmp_path):
    distributed = pytest.importorskip("distributed")
    alone = answers(cells(tmp_path, range(6)), tmp_path / "alone")
    with distributed.LocalCluster(1, threads_per_worker=2, processes=False, dashboard_address=None) as cluster:
        crew = Crew(scheduler=cluster.scheduler_address)
        sent = answers(cells(tmp_path, range(6)), tmp_path / "sent", crew)
        failed = answers([Cell(wrong, (1,))], tmp_path / "sent", crew)
    assert json.dumps(alone) == json.dumps(sent)
    assert failure(failed[0]) == "ArithmeticError: no 1"


def test_progress_says_how_long(capsys):
    with progress("Fits") as report:
        report(2, 10, 0)
        report(10, 10, 3)
    assert "Fits: 10 of 10, 3 failed, about 0 min left" in capsys.readouterr().err
    with progress("Fits", shown=False) as report:
        report(1, 1, 0)
    assert capsys.readouterr().err == ""
