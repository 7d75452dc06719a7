"""A Bambi model: the `pm.Model` that it builds, and which terms of its formula are to be sparse.

Bambi is not imported here, and a model of it is told by the name of its class: who has one has imported it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeGuard

import pymc as pm

__all__ = ["BambiModel", "built", "column_means", "graph_of", "is_bambi", "of_rows", "sparse_terms"]

_SMOOTHS = ("BSpline", "HSGP")  # bs(...) and hsgp(...), by the class behind the function
_NORMAL = ("Normal", "Flat")  # priors that a precision to be found can stand in for


class BambiModel(Protocol):
    """What is asked of a `bambi.Model`."""

    built: bool
    backend: Any
    center_predictors: bool

    @property
    def conditional_parameters(self) -> dict[str, Any]:
        """Its linear predictors, by the parameter of the likelihood that they are of."""

    @property
    def response_term(self) -> Any:
        """What is observed."""

    def build(self) -> None:
        """Build the `pm.Model`."""


def is_bambi(model: object) -> TypeGuard[BambiModel]:
    """Whether it is a `bambi.Model`."""
    return any((kind.__module__, kind.__name__) == ("bambi.models", "Model") for kind in type(model).__mro__)


def graph_of(model: pm.Model | BambiModel) -> pm.Model:
    """The `pm.Model` itself, or the one behind a Bambi model."""
    return model if isinstance(model, pm.Model) else built(model)


def built(model: BambiModel) -> pm.Model:
    """The `pm.Model` behind a Bambi model, which is built if it is not yet."""
    if not model.built:
        model.build()
    made: pm.Model = model.backend.model
    return made


def sparse_terms(
    model: BambiModel, names: str | Sequence[str] | None = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Variables with a precision for each weight, and those with one for all of their weights.

    Parameters
    ----------
    model : bambi.Model
        It need not be built.
    names : str or sequence of str, optional
        The terms that are to be sparse. None for the slopes at population level, of every component, that have a
        normal prior; smooths are not among them.

    Returns
    -------
    alone, grouped : tuple of str
        A term of several columns is a question of its own, and so has one precision.
    """
    slopes = {
        _name(term): term for part in model.conditional_parameters.values() for term in part.common_terms.values()
    }
    if names is None:
        names = [name for name, term in slopes.items() if term.prior.name in _NORMAL and not _is_smooth(term)]
    asked = [names] if isinstance(names, str) else names
    whole = [name for name in asked if name in slopes and _has_several(slopes[name], model)]
    return tuple(name for name in asked if name not in whole), tuple(whole)


def column_means(model: BambiModel) -> dict[str, dict[str, list[float]]]:
    """Of each intercept in the graph: the means that its columns were centred by, under the term they belong to.

    Bambi centres the columns of a component that has an intercept, and reports the intercept of the columns as they
    are.
    """
    if not model.center_predictors:
        return {}
    return {
        _name(component.intercept_term): {
            _name(term): term.data.reshape(len(term.data), -1).mean(axis=0).tolist()
            for term in component.common_terms.values()
        }
        for component in model.conditional_parameters.values()
        if component.intercept_term is not None and component.common_terms
    }


def of_rows(model: BambiModel) -> tuple[str, ...]:
    """The likelihood's parameters that have a value for each row, which Bambi does not store but predicts."""
    return tuple(_name(component) for component in model.conditional_parameters.values())


def _has_several(term: Any, model: BambiModel) -> bool:
    """Whether a term has several columns, or a weight for each level of the response but one."""
    return bool(model.response_term.coords) or (term.data.ndim == 2 and term.data.shape[1] > 1)


def _name(term: Any) -> str:
    """Of a term or of a component, as the graph has it."""
    return str(term.alias or term.name)


def _is_smooth(term: Any) -> bool:
    """Whether a spline is in it, alone or in an interaction."""
    calls = [part.call for part in term.term.components if hasattr(part, "call")]
    return any(type(call.stateful_transform).__name__ in _SMOOTHS for call in calls)
