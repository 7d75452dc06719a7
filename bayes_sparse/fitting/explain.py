"""How a model of the user's own is read, in words, before anything is fitted."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np
import pymc as pm

from bayes_sparse.common import registry
from bayes_sparse.fitting.choices import choose
from bayes_sparse.fitting.families import rules_of
from bayes_sparse.inference.method import Method
from bayes_sparse.inputs.bambi_model import BambiModel
from bayes_sparse.inputs.pm_model import General, ReadModel
from bayes_sparse.inputs.pm_model.declared import Declared, read_declared
from bayes_sparse.inputs.pm_model.graph import value_of
from bayes_sparse.inputs.pm_model.own_problem import weight_names
from bayes_sparse.inputs.pm_model.parts import Part
from bayes_sparse.inputs.pm_model.roles import Role, blocks_of
from bayes_sparse.methods.nuts import NUTS

__all__ = ["Explanation", "explain"]

_MEMBERS = 4  # groups, and members of a group, that are named


@dataclass(frozen=True)
class Explanation:
    """How a model is read; it prints as a table.

    Attributes
    ----------
    rows : tuple of (str, str)
        What is said, each under a heading: "sparse", "one scale", "known prior", "nuisance", "observed", "method" ...
    refusal : str, optional
        The sentence in which `bayes_sparse.fit` refuses the model; None for one that it fits.
    """

    rows: tuple[tuple[str, str], ...]
    refusal: str | None = None

    def __repr__(self) -> str:
        width = max(len(heading) for heading, _ in self.rows) + 2
        return "\n".join(
            f"{'' if again else heading:<{width}}{text}"
            for (heading, text), again in zip(self.rows, self._repeated, strict=True)
        )

    @property
    def _repeated(self) -> list[bool]:
        return [a == b for a, b in pairwise(["", *(heading for heading, _ in self.rows)])]

    def _repr_html_(self) -> str:
        cells = (
            f"<tr><th style='text-align:left'>{'' if again else escape(heading)}</th>"
            f"<td style='text-align:left'>{escape(text)}</td></tr>"
            for (heading, text), again in zip(self.rows, self._repeated, strict=True)
        )
        return f"<table>{''.join(cells)}</table>"


def explain(
    model: pm.Model | Declared | BambiModel, *, method: str | Method = "evidence", **settings: Any
) -> Explanation:
    """Say how `bayes_sparse.fit` would read a model of your own, without fitting it.

    Parameters
    ----------
    model : pymc.Model, bayes_sparse.models.Declared or bambi.Model
        The model, with its data.
    method : str or method object
        As for `bayes_sparse.fit`.
    **settings
        As for `bayes_sparse.fit`: ``sparse``, ``grouped``, ``hyper`` ...

    Returns
    -------
    Explanation
        What is sparse and in how many precisions, what has one scale or a known prior, the nuisance parameters, the
        likelihoods with their predictors, and the method; or the sentence in which the model is refused.

    Examples
    --------
    >>> import bayes_sparse as bs, numpy as np, pymc as pm
    >>> with pm.Model() as model:
    ...     w = pm.Normal("w", 0, pm.HalfCauchy("s", 1, shape=3), shape=3)
    ...     y = pm.Normal("y", np.eye(3) @ w, 1.0, observed=np.ones(3))
    >>> bs.explain(model)
    sparse    w (3 weights): one precision per weight, found in place of the prior on s
    observed  y: normal, 3 rows, 1 linear predictor
    method    sequential
    """
    try:
        chosen, by = choose(model, method, "auto", settings)
        if not isinstance(chosen, Declared):
            raise TypeError(
                "explain takes a pm.Model or a Bambi model of your own; print(bs.models) lists the named ones."
            )
        finder = choose(chosen, by.start, "auto", {})[1] if isinstance(by, NUTS) else by
        read, held = read_declared(chosen, any_surface=_takes_any(finder))
    except ValueError as refusal:
        return Explanation((("refused", str(refusal)),), str(refusal))
    rows = [*_variables(chosen, read), *((("nuisance", ", ".join(read.nuisance)),) if read.nuisance else ())]
    rows += [("held", f"{name}: predictors depend on it, so it is found between fits") for name in held]
    rows += [("observed", line) for line in _likelihoods(read)]
    pruned = any(role.free for role in read.roles)
    rows.append(("method", registry.name_of(by) + ("" if pruned else ", which prunes nothing here")))
    return Explanation(tuple(rows))


def _takes_any(method: Method) -> bool:
    return bool(getattr(rules_of(method), "any_surface", False))


def _variables(declared: Declared, read: ReadModel | General) -> list[tuple[str, str]]:
    """A line for each Gaussian variable, the sparse ones first."""
    lines = {"sparse": list[str](), "one scale": list[str](), "known prior": list[str]()}
    for role, block in zip(read.roles, blocks_of(read.roles), strict=True):
        if role.free:
            names = weight_names(block, alone=True)
            lines["sparse"].append(f"{_named(role)}: {_precisions(declared, role, names)}")
        elif role.scales.hypers:
            lines["one scale"].append(f"{_named(role)}: {_behind(role)}, never pruned")
        else:
            lines["known prior"].append(f"{_named(role)}: {_prior(role)}")
    return [(heading, text) for heading, texts in lines.items() for text in texts]


def _named(role: Role) -> str:
    """A variable with its size, and where it comes from."""
    latent = role.latent
    size = f" ({latent.size} weights)" if latent.shape else ""
    own = str(latent.rv.name)
    made = "" if latent.factor is None else f" = {own} times its scales" if own != latent.name else " times its scales"
    return f"{latent.name}{made}{size}"


def _precisions(declared: Declared, role: Role, names: list[str]) -> str:
    assert role.labels is not None
    labels, hypers = role.labels.ravel(), [str(rv.name) for rv in role.scales.hypers]
    if declared.prior == "horseshoe":
        return f"a horseshoe, its scales behind {', '.join(hypers)}"
    groups = [[names[i] for i in np.flatnonzero(labels == label)] for label in dict.fromkeys(labels.tolist())]
    if len(groups) == len(labels):
        said = "one precision per weight" if role.latent.shape else "one precision"
    elif len(groups) == 1:
        said = "one precision for all of them, kept or pruned together"
    else:
        said = f"{len(groups)} precisions, one per group: {_list([f'{{{_list(group)}}}' for group in groups])}"
    if declared.asked.declared:
        return f"{said}, found under the prior declared"
    return f"{said}, found in place of the prior on {', '.join(hypers)}" if hypers else f"{said}, found by evidence"


def _list(names: list[str]) -> str:
    more = f" and {len(names) - _MEMBERS} more" if len(names) > _MEMBERS else ""
    return ", ".join(names[:_MEMBERS]) + more


def _behind(role: Role) -> str:
    hypers = [str(rv.name) for rv in role.scales.hypers]
    return f"prior scale found through {', '.join(hypers)}"


def _prior(role: Role) -> str:
    sd = np.unique(value_of(role.latent.sd))
    mean = np.unique(role.latent.mean)
    if not np.isfinite(sd).all():
        return "flat"
    return f"Normal({_number(mean)}, {_number(sd)})"


def _number(values: Any) -> str:
    return f"{values[0]:g}" if len(values) == 1 else f"{values[0]:g} to {values[-1]:g}"


def _likelihoods(read: ReadModel | General) -> list[str]:
    if isinstance(read, General):
        return [f"{read.observed}: {read.describe}, {len(read.y)} rows, no linear predictor needed"]
    return [_likelihood(part) for part in read.parts]


def _likelihood(part: Part) -> str:
    K = len(part.columns)
    predictors = "1 linear predictor" if K == 1 else f"{K} linear predictors"
    missing = ", missing values left out" if part.output.name.endswith("_observed") else ""
    rows = f"{part.n} row{'' if part.n == 1 else 's'}{missing}"
    predictors = f"softmax of {predictors}" if part.softmax else predictors
    return f"{part.output.name}: {part.family.lstrip('_')}, {rows}, {predictors}"
