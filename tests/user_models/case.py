"""What a model of the corpus is: how it is written, what is true of its data, and how it should be read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pymc as pm

ALL: list["Case"] = []  # in the order in which the files declare them


@dataclass(frozen=True)
class Case:
    """One model, exactly as its user would write it.

    Attributes
    ----------
    name : str
        A fragment of a sentence.
    build : callable
        Makes the model with its data.
    truth : dict
        What the data were made with, by the name of a variable or a Deterministic of the model.
    read_as : str
        What the fit makes of the prior, for the table in the docs.
    settings : dict
        What `bayes_sparse.fit` is given beside the model.
    refused : str, optional
        What the refusal must say, where that is the right answer: a regular expression.
    """

    name: str
    build: Callable[[], pm.Model]
    truth: Mapping[str, Any]
    read_as: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    refused: str | None = None

    @property
    def method(self) -> str:
        """What fits it where no method is asked for."""
        return "global_local" if self.read_as.startswith("horseshoe") else "sequential"


def case(name, truth=None, read_as="", refused=None, **settings):
    """Enter the model that the decorated function builds."""

    def enter(build):
        ALL.append(Case(name, build, truth or {}, read_as, settings, refused))
        return build

    return enter
