"""What a tree says of its fit: the one reader of what the writer stored."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import xarray as xr

from bayes_sparse.common.statuses import Status
from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs import basis as bases
from bayes_sparse.inputs import likelihoods
from bayes_sparse.inputs.encoding import Encoding
from bayes_sparse.inputs.model import slab_precision
from bayes_sparse.inputs.pm_model.roles import Asked
from bayes_sparse.trees.damage import settings_of
from bayes_sparse.trees.spread import sds

__all__ = ["APPROXIMATIONS", "RUNGS", "Rung", "StoredFit", "read_trees", "rung_of", "stored", "was_sampled"]

type Rung = Literal["plug_in", "approximation", "conditional", "full"]

# What made the Gaussian of a fit, in words.
APPROXIMATIONS = {
    "exact": "exact posterior",
    "laplace": "Laplace approximation",
    "quadratic": "quadratic approximation",
    "variational": "variational bound",
    "kl": "best Gaussian by KL",
    "ep": "expectation propagation",
}
RUNGS: tuple[Rung, ...] = ("plug_in", "approximation", "conditional", "full")  # from the least exact to the most
_ALONE = "this fit"


def stored(
    tree: xr.DataTree, caller: str | None = None, basis: Callable[..., Any] | None = None, *, trust: bool = False
) -> StoredFit:
    """A tree, read; refused in the name of a caller where it is not one of ours."""
    if caller is not None and (not isinstance(tree, xr.DataTree) or "bayes_sparse" not in tree.attrs):
        raise TypeError(f"{caller} takes a tree from bayes_sparse.fit; this has no 'bayes_sparse' attribute.")
    return StoredFit(_ALONE, tree, basis, trust)


def was_sampled(tree: xr.DataTree) -> bool:
    """Whether the draws of a tree are NUTS's."""
    return "posterior" in tree.children and tree["posterior"].attrs.get("method") == "nuts"


def rung_of(tree: xr.DataTree) -> Rung:
    """Which rung of the ladder a tree is on: plug-in, approximation, exact at alpha*, or everything."""
    if was_sampled(tree):
        return "conditional" if tree["posterior"].attrs.get("condition") else "full"
    if "posterior" not in tree.children and not np.any(tree["evidence"]["covariance_factor"].to_numpy()):
        return "plug_in"
    return "approximation"


@dataclass(frozen=True, eq=False)
class StoredFit:
    """A tree and what its user calls it.

    Attributes
    ----------
    name : str
        Its name beside others.
    tree : xarray.DataTree
        From `bayes_sparse.fit`.
    function : callable, optional
        The function behind its basis, handed over by the user.
    trust : bool
        Whether that function may be imported by the name that the tree has.
    """

    name: str
    tree: xr.DataTree
    function: Callable[..., Any] | None = None
    trust: bool = False

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Model, likelihood, basis and columns; empty for a tree that is not ours."""
        return settings_of(self.tree)

    @property
    def declared(self) -> bool:
        """Whether it is of a `pm.Model` of the user's own."""
        return self.settings.get("model") == "declared"

    @property
    def linear(self) -> bool:
        """Whether that model was read as one with a linear predictor."""
        return bool(self.settings.get("linear", True))

    @property
    def asked(self) -> Asked:
        """What the user said is sparse in a model of their own."""
        sparse, grouped = (tuple(self.settings.get(name, ())) for name in ("sparse", "grouped"))
        return Asked(sparse, grouped, bool(self.settings.get("hyper_declared")))

    @cached_property
    def likelihood(self) -> likelihoods.Likelihood:
        """Of a named model."""
        return likelihoods.from_settings(self.settings["likelihood"])

    @property
    def likelihood_name(self) -> str:
        """Name of its likelihood, if it is known."""
        return str(self.settings.get("likelihood", {}).get("name", ""))

    @property
    def targets(self) -> str:
        """What was observed: "numbers", "counts", "two classes" or "classes"; of another's tree not known."""
        if self.declared:
            return {"bernoulli": "two classes", "categorical": "classes"}.get(self.likelihood_name, "numbers")
        return self.likelihood.targets if self.likelihood_name else ""

    @cached_property
    def basis(self) -> bases.Basis:
        """Of a named model."""
        return bases.from_settings(self.settings["basis"], self.function, trust=self.trust)

    @property
    def gamma_draws(self) -> xr.DataArray | None:
        """How well the data determine each weight, ``h/(h + precision)``, at every draw of its precision by NUTS."""
        if not {"posterior", "constant_data"} <= set(self.tree.children):
            return None
        posterior, constant = self.tree["posterior"], self.tree["constant_data"]
        if "curvature" not in constant or "alpha" not in posterior:
            return None
        h, alpha = constant["curvature"].to_numpy(), posterior.to_dataset()["alpha"]
        scale = constant["basis_scale"].to_numpy() if "basis_scale" in constant else 1.0
        floor = slab_precision(posterior.attrs.get("slab"), posterior.attrs.get("hyper_unit", 1.0))
        return alpha.copy(data=h / (h + alpha.to_numpy() / scale**2 + floor))

    @property
    def width(self) -> int:
        """Number of basis functions of a named model, constants too."""
        return len(self.vectors["w"][1]) + len(self.classes or [""])

    @property
    def columns(self) -> list[Any]:
        """Names of the features, or of those of each class."""
        return list(self.settings.get("columns", ()))

    @property
    def by_class(self) -> bool:
        """Whether every class has features of its own."""
        return bool(self.columns) and isinstance(self.columns[0], list)

    @cached_property
    def encodings(self) -> list[Encoding]:
        """How the columns handed in became those of the fit: one, or one a class."""
        if "encodings" in self.settings:
            return [Encoding(**how) for how in self.settings["encodings"]]
        return [Encoding(own) for own in (self.columns if self.by_class else [self.columns])]

    @cached_property
    def needed(self) -> list[set[str]]:
        """Columns that have a weight, or those of each class; of a basis that mixes columns all."""
        columns = self.columns if self.by_class else [self.columns]
        if self.evidence is None or not self.basis.takes_sparse:
            return [set(own) for own in columns]
        active = self.evidence["column"].to_numpy()
        sizes = [len(own) for own in columns]
        starts = [0, *np.cumsum(sizes)[:-1].tolist()]
        if not self.by_class:  # classes that share their features have them one after the other
            active = active[active < len(self.vectors["w"][1])] % sizes[0]
        inside = [{int(j) - start for j in active} for start in starts]
        return [{own[j] for j in at if 0 <= j < len(own)} for own, at in zip(columns, inside, strict=True)]

    @property
    def vectors(self) -> dict[str, tuple[str, list[Any]]]:
        """Dim and labels of every sparse vector in full, pruned entries too."""
        found: dict[str, tuple[str, list[Any]]] = self.settings.get("vectors", {})
        return found

    @cached_property
    def evidence(self) -> xr.Dataset | None:
        """What an evidence method found."""
        return self._group("evidence")

    @cached_property
    def posterior(self) -> xr.Dataset | None:
        """Draws."""
        return self._group("posterior")

    @cached_property
    def observed(self) -> xr.DataArray | None:
        """The targets of the fit, classes as numbers."""
        group = self._group("observed_data")
        return None if group is None or not group.data_vars else next(iter(group.data_vars.values()))

    @property
    def called(self) -> str | None:
        """What the targets of the fit are called."""
        return None if self.observed is None else str(self.observed.name)

    @cached_property
    def constant(self) -> xr.Dataset:
        """What was stored beside the targets."""
        group = self._group("constant_data")
        return xr.Dataset() if group is None else group

    @property
    def by_direction(self) -> bool:
        """Whether directions were chosen, by a one-step method, and no weight pruned."""
        return self.evidence is not None and "direction" in self.evidence.dims

    @property
    def posterior_sd(self) -> FloatArray:
        """Sd of every weight of an evidence fit as its draws have it, zero where pruned.

        Of a one-step method it leaves out the directions that are not kept, which ``sd`` does not.
        """
        assert self.evidence is not None
        if not self.by_direction:
            return np.asarray(self.evidence["sd"].fillna(0.0).to_numpy())
        factor, column = self.evidence["covariance_factor"].to_numpy(), self.evidence["column"].to_numpy()
        out = np.zeros(len(column))
        out[column] = sds(factor)
        return out[: self.evidence.sizes["basis"]]

    @property
    def on_path(self) -> bool:
        """Whether it is a point of an L1 path; beside precisions a lambda is a user's own."""
        return self.evidence is not None and "lambda" in self.evidence and "alpha" not in self.evidence

    @property
    def sampled(self) -> bool:
        """Whether its draws are those of a sampler, ours or another's."""
        return self.posterior is not None and (self.evidence is None or was_sampled(self.tree))

    @property
    def sampled_whole(self) -> bool:
        """Whether its draws are those of NUTS of everything, precisions too."""
        return self.evidence is None and self.gamma_draws is not None

    @property
    def corrected(self) -> bool:
        """Whether the draws of an evidence fit have been re-weighted."""
        return self.evidence is not None and bool(self.evidence.attrs.get("corrected", 0))

    @property
    def diagnosis(self) -> dict[str, Any]:
        """Of a corrected fit: what its importance weights said before."""
        assert self.evidence is not None
        found: dict[str, Any] = json.loads(self.evidence.attrs["diagnosis"])
        return found

    @property
    def status(self) -> Status | None:
        """How an evidence method ended."""
        word = None if self.evidence is None or self.sampled else self.evidence.attrs.get("status")
        return None if word is None else Status.of(word)

    @property
    def likelihood_check(self) -> str:
        """What the residuals have that the likelihood has not, in a sentence; empty where nothing was found."""
        return str(self.residuals.get("likelihood_check", ""))

    @property
    def residuals(self) -> dict[str, Any]:
        """What they said of the likelihood: the sentence, and the statistic it rests on; empty where none was made."""
        for group in (self.evidence, self.posterior):
            if group is not None and "likelihood_check" in group.attrs:
                return {str(name): value for name, value in group.attrs.items()}
        return {}

    @cached_property
    def judged(self) -> xr.DataTree:
        """The tree as `diagnose` and `loo` take it: draws of another sampler than ours are marked as such."""
        if not self.sampled or was_sampled(self.tree):
            return self.tree
        marked = self.tree.copy()
        marked["posterior"].attrs["method"] = "nuts"
        return marked

    @property
    def has_likelihood(self) -> bool:
        """Whether the pointwise log-likelihood was stored."""
        return "log_likelihood" in self.tree.children

    @property
    def attributes(self) -> dict[str, Any]:
        """How the fit was made."""
        own = self.posterior if self.sampled else self.evidence
        return {} if own is None else {str(name): value for name, value in own.attrs.items()}

    @property
    def seconds(self) -> float:
        """How long the fit took, NaN where the tree does not say."""
        for group in (self.posterior, self.evidence):
            if group is not None and "seconds" in group.attrs:
                return float(group.attrs["seconds"])
        return float("nan")

    @property
    def method(self) -> str:
        """Name of its method."""
        return str(self.attributes.get("method", "a sampler" if self.sampled else ""))

    @property
    def given(self) -> str:
        """What the log evidence, and all that an evidence fit says, is conditional on."""
        assert self.evidence is not None
        if self.on_path:
            return f"the support and lambda* = {float(self.evidence['lambda']):.4g}; flat priors count as 1"
        terms = "the directions kept and alpha*" if self.by_direction else "the terms selected and alpha*"
        return f"{terms}, nuisance parameters at their estimates" if self.evidence["theta"].size else terms

    @property
    def kind(self) -> str:
        """What kind of answer it is, in words."""
        rung = rung_of(self.tree)
        if rung == "full":
            return "NUTS, everything"
        if rung == "plug_in":
            return "plug-in"
        attributes = self.tree["evidence"].attrs
        at = "lambda*" if self.on_path or attributes.get("prior") == "jeffreys" else "alpha*"
        if rung == "conditional":
            return f"NUTS at {at}"
        made = str(attributes.get("approximation"))
        how = APPROXIMATIONS.get(made, made)
        return f"evidence, {how} at {at}" + (", corrected by importance weights" if self.corrected else "")

    @property
    def classes(self) -> list[Any] | None:
        """Labels of the classes of a named model, in the order of their numbers."""
        own = not self.declared and "class" in self.constant.variables
        return self.constant["class"].to_numpy().tolist() if own else None

    @property
    def parameters(self) -> xr.Dataset | None:
        """Draws without the Deterministics of a user's model that have a value per observation: those predict."""
        n = -1 if self.observed is None or not self.observed.ndim else self.observed.shape[0]
        made = set(self.settings.get("deterministics", ()))
        if self.posterior is None or not made:
            return self.posterior
        return self.posterior.drop_vars([v for v in made & set(self.posterior) if n in self.posterior[v].shape[2:]])

    @cached_property
    def draws(self) -> dict[str, FloatArray]:
        """Draws of every parameter by its name, "w[label]" for the entry of a vector, each (chain, draw)."""
        if self.parameters is None:
            return {}
        out: dict[str, FloatArray] = {}
        for name, variable in self.parameters.data_vars.items():
            values = variable.transpose("chain", "draw", ...)
            dims = values.dims[2:]
            flat = values.to_numpy().reshape(*values.shape[:2], -1)
            labels = [values[dim].to_numpy().tolist() for dim in dims]
            for i, place in enumerate(np.ndindex(*values.shape[2:])):
                words = ", ".join(str(own[at]) for own, at in zip(labels, place, strict=True))
                out[f"{name}[{words}]" if dims else str(name)] = flat[..., i]
        return out

    def _group(self, name: str) -> xr.Dataset | None:
        return self.tree[name].to_dataset() if name in self.tree.children else None


def read_trees(trees: Any) -> list[StoredFit]:
    """The trees handed in, with names; the rungs of a ladder one by one."""
    if isinstance(trees, xr.DataTree):
        named = _rungs(trees)
        if named:
            return [StoredFit(name, rung) for name, rung in named.items()]
        return [StoredFit(_ALONE, _checked("the tree", trees))]
    if not isinstance(trees, Mapping):
        raise TypeError(f"report takes a tree from bayes_sparse.fit, or a dict of them by name, not {_type(trees)}.")
    fits: list[StoredFit] = []
    for name, tree in trees.items():
        rungs = _rungs(tree) if isinstance(tree, xr.DataTree) else {}
        fits += [StoredFit(f"{name}: {rung}", below) for rung, below in rungs.items()]
        if not rungs:
            fits.append(StoredFit(str(name), _checked(f"the tree {name!r}", tree)))
    if not fits:
        raise ValueError("There is nothing to report: the dict of trees is empty.")
    twice = [name for name, times in Counter(fit.name for fit in fits).items() if times > 1]
    if twice:
        raise ValueError(f"Two trees have the name {twice[0]!r}: give every tree its own.")
    return fits


def _rungs(tree: xr.DataTree) -> dict[str, xr.DataTree]:
    """The trees inside a tree, if it is one of trees."""
    if _is_fit(tree):
        return {}
    return {str(name): child for name, child in tree.children.items() if _is_fit(child)}


def _is_fit(tree: xr.DataTree) -> bool:
    return "evidence" in tree.children or "posterior" in tree.children


def _checked(what: str, tree: Any) -> xr.DataTree:
    if not isinstance(tree, xr.DataTree):
        raise TypeError(f"report takes trees from bayes_sparse.fit; {what} is {_type(tree)}.")
    if not _is_fit(tree):
        raise ValueError(f"There is nothing to report: {what} has neither a group 'evidence' nor a group 'posterior'.")
    return tree


def _type(thing: Any) -> str:
    return f"of type {type(thing).__name__}"
