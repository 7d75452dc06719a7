"""Functions of a tree: predictions, relevance, how far to trust it, comparisons, pictures."""
