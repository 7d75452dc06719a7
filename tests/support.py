"""What tests of several rooms share: short fits, targets and densities made by hand, and the form of a refusal."""

import os
import re
import resource
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import settings
from pytensor.compile.mode import Mode
from scipy.special import expit, gammaln
from scipy.stats import t as student

import bayes_sparse as bs

QUICK = bool(os.environ.get("BAYES_SPARSE_QUICK"))  # set by `make quick`
UNCOMPILED = Mode(linker="py", optimizer="fast_run").excluding("fusion")  # for a handful of draws or values
NONE, NU = np.empty(0), 4.0


def examples(number):
    """So many examples of a law, or a single one where there is no time."""
    return settings(max_examples=1 if QUICK else number)


def without_compiler(patch):
    """NUTS without a C compiler."""
    patch.setattr("bayes_sparse.fitting.nuts.declaration._in_c", lambda: {"mode": UNCOMPILED})
    patch.setattr("bayes_sparse.fitting.nuts.compiled._mode", lambda: UNCOMPILED)


def quiet(*_):
    """Progress that nobody follows."""


def fit_path(data, **settings):
    """A fit on the L1 path, without draws unless they are asked for."""
    return bs.fit("jeffreys_laplace", data, **({"draws": 0, "progressbar": False} | settings))


def as_sampled(tree):
    """The draws of an evidence fit as if NUTS had drawn them: no moments, every weight there."""
    whole = bs.unpruned(tree).drop_nodes("evidence")
    whole["posterior"].attrs.update(method="nuts", condition="")
    return whole


def assert_one_sentence(message, *mentions):
    """Check the form of a message: one sentence, and the names it must hold.

    A question that suggests a name ("Did you mean ...?") may follow it.
    """
    sentence = re.sub(r" Did you mean '[^']+'\?$", "", message)
    assert "\n" not in sentence
    assert re.match(r"[A-Z\d`'(]|[a-z_]+[= (]", sentence), sentence
    assert sentence.endswith("."), sentence
    assert not re.search(r"[.!?] [A-Z]", sentence), f"more than one sentence: {sentence}"
    assert 20 < len(sentence) < 400
    for mention in mentions:
        assert mention in message, f"{mention!r} is not in {message!r}"


def refused(call, *mentions, kind=ValueError):
    """The one sentence in which a call is refused."""
    with pytest.raises(kind) as error:
        call()
    assert_one_sentence(str(error.value), *mentions)
    return str(error.value)


@contextmanager
def no_room():
    """A process that may write no file of more than 4 kB: the error comes late, as that of a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def target(name, eta, rng, noise=1.0):
    """Drawn about a predictor; Student-t noise has tails far heavier than is assumed."""
    return {
        "bernoulli": lambda: (rng.random(len(eta)) < expit(eta)).astype(float),
        "poisson": lambda: rng.poisson(np.exp(eta)).astype(float),
        "student_t": lambda: eta + noise * rng.standard_t(1.5, len(eta)),
        "normal": lambda: eta + noise * rng.standard_normal(len(eta)),
    }[name]()


# Log-densities along the predictor, their first two derivatives, and none by nuisance parameters.


def bernoulli(y, eta, _=None):
    p = expit(eta)
    return y * eta - np.logaddexp(0, eta), y - p, -p * (1 - p), NONE


def poisson(y, eta, _=None):
    with np.errstate(over="ignore"):  # far out on the way the rate is infinite, and the log-likelihood minus infinity
        mean = np.exp(eta)
    return y * eta - mean - gammaln(y + 1), y - mean, -mean, NONE


def student_t(y, eta):
    r, tail = y - eta, NU + (y - eta) ** 2
    return student.logpdf(r, NU), (NU + 1) * r / tail, (NU + 1) * (r**2 - NU) / tail**2, NONE
