"""Predictions beside what was observed: on the rows handed in, and on those of the fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bayes_sparse.inputs.table import plain_labels
from bayes_sparse.report.check_figures import Classes, Numbers, class_checks, number_checks
from bayes_sparse.report.markup import Html, count, joined, nothing, paragraph, tag
from bayes_sparse.report.material import Material, Section, ask
from bayes_sparse.report.replicates import left_out_weights, replicates, replicates_by_pymc
from bayes_sparse.results.comparison.held_out import held_out_rows
from bayes_sparse.results.predict.predict import predict
from bayes_sparse.trees.read import StoredFit

__all__ = ["SECTION"]

_CLASSES = ("two classes", "classes")
type Checked = Classes | Numbers


def _body(material: Material) -> Html:
    """Calibration and replicated data, held out and in sample."""
    parts: list[object] = []
    if material.data is not None:
        rows = ask(held_out_rows, material.data, material.target)
        if rows.value is None:
            parts.append(rows.words)
        else:
            title = f"The {count(len(rows.value.y))} rows handed in"
            parts += _block(material, title, lambda fit: _on_rows(material, fit, rows.value))
    parts += _block(material, "The rows of the fit", lambda fit: _in_sample(material, fit))
    return joined(parts) if any(isinstance(part, Html) and "<img" in part for part in parts) else _why(parts)


def _why(parts: list[object]) -> Html:
    return joined(parts) if parts else nothing("There is nothing to check predictions by.")


def _block(material: Material, title: str, check: Callable[[StoredFit], Checked]) -> list[object]:
    """One way of checking, over all fits that it works for."""
    answers = {fit.name: ask(check, fit) for fit in material.fits}
    classes = {name: a.value for name, a in answers.items() if isinstance(a.value, Classes)}
    numbers = {name: a.value for name, a in answers.items() if isinstance(a.value, Numbers)}
    parts: list[object] = [tag("h3", title)]
    if classes:
        parts += class_checks(classes)
    if numbers:
        parts += number_checks(numbers)
    told: dict[str, list[str]] = {}
    for name, answer in answers.items():
        for words in (answer.refusal, *answer.notes):
            if words:
                told.setdefault(words, []).append(name)
    for words, names in told.items():
        who = f"{', '.join(names)}: " if material.several and len(names) < len(answers) else ""
        parts.append(paragraph(f"{who}{words}", "note"))
    return parts


def _on_rows(material: Material, fit: StoredFit, rows: Any) -> Checked:
    """Predictions for rows that were handed in with their targets."""
    if not fit.settings:
        raise ValueError("A tree that is not from bayes_sparse.fit is not predicted from.")
    if "offset" in fit.constant and not fit.declared:
        raise ValueError("Rows handed in for a fit with an offset are not predicted, since theirs is not known.")
    declared = fit.declared
    if declared or fit.targets in _CLASSES:
        predicted = predict(fit.tree, rows.X, model=material.model if declared else None)
        if "probability" in predicted:
            known = [str(label) for label in predicted["class"].to_numpy().tolist()]
            return _classes(known, plain_labels(rows.y).tolist(), predicted["probability"].to_numpy(), "")
        mean, sd = predicted["mean"].to_numpy(), predicted["sd"].to_numpy()
        drawn = mean + sd * np.random.default_rng(0).standard_normal((500, len(mean)))
        return Numbers(rows.y.astype(float), drawn, False, "normal draws with the predicted mean and sd")
    return Numbers(rows.y.astype(float), replicates(fit, rows.X), _is_count(fit), "")


def _in_sample(material: Material, fit: StoredFit) -> Checked:
    """The fit's own rows: left out one by one where that can be had, replicated otherwise."""
    if fit.observed is None:
        raise ValueError("This tree does not hold the observations.")
    y = fit.observed.to_numpy().astype(float).ravel()
    loo = material.loos[fit.name].value
    if fit.targets == "two classes" and loo is not None:
        p = np.exp(np.minimum(np.asarray(loo.elpd_i).ravel(), 0.0))
        one = np.where(y > 0.5, p, 1 - p)
        labels = [str(label) for label in fit.classes or [0, 1]]
        truth = [labels[int(code)] for code in y]
        return _classes(labels, truth, np.stack([1 - one, one], axis=1), "each row left out")
    if "posterior_predictive" in fit.tree.children:
        stored = next(iter(fit.tree["posterior_predictive"].to_dataset().data_vars.values()))
        values = stored.transpose("chain", "draw", ...).to_numpy()
        drawn = values.reshape(values.shape[0] * values.shape[1], -1).astype(float)
        return _left_out(fit, y, drawn, _whole(y))
    if fit.declared:
        return _in_sample_of_own(material, fit, y)
    if "X" not in fit.constant:
        raise ValueError(
            "The tree does not hold the features of its rows: hand in rows, report(..., data=...), to see predictions "
            "beside observations."
        )
    X = fit.constant["X"].to_numpy()
    if fit.targets in _CLASSES:
        labels = [str(label) for label in fit.classes or []]
        p = predict(fit.tree, X)["probability"].to_numpy()
        return _classes(labels, [labels[int(code)] for code in y], p, "the same rows as in the fit: too good")
    return _left_out(fit, y, replicates(fit, X, every=True), _is_count(fit))


def _left_out(fit: StoredFit, y: Any, drawn: Any, counts: bool) -> Numbers:
    """Draws weighted as if each row had been left out, where there is one for each draw of the posterior."""
    weights = left_out_weights(fit)
    if weights is None or weights.shape != drawn.shape:
        return Numbers(y, drawn, counts, "the same rows as in the fit: too good")
    return Numbers(y, drawn, counts, "each row left out", weights)


def _in_sample_of_own(material: Material, fit: StoredFit, y: Any) -> Checked:
    if material.model is None:
        raise ValueError("Predictions of a pm.Model of your own need that model: report(..., model=model).")
    if fit.posterior is None:
        raise ValueError("Predictions of a pm.Model of your own need draws: fit with draws > 0.")
    return Numbers(y, replicates_by_pymc(fit, material.model), _whole(y), "the same rows as in the fit: too good")


def _classes(labels: list[str], truth: list[Any], probability: Any, how: str) -> Classes:
    strange = sorted({str(label) for label in truth} - set(labels))
    if strange:
        raise ValueError(f"These rows have classes that the fit has not: {', '.join(strange[:4])}.")
    if len(truth) != len(probability):
        raise ValueError(f"There are {len(probability)} rows and {len(truth)} targets; they must be as many.")
    return Classes(labels, np.array([labels.index(str(label)) for label in truth]), probability, how)


def _is_count(fit: StoredFit) -> bool:
    return fit.targets == "counts"


def _whole(y: Any) -> bool:
    return bool(np.all(y == np.floor(y))) and bool(np.all(y >= 0))


SECTION = Section("Predictive checks", 80, _body)
