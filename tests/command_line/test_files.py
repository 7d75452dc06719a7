"""Never half a file; and what cannot be read is said in a sentence."""

import os

import pandas as pd
import pytest

from bayes_sparse.command_line.files import format_of, read_table, read_tree, whole_file, write_table
from tests.support import no_room, refused

pytestmark = pytest.mark.quick


def interrupted(place, error):
    with whole_file(str(place)) as part:
        part.write_text("half")
        raise error


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_run_that_fails_leaves_what_was_there_before(tmp_path, error):
    place = tmp_path / "fit.nc"
    place.write_text("whole")
    with pytest.raises(error):
        interrupted(place, error)
    assert place.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [place]


@pytest.mark.parametrize("form", ["csv", "json", "text", "netcdf", "parquet"])
def test_without_room_what_was_there_before_is_there(tmp_path, form):
    place, table = tmp_path / f"table.{form}", pd.DataFrame({"a": range(9999)}, dtype=float).rename_axis("obs")
    place.write_text("whole")
    with no_room():
        said = refused(lambda: write_table(table, str(place), form), "before is there still", kind=OSError)
    assert said.startswith(f"{str(place)!r} cannot be written (")
    assert place.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [place]


def test_a_link_stays_a_link_and_folders_are_made(tmp_path):
    link = tmp_path / "link.csv"
    link.symlink_to(tmp_path / "deep" / "real.csv")
    with whole_file(str(link)) as part:
        part.write_text("a")
    assert link.is_symlink()
    assert (tmp_path / "deep" / "real.csv").read_text() == "a"


def test_a_named_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with whole_file(str(pipe)) as part:
        part.write_text("through")
    assert os.read(end, 100) == b"through"
    os.close(end)
    assert pipe.is_fifo()


@pytest.mark.parametrize(
    ("name", "form"),
    [("a.csv", "csv"), ("a.b.CSV.GZ", "csv"), ("a.pq", "parquet"), ("a.nc", "netcdf"), ("-", "csv")],
)
def test_the_name_says_the_format(name, form):
    assert format_of(name) == form


@pytest.mark.parametrize("name", ["data", "data.dat", "data.json"])
def test_or_does_not(name):
    refused(lambda: format_of(name), name, "--format")


def test_what_cannot_be_read_is_said_in_a_sentence(home, monkeypatch):
    monkeypatch.chdir(home)
    refused(lambda: read_table("none.csv", None), "There is no file 'none.csv'", kind=FileNotFoundError)
    refused(lambda: read_table("data.csv", None, drop=["heihgt"]), "There is no column 'heihgt' in 'data.csv'")
    refused(lambda: read_table("data.csv", "netcdf"), "'data.csv' cannot be read as netcdf")
    refused(lambda: read_table("numbers.nc", None, index="y"), "leave out --index")
    refused(lambda: read_table(".", None), "'.' is a folder")
    refused(lambda: read_tree("data.csv"), "'data.csv' is no NetCDF file")
    refused(lambda: read_tree("other.nc"), "'other.nc' holds no fit")


def test_an_empty_table_is_refused(tmp_path):
    (tmp_path / "empty.csv").write_text("")
    refused(lambda: read_table(str(tmp_path / "empty.csv"), None), "cannot be read as csv")


def test_without_pyarrow_the_extra_is_named(home, monkeypatch):
    def missing(source):
        raise ImportError("Unable to find a usable engine")

    monkeypatch.setattr(pd, "read_parquet", missing)
    said = 'Parquet files need pyarrow: pip install "bayes_sparse[parquet]".'
    with pytest.raises(ImportError) as error:
        read_table(str(home / "numbers.parquet"), None)
    assert str(error.value) == said
