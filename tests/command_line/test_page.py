"""The page about the command line shows what its commands print."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

import bayes_sparse as bs
from bayes_sparse.command_line.app import main

PAGE = Path(__file__).parents[2] / "docs" / "command_line.md"


def masked(text):
    """Words without numbers, which have other last digits on another machine, units of time, and line breaks."""
    return re.sub(r"[-+]?\d[\d.]*(e[-+]\d+)?( m?s\b)?", "#", text).split()


def test_commands_print_what_the_page_shows(tmp_path, monkeypatch):
    try:
        tumours = bs.datasets.load("wdbc", download=False)
    except FileNotFoundError:
        pytest.skip("the data set is not on this machine")
    monkeypatch.chdir(tmp_path)
    tumours[:400].to_csv("tumours.csv", index=False)
    tumours[400:].to_csv("new.csv", index=False)
    page = PAGE.read_text(encoding="utf-8")
    shown = re.findall(r"^```console\n\$ bayes-sparse (.*?)\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    assert len(shown) == 3
    for command, output in shown:
        done = CliRunner().invoke(main, shlex.split(command))
        said = done.stdout + "".join(line for line in done.stderr.splitlines(True) if line.startswith("Error"))
        assert masked(said) == masked(output), command
    first = (tmp_path / "predictions.csv").read_text().splitlines()[:3]
    assert masked("\n".join(first)) == masked(re.search(r"```text\n(obs,.*?)```", page, flags=re.DOTALL)[1])


def test_every_command_and_option_that_the_page_names_is_there():
    page = PAGE.read_text(encoding="utf-8")
    for name in set(re.findall(r"bayes-sparse ([a-z]+)", page)):
        assert main.get_command(None, name) is not None, name
    known = {own for name in main.list_commands(None) for o in main.get_command(None, name).params for own in o.opts}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", page)) - known == {"--help"}
