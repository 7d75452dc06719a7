"""What chains say of themselves: what is held in every draw says nothing."""

import arviz as az
import numpy as np
import xarray as xr

from bayes_sparse.trees.chains import health_of

RNG = np.random.default_rng(4)


def test_constants_count_neither_as_bad_nor_as_good():
    draws = RNG.standard_normal((2, 200))
    draws += np.repeat(RNG.standard_normal((2, 20)), 10, axis=1)  # neighbours are alike
    moving = xr.Dataset({"b": (("chain", "draw"), draws)})
    held = {
        "alpha": (("chain", "draw", "k"), np.full((2, 200, 3), 1e12)),
        "sigma": (("chain", "draw"), np.ones((2, 200))),
    }
    alone, beside = (health_of(posterior, xr.Dataset()) for posterior in (moving, moving.assign(held)))
    for name in ("r_hat_max", "worst", "ess_bulk_min", "ess_tail_min", "wrong"):
        assert getattr(beside, name) == getattr(alone, name)
    assert beside.ess_bulk_min == float(az.ess(moving, method="bulk")["b"]) < 400


def test_draws_of_which_none_moves_are_not_called_good():
    health = health_of(xr.Dataset({"b": (("chain", "draw"), np.ones((2, 50)))}), xr.Dataset())
    assert np.isnan(health.r_hat_max)
    assert health.wrong
