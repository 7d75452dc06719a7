"""Bridge sampling against densities whose normalising constant is known."""

import arviz as az
import numpy as np
import pytest
from scipy import stats

from bayes_sparse.results.log_evidence import bridge_sampling

CONSTANT = 137.25  # nats added to every log density
SKEW = stats.gumbel_r(0.3, 0.8)


def normal_arrays(rng, chains=4, draws=250, proposals=1000, off=0.3):
    """Posterior N(0, I) in three dimensions, the proposal a little off."""
    target, proposal = stats.norm(), stats.norm(off, 1.2)

    def both(x):
        return target.logpdf(x).sum(axis=-1) + CONSTANT, proposal.logpdf(x).sum(axis=-1)

    return *both(proposal.rvs((proposals, 3), random_state=rng)), *both(rng.standard_normal((chains, draws, 3)))


def skew_arrays(rng, chains=4, draws=250, proposals=1000):
    """A skew density in one dimension and the normal with its mean and sd."""
    proposal = stats.norm(SKEW.mean(), SKEW.std())
    x, z = proposal.rvs(proposals, random_state=rng), SKEW.rvs((chains, draws), random_state=rng)
    return SKEW.logpdf(x) + CONSTANT, proposal.logpdf(x), SKEW.logpdf(z) + CONSTANT, proposal.logpdf(z)


def correlated_arrays(rng, chains=4, draws=500, proposals=1000, rho=0.9):
    """Posterior draws of N(0, 1) that remember the one before."""
    z = np.empty((chains, draws))
    z[:, 0] = rng.standard_normal(chains)
    for i in range(1, draws):
        z[:, i] = rho * z[:, i - 1] + np.sqrt(1 - rho**2) * rng.standard_normal(chains)
    proposal = stats.norm(0.5, 1.3)
    x = proposal.rvs(proposals, random_state=rng)
    return stats.norm.logpdf(x) + CONSTANT, proposal.logpdf(x), stats.norm.logpdf(z) + CONSTANT, proposal.logpdf(z)


@pytest.mark.parametrize("arrays", [normal_arrays, skew_arrays, correlated_arrays])
def test_the_constant_and_what_its_error_covers(arrays):
    rng = np.random.default_rng(5)
    found = [bridge_sampling(*arrays(rng)) for _ in range(100)]
    z = np.array([(f.value - CONSTANT) / f.se for f in found])
    assert np.abs(z[:5]).max() < 3
    assert 0.8 < z.std() < 1.25
    assert abs(z.mean()) < 0.4  # four standard errors of the mean of a hundred


def test_correlated_draws_are_worth_fewer():
    rng = np.random.default_rng(1)
    found = bridge_sampling(*correlated_arrays(rng))
    shuffled = list(correlated_arrays(np.random.default_rng(1)))
    order = rng.permutation(shuffled[2].size)
    shuffled[2:] = [values.ravel()[order].reshape(values.shape) for values in shuffled[2:]]
    assert found.effective_draws < 0.5 * bridge_sampling(*shuffled).effective_draws
    assert found.se > bridge_sampling(*shuffled).se


def test_the_iteration_ends_at_the_equation_of_meng_and_wong():
    arrays = skew_arrays(np.random.default_rng(2))
    r = bridge_sampling(*arrays).value
    above, below = np.exp(arrays[0] - arrays[1] - r), np.exp(arrays[2] - arrays[3] - r)
    n1 = min(float(az.ess(arrays[2], method="mean")), arrays[2].size)
    s1 = n1 / (n1 + above.size)
    assert np.mean(above / (s1 * above + 1 - s1)) == pytest.approx(np.mean(1 / (s1 * below + 1 - s1)), rel=1e-9)


def test_a_proposal_that_is_the_posterior_has_no_error():
    rng = np.random.default_rng(3)
    x, z = rng.standard_normal(50), rng.standard_normal((2, 40))
    found = bridge_sampling(
        stats.norm.logpdf(x) + CONSTANT, stats.norm.logpdf(x), stats.norm.logpdf(z) + CONSTANT, stats.norm.logpdf(z)
    )
    assert found.value == pytest.approx(CONSTANT, abs=1e-10)
    assert found.se < 1e-10


def test_a_bounded_density_may_be_zero_at_the_proposals_draws():
    rng = np.random.default_rng(4)
    z, proposal = rng.exponential(size=(4, 500)), stats.norm(1.0, 1.0)
    x = proposal.rvs(2000, random_state=rng)
    found = bridge_sampling(
        stats.expon.logpdf(x) + 2, proposal.logpdf(x), stats.expon.logpdf(z) + 2, proposal.logpdf(z)
    )
    assert abs(found.value - 2) < 3 * found.se


def test_refusals():
    rng = np.random.default_rng(6)
    with pytest.raises(ValueError, match="hardly overlap"):
        bridge_sampling(*normal_arrays(rng, off=25.0))
    with pytest.raises(ValueError, match="did not settle in 2 iterations"):
        bridge_sampling(*normal_arrays(rng), max_iterations=2)
    a, b, c, d = normal_arrays(rng)
    with pytest.raises(ValueError, match="not a number"):
        bridge_sampling(np.where(np.arange(len(a)) == 3, np.nan, a), b, c, d)
    with pytest.raises(ValueError, match="not all finite"):
        bridge_sampling(a, b, np.where(c == c.max(), -np.inf, c), d)
    with pytest.raises(ValueError, match="at least 4 draws"):
        bridge_sampling(a, b, c[:, :3], d[:, :3])
