"""What the residuals of a fit say of its likelihood."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LikelihoodCheck"]

_LEAST = 0.0001  # a chance below it is not told to the digit


@dataclass(frozen=True)
class LikelihoodCheck:
    """A statistic of the residuals, with what is known of it where the likelihood is right.

    Attributes
    ----------
    statistic : str
        Its name.
    value, p_value : float
        What it is, and the chance of as much where the likelihood is right.
    wrong : str
        What the data have that the likelihood has not and what this does, in words; empty where nothing was found.
    better : str
        Name of a likelihood that has it.
    named : bool
        Whether that is one of ours; else it is one for a `pm.Model`.
    """

    statistic: str
    value: float
    p_value: float
    wrong: str = ""
    better: str = ""
    named: bool = True

    def sentence(self, *, own: bool = False) -> str:
        """What was found and the cure, for a named model or for a `pm.Model` of the user's own; empty if nothing."""
        if not self.wrong:
            return ""
        distribution = "".join(part.capitalize() for part in self.better.split("_"))
        where = " instead" if own else ", in a pm.Model of your own"
        cure = (
            f"fit with likelihood={self.better!r}" if self.named and not own else f"observe a pm.{distribution}{where}"
        )
        chance = f"p = {self.p_value:.1g}" if self.p_value >= _LEAST else f"p < {_LEAST}"
        return f"{self.wrong} ({self.statistic} = {self.value:.2f}, {chance}); {cure}, or look for a missing term."
