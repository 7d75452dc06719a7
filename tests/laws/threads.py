"""Fits in many threads at once, beside the same fits one after another."""

import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import bayes_sparse as bs

THREADS, N = 8, 40
MODELS = ("ard_gaussian", "laplace_eigen")
LIKELIHOODS = {
    "normal": lambda eta, rng: eta + rng.normal(size=N),
    "student_t": lambda eta, rng: eta + rng.standard_t(3, size=N),
    "bernoulli": lambda eta, rng: rng.random(N) < 1 / (1 + np.exp(-eta)),
    "probit": lambda eta, rng: eta + rng.normal(size=N) > 0,
    "poisson": lambda eta, rng: rng.poisson(np.exp(eta)),
    "negative_binomial": lambda eta, rng: rng.negative_binomial(3, 3 / (3 + np.exp(eta + 1))),
    "gamma": lambda eta, rng: rng.gamma(3, np.exp(eta)),
    "beta": lambda eta, rng: np.clip(rng.beta(5 / (1 + np.exp(-eta)), 5 / (1 + np.exp(eta))), 1e-3, 1 - 1e-3),
    "binomial": lambda eta, rng: rng.binomial(10, 1 / (1 + np.exp(-eta))),
    "ordinal": lambda eta, rng: np.digitize(eta + rng.logistic(size=N), [-1, 1]),
    "categorical": lambda eta, rng: np.argmax(np.outer(eta, [1, 0, -1]) + rng.gumbel(size=(N, 3)), axis=1),
}
OWN = {"binomial": bs.likelihoods.binomial(trials=10), "ordinal": bs.likelihoods.ordinal(levels=3)}


def answer(job):
    """All that a search finds, as bytes."""
    model, name, seed = job
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 3))
    y = LIKELIHOODS[name](X[:, 0], rng)
    tree = bs.fit(model, (X, y), likelihood=OWN.get(name, name), draws=0, progressbar=False)
    found = tree["evidence"].to_dataset()
    return found["coordinate_mean"].to_numpy().tobytes(), found["covariance_factor"].to_numpy().tobytes()


def differences(fits, models=MODELS, cold=False):
    """Which jobs end otherwise beside others than alone; ``cold`` makes the first of all fits in threads."""
    jobs = [(model, name, seed) for seed in range(fits) for model in models for name in LIKELIHOODS]
    often = sys.getswitchinterval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of fits to so few rows
        alone = None if cold else [answer(job) for job in jobs]
        sys.setswitchinterval(1e-5)  # 500 times as often as usual: what can go wrong does
        try:
            with ThreadPoolExecutor(THREADS) as pool:  # every job in every thread, each beginning at another
                starts = [k * len(jobs) // THREADS for k in range(THREADS)]
                beside = list(pool.map(lambda at: [answer(job) for job in jobs[at:] + jobs[:at]], starts))
        finally:
            sys.setswitchinterval(often)
        alone = alone or [answer(job) for job in jobs]
    turned = [alone[at:] + alone[:at] for at in starts]
    return [
        (own, jobs[(i + at) % len(jobs)])
        for own, (at, there, here) in enumerate(zip(starts, beside, turned, strict=True))
        for i in range(len(jobs))
        if there[i] != here[i]
    ]
