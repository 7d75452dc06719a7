"""A fit as the reader of trees has it, without a tree: what predictions need of it, and no word about single terms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from bayes_sparse.trees.description import Description
from bayes_sparse.trees.read import StoredFit

__all__ = ["FitAtHand", "at_hand"]


@dataclass(frozen=True, eq=False)
class FitAtHand(StoredFit):
    """A fit that no tree was written of; its groups are those of one without draws, as far as they are needed.

    Attributes
    ----------
    description : Description
        By its family.
    told : dict
        What a tree's group `evidence` has as attributes.
    """

    description: Description | None = None
    told: dict[str, Any] | None = None

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Model, likelihood, basis and columns."""
        assert self.description is not None
        blocks = [block for block in self.description.labelled.sparse if len(block.shape) == 1]
        return {**self.description.labelled.settings, "vectors": {own.name: own.dim_and_labels() for own in blocks}}

    def _group(self, name: str) -> xr.Dataset | None:
        assert self.description is not None
        labelled = self.description.labelled
        if name == "evidence":
            moments = self.description.moments()
            points = {name: ((), float(value)) for name, value in labelled.unpack(moments["theta"][1]).items()}
            # Row by row, as a file gives them back: in another order, sums over them have other last digits.
            filed = {name: (dims, np.asarray(values, order="C")) for name, (dims, values) in (moments | points).items()}
            return xr.Dataset(filed, attrs=self.told)
        if name == "constant_data":
            known = (labelled.constant_data or {}) | {name: (("basis",), own) for name, own in labelled.labels.items()}
            return xr.Dataset({"class" if name == "classes" else name: values for name, values in known.items()})
        return None


def at_hand(description: Description, told: dict[str, Any]) -> FitAtHand:
    """What a family found, to be predicted from."""
    return FitAtHand("this fit", xr.DataTree(), description=description, told=told)
