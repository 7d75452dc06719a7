"""The rows of a problem in chunks: questions are answered by passes, several in one, and answers are kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np

from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.problem.chunked.passes import Chunks, Pointwise, Question, Standard, Work, together
from bayes_sparse.problem.chunked.row_vectors import Given, Leverages, Mapped, Node, Predictor, RowVector, Term

__all__ = ["RowSource", "bend_of"]

_KEPT = 256  # answers, each of the size of the columns
_SCANS = 8


class RowSource:
    """Rows in chunks, the columns made of them, and the likelihood along their predictor.

    Parameters
    ----------
    chunks : Chunks
        Where they lie.
    standard : Standard
        What their columns are.
    pointwise : callable
        ``pointwise(y, eta, theta)``, which is sent to the chunks.
    weighted : bool
        Whether rows have weights.
    """

    def __init__(self, chunks: Chunks, standard: Standard, pointwise: Pointwise, weighted: bool) -> None:
        self.chunks, self.standard, self.pointwise, self.weighted = chunks, standard, pointwise, weighted
        self.n = chunks.n
        self._known: OrderedDict[Hashable, Any] = OrderedDict()
        self.scans: _Recent = _Recent()  # of all columns: active ones, products with them, squares

    def mixed(self, mix: FloatArray) -> RowSource:
        """The same rows with other columns: combinations of these."""
        whole = mix if self.standard.mix is None else self.standard.mix @ mix
        return RowSource(self.chunks, replace(self.standard, mix=whole), self.pointwise, self.weighted)

    def given(self, name: str) -> RowVector:
        """Targets or weights."""
        return RowVector(self, Given(name))

    def predictor(self, w: FloatArray, index: IntArray, share: float = 0.0) -> RowVector:
        """``Phi[:, index] w``, and so many times the offset."""
        return RowVector(self, Predictor(index, np.asarray(w, dtype=float), share))

    def leverages(self, index: IntArray, M: FloatArray) -> RowVector:
        """``Phi M Phi'`` of each row by itself."""
        return RowVector(self, Leverages(index, M))

    def terms(self, eta: RowVector, theta: FloatArray, *, weighted: bool) -> tuple[RowVector, ...]:
        """The log-likelihood of each row and three derivatives along the predictor."""
        own = weighted and self.weighted
        return tuple(RowVector(self, Term(order, eta.node, theta, own)) for order in range(4))

    def ask(self, kind: str, *nodes: Node, index: IntArray | None = None, beside: tuple[Any, ...] = ()) -> Any:
        """The answer to one question, by a pass if it is not known."""
        return self.answers([Question(kind, nodes, index, beside)])[0]

    def answers(self, questions: list[Question]) -> list[Any]:
        """To several questions in one pass; to those that a search asks next too, where it looks at a new point."""
        wanted = [question for question in questions if question.key not in self._known]
        if wanted:
            wanted += [more for own in wanted for more in _companions(own) if more.key not in self._known]
            wanted = list({question.key: question for question in wanted}.values())
            found = together(Work(tuple(wanted), self.standard, self.pointwise), self.chunks)
            for question, answer in zip(wanted, found, strict=True):
                self._known[question.key] = answer
        out = [self._known[question.key] for question in questions]
        for question in questions:
            self._known.move_to_end(question.key)
            if question.kind in ("values", "joint"):  # as long as the data, or asked for once
                del self._known[question.key]
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return out

    def some(self, eta: RowVector, most: int) -> tuple[FloatArray, FloatArray]:
        """Targets and predictors of all rows, or of about so many evenly spaced ones."""
        step = -(-self.n // most)
        y, at = self.answers([Question("values", (node,), beside=(step,)) for node in (Given("y"), eta.node)])
        return y, at

    def known(self, question: Question) -> Any | None:
        """The answer, where it needs no pass."""
        return self._known.get(question.key)


class _Recent(OrderedDict[Hashable, tuple[IntArray, FloatArray, FloatArray]]):
    """The last few."""

    def __setitem__(self, key: Hashable, value: tuple[IntArray, FloatArray, FloatArray]) -> None:
        super().__setitem__(key, value)
        while len(self) > _SCANS:
            self.popitem(last=False)


def bend_of(second: Node) -> Node:
    """Minus the second derivative, cut off at zero: as `np.maximum(-second, 0.0)` has it."""
    return Mapped(np.maximum, (Mapped(np.negative, (second,)), 0.0))


def _companions(question: Question) -> list[Question]:
    """Who asks for a log-likelihood at a new predictor will ask for its gradient and curvature there."""
    value = question.nodes[0] if question.kind == "total" else None
    if isinstance(value, Mapped) and value.function is np.negative and isinstance(value.inputs[0], Term):
        first = replace(value.inputs[0], order=1)
        return [Question("dot", (first, first))]  # how scattered the data are is told by both
    if not (isinstance(value, Term) and value.order == 0 and isinstance(value.eta, Predictor)):
        return []
    first, second = (replace(value, order=order) for order in (1, 2))
    index = value.eta.index
    return [
        Question("pulled", (first,), index),
        Question("gram", (bend_of(second),), index),
        Question("most", (second,)),
    ]
