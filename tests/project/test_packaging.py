"""What a newcomer gets: the wheel, the sdist, the pinned versions and the script that sets `.venv` up."""

import ast
import importlib.util
import json
import os
import re
import stat
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]


def build(source, folder, *kinds):
    """Build without isolation: the backend is a test dependency, so no network is needed."""
    command = [sys.executable, "-m", "build", "--no-isolation", *kinds, "--outdir", str(folder), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    return build(ROOT, tmp_path_factory.mktemp("dist"), "--sdist", "--wheel")


@pytest.fixture(scope="module")
def wheel(dist):
    (path,) = dist.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def sdist(dist):
    (path,) = dist.glob("*.tar.gz")
    return path


def names_in_wheel(path):
    with zipfile.ZipFile(path) as archive:
        return sorted(archive.namelist())


def files_in_sdist(path):
    """The files by name without the leading folder."""
    with tarfile.open(path) as archive:
        assert all(member.isfile() for member in archive), "a link or a device in the sdist"
        return sorted(member.name.split("/", 1)[1] for member in archive)


def model_files():
    found = sorted(path.name for path in (ROOT / "models").glob("*.py"))
    assert "__init__.py" in found
    return found


def test_wheel_holds_every_model_as_a_real_file(wheel):
    with zipfile.ZipFile(wheel) as archive:
        for name in model_files():
            member = archive.getinfo(f"bayes_sparse/models/{name}")
            assert not stat.S_ISLNK(member.external_attr >> 16)
            assert archive.read(member) == (ROOT / "models" / name).read_bytes()


def test_wheel_is_typed_and_holds_the_package_alone(wheel):
    names = names_in_wheel(wheel)
    assert "bayes_sparse/py.typed" in names
    assert not [name for name in names if re.search("studies|tools", name)]
    assert {name.split("/")[0] for name in names} == {"bayes_sparse", "bayes_sparse-0.1.0.dist-info"}


def test_sdist_holds_models_at_both_places(sdist):
    names = files_in_sdist(sdist)
    for name in model_files():
        assert f"models/{name}" in names
        assert f"bayes_sparse/models/{name}" in names


def test_sdist_holds_what_its_own_tests_and_commands_need(sdist):
    needed = {
        "Makefile",
        "constraints.txt",
        "tools/bootstrap.py",
        "benchmarks/__main__.py",
        "studies/__main__.py",
        "LICENSE",
        "README.md",
        "tests/project/test_packaging.py",
    }
    assert needed <= set(files_in_sdist(sdist))


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout")
def test_only_files_that_git_knows_are_shipped(sdist, wheel):
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    known = set(listing.stdout.splitlines()) | {"PKG-INFO"}
    shipped = files_in_sdist(sdist) + [name for name in names_in_wheel(wheel) if ".dist-info/" not in name]
    assert {name.replace("bayes_sparse/models/", "models/") for name in shipped} - known == set()


def test_sdist_builds_the_same_wheel(sdist, wheel, tmp_path):
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    (again,) = build(unpacked, tmp_path / "again", "--wheel").glob("*.whl")
    assert names_in_wheel(again) == names_in_wheel(wheel)


def test_an_unpacked_wheel_imports_its_models(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", "import bayes_sparse.models as m; print(m.__file__)"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()) == tmp_path / "bayes_sparse" / "models" / "__init__.py"


# The dependencies.


def test_the_package_imports_without_what_is_optional_or_slow():
    optional, slow = (
        {"bambi", "formulaic", "nutpie", "pooch", "sklearn"},
        {"arviz_stats", "matplotlib", "scipy.stats", "h5py"},
    )
    program = f"""if True:
        import sys
        sys.modules.update(dict.fromkeys({optional}))  # the import of one of them fails
        import bayes_sparse as bs
        [getattr(bs, name) for name in bs.__all__]  # a name is imported when it is first asked for
        print({slow} & set(sys.modules))"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "set()\n"


def test_what_the_package_imports_is_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [*map(Requirement, project["dependencies"]), *in_extras("nuts", "data", "sklearn", "formula")]
    names = {"scikit-learn": "sklearn"}  # imported under another name
    declared = {names.get(own.name, own.name.replace("-", "_")) for own in needed} | {"bayes_sparse"}
    imported = set()
    for path in [*(ROOT / "bayes_sparse").rglob("*.py"), *(ROOT / "models").glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module]
                imported |= {name.split(".")[0] for name in names}
    assert imported - sys.stdlib_module_names - declared == set()


def test_commands_have_what_they_need():
    assert {"pooch", "scikit-learn", "nutpie", "contourpy"} <= {requirement.name for requirement in in_extras("test")}
    assert {"pooch", "scikit-learn", "nutpie"} <= {requirement.name for requirement in in_extras("demo")}
    for name in ("studies", "bench"):
        assert {"pooch", "scikit-learn"} <= {requirement.name for requirement in in_extras(name)}


# The pinned versions.


def pins():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [line for line in lines if not line.startswith("#")]


def in_extras(*names):
    """The requirements of some extras, also those of the extras that they name."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for requirement in [Requirement(text) for name in names for text in extras[name]]:
        yield from in_extras(*requirement.extras) if requirement.name == "bayes_sparse" else [requirement]


def test_constraints_are_names_and_versions_only():
    assert [line for line in pins() if not re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", line)] == []
    assert "://" not in (ROOT / "constraints.txt").read_text()


def test_constraints_pin_every_direct_dependency_within_its_range():
    pinned = {canonicalize_name(name): version for name, version in (line.split("==") for line in pins())}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [*map(Requirement, project["dependencies"]), *in_extras("test", "lint", "demo", "docs")]
    for requirement in needed:
        assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)]), requirement


def test_no_lock_file():
    locks = [name for pattern in ("*.lock", "pylock*.toml") for name in ROOT.glob(pattern)]
    assert locks == []


# The bootstrap, with interpreters that are shell scripts.

FAKE = """#!/bin/sh
case "$*" in *"$FAKE_FAILS"*) if [ -n "$FAKE_FAILS" ]; then echo "out of luck"; exit 1; fi ;; esac
case "$*" in
  "-c "*) echo "{answer}" ;;
  "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
esac
"""


@pytest.fixture(scope="module")
def bootstrap():
    spec = importlib.util.spec_from_file_location("bootstrap", ROOT / "tools" / "bootstrap.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def fake(path, version, missing="-", usual="usable"):
    return script(path, FAKE.replace("{answer}", f"{usual} {version} {missing}"))


@pytest.fixture
def machine(bootstrap, tmp_path, monkeypatch):
    """A machine whose only Pythons are those a test adds; the script itself runs under a 3.9."""
    tools = os.pathsep + "/usr/bin" + os.pathsep + "/bin"  # for the scripts: mkdir, cp
    real = bootstrap.clean_environment
    own = fake(tmp_path / "own" / "python3", "3.9.1")
    monkeypatch.setattr(sys, "_base_executable", own, raising=False)
    monkeypatch.setattr(bootstrap, "PLACES", tuple(place for place in bootstrap.PLACES if place.startswith("~")))
    monkeypatch.setattr(bootstrap, "clean_environment", lambda: {**real(), "PATH": os.environ["PATH"] + tools})
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", os.pathsep.join(str(tmp_path / name) for name in ("shims", "bin")))
    monkeypatch.setenv("FAKE_FAILS", "")
    return tmp_path


def find(bootstrap, machine, **options):
    return bootstrap.find_python(machine / "log", machine / ".venv", **options)


def test_a_failing_shim_does_not_hide_the_next_python_on_path(bootstrap, machine, capsys):
    script(machine / "shims" / "python3.13", "#!/bin/sh\necho 'pyenv: python3.13: command not found' >&2\nexit 127\n")
    good = fake(machine / "bin" / "python3.13", "3.13.2")
    assert find(bootstrap, machine) == good
    assert capsys.readouterr().out == f"Found Python 3.13.2 at {good}\n"


def test_the_newest_suitable_python_on_path_wins(bootstrap, machine):
    fake(machine / "bin" / "python3.15", "3.15.0")
    fake(machine / "bin" / "python3.12", "3.12.9")
    newest = fake(machine / "bin" / "python3.14", "3.14.1")
    assert find(bootstrap, machine) == newest


@pytest.mark.parametrize(("version", "usual"), [("3.15.0", "usable"), ("3.11.7", "usable"), ("3.14.0", "unusual")])
def test_a_python_outside_the_range_or_of_another_build_is_passed_over(bootstrap, machine, version, usual):
    fake(machine / "bin" / "python3.14", version, usual=usual)
    plain = fake(machine / "bin" / "python3", "3.12.3")
    assert find(bootstrap, machine) == plain


def test_pyenv_is_searched_and_its_newest_version_wins(bootstrap, machine):
    for version in ("3.13.9", "3.13.10", "3.12.1", "3.11.7"):
        fake(machine / "home" / ".pyenv" / "versions" / version / "bin" / "python", version)
    assert find(bootstrap, machine).endswith("/3.13.10/bin/python")


def test_an_activated_environment_is_not_made_from_itself(bootstrap, machine, monkeypatch):
    fake(machine / ".venv" / "bin" / "python3.13", "3.13.1")
    monkeypatch.setenv("PATH", f"{machine / '.venv' / 'bin'}{os.pathsep}{machine / 'bin'}")
    other = fake(machine / "bin" / "python3.12", "3.12.1")
    assert find(bootstrap, machine) == other


def test_a_python_without_venv_is_used_only_to_name_the_package(bootstrap, machine):
    fake(machine / "bin" / "python3.13", "3.13.1", missing="ensurepip")
    with pytest.raises(bootstrap.SetupError, match=r"lacks the module ensurepip: install the package python3\.13-venv"):
        find(bootstrap, machine)
    complete = fake(machine / "bin" / "python3.12", "3.12.1")
    assert find(bootstrap, machine) == complete


def test_the_probe_knows_the_python_of_these_tests(bootstrap):
    assert bootstrap.examine(sys.executable) == (".".join(map(str, sys.version_info[:3])), "")


def test_the_chosen_python_must_be_suitable(bootstrap, machine):
    fake(machine / "bin" / "python3.13", "3.13.1")
    with pytest.raises(bootstrap.SetupError, match=r"it needs 3\.12, 3\.13 or 3\.14\."):
        find(bootstrap, machine, this_python=True)


def test_a_python_is_downloaded_where_there_is_none(bootstrap, machine):
    script(machine / "bin" / "uv", '#!/bin/sh\n[ "$2" = find ] && echo /fetched/python3.13\nexit 0\n')
    assert find(bootstrap, machine) == "/fetched/python3.13"
    assert f"{machine}/bin/uv python install 3.13" in (machine / "log").read_text()


NO_DOWNLOAD = "none was found and none could be downloaded: install one"


def test_no_python_and_no_network_is_one_sentence(bootstrap, machine, monkeypatch):
    monkeypatch.setenv("FAKE_FAILS", "-m pip")
    with pytest.raises(bootstrap.SetupError, match=NO_DOWNLOAD):
        find(bootstrap, machine)
    assert (machine / "log").read_text().endswith("-m pip install uv\nout of luck\n")


def test_no_python_and_a_blocked_download_is_one_sentence(bootstrap, machine):
    script(machine / "bin" / "uv", "#!/bin/sh\nexit 1\n")
    with pytest.raises(bootstrap.SetupError, match=NO_DOWNLOAD):
        find(bootstrap, machine)
    assert (machine / "log").read_text().endswith("python install 3.13\n")


def test_no_python_and_no_venv_module_names_the_package(bootstrap, machine, monkeypatch):
    monkeypatch.setenv("FAKE_FAILS", "-m venv")
    with pytest.raises(bootstrap.SetupError, match="install the package python3-venv"):
        find(bootstrap, machine)


@pytest.fixture
def project(machine):
    """A folder with a space in its name on a machine with one suitable Python."""
    fake(machine / "bin" / "python3.13", "3.13.1")
    folder = machine / "a project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("[project]\n")
    (folder / "constraints.txt").write_text("numpy==2.5.4\n")
    return folder


def commands(project):
    """What the last set-up ran, as the log tells."""
    lines = (project / ".venv" / "setup.log").read_text().splitlines()
    return [line.split(" -m ", 1)[1] for line in lines if line.startswith("$ ")]


def test_set_up_installs_with_uv_and_compiles(bootstrap, project):
    assert bootstrap.main(["--extras", "test,lint"], root=project) == 0
    made, got_uv, install, compiled = commands(project)
    assert made.startswith("venv ")
    assert got_uv == "pip --disable-pip-version-check install -c constraints.txt uv"
    assert "--compile-bytecode" in install
    assert install.endswith("-e .[lint,test]")
    assert compiled == "compileall -q bayes_sparse models"


def test_a_warm_call_runs_nothing(bootstrap, project, capsys):
    bootstrap.main(["--extras", "test"], root=project)
    (project / ".venv" / "setup.log").unlink()
    capsys.readouterr()
    assert bootstrap.main([], root=project) == 0
    assert capsys.readouterr().out == ""
    assert not (project / ".venv" / "setup.log").exists()


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_a_changed_requirement_installs_again_into_the_same_environment(bootstrap, project, name):
    bootstrap.main([], root=project)
    with (project / name).open("a") as file:
        file.write("# changed\n")
    assert bootstrap.main([], root=project) == 0
    assert [line.split()[0] for line in commands(project)] == ["pip", "uv", "compileall"]


def test_more_extras_are_added_to_those_installed(bootstrap, project):
    bootstrap.main(["--extras", "test"], root=project)
    bootstrap.main(["--extras", "bench"], root=project)
    assert commands(project)[1].endswith("-e .[bench,test]")
    assert json.loads((project / ".venv" / "stamp.json").read_text())["extras"] == "bench,test"


def test_a_moved_project_gets_a_new_environment(bootstrap, project):
    bootstrap.main([], root=project)
    moved = project.rename(project.with_name("moved"))
    assert bootstrap.main([], root=moved) == 0
    assert commands(moved)[0] == f"venv {moved / '.venv'}"


def test_pip_stands_in_for_uv(bootstrap, project, monkeypatch):
    monkeypatch.setenv("FAKE_FAILS", "constraints.txt uv")
    assert bootstrap.main([], root=project) == 0
    assert commands(project)[2] == "pip --disable-pip-version-check install -c constraints.txt --compile -e ."


def test_a_failed_installation_shows_the_log_and_leaves_no_stamp(bootstrap, project, monkeypatch, capsys):
    monkeypatch.setenv("FAKE_FAILS", " install ")
    assert bootstrap.main([], root=project) == 1
    error = capsys.readouterr().err
    assert error.startswith("The dependencies could not be installed; is there a network? The log ")
    assert str(project / ".venv" / "setup.log") in error
    assert error.endswith("out of luck\n")
    assert not (project / ".venv" / "stamp.json").exists()
    monkeypatch.setenv("FAKE_FAILS", "")
    assert bootstrap.main([], root=project) == 0
    assert commands(project)[0].startswith("pip ")  # nothing was half-done, so the environment is kept


def test_an_interrupted_installation_starts_over(bootstrap, project, monkeypatch, capsys):
    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(bootstrap, "install", interrupt)
        assert bootstrap.main([], root=project) == 130
    assert "run the same command again" in capsys.readouterr().err
    assert not (project / ".venv" / "stamp.json").exists()
    assert bootstrap.main([], root=project) == 0
    assert commands(project)[0].startswith("venv ")


def test_a_place_taken_by_a_file_is_one_sentence(bootstrap, project, capsys):
    (project / ".venv").write_text("not a folder")
    assert bootstrap.main([], root=project) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_no_permission_to_write_is_one_sentence(bootstrap, project):
    project.chmod(0o555)
    administrator = os.geteuid() == 0
    if administrator:
        os.seteuid(65534)  # permissions do not bind root: be nobody for a moment
    try:
        with pytest.raises(
            bootstrap.SetupError, match=r"\.venv \(Permission denied\): use a copy of the project"
        ) as error:
            bootstrap.require_writable(project / ".venv")
    finally:
        if administrator:
            os.seteuid(0)
        project.chmod(0o755)
    assert str(error.value).startswith("The environment cannot be written to ")


def test_make_finds_its_folder_from_elsewhere(tmp_path):
    done = subprocess.run(
        ["make", "-n", "-f", str(ROOT / "Makefile"), "demo", "PYTHON=python3"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert f'"{ROOT}/tools/bootstrap.py" --this-python' in done.stdout
    assert f'cd "{ROOT}" && .venv/bin/python -m bayes_sparse demo' in done.stdout
