"""Which trees can be compared, and one row for each: what it keeps, agrees on, scores and costs."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from importlib import import_module
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import xarray as xr

from bayes_sparse.inference.claims import FALSE_FINDS, chance_of
from bayes_sparse.inputs.table import in_words
from bayes_sparse.results.comparison.held_out import HeldOut, log_scores
from bayes_sparse.results.comparison.marginals import Marginals, weight_names
from bayes_sparse.results.diagnose import diagnose
from bayes_sparse.results.log_evidence import log_evidence
from bayes_sparse.results.loo import loo
from bayes_sparse.trees.read import RUNGS, rung_of, stored, was_sampled

__all__ = [
    "agreement",
    "checked_trees",
    "chosen_reference",
    "diagnosed",
    "evidences",
    "loo_of",
    "relevant_terms",
    "score_columns",
    "summary_of",
]


def checked_trees(trees: Any) -> dict[str, xr.DataTree]:
    """The trees by name, refused where they are no trees, too few, or not of the same data."""
    if isinstance(trees, xr.DataTree):
        trees = _rungs(trees)
    if not isinstance(trees, Mapping):
        raise TypeError(f"compare takes trees by name, {{'fast': tree, 'nuts': other}}, not {type(trees).__name__}.")
    named = {str(name): tree for name, tree in trees.items()}
    for name, tree in named.items():
        whole = isinstance(tree, xr.DataTree) and "bayes_sparse" in tree.attrs
        if not whole or not {"evidence", "posterior"} & set(tree.children):
            raise TypeError(f"{name!r} is no tree from bayes_sparse.fit: it is a {type(tree).__name__} without a fit.")
    if len(named) < 2:
        raise ValueError(f"compare needs two trees or more, got {len(named)}: {in_words(named) or 'none'}.")
    seen = [name for name, tree in named.items() if stored(tree).observed is not None]
    for other in seen[1:]:
        _check_same_data(seen[0], named[seen[0]], other, named[other])
    return named


def _rungs(tree: xr.DataTree) -> dict[str, xr.DataTree]:
    """The trees of a ladder."""
    rungs = {str(name): child for name, child in tree.children.items() if "bayes_sparse" in child.attrs}
    if not rungs:
        raise TypeError("compare takes trees by name, {'fast': tree, 'nuts': other}; one tree has nothing beside it.")
    return rungs


def _check_same_data(first: str, tree: xr.DataTree, second: str, other: xr.DataTree) -> None:
    """Refuse trees of different targets or rows."""
    (name, y), (other_name, other_y) = (_observed(t, key) for t, key in ((tree, first), (other, second)))
    if name != other_name:
        raise ValueError(
            f"The trees have different targets: {first!r} is of {name!r}, {second!r} of {other_name!r}; compare fits "
            "of the same one."
        )
    if y.shape != other_y.shape:
        raise ValueError(
            f"The trees have different data: {first!r} has {len(y)} rows and {second!r} has {len(other_y)}; compare "
            "fits of the same rows."
        )
    values, others = y.to_numpy(), other_y.to_numpy()
    differ = (values != others).reshape(len(values), -1).any(axis=1)
    if differ.any():
        row = int(np.argmax(differ))
        label = y[y.dims[0]].to_numpy()[row] if y.dims[0] in y.coords else row
        raise ValueError(
            f"The trees have different data: they differ in {int(differ.sum())} of {len(values)} targets, first in row "
            f"{label} ({values[row]} in {first!r}, {others[row]} in {second!r}); compare fits of the same rows."
        )


def _observed(tree: xr.DataTree, key: str) -> tuple[str, xr.DataArray]:
    variables = tree["observed_data"].to_dataset().data_vars
    if len(variables) != 1:
        raise ValueError(f"The tree {key!r} has {len(variables)} observed variables; compare needs one in each.")
    name = next(iter(variables))
    return str(name), variables[name]


def chosen_reference(trees: dict[str, xr.DataTree], reference: str | None) -> str:
    """The tree asked for, or the most exact one: NUTS of everything before NUTS at alpha* before the others."""
    if reference is None:
        return max(trees, key=lambda name: RUNGS.index(rung_of(trees[name])))
    if reference not in trees:
        raise ValueError(f"There is no tree {reference!r} to be the reference; there are {in_words(trees)}.")
    return reference


def relevant_terms(trees: dict[str, xr.DataTree], aligned: dict[str, Marginals], terms: int) -> pd.DataFrame:
    """A row per term, a column per tree: whether it is relevant, by what `bs.relevance` calls so.

    Where NUTS sampled everything it is judged by (mean / sd)^2, among so many ``terms``. One-step methods choose among
    directions and have no column: no weight of theirs is relevant or not.
    """
    columns = {}
    for name, own in aligned.items():
        if stored(trees[name]).by_direction:
            continue
        evidence = trees[name]["evidence"].to_dataset() if "evidence" in trees[name].children else xr.Dataset()
        if "kept" in evidence:
            known = dict(zip(weight_names(trees[name]), evidence["relevant"].to_numpy().tolist(), strict=True))
            columns[name] = np.array([known.get(str(term), False) for term in own.names[own.weight]], dtype=bool)
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                score = np.where(own.sd > 0, (own.mean / own.sd) ** 2, 0.0)
            columns[name] = (chance_of(score, terms) <= FALSE_FINDS)[own.weight]
    first = next(iter(aligned.values()))
    return pd.DataFrame(columns, index=pd.Index(first.names[first.weight], name="parameter"))


def agreement(relevant: pd.DataFrame, aligned: dict[str, Marginals], terms: int) -> pd.DataFrame:
    """A row per pair of trees, NaN where one of them calls no term relevant or not; of ``terms`` to choose among."""
    rows: dict[tuple[str, str], dict[str, float]] = {}
    for first, second in combinations(aligned, 2):
        row = dict.fromkeys(("both", "only_first", "only_second", "neither", "jaccard", "kappa"), float("nan"))
        if first in relevant and second in relevant:
            a, b = relevant[first].to_numpy(), relevant[second].to_numpy()
            both, either = int(np.sum(a & b)), int(np.sum(a | b))
            row = {
                "both": both,
                "only_first": int(np.sum(a & ~b)),
                "only_second": int(np.sum(b & ~a)),
                "neither": terms - either,
                "jaccard": both / either if either else 1.0,
                "kappa": _kappa(both, int(a.sum()), int(b.sum()), terms),
            }
        rows[first, second] = row | {"rank_correlation": _rank_correlation(aligned[first], aligned[second])}
    index = pd.MultiIndex.from_arrays([[a for a, _ in rows], [b for _, b in rows]], names=["first", "second"])
    return pd.DataFrame(list(rows.values()), index=index)


def _kappa(both: int, first: int, second: int, terms: int) -> float:
    """Cohen's kappa: agreement beyond what two such numbers of terms would have by chance."""
    if not terms:
        return 1.0
    observed = (terms - first - second + 2 * both) / terms
    chance = (first * second + (terms - first) * (terms - second)) / terms**2
    return 1.0 if chance == 1 else (observed - chance) / (1 - chance)


def _rank_correlation(first: Marginals, second: Marginals) -> float:
    """Of |mean| / sd, pruned terms last; NaN for a plug-in, which has no sd."""
    strengths = []
    for own in (first, second):
        mean, sd = own.mean[own.weight], own.sd[own.weight]
        strengths.append(np.divide(np.abs(mean), sd, out=np.zeros_like(mean), where=sd > 0))
    a, b = strengths
    if len(a) < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    from scipy.stats import spearmanr  # here because it takes longer to import than a fit takes

    return float(spearmanr(a, b).statistic)


def summary_of(
    trees: dict[str, xr.DataTree],
    reference: str,
    aligned: dict[str, Marginals],
    parameters: pd.DataFrame,
    relevant: pd.DataFrame,
) -> pd.DataFrame:
    """Kind, terms, distances and speed."""
    base, rows = stored(trees[reference]).seconds, {}
    for name, tree in trees.items():
        own, seconds = aligned.get(name), stored(tree).seconds
        row: dict[str, Any] = {"kind": stored(tree).kind}
        if own is not None:
            row["terms_kept"] = int(np.sum(own.kept & own.weight))
            row["relevant_terms"] = int(relevant[name].sum()) if name in relevant else pd.NA
            row |= _distances(parameters, name)
        effective = own.effective if own is not None else np.nan
        row |= {
            "seconds": seconds,
            "effective_draws": effective,
            "effective_draws_a_second": effective / seconds if seconds > 0 else np.nan,
            "speed_up": base / seconds if seconds > 0 else np.nan,
        }
        rows[name] = row
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("tree")
    for column in ("terms_kept", "relevant_terms"):
        table[column] = table[column].astype("Int64")
    return table


def _distances(parameters: pd.DataFrame, name: str) -> dict[str, float]:
    """Largest and median distances over the parameters; NaN for the reference itself."""
    if name not in parameters.index.get_level_values("tree"):
        return dict.fromkeys(
            ("largest_difference", "median_difference", "median_sd_ratio", "median_overlap"), float("nan")
        )
    own = parameters.xs(name, level="tree")
    size = own["difference"].abs()
    both = ((own["sd"] > 0) | (own["mean"] != 0)) & (own["reference_sd"] > 0)
    return {
        "largest_difference": float(size.max()),
        "median_difference": float(size.median()),
        "median_sd_ratio": float(own.loc[both, "sd_ratio"].median()),
        "median_overlap": float(own["overlap"].median()),
    }


def evidences(trees: dict[str, xr.DataTree], notes: list[str]) -> pd.DataFrame:
    """Log evidence of each tree, and of what it is the evidence."""
    rows = {}
    for name, tree in trees.items():
        row: dict[str, Any] = {"log_evidence": np.nan, "log_evidence_se": np.nan}
        row |= {"log_evidence_kind": "none", "log_evidence_given": ""}
        try:
            found = log_evidence(tree)
        except ValueError as reason:
            notes.append(f"{name!r}: {reason}")
        else:
            row |= {"log_evidence": found.value, "log_evidence_se": found.se}
            row |= {"log_evidence_kind": found.kind, "log_evidence_given": found.conditional_on}
        rows[name] = row
    return pd.DataFrame.from_dict(rows, orient="index")


def loo_of(
    trees: dict[str, xr.DataTree], loos: dict[str, Any], notes: list[str]
) -> tuple[pd.DataFrame | None, pd.DataFrame]:
    """ArviZ's comparison, if two trees have what it needs, and the elpd of each."""
    found: dict[str, Any] = {}
    for name, tree in trees.items():
        if "log_likelihood" not in tree.children:
            notes.append(f"{name!r} has no pointwise log-likelihood and is left out of loo.")
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of large Pareto k, said below
            try:
                found[name] = loos[name] if name in loos else loo(tree, pointwise=True)
            except ValueError as reason:
                notes.append(f"{name!r} is left out of loo: {reason}")
    weak = [name for name, one in found.items() if one.warning]
    if weak:
        notes.append(f"The loo of {in_words(weak)} rests on rows with large Pareto k, and is rough.")
    kind = [name for name, one in found.items() if hasattr(one, "caveat")]
    if kind:
        notes.append(
            f"The loo of {in_words(kind)} is too high: the terms and hyper-parameters were found with every row; "
            "bs.kfold finds them anew without the rows that it scores."
        )
    none = {"elpd_loo": np.nan, "elpd_loo_se": np.nan}
    elpd = {name: {"elpd_loo": found[name].elpd, "elpd_loo_se": found[name].se} for name in found}
    columns = pd.DataFrame.from_dict({name: elpd.get(name, none) for name in trees}, orient="index")
    if len(found) < 2:
        return None, columns
    stats: Any = import_module("arviz_stats")  # takes most of a second, and fitting does not need it
    with warnings.catch_warnings(), np.errstate(all="ignore"):  # rows of density zero to all digits have no weight
        warnings.simplefilter("ignore", UserWarning)
        return stats.compare(found, round_to="none"), columns


def score_columns(
    trees: dict[str, xr.DataTree], reference: str, rows: HeldOut | None, notes: list[str]
) -> pd.DataFrame:
    """Mean log predictive density of the rows held out, and row by row its distance from the reference's."""
    if rows is None:
        return pd.DataFrame(index=list(trees))
    scores = {name: log_scores(stored(tree), rows) for name, tree in trees.items()}
    notes.append(f"Held-out log scores are means over {len(rows.y)} rows, in nats per row.")
    table = {}
    for name, own in scores.items():
        gap = own - scores[reference]
        table[name] = {
            "log_score": own.mean(),
            "log_score_se": _error(own),
            "log_score_difference": gap.mean(),
            "log_score_difference_se": _error(gap),
        }
    return pd.DataFrame.from_dict(table, orient="index")


def _error(values: Any) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def diagnosed(tree: xr.DataTree, model: pm.Model | None = None, notes: list[str] | None = None) -> Any:
    """What `diagnose` says of a tree; None where it has no draws to look at, with a note if it is the reference."""
    why: list[str] = [] if notes is None else notes
    if "posterior" not in tree.children:
        why.append("The reference has no draws, so that it cannot be checked itself.")
        return None
    try:
        return diagnose(tree, None if was_sampled(tree) else model)
    except ValueError as reason:
        why.append(f"The reference ({stored(tree).kind}) could not be checked: {reason}")
        return None
