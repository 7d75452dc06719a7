"""What was asked of a fit, as its tree stores it, so that the same can be asked again of other rows."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from bayes_sparse.common import registry
from bayes_sparse.inference.method import Method
from bayes_sparse.inputs import basis as bases
from bayes_sparse.inputs.model import Handed, Model
from bayes_sparse.inputs.pm_model.declared import Declared

__all__ = ["arguments_of", "asked"]

_MODELS, _METHODS = "bayes_sparse.models", "bayes_sparse.methods"


def asked(model: Model, method: Method, handed: Handed) -> dict[str, str]:
    """Model, method, basis and what is kept, with all settings, as JSON; nothing where they cannot be written so."""
    if isinstance(model, Declared) or not (_is_ours(model, _MODELS) and _is_ours(method, _METHODS)):
        return {}
    keep = handed.keep if handed.keep is None or isinstance(handed.keep, str) else [str(name) for name in handed.keep]
    told = {
        "model": {"name": registry.name_of(model), **asdict(model)},
        "method": {"name": registry.name_of(method), **asdict(method)},
        "basis": bases.settings(bases.resolve(handed.basis)),
        "keep": keep,
    }
    try:
        return {"asked": json.dumps(told)}
    except TypeError:  # an expansion point of the user's, say
        return {}


def arguments_of(text: str) -> dict[str, Any]:
    """The same as arguments of `fit`."""
    told = json.loads(text)
    made = {
        kind: registry.lookup(package, told[kind].pop("name"), kind)(**_with_tuples(told[kind]))
        for kind, package in (("model", _MODELS), ("method", _METHODS))
    }
    return {**made, "basis": bases.from_settings(told["basis"]), "keep": told["keep"]}


def _is_ours(choice: Any, package: str) -> bool:
    return type(choice).__module__.rpartition(".")[0] == package


def _with_tuples(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings as the choices have them: JSON knows no tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}
