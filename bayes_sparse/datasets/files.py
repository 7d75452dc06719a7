"""Finding a data set on this machine, or fetching it once.

In order: the directory named by ``BAYES_SPARSE_DATA``, ``../shared/data`` beside a checkout, the user's cache, a
copy inside an installed package, a public copy on the network. A table in the directory the user names is the
user's own and only its shape is checked; every other file must have its checksum.
"""

from __future__ import annotations

import difflib
import gzip
import hashlib
import importlib.util
import io
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayes_sparse.datasets.sources import Copy, copies, origins, sets
from bayes_sparse.datasets.sources.papers import MNIST, MNIST_URL

__all__ = ["load", "names"]

VARIABLE = "BAYES_SPARSE_DATA"


def names() -> list[str]:
    """Names of all sets `load` knows."""
    return sorted([*sets(), *MNIST])


def load(name: str, *, download: bool = True) -> pd.DataFrame:
    """One of the papers' data sets.

    Parameters
    ----------
    name : str
        One of `names`.
    download : bool
        Fetch the set, once, if it is not on this machine.

    Returns
    -------
    pandas.DataFrame
        One row per observation, the last column ``target``, missing values NaN, nominal columns as their original
        codes. ``mnist_train`` and ``mnist_test`` have columns ``p1`` to ``p784`` of bytes, row by row of an image:
        ``frame.drop(columns="target").to_numpy().reshape(-1, 28, 28)`` are the images.

    Raises
    ------
    ValueError
        The name is unknown, or a file does not hold what it should.
    FileNotFoundError
        The set is not on this machine and could not, or should not, be fetched.
    ImportError
        The set must be fetched and pooch, which does it, is not installed.
    """
    if name in MNIST:
        return _load_mnist(name, download)
    if name not in sets():
        near = difflib.get_close_matches(str(name), names(), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise ValueError(f"There is no data set {name!r}{hint} The sets are {', '.join(names())}.")
    own = _own_directory()
    if own is not None and (found := _find(own, name)) is not None:
        return _checked_shape(_parse(_read(found)), name, found)
    for directory in (_beside_checkout(), _cache()):
        if directory is not None and (found := _find(directory, name)) is not None:
            content = _read(found)
            _check_sum(content, sets()[name].sha256, name, found)
            return _parse(content)
    return _parse(_obtain(name, download))


def _own_directory() -> Path | None:
    named = os.environ.get(VARIABLE)
    if not named:
        return None
    directory = Path(named).expanduser()
    if not directory.is_dir():
        raise ValueError(f"{VARIABLE} names {named!r}, which is not a directory; create it or unset the variable.")
    return directory


def _beside_checkout() -> Path:
    # From an installed package this is some directory that does not exist, and nothing is found there.
    return Path(__file__).resolve().parents[2].parent / "shared" / "data"


def _cache() -> Path | None:
    pooch = _pooch()
    return None if pooch is None else Path(pooch.os_cache("bayes_sparse"))


def _pooch() -> Any:
    try:
        import pooch  # only here: it is optional, because most people bring their own data
    except ImportError:
        return None
    return pooch


def _find(directory: Path, name: str) -> Path | None:
    candidates = (directory / f"{name}{suffix}" for suffix in (".csv", ".csv.gz"))
    return next((path for path in candidates if path.is_file()), None)


def _read(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def _parse(content: bytes) -> pd.DataFrame:
    # Only an empty field is a missing value: the codes of a nominal column may read "NA" or "None".
    return pd.read_csv(io.BytesIO(content), keep_default_na=False, na_values=[""])


def _checked_shape(frame: pd.DataFrame, name: str, path: Path) -> pd.DataFrame:
    rows, features = sets()[name].rows, sets()[name].features
    if frame.shape != (rows, features + 1) or frame.columns[-1] != "target":
        raise ValueError(
            f"{path} is not the set {name!r}: it has {frame.shape[0]} rows and {frame.shape[1]} columns ending in "
            f"{frame.columns[-1]!r}, but {rows} rows and {features + 1} columns ending in 'target' are needed."
        )
    return frame


def _check_sum(content: bytes, sha256: str, name: str, path: Path) -> None:
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ValueError(f"{path} does not have the checksum of {name!r}; delete it and load the set again.")


def _obtain(name: str, download: bool) -> bytes:
    copy = copies().get(name)
    if copy is None:
        raise FileNotFoundError(
            f"No public copy of {name!r} that could be fetched is known to us: get it from its source "
            f"({origins().get(name, 'its file does not say')}) and put {name}.csv into the directory named by "
            f"{VARIABLE}."
        )
    content = _installed(copy, sets()[name].sha256)
    if content is not None:
        return content
    if not download:
        raise FileNotFoundError(_absent(name, f"{name}.csv"))

    def convert(raw: bytes) -> bytes:
        return copy.to_csv(raw.decode()).encode()

    return _fetch(name, copy.url, f"{name}.csv", sets()[name].sha256, convert)


def _installed(copy: Copy, sha256: str) -> bytes | None:
    package, _, inside = copy.installed.partition("/")
    spec = importlib.util.find_spec(package) if package else None
    for place in (spec.submodule_search_locations or []) if spec else []:
        path = Path(place) / inside
        if path.is_file():
            content = copy.to_csv(path.read_text()).encode()
            if hashlib.sha256(content).hexdigest() == sha256:
                return content
    return None  # not installed, or a release that ships another file: the network copy is the same set


def _absent(name: str, file: str) -> str:
    return (
        f"{name!r} is not on this machine and download is False: load it once with download=True, or put {file} "
        f"into the directory named by {VARIABLE}."
    )


def _fetch(name: str, url: str, file: str, sha256: str, convert: Callable[[bytes], bytes]) -> bytes:
    """Fetch, convert, check, and only then put the file in its place: nothing half-written is ever found."""
    cache = _cache()
    if cache is None:
        raise ImportError(
            f"{name!r} is not on this machine, and to fetch it takes pooch, which is not installed: "
            f'pip install "bayes_sparse[data]", or put {file} into the directory named by {VARIABLE}.'
        )
    destination = cache / file
    destination.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=destination.parent) as folder:
        raw, ready = Path(folder) / "raw", Path(folder) / "ready"
        try:
            _retrieve(url, raw)
        except OSError as error:  # every error of the network is one
            raise FileNotFoundError(
                f"{name!r} is not on this machine and could not be fetched from {url} ({type(error).__name__}): "
                f"go online and load it again, or put {file} into the directory named by {VARIABLE}."
            ) from error
        changed = f"{url} does not hold the set {name!r} as we know it (another checksum), so it was not used."
        try:
            content = convert(raw.read_bytes())
        except (ValueError, IndexError) as error:
            raise ValueError(changed) from error
        if hashlib.sha256(content).hexdigest() != sha256:
            raise ValueError(changed)
        ready.write_bytes(content)
        os.replace(ready, destination)
    return content


def _retrieve(url: str, path: Path) -> None:
    # pooch.retrieve would check the raw file, but the checksum that counts is that of the converted one.
    _pooch().HTTPDownloader(timeout=30)(url, str(path), None)


def _load_mnist(name: str, download: bool) -> pd.DataFrame:
    images, labels = (
        np.frombuffer(gzip.decompress(_mnist_file(name, file, sha256, download)), np.uint8)
        for file, sha256 in MNIST[name].items()
    )
    # An idx file starts with four bytes of type and four bytes a dimension: three for images, one for labels.
    pixels = images[16:].reshape(-1, 28 * 28)
    frame = pd.DataFrame(pixels, columns=[f"p{i}" for i in range(1, 28 * 28 + 1)])
    return frame.assign(target=labels[8:])


def _mnist_file(name: str, file: str, sha256: str, download: bool) -> bytes:
    for directory in (_own_directory(), _beside_checkout(), _cache()):
        path = None if directory is None else directory / "mnist" / file
        if path is not None and path.is_file():
            content = path.read_bytes()
            _check_sum(content, sha256, name, path)
            return content
    if not download:
        raise FileNotFoundError(_absent(name, f"mnist/{file}"))
    return _fetch(name, MNIST_URL + file, f"mnist/{file}", sha256, bytes)
