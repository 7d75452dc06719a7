"""Data larger than memory, in chunks that dask holds or reads."""

from bayes_sparse.inputs.chunks.dask_chunks import DaskChunks, need_dask
from bayes_sparse.inputs.chunks.gathered import gathered, size_of
from bayes_sparse.inputs.chunks.prepared import ChunkedData, chunked_data
from bayes_sparse.inputs.chunks.sources import is_chunked, new_rows

__all__ = ["ChunkedData", "DaskChunks", "chunked_data", "gathered", "is_chunked", "need_dask", "new_rows", "size_of"]
