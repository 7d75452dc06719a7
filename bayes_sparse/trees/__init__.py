"""A fit as an ArviZ DataTree: one writer, one reader, one description a family."""
