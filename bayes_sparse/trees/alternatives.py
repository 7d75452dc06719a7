"""Terms that other columns could stand for: what a stored fit knows of its exchanges, in names."""

from __future__ import annotations

import xarray as xr

from bayes_sparse.inference.claims import UNDECIDED

__all__ = ["alternative_sets", "in_a_sentence", "rivals"]

_SHOWN = 3  # sets in a sentence


def rivals(evidence: xr.Dataset) -> dict[str, list[tuple[str, float]]]:
    """Of each term kept, by name, the columns left out that could stand in its place and the nats lost, best first."""
    found: dict[str, list[tuple[str, float]]] = {}
    if "exchange_term" not in evidence:
        return found
    names = evidence["basis"].to_numpy()
    term, rival = (names[evidence[f"exchange_{which}"].to_numpy()].tolist() for which in ("term", "rival"))
    for own, other, loss in zip(term, rival, evidence["exchange_loss"].to_numpy().tolist(), strict=True):
        found.setdefault(str(own), []).append((str(other), loss))
    return found


def alternative_sets(evidence: xr.Dataset) -> dict[str, tuple[str, ...]]:
    """Terms that the data do not decide on, each with its rivals: itself first, then those within three nats."""
    sets = {}
    for term, others in rivals(evidence).items():
        near = tuple(other for other, loss in others if loss < UNDECIDED)
        if near:
            sets[term] = (term, *near)
    return sets


def in_a_sentence(evidence: xr.Dataset) -> str:
    """What to tell of them; empty if there are none."""
    sets = [" or ".join(names) for names in alternative_sets(evidence).values()]
    if not sets:
        return ""
    more = f" (and {len(sets) - _SHOWN} more sets)" if len(sets) > _SHOWN else ""
    return (
        f"The data do not decide between {'; nor between '.join(sets[:_SHOWN])}{more}: another in place of the first "
        f"loses less than {UNDECIDED:g} nats. See `rival` in bs.relevance(tree), and keep=[...] to decide yourself."
    )
