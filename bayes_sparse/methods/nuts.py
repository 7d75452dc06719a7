"""Plain NUTS of the same declaration: the exact posterior, for as long as it takes."""

from __future__ import annotations

import logging
import shutil
from dataclasses import dataclass
from typing import Any

import pymc as pm
import xarray as xr
from pytensor.compile.mode import get_mode
from pytensor.configdefaults import config

from bayes_sparse.limits import small_enough

__all__ = ["NUTS"]

_log = logging.getLogger("bayes_sparse")


@dataclass(frozen=True)
class NUTS:
    """Samples a `pm.Model` with PyMC.

    Attributes
    ----------
    tune : int
        Warm-up steps a chain.
    target_accept : float
        Higher than PyMC's default: sparse priors have narrow corners.
    """

    tune: int = 1000
    target_accept: float = 0.95

    def __call__(
        self,
        model: pm.Model,
        *,
        draws: int,
        chains: int,
        random_seed: int | None,
        progressbar: bool,
        sample_kwargs: dict[str, Any] | None,
    ) -> xr.DataTree:
        """Draw from the posterior, with the pointwise log-likelihood."""
        compiling = _compile_kwargs()
        arguments: dict[str, Any] = {
            "draws": draws,
            "chains": chains,
            "tune": self.tune,
            "target_accept": self.target_accept,
            "random_seed": random_seed,
            "progressbar": progressbar,
            "nuts_sampler": "pymc",
            "compile_kwargs": compiling,
        }
        arguments |= sample_kwargs or {}
        with model:
            sampled: xr.DataTree = pm.sample(**arguments)
            if model.observed_RVs and _fits(sampled):
                sampled = pm.compute_log_likelihood(sampled, progressbar=False, compile_kwargs=compiling)
        return sampled


def _fits(sampled: xr.DataTree) -> bool:
    """Whether the pointwise log-likelihood is small enough to be stored; says so if not."""
    sizes = sampled["posterior"].sizes
    values = sum(variable.size for variable in sampled["observed_data"].to_dataset().data_vars.values())
    return small_enough(8 * sizes["chain"] * sizes["draw"] * int(values))


def _compile_kwargs() -> dict[str, Any]:
    if not shutil.which(config.cxx or ""):
        _log.info("Compiling the model for NUTS; the first time on a machine this takes about a minute.")
        return {}
    # Compiling a matrix product takes numba most of a minute the first time, a C++ compiler a few seconds. The product
    # itself is left to numpy: an installation by pip has no BLAS that C code could link to.
    mode: Any = get_mode("CVM")  # type: ignore[no-untyped-call]
    return {"mode": mode.excluding("BlasOpt", "local_usmm")}
