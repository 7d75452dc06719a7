"""Draws of a graph that Bambi built, given to Bambi: its predictions are the predictors that the graph itself has."""

import json

import bambi as bmb
import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from pytensor.compile.mode import Mode

from bayes_sparse.inputs.bambi_model import built, column_means
from bayes_sparse.trees.centring import recentred, uncentred

pytestmark = pytest.mark.filterwarnings("ignore:For backward compatibility, 'str' dtypes")  # Bambi's own, of text

RNG = np.random.default_rng(12)
N, SHAPE = 40, (2, 3)
FRAME = pd.DataFrame(
    {
        "y": RNG.normal(size=N),
        "count": RNG.poisson(3.0, N),
        "yes": RNG.integers(0, 2, N),
        "level": pd.Categorical(np.resize(["low", "mid", "high"], N), ["low", "mid", "high"], ordered=True),
        "kind": np.resize(["p", "q", "r"], N),
        "x": RNG.normal(5.0, 2.0, N),
        "z": RNG.normal(-3.0, 1.0, N),
        "c": np.resize(list("abcd"), N),
        "g": np.resize(["g1", "g2", "g3", "g4", "g5"], N),
    }
)
MODELS = {
    "several terms": ("y ~ x * z + c", {}),
    "no intercept": ("y ~ 0 + x + c", {}),
    "transforms": ("y ~ scale(x) + poly(z, 2) + bs(z, df=4)", {}),
    "groups": ("y ~ x + (1|g) + (0 + c|g)", {}),
    "centred groups": ("y ~ x + (c|g)", {"noncentered": False}),
    "bernoulli": ("yes ~ x + c", {"family": "bernoulli"}),
    "offset": ("count ~ z + c + offset(np.log(x ** 2))", {"family": "poisson"}),
    "hsgp": ("y ~ z + hsgp(x, m=4, c=2)", {}),
    "two components": (bmb.Formula("y ~ x + c", "sigma ~ z + (1|g)"), {}),
    "ordinal": ("level ~ 0 + x + c", {"family": "cumulative"}),
    "classes": ("kind ~ x + c + (x|g)", {"family": "categorical"}),
}
every_kind = pytest.mark.parametrize("kind", MODELS)


def drawn(model):
    """A tree of draws from the prior of everything in the graph, and the likelihood's parameters at them."""
    graph = built(model)
    variables = [*graph.free_RVs, *graph.deterministics]
    drawn = pm.draw(variables, draws=SHAPE[0] * SHAPE[1], random_seed=4, mode=Mode(linker="py", optimizer=None))
    values = {v.name: own.reshape(*SHAPE, *own.shape[1:]) for v, own in zip(variables, drawn, strict=True)}
    parameters = {name: values.pop(name) for name in model.conditional_parameters}
    dims = {name: ("chain", "draw", *graph.named_vars_to_dims.get(name, ())) for name in values}
    posterior = xr.Dataset({name: (dims[name], own) for name, own in values.items()})
    labels = {dim: list(graph.coords[dim]) for dim in posterior.dims if dim in graph.coords}
    posterior = posterior.assign_coords(chain=range(SHAPE[0]), draw=range(SHAPE[1]), **labels)
    tree = xr.DataTree.from_dict({"/posterior": posterior})
    tree.attrs["bayes_sparse"] = json.dumps({"model": "declared"})
    return tree, parameters


@every_kind
def test_bambi_predicts_what_the_graph_has(kind):
    formula, more = MODELS[kind]
    model = bmb.Model(formula, FRAME, **more)
    tree, truth = drawn(model)
    found = model.predict(uncentred(tree, column_means(model)), inplace=False)["posterior"]
    for name, own in truth.items():
        if kind == "ordinal":  # the graph has the probabilities of a level and all below it
            own = np.diff(own, axis=-1, prepend=0.0, append=1.0)
        np.testing.assert_allclose(found[name].to_numpy(), own, rtol=1e-9, atol=1e-12)


@every_kind
def test_the_graph_has_its_draws_back(kind):
    formula, more = MODELS[kind]
    model = bmb.Model(formula, FRAME, **more)
    tree, _ = drawn(model)
    before, back = tree["posterior"], recentred(uncentred(tree, column_means(model)))["posterior"]
    xr.testing.assert_allclose(back.to_dataset(), before.to_dataset(), rtol=1e-12)
    assert all(back[name].dims == before[name].dims for name in before)
