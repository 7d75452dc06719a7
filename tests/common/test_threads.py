import multiprocessing
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

import bayes_sparse as bs
from bayes_sparse.common.threads import _held, few_threads
from bayes_sparse.inference.approximations.exact import Exact

pytestmark = pytest.mark.quick
SMALL, LARGE = 1000, 2**30


@pytest.fixture
def used():
    """How many threads every BLAS may have: outside two, of which no thread of Python's is in charge."""
    controller = ThreadpoolController().select(user_api="blas")
    before = in_passing(lambda: controller.limit(limits=2))

    def count():
        return {library.num_threads for library in controller.lib_controllers}

    assert count() == {2}
    yield count
    assert count() == {2}
    in_passing(before.restore_original_limits)


def in_passing(call):
    """By a thread that ends with it."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


def test_small_work_has_one_thread_and_large_work_all(used):
    with few_threads(LARGE):
        assert used() == {2}
    with few_threads(SMALL):
        assert used() == {1}
        with few_threads(SMALL):
            assert used() == {1}
        assert used() == {1}
    with pytest.raises(KeyError), few_threads(SMALL):
        raise KeyError
    assert used() == {2}


def test_the_last_to_leave_gives_the_threads_back(used):
    """Whichever came first."""
    inside, leave = threading.Event(), threading.Event()

    def other():
        with few_threads(SMALL):
            inside.set()
            leave.wait(10)

    worker = threading.Thread(target=other)
    with few_threads(SMALL):
        worker.start()
        assert inside.wait(10)
    assert used() == {1}
    leave.set()
    worker.join(10)
    assert used() == {2}


@pytest.mark.skipif(sys.platform == "win32", reason="has no forks")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forks beside threads
def test_a_process_forked_in_between_starts_anew():
    with few_threads(SMALL):
        fork = multiprocessing.get_context("fork").Process(target=lambda: os._exit(_held._holders))
        fork.start()
        fork.join(10)
        assert (fork.exitcode, _held._holders) == (0, 1)


def test_a_search_and_the_evidence_in_a_model_have_one_thread(used, monkeypatch):
    seen, at = [], Exact.at

    def noted(*args):
        seen.append(used())
        return at(*args)

    monkeypatch.setattr(Exact, "at", noted)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    data = (X, X[:, 0] + rng.normal(size=40))
    bs.fit("ard_gaussian", data, progressbar=False)
    evidence = bs.log_evidence_op(data)
    seen.append("op")
    evidence(np.zeros(3), 0.0).eval()
    assert seen[-1] != "op"
    assert all(one in ({1}, "op") for one in seen)
