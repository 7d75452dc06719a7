"""The weights back, given draws of the hyper-parameters that they were integrated out under."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from bayes_sparse.common.checks import small_enough
from bayes_sparse.common.types import FloatArray
from bayes_sparse.fitting.evidence_op import EvidenceOp
from bayes_sparse.inference.evidence.draws import draw_weights
from bayes_sparse.trees.naming import named_draws, of_each_observation
from bayes_sparse.trees.write import with_weights

__all__ = ["weights_given"]

_NOTES = {
    "log_p": "log p(y, w | alpha, nuisance), of the weights of standardised columns",
    "log_q": "log density that w was drawn from, plus the log evidence that alpha was sampled under: "
    "exp(log_p - log_q) is a draw's importance weight",
}


def weights_given(
    tree: xr.DataTree,
    evidence: EvidenceOp,
    *,
    log_alpha: str = "log_alpha",
    log_nuisance: Sequence[str] | None = None,
    random_seed: int | None = None,
) -> xr.DataTree:
    """Draw the weights at every draw of their precisions: exactly, or from Laplace's approximation.

    Parameters
    ----------
    tree : xarray.DataTree
        What `pm.sample` returned of a model with ``evidence`` in it.
    evidence : EvidenceOp
        The one of that model.
    log_alpha : str
        The variable that ``evidence`` was called with, one entry per basis function or a scalar; where the tree has no
        ``"log_alpha"`` but an ``"alpha"``, its logarithm.
    log_nuisance : sequence of str, optional
        The same for the nuisance parameters; None for "log_sigma", or else the logarithm of "sigma", and so on.
    random_seed : int, optional
        Makes the draws reproducible.

    Returns
    -------
    xarray.DataTree
        A new tree: its ``posterior`` has ``w``, the bias and the nuisance parameters too, in the units of the data;
        ``log_likelihood`` is there, and ``sample_stats`` has ``log_p`` and ``log_q``. `bayes_sparse.predict` takes it.
    """
    posterior = _posterior_of(tree, evidence)
    chains, draws = posterior.sizes["chain"], posterior.sizes["draw"]
    precisions = _logs(posterior, log_alpha, "log_alpha", len(evidence.names))
    asked = [f"log_{name}" for name in evidence.nuisance] if log_nuisance is None else list(log_nuisance)
    if len(asked) != len(evidence.nuisance):
        raise ValueError(f"`log_nuisance` names one variable for each of {evidence.nuisance}, got {asked}.")
    own = [_logs(posterior, name, f"log_{of}", 1) for name, of in zip(asked, evidence.nuisance, strict=True)]
    thetas = np.concatenate([np.empty((chains * draws, 0)), *own], axis=1)
    groups = _drawn(evidence, precisions, thetas, (chains, draws), np.random.default_rng(random_seed))
    labels = {"chain": posterior["chain"], "draw": posterior["draw"]}
    groups = {name: group.assign_coords(labels) for name, group in groups.items()}
    return with_weights(evidence.labelled, tree, groups, _NOTES)


def _drawn(
    evidence: EvidenceOp,
    precisions: FloatArray,
    thetas: FloatArray,
    shape: tuple[int, int],
    rng: np.random.Generator,
) -> dict[str, xr.Dataset]:
    """The weights, what was drawn from and what should have been, and the log-likelihood of each observation."""
    labelled, problem, S = evidence.labelled, evidence.labelled.searched, len(thetas)
    index = np.arange(problem.design.width)
    active = problem.active(index)
    w, log_p, log_q = np.empty((S, len(index))), np.empty(S), np.empty(S)
    pointwise = np.empty((S, len(problem.y))) if small_enough(8 * S * len(problem.y)) else None
    for i, (log_alpha, theta) in enumerate(zip(precisions, thetas, strict=True)):
        state = evidence.state(log_alpha, theta)
        w[i], log_density = draw_weights(problem, active, state, rng)
        eta = (problem.offset + active.predictor(w[i]))[None]
        each = problem.log_densities(eta, theta[None])
        prior = 0.5 * float(np.log(state.alpha / (2 * np.pi)).sum() - state.alpha @ w[i] ** 2)
        log_p[i] = prior + float(problem.log_joint(eta, theta[None], each)[0])
        log_q[i] = log_density + state.log_evidence
        if pointwise is not None:
            pointwise[i] = each[0]
    stats = {"log_p": log_p.reshape(shape), "log_q": log_q.reshape(shape)}
    groups = {
        "posterior": named_draws(labelled, index, w, thetas, shape),
        "sample_stats": xr.Dataset({name: (("chain", "draw"), values) for name, values in stats.items()}),
    }
    if pointwise is not None:
        groups["log_likelihood"] = of_each_observation(labelled, pointwise, shape)
    return groups


def _posterior_of(tree: xr.DataTree, evidence: EvidenceOp) -> xr.Dataset:
    """The draws, unless weights could not be put beside them."""
    if "posterior" not in tree.children:
        raise ValueError("This tree has no posterior: pass what pm.sample returned.")
    posterior = tree["posterior"].to_dataset()
    taken = [name for name in ("w", "bias") if name in posterior]
    if taken:
        raise ValueError(f"The posterior has a variable {taken[0]!r} already: give yours another name.")
    if "basis" in posterior.dims and posterior["basis"].to_numpy().tolist() != evidence.names:
        raise ValueError(
            "The dim 'basis' of the posterior has other labels than the basis functions: declare the model with "
            "coords=evidence.coords, or give your dim another name."
        )
    return posterior


def _logs(posterior: xr.Dataset, name: str, default: str, size: int) -> FloatArray:
    """Draws (S, size) of a log, stored as itself or, where nothing was asked for, without the logarithm."""
    plain = default.removeprefix("log_")
    if name in posterior:
        values = posterior[name].transpose("chain", "draw", ...).to_numpy()
    elif name == default and plain in posterior:
        values = np.log(posterior[plain].transpose("chain", "draw", ...).to_numpy())
    else:
        raise ValueError(
            f"The posterior has no variable {name!r}: store it by pm.Deterministic({name!r}, ...), or say which "
            f"variable it is ({'log_alpha' if default == 'log_alpha' else 'log_nuisance'}=...)."
        )
    values = values.reshape(values.shape[0] * values.shape[1], -1)
    if values.shape[1] not in (1, size):
        raise ValueError(
            f"The variable {name!r} has {values.shape[1]} entries a draw; it needs {size}, or one for all."
        )
    return np.broadcast_to(values, (len(values), size))
