"""The folder is the registry."""

from pathlib import Path

import pytest

import bayes_sparse as bs
from bayes_sparse.common import registry

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("package", ["bayes_sparse.methods", "bayes_sparse.models"])
def test_options_are_the_files_of_the_folder(package):
    folder = Path(bs.__file__).parent / package.rpartition(".")[2]
    files = sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith("_"))
    assert registry.options(package) == files
    assert files


@pytest.mark.parametrize("package", ["bayes_sparse.methods", "bayes_sparse.models"])
def test_every_option_is_a_choice_that_can_be_made_without_arguments(package):
    for name in registry.options(package):
        choice = registry.lookup(package, name, "choice")
        assert isinstance(choice, type)
        assert choice.__name__.lower() == name.replace("_", "")
        assert choice() == choice()  # a frozen dataclass: its fields are its settings


def test_the_contract_names_these_methods_and_this_model():
    assert {"sequential", "mackay", "em", "nuts"} <= set(registry.options("bayes_sparse.methods"))
    assert "ard_gaussian" in registry.options("bayes_sparse.models")


def test_a_new_file_is_a_new_option(tmp_path, monkeypatch):
    (tmp_path / "newest.py").write_text("__all__ = ['Newest']\n\n\nclass Newest:\n    pass\n")
    (tmp_path / "_private.py").write_text("")
    monkeypatch.setattr(bs.methods, "__path__", [*bs.methods.__path__, str(tmp_path)])
    assert "newest" in registry.options("bayes_sparse.methods")
    assert "_private" not in registry.options("bayes_sparse.methods")
    assert registry.lookup("bayes_sparse.methods", "newest", "method").__name__ == "Newest"
    with pytest.raises(ValueError, match=r"there are .*newest.*Did you mean 'newest'"):
        registry.lookup("bayes_sparse.methods", "newst", "method")


def test_a_wrong_name_far_from_any_gets_no_suggestion():
    with pytest.raises(ValueError, match=r"There is no method '12345'; there are .*em, .*sequential.*\.$"):
        registry.lookup("bayes_sparse.methods", "12345", "method")
