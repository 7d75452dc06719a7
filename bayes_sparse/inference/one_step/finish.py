"""What one-step methods share once the directions are found: hyper-parameters, the last step, the posterior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inference.evidence.state import log_prior
from bayes_sparse.inference.l1.quadratic import climb_l1
from bayes_sparse.inference.newton import Peak, climb
from bayes_sparse.inference.one_step.eigen import Eigen, Profile
from bayes_sparse.inference.one_step.expansion import Quadratic
from bayes_sparse.inference.priors import Gaussian, Laplace
from bayes_sparse.problem.gaussian import Primal
from bayes_sparse.problem.surfaces import Surface

__all__ = ["EigenOutcome", "Independent", "Joint", "Prior", "finish"]

_LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True, eq=False)
class Joint:
    """A normal posterior over all coordinates together.

    Attributes
    ----------
    mean : array (k + q,)
        Directions, then fixed weights.
    primal : Primal
        Its factorised precision.
    k : int
        How many directions there are.
    """

    mean: FloatArray
    primal: Primal
    k: int

    @property
    def factor(self) -> FloatArray:
        """F with F F' the covariance."""
        return self.primal.factor

    def draw(self, count: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Independent draws and their log-density."""
        z = rng.standard_normal((count, len(self.mean)))
        log_q = -0.5 * (np.sum(z**2, axis=1) + len(self.mean) * _LOG_2PI - self.primal.log_determinant)
        return self.mean + z @ self.factor.T, log_q


@dataclass(frozen=True, eq=False)
class Independent:
    """Every direction by itself, the fixed weights normal around a linear function of them.

    Attributes
    ----------
    prior : Gaussian or Laplace
        On each direction.
    h, centre, alpha : array (k,)
        The quadratic likelihood and the prior of each direction.
    anchor, x : array (k,), array (q,)
        Where the directions are when the fixed weights are at x.
    link : array (q, k)
        How far the fixed weights fall for a rise of each direction.
    L : array (q, q)
        Lower factor of the fixed weights' precision given the directions.
    """

    prior: Gaussian | Laplace
    h: FloatArray
    centre: FloatArray
    alpha: FloatArray
    anchor: FloatArray
    x: FloatArray
    link: FloatArray
    L: FloatArray

    @property
    def mean(self) -> FloatArray:
        """Of directions, then fixed weights."""
        u, _ = self.prior.moments(self.h, self.centre, self.alpha)
        return np.append(u, self._fixed(u))

    @property
    def factor(self) -> FloatArray:
        """F with F F' the covariance."""
        k, q = len(self.h), len(self.x)
        _, variance = self.prior.moments(self.h, self.centre, self.alpha)
        out = np.zeros((k + q, k + q))
        out[:k, :k] = np.diag(np.sqrt(variance))
        out[k:, :k] = -self.link * np.sqrt(variance)
        if q:
            out[k:, k:] = solve_triangular(self.L, np.eye(q), lower=True).T
        return out

    def draw(self, count: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Independent, exact draws and their log-density."""
        u = self.prior.draw(self.h, self.centre, self.alpha, count, rng)
        log_q = self.prior.log_density(u, self.h, self.centre, self.alpha).sum(axis=1)
        z = rng.standard_normal((count, len(self.x)))
        x = self._fixed(u)
        if len(self.x):
            x = x + solve_triangular(self.L, z.T, lower=True, trans="T").T
            log_q = log_q - 0.5 * np.sum(z**2, axis=1) - 0.5 * len(self.x) * _LOG_2PI
            log_q += float(np.log(self.L.diagonal()).sum())
        return np.hstack([u, x]), log_q

    def _fixed(self, u: FloatArray) -> FloatArray:
        return np.asarray(self.x - (u - self.anchor) @ self.link.T)


type Prior = Gaussian | Laplace


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
    """

    prior: Prior
    quadratic: Quadratic
    eigen: Eigen
    alpha: FloatArray
    kept: NDArray[np.bool_]
    loadings: FloatArray
    peak: Peak
    posterior: Independent | Joint
    gamma: FloatArray
    log_evidence: float
    log_evidence_mode: float
    objective: float
    history: list[float]

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
    prior: Prior,
    *,
    smoothness: float,
    octant: bool,
    posterior: Literal["mode", "quadratic"],
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
    prior : Prior
        On each direction.
    smoothness : float
        Price of a degree of freedom in nats.
    octant : bool
        Confine the last step of a Laplace prior to the octant of the expansion point.
    posterior : "mode" or "quadratic"
        Look at the likelihood anew at the mode, or keep the quadratic.
    """
    h, u, theta = eigen.h, eigen.u, quadratic.theta
    alpha = prior.best(h, u, smoothness)
    kept = np.isfinite(alpha)
    gamma = prior.degrees_of_freedom(h, u, alpha)
    log_evidence = eigen.height + float(prior.log_integral(h, u, alpha).sum())
    null = eigen.height - 0.5 * float(h @ u**2)
    fixed = surface.fixed_precision(theta)
    narrow = surface.along(eigen.Q[kept])
    peak = _last_step(narrow, prior, h[kept], u[kept], alpha[kept], fixed, quadratic, octant)
    at_mode, evidence_at_mode = _at_mode(narrow, prior, peak, alpha[kept], fixed)
    chosen = at_mode if posterior == "mode" else _of_quadratic(prior, quadratic, eigen, alpha, fixed)
    return EigenOutcome(
        prior=prior,
        quadratic=quadratic,
        eigen=eigen,
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
    )


def _last_step(
    narrow: Surface,
    prior: Prior,
    h: FloatArray,
    u: FloatArray,
    alpha: FloatArray,
    fixed: FloatArray,
    quadratic: Quadratic,
    octant: bool,
) -> Peak:
    """Maximise the true likelihood under the prior found, from where the quadratic has its mode."""
    x = quadratic.v[len(quadratic.gradient) :]
    start = np.append(prior.mode(h, u, alpha), x)
    if isinstance(prior, Gaussian):
        return climb(narrow, np.append(alpha, fixed), quadratic.theta, start)
    if octant:  # the octant is that of the expansion point, whichever coordinates start at zero
        start[: len(u)] = np.where(start[: len(u)] == 0, 1e-9 * u, start[: len(u)])
    return climb_l1(narrow, alpha / 2, fixed, quadratic.theta, start, octant=octant)


def _at_mode(
    narrow: Surface, prior: Prior, peak: Peak, alpha: FloatArray, fixed: FloatArray
) -> tuple[Independent | Joint, float]:
    """Posterior and log evidence of the likelihood's own quadratic at the mode.

    A normal prior leaves a normal posterior, correlations and all. Under a Laplace prior each direction has a closed
    form only by itself, so correlations between directions at the mode enter the evidence (through a determinant) and
    are left out of the posterior.
    """
    k = len(alpha)
    if isinstance(prior, Gaussian):
        precision = np.append(alpha, fixed)
        primal = _factorised(peak, precision)
        evidence = peak.look.value + log_prior(precision, peak.v) - 0.5 * primal.log_determinant
        return Joint(peak.v, primal, k), evidence
    profile = Profile.of(_positive(peak, alpha), k, fixed)
    u, x = peak.v[:k], peak.v[k:]
    curvature = np.maximum(profile.S.diagonal(), 1e-300)
    slope = peak.look.gradient[:k]
    centre = u + slope / curvature
    height = peak.look.value + log_prior(fixed, x) - float(np.log(profile.L.diagonal()).sum())
    evidence = height + 0.5 * float(np.sum(slope**2 / curvature))
    evidence += float(prior.log_integral(curvature, centre, alpha).sum())
    correlation = profile.S / np.sqrt(np.outer(curvature, curvature))
    evidence -= 0.5 * float(np.linalg.slogdet(correlation)[1]) if k else 0.0
    return Independent(prior, curvature, centre, alpha, u, x, profile.link, profile.L), evidence


def _factorised(peak: Peak, precision: FloatArray) -> Primal:
    """Curvature and prior precision at a mode, with the curvature of the steps where the true one is not enough."""
    try:
        return Primal(peak.look.curvature(), precision)
    except np.linalg.LinAlgError:
        return Primal(peak.look.steps(), precision)


def _positive(peak: Peak, alpha: FloatArray) -> FloatArray:
    """The curvature at a mode; where it is not positive (semi-)definite, that of the steps and a little of the prior's.

    A Laplace prior has no curvature of its own; ``(alpha / 2)^2`` is that of a parabola as wide as it is.
    """
    H = peak.look.curvature()
    if not len(H) or np.linalg.eigvalsh(H)[0] > -1e-10 * max(float(np.abs(H).max()), 1e-300):
        return H
    H = peak.look.steps()
    k = len(alpha)
    H[np.arange(k), np.arange(k)] += 1e-6 * (alpha / 2) ** 2
    return H


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
