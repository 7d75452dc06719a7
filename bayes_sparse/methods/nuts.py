"""NUTS of the same declaration: the exact posterior, started where an evidence fit ended."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from bayes_sparse.common.checks import count, positive
from bayes_sparse.inference.sampling import Sampling, choose_sampler

__all__ = ["NUTS"]

_WHOLE, _AT_ALPHA = 400, 150  # warm-up steps that were found to be enough


@dataclass(frozen=True)
class NUTS:
    """Samples a declaration, or at ``condition="alpha"`` its weights alone.

    Attributes
    ----------
    condition : "alpha" or None
        None samples everything. ``"alpha"`` samples the exact p(w | alpha*, data) over the terms that an evidence fit
        kept, with its hyper-parameters held: what its approximation stands for.
    start : str or method object
        Whose fit that is: ``"evidence"``, the model's default, or another method.
    warm : bool
        Start at that fit, in coordinates in which it is a standard normal; False starts cold.
    sampler : "auto", "nutpie" or "pymc"
        ``"auto"`` is nutpie where it is installed.
    centred : "auto" or bool
        Parametrisation of the weights where everything is sampled: ``w`` itself or ``w`` in units of its prior's sd,
        which suits weights that may be small together with their scale. ``"auto"`` takes the former where the fit at
        the start says that the data know more of a weight than the hyper-prior, the latter for all others.
    tune : int, optional
        Warm-up steps a chain; None for 400, or 150 with a condition and a warm start.
    target_accept : float
        Higher than PyMC's default where everything is sampled: sparse priors have narrow corners. None for 0.9, or 0.8
        with a condition.
    retry : bool
        Go on once where the chains fall short of what `bayes_sparse.diagnose` asks of them: with more draws after those
        there are, or, where draws diverged, from the beginning with shorter steps. Not where fewer than 400 draws a
        chain were asked for.
    sample_kwargs : dict, optional
        Passed on to the sampler.
    """

    condition: Literal["alpha"] | None = None
    start: Any = "evidence"
    warm: bool = True
    sampler: str = "auto"
    centred: Literal["auto"] | bool = "auto"
    tune: int | None = None
    target_accept: float | None = None
    retry: bool = True
    sample_kwargs: dict[str, Any] | None = None

    priors: ClassVar[tuple[str, ...] | None] = None
    family: ClassVar[str] = "nuts"

    def __post_init__(self) -> None:
        if self.condition not in (None, "alpha"):
            raise ValueError(f"`condition` is 'alpha' or None, got {self.condition!r}.")
        if self.start == "nuts" or isinstance(self.start, NUTS):
            raise ValueError("`start` is a method that fits by evidence, such as 'mackay' or 'revm', not NUTS itself.")
        if self.centred not in ("auto", True, False):
            raise ValueError(f"`centred` is 'auto', True or False, got {self.centred!r}.")
        if self.tune is not None:
            count("tune", self.tune, 1)
        if self.target_accept is not None:
            positive("target_accept", self.target_accept, below=1.0)

    def __call__(self, *, draws: int, chains: int, random_seed: int | None, progressbar: bool) -> Sampling:
        """How to sample."""
        usual = _AT_ALPHA if self.condition and self.warm else _WHOLE
        more = copy.deepcopy(self.sample_kwargs or {})  # PyMC writes into what it is given
        given = {name: more.pop(name) for name in ("tune", "target_accept") if name in more}
        own = replace(self, **given) if given else self
        return Sampling(
            draws=count("draws", draws, 1),
            tune=own.tune if own.tune is not None else usual,
            chains=chains,
            target_accept=own.target_accept if own.target_accept is not None else (0.8 if self.condition else 0.9),
            sampler=choose_sampler(self.sampler),
            random_seed=random_seed,
            progressbar=progressbar,
            more=more,
        )
