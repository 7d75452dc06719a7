"""Writes docs/supported_models.md, the table of all models here: ``python -m tests.user_models.page``."""

import sys
import warnings
from itertools import groupby
from pathlib import Path

import bayes_sparse as bs

from . import test_user_models  # noqa: F401  (its imports enter the cases)
from .case import ALL

PAGE = Path(__file__).parents[2] / "docs" / "supported_models.md"
HEAD = """\
# Models that are fitted as they stand

Every row is a model in `tests/user_models/`, written as people write it and fitted unchanged by `bs.fit(model)`: the
tests check that the fit finds what its data were made with. {fitted} are fitted and {refused} are refused. This page is
written by `python -m tests.user_models.page` and checked by a test. [What to do with a model of yours](own_models.md).

*Read as* is what becomes of the prior; `bs.explain(model)` says it of yours, with everything else. *Method* is the one
that `fit` takes by itself, without `method=`. Refused models have the sentence that `fit` says.
"""


def text():
    """The whole page."""
    refused = sum(case.refused is not None for case in ALL)
    parts = [HEAD.format(fitted=len(ALL) - refused, refused=refused)]
    fitted_first = sorted(ALL, key=lambda case: case.build.__module__.endswith(".refused"))
    for module, cases in groupby(fitted_first, key=lambda case: case.build.__module__):
        parts.append(_section(sys.modules[module].__doc__.splitlines()[0].rstrip("."), list(cases)))
    return "\n".join(parts)


def _section(title, cases):
    fitted = [case for case in cases if case.refused is None]
    lines = [f"## {title}", ""]
    if fitted:
        lines += ["| model | read as | method |", "| --- | --- | --- |"]
        lines += [f"| {case.name}{_call(case)} | {case.read_as} | `{case.method}` |" for case in fitted]
    refused = [case for case in cases if case.refused is not None]
    if refused:
        lines += [""] * bool(fitted) + ["| model | refused in these words |", "| --- | --- |"]
        lines += [f"| {case.name}{_call(case)} | {_escaped(_refusal(case))} |" for case in refused]
    return "\n".join([*lines, ""])


def _call(case):
    settings = ", ".join(f"{name}={value!r}" for name, value in case.settings.items())
    return f", `{settings}`".replace("'", '"') if settings else ""


def _refusal(case):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyMC's, as the model is written
        return bs.explain(case.build(), **case.settings).refusal


def _escaped(sentence):
    return sentence.replace("|", "\\|").replace("*", "\\*")


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
