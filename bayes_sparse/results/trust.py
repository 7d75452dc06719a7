"""How far to trust a fit, in a level and in words: by its diagnosis, its ending and its residuals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bayes_sparse.common.statuses import Status
from bayes_sparse.results.diagnose import Diagnosis, SamplingDiagnosis
from bayes_sparse.results.terms import kept_of
from bayes_sparse.trees.read import StoredFit

__all__ = ["LEVELS", "SAID", "Level", "Trust", "trust_of"]

type Level = Literal["good", "care", "bad"]

LEVELS: tuple[Level, ...] = ("good", "care", "bad")
SAID: dict[Level, str] = {"good": "can be trusted", "care": "to be read with care", "bad": "not to be trusted"}
_R_HAT, _DIVERGED, _FEW = 1.05, 0.01, 50  # beyond these a sampler has not just been stopped early


@dataclass(frozen=True)
class Trust:
    """How far to trust a fit.

    Attributes
    ----------
    level : "good", "care" or "bad"
        Whether it can be used as it is.
    because : str
        What speaks against it, in a few words; empty where nothing does.
    given : str
        What all this is given, in a few words; empty where it is nothing.
    """

    level: Level
    because: str = ""
    given: str = ""

    @property
    def words(self) -> str:
        """The level in words, and why."""
        because = f": {self.because}" if self.because else ""
        return SAID[self.level] + (self.given if self.level == "good" else because)


def trust_of(fit: StoredFit, found: Diagnosis | SamplingDiagnosis | None) -> Trust:
    """How far to trust a fit of which `diagnose` said so; None where it could not look."""
    levels: list[Level] = [_by_diagnosis(found), "good" if fit.status is None else fit.status.level]
    reasons = ["it was not checked"] if found is None else list(found.wrong)
    if fit.status is Status.NULL:
        reasons.append("no term pays for itself")
    elif fit.status is not None and fit.status.level != "good" and found is None:
        reasons.append(f"the fit ended as {fit.status.value!r}")
    if fit.likelihood_check:
        levels.append("care")
        reasons.append("the residuals do not look like its likelihood")
    return Trust(max(levels, key=LEVELS.index), "; ".join(reasons), _given(fit))


def _given(fit: StoredFit) -> str:
    """What a fit at estimated hyper-parameters takes for granted."""
    kept = kept_of(fit)
    if kept is None:
        return ""
    return f", given the {kept[2]} kept" if kept[0] < kept[1] else ", given the precisions found"


def _by_diagnosis(found: Diagnosis | SamplingDiagnosis | None) -> Level:
    if found is None:
        return "care"
    if found.trusted:
        return "good"
    if isinstance(found, SamplingDiagnosis):
        early = (
            found.r_hat_max <= _R_HAT
            and found.divergences <= _DIVERGED * found.draws
            and min(found.ess_bulk_min, found.ess_tail_min) >= _FEW
        )
        return "care" if early else "bad"
    return "bad"
