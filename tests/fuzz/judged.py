"""What is wrong with a case: a foreign exception, numbers that are none, a warning that leaks, too long a wait."""

import json
import signal
import tempfile
import time
import traceback
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import xarray as xr

import bayes_sparse as bs
from tests.fuzz.cases import case
from tests.support import assert_one_sentence

PACKAGE = str(Path(bs.__file__).parent)
SECONDS, NO_LONGER = 20.0, 60.0  # of the processor; what takes longer than the second is stopped
LEAKS = RuntimeWarning, DeprecationWarning, FutureWarning, PendingDeprecationWarning


class TooLongError(BaseException):
    """Raised in the middle of whatever does not end."""


def outcome(number):
    """How a case ends, what it does that none may (None for nothing), and its seconds of the processor."""
    own = case(number)
    started = time.process_time()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            end, found = _followed(own)
        except TooLongError:
            end, found = "stopped", f"more than {NO_LONGER:.0f} seconds"
    seconds = time.process_time() - started
    leaked = [f"{w.category.__name__} at {w.filename}:{w.lineno}: {w.message}" for w in heard if w.category in LEAKS]
    if found is None and leaked:
        found = leaked[0]
    if found is None and seconds > SECONDS:
        found = f"{seconds:.0f} seconds"
    return {"case": number, "end": end, "wrong": found, "seconds": round(seconds, 2)}


def _followed(own):
    """How the fit ends, and what is wrong with it or with what comes after it."""
    with _no_longer():
        tree, found = _tried("fit", lambda: bs.fit(own.model, own.data, **own.arguments))
        if tree is None:
            return "refused", found
        found = _not_finite(tree)
        if own.data is not None:
            predicted, refused = _tried("predict", lambda: bs.predict(tree, own.rows))
            found = found or refused or _predicted(predicted)
        for name in own.follow_ups:
            found = found or _tried(name, lambda name=name: _FUNCTIONS[name](tree, own))[1]
        return str(tree["evidence"].attrs["status"]), found


@contextmanager
def _no_longer():
    """Stop what takes more than a minute of the processor, wherever it is."""

    def stop(*_):
        raise TooLongError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, NO_LONGER)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _tried(what, call):
    """What a call gives, and what is wrong with the way it refuses."""
    try:
        return call(), None
    except Exception as error:  # whatever it is, it is looked at
        wrong = _refused(error)
        return None, wrong and f"{what}: {wrong}"


def _refused(error):
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(last.filename).name}:{last.lineno}"
    if not isinstance(error, ValueError | TypeError) or not last.filename.startswith(PACKAGE):
        return f"{type(error).__name__} at {where}: {error}"
    try:
        assert_one_sentence(str(error))
    except AssertionError:
        return f"not one sentence at {where}: {error}"
    return None


def _not_finite(tree):
    """Numbers of a tree that are not finite."""
    evidence = tree["evidence"].to_dataset()
    on_path = "lambda" in evidence and "alpha" not in evidence
    kept = evidence["kept"] if "kept" in evidence else xr.zeros_like(evidence["sd"], dtype=bool)
    evidence["sd"] = evidence["sd"].where(evidence["sd"].notnull() | kept, 0.0)  # what was left out has none
    always = ("coordinate_mean", "covariance_factor", "mean", "sd", "theta")
    for name in (*always, *(() if on_path else ("log_evidence",))):
        if name in evidence and not np.isfinite(evidence[name].to_numpy()).all():
            return f"{name} is not finite ({evidence.attrs['status']})"
    for group in set(tree.children) & {"posterior", "log_likelihood"}:
        for name, values in tree[group].data_vars.items():
            if values.dtype.kind == "f" and not np.isfinite(values.to_numpy()).all():
                return f"draws of {name} in {group} are not finite ({evidence.attrs['status']})"
    return None


def _predicted(predicted):
    for name in ("mean", "sd", "probability"):
        if predicted is not None and name in predicted and not np.isfinite(predicted[name].to_numpy()).all():
            return f"the {name} predicted is not finite"
    return None


def _relevance(tree, _):
    table = bs.relevance(tree)
    table = table[table["kept"]] if "kept" in table else table  # the precision of others is infinite
    wrong = [name for name, values in table.select_dtypes("number").items() if np.isinf(values).any()]
    wrong += ["mean"] if table["mean"].isna().any() else []
    assert not wrong, f"{wrong[0]} of a term that was kept is not finite"


def _stored(tree, own):
    """A tree that comes from a file predicts as it did."""
    with tempfile.TemporaryDirectory() as folder:
        tree.to_netcdf(Path(folder, "fit.nc"))
        with xr.open_datatree(Path(folder, "fit.nc")) as opened:
            again = opened.load()
    assert json.loads(again.attrs["bayes_sparse"]) == json.loads(tree.attrs["bayes_sparse"])
    if own.data is not None:
        xr.testing.assert_equal(bs.predict(again, own.rows), bs.predict(tree, own.rows))


def _report(tree, own):
    with tempfile.TemporaryDirectory() as folder:
        bs.report({"<b>fit</b>": tree}, Path(folder, "page.html"), model=_model(own), progressbar=False)
        assert "<b>" not in Path(folder, "page.html").read_text()


def _model(own):
    return own.model if own.data is None else None


_FUNCTIONS = {
    "relevance": _relevance,
    "diagnose": lambda tree, own: bs.diagnose(tree, model=_model(own)),
    "correct": lambda tree, _: bs.correct(tree, random_seed=0),
    "loo": lambda tree, _: bs.loo(tree),
    "summary": lambda tree, _: repr(bs.summary(tree)) + bs.summary(tree)._repr_html_(),
    "stored": _stored,
    "compare": lambda tree, own: repr(bs.compare({"a": tree, "b": tree}, model=_model(own))),
    "unpruned": lambda tree, _: bs.unpruned(tree),
    "log_evidence": lambda tree, _: bs.log_evidence(tree),
    "report": _report,
}
