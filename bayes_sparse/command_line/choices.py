"""Choices and settings as they are written at a prompt: ``rbf:0.5``, ``linear:bias=false``, ``max_iterations=50``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import MISSING, fields
from typing import Any

import click

from bayes_sparse.common import registry

__all__ = ["choice_of", "hyper_of", "settings_of"]

_PYTHON = {"True": True, "False": False, "None": None}  # as text they would all be true


def choice_of(folder: str, kind: str, text: str) -> Any:
    """A basis or a likelihood by its name, with settings after a colon: by name, or in the order of its fields.

    Parameters
    ----------
    folder : str
        The package that it is a file of.
    kind : str
        The option's name.
    text : str
        ``rbf``, ``rbf:0.5`` or ``rbf:width=0.5,standardise=true``.
    """
    name, colon, rest = text.partition(":")
    if name == "auto" and not colon:
        return name
    if kind == "likelihood":
        from bayes_sparse.inputs.likelihoods import check_name  # imports PyMC, which a choice of none need not

        check_name(name)
    maker = registry.lookup(folder, name, kind)
    known = [own.name for own in fields(maker)]
    given: dict[str, Any] = {}
    for place, part in enumerate(rest.split(",") if colon else []):
        key, equals, value = part.partition("=")
        key, value = (key, value) if equals else (known[place] if place < len(known) else part, part)
        if key not in known:
            raise ValueError(f"The {kind} {name!r} has no setting {key!r}; it has {', '.join(known)}.")
        given[key] = _value(value)
    missing = [own.name for own in fields(maker) if own.default is MISSING and own.name not in given]
    if missing:
        raise ValueError(f"The {kind} {name!r} needs its {missing[0]}: --{kind} {name}:{missing[0].upper()}.")
    return maker(**given)


def settings_of(pairs: Iterable[str]) -> dict[str, Any]:
    """Settings by name, from ``name=value``; values are JSON, or else text."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{pair!r} is not name=value.", param_hint="--set")
        found[name.replace("-", "_")] = _value(value)
    return found


def hyper_of(text: str) -> Any:
    """Shape and rate of the Gamma prior, from ``a,b``."""
    try:
        shape, rate = map(float, text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text!r} is not two numbers, shape,rate.", param_hint="--hyper") from None
    return shape, rate


def _value(text: str) -> Any:
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        return _PYTHON.get(text, text)
    return tuple(found) if isinstance(found, list) else found
