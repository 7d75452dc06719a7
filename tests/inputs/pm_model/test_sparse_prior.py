"""Which weights share a scale, and which hyper-variables give them the prior sds that were found."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bayes_sparse.inputs.pm_model.sparse_prior import scales_of

pytestmark = pytest.mark.quick

P = 6
G = np.array([2, 0, 1, 0, 2, 2])
WIDTHS = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
FREQUENCIES = np.linspace(0.5, 3.0, P)


def half(name, shape=P):
    return pm.HalfNormal(name, 1.0, shape=shape)


def read(build, shape=(P,)):
    with pm.Model() as model:
        sd = build()
    return scales_of(model, sd, shape)


def partition(labels):
    """Labels by the first weight that has each: the same for the same partition."""
    flat = np.ravel(labels)
    return [int(np.flatnonzero(flat == label)[0]) for label in flat]


EACH = {
    "an sd each": lambda: half("s"),
    "a precision each": lambda: pm.Gamma("alpha", 1.0, 1.0, shape=P) ** -0.5,
    "a log-scale each": lambda: pt.exp(pm.Normal("log_s", 0.0, 1.0, shape=P)),
    "local and global": lambda: half("lam") * half("tau", ()),
    "local within a slab": lambda: half("lam") / pt.sqrt(1 + half("lam2", ()) * half("tau", ()) ** 2),
    "shares of a variance": lambda: pt.sqrt(half("r2", ()) * pm.Dirichlet("share", np.ones(P))),
    "local scales within scales of groups": lambda: half("lam") * half("group", 3)[G],
}


@pytest.mark.parametrize("name", EACH)
def test_a_scale_each(name):
    assert partition(read(EACH[name]).labels) == list(range(P))


@pytest.mark.parametrize(
    "build",
    [
        lambda: half("s", 3)[G],
        lambda: WIDTHS * half("s", 3)[G],
        lambda: half("tau", ()) * half("s", 3)[G],
        lambda: pt.dot(np.eye(3)[G], half("s", 3)),
        lambda: pt.repeat(half("s", 3), 2)[np.array([4, 0, 2, 1, 5, 4])],
    ],
    ids=["by an index", "of several widths", "under one for all", "by a product", "by repetition"],
)
def test_a_scale_a_group(build):
    assert partition(read(build).labels) == partition(G)


def test_widths_of_a_group_are_relative_to_its_first():
    found = read(lambda: WIDTHS * half("s", 3)[G])
    first = {2: 1.0, 0: 2.0, 1: 3.0}
    assert_allclose(found.relative, WIDTHS / np.array([first[g] for g in G]))


def test_rows_and_columns_of_a_table_make_a_scale_each():
    found = read(lambda: half("row", (3, 1)) * half("column", 2), (3, 2))
    assert partition(found.labels) == list(range(6))
    assert partition(read(lambda: half("row", (3, 1)) * pt.ones((3, 2)), (3, 2)).labels) == [0, 0, 2, 2, 4, 4]


@pytest.mark.parametrize(
    "build",
    [
        lambda: pt.constant(2.0),
        lambda: half("tau", ()),
        lambda: half("tau", 1),
        lambda: WIDTHS * half("tau", ()),
        lambda: half("eta", ()) * pt.exp(-0.25 * (half("ell", ()) * FREQUENCIES) ** 2),
        lambda: half("eta", ()) * pt.exp(-0.25 * (half("ell", 2)[:, None] * FREQUENCIES**2).sum(axis=0)),
        lambda: half("s").sum() * pt.ones(P),
    ],
    ids=["known", "one", "a vector of one", "of several widths", "spectral", "two length-scales", "their sum"],
)
def test_a_scale_for_all(build):
    assert read(build).labels is None


@pytest.mark.parametrize(
    ("name", "variable", "truth"),
    [
        ("an sd each", "s", lambda sd: sd),
        ("a precision each", "alpha", lambda sd: sd**-2.0),
        ("a log-scale each", "log_s", np.log),
        ("local and global", "lam", lambda sd: sd),  # the global one begins at 1
    ],
)
def test_hyper_variables_that_give_these_sds(name, variable, truth):
    found, sd = read(EACH[name]), np.array([0.01, 0.5, 1.0, 3.0, 40.0, 700.0])
    values = {rv.name: value for rv, value in found.inverted(sd).items()}
    assert_allclose(values[variable], truth(sd), rtol=1e-12, atol=1e-14)
    assert values.get("tau", 1.0) == 1.0


def test_hyper_variables_of_groups():
    found = read(lambda: WIDTHS * half("s", 3)[G])
    [(_, values)] = found.inverted(WIDTHS * np.array([0.3, 4.0, 50.0])[G]).items()
    assert_allclose(values, [0.3, 4.0, 50.0], rtol=1e-12)


def test_those_of_pruned_weights_stay_where_they_begin():
    found = read(EACH["a precision each"])
    [(_, values)] = found.inverted(np.array([2.0, 0.0, np.inf, 2.0, 2.0, 0.0])).items()
    assert_allclose(values, [0.25, 1.0, 1.0, 0.25, 0.25, 1.0], rtol=1e-12)


def test_an_sd_that_cannot_be_had_is_met_as_closely_as_can_be():
    found = read(lambda: 1 / pt.sqrt(1 / half("lam") ** 2 + 1 / 2.0**2))  # below two
    [(_, values)] = found.inverted(np.full(P, 5.0)).items()
    assert_allclose(1 / np.sqrt(values**-2.0 + 0.25), 2.0, rtol=1e-9)


def test_a_shared_scale_has_nothing_to_invert():
    found = read(lambda: half("tau", ()))
    [(_, value)] = found.inverted(np.full(P, 9.0)).items()
    assert_array_equal(value, 1.0)
