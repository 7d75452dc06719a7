"""Effects of groups beside sparse weights, and intercepts with other priors than the Normal."""

import numpy as np
import pymc as pm

from .case import case
from .data import FEATURES, GROUP, GROUPS, LOW, REGRESSION, SIGMA, B, N, W, X, Y, effects, rng

EACH = "sparse vector w, a precision per weight"
BESIDE = EACH + "; effects of groups, one scale"
A = effects(GROUPS, 0.9, 40)
Y_A = Y + A[GROUP]
VARYING = {**REGRESSION, "a": A, "sigma_a": 0.9}
COORDS = {"feature": FEATURES, "group": [f"g{i}" for i in range(GROUPS)]}


def ard():
    """The sparse weights of every model in this file."""
    s = pm.HalfCauchy("s", 1, dims="feature")
    return pm.Normal("w", 0, s, dims="feature")


@case("varying intercepts", VARYING, BESIDE)
def varying_intercepts():
    with pm.Model(coords=COORDS) as model:
        w = ard()
        sigma_a = pm.HalfNormal("sigma_a", 1)
        a = pm.Normal("a", 0, sigma_a, dims="group")
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + a[GROUP] + X @ w, sigma, observed=Y_A)
    return model


@case("varying intercepts, non-centred", VARYING, BESIDE)
def non_centred_intercepts():
    with pm.Model(coords=COORDS) as model:
        group_idx = pm.Data("group_idx", GROUP)
        w = ard()
        sigma_a = pm.Exponential("sigma_a", 1)
        z = pm.Normal("z", 0, 1, dims="group")
        a = pm.Deterministic("a", z * sigma_a, dims="group")
        b = pm.Normal("b", 0, 5)
        sigma = pm.Exponential("sigma", 1)
        pm.Normal("y", b + a[group_idx] + X @ w, sigma, observed=Y_A)
    return model


POOLED = {"w": W, "a": B + A, "mu_a": B, "sigma_a": 0.9, "sigma": SIGMA}


@case("varying intercepts around a random mean", POOLED, BESIDE)
def hierarchical_mean():
    with pm.Model(coords=COORDS) as model:
        w = ard()
        mu_a = pm.Normal("mu_a", 0, 5)
        sigma_a = pm.HalfCauchy("sigma_a", 1)
        a = pm.Normal("a", mu_a, sigma_a, dims="group")
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", a[GROUP] + X @ w, sigma, observed=Y_A)
    return model


@case("varying intercepts around a random mean, rows of pm.Data", POOLED, BESIDE)
def hierarchical_mean_of_data():
    with pm.Model(coords=COORDS) as model:
        columns, group_idx = pm.Data("columns", X), pm.Data("group_idx", GROUP)
        w = ard()
        mu_a = pm.Normal("mu_a", 0, 5)
        sigma_a = pm.HalfCauchy("sigma_a", 1)
        a = pm.Normal("a", mu_a, sigma_a, dims="group")
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", a[group_idx] + columns @ w, sigma, observed=Y_A)
    return model


@case("varying intercepts around a random mean, non-centred", POOLED, BESIDE)
def non_centred_hierarchical_mean():
    with pm.Model(coords=COORDS) as model:
        w = ard()
        mu_a = pm.Normal("mu_a", 0, 5)
        sigma_a = pm.HalfNormal("sigma_a", 1)
        a = pm.Deterministic("a", mu_a + sigma_a * pm.Normal("z_a", 0, 1, dims="group"), dims="group")
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", a[GROUP] + X @ w, sigma, observed=Y_A)
    return model


OF_GROUP = effects(GROUPS, 1.0, 41)  # a column of the groups' table


@case(
    "varying intercepts with a predictor of the groups",
    {"w": W, "g0": B, "g1": 1.2, "sigma": SIGMA},
    BESIDE,
)
def predictor_of_groups():
    rest = effects(GROUPS, 0.4, 42)
    rest = rest - OF_GROUP * (rest @ OF_GROUP) / (OF_GROUP @ OF_GROUP)
    with pm.Model(coords=COORDS) as model:
        w = ard()
        g0 = pm.Normal("g0", 0, 5)
        g1 = pm.Normal("g1", 0, 5)
        sigma_a = pm.HalfNormal("sigma_a", 1)
        a = pm.Normal("a", g0 + g1 * OF_GROUP, sigma_a, dims="group")
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", a[GROUP] + X @ w, sigma, observed=Y + (1.2 * OF_GROUP + rest)[GROUP])
    return model


SLOPES = effects(GROUPS, 0.6, 43)
TIME = rng(44).normal(size=N)
Y_SLOPES = Y_A + (1.0 + SLOPES)[GROUP] * TIME


@case(
    "varying intercepts and slopes",
    {**REGRESSION, "a": A, "c": 1.0 + SLOPES, "mu_c": 1.0, "sigma_a": 0.9, "sigma_c": 0.6},
    BESIDE,
)
def varying_slopes():
    with pm.Model(coords=COORDS) as model:
        w = ard()
        sigma_a = pm.HalfNormal("sigma_a", 1)
        a = pm.Normal("a", 0, sigma_a, dims="group")
        mu_c = pm.Normal("mu_c", 0, 2)
        sigma_c = pm.HalfNormal("sigma_c", 1)
        c = pm.Normal("c", mu_c, sigma_c, dims="group")
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + a[GROUP] + c[GROUP] * TIME + X @ w, sigma, observed=Y_SLOPES)
    return model


@case("varying slopes, non-centred", {**REGRESSION, "slope": 1.0, "sigma_a": 0.9, "sigma_c": 0.6}, BESIDE)
def non_centred_slopes():
    with pm.Model(coords=COORDS) as model:
        w = ard()
        slope = pm.Normal("slope", 0, 2)
        sigma_a = pm.HalfNormal("sigma_a", 1)
        sigma_c = pm.HalfNormal("sigma_c", 1)
        z_a = pm.Normal("z_a", 0, 1, dims="group")
        z_c = pm.Normal("z_c", 0, 1, dims="group")
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        mu = b + sigma_a * z_a[GROUP] + (slope + sigma_c * z_c[GROUP]) * TIME + X @ w
        pm.Normal("y", mu, sigma, observed=Y_SLOPES)
    return model


SCHOOL = np.arange(GROUPS) % 4  # of each class
SCHOOLS = effects(4, 1.0, 45)
CLASSES = effects(GROUPS, 0.5, 46)


@case(
    "groups nested in larger ones",
    {"w": W, "sigma_class": 0.5, "sigma": SIGMA},
    EACH + "; effects of schools and of classes, one scale each",
)
def nested_groups():
    with pm.Model(coords={"feature": FEATURES, "school": range(4), "class": range(GROUPS)}) as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        sigma_school = pm.HalfNormal("sigma_school", 1)
        school = pm.Normal("school_effect", b, sigma_school, dims="school")
        sigma_class = pm.HalfNormal("sigma_class", 1)
        effect = pm.Normal("class_effect", school[SCHOOL], sigma_class, dims="class")
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", effect[GROUP] + X @ w, sigma, observed=Y + (SCHOOLS[SCHOOL] + CLASSES)[GROUP])
    return model


ITEM = rng(47).integers(0, 10, size=N)
ITEMS = effects(10, 0.6, 48)


@case(
    "crossed groups",
    {**REGRESSION, "sigma_a": 0.9, "sigma_i": 0.6, "a": A, "item": ITEMS},
    EACH + "; effects of subjects and of items, one scale each",
)
def crossed_groups():
    with pm.Model(coords={**COORDS, "items": range(10)}) as model:
        w = ard()
        a = pm.Normal("a", 0, pm.HalfNormal("sigma_a", 1), dims="group")
        item = pm.Normal("item", 0, pm.HalfNormal("sigma_i", 1), dims="items")
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + a[GROUP] + item[ITEM] + X @ w, sigma, observed=Y_A + ITEMS[ITEM])
    return model


@case("effects that sum to zero", VARYING, BESIDE)
def zero_sum():
    with pm.Model(coords=COORDS) as model:
        w = ard()
        sigma_a = pm.HalfNormal("sigma_a", 1)
        a = pm.ZeroSumNormal("a", sigma=sigma_a, dims="group")
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + a[GROUP] + X @ w, sigma, observed=Y_A)
    return model


COUNTS = rng(49).poisson(np.exp(B + effects(GROUPS, 0.6, 50)[GROUP] + X @ LOW))


@case("counts with varying intercepts", {"w": LOW, "b": B, "sigma_a": 0.6}, BESIDE)
def counts_by_group():
    with pm.Model(coords=COORDS) as model:
        w = ard()
        sigma_a = pm.HalfNormal("sigma_a", 1)
        z = pm.Normal("z", 0, 1, dims="group")
        b = pm.Normal("b", 0, 2)
        eta = b + sigma_a * z[GROUP] + X @ w
        pm.Poisson("y", mu=pm.math.exp(eta), observed=COUNTS)
    return model


@case("counts with an effect of every row", {"w": LOW, "b": 1.5, "sigma_e": 0.5}, EACH + "; effects of rows, one scale")
def effect_of_every_row():
    e = effects(N, 0.5, 51)
    y = rng(52).poisson(np.exp(1.5 + X @ LOW + e))
    with pm.Model(coords=COORDS) as model:
        w = ard()
        sigma_e = pm.HalfNormal("sigma_e", 1)
        e = pm.Normal("e", 0, sigma_e, shape=N)
        b = pm.Normal("b", 0, 2)
        pm.Poisson("y", mu=pm.math.exp(b + X @ w + e), observed=y)
    return model


def with_intercept(declare):
    """A model whose intercept has this prior."""

    def build():
        with pm.Model(coords=COORDS) as model:
            w = ard()
            b = declare()
            sigma = pm.HalfNormal("sigma", 1)
            pm.Normal("y", b + X @ w, sigma, observed=Y)
        return model

    return build


case("a Student-t intercept", REGRESSION, EACH)(with_intercept(lambda: pm.StudentT("b", nu=3, mu=0, sigma=2.5)))
case("a Cauchy intercept", REGRESSION, EACH)(with_intercept(lambda: pm.Cauchy("b", 0, 10)))
case("a Uniform intercept", REGRESSION, EACH)(with_intercept(lambda: pm.Uniform("b", -10, 10)))
case("a flat intercept", REGRESSION, EACH)(with_intercept(lambda: pm.Flat("b")))
