"""Draws that fall short are gone on with once; those that diverged are drawn again."""

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose

from bayes_sparse.fitting.nuts.declaration import Drawn
from bayes_sparse.fitting.nuts.retry import sample_well
from bayes_sparse.inference.sampling import Sampling

ASKED = Sampling(400, 100, 4, 0.9, "nutpie", 7, False)


class Sampler:
    """Remembers what it was asked; its chains move as slowly and diverge as often as one likes."""

    def __init__(self, *, memory=0.0, divergences=0):
        self.memory, self.divergences, self.asked = memory, divergences, []

    def __call__(self, sampling):
        self.asked.append(sampling)
        rng, shape = np.random.default_rng(sampling.random_seed), (sampling.chains, sampling.draws)
        x = rng.standard_normal(shape)
        for i in range(1, sampling.draws):
            x[:, i] = self.memory * x[:, i - 1] + np.sqrt(1 - self.memory**2) * x[:, i]
        diverging = np.zeros(shape, dtype=bool)
        if len(self.asked) == 1:
            diverging[0, : self.divergences] = True
        dims = ("chain", "draw")
        coords = {dim: np.arange(size) for dim, size in zip(dims, shape, strict=True)}
        stats = {"diverging": (dims, diverging), "energy": (dims, rng.standard_normal(shape))}
        return Drawn(xr.Dataset({"w": (dims, x)}, coords), xr.Dataset(stats, coords), None, x.size, 1)


def test_good_draws_are_left_alone():
    sampler = Sampler()
    drawn, said = sample_well(sampler, ASKED, retry=True)
    assert said == ""
    assert sampler.asked == [ASKED]
    assert drawn.posterior.sizes["draw"] == 400


def test_too_few_are_gone_on_with(messages):
    sampler = Sampler(memory=0.9)
    drawn, said = sample_well(sampler, ASKED, retry=True)
    first, second = sampler.asked
    assert second.random_seed != first.random_seed
    assert second.target_accept == first.target_accept
    assert second.draws % 400 == 0
    assert drawn.posterior.sizes == {"chain": 4, "draw": 400 + second.draws}
    assert drawn.posterior["draw"].to_numpy().tolist() == list(range(400 + second.draws))
    alone, _ = sample_well(Sampler(memory=0.9), ASKED, retry=False)
    assert_allclose(drawn.posterior["w"].isel(draw=slice(400)), alone.posterior["w"])
    assert drawn.gradients == 4 * (400 + second.draws)
    assert "fewer than 400" in said
    assert f"{second.draws} more were drawn in each chain" in said
    assert said in messages


def test_what_diverged_is_drawn_again():
    sampler = Sampler(divergences=3)
    drawn, said = sample_well(sampler, ASKED, retry=True)
    assert sampler.asked[1].target_accept > 0.97
    assert drawn.posterior.sizes["draw"] == 400
    assert not drawn.stats["diverging"].any()
    assert "3 draws diverged" in said


def test_not_for_a_quick_look():
    sampler = Sampler(memory=0.95)
    _, said = sample_well(sampler, Sampling(100, 100, 4, 0.9, "nutpie", 7, False), retry=True)
    assert len(sampler.asked) == 1
    assert said == ""


@pytest.mark.parametrize("nothing", [False, True])
def test_the_first_draws_are_left_where_more_are_stopped(nothing):
    sampler = Sampler(memory=0.95)

    def sample(sampling):
        drawn = sampler(sampling)
        if len(sampler.asked) == 1:
            return drawn
        if nothing:
            raise KeyboardInterrupt
        return drawn._replace(stopped=True)

    drawn, said = sample_well(sample, ASKED, retry=True)
    assert len(sampler.asked) == 2
    assert drawn.stopped
    assert drawn.posterior.sizes["draw"] == 400
    assert said == ""


def test_draws_that_were_stopped_are_not_gone_on_with():
    sampler = Sampler(memory=0.95)
    drawn, _ = sample_well(lambda sampling: sampler(sampling)._replace(stopped=True), ASKED, retry=True)
    assert len(sampler.asked) == 1
    assert drawn.stopped
