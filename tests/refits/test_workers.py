"""Several processes: who gets them, in what state they start, and what happens when they cannot do it."""

import os
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from bayes_sparse.refits import workers
from bayes_sparse.refits.workers import answers


def threads(number):
    return number, os.getpid(), os.environ["OMP_NUM_THREADS"], os.environ["MKL_NUM_THREADS"]


def dies(number):
    os._exit(1)


def fails(number):
    raise ValueError(f"no {number}")


def silent(done):
    pass


def test_answers_are_in_order_from_processes_of_one_thread():
    told, before = [], dict(os.environ)
    found = answers(threads, 5, 2, told.append)
    assert [one[0] for one in found] == list(range(5))
    assert os.getpid() not in {one[1] for one in found}
    assert {one[2:] for one in found} == {("1", "1")}
    assert sorted(told) == told
    assert told[-1] == 5
    assert dict(os.environ) == before


def test_what_is_quick_is_done_here():
    def here(number):
        return threading.get_ident()

    assert set(answers(here, 3, None, silent)) == {threading.get_ident()}


def test_the_first_call_decides(monkeypatch):
    asked = []
    monkeypatch.setattr(workers, "_START", 0.05)
    monkeypatch.setattr(workers, "cores", lambda: 2)
    monkeypatch.setattr(workers, "_in_processes", lambda sent, numbers, *rest: asked.append(numbers) or list(numbers))
    assert answers(time.sleep, 1, None, silent) == [None]
    assert answers(dozing, 9, None, silent) == list(range(9))
    assert asked == [range(1, 9)]
    assert answers(dozing, 9, None, silent, alone=True) == list(range(9))
    assert len(asked) == 1


def dozing(number):
    time.sleep(0.02)
    return number


def test_what_others_cannot_find_is_done_here(caplog, monkeypatch):
    monkeypatch.setattr(workers._log, "propagate", True)
    assert answers(lambda number: 2 * number, 3, 2, silent) == [0, 2, 4]
    assert "put it into a module" in caplog.text


@pytest.mark.slow
def test_a_process_that_dies_is_told_of():
    with pytest.raises(RuntimeError, match="give fewer `workers`"):
        answers(dies, 2, 2, silent)


@pytest.mark.slow
def test_a_refusal_comes_through():
    with pytest.raises(ValueError, match=r"no \d"):
        answers(fails, 4, 2, silent)


@pytest.mark.slow
def test_a_plain_script_is_not_run_again(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import numpy as np
            import bayes_sparse as bs

            print("once")
            X = np.random.default_rng(0).standard_normal((12, 2))
            print(bs.kfold("ard_gaussian", (X, X[:, 0] + np.sin(np.arange(12))), 3, workers=2).n_folds)
            """
        )
    )
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=False)
    assert ran.stdout.split() == ["once", "3"], ran.stderr
