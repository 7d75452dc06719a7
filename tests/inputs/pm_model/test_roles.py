"""What is to be found of each Gaussian variable's prior: by its scales, or because its user says so."""

import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bayes_sparse.inputs.pm_model import read_model
from bayes_sparse.inputs.pm_model.roles import Asked

from .user_models import GROUP, REAL, N, P, X, Z, sparse_weights

pytestmark = pytest.mark.quick


def declared(build):
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("b", 0.0, 5.0) + build(), 1.0, observed=REAL)
    return model


def roles(build, *sparse, grouped=(), hold=False):
    read = read_model(declared(build), Asked(sparse, grouped, hold))
    return {role.latent.name: role for role in read.roles}, read


def shared():
    return X @ pm.Normal("w", 0.0, pm.HalfNormal("tau", 1.0), shape=P)


def known():
    return X @ pm.Normal("w", 0.0, 1.0, shape=P) + Z @ pm.Normal("v", 0.0, 2.0, shape=2)


def test_named_variables_have_a_precision_each():
    by_name, read = roles(known, "w")
    assert_array_equal(by_name["w"].labels, np.arange(P))
    assert (by_name["v"].free, by_name["b"].free) == (False, False)
    assert read.problem.groups is None
    assert [block.name for block in read.sparse] == ["w"]
    assert {block.name for block in read.fixed} == {"v", "b"}


def test_grouped_variables_have_one_for_all():
    by_name, read = roles(known, "w", grouped=("v",))
    assert_array_equal(by_name["v"].labels, np.zeros(2))
    columns = {block.name: read.problem.groups[block.columns] for block in read.sparse + read.fixed}
    assert len(np.unique(columns["w"])) == P
    assert len(np.unique(columns["v"])) == 1
    assert len(np.unique(np.concatenate(list(columns.values())))) == P + 2  # with the intercept's own


def test_a_variable_is_named_by_either_of_its_names():
    def build():
        z = pm.Normal("z", 0.0, 1.0, shape=P)
        return X @ pm.Deterministic("w", z * pm.HalfNormal("tau", 1.0))

    for name in ("z", "w"):
        by_name, _ = roles(build, name)
        assert by_name["w"].free


def test_where_nothing_is_sparse_a_vector_of_unknown_scale_is_listed_and_kept():
    by_name, read = roles(shared)
    assert (by_name["w"].free, by_name["w"].listed, by_name["b"].listed) == (False, True, False)
    assert read.nuisance == ("tau",)
    assert_allclose(read.problem.fixed_precision(np.log([0.5])), [4.0] * P + [0.04])


def test_a_shared_scale_beside_sparse_weights_is_a_nuisance_parameter():
    def build():
        return X @ sparse_weights() + pm.Normal("u", 0.0, pm.HalfNormal("tau", 1.0), shape=3)[GROUP]

    by_name, read = roles(build)
    assert {name for name, role in by_name.items() if role.listed} == {"w"}
    assert read.nuisance == ("tau",)
    named, _ = roles(build, "u")
    assert_array_equal(named["u"].labels, np.arange(3))


def test_a_slope_with_a_scale_of_its_own_is_sparse_and_an_intercept_is_not():
    def build():
        slopes = [pm.Normal(f"w{j}", 0.0, pm.HalfNormal(f"s{j}", 1.0)) for j in range(2)]
        return pm.Normal("a", 0.0, pm.HalfNormal("s", 1.0)) + X[:, 0] * slopes[0] + X[:, 1] * slopes[1]

    by_name, _ = roles(build)
    assert {name for name, role in by_name.items() if role.free} == {"w0", "w1"}


def test_slopes_that_share_a_scale_are_not_found_apart():
    def build():
        tau = pm.HalfNormal("tau", 1.0)
        return X @ sparse_weights() + sum(Z[:, j] * pm.Normal(f"v{j}", 0.0, tau) for j in range(2))

    by_name, read = roles(build)
    assert {name for name, role in by_name.items() if role.free} == {"w"}
    assert read.nuisance == ("tau",)


def test_under_the_declared_priors_no_precision_is_free():
    by_name, read = roles(lambda: X @ sparse_weights(), hold=True)
    assert not by_name["w"].free
    assert by_name["w"].listed
    assert read.nuisance == ("alpha_w",)
    assert_allclose(read.problem.fixed_precision(np.log([1.0, 2.0, 3.0, 4.0])), [1.0, 2.0, 3.0, 4.0, 0.04])


def test_groups_of_several_widths_are_scaled_to_one():
    widths, G = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0, 1, 0, 1])
    by_name, read = roles(lambda: X @ pm.Normal("w", 0.0, widths * pm.HalfNormal("s", 1.0, shape=2)[G]))
    assert_allclose(by_name["w"].unit, [1.0, 1.0, 3.0, 2.0])
    assert_allclose(read.problem.design.columns(np.arange(P)), X * [1.0, 1.0, 3.0, 2.0])
    assert read.problem.groups[:P].tolist() == [0, 1, 0, 1]
    values = read.hyper("w", np.array([4.0, 1.0, 4.0 / 9, 0.25]))  # sds of 0.5, 1, 1.5, 2
    assert_allclose(values["s"], [0.5, 0.5])
    assert read.problem.design.n == N


def test_a_name_that_is_none_and_what_could_be_named():
    with pytest.raises(
        ValueError, match=r"sparse='u' does not name .*; those with a Normal prior are 'b', 'w', 'v'\.$"
    ):
        roles(known, "w", "u")
