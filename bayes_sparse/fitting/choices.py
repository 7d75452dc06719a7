"""What the user chose - model, method, their settings - checked before any arithmetic."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pymc as pm

from bayes_sparse.common import registry
from bayes_sparse.common.checks import count
from bayes_sparse.inference.one_step.finish import Prior
from bayes_sparse.inference.priors import Gaussian, Laplace
from bayes_sparse.inputs import likelihoods
from bayes_sparse.inputs.likelihoods import Likelihood
from bayes_sparse.methods.nuts import NUTS
from bayes_sparse.models import Declared

__all__ = [
    "PRIORS",
    "check_choices",
    "checked_hyper",
    "choose_likelihood",
    "choose_method",
    "choose_model",
    "default_hyper",
    "with_settings",
]

_FINDS = {
    "evidence": "the precisions of a {} prior on the weights themselves",
    "one_step": "the precisions of a {} prior on eigen-coordinates",
    "path": "the common scale of Laplace priors on the weights",
}
PRIORS: dict[str, Prior] = {"gaussian": Gaussian(), "laplace": Laplace()}


def choose_model(model: str | Any | pm.Model) -> Any:
    """The model object behind a name, an object or a `pm.Model`."""
    chosen: Any = Declared(model) if isinstance(model, pm.Model) else model
    if isinstance(model, str):
        chosen = registry.lookup("bayes_sparse.models", model, "model")()
    if isinstance(chosen, type) or not (isinstance(chosen, Declared) or hasattr(chosen, "problem")):
        raise TypeError(
            f"The model must be a name ({', '.join(registry.options('bayes_sparse.models'))}), an object of "
            f"bayes_sparse.models or a pm.Model, not {chosen!r}."
        )
    return chosen


def choose_likelihood(model: Any, likelihood: str | Likelihood, method: Any) -> str | Likelihood:
    """The likelihood asked for, or the only one that the model has; linked as the method does it."""
    only = getattr(model, "likelihood", None)
    if only is not None and likelihood == "auto":
        likelihood = only
    if only is not None and likelihoods.resolve(likelihood).name != only:
        raise ValueError(f"This model has a {only} likelihood only; leave out `likelihood`, or fit 'ard_gaussian'.")
    link = getattr(method, "link", None)
    if link is None:
        return likelihood
    if not _is_categorical(likelihood):
        raise ValueError(
            f"method={registry.name_of(method)!r} is for several classes: fit 'student_multinomial', or give "
            "likelihood='categorical'."
        )
    return likelihoods.categorical(link=link)


def _is_categorical(likelihood: str | Likelihood) -> bool:
    return likelihood == "categorical" or isinstance(likelihood, likelihoods.categorical)


def choose_method(
    method: str | Any, model: Any, hyper: tuple[float, float] | None, likelihood: str | Likelihood = "auto"
) -> Any:
    """The method object behind a name or an object."""
    # With several classes the sequential search ends in poorer optima, and slowly.
    bound = (hyper is not None and hyper[1] > 0) or _is_categorical(likelihood)
    if isinstance(method, str) and method == "evidence":
        method = "mackay" if bound and model.default_method == "sequential" else model.default_method
    chosen = registry.lookup("bayes_sparse.methods", method, "method")() if isinstance(method, str) else method
    if isinstance(chosen, type) or not callable(chosen):
        raise TypeError(
            f"The method must be a name ({', '.join(registry.options('bayes_sparse.methods'))}) or an object of "
            f"bayes_sparse.methods, not {chosen!r}."
        )
    return chosen


def default_hyper(
    model: Any, method: Any, hyper: tuple[float, float] | None, *, kernel: bool
) -> tuple[float, float] | None:
    """The hyper-prior asked for, or the model's own where the method can use it; None for the flat one.

    Rivals that glue binary machines together have the flat one, and so have kernels on the rows, of which a proper
    prior would keep most: neighbours say the same, and none of them is missed.
    """
    unfit = isinstance(method, NUTS) or method.needs_flat_hyper or hasattr(method, "link") or kernel
    if hyper is not None or unfit:
        return hyper
    return getattr(model, "default_hyper", None)


def check_choices(model: Any, method: Any, hyper: tuple[float, float] | None) -> None:
    """Refuse a method that cannot fit the model, or cannot use the hyper-prior."""
    if hyper is not None and (model.proper_hyper is None or getattr(method, "family", "") == "path"):
        raise ValueError(
            "`hyper` is the Gamma prior of precisions, which this model has none of; leave it out "
            "(bounds=(lo, hi) confines lambda)."
        )
    if isinstance(method, NUTS):
        if hyper is not None and not method.condition and not (hyper[0] > 0 and hyper[1] > 0):
            a, b = model.proper_hyper
            raise ValueError(
                f"hyper={hyper} is an improper prior: the posterior under NUTS would be improper too; a proper "
                f"neighbour is hyper=({a:g}, {b:g})."
            )
        return
    _check_prior(method, model)
    if hyper is not None and hyper[0] > 0 and hyper[1] == 0:
        raise ValueError(
            f"hyper={hyper} drives every precision to infinity; give b > 0 too, or hyper=None for a flat one."
        )
    if hyper is not None and hyper[1] > 0 and method.needs_flat_hyper:
        other = "leave out `hyper`" if method.family == "one_step" else "use method='mackay' or 'em'"
        raise ValueError(
            f"The method {registry.name_of(method)!r} needs the flat hyper-prior (0, 0): with hyper={hyper} no "
            f"precision is ever infinite, so there is nothing to add or delete; {other}."
        )


def _check_prior(method: Any, model: Any) -> None:
    """Refuse a method that does not know the model's prior or its coordinates."""
    if fits(method, model):
        return
    names = [name for name in registry.options("bayes_sparse.methods") if name != "nuts"]
    able = [name for name in names if fits(registry.lookup("bayes_sparse.methods", name, "method"), model)]
    finds = _FINDS[method.family].format(" or ".join(method.priors))
    where = " on eigen-coordinates" if model.coordinates == "eigen" else ""
    raise ValueError(
        f"The method {registry.name_of(method)!r} finds {finds}; a {model.prior} prior{where} is fitted by "
        f"method={', '.join(map(repr, able))}, or sampled by method='nuts'."
    )


def fits(method: Any, model: Any) -> bool:
    """Whether a method knows the model's prior and its coordinates."""
    return model.prior in method.priors and (model.coordinates == "weights" or method.family == "one_step")


def with_settings(
    model: Any, method: Any, settings: dict[str, Any], limits: dict[str, int | float | None]
) -> tuple[Any, Any]:
    """Model and method with the settings given by name, each to the one that has it."""
    known = {field.name for field in fields(method)}
    given = {name: value for name, value in limits.items() if value is not None}
    if "max_iterations" in given:
        given["max_iterations"] = count("max_iterations", given["max_iterations"], 1)
    if "tolerance" in given and not given["tolerance"] > 0:
        raise ValueError(f"`tolerance` must be positive (in nats), got {given['tolerance']}.")
    if isinstance(method, NUTS) and given:
        raise ValueError("NUTS has draws and chains, not iterations: leave out max_iterations and tolerance.")
    of_method = {name: value for name, value in (given | settings).items() if name in known}
    of_model = {name: value for name, value in settings.items() if name not in known}
    own = {field.name for field in fields(model)} - {"model", "weights"}
    unknown = [name for name in (given | of_model) if name not in known | own]
    if unknown:
        raise TypeError(
            f"Neither the method {registry.name_of(method)!r} nor the model has a setting {unknown[0]!r}; the method "
            f"has {', '.join(sorted(known)) or 'none'}, the model {', '.join(sorted(own)) or 'none'}."
        )
    return (replace(model, **of_model) if of_model else model), (replace(method, **of_method) if of_method else method)


def checked_hyper(hyper: tuple[float, float] | None) -> tuple[float, float] | None:
    """The hyper-prior as two floats, or None."""
    if hyper is None:
        return None
    try:
        a, b = (float(value) for value in hyper)
    except (TypeError, ValueError):
        raise ValueError(f"`hyper` is the pair (a, b) of a Gamma prior on the precisions, got {hyper!r}.") from None
    if not (np.isfinite([a, b]).all() and a >= 0 and b >= 0):
        raise ValueError(f"`hyper` needs a >= 0 and b >= 0, got ({a:g}, {b:g}).")
    return a, b
