"""The README's code runs as it stands and ends in the result it promises."""

import re
from pathlib import Path

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_code_runs_and_finds_the_truth(capsys):
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "precision" in printed
    assert "ess_bulk" in printed
    kept = set(names["bs"].relevance(names["tree"]).query("kept").index)
    assert {"w[3]", "w[11]"} <= kept
    assert len(kept) <= 4


def test_pictures_and_links_exist():
    root = Path(__file__).parents[2]
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (root / target).exists(), target
