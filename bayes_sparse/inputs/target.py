"""Targets as numbers, the likelihood that they leave no doubt about, and the offset beside them."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs import likelihoods
from bayes_sparse.inputs.categories import is_time
from bayes_sparse.inputs.likelihoods import Likelihood
from bayes_sparse.inputs.table import Table, check_size, in_words, labels_of, plain_labels

__all__ = ["check_offset", "target_of"]

_FARTHEST = 100.0  # offset in logs: a factor of 1e43
_DIGITS = 1e-13  # of the larger of target and offset: what their difference has no digit below
_MANY = 20  # distinct whole numbers, from which on they are hardly classes
_log = logging.getLogger("bayes_sparse")


def target_of(table: Table, likelihood: str | Likelihood) -> tuple[FloatArray, NDArray[Any] | None, Likelihood]:
    """Target as numbers, class labels if it has any, and the likelihood; asks where two would be defensible."""
    y, name = table.y, table.target
    chosen = _without_doubt(y, name) if likelihood == "auto" else likelihoods.resolve(likelihood)
    if chosen.targets in ("two classes", "classes"):
        codes, classes = labels_of(y, name, several=chosen.targets == "classes")
        return codes, classes, chosen
    if y.dtype.kind not in "fiub":
        _refuse_labels(y, name, chosen)
    numbers = y.astype(float)
    check_size(numbers[:, None], [name], "target", squared=False)
    wrong = chosen.wrong(numbers)
    if wrong:
        raise ValueError(f"The likelihood {chosen.name!r} takes {wrong}; the target {name!r} holds other values.")
    if not chosen.scale_free and np.ptp(numbers) == 0:
        raise ValueError(f"The target {name!r} is constant (always {numbers[0]:g}): there is nothing to explain.")
    return numbers, None, chosen.counted(numbers) if isinstance(chosen, likelihoods.ordinal) else chosen


def _refuse_labels(y: NDArray[Any], name: str, likelihood: Likelihood) -> None:
    if is_time(y):
        raise ValueError(
            f"The target {name!r} holds dates or times: give a number, such as the days since the first one, "
            "(when - when.min()).dt.total_seconds() / 86400 of a pandas column."
        )
    cure = "make them numbers first (pandas.to_numeric)"
    if isinstance(likelihood, likelihoods.ordinal):
        cure = "give their places, 0 for the lowest, as the `cat.codes` of an ordered pandas column has them"
    raise ValueError(f"The target {name!r} holds labels, which the likelihood {likelihood.name!r} cannot take: {cure}.")


def check_offset(offset: FloatArray, y: FloatArray, likelihood: Likelihood) -> None:
    """Refuse an offset on another scale than the predictor's, and one beside which nothing is left of the target."""
    largest = float(np.abs(offset).max(initial=0.0))
    if likelihood.scale_free:
        if largest > _FARTHEST:
            raise ValueError(
                f"The offset holds values as large as {largest:.3g}, and {likelihood.name!r} takes it on "
                "the scale of its predictor, as logs: give np.log(exposure) in the place of an exposure."
            )
        return
    if largest > 0:
        check_size(offset[:, None], ["offset"], "column", squared=False)
    if np.ptp(y - offset) <= _DIGITS * max(largest, float(np.abs(y).max(initial=0.0))):
        raise ValueError(
            "The target less its offset is constant, or too small beside the offset to be told from rounding errors: "
            "there is nothing to explain."
        )


def _without_doubt(y: NDArray[Any], name: str) -> Likelihood:
    if is_time(y):
        _refuse_labels(y, name, likelihoods.normal())
    y = plain_labels(y)
    distinct = len(np.unique(y))
    if y.dtype.kind == "f" and distinct > 2:
        return likelihoods.normal()
    if y.dtype.kind != "f" and distinct <= 2:
        return likelihoods.bernoulli()
    if y.dtype.kind in "iu" and distinct > _MANY:
        _log.info(
            "The target %r holds whole numbers with %d values, and is taken as normal: likelihood='normal' says so "
            "without this message, 'poisson' and 'negative_binomial' are for counts, 'categorical' for classes.",
            name,
            distinct,
        )
        return likelihoods.normal()
    if y.dtype.kind in "iu":
        what = f"whole numbers with {distinct} values"
        say = (
            "'normal', 'poisson' or 'negative_binomial' for counts, 'ordinal' for levels, or 'categorical' for classes"
        )
    elif y.dtype.kind == "f":
        what, say = f"floats with {distinct} distinct values", "'bernoulli' or 'probit' for two classes, or 'normal'"
    else:
        what = f"{distinct} labels ({in_words(np.unique(y))})"
        say = "'categorical' (the model 'student_multinomial' is for it), or 'bernoulli' after merging them into two"
        if 2 * distinct > len(y):
            say += "; numbers written as words are made numbers by pandas.to_numeric"
    raise ValueError(f"The target {name!r} holds {what}, which can mean several things: say likelihood={say}.")
