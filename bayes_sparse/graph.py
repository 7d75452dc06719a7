"""Read any `pm.Model` with a linear predictor into a `Problem`.

The predictor is looked for on the *generative* graph of the observed variable: every node between the observed
variable's parameters and the free variables is labelled constant, nuisance, affine (in the Normal variables, with
known coefficients) or other. The predictor eta is the last affine node through which all influence of the sparse
weights passes. Above it lies the likelihood, ``l(eta_n)``, compiled once for every structure; below it lies the
design, read off the graph without compiling anything where the predictor is written in a usual way.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray
from pymc.distributions.continuous import FlatRV
from pymc.distributions.custom import CustomDistRV
from pymc.distributions.distribution import SymbolicRandomVariable, support_point
from pymc.distributions.moments.means import _mean
from pymc.logprob.transforms import LogTransform
from pymc.logprob.utils import CheckParameterValue
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.maker import function as pytensor_function
from pytensor.compile.mode import Mode
from pytensor.compile.ops import ViewOp
from pytensor.compile.sharedvalue import SharedVariable, shared
from pytensor.graph.basic import Constant
from pytensor.graph.replace import clone_replace, vectorize_graph
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.graph.traversal import ancestors, toposort
from pytensor.scalar import basic as scalar
from pytensor.scalar.math import Erfc
from pytensor.tensor.basic import Alloc, ExtractDiag, Join, MakeVector
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.extra_ops import CumOp
from pytensor.tensor.math import Dot, Sum
from pytensor.tensor.random.basic import BernoulliRV, NormalRV
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape
from pytensor.tensor.subtensor import AdvancedIncSubtensor, AdvancedSubtensor, IncSubtensor, Subtensor
from pytensor.tensor.type import TensorType

from bayes_sparse.compiled import Compiled, compile_pointwise
from bayes_sparse.design import Design, FloatArray
from bayes_sparse.problem import Problem

__all__ = ["Declared", "Slot", "read_model"]

type Var = Any  # a PyTensor variable; its annotations know neither ndim nor dtype
type Values = Callable[[FloatArray], list[NDArray[Any]]]

# Graphs outside the likelihood are tiny: Python thunks without rewrites take a millisecond to compile. Rewriting
# takes fifty and earns them where a function is called often, or where an operation must first be unfolded.
_PLAIN = Mode(linker="py", optimizer="None")
_REWRITTEN = Mode(
    linker="py", optimizer=RewriteDatabaseQuery(include=["fast_run"], exclude=["fusion", "BlasOpt", "cxx_only"])
)
_REACH = 30.0  # how far from its start a nuisance parameter may go on the unconstrained scale


@dataclass(frozen=True)
class Slot:
    """Where a Gaussian variable of the user's model sits among the columns of the design.

    Attributes
    ----------
    name : str
        The variable's own name.
    shape : tuple of int
        Its shape; its columns are its values in C order.
    dims : tuple of str, optional
        Its dims, None where it has none.
    coords : dict
        Coordinate values of those dims that have any.
    columns : slice
        Its columns in the design.
    mean : array
        Its prior mean, in its own shape; the problem's w is relative to it.
    """

    name: str
    shape: tuple[int, ...]
    dims: tuple[str, ...] | None
    coords: dict[str, NDArray[Any]]
    columns: slice
    mean: FloatArray

    def values(self, w: FloatArray) -> FloatArray:
        """Values of the variable, ``(..., *shape)``, from the problem's w, ``(..., width)``."""
        own = w[..., self.columns]
        return own.reshape((*own.shape[:-1], *self.shape)) + self.mean


@dataclass(frozen=True)
class Declared:
    """A user's model, read.

    Attributes
    ----------
    problem : Problem
        What an evidence method needs.
    sparse, fixed : tuple of Slot
        The variables behind the columns whose precision is to be found, and behind all others.
    precision : dict
        For each sparse variable the names of the variables its prior sd depends on.
    observed : str
        Name of the observed variable.
    obs_dims : tuple of str, optional
        Its dims.
    obs_coords : dict
        Their coordinate values.
    describe : str
        The family of the likelihood: "normal", "bernoulli", "student_t" ..., "custom" for a user's own.
    nuisance : tuple of str
        Names of the variables behind theta, in order.
    unpack : callable
        ``unpack(theta)`` gives the nuisance variables on their own scale, by name.
    simulate : callable
        ``simulate(eta, theta, rng)`` draws one observation a row from the user's own distribution.
    mean : callable, optional
        ``mean(eta, theta)`` gives the expected observation; None where PyMC knows no formula.
    """

    problem: Problem
    sparse: tuple[Slot, ...]
    fixed: tuple[Slot, ...]
    precision: dict[str, tuple[str, ...]]
    observed: str
    obs_dims: tuple[str, ...] | None
    obs_coords: dict[str, NDArray[Any]]
    describe: str
    nuisance: tuple[str, ...]
    unpack: Callable[[FloatArray], dict[str, NDArray[Any]]]
    simulate: Callable[[FloatArray, FloatArray, np.random.Generator], NDArray[Any]]
    mean: Callable[[FloatArray, FloatArray], FloatArray] | None
    _laws: dict[str, Callable[[], _PowerLaw | None]]

    def hyper(self, name: str, precision: FloatArray) -> dict[str, FloatArray] | None:
        """Values of the variable behind a sparse prior that give the named weights these precisions.

        Parameters
        ----------
        name : str
            A sparse variable.
        precision : array
            Prior precisions of its weights; infinite where a weight is pruned.

        Returns
        -------
        dict or None
            ``{"alpha": values}`` where the prior sd is a power law of a single variable, else None.
        """
        law = self._laws[name]()
        return None if law is None else {law.hyper: law.invert(np.asarray(precision, dtype=float))}


@dataclass(frozen=True)
class _PowerLaw:
    """A prior sd of the form ``scale * hyper ** exponent``, weight by weight."""

    hyper: str
    scale: FloatArray
    exponent: float

    def invert(self, precision: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):  # a pruned weight has sd 0, and its alpha may be infinite
            values: FloatArray = (precision**-0.5 / self.scale.reshape(precision.shape)) ** (1 / self.exponent)
        return values


def read_model(
    model: pm.Model,
    weights: str | None = None,
    *,
    observation_weights: FloatArray | None = None,
    y: FloatArray | None = None,
) -> Declared:
    """Read a model with a sparse Gaussian prior and a linear predictor.

    Parameters
    ----------
    model : pm.Model
        The user's own model.
    weights : str, optional
        Name of the sparse weights. By default every Normal variable whose prior sd depends on a variable of the
        same shape.
    observation_weights : array (n,), optional
        A weight of 2 counts an observation twice.
    y : array, optional
        Stands in for the observed values: for prediction at rows that have not been observed.

    Returns
    -------
    Declared
        The problem, and what is needed to put values back under the user's own names.

    Raises
    ------
    ValueError
        If the model is not of this kind; the sentence says why and what to do.
    """
    observed = _observed(model)
    params = list(observed.owner.op.dist_params(observed.owner))
    y = _number(model.rvs_to_values[observed]) if y is None else y
    if y.ndim != 1:
        raise ValueError(f"The observed variable {observed.name!r} has {y.ndim} dimensions; it must have one.")
    weights_ = _check_weights(observation_weights, len(y))

    rvs = set(model.free_RVs)
    near = _reached(params, rvs)
    sparse, gaussian = _sparse_variables(model, weights, near)
    kinds = _classify(params, rvs, gaussian)
    eta = _predictor(params, kinds, rvs, sparse)
    below = _reached([eta], rvs) & gaussian
    latents = sparse + _in_order(below - set(sparse), model)
    nuisance = _Nuisance(model, _nuisance_variables(model, params, eta, latents, len(sparse)))

    shapes = {rv: _shape(model, rv) for rv in latents}
    means = {rv: np.broadcast_to(_prior_mean(rv), shapes[rv]) for rv in latents}
    likelihood = _Likelihood(observed, params, eta, rvs, nuisance, y)
    offset, blocks = _columns(eta, latents, shapes, kinds, len(y))
    for rv in latents:
        if means[rv].any():
            offset = offset + blocks[rv] @ means[rv].ravel()
    slots = _slots(model, latents, shapes, means)
    fixed = latents[len(sparse) :]

    problem = Problem(
        design=Design(
            _beside([blocks[rv] for rv in sparse], len(y)), extra=_beside([blocks[rv] for rv in fixed], len(y))
        ),
        y=y,
        free=np.repeat([rv in sparse for rv in latents], [blocks[rv].shape[1] for rv in latents]),
        fixed_precision=_fixed_precision(fixed, shapes, nuisance),
        pointwise=likelihood.pointwise,
        offset=offset,
        weights=weights_,
        theta=nuisance.start,
        theta_bounds=np.column_stack([nuisance.start - _REACH, nuisance.start + _REACH]),
        log_prior=nuisance.log_prior if nuisance.rvs else None,
        normal=likelihood.sigma is not None,
        sigma=1.0 if likelihood.sigma is None else likelihood.sigma,
    )
    hypers = {rv: _in_order(_reached([_prior_sd(rv)], rvs), model) for rv in sparse}
    return Declared(
        problem=problem,
        sparse=slots[: len(sparse)],
        fixed=slots[len(sparse) :],
        precision={rv.name: tuple(h.name for h in hypers[rv]) for rv in sparse},
        observed=observed.name,
        obs_dims=_dims(model, observed),
        obs_coords=_coords(model, observed),
        describe=_family(observed),
        nuisance=tuple(rv.name for rv in nuisance.rvs),
        unpack=nuisance.unpack,
        simulate=likelihood.simulate,
        mean=likelihood.mean if likelihood.has_mean else None,
        _laws={rv.name: _law_finder(_prior_sd(rv), hypers[rv], shapes[rv]) for rv in sparse},
    )


# ----- what the model must be


def _observed(model: pm.Model) -> Var:
    """Find the one observed variable, after refusing what an evidence method cannot see."""
    if model.potentials:
        raise ValueError(
            f"The model has a pm.Potential, {model.potentials[0].name!r}, which is not tied to observations; "
            'write a likelihood of your own as pm.CustomDist("y", eta, ..., logp=f, observed=y).'
        )
    if len(model.observed_RVs) != 1:
        names = ", ".join(repr(rv.name) for rv in model.observed_RVs) or "none"
        raise ValueError(f"The model must have exactly one observed variable; it has {names}.")
    observed = model.observed_RVs[0]
    if f"{observed.name.removesuffix('_observed')}_unobserved" in model.named_vars:
        name = observed.name.removesuffix("_observed")
        raise ValueError(f"The observed variable {name!r} has missing values; leave those rows out of the model.")
    for rv in model.free_RVs:
        if rv.dtype.startswith(("int", "uint", "bool")):
            raise ValueError(
                f"The variable {rv.name!r} is discrete; evidence methods need continuous latent variables, "
                "so sum it out of the likelihood (a mixture) or observe it."
            )
    op = observed.owner.op
    if not isinstance(op, RandomVariable | SymbolicRandomVariable) or op.ndim_supp != 0:
        raise ValueError(
            f"The observed variable {observed.name!r} is not a distribution of one number an observation; "
            "use a univariate one."
        )
    return observed


def _check_weights(weights: FloatArray | None, n: int) -> FloatArray | None:
    if weights is None:
        return None
    weights = np.asarray(weights, dtype=float)
    if weights.shape != (n,) or not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(f"The observation weights must be {n} finite numbers that are not negative.")
    return weights


def _sparse_variables(model: pm.Model, weights: str | None, near: set[Var]) -> tuple[list[Var], set[Var]]:
    """Find the sparse weights, and every variable with a Gaussian (or flat) prior of known mean."""
    rvs = set(model.free_RVs)
    for rv in model.free_RVs:
        if rv in near and "mvnormal" in type(rv.owner.op).__name__.lower():
            raise ValueError(
                f"The variable {rv.name!r} has a multivariate normal prior, which is not supported; "
                "declare it as pm.Normal with one sd a weight."
            )
    normal = [rv for rv in model.free_RVs if rv in near and isinstance(rv.owner.op, NormalRV | FlatRV)]
    for rv in normal:
        for parent in _in_order(_reached(_parameters(rv)[:1], rvs), model):
            raise ValueError(
                f"The prior mean of {rv.name!r} depends on {parent.name!r}; give {rv.name!r} a prior mean of zero "
                f"and add {parent.name!r} to the predictor."
            )
    candidates = [rv for rv in normal if isinstance(rv.owner.op, NormalRV) and rv.ndim]
    own = [rv for rv in candidates if _has_own_precisions(model, rv)]
    if weights is not None:
        chosen = [rv for rv in candidates if rv.name == weights]
        if not chosen:
            raise ValueError(
                f"weights={weights!r} does not name a vector with a Normal prior that reaches the observed "
                f"variable; {_those(candidates)}."
            )
        candidates = chosen
        if chosen[0] not in own:  # those with precisions of their own stay sparse beside it
            own = [] if _reached([_prior_sd(chosen[0])], rvs) else _in_order({*own, *chosen}, model)
    if own:
        return own, set(normal)
    for rv in candidates:
        for scale in _in_order(_reached([_prior_sd(rv)], rvs), model):
            raise ValueError(
                f"The weights {rv.name!r} share the prior scale {scale.name!r}; a sparse prior needs one "
                f"precision a weight, so give {scale.name!r} the shape of {rv.name!r}."
            )
    raise ValueError(
        f"No sparse prior was found: no Normal variable has an sd that depends on a variable of its own shape; "
        f"{_those(candidates)}, and one of them can be named as in "
        'bayes_sparse.models.Declared(model, weights="w").'
    )


def _in_order(variables: set[Var], model: pm.Model) -> list[Var]:
    return [rv for rv in model.free_RVs if rv in variables]


def _has_own_precisions(model: pm.Model, rv: Var) -> bool:
    shape = _shape(model, rv)
    return any(_shape(model, hyper) == shape for hyper in _reached([_prior_sd(rv)], set(model.free_RVs)))


def _those(variables: Sequence[Var]) -> str:
    names = ", ".join(repr(rv.name) for rv in variables)
    return f"the vectors with a Normal prior are {names}" if names else "the model has no vector with a Normal prior"


def _not_linear(name: str) -> str:
    return (
        f"The predictor is not linear in {name!r} with known coefficients, one value an observation; evidence "
        "methods of this kind need a linear predictor."
    )


def _nuisance_variables(model: pm.Model, params: list[Var], eta: Var, latents: list[Var], n_sparse: int) -> list[Var]:
    """Free variables that matter besides those in the predictor, in the model's order."""
    rvs = set(model.free_RVs)
    found: set[Var] = set()
    queue = (_reached(params, rvs | {eta}) - {eta}) | _reached([_prior_sd(rv) for rv in latents[n_sparse:]], rvs)
    while queue:
        rv = queue.pop()
        if rv in latents:
            raise ValueError(
                f"The variable {rv.name!r} reaches the likelihood both through the linear predictor and outside "
                "it; evidence methods of this kind need it in the predictor alone."
            )
        if isinstance(rv.owner.op, NormalRV) and rv.ndim:
            raise ValueError(
                f"The vector {rv.name!r} with a Normal prior reaches the likelihood other than through the linear "
                "predictor with known coefficients; declare it centred, with its sd in its own prior, and add it."
            )
        found.add(rv)
        queue |= _reached(_parameters(rv), rvs) - found
    return _in_order(found, model)


# ----- small questions about variables


def _parameters(rv: Var) -> list[Var]:
    return list(rv.owner.op.dist_params(rv.owner))


def _prior_sd(rv: Var) -> Var:
    return pt.constant(np.inf) if isinstance(rv.owner.op, FlatRV) else _parameters(rv)[1]


def _prior_mean(rv: Var) -> FloatArray:
    return np.zeros(()) if isinstance(rv.owner.op, FlatRV) else _number(_parameters(rv)[0])


def _shape(model: pm.Model, rv: Var) -> tuple[int, ...]:
    """Shape of a variable: static, else from its dims, else from its size."""
    if None not in rv.type.shape:
        return tuple(rv.type.shape)
    dims = _dims(model, rv)
    if dims is not None and len(dims) == rv.ndim:
        return tuple(int(_value(model.dim_lengths[dim])) for dim in dims)
    return tuple(int(size) for size in _value(rv.shape))


def _dims(model: pm.Model, rv: Var) -> tuple[str, ...] | None:
    dims = model.named_vars_to_dims.get(rv.name)
    return None if dims is None or None in dims else tuple(dims)


def _coords(model: pm.Model, rv: Var) -> dict[str, NDArray[Any]]:
    values = {dim: model.coords.get(dim) for dim in _dims(model, rv) or ()}
    return {dim: np.asarray(labels) for dim, labels in values.items() if labels is not None}


def _family(observed: Var) -> str:
    op = observed.owner.op
    if isinstance(op, CustomDistRV) or type(op).__name__.startswith("CustomDist"):
        return "custom"
    if isinstance(op, RandomVariable):
        return "student_t" if op.name == "t" else str(op.name)
    return type(op).__name__.removesuffix("RV").lower()


def _reached(outputs: Iterable[Var], blockers: set[Var]) -> set[Var]:
    """Those blockers on which the outputs depend by value; a shape is not a dependence."""
    found, seen, stack = set(), set(), list(outputs)
    while stack:
        variable = stack.pop()
        if variable in seen:
            continue
        seen.add(variable)
        if variable in blockers:
            found.add(variable)
        elif variable.owner is not None and not isinstance(variable.owner.op, Shape | Shape_i):
            stack.extend(variable.owner.inputs)
    return found


def _value(variable: Var) -> NDArray[Any]:
    """Value of a variable that depends on no random one; data and their transposes without a copy."""
    if isinstance(variable, Constant):
        return np.asarray(variable.data)
    if isinstance(variable, SharedVariable):
        held: Var = variable
        return np.asarray(held.get_value(borrow=True))
    op, inputs = variable.owner.op, variable.owner.inputs
    if isinstance(op, DimShuffle):
        kept = [axis for axis in op.new_order if axis != "x"]
        array = np.transpose(_value(inputs[0]), [*kept, *op.drop])
        array = np.asarray(array[(...,) + (0,) * len(op.drop)])
        return array[tuple(np.newaxis if axis == "x" else slice(None) for axis in op.new_order)]
    if isinstance(op, ViewOp):
        return _value(inputs[0])
    if isinstance(op, Elemwise) and isinstance(op.scalar_op, scalar.Cast):
        return _value(inputs[0]).astype(variable.dtype, copy=False)
    return np.asarray(_function([], [variable])()[0])


def _function(inputs: Sequence[Var], outputs: Sequence[Var], rewrite: bool = False) -> Callable[..., list[Any]]:
    rewrite = rewrite or any(isinstance(node.op, OpFromGraph) for node in toposort(outputs))
    mode = _REWRITTEN if rewrite else _PLAIN
    compiled: Any = pytensor_function(list(inputs), list(outputs), mode=mode, on_unused_input="ignore")
    return lambda *values: list(compiled(*values))


def _number(variable: Var) -> FloatArray:
    """Value in double precision: PyTensor stores 3.0 in single, and 1 / 3 must not be."""
    return np.asarray(_value(variable), dtype=float)


def _slots(
    model: pm.Model,
    latents: list[Var],
    shapes: Mapping[Var, tuple[int, ...]],
    means: Mapping[Var, FloatArray],
) -> tuple[Slot, ...]:
    slots, start = [], 0
    for rv in latents:
        stop = start + int(np.prod(shapes[rv], dtype=int))
        slots.append(Slot(rv.name, shapes[rv], _dims(model, rv), _coords(model, rv), slice(start, stop), means[rv]))
        start = stop
    return tuple(slots)


# ----- the predictor


def _classify(outputs: Sequence[Var], rvs: set[Var], gaussian: set[Var]) -> dict[Var, str]:
    """Label every node down to the free variables: constant, nuisance, affine or other."""
    return _label(outputs, {rv: "affine" if rv in gaussian else "nuisance" for rv in rvs})


def _label(outputs: Sequence[Var], kinds: dict[Var, str]) -> dict[Var, str]:
    for node in toposort(outputs, blockers=list(kinds)):
        kind = _kind(node, [kinds.get(i, "constant") for i in node.inputs])
        kinds.update(dict.fromkeys(node.outputs, kind))
    return kinds


def _kind(node: Any, kinds: list[str]) -> str:
    if isinstance(node.op, Shape | Shape_i):
        return "constant"
    if "other" in kinds:
        return "other"
    if "affine" not in kinds:
        return "nuisance" if "nuisance" in kinds else "constant"
    if "nuisance" in kinds:
        return "other"
    return "affine" if _keeps_affine(node.op, [kind == "affine" for kind in kinds]) else "other"


def _keeps_affine(op: Any, moves: list[bool]) -> bool:
    """Whether an operation on affine inputs (where `moves`) and constants gives an affine output."""
    match op:
        case Elemwise(scalar_op=scalar.Add() | scalar.Sub() | scalar.Neg() | scalar.Identity() | scalar.Second()):
            return True
        case Elemwise(scalar_op=scalar.Cast() as cast):
            return bool(cast.o_type.dtype.startswith("float"))
        case Elemwise(scalar_op=scalar.Mul()) | Dot():
            return sum(moves) == 1
        case Elemwise(scalar_op=scalar.TrueDiv()):
            return not moves[1]
        case Elemwise(scalar_op=scalar.Switch()):
            return not moves[0]
        case Join() | MakeVector():
            return True
        case CumOp():
            return bool(op.mode == "add")
        case IncSubtensor() | AdvancedIncSubtensor():
            return not any(moves[2:])
        case DimShuffle() | Sum() | Reshape() | SpecifyShape() | Alloc() | ViewOp() | ExtractDiag():
            return not any(moves[1:])
        case Subtensor() | AdvancedSubtensor():
            return not any(moves[1:])
        case Blockwise():
            return _keeps_affine(op.core_op, moves)
        case OpFromGraph() if not isinstance(op, SymbolicRandomVariable) and len(op.inner_outputs) == 1:
            seeds = {v: "affine" if m else "constant" for v, m in zip(op.inner_inputs, moves, strict=True)}
            return _label(op.inner_outputs, seeds)[op.inner_outputs[0]] == "affine"
    return False


def _predictor(params: list[Var], kinds: Mapping[Var, str], rvs: set[Var], sparse: list[Var]) -> Var:
    """Find the last affine node through which all influence of the sparse weights passes."""
    weights = set(sparse)
    nodes = list(toposort(params, blockers=list(rvs)))
    for variable in [out for node in reversed(nodes) for out in node.outputs] + sparse:
        if kinds[variable] != "affine" or variable.ndim != 1 or not _reached([variable], weights):
            continue
        if not _reached(params, {variable, *weights}) - {variable} and (
            variable not in weights or _by_row(params, {variable: 0})
        ):
            return _unscaled(variable, params)
    used = {i for node in nodes if kinds[node.outputs[0]] != "affine" for i in node.inputs} | set(params)
    ends = [v for v in used if kinds.get(v) == "affine" and v not in weights and _reached([v], weights)]
    if len(ends) > 1:
        names = ", ".join(repr(rv.name) for rv in sparse)
        raise ValueError(
            f"The weights {names} enter the likelihood through {len(ends)} different linear predictors; evidence "
            "methods of this kind need a single one."
        )
    raise ValueError(_not_linear(sparse[0].name))


def _unscaled(eta: Var, params: list[Var]) -> Var:
    """Leave a sign or a factor inside the likelihood (the probit link has one), so that X stays as it is."""
    while eta not in params and eta.owner is not None and isinstance(eta.owner.op, Elemwise):
        moving = [i for i in eta.owner.inputs if not _is_number(i)]
        scales = isinstance(eta.owner.op.scalar_op, scalar.Neg | scalar.Mul | scalar.TrueDiv)
        if not scales or len(moving) != 1 or moving[0].ndim != 1:
            break
        eta = moving[0]
    return eta


def _is_number(variable: Var) -> bool:
    """Whether a variable is made of single constants."""
    return all(_is_literal(v) for v in ancestors([variable]) if v.owner is None)


def _columns(
    eta: Var,
    latents: list[Var],
    shapes: Mapping[Var, tuple[int, ...]],
    kinds: Mapping[Var, str],
    n: int,
) -> tuple[FloatArray, dict[Var, FloatArray]]:
    """Read ``eta = offset + sum_v block_v @ v.ravel()`` off the graph."""
    not_linear = ValueError(_not_linear(latents[0].name))
    offset = np.zeros(n)
    terms: dict[Var, list[tuple[FloatArray, FloatArray]]] = {rv: [] for rv in latents}
    stack: list[tuple[Var, FloatArray]] = [(eta, np.ones(()))]
    while stack:
        variable, scale = stack.pop()
        if kinds.get(variable, "constant") == "constant":
            offset = offset + scale * _number(variable)
        elif parts := _parts(variable, kinds):
            stack.extend((part, scale * factor) for part, factor in parts)
        else:
            found = _product(variable, shapes, kinds, n)
            constant, blocks = (0.0, dict([found])) if found else _jacobian(variable, latents, shapes)
            offset = offset + scale * constant
            for rv, block in blocks.items():
                terms[rv].append((scale, block))
        if offset.shape != (n,):
            raise not_linear
    if any(block.shape[0] not in (1, n) for term in terms.values() for _, block in term):
        raise not_linear
    return offset, {rv: _total(term, n) for rv, term in terms.items()}


def _parts(variable: Var, kinds: Mapping[Var, str]) -> list[tuple[Var, FloatArray]]:
    """Write an affine vector or scalar as a weighted sum of others; empty if it is not one."""
    if variable.owner is None:
        return []
    one, op, inputs = np.ones(()), variable.owner.op, variable.owner.inputs
    match op:
        case Elemwise(scalar_op=scalar.Add()):
            return [(i, one) for i in inputs]
        case Elemwise(scalar_op=scalar.Sub()):
            return [(inputs[0], one), (inputs[1], -one)]
        case Elemwise(scalar_op=scalar.Neg()):
            return [(inputs[0], -one)]
        case Elemwise(scalar_op=scalar.Mul()):
            factors = [_number(i) for i in inputs if kinds.get(i, "constant") == "constant"]
            return [(i, np.prod(np.broadcast_arrays(*factors), axis=0)) for i in inputs if kinds.get(i) == "affine"]
        case Elemwise(scalar_op=scalar.TrueDiv()):
            return [(inputs[0], 1.0 / _number(inputs[1]))]
        case Elemwise(scalar_op=scalar.Identity() | scalar.Cast()) | ViewOp() | SpecifyShape():
            return [(inputs[0], one)]
        case DimShuffle() if inputs[0].ndim == 0:
            return [(inputs[0], one)]
    return []


def _product(
    variable: Var, latents: Mapping[Var, tuple[int, ...]], kinds: Mapping[Var, str], n: int
) -> tuple[Var, FloatArray] | None:
    """Recognise the usual linear terms: a scalar, ``u[group]``, ``X @ w``, ``(X * w).sum(-1)``."""
    if variable in latents:
        return (variable, np.ones((1, 1))) if variable.ndim == 0 else None
    op, inputs = variable.owner.op, variable.owner.inputs
    if isinstance(op, AdvancedSubtensor) and inputs[0] in latents and inputs[0].ndim == len(inputs) - 1 == 1:
        if inputs[1].ndim != 1 or inputs[1].dtype == "bool":
            return None
        return inputs[0], np.eye(latents[inputs[0]][0])[_value(inputs[1])]
    if isinstance(op, DimShuffle) and op.drop:  # the squeeze after a product with a one-column matrix
        variable = inputs[0]
        op, inputs = variable.owner.op, variable.owner.inputs
    if isinstance(op, Sum) and op.axis in ((0,), (1,)):
        axis, inner = op.axis[0], inputs[0].owner
        if inner is None or not isinstance(inner.op, Elemwise) or not isinstance(inner.op.scalar_op, scalar.Mul):
            return None
        pair, order = inner.inputs, (("x", 0) if axis == 1 else (0, "x"))
        flip = axis == 0
    elif isinstance(op, Dot) or (isinstance(op, Blockwise) and isinstance(op.core_op, Dot)):
        pair, order = inputs, None
        flip = kinds.get(inputs[0]) == "affine"
    else:
        return None
    moving = [i for i in pair if kinds.get(i) == "affine"]
    still = [i for i in pair if kinds.get(i, "constant") == "constant"]
    if len(pair) != 2 or len(still) != 1 or still[0].ndim != 2:
        return None
    latent = _vector(moving[0], order)
    if latent not in latents:
        return None
    block = _number(still[0])
    block = block.T if flip else block
    return (latent, block) if block.shape == (n, *latents[latent]) else None  # else something is broadcast


def _vector(variable: Var, order: tuple[str | int, ...] | None) -> Var | None:
    """Find the vector behind added dimensions, if they were added in this order (any, where None)."""
    if variable.owner is None or not isinstance(variable.owner.op, DimShuffle):
        return variable if order is None and variable.ndim == 1 else None
    inner, new_order = variable.owner.inputs[0], tuple(variable.owner.op.new_order)
    return inner if inner.ndim == 1 and 0 in new_order and order in (None, new_order) else None


def _jacobian(
    variable: Var, latents: list[Var], shapes: Mapping[Var, tuple[int, ...]]
) -> tuple[FloatArray, dict[Var, FloatArray]]:
    """Constant and columns of any affine term: its values at zero and at every unit vector."""
    inside = _reached([variable], set(latents))
    used = [rv for rv in latents if rv in inside]
    sizes = [int(np.prod(shapes[rv], dtype=int)) for rv in used]
    points = np.vstack([np.zeros((1, sum(sizes))), np.eye(sum(sizes))])
    pieces = np.split(points, np.cumsum(sizes)[:-1], axis=1)
    batches = {rv: pt.constant(p.reshape(len(p), *shapes[rv])) for rv, p in zip(used, pieces, strict=True)}
    values = _number(vectorize_graph(variable, batches)).reshape(len(points), -1)
    columns = np.split((values[1:] - values[0]).T, np.cumsum(sizes)[:-1], axis=1)
    return values[0], dict(zip(used, columns, strict=True))


def _total(terms: list[tuple[FloatArray, FloatArray]], n: int) -> FloatArray:
    """Add up one variable's columns; its own array where it is used once as it is."""
    scaled = [b if np.ndim(s) == 0 and s == 1 else np.reshape(s, (-1, 1)) * b for s, b in terms]
    total = scaled[0] if len(scaled) == 1 else np.add.reduce([np.broadcast_to(b, (n, b.shape[1])) for b in scaled])
    return total if total.shape[0] == n else np.repeat(total, n, axis=0)


def _beside(blocks: list[FloatArray], n: int) -> FloatArray:
    return blocks[0] if len(blocks) == 1 else np.hstack([np.empty((n, 0)), *blocks])


# ----- priors


class _Nuisance:
    """The free variables behind theta: their start, their own scale, their log-density."""

    def __init__(self, model: pm.Model, rvs: list[Var]) -> None:
        self.rvs = rvs
        self._inputs = [model.rvs_to_values[rv] for rv in rvs]
        self.transforms = [model.rvs_to_transforms[rv] for rv in rvs]
        points = _unconstrained_start(model, rvs)
        self._shapes = [point.shape for point in points]
        self._cuts = np.cumsum([point.size for point in points])[:-1]
        self.start = np.concatenate([point.ravel() for point in points]) if rvs else np.empty(0)

    @cached_property
    def own_scale(self) -> dict[Var, Var]:
        """Each variable as an expression of the unconstrained inputs."""
        own: dict[Var, Var] = {}
        for rv, value, transform in zip(self.rvs, self._inputs, self.transforms, strict=True):
            inputs = _replaced(rv.owner.inputs, own)
            own[rv] = value if transform is None else transform.backward(value, *inputs)
        return own

    def split(self, theta: FloatArray) -> list[FloatArray]:
        """Cut theta into the unconstrained value of each variable, in its own shape."""
        if not self.rvs:
            return []
        pieces = np.split(np.asarray(theta, dtype=float), self._cuts)
        return [piece.reshape(shape) for piece, shape in zip(pieces, self._shapes, strict=True)]

    def function(self, outputs: Sequence[Var]) -> Values:
        """Values of variables that depend on nothing random but the nuisance, as a function of theta."""
        compiled: list[Callable[..., list[NDArray[Any]]]] = []

        def values(theta: FloatArray) -> list[NDArray[Any]]:
            if not compiled:  # on first use: many problems never ask
                compiled.append(_function(self._inputs, _replaced(outputs, self.own_scale)))
            return compiled[0](*self.split(theta))

        return values

    @cached_property
    def _own_values(self) -> Values:
        return self.function(self.rvs)

    def unpack(self, theta: FloatArray) -> dict[str, NDArray[Any]]:
        """Values on the variables' own scale, by name."""
        if not self.rvs:
            return {}
        return {rv.name: np.asarray(v) for rv, v in zip(self.rvs, self._own_values(theta), strict=True)}

    def log_prior(self, theta: FloatArray) -> float:
        """Log-density on the unconstrained scale."""
        return float(self._log_density(*self.split(theta))[0])

    @cached_property
    def _log_density(self) -> Callable[..., list[Any]]:
        key = self._key()
        if key is not None and key in _log_densities:
            return _log_densities[key]
        total: Var = pt.constant(0.0)
        for rv, value, transform in zip(self.rvs, self._inputs, self.transforms, strict=True):
            parents = {parent: own for parent, own in self.own_scale.items() if parent is not rv}
            [prior] = _replaced([rv], parents)
            total = total + pm.logp(prior, self.own_scale[rv], warn_rvs=False).sum()
            if transform is not None:
                total = total + transform.log_jac_det(value, *prior.owner.inputs).sum()
        function = _function(self._inputs, [total], rewrite=True)
        if key is not None:
            _log_densities[key] = function
        return function

    def _key(self) -> Hashable | None:
        """Structure of the priors, where it says everything about their log-density."""
        entries = []
        known = {rv: i for i, rv in enumerate(self.rvs)}
        for rv, value, transform in zip(self.rvs, self._inputs, self.transforms, strict=True):
            key, external = _structure(_parameters(rv), known, set())
            simple = isinstance(rv.owner.op, RandomVariable) and not isinstance(rv.owner.op, CustomDistRV)
            if external or not simple or not (transform is None or type(transform) is LogTransform):
                return None
            entries.append((rv.owner.op, transform is None, tuple(value.type.shape), key))
        return tuple(entries)


_log_densities: dict[Hashable, Callable[..., list[Any]]] = {}


def _unconstrained_start(model: pm.Model, rvs: list[Var]) -> list[FloatArray]:
    """Compute the model's initial point of these variables alone: that of all takes ten times as long."""
    points: dict[Var, Var] = {}
    outputs = []
    for rv in rvs:
        given = model.rvs_to_initial_values.get(rv)
        point = support_point(rv) if given is None or isinstance(given, str) else pt.as_tensor(given, dtype=rv.dtype)
        [points[rv], *inputs] = _replaced([point, *rv.owner.inputs], points)
        transform = model.rvs_to_transforms[rv]
        outputs.append(points[rv] if transform is None else transform.forward(points[rv], *inputs))
    if not outputs:
        return []
    return [np.asarray(v, dtype=float) for v in _function([], outputs)()]


def _fixed_precision(
    fixed: list[Var], shapes: Mapping[Var, tuple[int, ...]], nuisance: _Nuisance
) -> Callable[[FloatArray], FloatArray]:
    sds = [_prior_sd(rv) for rv in fixed]

    def precision(values: Sequence[NDArray[Any]]) -> FloatArray:
        spread = [np.broadcast_to(v, shapes[rv]).ravel() for v, rv in zip(values, fixed, strict=True)]
        return np.concatenate(spread).astype(float) ** -2.0 if spread else np.empty(0)

    if not _reached(sds, set(nuisance.rvs)):
        known = precision([_value(sd) for sd in sds])
        return lambda theta: known
    values = nuisance.function(sds)
    return lambda theta: precision(values(theta))


def _law_finder(sd: Var, hypers: list[Var], shape: tuple[int, ...]) -> Callable[[], _PowerLaw | None]:
    """Find ``sd = scale * alpha ** exponent`` when it is first asked for."""
    found: list[_PowerLaw | None] = []

    def law() -> _PowerLaw | None:
        if not found:
            found.append(_power_law(sd, hypers[0], shape) if len(hypers) == 1 else None)
        return found[0]

    return law


def _power_law(sd: Var, hyper: Var, shape: tuple[int, ...]) -> _PowerLaw | None:
    """Recognise a power law from two values of alpha and confirm it on a third."""
    value = hyper.type()
    function = _function([value], _replaced([sd], {hyper: value}))
    if int(np.prod(shape)) == 0:
        return None

    def at(alpha: FloatArray) -> FloatArray:
        return np.broadcast_to(np.asarray(function(alpha)[0], dtype=float), shape)

    third = np.linspace(0.5, 3.0, int(np.prod(shape))).reshape(shape)  # differs by weight: nothing is permuted
    one, four, other = at(np.ones(shape)), at(np.full(shape, 4.0)), at(third)
    if not (np.isfinite(one).all() and (one > 0).all() and (four > 0).all()):
        return None
    exponents = np.log(four / one) / np.log(4.0)
    exponent = float(exponents.flat[0])
    if exponent == 0 or not np.allclose(exponents, exponent) or not np.allclose(other, one * third**exponent):
        return None
    return _PowerLaw(hyper.name, one, round(exponent, 9))


# ----- the likelihood


class _Likelihood:
    """The observed variable's distribution along the predictor."""

    def __init__(
        self,
        observed: Var,
        params: list[Var],
        eta: Var,
        rvs: set[Var],
        nuisance: _Nuisance,
        y: FloatArray,
    ) -> None:
        self._observed, self._params, self._eta, self._y = observed, params, eta, y
        self._nuisance = nuisance
        op = observed.owner.op
        self._plain = isinstance(op, RandomVariable) and not isinstance(op, CustomDistRV)
        self._key, self._external = _structure(params, {eta: 0}, rvs)
        self._random = [bool(_reached([v], rvs)) for v in self._external]
        self._known = [None if r else _value(v) for v, r in zip(self._external, self._random, strict=True)]
        self._moving = nuisance.function([v for v, r in zip(self._external, self._random, strict=True) if r])
        self.sigma = self._normal_sigma()
        if self._plain and not _by_row(params, {eta: 0}):
            raise ValueError(_NOT_BY_ROW.format(observed.name))
        self._own = None if self._plain else self._own_density(rvs)

    @property
    def _normal(self) -> bool:
        mu, eta = self._params[0], self._eta
        return isinstance(self._observed.owner.op, NormalRV) and mu is eta and not _reached(self._params[1:], {eta})

    def _normal_sigma(self) -> float | FloatArray | None:
        """Known noise of a normal likelihood, 1 if theta is its logarithm, None if it is neither."""
        if not self._normal:
            return None
        sigma, rvs = self._params[1], self._nuisance.rvs
        if not rvs:
            value = _number(sigma)
            return float(value.item()) if value.size == 1 else np.broadcast_to(value, self._y.shape)
        while sigma.owner is not None and isinstance(sigma.owner.op, DimShuffle | ViewOp):
            sigma = sigma.owner.inputs[0]
        direct = len(rvs) == 1 and sigma is rvs[0] and sigma.ndim == 0
        return 1.0 if direct and isinstance(self._nuisance.transforms[0], LogTransform) else None

    def _normal_pointwise(self, eta: FloatArray, theta: FloatArray) -> tuple[FloatArray, ...]:
        [sigma] = self._noise(theta)
        residual = (self._y - eta) / sigma
        flat = np.zeros(len(eta))
        density = -0.5 * residual**2 - np.log(sigma) - 0.5 * np.log(2 * np.pi)
        return density, residual / sigma, flat - 1 / np.square(sigma), flat

    @cached_property
    def _noise(self) -> Values:
        return self._nuisance.function([pt.cast(self._params[1], "float64")])

    def pointwise(self, eta: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Log-density and its first three derivatives along eta, observation by observation."""
        if self._normal:
            density, first, second, third = self._normal_pointwise(eta, theta)
        else:
            density, first, second, third = self._compiled(eta, self._y, *self._values(theta))
        return density, first, second, third

    def simulate(self, eta: FloatArray, theta: FloatArray, rng: np.random.Generator) -> NDArray[Any]:
        """Draw one observation a row."""
        function, states = self._simulator
        for state in states:
            state.set_value(np.random.default_rng(rng.integers(2**63)), borrow=True)
        try:
            return np.asarray(function(*self._aligned(eta, theta))[0])
        except NotImplementedError as error:
            raise ValueError(
                f"The distribution of {self._observed.name!r} cannot be simulated; give pm.CustomDist a function "
                "random=f that draws from it."
            ) from error

    @property
    def has_mean(self) -> bool:
        """Whether PyMC knows the expected observation of this family."""
        return _mean.dispatch(type(self._observed.owner.op)) is not _mean.dispatch(object)

    def mean(self, eta: FloatArray, theta: FloatArray) -> FloatArray:
        """Compute the expected observation, row by row."""
        expected = np.asarray(self._expectation(*self._aligned(eta, theta))[0], dtype=float)
        return np.broadcast_to(expected, np.shape(eta))

    def _values(self, theta: FloatArray) -> list[FloatArray]:
        """Compute what the likelihood needs besides eta and y: the user's data and functions of theta."""
        moving = iter(self._moving(theta) if any(self._random) else ())
        return [np.asarray(next(moving) if v is None else v, dtype=float) for v in self._known]

    def _aligned(self, eta: FloatArray, theta: FloatArray) -> list[FloatArray]:
        eta = np.asarray(eta, dtype=float)
        values = self._values(theta)
        for value in values:
            if value.ndim and value.shape[0] not in (1, len(eta)) and value.shape[0] == len(self._y):
                raise ValueError(
                    f"The likelihood of {self._observed.name!r} uses data with {len(self._y)} rows, but the "
                    f"predictor has {len(eta)}; set the new data with pm.set_data and read the model again."
                )
        return [eta, *values]

    @cached_property
    def _inputs(self) -> list[Var]:
        """A fresh eta and one fresh variable for every value; only their number of rows is left open."""
        values = self._values(self._nuisance.start)
        return [pt.vector("eta", dtype="float64"), *(_input_like(value) for value in values)]

    def _placed(self) -> dict[Var, Var]:
        old, new = [self._eta, *self._external], self._inputs
        return {o: pt.cast(v, o.dtype) for o, v in zip(old, new, strict=True)}

    @cached_property
    def _distribution(self) -> Var:
        """The observed variable as a function of the fresh inputs, free of the number of rows where it can be."""
        node = self._observed.owner
        if isinstance(node.op, RandomVariable):
            params = _replaced(self._params, self._placed())
            op: Any = node.op
            return op.make_node(op.rng_param(node), None, *params).outputs[1]
        return _replaced([self._observed], self._placed())[0]

    @cached_property
    def _simulator(self) -> tuple[Callable[..., list[Any]], list[Var]]:
        states = [v for v in ancestors([self._distribution]) if isinstance(v.type, RandomType) and v.owner is None]
        make: Any = shared
        own = {state: make(np.random.default_rng(0)) for state in states}  # never the user's own
        return _function(self._inputs, _replaced([self._distribution], own)), list(own.values())

    @cached_property
    def _expectation(self) -> Callable[..., list[Any]]:
        expected = _mean(self._distribution.owner.op, self._distribution, *self._distribution.owner.inputs)
        return _function(self._inputs, [expected])

    @cached_property
    def _compiled(self) -> Compiled:
        """The compiled density, made on first use: reading a model must not wait for a compiler."""
        if self._own is not None:
            return self._own
        patterns = tuple(v.type.broadcastable for v in self._inputs)
        key = (self._observed.owner.op, self._observed.dtype, self._key, patterns)
        return compile_pointwise(key, self._build)

    def _build(self) -> tuple[Var, Var, list[Var]]:
        y = pt.vector("y", dtype="float64")
        value = pt.cast(y, self._observed.dtype)
        density = _probit_density(self._distribution, value)
        if density is None:
            density = pm.logp(self._distribution, value, warn_rvs=False)
        return density, self._inputs[0], [y, *self._inputs[1:]]

    def _own_density(self, rvs: set[Var]) -> Compiled:
        """Build the log-density of a user's own distribution now: only its graph can tell one from another."""
        density, eta, rest = self._build()
        density = _unallocated(density)
        for rv in sorted(_reached([density], rvs), key=lambda rv: str(rv.name)):
            raise ValueError(
                f"The log-density of {self._observed.name!r} uses {rv.name!r} without being given it; pass it as "
                "a parameter of the distribution."
            )
        inputs = [eta, *rest]
        if density.ndim != 1 or not _by_row([density], {eta: 0, rest[0]: 0}):
            raise ValueError(_NOT_BY_ROW.format(self._observed.name))
        key, captured = _structure([density], {v: i for i, v in enumerate(inputs)}, rvs)
        values = [_value(v) for v in captured]
        fresh = [_input_like(v) for v in values]
        patterns = tuple(v.type.broadcastable for v in [*inputs, *fresh])
        casts = {old: pt.cast(new, old.dtype) for old, new in zip(captured, fresh, strict=True)}
        [density] = _replaced([density], casts)
        function: list[Compiled] = []

        def compiled(eta_value: FloatArray, *others: FloatArray) -> list[FloatArray]:
            if not function:
                function.append(compile_pointwise((key, patterns), lambda: (density, eta, [*rest, *fresh])))
            return function[0](eta_value, *others, *values)

        return compiled


_NOT_BY_ROW = (
    "The likelihood of {!r} mixes observations after the linear predictor; evidence methods of this kind need a "
    "linear predictor and one log-density term an observation."
)


def _probit_density(distribution: Var, value: Var) -> Var | None:
    """Write the density of a Bernoulli variable with the probit link stably; PyMC's is 0/0 beyond eta = 30."""
    if not isinstance(distribution.owner.op, BernoulliRV):
        return None
    [p] = _parameters(distribution)
    if p.owner is None or not isinstance(p.owner.op, Elemwise) or not isinstance(p.owner.op.scalar_op, scalar.Mul):
        return None
    moving = [i for i in p.owner.inputs if not _is_number(i)]
    halves = [i for i in p.owner.inputs if _is_number(i) and (_value(i) == 0.5).all()]
    inner = moving[0].owner if len(moving) == len(halves) == 1 else None
    if inner is None or not isinstance(inner.op, Elemwise) or not isinstance(inner.op.scalar_op, Erfc):
        return None
    x = inner.inputs[0]
    return pt.switch(pt.eq(value, 1), _log_half_erfc(x), _log_half_erfc(-x))


def _log_half_erfc(x: Var) -> Var:
    # Both branches are kept finite everywhere: a gradient multiplies the one not taken by zero.
    far, near = pt.maximum(x, 0.5), pt.minimum(x, 0.5)
    return pt.switch(pt.gt(x, 0.5), pt.log(pt.erfcx(far) / 2) - far**2, pt.log1p(-pt.erfc(-near) / 2))


def _input_like(value: NDArray[Any]) -> Var:
    return pt.tensor(dtype="float64", shape=tuple(1 if size == 1 else None for size in value.shape))


def _replaced(outputs: Sequence[Var], replacements: Mapping[Var, Var]) -> list[Var]:
    """Copy the outputs with variables replaced, also where an output is one of them."""
    if not replacements:
        return list(outputs)
    inner = [v for v in outputs if v not in replacements]
    copies = iter(clone_replace(inner, dict(replacements), rebuild_strict=False) if inner else ())
    return [replacements[v] if v in replacements else next(copies) for v in outputs]


def _unallocated(density: Var) -> Var:
    """Drop parameter checks and whatever fixes the number of rows; unfold operations made of others."""
    new: dict[Var, Var] = {}
    for node in toposort([density]):
        inputs = [new.get(i, i) for i in node.inputs]
        first: Var = inputs[0] if inputs else None
        spread = isinstance(node.op, Alloc) and first.ndim == node.out.ndim and not any(first.type.broadcastable)
        if spread or isinstance(node.op, CheckParameterValue | SpecifyShape):
            new[node.outputs[0]] = first
        elif isinstance(node.op, OpFromGraph):
            inside = node.op.fgraph.unfreeze()
            outputs = _replaced(inside.outputs, dict(zip(inside.inputs, inputs, strict=True)))
            new.update(zip(node.outputs, outputs, strict=True))
        elif inputs != node.inputs:
            new.update(zip(node.outputs, node.clone_with_new_inputs(inputs, strict=False).outputs, strict=True))
    return new.get(density, density)


def _by_row(outputs: Sequence[Var], rows: dict[Var, int]) -> bool:
    """Whether row n of the outputs depends on row n of the given variables alone, by following their row axis."""
    rows = dict(rows)
    for node in toposort(outputs, blockers=list(rows)):
        moving = {rows[i] for i in node.inputs if i in rows}
        if not moving or isinstance(node.op, Shape | Shape_i):
            continue
        axis = _row_axis(node, moving.pop()) if len(moving) == 1 else None
        if axis is None:
            return False
        rows.update(dict.fromkeys(node.outputs, axis))
    return all(rows.get(out, 0) == 0 and out.ndim <= 1 for out in outputs if out in rows)


def _row_axis(node: Any, axis: int) -> int | None:
    """Where the row axis of the inputs is in the output; None if it is lost or mixed."""
    op, out = node.op, node.outputs[0]
    if isinstance(op, Elemwise | ViewOp | SpecifyShape):
        return axis
    if isinstance(op, DimShuffle):
        return int(op.new_order.index(axis)) if axis in op.new_order else None
    if isinstance(op, Alloc):
        return int(axis + out.ndim - node.inputs[0].ndim)
    over = getattr(op, "axis", None)
    if over is None:
        return None
    over = tuple(over) if isinstance(over, tuple | list) else (int(over),)
    over = tuple(a % node.inputs[-1].ndim for a in over)
    removed = out.ndim < node.inputs[-1].ndim
    return None if axis in over else axis - (sum(a < axis for a in over) if removed else 0)


def _structure(outputs: Sequence[Var], known: Mapping[Var, int], rvs: set[Var]) -> tuple[Hashable, list[Var]]:
    """Describe a graph down to the known inputs, without any data.

    Returns
    -------
    key : hashable
        Equal for graphs that compute the same function: operations, wiring, and single numbers by value.
    external : list of Var
        What the graph takes in besides the known inputs (arrays of data, functions of nuisance variables), in the
        order the key refers to them. They do not depend on the known inputs.
    """
    roles = _roles(outputs, set(known), rvs)
    entries: list[Hashable] = []
    seen: dict[Var, int] = {}
    external: list[Var] = []

    def visit(variable: Var) -> int:
        if variable in seen:
            return seen[variable]
        entry: Hashable
        if variable in known:
            entry = ("known", known[variable])
        elif roles.get(variable) == "external" or (variable.owner is None and not _is_literal(variable)):
            entry = ("external", len(external), str(variable.type.dtype))
            external.append(variable)
        elif variable.owner is None:
            entry = _literal(variable)
        else:
            node = variable.owner
            entry = (node.op, node.outputs.index(variable), tuple(visit(i) for i in node.inputs))
        seen[variable] = len(entries)
        entries.append(entry)
        return seen[variable]

    roots = tuple(visit(out) for out in outputs)
    return (roots, tuple(entries)), external


def _roles(outputs: Sequence[Var], known: set[Var], rvs: set[Var]) -> dict[Var, str]:
    """For every node: "moving" with the known inputs, "literal" (made of single numbers), or "external"."""
    roles = dict.fromkeys(rvs, "external") | dict.fromkeys(known, "moving")
    for node in toposort(outputs, blockers=list(roles)):
        inputs = {roles.get(i, "literal" if _is_literal(i) else "external") for i in node.inputs}
        # A part that is itself a distribution (of a mixture) belongs to the likelihood: its value would be a draw.
        drawn = isinstance(node.op, RandomVariable | SymbolicRandomVariable)
        role = "moving" if "moving" in inputs or drawn else "external" if "external" in inputs else "literal"
        roles.update(dict.fromkeys(node.outputs, role))
    return roles


def _is_literal(variable: Var) -> bool:
    if not isinstance(variable.type, TensorType):
        return True
    return isinstance(variable, Constant) and variable.data.size <= 1


def _literal(variable: Var) -> Hashable:
    if isinstance(variable, Constant) and isinstance(variable.type, TensorType):
        return (str(variable.type.dtype), variable.data.shape, variable.data.tobytes())
    return ("none",) if not isinstance(variable.type, RandomType) else ("random state",)
