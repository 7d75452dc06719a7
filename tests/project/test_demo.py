"""`make demo` ends in a table, a picture and a report of two evidence fits beside a NUTS to trust."""

from bayes_sparse.command_line.tumours import tumours


def test_demo_ends_in_a_table_a_picture_and_a_report(tmp_path, capsys):
    page = tumours(str(tmp_path))
    printed = capsys.readouterr().out
    assert "Of 30 columns 4 are relevant" in printed
    assert "cannot be told from" in printed
    assert "held out" in printed
    assert "k-hat" in printed
    for file in (page, page.with_name("demo.png")):
        assert file.name in printed.replace("\n", "")
    picture = page.with_name("demo.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 20_000
    assert "NUTS: The chains agree, nothing diverged, and there are effective draws enough." in printed
    text = page.read_text(encoding="utf-8")
    assert "By NUTS, which can be trusted, of 30 columns " in text
    assert "concave_points_worst" in text
