"""The same fit under several hyper-priors: what depends on the choice, and what does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bayes_sparse.common.printed import Grid, Shown, estimate, figure
from bayes_sparse.common.progress import FitProgress, quiet
from bayes_sparse.common.statuses import Status
from bayes_sparse.fitting.choices import checked_hyper, choose, choose_model
from bayes_sparse.fitting.fit import fit
from bayes_sparse.inputs.rows import read_rows
from bayes_sparse.inputs.table import in_words, plain_labels
from bayes_sparse.methods.nuts import NUTS
from bayes_sparse.models import Declared
from bayes_sparse.results.comparison.marginals import Marginals, aligned_marginals
from bayes_sparse.results.comparison.summary import relevant_terms
from bayes_sparse.results.diagnose import diagnose
from bayes_sparse.results.log_evidence import log_evidence
from bayes_sparse.results.predict.predict import predict
from bayes_sparse.trees.read import stored, was_sampled

__all__ = ["Sensitivity", "changes", "sensitivity", "summary_of_changes", "verdict_of_changes"]


def changes(aligned: dict[str, Marginals]) -> pd.DataFrame:
    """A row per parameter and setting; changes are in sds of the first setting's posterior."""
    base = next(iter(aligned.values()))
    parts = []
    for own in aligned.values():
        unit = np.where(base.sd > 0, base.sd, own.sd)
        moved = np.divide(own.mean - base.mean, unit, out=np.zeros_like(unit), where=~(unit == 0))
        columns = {"mean": own.mean, "sd": own.sd, "mcse": own.mcse, "kept": own.kept, "change": moved}
        parts.append(pd.DataFrame(columns, index=pd.Index(own.names, name="parameter")))
    table = pd.concat(parts, keys=list(aligned), names=["setting"]).swaplevel()
    order = np.argsort(np.tile(np.arange(len(base.names)), len(parts)), kind="stable")
    table = table.iloc[order]
    return table[table["mean"].notna() & table["change"].notna()]


def summary_of_changes(
    settings: list[str],
    trees: dict[str, xr.DataTree],
    failed: Mapping[str, Exception],
    parameters: pd.DataFrame,
    relevant: pd.DataFrame,
    fitted: dict[str, float],
) -> pd.DataFrame:
    """A row per setting, also of those that failed."""
    rows: dict[str, dict[str, Any]] = {}
    for label in settings:
        if label in failed:
            rows[label] = {"status": f"failed: {failed[label]}"}
            continue
        own = parameters.xs(label, level="setting")
        weights = own.loc[own.index.intersection(relevant.index)]
        size = own["change"].abs()
        rows[label] = {
            "status": _status(trees[label]),
            "terms_kept": int(((weights["sd"] > 0) | (weights["mean"] != 0)).sum()),
            "relevant_terms": int(relevant[label].sum()) if label in relevant else pd.NA,
            **_evidence(trees[label]),
            "largest_change": float(size.max()),
            "changed_most": str(size.idxmax()) if size.max() > 0 else "",
            "fitted_change": fitted[label],
            "seconds": stored(trees[label]).seconds,
        }
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("setting")
    for column in ("terms_kept", "relevant_terms"):
        table[column] = table[column].astype("Int64")
    return table


def _status(tree: xr.DataTree) -> str:
    if not was_sampled(tree):
        return str(tree["evidence"].attrs["status"])
    found = diagnose(tree)
    return str(Status.CONVERGED) if found.trusted else f"not converged: {found.verdict}"


def _evidence(tree: xr.DataTree) -> dict[str, Any]:
    try:
        found = log_evidence(tree)
    except ValueError:  # NUTS of everything has none
        return {"log_evidence": np.nan, "log_evidence_kind": "none"}
    return {"log_evidence": found.value, "log_evidence_kind": found.kind}


def verdict_of_changes(summary: pd.DataFrame, parameters: pd.DataFrame, relevant: pd.DataFrame) -> tuple[str, ...]:
    """Which terms come and go, and how far the others move."""
    fitted = list(summary.index[~summary["status"].str.startswith("failed")])
    sentences = [f"{len(fitted)} settings, measured against {fitted[0]}."]
    if len(fitted) > 1:
        sentences += [_terms(relevant)] if relevant.shape[1] else []
        sentences.append(_moves(parameters, summary.loc[fitted]))
    failed = summary.index[summary["status"].str.startswith("failed")]
    if len(failed):
        sentences.append(f"Not fitted: {in_words(failed, quote=False)}; the status says why.")
    wrong = summary.loc[fitted, "status"]
    wrong = wrong[~wrong.isin([status for status in Status if status.level == "good"])]
    if len(wrong):
        sentences.append(f"To be read with care, for their status says why: {in_words(wrong.index, quote=False)}.")
    if summary["log_evidence"].notna().sum() > 1:
        sentences.append(
            "Each log evidence is at its setting's own hyper-parameters, which a flatter prior leaves freer: no ground "
            "to choose by."
        )
    return tuple(sentences)


def _terms(relevant: pd.DataFrame) -> str:
    votes = relevant.sum(axis=1)
    always, sometimes = votes.index[votes == relevant.shape[1]], votes.index[(votes > 0) & (votes < relevant.shape[1])]
    if not len(sometimes):
        if len(always) < 2:
            return f"{'One term, the same, is' if len(always) else 'No term is'} relevant under all of them."
        return f"The same {len(always)} terms are relevant under all of them."
    shown = [f"{term} ({int(votes[term])} of {relevant.shape[1]})" for term in sometimes]
    return f"{len(always)} terms are relevant under all; these come and go: {in_words(shown, quote=False)}."


def _moves(parameters: pd.DataFrame, summary: pd.DataFrame) -> str:
    """The largest change, with its Monte-Carlo error, and that of what is fitted."""
    size = parameters["change"].abs()
    parameter, setting = list(parameters.index)[int(np.argmax(size))]
    said = f"No mean changes by more than {size.max():.2g} posterior sds" + (
        f" ({parameter} under {setting})" if size.max() > 0 else ""
    )
    noise = (parameters["mcse"] / parameters["sd"].where(parameters["sd"] > 0)).max()
    if noise > 0:
        said += f", where means have Monte-Carlo errors of up to {noise:.2g} sds"
    return f"{said}; what is fitted to the training rows changes by at most {summary['fitted_change'].max():.2g}."


_HEADINGS = {
    "terms_kept": "kept",
    "relevant_terms": "relevant",
    "log_evidence": "log evidence",
    "largest_change": "largest change (sds)",
    "changed_most": "of",
    "fitted_change": "change of the fit",
}
_FACTORS = (1.0, 0.1, 10.0)  # of the rate b, where no settings are given
_OF_DATA: dict[str, Any] = {
    "target": None,
    "weights": None,
    "offset": None,
    "missing": "refuse",
    "formula": None,
}  # of `fit`
_OF_FIT = frozenset(signature(fit).parameters) - {"settings"}


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity(Shown):
    """The same fit under several hyper-priors, beside the first of them that could be fitted.

    Attributes
    ----------
    trees : dict of xarray.DataTree
        Fits by setting, "(0.5, 0.005)"; those that failed are not there. `compare` takes them as they are.
    parameters : DataFrame
        A row per parameter and setting: mean, sd, mcse (the Monte-Carlo error of the mean), kept, and change, the
        difference of its mean from that of the first setting in units of the first one's posterior sd (of its own,
        where the first has pruned it).
    summary : DataFrame
        A row per setting: status, terms_kept, relevant_terms, log_evidence and its kind, largest_change and
        changed_most, the parameter it is of, fitted_change, the largest change of a fitted probability or mean at the
        training rows, seconds.
    relevant : DataFrame
        A row per term, a column per setting: whether it is relevant (kept, and not likely to be chance), as
        `bs.relevance` has it. One-step methods choose among directions, not weights, and have no column.
    sentences, verdict : tuple of str, str
        In plain words, one by one and all together.
    """

    trees: dict[str, xr.DataTree]
    parameters: pd.DataFrame
    summary: pd.DataFrame
    relevant: pd.DataFrame
    sentences: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """All sentences."""
        return " ".join(self.sentences)

    def _parts(self) -> list[Grid | str]:
        shown = self.summary.drop(columns="log_evidence_kind").dropna(axis=1, how="all")
        if "log_evidence" in shown:
            shown["log_evidence"] = [estimate(value) for value in shown["log_evidence"]]
        rows = [(label, *map(_short, values)) for label, *values in shown.itertuples()]
        return [Grid(rows, ("setting", *(_HEADINGS.get(c, c) for c in shown.columns))), "\n".join(self.sentences)]


def _short(value: Any) -> str:
    if isinstance(value, float):
        return figure(value)
    return "" if value is pd.NA else str(value)


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
    aligned, terms = aligned_marginals(trees)
    relevant = relevant_terms(trees, aligned, terms)
    parameters = changes(aligned)
    fitted = _fitted_changes(trees, model, data, fit_arguments)
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
    given = {name: value for name, value in arguments.items() if name not in _OF_FIT}
    chosen, chosen_method = choose(model, method, arguments.get("likelihood", "auto"), given)
    sampler = chosen_method if isinstance(chosen_method, NUTS) else None
    if sampler is not None and isinstance(chosen, Declared) and not sampler.condition:
        raise ValueError("A pm.Model of your own declares its own prior, and NUTS samples that: there is none to vary.")
    if "bounds" in arguments and sampler is None:
        raise ValueError("The bounds of lambda matter to NUTS alone: give method='nuts'.")


def _fitted_changes(
    trees: dict[str, xr.DataTree], model: Any, data: Any, arguments: dict[str, Any]
) -> dict[str, float]:
    """Largest change of a fitted probability or mean at the training rows, against the first tree."""
    chosen = choose_model(model)
    if isinstance(chosen, Declared):
        rows, given = None, {"model": chosen.model}
    else:
        rows = read_rows(data, **{name: arguments.get(name, default) for name, default in _OF_DATA.items()})
        given = {"offset": rows.offset}
    X = None if rows is None else rows.features(np.unique(plain_labels(rows.y)))
    with quiet():
        found = [predict(tree, X, **given) for tree in trees.values()]
    values = [own["probability" if "probability" in own else "mean"].to_numpy() for own in found]
    return {name: float(np.max(np.abs(own - values[0]))) for name, own in zip(trees, values, strict=True)}
