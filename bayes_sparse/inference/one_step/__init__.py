"""One-step evidence: a quadratic for the likelihood, its eigen-coordinates, a prior on each direction by itself.

`expansion` says where the quadratic is taken and finds the ridge of greatest evidence, `eigen` rotates, `alone` is what
the data say of each weight before any prior, `directions` all three; `finish` weighs the directions and takes the last
step; what depends on the prior is in `bayes_sparse.inference.priors`.
"""
