"""How the program behaves: help at once, one sentence for an error, exit codes, pipes, Ctrl-C."""

import os
import signal
import subprocess
import sys
import time
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import bayes_sparse as bs
from bayes_sparse.command_line.app import main
from bayes_sparse.common import registry
from tests.support import assert_one_sentence

COMMANDS = ["compare", "demo", "fit", "models", "predict", "relevance", "report"]


def program(*words, **settings):
    """The program in a process of its own."""
    command = [sys.executable, "-m", "bayes_sparse", *words]
    return subprocess.run(command, check=False, **{"capture_output": True, "text": True, **settings})


@pytest.mark.quick
def test_help_imports_nothing_heavy():
    """So that it is there at once: a clock would judge the machine."""
    code = f"""if True:
        import sys
        from click.testing import CliRunner
        from bayes_sparse.command_line.app import main
        for words in [[], *([name] for name in {COMMANDS})]:
            assert CliRunner().invoke(main, [*words, "--help"]).exit_code == 0
        print({{"numpy", "pandas", "xarray", "pymc", "rich", "matplotlib"}} & set(sys.modules))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "set()\n", done.stderr


def test_every_command_is_listed_with_a_whole_sentence(run):
    assert registry.options("bayes_sparse.command_line.commands") == COMMANDS
    lines = run("--help").stdout.partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in lines] == COMMANDS
    assert all(line.endswith(".") and not line.endswith("...") for line in lines)
    assert run("--version").stdout == f"bayes-sparse, version {bs.__version__}\n"


@pytest.mark.parametrize(
    ("words", "mentions"),
    [
        (["fit", "none.csv", "-t", "y"], ["There is no file 'none.csv'"]),
        (["fit", "numbers.csv", "-t", "z"], ["There is no column 'z' to be the target"]),
        (["fit", "data.csv", "-t", "y"], ["Column 'id' is not numeric, and hardly a category"]),
        (["fit", "numbers.csv", "-t", "y", "--model", "ard"], ["There is no model 'ard'"]),
        (["fit", "numbers.csv", "-t", "y", "--method", "nust"], ["There is no method 'nust'", "Did you mean 'nuts'?"]),
        (["fit", "numbers.csv", "-t", "y", "--basis", "rbf"], ["--basis rbf:WIDTH"]),
        (["fit", "numbers.csv", "-t", "y", "--out", "."], ["'.' is a folder"]),
        (["fit", "numbers.csv", "-t", "y", "--weights", "w"], ["There is no column 'w'"]),
        (["predict", "other.nc", "numbers.csv"], ["'other.nc' holds no fit of bayes_sparse"]),
        (["predict", "numbers.csv", "numbers.csv"], ["'numbers.csv' is no NetCDF file"]),
        (["relevance", "none.nc"], ["There is no file 'none.nc'"]),
    ],
)
def test_bad_input_is_one_sentence_and_the_exit_code_1(run, words, mentions):
    done = run(*words, code=1)
    assert done.stdout == ""
    assert done.stderr.startswith("Error: ")
    assert_one_sentence(done.stderr.removeprefix("Error: ").rstrip("\n"), *mentions)


@pytest.mark.parametrize(
    ("words", "mention"),
    [
        (["frobnicate"], "No such command 'frobnicate'"),
        (["fit", "numbers.csv"], "Name the column to be explained by --target"),
        (["fit", "numbers.csv", "-t", "y", "--draws", "-1"], "--draws"),
        (["fit", "numbers.csv", "-t", "y", "--hyper", "1"], "not two numbers"),
        (["fit", "numbers.csv", "-t", "y", "--set", "draws=3"], "'draws' has an option of its own"),
        (["fit", "numbers.csv", "-t", "y", "--report", "-"], "a report goes to a file"),
        (["predict", "-", "-"], "cannot both come from one pipe"),
    ],
)
def test_a_misspelt_command_has_the_exit_code_2(run, words, mention):
    assert mention in run(*words, code=2).stderr


@pytest.mark.parametrize("words", [["--debug", "fit", "none.csv"], ["fit", "none.csv", "--debug"]])
def test_debug_shows_the_traceback(run, words):
    done = run(*words, "-t", "y", code=1)
    assert isinstance(done.exception, FileNotFoundError)


def test_an_error_of_ours_says_how_to_see_it(run, monkeypatch):
    def broken(*_, **__):
        raise KeyError("alpha")

    monkeypatch.setattr(bs, "fit", broken)
    said = "Error: This should not have happened (KeyError: 'alpha'); --debug shows where it did.\n"
    assert run("fit", "numbers.csv", "-t", "y", code=1).stderr == said


def test_the_traceback_of_another_process_is_left_out(run, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("Chain 2 failed:\nTraceback (most recent call last):\n  File ...")

    monkeypatch.setattr(bs, "fit", broken)
    assert run("fit", "numbers.csv", "-t", "y", code=1).stderr == "Error: Chain 2 failed:\n"


def test_ctrl_c_is_130_and_leaves_no_file(run, monkeypatch, tmp_path):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(bs, "fit", stopped)
    assert run("fit", "numbers.csv", "-t", "y", "-o", tmp_path / "fit.nc", code=130).stderr == "Stopped.\n"
    assert list(tmp_path.iterdir()) == []


def test_warnings_are_lines_without_the_place_they_come_from(run, home):
    done = run("fit", "numbers.csv", "-t", "y", "--method", "em", "--set", "max_iterations=1", "--draws", 0, code=3)
    assert all(line.startswith(("Warning: ", "Error: ")) for line in done.stderr.splitlines())
    assert ".py" not in done.stderr


# In processes of their own.


@pytest.mark.quick
def test_a_pipe_from_a_table_to_predictions(home, tmp_path):
    python = f'"{sys.executable}" -m bayes_sparse'
    line = f"cat numbers.csv | {python} fit - -t y -q -o - | {python} predict - numbers.parquet | head -n 2"
    done = subprocess.run(["bash", "-c", line], cwd=home, capture_output=True, text=True, check=False)
    head, first = done.stdout.splitlines()
    assert head == "obs,mean,sd"
    assert first.startswith("0,")
    assert "x1" in done.stderr  # the table, for the fit has the pipe
    assert "Traceback" not in done.stderr


def test_exit_codes_of_the_program(home):
    assert program("--version").returncode == 0
    bad = program("fit", "none.csv", "-t", "y", cwd=home)
    assert (bad.returncode, bad.stdout, bad.stderr) == (1, "", "Error: There is no file 'none.csv'.\n")
    shown = program("fit", "none.csv", "-t", "y", "--debug", cwd=home)
    assert (shown.returncode, "Traceback" in shown.stderr) == (1, True)
    assert program("fit").returncode == 2


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_a_real_ctrl_c(tmp_path):
    """While it waits for a table that never ends."""
    out = tmp_path / "fit.nc"
    command = [sys.executable, "-m", "bayes_sparse", "fit", "-", "-t", "y", "-o", str(out)]
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, start_new_session=True, **streams) as running:
        while not list(tmp_path.iterdir()):  # the file beside is there once the command runs
            assert running.poll() is None
            time.sleep(0.02)
        os.killpg(running.pid, signal.SIGINT)
        assert running.wait(timeout=30) == 130
        assert running.stderr.read() == "Stopped.\n"
    assert list(tmp_path.iterdir()) == []


def test_the_program_is_installed_under_its_name():
    scripts = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["scripts"]
    assert EntryPoint("bayes-sparse", scripts["bayes-sparse"], "console_scripts").load() is main


@pytest.mark.skipif(sys.platform == "win32", reason="terminals of Unix")
def test_a_terminal_is_shown_text_and_no_file(run, fitted, home):
    ours, theirs = os.openpty()
    program("relevance", fitted, "--top", "1", cwd=home, capture_output=False, stdout=theirs)
    assert [word.decode() for word in os.read(ours, 1000).split()[:2]] == ["precision", "mean"]
    refused = program("fit", "numbers.csv", "-t", "y", "-o", "-", cwd=home, capture_output=False, stdout=theirs)
    os.close(theirs)
    os.close(ours)
    assert refused.returncode == 1
