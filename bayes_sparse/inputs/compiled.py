"""The log-likelihood along the predictor, compiled by PyTensor: value and three derivatives, element by element.

Only element-wise graphs are compiled here (about a second the first time on a machine, a fraction of one after
that); matrix products stay in BLAS, because compiling one dense product costs more than most fits. Along several
predictors there are too many derivatives for a compiler: those are computed node by node (`jets`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc.logprob.utils import CheckParameterValue
from pytensor.compile.maker import function as pytensor_function
from pytensor.compile.mode import Mode, get_default_mode
from pytensor.gradient import grad as gradient
from pytensor.graph.basic import Constant
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors, toposort
from pytensor.scalar.basic import Log1p, Neg, Sub, Switch
from pytensor.scalar.math import Log1mexp

from bayes_sparse.common.locks import building, one_at_a_time
from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.jets import Unknown, jet_function
from bayes_sparse.inputs.polygamma import teach_numba

__all__ = ["Compiled", "Spread", "compile_pointwise", "compile_several", "elementwise_mode"]

type Variable = Any  # a PyTensor variable; its annotations know neither ndim nor dtype
type Compiled = Callable[..., list[FloatArray]]
type Spread = Callable[..., tuple[FloatArray, ...]]

# Rewrites of matrix products: nothing here has one, and looking for a BLAS to link costs time and prints warnings.
_NOT_ELEMENTWISE = ("BlasOpt", "local_usmm")

# For hundreds of nodes: to fuse them, to reuse memory and to compile them takes longer than a fit.
_UNCOMPILED = Mode(
    linker="py",
    optimizer=RewriteDatabaseQuery(
        include=["fast_run"], exclude=["fusion", "inplace", "cxx_only", "symbolic_op_recognition", *_NOT_ELEMENTWISE]
    ),
)

_NODES = 32  # of a density, to whose third derivative: compiling more of them takes seconds
_FEW_ROWS = 5000  # along which jets take milliseconds

_cache: dict[Hashable, Compiled] = {}
_spread_cache: dict[Hashable, Spread] = {}


def compile_pointwise(
    key: Hashable,
    build: Callable[[], tuple[Variable, Variable, Sequence[Variable]]],
    derivatives: int = 3,
    rows: int | None = None,
) -> Compiled:
    """Compile a log-density and its derivatives, or return the function compiled before under the same key.

    Parameters
    ----------
    key : hashable
        Names the graph; equal keys must mean equal graphs.
    build : callable
        Returns ``(l, eta, inputs)``: the log-density one term an observation, the predictor it depends on, and
        every other input in calling order. Called only when the key is new.
    derivatives : int
        How many.
    rows : int, optional
        Number of observations, for a graph of the user's: a large one along few of them is not worth compiling.

    Returns
    -------
    callable
        ``f(eta, *inputs) -> [l, l', l'', l''']``, each of the length of eta.
    """
    few = rows is not None and rows <= _FEW_ROWS
    known = (key, derivatives, few)
    with building():
        if known not in _cache:
            density, eta, inputs = build()
            density = _stabilised(density)
            many = few and len(list(toposort([density]))) > _NODES
            by_jets = many or (rows is not None and _is_fragile(density, eta))
            jets = _single(density, eta, inputs, derivatives) if by_jets else None
            _cache[known] = jets or _function(density, [eta], inputs, derivatives, elementwise_mode())
        return _cache[known]


def _is_fragile(density: Variable, eta: Variable) -> bool:
    """Whether gradients of its graph are 0 times infinity somewhere, where jets are not.

    Of a branch that depends on the predictor, since a gradient multiplies what is not taken by zero; of log(1 - exp),
    whose gradient PyTensor writes with exponentials that overflow.
    """
    moved: set[Variable] = {eta}
    for node in toposort([density]):
        if moved.intersection(node.inputs):
            moved.update(node.outputs)
            op = getattr(node.op, "scalar_op", None)
            if isinstance(op, Log1mexp) or (isinstance(op, Switch) and node.inputs[0] in moved):
                return True
    return False


def _single(density: Variable, eta: Variable, inputs: Sequence[Variable], derivatives: int) -> Compiled | None:
    """By `jets`, along one predictor; None where these do not know a node."""
    try:
        function = jet_function(density, [eta], inputs, derivatives)
    except Unknown:
        return None

    def call(eta: FloatArray, *rest: FloatArray, derivatives: int = derivatives) -> list[FloatArray]:
        terms = function(np.asarray(eta)[None], *rest, derivatives=derivatives)
        return [term.reshape(np.shape(eta)) for term in terms]

    return call


def compile_several(
    key: Hashable,
    build: Callable[[], tuple[Variable, Sequence[Variable], Sequence[Variable]]],
    derivatives: int = 3,
) -> Spread:
    """The function of a log-density along several predictors, or the one made before under the same key.

    By `jets`, at once; where the graph has a node that those do not know, by PyTensor without a compiler, in seconds.

    Parameters
    ----------
    key : hashable
        Names the graph; equal keys must mean equal graphs.
    build : callable
        Returns ``(l, etas, inputs)``: the log-density one term per observation, the K predictors it depends on, and
        every other input in calling order. Called only when the key is new.
    derivatives : int
        How many.

    Returns
    -------
    callable
        ``f(eta, *inputs)``, eta of shape (K, n), gives l (n,), its slopes (K, n), second derivatives (K, K, n) and
        third ones (K, K, K, n).
    """
    known = (key, derivatives)
    with building():
        if known not in _spread_cache:
            density, etas, inputs = build()
            density = _stabilised(density)
            try:
                _spread_cache[known] = jet_function(density, etas, inputs, derivatives)
            except Unknown:
                _spread_cache[known] = _spread(density, etas, inputs, derivatives)
        return _spread_cache[known]


def _spread(density: Variable, etas: Sequence[Variable], inputs: Sequence[Variable], derivatives: int) -> Spread:
    """Distinct derivatives, differentiated and made a function by PyTensor, put into full symmetric arrays."""
    K, counts = len(etas), range(derivatives + 1)
    place = {order: i for i, order in enumerate(_distinct(K, derivatives))}
    orders = [[place[tuple(sorted(order))] for order in product(range(K), repeat=count)] for count in counts]
    places = [np.array(own).reshape((K,) * count) for count, own in zip(counts, orders, strict=True)]
    function = _function(density, etas, inputs, derivatives, _UNCOMPILED)

    def call(eta: FloatArray, *rest: FloatArray, derivatives: int = derivatives) -> tuple[FloatArray, ...]:
        found = np.stack(function(*eta, *rest))
        return tuple(found[place] for place in places[: derivatives + 1])

    return call


def _distinct(predictors: int, derivatives: int) -> list[tuple[int, ...]]:
    """Along which predictors to differentiate: none, each, each two, each three ..., in one order of each alone."""
    counts = range(derivatives + 1)
    return [order for count in counts for order in combinations_with_replacement(range(predictors), count)]


def _stabilised(density: Variable) -> Variable:
    """Before it is differentiated: the gradient of log1p(-sigmoid(eta)) is 0/0 far out, that of -softplus is not."""
    density = _rewritten(_without_checks(density))
    rests = {v: rest for v in ancestors([density]) if (rest := _rest_of_rest(v)) is not None}
    return _rewritten(clone_replace([density], rests)[0]) if rests else density


def _rewritten(density: Variable) -> Variable:
    kept = ("canonicalize", "stabilize", "specialize")
    return rewrite_graph(density, include=kept, exclude=(*_NOT_ELEMENTWISE, "local_pow_to_nested_squaring"))


def _rest_of_rest(variable: Variable) -> Variable | None:
    """``log(x)`` for ``log1p(-(1 - x))``, which PyTensor leaves as it is: no digit of a small x survives there."""
    node = variable
    for kind in (Log1p, Neg, Sub):
        node = node.owner if kind is Log1p else node.inputs[0].owner
        if node is None or not isinstance(getattr(node.op, "scalar_op", None), kind):
            return None
    one, x = node.inputs
    return pt.log(x) if isinstance(one, Constant) and np.all(one.data == 1) else None


def _function(
    density: Variable, etas: Sequence[Variable], inputs: Sequence[Variable], derivatives: int, mode: Any
) -> Compiled:
    found: dict[tuple[int, ...], Variable] = {(): density}
    for order in _distinct(len(etas), derivatives)[1:]:
        found[order] = gradient(found[order[:-1]].sum(), etas[order[-1]], disconnected_inputs="ignore")
    outputs = [pt.broadcast_arrays(out, etas[0])[0] for out in found.values()]
    function = pytensor_function([*etas, *inputs], outputs, mode=mode, on_unused_input="ignore")

    function.trust_input = True

    @one_at_a_time
    def call(*values: FloatArray, derivatives: int | None = None) -> list[FloatArray]:
        found = [np.asarray(out) for out in function(*(_aligned(a) for a in values))]
        return found if derivatives is None else found[: derivatives + 1]

    return call


def elementwise_mode() -> Any:
    """The default mode without what looks for matrix products."""
    teach_numba()
    mode: Any = get_default_mode()  # type: ignore[no-untyped-call]
    return mode.excluding(*_NOT_ELEMENTWISE)


def _without_checks(graph: Variable) -> Variable:
    """Drop PyMC's parameter checks: they reduce over all observations and raise inside compiled code."""
    while checks := [v for v in ancestors([graph]) if v.owner and isinstance(v.owner.op, CheckParameterValue)]:
        [graph] = clone_replace([graph], {v: v.owner.inputs[0] for v in checks})
    return graph


def _aligned(a: FloatArray) -> FloatArray:
    """Contiguous doubles, as compiled code wants them: nearly always they are, and asking numpy takes longer."""
    if type(a) is np.ndarray and a.dtype == np.float64 and a.flags.carray:
        return a
    return np.require(a, dtype=float, requirements=["A", "C"])
