"""Read any `pm.Model` with a linear predictor into a `Problem`, and any other into a surface.

The predictor is looked for on the *generative* graph of the observed variable: every node between the observed
variable's parameters and the free variables is labelled constant, nuisance, affine (in the Normal variables, with
known coefficients) or other. The predictor eta is the last affine node through which all influence of the sparse
weights passes. Above it lies the likelihood, ``l(eta_n)``, compiled once for every structure; below it lies the
design, read off the graph without compiling anything where the predictor is written in a usual way.

Where there is no such predictor (`read_general`), the log-likelihood is a function of all weights at once, in one flat
vector, and its gradient and Hessian come from PyTensor.
"""

from bayes_sparse.inputs.pm_model.general_model import General, read_general
from bayes_sparse.inputs.pm_model.linear_model import ReadModel, read_model

__all__ = ["General", "ReadModel", "read_general", "read_model"]
