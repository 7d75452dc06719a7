"""The grid of systems, read off the code: which models there are, which methods, and which fits which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from bayes_sparse.common import registry
from bayes_sparse.fitting.choices import methods_for
from bayes_sparse.fitting.families import rules_of

__all__ = ["methods_grid", "models_grid"]


def models_grid() -> str:
    """A row a model: its prior, what fits it, what NUTS takes for its hyper-prior, its settings."""
    rows = [("model", "prior", "on", "fitted by (the default first)", "hyper-prior under NUTS", "settings")]
    for name in registry.options("bayes_sparse.models"):
        model = registry.lookup("bayes_sparse.models", name, "model")()
        able = sorted(methods_for(model), key=lambda method: (method != model.default_method, method))
        none = "half-Cauchy scales" if model.prior == "horseshoe" else "none: see its bounds"
        hyper = "Gamma({:g}, {:g})".format(*model.proper_hyper) if model.proper_hyper else none
        on = "weights" if model.coordinates == "weights" else "eigenvectors"
        rows.append((name, model.prior, on, ", ".join(able), hyper, _settings(model)))
    return "Models for bs.fit(model, data):\n" + _table(rows) + "\nand any pm.Model of your own."


def methods_grid() -> str:
    """A row a method: its family, what it finds, its settings."""
    rows = [("method", "family", "finds", "settings")]
    for name in registry.options("bayes_sparse.methods"):
        method = registry.lookup("bayes_sparse.methods", name, "method")()
        priors = method.priors or registry.options("bayes_sparse.inference.priors")
        finds = rules_of(method).finds.format(" or ".join(priors))
        rows.append((name, method.family, finds, _settings(method)))
    return "Methods for bs.fit(model, data, method=...):\n" + _table(rows)


def _settings(choice: Any) -> str:
    return ", ".join(field.name for field in fields(choice))


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    """Columns as wide as their longest entry; the last one is not padded."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    return "\n".join(
        "  " + "  ".join([*(entry.ljust(width) for entry, width in zip(row, widths, strict=False)), row[-1]])
        for row in rows
    )
