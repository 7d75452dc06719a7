"""Public names: imported when asked for, the same for editors as for Python, never a folder in a function's place."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import bayes_sparse as bs

STUB = Path(bs.__file__).with_suffix(".pyi")


def test_editors_and_type_checkers_see_the_names_that_python_finds():
    seen = {}
    for node in ast.parse(STUB.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            seen |= {own.asname: (node.module, own.name) for own in node.names}
    assert set(seen) == {*bs.__all__, "estimators"}
    for name, (place, own) in seen.items():
        found = getattr(bs, name)
        folder = isinstance(found, ModuleType)
        assert name == own
        assert found is (sys.modules[f"{place}.{own}"] if folder else getattr(sys.modules[place], own)), name


def test_dir_lists_every_name_before_any_is_asked_for():
    assert {*bs.__all__, "estimators", "__version__"} <= set(dir(bs))


def test_public_functions_and_classes_say_what_they_are_for():
    assert [name for name in bs.__all__ if not inspect.getdoc(getattr(bs, name))] == []


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'fitt'"):
        _ = bs.fitt


def printed(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_nothing_heavy_is_imported_before_it_is_asked_for():
    heavy = {"pymc", "pytensor", "numpy", "pandas", "xarray", "matplotlib", "rich"}
    assert printed(f"import bayes_sparse, sys; print({heavy} & set(sys.modules))") == ["set()"]


def test_names_are_the_same_whoever_imports_a_folder_first():
    """Python sets an imported folder as an attribute of its package, past the package's own `__getattr__`."""
    program = """if True:
        import bayes_sparse.report.page, bayes_sparse.models, bayes_sparse.methods
        import bayes_sparse as bs
        print(type(bs.report).__name__)
        print(str(bs.models).splitlines()[0])
        print(str(bs.methods).splitlines()[0])"""
    assert printed(program) == [
        "function",
        "Models for bs.fit(model, data):",
        "Methods for bs.fit(model, data, method=...):",
    ]
