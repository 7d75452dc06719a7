"""Models as users write them: a sparse linear predictor under every likelihood that is read."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

N, P = 30, 4
RNG = np.random.default_rng(12)
X = RNG.normal(size=(N, P))
Z = RNG.normal(size=(N, 2))
REAL = RNG.normal(size=N)
COUNT = RNG.poisson(2.0, size=N)
BINARY = RNG.integers(0, 2, size=N)
POSITIVE = RNG.gamma(2.0, size=N)
GROUP = np.arange(N) % 3
EXPOSURE = RNG.uniform(0.5, 3.0, size=N)


def sparse_weights(name="w", p=P):
    alpha = pm.Gamma(f"alpha_{name}", 1.0, 1.0, shape=p)
    return pm.Normal(name, 0.0, tau=alpha, shape=p)


def bernoulli_logit(eta):
    pm.Bernoulli("y", logit_p=eta, observed=BINARY)


def bernoulli_sigmoid(eta):
    pm.Bernoulli("y", p=pm.math.sigmoid(eta), observed=BINARY)


def bernoulli_probit(eta):
    pm.Bernoulli("y", p=pm.math.invprobit(eta), observed=BINARY)


def poisson(eta):
    pm.Poisson("y", pm.math.exp(eta), observed=COUNT)


def poisson_exposure(eta):
    pm.Poisson("y", pm.math.exp(eta) * EXPOSURE, observed=COUNT)


def poisson_offset(eta):
    pm.Poisson("y", pm.math.exp(eta + np.log(EXPOSURE)), observed=COUNT)


def negative_binomial(eta):
    pm.NegativeBinomial("y", mu=pm.math.exp(eta), alpha=pm.Exponential("shape", 1.0), observed=COUNT)


def student_t(eta):
    nu = pm.Gamma("nu", 2.0, 0.1)
    pm.StudentT("y", nu=nu, mu=eta, sigma=pm.HalfNormal("sigma", 1.0), observed=REAL)


def student_t_known(eta):
    pm.StudentT("y", nu=4, mu=eta, sigma=pm.HalfCauchy("sigma", 1.0), observed=REAL)


def normal(eta):
    pm.Normal("y", eta, pm.HalfNormal("sigma", 2.0), observed=REAL)


def normal_known(eta):
    pm.Normal("y", eta, 0.7, observed=REAL)


def normal_rows(eta):
    pm.Normal("y", eta, EXPOSURE, observed=REAL)


def normal_indirect(eta):
    pm.Normal("y", eta, pm.math.exp(pm.Normal("log_sigma", 0.0, 1.0)), observed=REAL)


def normal_by_group(eta):
    pm.Normal("y", eta, pm.HalfNormal("sigma", 1.0, shape=3)[GROUP], observed=REAL)


def normal_tau(eta):
    pm.Normal("y", eta, tau=pm.Gamma("tau", 2.0, 1.0), observed=REAL)


def gamma(eta):
    shape = pm.HalfNormal("shape", 2.0)
    pm.Gamma("y", alpha=shape, beta=shape / pm.math.exp(eta), observed=POSITIVE)


def exponential(eta):
    pm.Exponential("y", scale=pm.math.exp(eta), observed=POSITIVE)


def binomial(eta):
    pm.Binomial("y", n=COUNT + 3, logit_p=eta, observed=COUNT)


def laplace_log_density(value, mu, scale):
    return -(pt.abs(value - mu) ** 1.5) / scale - pt.log(scale)


def custom(eta):
    pm.CustomDist("y", eta, pm.HalfNormal("scale", 1.0), logp=laplace_log_density, observed=REAL)


def custom_with_data(eta):
    def log_density(value, mu):
        return -0.5 * pt.log1p((value - mu) ** 2 * EXPOSURE)

    pm.CustomDist("y", eta, logp=log_density, observed=REAL)


def zero_inflated(eta):
    pm.ZeroInflatedPoisson("y", psi=pm.Beta("psi", 2.0, 2.0), mu=pm.math.exp(eta), observed=COUNT)


def censored(eta):
    latent = pm.Normal.dist(eta, pm.HalfNormal("sigma", 1.0))
    pm.Censored("y", latent, lower=None, upper=1.0, observed=np.minimum(REAL, 1.0))


FAMILIES = {
    bernoulli_logit: "bernoulli",
    bernoulli_sigmoid: "bernoulli",
    bernoulli_probit: "bernoulli",
    poisson: "poisson",
    poisson_exposure: "poisson",
    poisson_offset: "poisson",
    negative_binomial: "negative_binomial",
    student_t: "student_t",
    student_t_known: "student_t",
    normal: "normal",
    normal_known: "normal",
    normal_rows: "normal",
    normal_indirect: "normal",
    normal_by_group: "normal",
    normal_tau: "normal",
    gamma: "gamma",
    exponential: "exponential",
    binomial: "binomial",
    custom: "custom",
    custom_with_data: "custom",
    zero_inflated: "mixture",
    censored: "censored",
}


def with_likelihood(family, X=X):
    with pm.Model() as model:
        family(pm.Normal("b", 0.5, 10.0) + X @ sparse_weights(p=X.shape[1]))
    return model


def poisson_model(build):
    with pm.Model(coords={"feature": list("abcd"), "obs": np.arange(N), "group": ["g0", "g1", "g2"]}) as model:
        pm.Poisson("y", pm.math.exp(build()), observed=COUNT)
    return model
