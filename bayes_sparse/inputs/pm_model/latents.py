"""The Gaussian variables of a model as the predictor sees them: centred, whatever way they were declared.

A variable that is multiplied by scales (``z * tau * lam``) is read as the product, Normal with that sd; one that is not
made of independent Normals of known mean is written out as a function of such (`normal_priors`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray
from pytensor.compile.ops import ViewOp
from pytensor.graph.traversal import toposort
from pytensor.scalar import basic as scalar
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.shape import SpecifyShape

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.pm_model.graph import LINEAR, Var, classify, reached, shape_in_graph, substituted, value_of
from bayes_sparse.inputs.pm_model.normal_priors import NormalPrior, normal_prior
from bayes_sparse.inputs.pm_model.predictor import ends
from bayes_sparse.inputs.pm_model.rewrites import rewritten
from bayes_sparse.inputs.pm_model.variables import (
    coords_of,
    dims_of,
    free_variables,
    in_order,
    likelihood_parameters,
)

__all__ = ["Latent", "Latents", "find_latents", "plain_latents"]


@dataclass(frozen=True, eq=False)
class Latent:
    """A Gaussian variable, or what is left of it after its scales and its mean.

    Attributes
    ----------
    rv : Var
        The user's free variable.
    node : Var
        What stands for it in the graph: itself, its product with scales, or what it is above its random mean.
    sd : Var
        Prior sd of the node's values.
    mean : array
        Known prior mean, in the node's shape.
    factor : Var, optional
        ``node = factor * rv``; None where the scale is in the prior.
    make : callable, optional
        The variable as an expression of what stands for it, before the factor; None where that is the variable.
    heavy : bool
        Whether each value has a random scale of its own beside the sd: a Laplace, Student-t or Cauchy variable.
    name, shape, dims, coords
        Of the node: those of a Deterministic that it is, else of the variable.
    """

    rv: Var
    node: Var
    sd: Var
    mean: FloatArray
    factor: Var | None
    make: Callable[[Var], Var] | None
    heavy: bool
    name: str
    shape: tuple[int, ...]
    dims: tuple[str, ...] | None
    coords: dict[str, NDArray[Any]]

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return int(np.prod(self.shape, dtype=int))

    @property
    def is_apart(self) -> bool:
        """Whether its values are others than those of the user's variable of its name."""
        return self.make is not None or (self.factor is not None and self.name == str(self.rv.name))

    def scaled(self, by: Var) -> Latent:
        """The same with a scale that multiplies its term further up: ``tau * (X @ z)``."""
        factor = by if self.factor is None else self.factor * by
        return replace(self, sd=self.sd * pt.abs(by), factor=factor)


@dataclass(frozen=True, eq=False)
class Latents:
    """The outputs of a model's likelihoods with their Gaussian variables told apart from all others.

    Attributes
    ----------
    outputs : list of Var
        As given, with random prior means written out.
    known : list of Latent
        The Gaussian variables that are linear in every predictor.
    kinds : dict
        Of every node of the outputs, as `classify` says.
    demoted : set of Var
        Gaussian variables that some output is not linear in: nuisance parameters.
    """

    outputs: list[Var]
    known: list[Latent]
    kinds: Mapping[Var, str]
    demoted: set[Var]

    @property
    def nodes(self) -> dict[Var, Latent]:
        """By what stands for them."""
        return {latent.node: latent for latent in self.known}


def find_latents(
    model: pm.Model,
    outputs: Sequence[Var],
    rows: Mapping[Var, int | None],
    demoted: set[Var],
    named: Collection[str] = (),
) -> Latents:
    """Find the Gaussian variables of linear predictors.

    Parameters
    ----------
    model : pm.Model
        The user's.
    outputs : list of Var
        Observed variables, or potentials.
    rows : dict
        Number of observations of each; None for a potential.
    demoted : set of Var
        Those known to be none.
    named : collection of str
        Variables that the user says are sparse.
    """
    found = _attempt(model, list(outputs), demoted, named, set())
    if scaled := _scaled_means(found):
        found = _attempt(model, list(outputs), demoted, named, scaled)
    sizes = dict(zip(found.outputs, (rows[out] for out in outputs), strict=True))
    misused = _misused(found, sizes)
    return find_latents(model, outputs, rows, demoted | misused, named) if misused else found


def _attempt(
    model: pm.Model, outputs: list[Var], demoted: set[Var], named: Collection[str], written_out: set[Var]
) -> Latents:
    """With some variables as nuisance parameters, and the known means of others written out as random ones are."""
    rvs, priors, above = set(free_variables(model)), dict[Var, NormalPrior](), dict[Var, Var]()
    while True:
        for rv in in_order(reached(outputs, rvs) - demoted - priors.keys(), model):
            prior = normal_prior(model, rv, named)
            if prior is not None:
                priors[rv] = prior.without_mean() if rv in written_out else prior
        written = {}
        for rv, prior in priors.items():
            if prior.make is not None and rv not in above:
                above[rv] = pt.tensor(rv.name, dtype=rv.dtype, shape=prior.shape)
                written[rv] = pt.cast(prior.make(above[rv]), rv.dtype)
        if not written:
            break
        outputs = substituted(outputs, written, rvs)
    sources = {above.get(rv, rv): rv for rv in priors}
    outputs = rewritten(outputs, {*rvs, *sources})
    kinds = classify(outputs, rvs, set(sources))
    clients = _clients(outputs, [*rvs, *sources])
    known = [_latent(model, rv, source, priors[rv], clients, kinds) for source, rv in sources.items()]
    order = {rv: i for i, rv in enumerate(model.free_RVs)}
    known.sort(key=lambda latent: order[latent.rv])
    kinds = classify(outputs, rvs, {latent.node for latent in known})
    return Latents(outputs, known, kinds, demoted)


def _scaled_means(found: Latents) -> set[Var]:
    """Variables with a known mean in terms that a random scale multiplies: the mean of their product is random."""
    nodes, scaled = {latent.node: latent.rv for latent in found.known if latent.mean.any()}, set[Var]()
    for node in toposort(found.outputs, blockers=list(found.nodes)) if nodes else ():
        kinds = [found.kinds.get(i) for i in node.inputs]
        if found.kinds.get(node.outputs[0]) == "scaled" and "nuisance" in kinds:
            linear = [i for i, kind in zip(node.inputs, kinds, strict=True) if kind in LINEAR]
            scaled |= {nodes[own] for own in reached(linear, set(nodes))}
    return scaled


def plain_latents(model: pm.Model, near: set[Var], named: Collection[str] = ()) -> list[Latent]:
    """Gaussian variables that need not be written out, for models that need not be linear in them."""
    priors = {rv: normal_prior(model, rv, named) for rv in in_order(near, model)}
    return [_latent(model, rv, rv, p, {}, {}) for rv, p in priors.items() if p is not None and p.make is None]


def _clients(outputs: Sequence[Var], blockers: Iterable[Var]) -> dict[Var, list[Any]]:
    clients: dict[Var, list[Any]] = {}
    for node in toposort(outputs, blockers=list(blockers)):
        for variable in dict.fromkeys(node.inputs):
            clients.setdefault(variable, []).append(node)
    return clients


def _latent(
    model: pm.Model,
    rv: Var,
    source: Var,
    prior: NormalPrior,
    clients: Mapping[Var, list[Any]],
    kinds: Mapping[Var, str],
) -> Latent:
    shape, sd, factor = prior.shape, prior.sd, None
    node = _scaled_node(model, source, prior, clients, kinds)
    name, dims, coords = rv.name, dims_of(model, rv), coords_of(model, rv)
    if node is not source:
        ones = pt.constant(np.ones(shape, dtype=rv.dtype))
        [factor] = substituted([node], {source: ones}, free_variables(model))
        sd = sd * pt.abs(factor)
        shape = shape_in_graph(node)
        if _is_deterministic(model, node):
            name, dims, coords = node.name, dims_of(model, node), coords_of(model, node)
    if dims is not None and shape != tuple(int(value_of(model.dim_lengths[dim])) for dim in dims):
        dims, coords = None, {}
    mean = np.broadcast_to(prior.mean, shape)
    return Latent(rv, node, sd, mean, factor, prior.make, prior.heavy, str(name), shape, dims, coords)


def _scaled_node(
    model: pm.Model, source: Var, prior: NormalPrior, clients: Mapping[Var, list[Any]], kinds: Mapping[Var, str]
) -> Var:
    """The last node that is the variable times scales, number by number; the variable itself where there is none."""
    best = node = source
    size = int(np.prod(prior.shape, dtype=int))
    while len(clients.get(node, [])) == 1:
        [client] = clients[node]
        out, others = client.outputs[0], [i for i in client.inputs if i is not node]
        if not _multiplies(client, node, kinds) or int(np.prod(shape_in_graph(out), dtype=int)) != size:
            break
        random = any(kinds.get(i) == "nuisance" for i in others)
        if random and prior.mean.any():
            break
        if random or (best is not source and _is_deterministic(model, out)):
            best = out
        node = out
    return best


def _is_deterministic(model: pm.Model, node: Var) -> bool:
    """By its name, which a copy of it has too."""
    return any(node.name == known.name for known in model.deterministics) if node.name else False


def _multiplies(client: Any, node: Var, kinds: Mapping[Var, str]) -> bool:
    """Whether an operation gives its input times something, number by number."""
    if any(kinds.get(i, "constant") in (*LINEAR, "other") for i in client.inputs if i is not node):
        return False
    match client.op:
        case Elemwise(scalar_op=scalar.Mul() | scalar.Neg() | scalar.Identity()) | ViewOp() | SpecifyShape():
            return bool(client.inputs.count(node) == 1)
        case Elemwise(scalar_op=scalar.Cast() as cast):
            return bool(cast.o_type.dtype.startswith("float"))
        case Elemwise(scalar_op=scalar.TrueDiv()):
            return client.inputs[0] is node and client.inputs[1] is not node
        case DimShuffle():
            return not client.op.drop and list(client.op.shuffle) == sorted(client.op.shuffle)
    return False


def _misused(found: Latents, rows: Mapping[Var, int | None]) -> set[Var]:
    """Variables that an output depends on other than through a row of numbers, one an observation, linear in them.

    A potential may depend on a single number that many weights make, as a constraint does.
    """
    return _behind_ends(found, rows, first=True) or _behind_ends(found, rows, first=False)


def _behind_ends(found: Latents, rows: Mapping[Var, int | None], *, first: bool) -> set[Var]:
    nodes, misused = found.nodes, set[Var]()
    for out in found.outputs:
        for end in ends(likelihood_parameters(out), found.kinds, set(nodes), first=first):
            inside = reached([end], set(nodes))
            constrained = rows[out] is None and any(node.ndim for node in inside)
            if not constrained and (end.ndim == 0 or rows[out] not in (None, shape_in_graph(end)[0])):
                misused |= {nodes[node].rv for node in inside}
    return misused
