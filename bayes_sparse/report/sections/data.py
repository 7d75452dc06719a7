"""What was fitted: rows, columns, targets, basis and likelihood."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayes_sparse.inputs.encoding import Encoding
from bayes_sparse.report.markup import Html, count, joined, key_values, number, paragraph
from bayes_sparse.report.material import Material, Section
from bayes_sparse.trees.read import StoredFit

__all__ = ["SECTION", "same_targets"]

_NAMED = 12  # columns listed by name
_MISSING = {"drop": "rows with any were left out", "mean": "the column's mean in their place, marked by a column"}
_CLASSES = 20  # classes listed with their counts


def _body(material: Material) -> Html:
    """The data of the fits, and which of them differ."""
    fits = material.fits
    first = next((fit for fit in fits if "columns" in fit.settings), fits[0])
    parts: list[object] = [key_values(_rows(first), "The data")]
    others = [fit.name for fit in fits if not same_targets(fit, first)]
    if others:
        parts.append(paragraph(f"Fitted to other data than the rest: {', '.join(others)}.", "note"))
    differing = [fit for fit in fits if _basis(fit) and _basis(fit) != _basis(first)]
    if differing:
        said = "; ".join(f"{fit.name}: {_basis(fit)}" for fit in differing)
        parts.append(paragraph(f"The basis is not the same in all fits: {said}.", "note"))
    return joined(parts)


def same_targets(one: StoredFit, other: StoredFit) -> bool:
    """Whether two fits were made to the same targets."""
    if one.observed is None or other.observed is None:
        return True  # nothing says that they were not
    a, b = one.observed.to_numpy(), other.observed.to_numpy()
    return a.shape == b.shape and bool(np.array_equal(a.astype(float), b.astype(float), equal_nan=True))


def _rows(fit: StoredFit) -> list[tuple[str, object]]:
    rows: list[tuple[str, object]] = []
    y = fit.observed
    if y is not None:
        rows += [("observations", count(y.shape[0])), ("target", y.name)]
        rows.append(("classes", _classes(fit)) if fit.classes else ("its values", _quantiles(y.to_numpy())))
    if fit.likelihood_name:
        rows.append(("likelihood", _with_settings(fit.settings["likelihood"])))
    if "columns" in fit.settings:
        rows.append(("columns", _columns(fit.settings["columns"], fit.classes)))
        rows += [] if fit.by_class else _encoded(fit.encodings[0])
    if _basis(fit):
        rows.append(("basis", _basis(fit)))
    if fit.evidence is not None and "basis" in fit.evidence.sizes:
        rows.append(("terms offered", count(fit.evidence.sizes["basis"])))
    rows.append(("model", "a pm.Model of the user's own" if fit.declared else _model(fit)))
    for name, words in (("weights", "a weight per observation"), ("offset", "a known part of the predictor")):
        if name in fit.constant and not fit.declared:
            values = fit.constant[name].to_numpy()
            rows.append((name, f"{words}, from {number(float(values.min()))} to {number(float(values.max()))}"))
    return rows


def _model(fit: StoredFit) -> str:
    return str(fit.settings.get("model", "not one of bayes_sparse's"))


def _classes(fit: StoredFit) -> str:
    assert fit.observed is not None
    assert fit.classes is not None
    codes = fit.observed.to_numpy().astype(int).ravel()
    sizes = np.bincount(codes, minlength=len(fit.classes))
    shown = [
        f"{label} ({count(n)}, {100 * n / len(codes):.0f}%)"
        for label, n in zip(fit.classes[:_CLASSES], sizes.tolist(), strict=False)
    ]
    return ", ".join(shown) + _more(len(fit.classes) - len(shown))


def _quantiles(y: Any) -> str:
    least, *inner, most = (number(float(q), 4) for q in np.nanquantile(y.astype(float), [0, 0.25, 0.5, 0.75, 1]))
    return f"from {least} to {most}; quartiles {', '.join(inner)}"


def _columns(columns: list[Any], classes: list[Any] | None) -> str:
    if columns and isinstance(columns[0], list):  # features of each class's own
        sizes = [f"{label}: {count(len(own))}" for label, own in zip(classes or [], columns, strict=False)]
        return "each class has its own: " + ", ".join(sizes[:_CLASSES]) + _more(len(sizes) - _CLASSES)
    return f"{count(len(columns))}: {', '.join(map(str, columns[:_NAMED]))}{_more(len(columns) - _NAMED)}"


def _encoded(how: Encoding) -> list[tuple[str, object]]:
    """What became of categories, of missing values and of constant columns."""
    rows: list[tuple[str, object]] = []
    if how.levels:
        levels = [
            f"{name} ({count(len(own))} levels"
            + (f", measured from {how.reference[name]})" if name in how.reference else ")")
            for name, own in how.levels.items()
        ]
        rows.append(("categories", ", ".join(levels[:_NAMED]) + _more(len(levels) - _NAMED)))
    if how.missing != "refuse":
        marked = f"; filled in: {', '.join(how.marked[:_NAMED])}{_more(len(how.marked) - _NAMED)}" if how.marked else ""
        rows.append(("missing values", _MISSING[how.missing] + marked))
    if how.constant:
        left = f"{', '.join(how.constant[:_NAMED])}{_more(len(how.constant) - _NAMED)}"
        rows.append(("left out, being constant", left))
    return rows


def _basis(fit: StoredFit) -> str:
    return _with_settings(fit.settings["basis"]) if "basis" in fit.settings else ""


def _with_settings(stored: Any) -> str:
    """A choice by its name, with its settings behind it."""
    if not isinstance(stored, dict):
        return str(stored)
    rest = {key: value for key, value in stored.items() if key not in ("name", "kind")}
    words = ", ".join(f"{key} = {number(value)}" for key, value in rest.items())
    name = str(stored.get("name", stored.get("kind", "")))
    return f"{name} ({words})" if words else name


def _more(n: int) -> str:
    return f" and {count(n)} more" if n > 0 else ""


SECTION = Section("The data", 10, _body)
