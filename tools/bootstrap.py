"""Make the project's own environment, `.venv`, on a machine that has nothing but some Python 3.

Standard library only, and nothing newer than Python 3.8: the Python that runs this file need not be the one the
project runs on. A call that finds everything in place returns at once.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import glob
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MINORS = (14, 13, 12)  # newest first; the same range as requires-python in pyproject.toml
FETCHED = "3.13"  # the version to download where no Python of the range exists

# Where Pythons live that are not on PATH; "{m}" is the minor version. "~" and "$NAME" are expanded.
PLACES = (
    "$PYENV_ROOT/versions/3.{m}*/bin/python",
    "~/.pyenv/versions/3.{m}*/bin/python",
    "/usr/local/bin/python3.{m}",
    "/opt/python*/bin/python3.{m}",
    "/opt/python/*/bin/python3.{m}",
    "/opt/homebrew/bin/python3.{m}",
    "/opt/homebrew/opt/python@3.{m}/bin/python3.{m}",
    "/usr/local/opt/python@3.{m}/bin/python3.{m}",
    "/home/linuxbrew/.linuxbrew/bin/python3.{m}",
    "/Library/Frameworks/Python.framework/Versions/3.{m}/bin/python3.{m}",
    "$UV_PYTHON_INSTALL_DIR/cpython-3.{m}*/bin/python3.{m}",
    "$XDG_DATA_HOME/uv/python/cpython-3.{m}*/bin/python3.{m}",
    "~/.local/share/uv/python/cpython-3.{m}*/bin/python3.{m}",
    "~/.local/share/mise/installs/python/3.{m}*/bin/python3.{m}",
    "~/.asdf/installs/python/3.{m}*/bin/python3.{m}",
    "~/mini*3/bin/python3.{m}",
    "~/anaconda3/bin/python3.{m}",
)

# Says what a candidate is: a usable build prints its version and which modules it lacks. Free-threaded and
# unfinished Pythons are passed over because most wheels do not exist for them.
PROBE = """
import importlib.util, platform, sys, sysconfig
usual = sys.implementation.name == "cpython" and sys.version_info.releaselevel == "final"
usual = usual and not sysconfig.get_config_var("Py_GIL_DISABLED")
missing = [name for name in ("venv", "ensurepip", "ssl", "zlib") if importlib.util.find_spec(name) is None]
print("usable" if usual else "unusual", platform.python_version(), ",".join(missing) or "-")
"""

# Variables that would send an installation elsewhere, or keep bytecode from being written.
UNWANTED = (
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPYCACHEPREFIX",
    "PYTHONPATH",
    "PYTHONHOME",
    "VIRTUAL_ENV",
    "PIP_USER",
    "PIP_TARGET",
    "PIP_PREFIX",
    "PIP_NO_COMPILE",
)


class SetupError(Exception):
    """What is missing, as one sentence for the person at the keyboard."""


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Set the environment up if it is not, and return the exit status."""
    parser = argparse.ArgumentParser(description="Make or refresh the project's environment in .venv.")
    parser.add_argument("--extras", default="", help="optional dependencies, such as test,lint")
    parser.add_argument("--this-python", action="store_true", help="use the Python that runs this script")
    options = parser.parse_args(arguments)
    extras = {name for name in options.extras.split(",") if name}
    try:
        if not installed(root, extras):
            with only_one(root):
                set_up(root, extras, options.this_python)
    except SetupError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"The environment could not be made because of {error.filename}: {error.strerror}.\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\nInterrupted before the environment was complete: run the same command again.\n")
        return 130
    return 0


# The stamp: what .venv holds, written last so that an unfinished set-up never looks finished.


def fingerprint(root: Path) -> str:
    """Give a text that changes with whatever would make another environment (moving the folder breaks one)."""
    digest = hashlib.sha256(str(root).encode())
    for name in ("pyproject.toml", "constraints.txt"):
        digest.update((root / name).read_bytes())
    return digest.hexdigest()


def read_stamp(root: Path) -> dict[str, str]:
    """Read the stamp; an absent or damaged one is empty."""
    try:
        stamp: dict[str, str] = json.loads((root / ".venv" / "stamp.json").read_text())
    except (OSError, ValueError):
        return {}
    return stamp


def installed(root: Path, extras: set[str]) -> bool:
    """Tell whether `.venv` is complete, current and has these extras."""
    stamp = read_stamp(root)
    return (
        stamp.get("fingerprint") == fingerprint(root)
        and extras <= set(stamp["extras"].split(","))
        and venv_python(root).exists()
    )


def venv_python(root: Path) -> Path:
    """Give the environment's own interpreter."""
    return root / ".venv" / "bin" / "python"


@contextlib.contextmanager
def only_one(root: Path) -> Iterator[None]:
    """Let a second `make` in the same folder wait for the first."""
    with open(root / "pyproject.toml") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


# The stages, in order.


def set_up(root: Path, extras: set[str], this_python: bool = False) -> None:
    """Find a Python, make `.venv`, install into it, compile, stamp."""
    if installed(root, extras):  # another make did it while this one waited
        return
    stamp = read_stamp(root)
    if stamp.get("fingerprint") == fingerprint(root):
        extras = extras | {name for name in stamp["extras"].split(",") if name}
    folder = root / ".venv"
    remove_unusable(root, stamp)
    require_writable(folder)
    log = folder / "setup.log"
    log.write_text("")
    (folder / "stamp.json").unlink(missing_ok=True)
    if not venv_python(root).exists():
        make_venv(find_python(log, exclude=folder, this_python=this_python), folder, log)
    unfinished = folder / "unfinished"
    unfinished.touch()
    install(root, extras, log)
    unfinished.unlink()
    (folder / "stamp.json").write_text(
        json.dumps({"fingerprint": fingerprint(root), "root": str(root), "extras": ",".join(sorted(extras))})
    )


def remove_unusable(root: Path, stamp: dict[str, str]) -> None:
    """Remove an environment that was moved, was interrupted half-way or whose Python is gone or too old."""
    folder = root / ".venv"
    if not folder.is_dir():
        return
    moved = stamp.get("root", str(root)) != str(root)
    broken = (folder / "unfinished").exists() or examine(str(venv_python(root))) is None
    if moved or broken:
        if os.path.lexists(venv_python(root)):  # else only the log of a set-up that found no Python
            say("Removing an environment that cannot be used any more ...")
        shutil.rmtree(folder)


def require_writable(folder: Path) -> None:
    """Make `folder`, or say why that cannot be done."""
    try:
        folder.mkdir(exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise SetupError(
            f"The environment cannot be written to {folder} ({error.strerror}): "
            "use a copy of the project in a folder that you own."
        ) from None


def make_venv(python: str, folder: Path, log: Path) -> None:
    """Make the virtual environment with `python`."""
    command = [python, "-m", "venv", str(folder)]
    if run(command, log, "Making the environment .venv (about 5 s)") != 0:
        raise SetupError(f"{python} could not make a virtual environment in {folder}: {tail(log)}")


def install(root: Path, extras: set[str], log: Path) -> None:
    """Install the project, editable, with its dependencies; by uv, or by pip where uv cannot be had or fails."""
    python = str(venv_python(root))
    target = f".[{','.join(sorted(extras))}]" if extras else "."
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "-c", "constraints.txt"]
    uv = [python, "-m", "uv", "pip", "install", "--python", python, "--compile-bytecode"]
    uv += ["-c", "constraints.txt", "-b", "constraints.txt", "-e", target]
    what = "Installing the dependencies"
    got_uv = run([*pip, "uv"], log, "Getting the installer uv (about 5 s)", cwd=root) == 0
    if not got_uv or run(uv, log, f"{what} (about 40 s)", cwd=root) != 0:
        pip_install = [*pip, "--compile", "-e", target]
        if run(pip_install, log, f"{what} with pip instead of uv (about 2 minutes)", cwd=root) != 0:
            (root / ".venv" / "unfinished").unlink()  # a refused installation leaves what was there in order
            raise SetupError(f"The dependencies could not be installed; is there a network? {tail(log)}")
    # The project's own files; models/ by name because compileall does not follow the link to it.
    # Its exit status is of no interest: a file that does not compile says so when it is imported.
    run([python, "-m", "compileall", "-q", "bayes_sparse", "models"], log, "Compiling bytecode", cwd=root)


# Finding a Python.


def find_python(log: Path, exclude: Path, this_python: bool = False) -> str:
    """Give the path of a Python the project runs on, downloading one only if the machine has none."""
    wanted = "3.{}, 3.{} or 3.{}".format(*reversed(MINORS))
    lacking = None
    own = [getattr(sys, "_base_executable", None) or sys.executable]
    for path in own if this_python else candidates(own):
        if exclude in Path(path).parents:  # an activated .venv: it is about to be replaced
            continue
        found = examine(path)
        if found is None:
            continue
        version, missing = found
        if not missing:
            say(f"Found Python {version} at {path}")
            return path
        lacking = lacking or (path, version, missing)
    if lacking is not None:
        raise SetupError(lacks(*lacking))
    if this_python:
        raise SetupError(f"{own[0]} is not a Python the project runs on: it needs {wanted}.")
    say(f"Found no Python {wanted} on this machine.")
    return fetch_python(own[0], wanted, log)


def candidates(own: list[str]) -> Iterator[str]:
    """Name the places to look, best first: PATH, the running Python, version managers, common folders."""
    folders = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    seen = set()
    named = [os.path.join(folder, f"python3.{minor}") for minor in MINORS for folder in folders]
    python3 = [os.path.join(folder, "python3") for folder in folders]
    patterns = [os.path.expandvars(os.path.expanduser(place)) for place in PLACES]
    elsewhere = [path for pattern in patterns for m in MINORS for path in newest_first(pattern.format(m=m))]
    for path in [*named, *own, *python3, *elsewhere]:
        if path not in seen and os.access(path, os.X_OK):
            seen.add(path)
            yield path


def newest_first(pattern: str) -> list[str]:
    """Expand `pattern`, the longest and largest version number first (3.13.10 before 3.13.9)."""
    return sorted(glob.glob(pattern), key=lambda path: (len(path), path), reverse=True)


def examine(path: str) -> tuple[str, str] | None:
    """Run a candidate: its version and the modules it lacks, or None if it fails or is of no use here."""
    try:
        answer = subprocess.run(
            [path, "-c", PROBE],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=clean_environment(),
            timeout=20,
            check=True,
        ).stdout.decode()
        usable, version, missing = answer.split()
    except (OSError, subprocess.SubprocessError, ValueError):  # a shim without a version behind it, a broken build
        return None
    if usable != "usable" or version.split(".")[:2] not in [["3", str(minor)] for minor in MINORS]:
        return None
    return version, "" if missing == "-" else missing


def lacks(path: str, version: str, missing: str) -> str:
    """Say what an otherwise suitable Python is short of."""
    package = f"python{'.'.join(version.split('.')[:2])}-venv"
    cure = f"install the package {package} (Debian, Ubuntu: sudo apt install {package})"
    if not {"venv", "ensurepip"} & set(missing.split(",")):
        cure = "install a complete build of Python"
    return f"Python {version} at {path} lacks the module {missing}: {cure} and run the same command again."


def fetch_python(python: str, wanted: str, log: Path) -> str:
    """Download a Python with uv, which is itself put into a private environment that is thrown away."""
    failure = (
        f"The project needs Python {wanted}; none was found and none could be downloaded: install one, or name "
        f"yours with PYTHON=/path/to/python{FETCHED} after the make command (log: {log})."
    )
    with tempfile.TemporaryDirectory() as private:
        uv = shutil.which("uv") or os.path.join(private, "bin", "uv")
        if not os.path.exists(uv):
            if run([python, "-m", "venv", private], log, "Making a private environment for uv (about 5 s)") != 0:
                raise SetupError(
                    f"{python} cannot make a virtual environment: install the package python3-venv "
                    "(Debian, Ubuntu: sudo apt install python3-venv) and run the same command again."
                )
            pip = [os.path.join(private, "bin", "python"), "-m", "pip"]
            if run([*pip, "install", "uv"], log, "Getting uv to download a Python with (about 5 s)") != 0:
                raise SetupError(failure)
        if run([uv, "python", "install", FETCHED], log, f"Downloading Python {FETCHED} (about 20 s)") != 0:
            raise SetupError(failure)
        find = [uv, "python", "find", "--managed-python", "--no-project", FETCHED]
        path = subprocess.run(find, stdout=subprocess.PIPE, check=True).stdout.decode().strip()
    say(f"Python {FETCHED} is now at {path}")
    return path


# Running things and speaking.


def clean_environment() -> dict[str, str]:
    """Give the environment variables of a child, without those that would mislead it."""
    kept = {name: value for name, value in os.environ.items() if name not in UNWANTED}
    return {**kept, "UV_PYTHON_INSTALL_BIN": "0", "UV_NO_PROGRESS": "1"}


def run(command: list[str], log: Path, stage: str, cwd: Path | None = None) -> int:
    """Run `command` with its output in `log`, saying what is going on, and return its exit status."""
    say(f"{stage} ...")
    begin = time.monotonic()
    with open(log, "a") as output:
        output.write(f"\n$ {' '.join(command)}\n")
        output.flush()
        process = subprocess.Popen(
            command,
            cwd=None if cwd is None else str(cwd),
            env=clean_environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            while process.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=1)
                if sys.stdout.isatty():
                    sys.stdout.write(f"\r  {time.monotonic() - begin:.0f} s\r")
                    sys.stdout.flush()
        except BaseException:
            process.terminate()
            process.wait()
            raise
    return process.returncode


def say(line: str) -> None:
    """Print a progress line at once, also into a pipe."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def tail(log: Path, lines: int = 8) -> str:
    """Give the end of the log and where the whole of it is."""
    end = [line for line in log.read_text(errors="replace").splitlines() if line.strip()][-lines:]
    return f"The log {log} ends:\n  " + "\n  ".join(end)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # end the children too, as Ctrl-C does
    sys.exit(main())
