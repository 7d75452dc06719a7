"""The same fit under several hyper-priors: what depends on the choice, and what does not."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bayes_sparse.common.progress import FitProgress, quiet
from bayes_sparse.fitting.choices import check_choices, checked_hyper, choose_method, choose_model, with_settings
from bayes_sparse.fitting.fit import fit
from bayes_sparse.inputs.frames import is_frame
from bayes_sparse.methods.nuts import NUTS
from bayes_sparse.models import Declared
from bayes_sparse.problem.design import FloatArray
from bayes_sparse.refits.changes import changes, summary_of_changes, verdict_of_changes
from bayes_sparse.results.comparison.agreement import relevant_terms
from bayes_sparse.results.comparison.marginals import aligned_marginals
from bayes_sparse.results.predict.predict import predict

__all__ = ["Sensitivity", "sensitivity"]

_FACTORS = (1.0, 0.1, 10.0)  # of the rate b, where no settings are given
_LIMITS = ("max_iterations", "tolerance")
_OF_FIT = frozenset(signature(fit).parameters) - {"settings", *_LIMITS}


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity:
    """The same fit under several hyper-priors, beside the first of them that could be fitted.

    Attributes
    ----------
    trees : dict of xarray.DataTree
        Fits by setting, "(0.5, 0.005)"; those that failed are not there. `compare` takes them as they are.
    parameters : DataFrame
        A row a parameter and setting: mean, sd, mcse (the Monte-Carlo error of the mean), kept, and change, the
        difference of its mean from that of the first setting in units of the first one's posterior sd (of its own,
        where the first has pruned it).
    summary : DataFrame
        A row a setting: status, terms_kept, relevant_terms, log_evidence and its kind, largest_change and
        changed_most, the parameter it is of, fitted_change, the largest change of a fitted probability or mean at the
        training rows, seconds.
    relevant : DataFrame
        A row a term, a column a setting: whether it is relevant (kept; where the fit cannot prune, abs(mean) / sd > 2).
    verdict : str
        In plain words.
    """

    trees: dict[str, xr.DataTree]
    parameters: pd.DataFrame
    summary: pd.DataFrame
    relevant: pd.DataFrame
    verdict: str

    def __str__(self) -> str:
        said = textwrap.fill(self.verdict, 110, break_on_hyphens=False)
        return f"{said}\n\n{self.summary.to_string(float_format='{:.4g}'.format)}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self.verdict)}</p>{self.summary.to_html(float_format='{:.4g}'.format)}"


def sensitivity(
    model: str | Any,
    data: Any = None,
    hyper: Sequence[tuple[float, float] | None] | None = None,
    *,
    bounds: Sequence[tuple[float, float]] | None = None,
    method: str | Any = "evidence",
    progressbar: bool = True,
    **fit_arguments: Any,
) -> Sensitivity:
    """Fit the same model under several hyper-priors.

    Parameters
    ----------
    model : str, model object or pymc.Model
        As `fit` takes it.
    data : tuple, DataFrame, Dataset or dict
        As `fit` takes it.
    hyper : sequence of (float, float), optional
        Settings (a, b) of the Gamma prior on precisions, the first of which the others are compared with; None among
        them stands for what `fit` does by itself. Left out: the model's own, and ten times smaller and larger b.
    bounds : sequence of (float, float), optional
        Instead, for ``"jeffreys_laplace"`` with ``method="nuts"``: bounds of lambda.
    method : str or method object
        As `fit` takes it; ``"evidence"`` is ``"mackay"`` where b > 0.
    progressbar : bool
        Show which setting is being fitted.
    **fit_arguments
        Anything else that `fit` takes.

    Returns
    -------
    Sensitivity

    Notes
    -----
    A setting that `fit` refuses is refused before anything is fitted. One that fails on the way has the reason as its
    status. As b goes to zero the prior's spike at zero grows like log(1/b), so that no result is free of b.
    """
    settings = _settings(choose_model(model), hyper, bounds)
    for setting in settings.values():
        _check(model, method, {**fit_arguments, **setting})
    trees: dict[str, xr.DataTree] = {}
    failed: dict[str, Exception] = {}
    with FitProgress("Sensitivity", progressbar) as progress:
        for i, (label, setting) in enumerate(settings.items()):
            progress.say(f"Sensitivity: {label}, {i + 1} of {len(settings)}")
            try:
                with quiet():
                    trees[label] = fit(model, data, method=method, progressbar=False, **fit_arguments, **setting)
            except (ValueError, ArithmeticError, RuntimeError) as problem:  # one setting's; said in its row
                failed[label] = problem
    if not trees:
        raise next(iter(failed.values()))
    aligned, _ = aligned_marginals(trees)
    relevant = relevant_terms(trees, aligned)
    parameters = changes(aligned, relevant)
    fitted = _fitted_changes(trees, model, data)
    summary = summary_of_changes(list(settings), trees, failed, parameters, relevant, fitted)
    return Sensitivity(trees, parameters, summary, relevant, verdict_of_changes(summary, parameters, relevant))


def _settings(
    model: Any, hyper: Sequence[tuple[float, float] | None] | None, bounds: Sequence[tuple[float, float]] | None
) -> dict[str, dict[str, Any]]:
    """Arguments of `fit` by the label of each setting."""
    if hyper is not None and bounds is not None:
        raise ValueError("Give settings of `hyper` or of `bounds`, not of both: a model has one or the other.")
    if bounds is not None:
        pairs: list[tuple[str, Any, str]] = [("bounds", pair, _label(pair, "[]")) for pair in _listed("bounds", bounds)]
    else:
        chosen = _defaults(model) if hyper is None else _listed("hyper", hyper)
        pairs = [("hyper", checked_hyper(pair), "default" if pair is None else _label(pair, "()")) for pair in chosen]
    settings = {label: {name: pair} for name, pair, label in pairs}
    if len(settings) < max(len(pairs), 2):
        what = "two settings or more" if len(pairs) < 2 else "every setting once"
        raise ValueError(f"sensitivity needs {what}; got {', '.join(label for _, _, label in pairs) or 'none'}.")
    return settings


def _defaults(model: Any) -> list[tuple[float, float]]:
    if model.proper_hyper is None:
        raise ValueError("This model has no Gamma prior on precisions: give settings of `bounds` and method='nuts'.")
    a, b = model.proper_hyper
    return [(a, factor * b) for factor in _FACTORS]


def _listed(name: str, values: Any) -> list[Any]:
    if (
        not isinstance(values, Sequence)
        or isinstance(values, str)
        or any(np.ndim(v) == 0 and v is not None for v in values)
    ):
        raise ValueError(f"`{name}` is a list of pairs, [(0.5, 0.005), (0.5, 0.05)], got {values!r}.")
    return list(values)


def _label(pair: Any, brackets: str) -> str:
    try:
        first, second = (float(value) for value in pair)
    except (TypeError, ValueError):
        raise ValueError(f"A setting is a pair of numbers, got {pair!r}.") from None
    return f"{brackets[0]}{first:g}, {second:g}{brackets[1]}"


def _check(model: Any, method: Any, arguments: dict[str, Any]) -> None:
    """What `fit` refuses before it looks at the data."""
    hyper = checked_hyper(arguments.get("hyper"))
    given = {name: value for name, value in arguments.items() if name not in _OF_FIT and name not in _LIMITS}
    limits = {name: arguments.get(name) for name in _LIMITS}
    chosen = choose_model(model)
    chosen, chosen_method = with_settings(
        chosen, choose_method(method, chosen, hyper, arguments.get("likelihood", "auto")), given, limits
    )
    check_choices(chosen, chosen_method, hyper)
    sampled = isinstance(chosen_method, NUTS)
    if sampled and isinstance(chosen, Declared) and not chosen_method.condition:
        raise ValueError("A pm.Model of your own declares its own prior, and NUTS samples that: there is none to vary.")
    if "bounds" in arguments and not sampled:
        raise ValueError("The bounds of lambda matter to NUTS alone: give method='nuts'.")


def _fitted_changes(trees: dict[str, xr.DataTree], model: Any, data: Any) -> dict[str, float]:
    """Largest change of a fitted probability or mean at the training rows, against the first tree."""
    with quiet():
        values = [_fitted(tree, model, data) for tree in trees.values()]
    return {name: float(np.max(np.abs(own - values[0]))) for name, own in zip(trees, values, strict=True)}


def _fitted(tree: xr.DataTree, model: Any, data: Any) -> FloatArray:
    chosen = choose_model(model)
    if isinstance(chosen, Declared):
        predicted = predict(tree, model=chosen.model)
    else:
        constant = tree["constant_data"].to_dataset()
        offset = constant["offset"].to_numpy() if "offset" in constant else None
        predicted = predict(tree, data if is_frame(data) else data[0], offset=offset)
    return np.asarray(predicted["probability" if "probability" in predicted else "mean"].to_numpy())
