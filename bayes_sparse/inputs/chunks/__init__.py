"""Data larger than memory, in chunks that dask holds or reads."""

from bayes_sparse.inputs.chunks.gathered import gathered, size_of
from bayes_sparse.inputs.chunks.prepared import ChunkedData, chunked_data
from bayes_sparse.inputs.chunks.sources import is_chunked

__all__ = ["ChunkedData", "chunked_data", "gathered", "is_chunked", "size_of"]
