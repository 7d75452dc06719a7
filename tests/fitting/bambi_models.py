"""Bambi models of simulated data, with the truth of what their terms should be."""

from dataclasses import dataclass, field

import bambi as bmb
import numpy as np
import pandas as pd

N = 260
_RNG = np.random.default_rng(27)
AREAS = [f"area {i}" for i in range(8)]
OF_AREA = dict(zip(AREAS, [1.1, -0.9, 0.6, -0.4, 1.4, -1.2, 0.3, -0.8], strict=True))
OF_KIND = {"a": 0.0, "b": 1.5, "c": -1.0, "d": 0.8}
FRAME = pd.DataFrame(
    {
        "x": _RNG.normal(5.0, 2.0, N),
        "z": _RNG.normal(-1.0, 1.0, N),
        "noise1": _RNG.normal(size=N),
        "noise2": _RNG.normal(3.0, 1.0, N),
        "time": _RNG.uniform(0.0, 1.0, N),
        "exposure": _RNG.uniform(0.5, 4.0, N),
        "kind": np.resize(list(OF_KIND), N),
        "dull": np.resize(["m", "n", "o"], N),
        "area": _RNG.choice(AREAS, N),
    }
)
_X, _Z = FRAME["x"] - 5.0, FRAME["z"]
_KIND, _AREA = FRAME["kind"].map(OF_KIND), FRAME["area"].map(OF_AREA)
_WAVE = 2.0 * np.sin(2 * np.pi * FRAME["time"])
_LINEAR = 0.7 * _X - 1.2 * _Z


def _normal(mean, sd=0.7):
    return mean + sd * _RNG.normal(size=N)


def _levels(predictor, thresholds):
    place = np.searchsorted(thresholds, predictor + _RNG.logistic(size=N))
    return pd.Categorical.from_codes(place, ["low", "mid", "high", "top"], ordered=True)


def _classes(predictors):
    """One of three: of greatest predictor plus Gumbel noise, the first predictor being zero."""
    utility = np.column_stack([np.zeros(N), *predictors]) + _RNG.gumbel(size=(N, 3))
    return np.array(["bus", "car", "walk"])[utility.argmax(axis=1)]


@dataclass(frozen=True)
class Case:
    """A model and what is true of it.

    Attributes
    ----------
    formula, more
        Arguments of `bmb.Model`.
    y : array
        The response, called "y".
    truth : dict
        By variable, in bambi's units; zero for a term that should be pruned.
    parameter : array
        True values of the likelihood's parent parameter at the rows.
    """

    formula: str | bmb.Formula
    y: object
    truth: dict[str, object]
    parameter: object = None
    more: dict[str, object] = field(default_factory=dict)

    def model(self):
        return bmb.Model(self.formula, FRAME.assign(y=self.y), **self.more)


def _cases():
    rate = np.exp(0.4 + 0.25 * _X - 0.5 * _Z)
    p = 1 / (1 + np.exp(-(_LINEAR + _KIND)))
    flat = {"noise1": 0.0, "noise2": 0.0}
    slopes, kinds = {"x": 0.7, "z": -1.2}, [1.5, -1.0, 0.8]
    log_sd = -0.5 + 0.25 * _X
    first, second = 1.0 - 1.2 * _Z, 0.8 * _X
    mean = 2.0 + _LINEAR + _KIND + _AREA
    yield (
        "normal",
        Case(
            "y ~ x + z + noise1 + noise2 + kind + dull + (1|area)",
            _normal(mean),
            slopes | flat | {"kind": kinds, "dull": [0.0, 0.0], "sigma": 0.7, "1|area": list(OF_AREA.values())},
            mean,
        ),
    )
    yield (
        "bernoulli",
        Case(
            "y ~ x + z + noise1 + noise2 + kind",
            _RNG.binomial(1, p),
            slopes | flat | {"kind": kinds},
            p,
            {"family": "bernoulli"},
        ),
    )
    yield (
        "poisson with an offset",
        Case(
            "y ~ x + z + noise1 + noise2 + dull + offset(np.log(exposure))",
            _RNG.poisson(FRAME["exposure"] * rate),
            {"x": 0.25, "z": -0.5, "Intercept": 0.4 - 0.25 * 5.0, "dull": [0.0, 0.0]} | flat,
            FRAME["exposure"] * rate,
            {"family": "poisson"},
        ),
    )
    yield (
        "negative binomial",
        Case(
            "y ~ x + z + noise1 + noise2",
            _RNG.poisson(_RNG.gamma(3.0, 3.0 * rate / 3.0)),
            {"x": 0.25, "z": -0.5, "alpha": 3.0} | flat,
            3.0 * rate,
            {"family": "negativebinomial"},
        ),
    )
    yield (
        "transforms",
        Case(
            "y ~ scale(x) + np.exp(z) + poly(time, 2) + scale(noise1)",
            _normal(1.0 + 1.4 * _X / np.std(FRAME["x"]) - 0.8 * np.exp(_Z)),
            {"np.exp(z)": -0.8, "scale(noise1)": 0.0, "poly(time, 2)": [0.0, 0.0]},
        ),
    )
    yield (
        "interactions",
        Case(
            "y ~ x * z + kind:noise1 + noise2",
            _normal(1.0 + _LINEAR + 0.5 * FRAME["x"] * _Z),
            {"z": -1.2, "x:z": 0.5, "kind:noise1": [0.0] * 4, "noise2": 0.0},
        ),
    )
    yield (
        "spline",
        Case(
            "y ~ z + noise1 + bs(time, df=5)",
            _normal(_LINEAR - 0.7 * _X + _WAVE),
            {"z": -1.2, "noise1": 0.0},
            -1.2 * _Z + _WAVE,
        ),
    )
    yield (
        "gaussian process",
        Case(
            "y ~ z + noise1 + hsgp(time, m=8, c=1.5)",
            _normal(-1.2 * _Z + _WAVE),
            {"z": -1.2, "noise1": 0.0},
            -1.2 * _Z + _WAVE,
        ),
    )
    yield (
        "mean and spread",
        Case(
            bmb.Formula("y ~ x + z + noise1", "sigma ~ x + noise2"),
            _normal(1.0 + _LINEAR, np.exp(log_sd)),
            slopes | {"noise1": 0.0, "sigma_x": 0.25, "sigma_noise2": 0.0},
            1.0 + _LINEAR,
        ),
    )
    yield (
        "ordinal",
        Case(
            "y ~ 0 + center(x) + z + noise1",
            _levels(0.7 * (_X - _X.mean()) - 1.2 * _Z, [-1.5, 0.5, 2.0]),
            {"center(x)": 0.7, "z": -1.2, "noise1": 0.0, "threshold": [-1.5, 0.5, 2.0]},
            None,
            {"family": "cumulative"},
        ),
    )
    yield (
        "classes",
        Case(
            "y ~ x + z + noise1",
            _classes([first, second]),
            {"x": [0.0, 0.8], "z": [-1.2, 0.0], "noise1": [0.0, 0.0]},
            None,
            {"family": "categorical"},
        ),
    )


CASES = dict(_cases())
