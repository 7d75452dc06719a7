"""What is wrong with a tree that was changed, or whose file was cut short: said in a sentence, not by a traceback."""

from __future__ import annotations

import json
import sysconfig
import traceback
from collections.abc import Callable
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any, cast

import numpy as np
import xarray as xr

from bayes_sparse.common.statuses import Status
from bayes_sparse.common.threads import few_threads
from bayes_sparse.inputs.likelihoods import from_settings

__all__ = ["check_moments", "reads_a_fit", "settings_of"]

_MOMENTS = ("coordinate_mean", "covariance_factor")
_WRITTEN = {"column", *_MOMENTS, "theta", "log_evidence", "mean", "sd", "relevant", "history"}
_TOLD = {"method", "approximation", "status"}
_NAMED = {"likelihood": dict, "basis": dict, "columns": list, "vectors": dict}
_CURE = "it was changed or cut short on the way, so take another copy or fit again"
_SHOWN = 120  # characters of an error that is not ours
_PACKAGE = str(Path(__file__).parents[1])
_LIBRARIES = tuple({path for name, path in sysconfig.get_paths().items() if name.endswith("lib")})
_PASSED_ON = (ImportError, OSError, MemoryError, Warning)


def reads_a_fit[F: Callable[..., Any]](function: F) -> F:
    """Refuse what is no tree, and say of a damaged one what it lacks; a function of several refuses by itself."""
    name, first = function.__name__, next(iter(signature(function).parameters.values()))
    one = first.name == "tree"

    @wraps(function)
    def call(tree: Any = None, *args: Any, **kwargs: Any) -> Any:
        if one and not isinstance(tree, xr.DataTree) and (tree is not None or first.default is not None):
            raise TypeError(f"{name} takes a tree from bayes_sparse.fit, not one of type {type(tree).__name__}.")
        try:
            with few_threads(_numbers(tree)):
                return function(tree, *args, **kwargs)
        except Exception as error:
            trees = tree.values() if isinstance(tree, dict) else [tree]
            trees = [own for own in trees if isinstance(own, xr.DataTree)]
            if not trees or not _is_foreign(error):
                raise
            wrong = next(filter(None, map(_damage, trees)), None)
            if wrong:
                raise ValueError(f"{name} cannot read this tree, for {wrong}; {_CURE}.") from error
            said = " ".join(f"{type(error).__name__}: {error}".split())[:_SHOWN].partition(". ")[0].rstrip(".")
            raise ValueError(
                f"{name} cannot read this tree ({said}): if it was changed on the way, take another copy or fit again, "
                "and if it is as fit wrote it, this is a fault of bayes_sparse, so please report it."
            ) from error

    return cast("F", call)


def _numbers(tree: Any) -> int:
    """Of the design that was fitted, so that what follows a fit has as many threads as the fit; of several trees 0."""
    if not isinstance(tree, xr.DataTree) or not {"evidence", "observed_data"} <= set(tree.children):
        return 0
    return tree["evidence"].sizes.get("basis", 0) * max(tree["observed_data"].sizes.values(), default=0)


def _is_foreign(error: Exception) -> bool:
    """Whether an error is neither a sentence of ours, nor about how a function was called, nor from the user's code."""
    inside = traceback.extract_tb(error.__traceback__)[1:]
    if not inside or isinstance(error, _PASSED_ON):
        return False
    place = inside[-1].filename
    if place.startswith(_PACKAGE):
        return not str(error).endswith((".", "?"))
    return place.startswith(("<", *_LIBRARIES))


def settings_of(tree: xr.DataTree) -> dict[str, Any]:
    """Model, likelihood, basis and columns; empty for a tree that is not ours."""
    try:
        found = json.loads(tree.attrs.get("bayes_sparse", "{}"))
    except (TypeError, json.JSONDecodeError):
        found = None
    if not isinstance(found, dict):
        raise ValueError(f"This tree cannot be read, for its attribute 'bayes_sparse' is not what fit wrote; {_CURE}.")
    return found


def check_moments(evidence: xr.Dataset, width: int) -> None:
    """Refuse moments that nobody can predict from: columns that the fit has not, or numbers that are none."""
    columns = evidence["column"].to_numpy()
    if columns.size and not (columns.dtype.kind in "iu" and columns.min() >= 0 and columns.max() < width):
        raise ValueError(f"This tree cannot be read, for 'column' names basis functions that it has not; {_CURE}.")
    for name in _MOMENTS:
        if name in evidence and not np.isfinite(evidence[name].to_numpy()).all():
            raise ValueError(f"This tree cannot be read, for {name!r} has values that are not finite; {_CURE}.")


def _damage(tree: xr.DataTree) -> str | None:
    """What a tree lacks that every fit writes; None for nothing."""
    if "bayes_sparse" not in tree.attrs:
        return "it has no attribute 'bayes_sparse'"
    settings = settings_of(tree)
    if settings.get("model") != "declared":
        for name, kind in _NAMED.items():
            if not isinstance(settings.get(name), kind):
                return f"its settings have no {name!r}"
    if not {"evidence", "posterior"} & set(tree.children):
        return "it has neither a group 'evidence' nor a group 'posterior'"
    if "evidence" not in tree.children:
        return None
    evidence = tree["evidence"].to_dataset()
    nuisance = from_settings(settings["likelihood"]).nuisance if settings.get("model") != "declared" else ()
    lost = sorted((_WRITTEN | set(nuisance)) - set(evidence.variables)) or sorted(_exchanges_lost(evidence))
    if lost:
        return f"its group 'evidence' has no variable {lost[0]!r}"
    untold = sorted(_TOLD - set(evidence.attrs))
    if untold:
        return f"its group 'evidence' has no attribute {untold[0]!r}"
    known = evidence.attrs["status"] in [str(status) for status in Status]
    return None if known else "its attribute 'status' names no end of a fit"


def _exchanges_lost(evidence: xr.Dataset) -> set[str]:
    """What is missing of the variables that come together."""
    together = {"score", "chance"}, {"exchange_term", "exchange_rival", "exchange_loss"}
    here = set(evidence.variables)
    return {name for own in together if own & here for name in own - here}
