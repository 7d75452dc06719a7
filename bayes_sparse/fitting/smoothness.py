"""What a degree of freedom costs: the smoothness prior of Schmolck & Everson, and its default."""

from __future__ import annotations

from numbers import Real

import numpy as np

from bayes_sparse.problem.labelled import LabelledProblem

__all__ = ["prices"]


def prices(smoothness: str | float, labelled: LabelledProblem, *, flat: bool) -> list[float]:
    """The price of a degree of freedom in nats: what to try first, and what to fall back on.

    Automatic, for columns that each mean something: M of them that have nothing to do with the target reach, by chance,
    a largest squared z-score of about 2 log M - log log M; a column enters when its own exceeds 1 + 2c, and c is set to
    make this exceed the former by one. For kernels on the rows there is no true set to be found, and the pure method
    predicts best as long as it leaves most of the data to estimate the noise: 0 first, the same price if not. Who
    gives a proper hyper-prior has chosen another guard, and pays nothing. Several classes pay nothing either: there
    are many more weights than the classes need, and the price would leave too few of them.
    """
    if isinstance(smoothness, str) and smoothness == "auto":
        if labelled.classes is not None:
            return [0.0]
        free = labelled.surface.d if labelled.linear is None else int(labelled.linear.free.sum())
        log_m = float(np.log(max(free, 3)))
        price = float(log_m - 0.5 * np.log(log_m))
        return [0.0] if not flat else [0.0, price] if labelled.interchangeable else [price]
    if not isinstance(smoothness, Real) or not (np.isfinite(smoothness) and smoothness >= 0):
        raise ValueError(f"`smoothness` is 'auto' or a number >= 0 (nats a degree of freedom), got {smoothness!r}.")
    return [float(smoothness)]
