"""The command line of the studies says what is missing before it needs it."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from studies import __main__ as command


def test_what_is_missing_is_said_with_its_cure(monkeypatch, capsys):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in ("contourpy", "pooch") else real(name)
    )
    with pytest.raises(SystemExit):
        command.main(["digits"])
    assert "contourpy and pooch not installed: pip install -e '.[studies]'" in capsys.readouterr().err


def test_saying_so_needs_none_of_it():
    program = "import sys, studies.__main__; print({'contourpy', 'pooch', 'sklearn', 'pymc'} & set(sys.modules))"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
