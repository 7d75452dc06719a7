"""The relevance eigenvector machine beside its floor: a syrk and a Cholesky an IRLS step, one eigendecomposition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import blas, eigh, lapack, qr

import bayes_sparse as bs
from bayes_sparse.inference.newton import Profile
from bayes_sparse.inference.one_step.finish import EigenOutcome
from bayes_sparse.inference.priors import Gaussian, Laplace
from bayes_sparse.inputs.prepare import prepare
from bayes_sparse.methods.revm import REVM
from benchmarks.clock import race, seconds
from benchmarks.peers import ours
from benchmarks.report import Row

GREVM, LREVM = (bs.models.ARDGaussian(), Gaussian()), (bs.models.LaplaceEigen(), Laplace())
SIZES = (1000, 2000)
WIDE = ((200, 2000), (500, 5000))
OVER_FLOOR, OVER_GREVM, SEARCH = 1.5, 1.3, 0.020
LINEAR = 2.5  # times as long with twice the columns; work on the side of the columns would take four times, or eight


def run(say: Callable[[str], None], seeds: int = 3) -> list[Row]:
    """Two rows a problem, GREVM and LREVM; ``seeds`` is the number of repetitions."""
    rows = []
    for case, X, y, likelihood, basis in _problems():
        say(case)
        rows += _square(case, X, y, likelihood, basis, seeds)
    for n, M in WIDE:
        for case, likelihood, generate in (
            ("two classes", "bernoulli", bs.datasets.sparse_logistic),
            ("regression", "normal", bs.datasets.sparse_linear),
        ):
            say(f"{case}, {n} x {M}")
            data = [generate(n, columns, 10, random_seed=0) for columns in (M, 2 * M)]
            rows += _wide(f"{case}, {n} x {M}", data, likelihood, seeds)
    say("hyper-parameters")
    return [*rows, _search(2000)]


def _problems() -> list[tuple[str, Any, Any, str, Any]]:
    out = []
    for n in SIZES:
        two = bs.datasets.two_gaussians(n, random_seed=0)
        out.append((f"two classes, n = M = {n}", two.X, two.y, "bernoulli", bs.basis.rbf(0.5)))
    for n in SIZES:
        sinc = bs.datasets.sinc(n, 0.2, random_seed=0)
        out.append((f"sinc, n = M = {n}", sinc.X, sinc.y, "normal", bs.basis.rbf(1.0)))
    # Kernels in the plane are nearly dependent; in eight dimensions every direction has a curvature of its own.
    many = bs.datasets.sparse_logistic(SIZES[0], 8, 4, random_seed=0)
    out.append((f"two classes, 8 features, n = M = {SIZES[0]}", many.X, many.y, "bernoulli", bs.basis.rbf(2.0)))
    return out


def _square(case: str, X: Any, y: Any, likelihood: str, basis: Any, repeats: int) -> list[Row]:
    prepared = prepare((X, y), None, likelihood, basis, None, None, None)
    parts = _floor(_method(prepared, GREVM)(), prepared)
    contestants = {
        "GREVM": _method(prepared, GREVM),
        "LREVM": _method(prepared, LREVM),
        "fit": ours(X, y, method="revm", likelihood=likelihood, basis=basis, expansion="ridge"),
        **parts,
    }
    times, results = race(contestants, repeats)
    return _rows(case, times, results)


def _wide(case: str, data: list[bs.datasets.Generated], likelihood: str, repeats: int) -> list[Row]:
    """More columns than rows: the work must be that of the n rows, and one QR to get there."""
    first, second = (prepare((d.X, d.y), None, likelihood, bs.basis.linear(), None, None, None) for d in data)
    columns = np.asfortranarray(first.Phi.T)
    contestants = {
        "GREVM": _method(first, GREVM),
        "LREVM": _method(first, LREVM),
        "fit": ours(data[0].X, data[0].y, method="revm", likelihood=likelihood, expansion="ridge"),
        "twice": _method(second, GREVM),
        **_floor(_method(first, GREVM)(), first),
        "qr": lambda: qr(columns, mode="economic", check_finite=False),
    }
    times, results = race(contestants, repeats)
    return _rows(case, times, results)


def _method(prepared: Any, kind: tuple[Any, Any]) -> Callable[[], EigenOutcome]:
    """The method itself on data that are ready, from a new surface each time: nothing is kept from the last."""
    model, prior = kind
    return lambda: REVM()(model.problem(prepared).surface, prior, "ridge", 0.0, lambda *_: None)


def _floor(outcome: EigenOutcome, prepared: Any) -> dict[str, Callable[[], Any]]:
    """One IRLS step and one eigendecomposition on the matrices that the method itself has at its expansion point."""
    quadratic = outcome.quadratic
    d = len(quadratic.gradient)
    H = np.asfortranarray(quadratic.H)
    half = np.asfortranarray(np.random.default_rng(0).standard_normal((len(prepared.y), len(H))))
    S = Profile.of(H, d, np.ones(len(H) - d)).S
    raised = H + np.diag(np.full(len(H), 1e-2 * np.abs(H).max()))

    def step() -> None:
        blas.dsyrk(1.0, half, trans=1)
        lapack.dpotrf(raised, lower=1)

    return {"step": step, "eigh": lambda: eigh(S, driver="evd", check_finite=False)}


def _rows(case: str, times: dict[str, float], results: dict[str, Any]) -> list[Row]:
    steps = results["GREVM"].quadratic.steps
    floor = steps * times["step"] + times["eigh"] + times.get("qr", 0.0)
    name = f"({steps} x (syrk + Cholesky) + eigh{' + QR' if 'qr' in times else ''})"
    more: dict[str, float | str] = {"whole fit, kernel and tree, s": times["fit"]}
    target, met = f"at most {OVER_FLOOR} x floor", times["GREVM"] <= OVER_FLOOR * floor
    if "twice" in times:
        more["time with twice the columns"] = f"x {times['twice'] / times['GREVM']:.2f}"
        target, met = "linear in the columns", times["twice"] <= LINEAR * times["GREVM"]
    over = times["LREVM"] / times["GREVM"]
    return [
        Row(
            "revm",
            f"{case}, GREVM",
            target,
            met,
            times["GREVM"],
            floor=name,
            floor_seconds=floor,
            quality=_reached(results["GREVM"]) | more,
        ),
        Row(
            "revm",
            f"{case}, LREVM",
            f"at most {OVER_GREVM} x GREVM",
            over <= OVER_GREVM,
            times["LREVM"],
            "GREVM",
            times["GREVM"],
            quality=_reached(results["LREVM"]),
        ),
    ]


def _reached(outcome: EigenOutcome) -> dict[str, float | str]:
    return {
        "log evidence": outcome.log_evidence,
        "kept": f"{int(outcome.relevant.sum())} of {len(outcome.alpha)} directions",
    }


def _search(M: int) -> Row:
    """All hyper-parameters of a Laplace prior at once, over all curvatures and centres there are."""
    rng = np.random.default_rng(0)
    h, z2 = 10 ** rng.uniform(-12, 12, M), 10 ** rng.uniform(-2, 6, M)
    u = np.sqrt(z2 / h)
    taken = seconds(lambda: Laplace().best(h, u))
    quality = {"finite": f"{int(np.isfinite(Laplace().best(h, u)).sum())} of {M}"}
    return Row("revm", f"all hyper-parameters, M = {M}", "20 ms", taken < SEARCH, taken, quality=quality)
