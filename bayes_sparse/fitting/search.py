"""An evidence method run on what was handed in, before any tree of it is made."""

from __future__ import annotations

from typing import Any

from bayes_sparse.common.threads import few_threads
from bayes_sparse.fitting.asked import asked
from bayes_sparse.fitting.choices import hyper_in_force, slab_in_force
from bayes_sparse.fitting.families import Found, Task, family_of, find
from bayes_sparse.fitting.held import settled
from bayes_sparse.fitting.in_chunks import check_method_in_chunks
from bayes_sparse.fitting.readings import NamedReading, Reading, named_reading, reading_of, with_width_found
from bayes_sparse.inference.method import Method
from bayes_sparse.inputs import basis as bases
from bayes_sparse.inputs import kernel_width
from bayes_sparse.inputs.model import Handed, Model
from bayes_sparse.problem.labelled import LabelledProblem

__all__ = ["search"]


def search(model: Model, method: Method, handed: Handed, progressbar: bool, *, alone: bool = True) -> Found[Any]:
    """Run an evidence method on the data, with a kernel's width found first if that is left open.

    A fit that is not ``alone`` but one of many, which nobody sees, is not told of columns that are the same.
    """
    family, basis = family_of(method), bases.resolve(handed.basis)
    hyper = hyper_in_force(model, method, kernel=basis.kernel)
    tried: kernel_width.WidthSearch | None = None
    reading: Reading

    def task(labelled: LabelledProblem) -> Task:
        return Task(labelled, model, method, hyper, slab_in_force(model, method, hyper, labelled))

    if kernel_width.wanted(basis):
        open_ = named_reading(model, handed, kernel_width.provisional(basis))

        def rating(at: NamedReading) -> kernel_width.Rating:
            rated = task(at.suited_to(method).labelled)
            with few_threads(rated.numbers):
                return family.rating(rated)

        reading, tried = with_width_found(open_, rating, progressbar)
    else:
        reading = reading_of(model, handed, hyper, any_surface=family.any_surface)
    if isinstance(reading, NamedReading):
        reading = reading.suited_to(method)
        if alone and not family.folds_duplicates:
            reading.say_duplicates()
    check_method_in_chunks(reading.labelled, method)
    found = find(task(settled(reading.labelled, task, progressbar)), progressbar, tried)
    found.attributes.update(asked(model, method, handed))
    return found
