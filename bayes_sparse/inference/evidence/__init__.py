"""Type-II maximum likelihood: the posterior at given precisions, and the ascent over them."""
