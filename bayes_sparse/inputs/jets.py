"""Derivatives of a density's graph by the chain rule, node by node: nothing is differentiated or compiled beforehand.

To third order along several predictors the derivatives of a density have hundreds of nodes where the density has
forty, and PyTensor takes seconds to minutes to make a function of them. Here each node of the density itself hands on
its value and its first three derivatives, its jet: full symmetric arrays (k, ..., k, n) along the k predictors that it
depends on, by numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from importlib import import_module
from typing import Any

import numpy as np
from pytensor.graph.basic import Constant
from pytensor.graph.traversal import toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.scalar import basic as scalar
from pytensor.scalar import math as special_scalar
from pytensor.tensor.basic import Alloc, Join, Split
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Max, Sum
from pytensor.tensor.shape import SpecifyShape
from pytensor.tensor.subtensor import Subtensor
from scipy.special import expit, polygamma, psi

from bayes_sparse.common.types import FloatArray

__all__ = ["Unknown", "jet_function"]

type Variable = Any  # a PyTensor variable or node; its annotations know neither ndim nor dtype
type Jet = list[Any]  # value, then as many derivatives as are asked for; a value alone where nothing moves
type Rule = Callable[[list[Jet]], list[Jet]]
type Slopes = Callable[[FloatArray, FloatArray], tuple[Any, ...]]

_LINEAR = (DimShuffle, Join, Split, Sum, Subtensor, Alloc, SpecifyShape)


_HUGE = 1e100  # stands for a row's bound at infinity, with squares and cubes that are numbers
_FAR = 28.0  # where exp(-x^2) is zero in doubles
_TERMS = 8  # of the series in 1 / x^2 that are exact there


class Unknown(Exception):
    """A node whose derivatives are not known here."""


def jet_function(
    density: Variable, etas: Sequence[Variable], inputs: Sequence[Variable], derivatives: int
) -> Callable[..., tuple[FloatArray, ...]]:
    """The function ``f(eta, *inputs)`` that gives a density and its derivatives along eta (K, n).

    It gives fewer of them where it is told ``derivatives=``, and is quicker then.

    Parameters
    ----------
    density : Variable
        One term per observation, which depends on no other's predictors.
    etas, inputs : sequence of Variable
        The predictors, and everything else that the density takes in.
    derivatives : int
        How many, at most three.

    Raises
    ------
    Unknown
        If the graph has a node with derivatives that are not known here.
    """
    along: dict[Variable, tuple[int, ...]] = {eta: (k,) for k, eta in enumerate(etas)} if derivatives else {}
    steps = []
    for node in toposort([density]):
        moves = [v in along for v in node.inputs]
        moved = any(moves) and not _is_flat(node)
        own = tuple(sorted({k for v in node.inputs for k in along.get(v, ())}))
        widths = [_width(along.get(v, own), own) if moved else None for v in node.inputs]
        steps.append((node, widths, _moved(node, moves) if moved else _still(_plain(node))))
        along |= dict.fromkeys(node.outputs, own) if moved else {}
    known = {v: [np.asarray(v.data)] for node, *_ in steps for v in node.inputs if isinstance(v, Constant)}
    last = _width(along.get(density, ()), tuple(range(len(etas))))

    def call(eta: FloatArray, *rest: FloatArray, derivatives: int = derivatives) -> tuple[FloatArray, ...]:
        jets: dict[Variable, Jet] = dict(known)
        jets |= {v: [np.clip(value, -_HUGE, _HUGE)] for v, value in zip(inputs, rest, strict=True)}
        jets |= {v: _coordinate(np.asarray(own, dtype=float), derivatives) for v, own in zip(etas, eta, strict=True)}
        with np.errstate(all="ignore"):  # a trial step may leave a likelihood's range, and a branch not taken may too
            for node, widths, rule in steps:
                pairs = zip(node.inputs, widths, strict=True)
                own = [jets[v] if width is None else _widened(jets[v], width) for v, width in pairs]
                jets.update(zip(node.outputs, rule(own), strict=True))
        K, n = np.shape(eta)
        found = _widened(jets[density], last) + [0.0] * (derivatives + 1 - len(jets[density]))
        return tuple(np.array(np.broadcast_to(term, (K,) * i + (n,))) for i, term in enumerate(found))

    return call


def _coordinate(eta: FloatArray, derivatives: int) -> Jet:
    """A predictor's own jet, along itself: a straight line."""
    n = len(eta)
    return [eta, np.ones((1, n)), np.zeros((1, 1, n)), np.zeros((1, 1, 1, n))][: derivatives + 1]


type Width = tuple[list[int], int] | None


def _width(own: tuple[int, ...], every: tuple[int, ...]) -> Width:
    """Where the predictors that a variable depends on are among more of them, and how many those are."""
    return None if own == every else ([every.index(k) for k in own], len(every))


def _widened(jet: Jet, width: Width) -> Jet:
    """A jet along more predictors, on which it does not depend."""
    if width is None or len(jet) == 1:
        return jet
    where, size = width
    out = jet[:1]
    for order, term in enumerate(jet[1:], start=1):
        full = np.zeros((*(size,) * order, *term.shape[order:]))
        full[np.ix_(*[where] * order)] = term
        out.append(full)
    return out


def _is_flat(node: Variable) -> bool:
    """Whether its value jumps or stays: a comparison, a sign, a distance from infinity."""
    op = node.op.scalar_op if isinstance(node.op, Elemwise) else None
    endless = any(isinstance(v, Constant) and np.isinf(v.data).all() for v in node.inputs)
    step = isinstance(op, scalar.Sign | scalar.Floor | scalar.Ceil)
    return step or (isinstance(op, scalar.Sub) and endless) or not node.outputs[0].dtype.startswith("float")


def _still(plain: Callable[..., list[Any]]) -> Rule:
    return lambda jets: [[value] for value in plain(*(jet[0] for jet in jets))]


def _plain(node: Variable) -> Callable[..., list[Any]]:
    """The node as a function of values."""
    if isinstance(node.op, Elemwise):
        ufunc, dtype = _ufunc(node.op.scalar_op), node.outputs[0].dtype
        return lambda *values: [np.asarray(ufunc(*values), dtype=dtype)]
    if isinstance(node.op, CheckAndRaise | SpecifyShape):
        return lambda *values: [values[0]]  # a trial step may fail a check, and must not raise; a shape is as it is

    def performed(*values: Any) -> list[Any]:
        out: list[list[Any]] = [[None] for _ in node.outputs]
        node.op.perform(node, list(values), out)
        return [cell[0] for cell in out]

    return performed


def _ufunc(op: Any) -> Callable[..., Any]:
    if isinstance(op, scalar.Add | scalar.Mul):
        pair = np.add if isinstance(op, scalar.Add) else np.multiply
        return lambda *values: reduce(pair, values)
    if isinstance(op, scalar.Switch):
        return np.where
    if isinstance(op, scalar.Cast):
        return np.asarray
    if isinstance(op, special_scalar.Softplus):
        return lambda x: np.logaddexp(0.0, x)
    if isinstance(op, special_scalar.Log1mexp):
        return lambda x: np.where(x < -np.log(2), np.log1p(-np.exp(x)), np.log(-np.expm1(x)))
    module, _, name = (getattr(op, "nfunc_spec", None) or [""])[0].rpartition(".")
    named: Any = getattr(import_module(module or "numpy"), name, None)
    found: Callable[..., Any] = np.frompyfunc(op.impl, op.nin, 1) if named is None else named
    return found


def _moved(node: Variable, moves: list[bool]) -> Rule:
    """The node as a function of jets."""
    if isinstance(node.op, CheckAndRaise):
        return lambda jets: jets[:1]
    if isinstance(node.op, _LINEAR):
        return _linear(node, moves)
    if isinstance(node.op, Max):
        return _largest(node)
    if not isinstance(node.op, Elemwise):
        raise Unknown(str(node.op))
    rule = _elementwise(node, moves)
    return lambda jets: [rule(jets)]


def _linear(node: Variable, moves: list[bool]) -> Rule:
    """Each derivative goes the way of the value; numbers that do not move say where, or are added and vanish."""
    plain = _plain(node)

    def rule(jets: list[Jet]) -> list[Jet]:
        values = [jet[0] for jet in jets]
        idle = [v if np.asarray(v).dtype.kind in "iub" else np.zeros_like(v) for v in values]
        outputs: list[Jet] = [[value] for value in plain(*values)]
        full = [_full(jet) if m else jet for jet, m in zip(jets, moves, strict=True)]
        one = next(jet for jet, m in zip(full, moves, strict=True) if m)
        for order in range(1, len(one)):
            lead = one[order].shape[:order]
            each = [
                plain(*(jet[order][at] if m else still for jet, m, still in zip(full, moves, idle, strict=True)))
                for at in np.ndindex(lead)
            ]
            for out, parts in zip(outputs, zip(*each, strict=True), strict=True):
                out.append(np.stack(parts).reshape(*lead, *parts[0].shape))
        return outputs

    return rule


def _full(jet: Jet) -> Jet:
    """Derivatives of the value's own shape: what is the same for all entries is said for each."""
    shape = np.shape(jet[0])
    return [np.broadcast_to(term, (*term.shape[:order], *shape)) for order, term in enumerate(jet)]


def _largest(node: Variable) -> Rule:
    """The jet of the largest entry along one axis."""
    axis = node.op.axis
    if axis is None or len(axis) != 1:
        raise Unknown(str(node.op))

    def rule(jets: list[Jet]) -> list[Jet]:
        jet = _full(jets[0])
        at = np.expand_dims(np.argmax(jet[0], axis=axis[0]), axis[0])
        picked = []
        for order, term in enumerate(jet):
            where = np.broadcast_to(at, (*term.shape[:order], *at.shape))
            picked.append(np.take_along_axis(term, where, axis[0] + order).squeeze(axis[0] + order))
        return [picked]

    return rule


def _elementwise(node: Variable, moves: list[bool]) -> Callable[[list[Jet]], Jet]:
    op = node.op.scalar_op
    if isinstance(op, scalar.Add):
        return lambda jets: reduce(_sum, jets)
    if isinstance(op, scalar.Sub):
        return lambda jets: _sum(jets[0], [-term for term in jets[1]])
    if isinstance(op, scalar.Neg):
        return lambda jets: [-term for term in jets[0]]
    if isinstance(op, scalar.Mul):
        return lambda jets: reduce(_product, jets)
    if isinstance(op, scalar.TrueDiv):
        return lambda jets: _product(jets[0], _chain(jets[1], 1 / jets[1][0], _reciprocal))
    if isinstance(op, scalar.Switch) and not moves[0]:
        return lambda jets: _either(jets[0][0], jets[1], jets[2])
    if isinstance(op, scalar.ScalarMaximum | scalar.ScalarMinimum):
        up = isinstance(op, scalar.ScalarMaximum)
        return lambda jets: _either((jets[0][0] >= jets[1][0]) == up, jets[0], jets[1])
    if isinstance(op, scalar.Pow):
        return _raised if moves[1] else _powered
    slopes = next((rule for kind, rule in _SLOPES.items() if isinstance(op, kind)), None)
    if slopes is None:
        raise Unknown(str(op))
    ufunc = _ufunc(op)
    return lambda jets: _chain(jets[0], np.asarray(ufunc(jets[0][0]), dtype=float), slopes)


def _powered(jets: list[Jet]) -> Jet:
    base, [c] = jets
    return _chain(base, base[0] ** c, lambda x, _: _power(x, c))


def _raised(jets: list[Jet]) -> Jet:
    """An exponent that moves is that of a positive number."""
    base, exponent = jets
    rate = _product(exponent, _chain(base, np.log(base[0]), lambda x, _: _logarithm(x)))
    return _chain(rate, base[0] ** exponent[0], lambda _, v: (v, v, v))


def _reciprocal(x: FloatArray, v: FloatArray) -> tuple[Any, ...]:
    return -(v**2), 2 * v**3, -6 * v**4


def _power(x: FloatArray, c: FloatArray) -> tuple[Any, ...]:
    return c * x ** (c - 1), c * (c - 1) * x ** (c - 2), c * (c - 1) * (c - 2) * x ** (c - 3)


def _logarithm(x: FloatArray) -> tuple[Any, ...]:
    r = 1 / x
    return r, -(r**2), 2 * r**3


def _logistic(x: FloatArray, _: FloatArray) -> tuple[Any, ...]:
    p, q = expit(x), expit(-x)
    return p * q, p * q * (q - p), p * q * (1 - 6 * p * q)


def _log_of_rest(x: FloatArray, _: FloatArray) -> tuple[Any, ...]:
    """Of ``log(1 - exp(x))``."""
    odds = -np.exp(x) / np.expm1(x)
    return -odds, -odds * (1 + odds), -odds * (1 + odds) * (1 + 2 * odds)


def _root(x: FloatArray, v: FloatArray) -> tuple[Any, ...]:
    return 0.5 / v, -0.25 / (v * x), 0.375 / (v * x**2)


def _bell(x: FloatArray, sign: float) -> tuple[Any, ...]:
    """Of the error function."""
    x = np.clip(x, -_FAR, _FAR)
    g = sign * 2 / np.sqrt(np.pi) * np.exp(-(x**2))
    return g, -2 * x * g, (4 * x**2 - 2) * g


def _scaled_bell(x: FloatArray, v: FloatArray) -> tuple[Any, ...]:
    """Of ``exp(x^2) erfc(x)``, whose slope is ``2 x`` times itself less ``2 / sqrt(pi)``.

    Far out nothing is left of that difference, and a few terms of the series in ``1 / x`` are exact.
    """
    first = 2 * x * v - 2 / np.sqrt(np.pi)
    second = 2 * v + 2 * x * first
    near = first, second, 4 * first + 2 * x * second
    far, out = np.asarray(x) > _FAR, []
    if not far.any():
        return near
    powers = 2 * np.arange(_TERMS) + 1.0
    factors = np.cumprod(np.append(1.0, -powers[:-1] / 2)) / np.sqrt(np.pi)
    r = 1 / np.where(far, x, _FAR)
    for order, slope in enumerate(near, start=1):
        factors = -powers * factors
        powers = powers + 1
        out.append(np.where(far, r**order * r * np.polynomial.polynomial.polyval(r**2, factors), slope))
    return tuple(out)


def _tangent(v: FloatArray) -> tuple[Any, ...]:
    """Of tanh."""
    first = 1 - v**2
    return first, -2 * v * first, first * (6 * v**2 - 2)


# First three derivatives, from the argument and the value.
_SLOPES: dict[type, Slopes] = {
    scalar.Exp: lambda x, v: (v, v, v),
    scalar.Expm1: lambda x, v: (v + 1, v + 1, v + 1),
    scalar.Log: lambda x, v: _logarithm(x),
    scalar.Log1p: lambda x, v: _logarithm(1 + x),
    scalar.Sqr: lambda x, v: (2 * x, 2.0, 0.0),
    scalar.Sqrt: _root,
    scalar.Reciprocal: _reciprocal,
    scalar.Abs: lambda x, v: (np.sign(x), 0.0, 0.0),
    scalar.Cast: lambda x, v: (1.0, 0.0, 0.0),
    scalar.Identity: lambda x, v: (1.0, 0.0, 0.0),
    scalar.Sin: lambda x, v: (np.cos(x), -v, -np.cos(x)),
    scalar.Cos: lambda x, v: (-np.sin(x), -v, np.sin(x)),
    scalar.Tanh: lambda x, v: _tangent(v),
    special_scalar.Sigmoid: _logistic,
    special_scalar.Softplus: lambda x, v: (expit(x), *_logistic(x, v)[:2]),
    special_scalar.Log1mexp: _log_of_rest,
    special_scalar.GammaLn: lambda x, v: (psi(x), polygamma(1, x), polygamma(2, x)),
    special_scalar.Psi: lambda x, v: (polygamma(1, x), polygamma(2, x), polygamma(3, x)),
    special_scalar.Erf: lambda x, v: _bell(x, 1.0),
    special_scalar.Erfc: lambda x, v: _bell(x, -1.0),
    special_scalar.Erfcx: _scaled_bell,
}


def _sum(u: Jet, v: Jet) -> Jet:
    longer = max(len(u), len(v))
    terms = zip(u + [0.0] * (longer - len(u)), v + [0.0] * (longer - len(v)), strict=True)
    return [a + b for a, b in terms]


def _either(condition: FloatArray, u: Jet, v: Jet) -> Jet:
    longer = max(len(u), len(v))
    terms = zip(u + [0.0] * (longer - len(u)), v + [0.0] * (longer - len(v)), strict=True)
    return [np.where(condition, a, b) for a, b in terms]


def _product(u: Jet, v: Jet) -> Jet:
    """Leibniz's rule."""
    if len(u) == 1 or len(v) == 1:
        return [a * b for a in u for b in v]
    out = [u[0] * v[0], u[1] * v[0] + u[0] * v[1]]
    if len(u) > 2:
        mixed = u[1][:, None] * v[1]
        out.append(u[2] * v[0] + u[0] * v[2] + mixed + np.swapaxes(mixed, 0, 1))
    if len(u) > 3:
        out.append(u[3] * v[0] + u[0] * v[3] + _three(u[2], v[1]) + _three(v[2], u[1]))
    return out


def _chain(u: Jet, value: Any, slopes: Slopes) -> Jet:
    """Faà di Bruno's formula, of a function of one argument."""
    if len(u) == 1:
        return [value]
    f1, f2, f3 = slopes(u[0], value)
    out = [value, f1 * u[1]]
    if len(u) > 2:
        square = u[1][:, None] * u[1]
        out.append(f2 * square + f1 * u[2])
    if len(u) > 3:
        out.append(f3 * square[:, :, None] * u[1] + f2 * _three(u[2], u[1]) + f1 * u[3])
    return out


def _three(A: FloatArray, b: FloatArray) -> FloatArray:
    """``A_ab b_c + A_ac b_b + A_bc b_a``."""
    return np.asarray(A[:, :, None] * b + A[:, None] * b[:, None] + A * b[:, None, None])
