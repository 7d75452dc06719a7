"""One compiled likelihood for every structure, and never one for two."""

import pymc as pm
import pytensor.tensor as pt
import pytest

from bayes_sparse.inputs import compiled

from . import user_models
from .against_pymc import check
from .user_models import (
    COUNT,
    EXPOSURE,
    REAL,
    X,
    custom,
    custom_with_data,
    negative_binomial,
    poisson_exposure,
    sparse_weights,
    student_t_known,
    with_likelihood,
    zero_inflated,
)


@pytest.mark.parametrize("family", [negative_binomial, poisson_exposure, custom, custom_with_data, zero_inflated])
def test_a_second_model_of_the_same_structure_compiles_nothing(family, monkeypatch):
    check(with_likelihood(family))
    size = len(compiled._cache)
    monkeypatch.setattr(user_models, "EXPOSURE", EXPOSURE[:20] + 0.5)
    monkeypatch.setattr(user_models, "COUNT", COUNT[:20] + 1)
    monkeypatch.setattr(user_models, "REAL", REAL[:20] * 2)
    check(with_likelihood(family, X=X[:20, :3] + 1.0))
    assert len(compiled._cache) == size


def test_other_structures_and_constants_are_not_confused():
    check(with_likelihood(student_t_known))
    size = len(compiled._cache)

    def other(eta):
        pm.StudentT("y", nu=7, mu=eta, sigma=pm.HalfCauchy("sigma", 1.0), observed=REAL)

    check(with_likelihood(other))
    assert len(compiled._cache) == size + 1


def test_whole_numbers_and_fractions_are_not_confused():
    for exposure in (COUNT + 1, EXPOSURE):
        with pm.Model() as model:
            pm.Poisson("y", exposure * pm.math.exp(0.1 + X @ sparse_weights()), observed=COUNT)
        check(model)


def test_users_own_densities_are_not_confused():
    def with_power(power):
        def log_density(value, mu):
            return -power * pt.log1p((value - mu) ** 2)

        with pm.Model() as model:
            pm.CustomDist("y", X @ sparse_weights(), logp=log_density, observed=REAL)
        return model

    check(with_power(1.5))
    check(with_power(2.5))
