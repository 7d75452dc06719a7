"""Absolute-value prices: the quadratic subproblem, small surfaces, and warm-started paths over many columns."""
