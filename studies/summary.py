"""The figures of a study as tables: long ones for files, short ones for people."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd

from studies.fold import FITS, OWN, RANKINGS, first_names
from studies.plan import Plan
from studies.results import Record, write_whole

__all__ = ["FIT_WORDS", "RANKING_WORDS", "curves", "differences", "fits", "shape_share", "write_summary"]

FIT_WORDS = {
    "student_t": "softmax, hyper=(1, 0.1) (default)",
    "cauchy": "softmax, hyper=(0.5, 0.005)",
    "flat": "softmax, hyper=(0, 0), the paper's",
    "one_vs_rest": "one against the rest, hyper=(1, 0.1)",
    "one_vs_rest_flat": "one against the rest, hyper=(0, 0)",
}
RANKING_WORDS = {
    "student_t": "evidence, hyper=(1, 0.1)",
    "student_t_strength": "evidence, hyper=(1, 0.1), by mean / sd",
    "cauchy": "evidence, hyper=(0.5, 0.005)",
    "cauchy_strength": "evidence, hyper=(0.5, 0.005), by mean / sd",
    "flat_strength": "evidence, hyper=(0, 0), by mean / sd",
    "mutual_information": "mutual information",
    "l1_svm": "1-norm SVM",
}
_COMPARED = (20, 80)  # numbers of features

type Results = list[dict[str, Record]]


def fits(results: Results) -> pd.DataFrame:
    """Every fit in every fold: error, log loss, number kept, how it ended."""
    names = ("error", "log_loss", "kept", "offered", "status", "iterations", "seconds")
    rows = [
        {"fit": fit, "fold": k + 1, **{name: done[f"fit-{fit}"][name] for name in names}}
        for k, done in enumerate(results)
        for fit in FITS
    ]
    return pd.DataFrame(rows)


def curves(plan: Plan, results: Results) -> pd.DataFrame:
    """Error and log loss of the plain classifier: source of the features, ranking, their number, fold."""
    rows = []
    for k, done in enumerate(results):
        for step, found in done.items():
            if not step.startswith("curve-"):
                continue
            _, source, ranking = step.split("-")
            for m, error, loss in zip(plan.counts, found["error"], found["log_loss"], strict=True):
                one = {"source": source, "ranking": ranking, "count": m, "fold": k + 1, "error": error}
                rows.append({**one, "log_loss": loss})
    return pd.DataFrame(rows)


def differences(table: pd.DataFrame) -> pd.DataFrame:
    """Error of each ranking by evidence less that of each other one, fold by fold: mean and standard error."""
    shapes = table[table["source"] == "shapes"].pivot_table(index=["count", "fold"], columns="ranking", values="error")
    rows = []
    for own in OWN:
        for rival in (name for name in RANKINGS if name not in OWN):
            gap = (shapes[own] - shapes[rival]).groupby("count").agg(["mean", "sem"])
            rows += [{"ranking": own, "rival": rival, "count": m, **row} for m, row in gap.to_dict("index").items()]
    return pd.DataFrame(rows)


def shape_share(plan: Plan, results: Results) -> pd.DataFrame:
    """How many of the first features of the pooled rankings are shape features; mean over folds."""
    rows = []
    for step in (name for name in results[0] if name.startswith("pooled-")):
        ranking = step.removeprefix("pooled-")
        orders = [first_names(done[step], ranking) for done in results]
        for m in plan.counts:
            shapes = [sum(not name.startswith("pixel") for name in order[:m]) for order in orders]
            rows.append({"ranking": ranking, "count": m, "shapes": float(np.mean(shapes))})
    return pd.DataFrame(rows)


def write_summary(plan: Plan, results: Results, output: Path) -> str:
    """Write curves.csv, fits.csv, results.json and summary.md into the folder of the problem.

    Returns
    -------
    str
        The summary.
    """
    folder = output / plan.name
    table, of_fits = curves(plan, results), fits(results)
    gaps, share = differences(table), shape_share(plan, results)
    write_whole(folder / "curves.csv", table.to_csv(index=False))
    write_whole(folder / "fits.csv", of_fits.to_csv(index=False))
    parts = {"fits": of_fits, "curves": table, "differences": gaps, "shape_share": share}
    everything = {"plan": asdict(plan)} | {name: part.to_dict("records") for name, part in parts.items()}
    write_whole(folder / "results.json", json.dumps(everything, indent=1))
    text = _in_words(plan, of_fits, table, gaps, share)
    write_whole(folder / "summary.md", text)
    return text


def _in_words(plan: Plan, of_fits: pd.DataFrame, table: pd.DataFrame, gaps: pd.DataFrame, share: pd.DataFrame) -> str:
    """The summary."""
    each = plan.digits // len(plan.classes)
    title = f"# Digits {', '.join(map(str, sorted(plan.classes)))}: {each} of each, {plan.folds} folds"
    blocks = [
        title,
        "Held-out error in %, mean over folds ± its standard error; log loss in nats.",
        _markdown(_fit_rows(of_fits)),
        "Error in % of the same plain classifier on the first features of each ranking:",
        *(f"{words}:\n\n{_markdown(rows)}" for words, rows in _curve_rows(table)),
        "Error of the ranking by evidence less the rival's, in percentage points (negative: evidence is better):",
        _markdown(_gap_rows(gaps)),
    ]
    if plan.pixels:
        blocks += [
            "Shape features among the first of the pooled ranking, mean over folds:",
            _markdown(_share_rows(share)),
        ]
    return "\n\n".join(blocks) + "\n"


def _fit_rows(of_fits: pd.DataFrame) -> list[dict[str, str]]:
    rows = []
    for name, part in of_fits.groupby("fit", sort=False):
        rows.append(
            {
                "fit": FIT_WORDS[str(name)],
                "error": _with_error(100 * part["error"]),
                "log loss": f"{part['log_loss'].mean():.3f}",
                "kept": f"{part['kept'].mean():.0f} of {part['offered'].iloc[0]}",
                "from - to": f"{part['kept'].min()} - {part['kept'].max()}",
                "seconds": f"{part['seconds'].mean():.1f}",
                "ended": ", ".join(f"{n} {word!s}" for word, n in part["status"].value_counts().items()),
            }
        )
    return rows


def _curve_rows(table: pd.DataFrame) -> list[tuple[str, list[dict[str, str]]]]:
    out = []
    for source, words in (("shapes", "Shape features"), ("pixels", "Pixels"), ("pooled", "Both pooled")):
        part = table[table["source"] == source]
        if part.empty:
            continue
        rows = []
        for name, own in part.groupby("ranking", sort=False):
            scores = {str(m): _with_error(100 * at["error"]) for m, at in own.groupby("count")}
            rows.append({"first features": RANKING_WORDS[str(name)], **scores})
        out.append((words, rows))
    return out


def _gap_rows(gaps: pd.DataFrame) -> list[dict[str, str]]:
    rows = []
    for pair, part in gaps.groupby(["ranking", "rival"], sort=False):
        own, rival = map(str, pair)
        at = part.set_index("count")
        shown = {str(m): f"{100 * at['mean'][m]:+.2f} ± {100 * at['sem'][m]:.2f}" for m in at.index if m in _COMPARED}
        rows.append({"ranking": RANKING_WORDS[own], "less": RANKING_WORDS[rival], **shown})
    return rows


def _share_rows(share: pd.DataFrame) -> list[dict[str, str]]:
    rows = []
    for name, part in share.groupby("ranking", sort=False):
        found = {f"of {m}": f"{n:.1f}" for m, n in zip(part["count"].to_list(), part["shapes"].to_list(), strict=True)}
        rows.append({"ranking": RANKING_WORDS[str(name)], **found})
    return rows


def _with_error(values: pd.Series) -> str:
    numbers = values.to_numpy(dtype=float)
    return f"{numbers.mean():.2f} ± {numbers.std(ddof=1) / np.sqrt(len(numbers)):.2f}"


def _markdown(rows: list[dict[str, str]]) -> str:
    heads = list(rows[0])
    lines = [heads, ["---"] * len(heads), *(list(row.values()) for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
