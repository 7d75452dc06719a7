"""Data with known truth that many of the models share: columns, slopes, groups, one normal response."""

import numpy as np

N, P = 300, 8
FEATURES = ["age", "income", "height", "weight", "dose", "score", "years", "rooms"]
W = np.array([1.5, 0, -1.0, 0, 0, 0.8, 0, 0])  # slopes of a response in its own units
LOW = W / 2  # slopes under a log link
STEEP = np.array([2.0, 0, -1.5, 0, 0, 0, 0, 0])  # slopes where each row says little: yes or no, one of three
B, SIGMA = 0.5, 0.7

_rng = np.random.default_rng(2026)
X = _rng.normal(size=(N, P))
ETA = B + X @ W
Y = ETA + SIGMA * _rng.normal(size=N)
GROUPS = 12
GROUP = _rng.permutation(np.arange(N) % GROUPS)
REGRESSION = {"w": W, "b": B, "sigma": SIGMA}  # what is true of Y


def rng(seed):
    """Noise of a response of its own."""
    return np.random.default_rng(seed)


def effects(count, sd, seed):
    """Effects of groups whose mean is zero and whose sd is exactly this."""
    draw = np.random.default_rng(seed).normal(size=count)
    return sd * (draw - draw.mean()) / draw.std()
