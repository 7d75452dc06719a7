"""The numbers of a model that was read, against PyMC's own log-density and finite differences."""

import numpy as np
import pytensor
from pytensor.compile.mode import Mode

from bayes_sparse.inputs.pm_model import read_model
from bayes_sparse.inputs.pm_model.roles import Asked

PLAIN = Mode(linker="py", optimizer=None)


def random_state(declared, seed=3):
    rng = np.random.default_rng(seed)
    problem = declared.problem
    w = 0.4 * rng.normal(size=problem.design.width)
    theta = problem.theta + 0.3 * rng.normal(size=len(problem.theta))
    eta = problem.offset + problem.design.times(w, np.arange(problem.design.width))
    return w, theta, eta


def pymc_log_density(model, variables, declared, w, theta):
    """PyMC's own value at the same point, by the names of the user's variables."""
    point = {block.name: block.values(w) for block in declared.sparse + declared.fixed}
    start = 0
    for name in declared.nuisance:
        value = model.rvs_to_values[model[name]]
        shape = model.initial_point()[value.name].shape
        size = int(np.prod(shape))
        point[value.name] = theta[start : start + size].reshape(shape)
        start += size
    assert start == len(theta)
    inputs = [value for value in model.value_vars if value.name in point]
    graph = model.logp(vars=variables)
    return float(
        pytensor.function(inputs, graph, mode=PLAIN, on_unused_input="ignore")(*[point[v.name] for v in inputs])
    )


def check(model, *sparse):
    """Likelihood, its derivatives and the nuisance prior of a model, against PyMC."""
    declared = read_model(model, Asked(sparse))
    problem = declared.problem
    w, theta, eta = random_state(declared)
    values = problem.pointwise(eta, theta)
    assert all(v.shape == (len(problem.y),) for v in values)
    np.testing.assert_allclose(
        values[0].sum(), pymc_log_density(model, model.observed_RVs, declared, w, theta), rtol=1e-9
    )
    step = 1e-5
    above, below = problem.pointwise(eta + step, theta), problem.pointwise(eta - step, theta)
    for order in range(3):
        slope = (above[order] - below[order]) / (2 * step)
        np.testing.assert_allclose(values[order + 1], slope, rtol=2e-6, atol=2e-6)
    if len(theta):
        nuisance = [model[name] for name in declared.nuisance]
        np.testing.assert_allclose(
            problem.log_prior(theta), pymc_log_density(model, nuisance, declared, w, theta), rtol=1e-9
        )
        np.testing.assert_array_equal(problem.theta_bounds, problem.theta[:, None] + [-30.0, 30.0])
    else:
        assert problem.log_prior is None
    assert len(problem.fixed_precision(theta)) == (~problem.free).sum()
    assert len(problem.free) == problem.design.width
    return declared
