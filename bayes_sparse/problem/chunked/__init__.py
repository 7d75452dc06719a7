"""Problems whose rows lie in chunks, and never in one place."""

from bayes_sparse.problem.chunked.condensed import CondensedProblem, condensed
from bayes_sparse.problem.chunked.passes import Chunk, Chunks, Narrow, Standard
from bayes_sparse.problem.chunked.problem import ChunkedDesign, ChunkedProblem
from bayes_sparse.problem.chunked.row_vectors import RowVector
from bayes_sparse.problem.chunked.source import RowSource

__all__ = [
    "Chunk",
    "ChunkedDesign",
    "ChunkedProblem",
    "Chunks",
    "CondensedProblem",
    "Narrow",
    "RowSource",
    "RowVector",
    "Standard",
    "condensed",
]
