"""What the chains of a sampled posterior say of themselves, by ArviZ's diagnostics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

__all__ = ["ChainHealth", "health_of"]

_R_HAT, _ESS_A_CHAIN, _BFMI, _DEPTH = 1.01, 100, 0.3, 10  # the last where draws do not say what was the deepest tree


@dataclass(frozen=True)
class ChainHealth:
    """Whether chains agree and are long enough.

    Attributes
    ----------
    r_hat_max, worst : float, str
        Largest rank-normalised R-hat, and whose it is.
    ess_bulk_min, ess_tail_min : float
        Fewest effective draws, of the middle and of the tails.
    divergences, max_treedepth : int
        How many draws diverged, and how many reached the largest tree.
    chains, draws : int
        How many there are, draws of all chains.
    bfmi_min : float
        Least fraction of the energy's variance that a step explores; NaN without energies.
    """

    r_hat_max: float
    worst: str
    ess_bulk_min: float
    ess_tail_min: float
    divergences: int
    max_treedepth: int
    chains: int
    draws: int
    bfmi_min: float

    @property
    def enough(self) -> int:
        """Effective draws that are enough."""
        return _ESS_A_CHAIN * self.chains

    @property
    def wrong(self) -> list[str]:
        """What is, in words; empty where the draws can be trusted."""
        checks = {
            f"the chains disagree (R-hat {self.r_hat_max:.3f} of {self.worst}, above {_R_HAT})": not self.r_hat_max
            <= _R_HAT,
            f"{self.ess_bulk_min:.0f} effective draws are fewer than {self.enough}": not self.ess_bulk_min
            >= self.enough,
            f"{self.ess_tail_min:.0f} effective draws of the tails are fewer than {self.enough}": not self.ess_tail_min
            >= self.enough,
            f"{self.divergences} draws diverged": self.divergences > 0,
            f"the energy is explored slowly (BFMI {self.bfmi_min:.2f}, below {_BFMI})": self.bfmi_min < _BFMI,
        }
        return [words for words, found in checks.items() if found]


def health_of(posterior: xr.Dataset, stats: xr.Dataset) -> ChainHealth:
    """Of draws and what their sampler said of them."""
    import arviz as az  # takes seconds, and what is not sampled does not need it

    with np.errstate(divide="ignore", invalid="ignore"):  # of constants, which have no R-hat and are left out
        r_hat = _flat(az.rhat(posterior, method="rank"))
        found = (_flat(az.ess(posterior, method=method)) for method in ("bulk", "tail"))
        bulk, tail = ({name: ess[name] for name in r_hat if name in ess} for ess in found)
    worst = max(r_hat, key=lambda name: r_hat[name], default="")
    energy = xr.DataTree.from_dict({"/sample_stats": stats}) if "energy" in stats else None
    return ChainHealth(
        r_hat_max=r_hat.get(worst, np.nan),
        worst=worst,
        ess_bulk_min=min(bulk.values(), default=np.nan),
        ess_tail_min=min(tail.values(), default=np.nan),
        divergences=int(stats["diverging"].sum()) if "diverging" in stats else 0,
        max_treedepth=_deepest(stats),
        chains=posterior.sizes["chain"],
        draws=posterior.sizes["chain"] * posterior.sizes["draw"],
        bfmi_min=np.nan if energy is None else float(az.bfmi(energy)["energy"].min()),
    )


def _flat(values: xr.Dataset) -> dict[str, float]:
    """One number a parameter, "w[label]"; constants have none."""
    out = {}
    for name, array in values.data_vars.items():
        labels = [array[dim].to_numpy() for dim in array.dims]
        for place, value in np.ndenumerate(array.to_numpy()):
            own = ", ".join(str(label[i]) for label, i in zip(labels, place, strict=True))
            out[f"{name}[{own}]" if place else str(name)] = float(value)
    return {name: value for name, value in out.items() if not np.isnan(value)}


def _deepest(stats: xr.Dataset) -> int:
    """Draws that stopped at the largest tree depth."""
    if "reached_max_treedepth" in stats:
        return int(stats["reached_max_treedepth"].sum())
    return int((stats["tree_depth"] >= _DEPTH).sum()) if "tree_depth" in stats else 0
