"""What one-step methods share once the directions are found: hyper-parameters, the last step, the posterior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inference.newton import Peak, Profile
from bayes_sparse.inference.one_step.alone import Alone
from bayes_sparse.inference.one_step.eigen import Eigen
from bayes_sparse.inference.one_step.expansion import Quadratic
from bayes_sparse.inference.one_step.matched import matched_peak
from bayes_sparse.inference.priors import DirectionPosterior, Independent, Prior
from bayes_sparse.problem.surfaces import Surface

__all__ = ["EigenOutcome", "finish"]


@dataclass(frozen=True, eq=False)
class EigenOutcome:
    """The end of a one-step method.

    Attributes
    ----------
    prior : Prior
        On each direction alone.
    quadratic : Quadratic
        The likelihood's stand-in that the hyper-parameters were found on.
    eigen : Eigen
        All its directions.
    alone : Alone
        What it says of each weight without any prior.
    alpha : array (r,)
        Their hyper-parameters, infinite where pruned.
    kept : bool array (r,)
        Where they are finite.
    loadings : array (k, d)
        The directions kept, over the free weights.
    peak : Peak
        Mode (u of the directions kept, fixed weights) of the true likelihood under the prior found.
    posterior : Independent or Joint
        Over the same coordinates.
    gamma : array (r,)
        How well each direction is determined by the data.
    log_evidence : float
        Of the quadratic model.
    log_evidence_mode : float
        With the likelihood looked at anew at the mode.
    objective : float
        The log evidence less the price of the degrees of freedom.
    history : list of float
        Log evidence with every direction pruned, and at the end.
    approximation : str
        Where the quadratic is from: ``"quadratic"`` for the likelihood's own, or the name of what matched its sites.
    """

    prior: Prior
    quadratic: Quadratic
    eigen: Eigen
    alone: Alone
    alpha: FloatArray
    kept: NDArray[np.bool_]
    loadings: FloatArray
    peak: Peak
    posterior: DirectionPosterior
    gamma: FloatArray
    log_evidence: float
    log_evidence_mode: float
    objective: float
    history: list[float]
    approximation: str = "quadratic"

    @property
    def relevant(self) -> NDArray[np.bool_]:
        """Directions whose mode is not zero."""
        out = self.kept.copy()
        out[self.kept] = self.peak.v[: int(self.kept.sum())] != 0
        return out

    @property
    def steps(self) -> int:
        """Newton steps, on the way to the expansion point and from there to the mode."""
        return self.quadratic.steps + self.peak.steps


def finish(
    surface: Surface,
    rotation: FloatArray | None,
    quadratic: Quadratic,
    eigen: Eigen,
    alone: Alone,
    prior: Prior,
    *,
    smoothness: float,
    octant: bool,
    posterior: Literal["mode", "quadratic"],
    approximation: str = "laplace",
) -> EigenOutcome:
    """From directions to the outcome.

    Parameters
    ----------
    surface : Surface
        The likelihood, in the coordinates of the quadratic.
    rotation : array, optional
        Rows T with ``w = T' w_reduced`` where those are not the user's own.
    quadratic, eigen : Quadratic, Eigen
        Its stand-in and the directions to be weighed.
    alone : Alone
        What the stand-in says of each weight without any prior.
    prior : Prior
        On each direction.
    smoothness : float
        Price of a degree of freedom in nats.
    octant : bool
        Confine the last step to the octant of the expansion point.
    posterior : "mode" or "quadratic"
        Look at the likelihood anew at the mode, or keep the quadratic.
    approximation : str
        How it is looked at under a normal prior: ``"laplace"``, or one that matches sites.
    """
    h, u, theta = eigen.h, eigen.u, quadratic.theta
    alpha = prior.best(h, u, smoothness)
    kept = np.isfinite(alpha)
    gamma = prior.degrees_of_freedom(h, u, alpha)
    log_evidence = eigen.height + float(prior.log_integral(h, u, alpha).sum())
    null = eigen.height - 0.5 * float(h @ u**2)
    fixed = surface.fixed_precision(theta)
    narrow = surface.along(eigen.Q[kept])
    start = np.append(prior.mode(h[kept], u[kept], alpha[kept]), quadratic.v[len(quadratic.gradient) :])
    if approximation == "laplace" or prior.octants:
        peak = prior.last_step(narrow, alpha[kept], fixed, theta, start, octant=u[kept] if octant else None)
    else:
        peak = matched_peak(narrow, approximation, np.append(alpha[kept], fixed), theta)
    at_mode, evidence_at_mode = prior.at_mode(peak, alpha[kept], fixed)
    chosen = at_mode if posterior == "mode" else _of_quadratic(prior, quadratic, eigen, alpha, fixed)
    return EigenOutcome(
        prior=prior,
        quadratic=quadratic,
        eigen=eigen,
        alone=alone,
        alpha=alpha,
        kept=kept,
        loadings=eigen.Q[kept] if rotation is None else eigen.Q[kept] @ rotation,
        peak=peak,
        posterior=chosen,
        gamma=gamma,
        log_evidence=log_evidence,
        log_evidence_mode=evidence_at_mode,
        objective=log_evidence - smoothness * float(gamma.sum()),
        history=[null, log_evidence],
        approximation="quadratic" if approximation == "laplace" else approximation,
    )


def _of_quadratic(
    prior: Prior, quadratic: Quadratic, eigen: Eigen, alpha: FloatArray, fixed: FloatArray
) -> Independent:
    """The exact posterior of the quadratic model; fixed weights follow the free ones along the directions kept."""
    kept, d = np.isfinite(alpha), len(quadratic.gradient)
    profile = Profile.of(quadratic.H, d, fixed)
    x = quadratic.v[d:] + profile.link @ quadratic.v[:d]  # where the fixed weights are when all free ones are zero
    zero = np.zeros(int(kept.sum()))
    return Independent(
        prior, eigen.h[kept], eigen.u[kept], alpha[kept], zero, x, profile.link @ eigen.Q[kept].T, profile.L
    )
