"""Terms that other columns could stand for: what a stored fit knows of its exchanges, in names."""

from __future__ import annotations

import xarray as xr

from bayes_sparse.inference.claims import UNDECIDED

__all__ = ["alternative_sets", "in_a_sentence", "rivals"]

_SHOWN = 3  # sets in a sentence
_SAME = 1e-6  # nats: a column that loses less is the same, up to its unit


def rivals(evidence: xr.Dataset) -> dict[str, list[tuple[str, float]]]:
    """Of each term kept, by name, the columns left out that could stand in its place and the nats lost, best first.

    With several classes the same feature in another class is no rival: which class's weight carries it does not matter.
    """
    found: dict[str, list[tuple[str, float]]] = {}
    if "exchange_term" not in evidence:
        return found
    names = evidence["basis"].to_numpy()
    owner = evidence["of_column"].to_numpy() if "of_column" in evidence.coords else names
    term, rival = evidence["exchange_term"].to_numpy(), evidence["exchange_rival"].to_numpy()
    for own, other, loss in zip(term, rival, evidence["exchange_loss"].to_numpy().tolist(), strict=True):
        if owner[own] != owner[other]:
            found.setdefault(str(names[own]), []).append((str(names[other]), loss))
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
    """What to tell of the relevant ones; empty if there are none. Columns that are the same are told of elsewhere."""
    relevant = {str(name) for name in evidence["basis"].to_numpy()[evidence["relevant"].to_numpy()].tolist()}
    known = rivals(evidence)
    sets = [
        " or ".join(names)
        for term, names in alternative_sets(evidence).items()
        if term in relevant and abs(known[term][0][1]) > _SAME
    ]
    if not sets:
        return ""
    more = f" (and {len(sets) - _SHOWN} more sets)" if len(sets) > _SHOWN else ""
    return (
        f"The data do not decide between {'; nor between '.join(sets[:_SHOWN])}{more}: another in place of the first "
        f"loses less than {UNDECIDED:g} nats. See `rival` in bs.relevance(tree), and keep=[...] to decide yourself."
    )
