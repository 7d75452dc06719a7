"""Chains in processes of their own: in order, heard of, and loud when they fail."""

import os
import signal
import time
from contextlib import suppress
from multiprocessing import get_context

import numpy as np
import pytest

from bayes_sparse.fitting.nuts.processes import Halted, each_chain


def test_in_order_and_heard_of():
    heard = []

    def job(chain, tell):
        tell(10 * chain, chain)
        return chain, os.getpid()

    found = each_chain(job, 5, 2, lambda told: heard.append(list(told)))
    assert [chain for chain, _ in found] == list(range(5))
    assert len({pid for _, pid in found} - {os.getpid()}) == 2
    assert heard[-1] == [(10 * chain, chain) for chain in range(5)]


def test_one_core_stays_in_this_process():
    assert each_chain(lambda chain, tell: os.getpid(), 2, 1, lambda told: None) == [os.getpid()] * 2


def test_a_failure_is_raised_here():
    def job(chain, tell):
        if chain == 1:
            raise FloatingPointError("no such density")
        return chain

    with pytest.raises(RuntimeError, match=r"Chain 1 failed:(.|\n)*no such density"):
        each_chain(job, 4, 2, lambda told: None)


def test_a_death_is_told():
    with pytest.raises(RuntimeError, match="has died, most likely for want of memory"):
        each_chain(lambda chain, tell: os._exit(9), 2, 2, lambda told: None)


def test_ctrl_c_ends_all_processes():
    """Where a terminal sends it to every process at once."""
    parent, pids = os.getpid(), []

    def job(chain, tell):
        tell(os.getpid(), 0)
        if chain == 1:
            time.sleep(0.3)
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(parent, signal.SIGINT)
        time.sleep(60)

    with pytest.raises(KeyboardInterrupt):
        each_chain(job, 2, 2, lambda told: pids.append([pid for pid, _ in told]))
    time.sleep(0.3)
    for pid in filter(None, pids[-1]):
        assert not _runs(pid)


def test_ctrl_c_hands_over_what_was_made():
    """The first two chains are stopped, the third is not begun."""
    parent = os.getpid()

    def job(chain, tell):
        try:
            if chain == 1:
                time.sleep(0.3)
                os.kill(parent, signal.SIGINT)
            time.sleep(60)
        except KeyboardInterrupt:
            raise Halted(10 * chain) from None

    assert each_chain(job, 3, 2, lambda told: None) == [0, 10]


def test_ctrl_c_amid_messages_loses_none():
    """Processes that talk without a pause: Ctrl-C comes nearly always while one of them is being listened to."""
    parent, begun = os.getpid(), get_context("fork").RawValue("b", False)  # told to other processes without a lock

    def talk(chain, tell):
        for count in range(10**9):
            tell(count, 0)
            if chain == 0 and count == 20:
                begun.value = True
            if chain == 1 and count >= 200 and begun.value:
                begun.value = False
                os.kill(parent, signal.SIGINT)

    def job(chain, tell):
        try:  # around a function: Python does not catch what is raised at the turn of a loop right here
            talk(chain, tell)
        except KeyboardInterrupt:
            raise Halted(np.full(20_000, chain)) from None

    for _ in range(20):
        assert [set(made) for made in each_chain(job, 2, 2, lambda told: None)] == [{0}, {1}]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_ctrl_c_waits_for_nobody():
    parent = os.getpid()

    def job(chain, tell):
        with suppress(KeyboardInterrupt):
            time.sleep(0.3)
            os.kill(parent, signal.SIGINT)
            time.sleep(60)
        os.kill(parent, signal.SIGINT)
        time.sleep(60)

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        each_chain(job, 2, 2, lambda told: None)
    assert time.monotonic() - start < 5


def _runs(pid):
    """Whether a child is there and has not ended; one that has is collected."""
    try:
        return os.waitpid(pid, os.WNOHANG) == (0, 0)
    except ChildProcessError:
        return False
