"""Files written beside and renamed: whole at all times, whatever stops the writing."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["alone", "as_netcdf", "from_netcdf", "write_whole"]

try:
    import fcntl
except ImportError:  # not on this system: who writes last has the last word
    fcntl = None  # type: ignore[assignment]


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Wait until no other process is here for a file of this folder, then keep others waiting."""
    folder.mkdir(parents=True, exist_ok=True)
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def as_netcdf(tree: Any) -> bytes:
    """A file made in memory: HDF5 itself does not survive a full disk, and locks its file against other processes."""
    return bytes(tree.to_netcdf(None, engine="h5netcdf"))  # a copy, for a view would keep xarray's buffer from closing


def from_netcdf(source: Any) -> Any:
    """A tree in memory, of a file or of one that is open; a ValueError where it is none, or damaged."""
    import xarray as xr

    try:
        with xr.open_datatree(source, engine="h5netcdf") as stored:
            return stored.load()
    except (ImportError, MemoryError, PermissionError):
        raise
    except Exception as error:  # a wrong byte ends in whatever the readers stumble over
        raise ValueError("This is no NetCDF file of a tree, or it is damaged.") from error


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file in one piece; what was there before is there still if that fails, and a sentence says why."""
    raw = content.encode() if isinstance(content, str) else content
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")  # of its own: another process may be at it too
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("xb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())  # a full disk may say so only now
        os.replace(beside, path)
    except OSError as error:
        raise OSError(
            f"The file {str(path)!r} of {len(raw):,} bytes cannot be written ({error.strerror}), and what was there "
            "before is there still: make room, or name another place."
        ) from error
    finally:
        beside.unlink(missing_ok=True)
