"""Models as people write them, and whether they are fitted."""
