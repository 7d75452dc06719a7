"""NUTS, which samples a declaration: what it says of choices. How it samples is in `bayes_sparse.fitting.nuts`."""

from __future__ import annotations

from typing import Any, ClassVar

from bayes_sparse.common.types import Hyper
from bayes_sparse.inference.method import Method
from bayes_sparse.inputs.model import Model
from bayes_sparse.methods.nuts import NUTS

__all__ = ["NutsRules"]


class NutsRules:
    """Every model is sampled, under a proper prior."""

    finds: ClassVar[str] = "draws of the whole declaration; with condition='alpha' of its weights"
    samples: ClassVar[bool] = True

    def fits(self, method: Method, model: Model) -> bool:
        """Any."""
        return True

    def uses_hyper(self, method: Method) -> bool:
        """It is part of the declaration."""
        return True

    def uses_default(self, method: Method) -> bool:
        """The declaration has a proper one of its own."""
        return False

    def check_hyper(self, method: Method, model: Model, hyper: Hyper) -> None:
        """Refuse an improper one, unless the precisions are held at those of a fit."""
        held = isinstance(method, NUTS) and method.condition
        if held or (hyper[0] > 0 and hyper[1] > 0):
            return
        assert model.proper_hyper is not None
        a, b = model.proper_hyper
        raise ValueError(
            f"hyper={hyper} is an improper prior: the posterior under NUTS would be improper too; a proper "
            f"neighbour is hyper=({a:g}, {b:g})."
        )

    def own_settings(self, given: dict[str, Any]) -> dict[str, Any]:
        """A price is left out, since the declaration has none; limits of a search are refused."""
        if {"max_iterations", "tolerance"} & set(given):
            raise ValueError("NUTS has draws and chains, not iterations: leave out max_iterations and tolerance.")
        return {name: value for name, value in given.items() if name != "smoothness"}
