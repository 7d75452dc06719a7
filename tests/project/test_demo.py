"""`make demo` ends in a table, a picture and a report with NUTS beside the evidence fit."""

from bayes_sparse.demo import main


def test_demo_ends_in_a_table_a_picture_and_a_report(tmp_path, capsys):
    page = main(str(tmp_path))
    printed = capsys.readouterr().out
    assert "measurements kept" in printed
    assert "held out" in printed
    assert "k-hat" in printed
    for file in (page, page.with_name("demo.png")):
        assert file.name in printed.replace("\n", "")
    picture = page.with_name("demo.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 20_000
    text = page.read_text(encoding="utf-8")
    assert "NUTS at alpha*" in text
    assert "concave_points_worst" in text
