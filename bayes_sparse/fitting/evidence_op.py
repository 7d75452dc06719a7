"""The log evidence as a PyTensor function of log precisions, for a `pm.Model` with any prior on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pytensor.tensor as pt

from bayes_sparse.common.threads import few_threads
from bayes_sparse.common.types import FloatArray
from bayes_sparse.fitting.choices import choose_model
from bayes_sparse.fitting.density_op import LogDensity
from bayes_sparse.fitting.readings import NamedReading, reading_of
from bayes_sparse.inference.approximations import LaplaceApproximation, approximate
from bayes_sparse.inference.evidence.state import Approximation, Objective, State
from bayes_sparse.inference.sampling import Value
from bayes_sparse.inputs.basis import Basis
from bayes_sparse.inputs.likelihoods import Likelihood
from bayes_sparse.inputs.model import Handed
from bayes_sparse.problem.classes import AnyProblem

__all__ = ["EvidenceOp", "log_evidence_op"]


def log_evidence_op(
    data: Any,
    *,
    target: str | None = None,
    likelihood: str | Likelihood = "auto",
    basis: str | Basis | Callable[..., Any] = "linear",
    keep: str | Sequence[str] | None = None,
    weights: Any = None,
    offset: Any = None,
    approximation: str = "auto",
) -> EvidenceOp:
    """Integrate the weights of a linear model out, for a `pm.Model` of the precisions alone.

    The data are read and standardised as by ``fit("ard_gaussian", ...)``, and the parameters mean the same.

    Parameters
    ----------
    data, target, likelihood, basis, keep, weights, offset
        See `bayes_sparse.fit`.
    approximation : str
        ``"auto"`` is exact for a normal likelihood and Laplace's method elsewhere; or a name from
        `bayes_sparse.inference.approximations`.

    Returns
    -------
    EvidenceOp
        Call it with PyTensor variables inside a model.

    Examples
    --------
    >>> import bayes_sparse as bs, pymc as pm
    >>> truth = bs.datasets.sparse_linear(n=50, p=3, k=1, random_seed=0)
    >>> evidence = bs.log_evidence_op((truth.X, truth.y))
    >>> with pm.Model(coords=evidence.coords):
    ...     log_alpha = pm.Normal("log_alpha", 0.0, 3.0, dims="basis")
    ...     log_sigma = pm.Normal("log_sigma", evidence.log_start[0], 3.0)
    ...     term = pm.Potential("evidence", evidence(log_alpha, log_sigma))
    """
    model = choose_model("ard_gaussian")
    reading = reading_of(model, Handed(data, target, likelihood, basis, keep, weights, offset))
    assert isinstance(reading, NamedReading)
    return EvidenceOp(reading, approximation)


class EvidenceOp:
    """The log evidence of some data, a function of log precisions and logs of nuisance parameters.

    Parameters
    ----------
    reading : NamedReading
        The data, prepared.
    approximation : str
        Its name.

    Attributes
    ----------
    names : list of str
        Name of each basis function, in the order of ``log_alpha``.
    kept : bool array
        Which of them have a known wide prior; their entries of ``log_alpha`` change nothing.
    nuisance : tuple of str
        Names of the likelihood's nuisance parameters, such as ("sigma",).
    log_start : array
        A sensible centre for the logs of each.
    unit : float
        Spread of the targets where weights are in their units, else 1: a precision times its square has no units.
    """

    def __init__(self, reading: NamedReading, approximation: str = "auto") -> None:
        data, self.labelled = reading.prepared, reading.labelled
        problem = self.labelled.searched
        self.names, self.nuisance = self.labelled.names, data.likelihood.nuisance
        self.kept = ~problem.free[: self.labelled.M]
        self.log_start, self.unit = problem.theta, problem.unit
        chosen = approximate(problem, Objective(), approximation)
        if not (data.likelihood.log_concave or data.several) and problem.design.width > problem.design.n:
            raise ValueError(
                f"A {data.likelihood.name} likelihood is not log-concave, and with more columns "
                f"({problem.design.width}) than rows ({problem.design.n}) its evidence has no exact gradient: offer "
                "fewer basis functions, or take likelihood='normal'."
            )
        if isinstance(chosen, LaplaceApproximation):
            chosen = chosen.polished()
        self._evidence = _Evidence(problem, chosen)
        self._op = LogDensity(self._evidence)

    @property
    def coords(self) -> dict[str, list[str]]:
        """Names of the basis functions, as a `pm.Model` takes them."""
        return {"basis": self.names}

    @property
    def approximation(self) -> str:
        """Name of the approximation of the evidence: "exact" or "laplace"."""
        return self._evidence.approximation.name

    def __call__(self, log_alpha: Any, *log_nuisance: Any) -> Any:
        """The log evidence as a PyTensor scalar.

        Parameters
        ----------
        log_alpha : variable
            Log precision of each basis function, of weights of the standardised columns; a scalar is one for all.
        *log_nuisance : variable
            Logarithm of each nuisance parameter, a scalar each.
        """
        if len(log_nuisance) != len(self.nuisance):
            raise TypeError(
                f"The evidence of this likelihood is called as ({self._called}); got {len(log_nuisance)} logs after "
                "log_alpha."
            )
        precisions: Any = pt.as_tensor_variable(log_alpha)
        if precisions.ndim > 1:
            raise ValueError(
                f"`log_alpha` is a vector with one entry per basis function; this one has {precisions.ndim} dimensions."
            )
        parts: list[Any] = [pt.broadcast_to(precisions, (len(self.names),))]
        parts += [pt.atleast_1d(pt.as_tensor_variable(log)) for log in log_nuisance]
        join: Any = pt.join
        return self._op.value(join(0, *(part.astype("float64") for part in parts)))

    def state(self, log_alpha: FloatArray, log_nuisance: FloatArray) -> State:
        """The posterior of the weights at given numbers, with the log evidence."""
        with few_threads(self._evidence.numbers):
            return self._evidence.at(np.broadcast_to(log_alpha, (len(self.names),)), log_nuisance)

    def __repr__(self) -> str:
        return f"EvidenceOp({self._called}): {len(self.names)} basis functions, approximation {self.approximation!r}"

    @property
    def _called(self) -> str:
        return ", ".join(["log_alpha", *(f"log_{name}" for name in self.nuisance)])


class _Evidence:
    """Value and gradient as numbers.

    Every search for a mode begins at one and the same state, the mode at a typical precision. From the last mode it
    would be a tenth quicker, but the last digits would depend on what was asked before, and NUTS makes other draws of
    other last digits: chains in threads would not repeat under a seed.
    """

    def __init__(self, problem: AnyProblem, approximation: Approximation) -> None:
        self.approximation = approximation
        self._index, M = np.arange(problem.design.width), problem.design.M
        self.numbers = problem.design.n * problem.design.width
        self._typical, self._theta = np.full(M, -2 * np.log(problem.unit)), problem.theta
        self._moving = np.append(np.flatnonzero(problem.free[:M]), M + np.arange(problem.theta.size))

    @cached_property
    def _start(self) -> State:
        return self._from(self._typical, self._theta, None)

    def at(self, log_alpha: FloatArray, theta: FloatArray) -> State:
        """The posterior at log precisions of the basis functions."""
        return self._from(log_alpha, theta, self._start)

    def _from(self, log_alpha: FloatArray, theta: FloatArray, near: State | None) -> State:
        alpha = np.ones(len(self._index))
        alpha[: len(log_alpha)] = np.exp(log_alpha)
        return self.approximation.at(self._index, alpha, theta, near)

    def __call__(self, x: FloatArray) -> Value:
        """Log evidence and gradient; impossible where no posterior can be computed."""
        gradient, M = np.zeros(len(x)), len(self._typical)
        try:
            with few_threads(self.numbers), np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                state = self.at(x[:M], x[M:])
                gradient[self._moving] = self.approximation.slope(state)
        except np.linalg.LinAlgError:
            return -np.inf, gradient
        if np.isfinite(state.log_evidence) and np.isfinite(gradient).all():
            return state.log_evidence, gradient
        return -np.inf, np.zeros(len(x))
