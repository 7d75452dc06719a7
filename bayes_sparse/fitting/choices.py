"""What the user chose - model, method, their settings - checked before any arithmetic."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pymc as pm

from bayes_sparse.common import registry
from bayes_sparse.common.types import Hyper
from bayes_sparse.fitting.families import rules_of
from bayes_sparse.inference.method import EvidenceMethod, Method
from bayes_sparse.inputs import likelihoods
from bayes_sparse.inputs.bambi_model import BambiModel, built, is_bambi, sparse_terms
from bayes_sparse.inputs.likelihoods import Likelihood
from bayes_sparse.inputs.model import Model
from bayes_sparse.inputs.pm_model.declared import Declared
from bayes_sparse.methods.nuts import NUTS
from bayes_sparse.problem.labelled import LabelledProblem

__all__ = [
    "check_fits",
    "check_method",
    "checked_hyper",
    "choose",
    "choose_likelihood",
    "choose_method",
    "choose_model",
    "hyper_in_force",
    "methods_for",
    "slab_in_force",
]

_OPTIONAL = {"hyper", "max_iterations", "tolerance", "sample_kwargs"}  # None is the same as not given
_OF_A_SEARCH = {"max_iterations", "tolerance"}
_MODELS, _METHODS = "bayes_sparse.models", "bayes_sparse.methods"
_PRIORS = "bayes_sparse.inference.priors"
_WITHOUT_PRECISIONS = (
    "`hyper` is the Gamma prior of precisions, which this model has none of; leave it out (bounds=(lo, hi) confines "
    "lambda)."
)


def choose(
    model: str | Model | pm.Model | BambiModel,
    method: str | Method,
    likelihood: str | Likelihood,
    settings: dict[str, Any],
) -> tuple[Model, Method]:
    """Model and method with the settings given by name, each to the one that has it; all of it checked."""
    chosen = choose_model(model)
    given = {name: value for name, value in settings.items() if not (value is None and name in _OPTIONAL)}
    if is_bambi(model) and given.get("sparse") is not None:
        given["sparse"], given["grouped"] = sparse_terms(model, given["sparse"])
    if isinstance(chosen, Declared):
        chosen = _asked_of(chosen, given)
    hyper = checked_hyper(given.pop("hyper", chosen.hyper))
    if isinstance(chosen, Declared):
        asked = given.get("prior")
        chosen = replace(chosen, prior=asked) if asked else _with_prior_for(method, chosen, hyper)
    if hyper is not None and "hyper" not in _settings_of(chosen):
        raise ValueError(_WITHOUT_PRECISIONS)
    chosen_method = choose_method(method, chosen, hyper, likelihood)
    if isinstance(chosen_method, NUTS):
        start = choose_method(chosen_method.start, chosen, hyper, likelihood)
        given, of_start = _divided(given, _settings_of(start) - _settings_of(chosen_method) - _OF_A_SEARCH)
        if of_start:  # else the name stays a name: with a proper hyper-prior "evidence" is another method
            chosen_method = replace(chosen_method, start=replace(start, **of_start))
    chosen, chosen_method = _with_settings(chosen, chosen_method, given)
    chosen = chosen if hyper is None else replace(chosen, hyper=hyper)
    check_method(chosen_method, chosen)
    return chosen, chosen_method


def _asked_of(model: Declared, given: dict[str, Any]) -> Declared:
    """A model of the user's with what they say is sparse, taken out of the settings: its prior depends on that."""
    said: dict[str, Any] = {name: given.pop(name) for name in ("sparse", "grouped", "scales") if name in given}
    if isinstance(given.get("hyper"), str):
        said["hyper"] = given.pop("hyper")
    return replace(model, prior="auto", **said) if said else model


def _with_prior_for(method: str | Method, model: Declared, hyper: Hyper | None) -> Declared:
    """A horseshoe of the user's as such, but where a method or a hyper-prior for precisions alone is asked for."""
    finder = choose_method(method, model, hyper)
    finder = choose_method(finder.start, model, hyper) if isinstance(finder, NUTS) else finder
    if model.prior == "horseshoe" and (hyper is not None or not rules_of(finder).fits(finder, model)):
        return replace(model, prior="gaussian")
    if model.prior == "gaussian" and finder.priors == ("horseshoe",):
        return replace(model, prior="horseshoe")  # which is refused with the reason when the model is read
    return model


def choose_model(model: str | Model | pm.Model | BambiModel) -> Model:
    """The model object behind a name, an object, a `pm.Model` or a Bambi model."""
    if is_bambi(model):
        return Declared(built(model), *sparse_terms(model))
    if isinstance(model, pm.Model):
        return Declared(model)
    chosen: Any = registry.lookup(_MODELS, model, "model")() if isinstance(model, str) else model
    if isinstance(chosen, type) or not isinstance(chosen, Model):
        raise TypeError(
            f"The model must be a name ({', '.join(registry.options(_MODELS))}), an object of "
            f"bayes_sparse.models, a pm.Model or a Bambi model, not {chosen!r}."
        )
    made: Model = chosen
    return made


def choose_method(
    method: str | Method, model: Model, hyper: Hyper | None, likelihood: str | Likelihood = "auto"
) -> Method:
    """The method object behind a name or an object."""
    # With several classes the sequential search ends in poorer optima, and slowly.
    bound = (hyper is not None and hyper[1] > 0) or _has_classes(likelihood)
    if isinstance(method, str) and method == "evidence":
        method = "mackay" if bound and model.default_method == "sequential" else model.default_method
    chosen: Any = registry.lookup(_METHODS, method, "method")() if isinstance(method, str) else method
    if isinstance(chosen, type) or not callable(chosen) or not isinstance(chosen, Method):
        raise TypeError(
            f"The method must be a name ({', '.join(registry.options(_METHODS))}) or an object of "
            f"bayes_sparse.methods, not {chosen!r}."
        )
    made: Method = chosen
    return made


def choose_likelihood(model: Model, likelihood: str | Likelihood, method: Method) -> str | Likelihood:
    """The likelihood asked for, or the only one that the model has; linked as the method does it."""
    only = model.likelihood
    if only is not None and likelihood == "auto":
        likelihood = only
    if only is not None and likelihoods.resolve(likelihood).name != only:
        raise ValueError(f"This model has a {only} likelihood only; leave out `likelihood`, or fit 'ard_gaussian'.")
    if not isinstance(method, EvidenceMethod) or method.link == "softmax":
        return likelihood
    if not _has_classes(likelihood):
        raise ValueError(
            f"method={registry.name_of(method)!r} is for several classes: fit 'student_multinomial', or give "
            "likelihood='categorical'."
        )
    return likelihoods.categorical(link=method.link)


def _has_classes(likelihood: str | Likelihood) -> bool:
    return likelihood != "auto" and likelihoods.resolve(likelihood).targets == "classes"


def hyper_in_force(model: Model, method: Method, *, kernel: bool) -> Hyper | None:
    """The hyper-prior asked for, or the model's own where the method can use it; None for the flat one.

    Kernels on the rows have the flat one: of them a proper prior would keep most, for neighbours say the same, and none
    of them is missed. A method may have one of its own.
    """
    if model.hyper is None and isinstance(method, EvidenceMethod) and method.own_hyper is not None:
        return method.own_hyper
    if model.hyper is not None or kernel or not rules_of(method).uses_default(method):
        return model.hyper
    return model.default_hyper


def slab_in_force(model: Model, method: Method, hyper: Hyper | None, labelled: LabelledProblem) -> float | None:
    """Width of the slab that was asked for, or the model's own where an evidence method has use for it; None for none.

    Classes under the flat hyper-prior have one: where terms separate them nothing else holds the weights. It is wider
    for kernels, of which a narrow one would keep many, each for a part of what the weight of one may not be.
    """
    if model.slab != "auto":
        return labelled.slab if model.slab is None else float(model.slab)
    if not isinstance(method, EvidenceMethod):
        return None
    flat = hyper is None or not hyper[1]
    if model.prior == "gaussian" and not (flat and labelled.of_classes):
        return None
    return model.kernel_slab if labelled.interchangeable else model.default_slab


def check_method(method: Method, model: Model) -> None:
    """Refuse a method that cannot fit the model, or cannot use the hyper-prior."""
    rules = rules_of(method)
    if model.hyper is not None and model.prior == "jeffreys" and not rules.samples:
        raise ValueError(_WITHOUT_PRECISIONS)
    check_fits(method, model)
    if getattr(model, "grouped", None) is True and not (rules.samples or isinstance(method, EvidenceMethod)):
        raise ValueError("Levels share a precision (grouped=True) under method='sequential', 'mackay' and 'em' alone.")
    if model.hyper is not None:
        rules.check_hyper(method, model, model.hyper)


def check_fits(method: Method, model: Model) -> None:
    """Refuse a method that does not know the model's prior or its coordinates."""
    rules = rules_of(method)
    if rules.fits(method, model):
        return
    able = methods_for(model)
    if not able:
        known = [*registry.options(_PRIORS), "jeffreys"]
        hint = registry.did_you_mean(model.prior, known)
        raise ValueError(f"There is no prior {model.prior!r}; there are {', '.join(known)}.{hint}")
    finds = rules.finds.format(" or ".join(method.priors or registry.options(_PRIORS)))
    where = " on eigen-coordinates" if model.coordinates == "eigen" else ""
    raise ValueError(
        f"The method {registry.name_of(method)!r} finds {finds}; a {model.prior} prior{where} is fitted by "
        f"method={', '.join(map(repr, able))}, or sampled by method='nuts'."
    )


def methods_for(model: Model) -> list[str]:
    """Names of the methods that fit a model."""
    made = {name: registry.lookup(_METHODS, name, "method")() for name in registry.options(_METHODS)}
    rules = {name: rules_of(method) for name, method in made.items()}
    return [name for name, own in rules.items() if not own.samples and own.fits(made[name], model)]


def checked_hyper(hyper: Any) -> Hyper | None:
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


def _with_settings(model: Model, method: Method, given: dict[str, Any]) -> tuple[Model, Method]:
    """Model and method with the settings given by name."""
    of_method, own = _settings_of(method), _settings_of(model)
    given = rules_of(method).own_settings(given)
    unknown = [name for name in given if name not in of_method | own]
    if unknown:
        raise TypeError(
            f"Neither the method {registry.name_of(method)!r} nor the model has a setting {unknown[0]!r}; the method "
            f"has {', '.join(sorted(of_method)) or 'none'}, the model {', '.join(sorted(own)) or 'none'}."
            f"{registry.did_you_mean(unknown[0], [*of_method, *own, *_OF_FIT])}"
        )
    given, mine = _divided(given, of_method)
    return (replace(model, **given) if given else model), (replace(method, **mine) if mine else method)


_OF_FIT = (
    "method",
    "target",
    "likelihood",
    "basis",
    "keep",
    "weights",
    "offset",
    "missing",
    "formula",
    "draws",
    "chains",
    "random_seed",
)


def _settings_of(choice: Model | Method) -> set[str]:
    """Names of the settings of a model or method."""
    return {field.name for field in fields(choice) if field.metadata.get("setting", True)}


def _divided(given: dict[str, Any], names: set[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Those not among some names, and those among them."""
    return (
        {name: value for name, value in given.items() if name not in names},
        {name: value for name, value in given.items() if name in names},
    )
