"""The likelihoods that have a name, one a file. Any other one is a `pm.Model` of your own.

Each says which PyMC distribution it is, how the linear predictor enters it, and its mean and variance. A nuisance
parameter is positive and lives on the log scale: flat there for the evidence methods, a wide log-normal for NUTS.
"""

from __future__ import annotations

from typing import Any

from bayes_sparse.common import registry
from bayes_sparse.inputs.likelihoods._likelihood import Likelihood, compiled
from bayes_sparse.inputs.likelihoods.bernoulli import bernoulli
from bayes_sparse.inputs.likelihoods.beta import beta
from bayes_sparse.inputs.likelihoods.binomial import binomial
from bayes_sparse.inputs.likelihoods.categorical import categorical
from bayes_sparse.inputs.likelihoods.gamma import gamma
from bayes_sparse.inputs.likelihoods.negative_binomial import negative_binomial
from bayes_sparse.inputs.likelihoods.normal import normal
from bayes_sparse.inputs.likelihoods.ordinal import ordinal
from bayes_sparse.inputs.likelihoods.poisson import poisson
from bayes_sparse.inputs.likelihoods.probit import probit
from bayes_sparse.inputs.likelihoods.student_t import student_t

__all__ = [
    "Likelihood",
    "bernoulli",
    "beta",
    "binomial",
    "categorical",
    "check_name",
    "compiled",
    "from_settings",
    "gamma",
    "negative_binomial",
    "normal",
    "ordinal",
    "poisson",
    "probit",
    "resolve",
    "student_t",
]

__getattr__ = registry.by_class_name(__name__)

_OTHER_NAMES = {  # what Bambi, brms, statsmodels and scikit-learn call them
    "gaussian": "normal",
    "t": "student_t",
    "student": "student_t",
    "logit": "bernoulli",
    "logistic": "bernoulli",
    "negativebinomial": "negative_binomial",
    "negbinomial": "negative_binomial",
    "multinomial": "categorical",
    "softmax": "categorical",
    "cumulative": "ordinal",
    "ordered_logistic": "ordinal",
}
_QUANTILE = (
    "There is no likelihood for quantiles, because the asymmetric Laplace density that stands for one calls too much "
    "relevant (at the 90% quantile its sds are 0.58 of what they should be): let the spread depend on columns in a "
    "pm.Model of your own, whose predicted mean and sd give any quantile, or take 'student_t', which does not follow "
    "outliers."
)


def check_name(name: str) -> None:
    """Refuse a name that only other packages have, with what it is called here."""
    if name in ("quantile", "asymmetric_laplace", "asymmetriclaplace", "asym_laplace"):
        raise ValueError(_QUANTILE)
    if name in _OTHER_NAMES:
        raise ValueError(f"The likelihood {name!r} is called {_OTHER_NAMES[name]!r} here.")


def resolve(likelihood: str | Likelihood) -> Likelihood:
    """Turn a name into the likelihood it stands for; a likelihood stays as it is."""
    if isinstance(likelihood, str):
        check_name(likelihood)
        more = ", and any other as a pm.Model of your own"
        named: Likelihood = registry.lookup(__name__, likelihood, "likelihood", more)()
        return named
    if isinstance(likelihood, type) or not isinstance(likelihood, Likelihood):
        raise TypeError(
            f"The likelihood must be a name ({', '.join(registry.options(__name__))}) or an object such as "
            f"bs.likelihoods.normal(), not {likelihood!r}."
        )
    return likelihood


def from_settings(stored: dict[str, Any]) -> Likelihood:
    """A likelihood from its stored name and fields."""
    fields = dict(stored)
    named = registry.lookup(__name__, str(fields.pop("name", None)), "likelihood")
    try:
        made: Likelihood = named(**fields)
    except TypeError as error:
        raise ValueError(f"This tree has settings that its likelihood does not know ({error}); fit again.") from error
    return made
