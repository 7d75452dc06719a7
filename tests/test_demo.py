"""`make demo` ends in a table and a picture."""

from bayes_sparse.demo import main


def test_demo_ends_in_a_table_and_a_picture(tmp_path, capsys):
    picture = main(str(tmp_path))
    printed = capsys.readouterr().out
    assert "measurements kept" in printed
    assert "held out" in printed
    assert picture.name in printed.replace("\n", "")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 20_000
