"""A progress line for slow fits only, and one that is gone afterwards."""

import io
import time
from functools import partial

import numpy as np
import pytest
from rich.console import Console
from rich.progress import Progress

import bayes_sparse as bs
from bayes_sparse.common import progress
from bayes_sparse.common.progress import FitProgress

pytestmark = pytest.mark.quick

RNG = np.random.default_rng(2)
X = RNG.standard_normal((40, 5))
Y = X[:, 0] - X[:, 2] + 0.3 * RNG.standard_normal(40)


@pytest.fixture
def screen(monkeypatch):
    """What a terminal would show, and every progress display that was made."""
    shown, made = io.StringIO(), []

    class Recorded(Progress):
        def __init__(self, *columns, **settings):
            assert settings.pop("console").stderr  # results on stdout stay clean when they are piped
            super().__init__(*columns, console=Console(file=shown, force_terminal=True, width=120), **settings)
            made.append(self)

    monkeypatch.setattr(progress, "Progress", Recorded)
    monkeypatch.setattr(progress, "Console", partial(Console, force_terminal=True))
    return shown, made


def test_a_quick_fit_shows_nothing(screen, monkeypatch, capfd):
    shown, made = screen
    monkeypatch.setattr(progress, "_PATIENCE", 60.0)  # quick, on however busy a machine
    bs.fit("ard_gaussian", (X, Y), draws=0)
    assert made == []
    assert shown.getvalue() == ""
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("method", ["sequential", "mackay", "em"])
def test_a_slow_fit_shows_how_far_it_is(screen, monkeypatch, method):
    shown, made = screen
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    bs.fit("ard_gaussian", (X, Y), method=method, smoothness=0, draws=0)
    assert len(made) == 1
    text = shown.getvalue()
    assert f"Fitting ({method})" in text
    assert "iteration" in text
    assert "terms active" in text
    assert made[0].live.is_started is False


def test_progressbar_false_shows_nothing(screen, monkeypatch):
    shown, made = screen
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    bs.fit("ard_gaussian", (X, Y), progressbar=False, draws=0)
    assert made == []
    assert shown.getvalue() == ""


def test_patience_is_measured_from_the_start(screen, monkeypatch):
    _, made = screen
    monkeypatch.setattr(progress, "_PATIENCE", 0.05)
    with FitProgress("Fitting", True) as report:
        report(1, -10.0, 3)
        assert made == []
        time.sleep(0.06)
        report(2, -9.0, 3)
        assert len(made) == 1
        report(3, -8.0, 4)
        assert len(made) == 1
    assert made[0].live.is_started is False


def test_the_display_is_stopped_by_an_error(screen, monkeypatch):
    _, made = screen
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)

    def interrupted():
        with FitProgress("Fitting", True) as report:
            report(1, -10.0, 3)
            assert made[0].live.is_started
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert made[0].live.is_started is False


def test_the_first_round_of_a_search_from_nothing_is_reported_too(screen, monkeypatch):
    """With a smoothness prior the search runs twice, and the first run is the longer one."""
    shown, made = screen
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    bs.fit("ard_gaussian", (X, Y), method="sequential", draws=0)
    assert len(made) == 1
    assert "iteration" in shown.getvalue()


def test_piped_it_goes_line_by_line_a_line_for_each_kind_of_work_and_others_now_and_then(monkeypatch, capsys):
    with FitProgress("Fitting", True, patience=0) as report:
        for iteration in range(1, 4):
            report(iteration, -10.5, 3)
        report.say("Sampling: 1 of 10 draws")
        monkeypatch.setattr(progress, "_BETWEEN", 0.0)
        report.say("Sampling: 2 of 10 draws")
    first = "Fitting: iteration 1, objective -10.50, 3 terms active"
    assert capsys.readouterr() == ("", f"{first}\nSampling: 1 of 10 draws\nSampling: 2 of 10 draws\n")
