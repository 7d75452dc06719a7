"""How to make these fits again: settings, versions, and what is stored of the call."""

from __future__ import annotations

import json
import platform
from typing import Any

import numpy as np
import pandas as pd

from bayes_sparse.common.versions import versions
from bayes_sparse.report.markup import Html, joined, key_values, number, paragraph, table, tag
from bayes_sparse.report.material import Material, Section
from bayes_sparse.trees.read import StoredFit

__all__ = ["SECTION"]

_LONG = ("vectors", "columns")  # in the data's own section, and too long here
_CALLED = {"hyper", "slab", "smoothness", "lam", "expansion", "tune", "target_accept", "condition"}


def _body(material: Material) -> Html:
    """Calls, attributes and versions."""
    parts: list[object] = []
    for fit in material.fits:
        if material.several:
            parts.append(tag("h3", fit.name))
        parts.append(tag("pre", tag("code", _call(fit))))
        parts.append(key_values(_rows(fit), f"Settings {fit.name}"))
        stored = {key: value for key, value in fit.settings.items() if key not in _LONG}
        if stored:
            parts.append(tag("pre", tag("code", json.dumps(stored, indent=2, ensure_ascii=False))))
    parts.append(
        paragraph(
            "A tree does not store the seed of its draws: keep the random_seed you gave beside the call. The search of "
            "an evidence method uses none."
        )
    )
    return joined([*parts, tag("h3", "Versions"), table(_versions(material.fits), "Versions of the packages")])


def _call(fit: StoredFit) -> str:
    """The call that the stored settings amount to."""
    settings, attributes = fit.settings, fit.attributes
    if not settings:
        return "# not made by bayes_sparse.fit"
    declared = fit.declared
    words = ["model" if declared else repr(str(settings["model"])), "data"]
    if not declared:
        words += [f"likelihood={fit.likelihood_name!r}", f"basis={_basis(settings.get('basis', {}))}"]
    words.append(f"method={fit.method!r}")
    words += [f"{key}={_value(value)}" for key, value in attributes.items() if key in _CALLED and _value(value)]
    if fit.posterior is None:
        words.append("draws=0")
    else:
        words += [f"draws={fit.posterior.sizes['draw']}", f"chains={fit.posterior.sizes['chain']}"]
    return "bs.fit(\n" + "".join(f"    {word},\n" for word in words) + ")"


def _basis(stored: Any) -> str:
    if not isinstance(stored, dict):
        return repr(stored)
    rest = {key: value for key, value in stored.items() if key not in ("name", "kind")}
    inside = ", ".join(f"{key}={value!r}" for key, value in rest.items())
    return f"bs.basis.{stored.get('name', stored.get('kind', ''))}({inside})"


def _value(value: Any) -> str:
    """A setting as Python; empty where it says nothing."""
    if isinstance(value, np.ndarray | list | tuple):
        return repr(tuple(float(v) for v in value)) if len(value) else ""
    return repr(value.item() if isinstance(value, np.generic) else value) if value != "" else ""


def _rows(fit: StoredFit) -> list[tuple[str, object]]:
    rows: list[tuple[str, object]] = []
    for key, value in fit.attributes.items():
        if key in ("versions", "diagnosis", "asked"):
            continue
        shown = ", ".join(number(v) for v in np.ravel(value).tolist()) if np.ndim(value) else number(value, 4)
        rows.append((key.replace("_", " "), shown))
    return rows or [("settings", "none are stored in this tree")]


def _versions(fits: list[StoredFit]) -> pd.DataFrame:
    """Versions that made each fit, and those that made this page."""
    columns = {"this report": json.loads(versions()) | {"python": platform.python_version()}}
    for fit in fits:
        stored = fit.attributes.get("versions")
        if stored:
            columns[fit.name] = json.loads(stored)
    return pd.DataFrame(columns).rename_axis("package").fillna("–")


SECTION = Section("Settings and versions", 90, _body)
