"""One-step evidence: a quadratic for the likelihood, its eigen-coordinates, a prior on each direction by itself.

`expansion` says where the quadratic is taken, `isotropic` finds a ridge and the nuisance parameters for it, `eigen`
rotates, `finish` weighs the directions and takes the last step, `posterior` draws. `declaration` is the same model for
NUTS; `tree` and `plots` show what was found.
"""
