"""The program run inside this process, in a folder with a table in each format, and a fit of it."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from click.testing import CliRunner

from bayes_sparse.command_line.app import main

COLUMNS = [f"x{j}" for j in range(6)]


def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((60, 6)), columns=COLUMNS)
    frame["y"] = 2.0 * frame["x1"] - frame["x4"] + 0.5 * rng.standard_normal(60)
    frame["kind"] = np.where(frame["x2"] + 0.3 * rng.standard_normal(60) > 0, "high", "low")
    frame["weight"] = rng.integers(1, 3, size=60).astype(float)
    frame.insert(0, "id", [f"r{i}" for i in range(60)])
    return frame


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """A folder with the table as it comes; `numbers` has only its features and y."""
    place = tmp_path_factory.mktemp("home")
    frame, numbers = table(), table()[[*COLUMNS, "y"]]
    frame.to_csv(place / "data.csv", index=False)
    numbers.to_csv(place / "numbers.csv", index=False)
    numbers.to_csv(place / "numbers.tsv", index=False, sep="\t")
    numbers.to_csv(place / "numbers.csv.gz", index=False)
    numbers.to_parquet(place / "numbers.parquet")
    numbers.rename_axis("obs").to_xarray().to_netcdf(place / "numbers.nc", engine="h5netcdf")
    xr.Dataset({"a": ("obs", [1.0, 2.0])}).to_netcdf(place / "other.nc", engine="h5netcdf")
    return place


@pytest.fixture
def run(home, monkeypatch):
    """Run a command in that folder."""
    monkeypatch.chdir(home)

    def call(*words, given=None, code=0):
        done = CliRunner().invoke(main, [str(word) for word in words], input=given)
        assert done.exit_code == code, (done.stdout, done.stderr, done.exception)
        return done

    return call


@pytest.fixture
def fitted(run, home):
    """A fit with row labels of its own, made once."""
    if not (home / "fit.nc").exists():
        drop = ["--drop", "kind", "--drop", "weight"]
        run("fit", "data.csv", "-t", "y", "--index", "id", *drop, "--seed", 0, "-q", "-o", "fit.nc")
    return "fit.nc"
