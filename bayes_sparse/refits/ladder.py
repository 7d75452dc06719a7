"""The ladder from a point to the exact posterior: each rung leaves out one approximation of the one below.

1. ``plug_in``: the mode, as if it were known.
2. ``approximation``: the Gaussian (or one-dimensional) approximation at alpha*.
3. ``conditional``: exact p(w | alpha*, data), by NUTS.
4. ``full``: p(w, alpha | data), by NUTS.

All on the same data, basis and hyper-prior. Two rungs side by side show what one approximation costs.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pymc as pm
import xarray as xr

from bayes_sparse.common.files import alone, as_netcdf, from_netcdf, write_whole
from bayes_sparse.common.types import Hyper
from bayes_sparse.fitting.choices import checked_hyper, choose_method, choose_model
from bayes_sparse.fitting.families import rules_of
from bayes_sparse.fitting.fit import fit
from bayes_sparse.inference.method import Method
from bayes_sparse.inputs import basis as bases
from bayes_sparse.inputs.chunks import is_chunked
from bayes_sparse.inputs.fingerprint import fingerprint
from bayes_sparse.inputs.model import Model, sampled_slab
from bayes_sparse.inputs.pm_model.declared import set_data
from bayes_sparse.methods.nuts import NUTS
from bayes_sparse.models import Declared
from bayes_sparse.trees.read import RUNGS
from bayes_sparse.trees.write import mode_alone

__all__ = ["ladder"]

_log = logging.getLogger("bayes_sparse")


def ladder(
    model: str | Any | pm.Model,
    data: Any = None,
    *,
    method: str | Any = "evidence",
    hyper: tuple[float, float] | None = None,
    basis: Any = "linear",
    rungs: Sequence[str] = RUNGS,
    earlier: xr.DataTree | None = None,
    store: str | Path | None = None,
    sampler: str = "auto",
    draws: int = 1000,
    chains: int = 4,
    random_seed: int | None = None,
    progressbar: bool = True,
    **arguments: Any,
) -> xr.DataTree:
    """Fit a model by plug-in, by its approximation, exactly at alpha*, and exactly.

    Parameters
    ----------
    model, data, method, hyper, basis, draws, chains, random_seed, progressbar
        As for `bayes_sparse.fit`. ``hyper=None`` takes the model's proper hyper-prior for all rungs, where the method
        can use one; a one-step method finds its own alpha* and only the last rung has a hyper-prior.
    rungs : sequence of str
        Which of ``"plug_in"``, ``"approximation"``, ``"conditional"``, ``"full"``.
    earlier : xarray.DataTree, optional
        A ladder of the same model and data: rungs that it has are not fitted again.
    store : path, optional
        A NetCDF file that every rung is saved to when it is there, and that a later call goes on from. Processes at the
        same ladder may share it: each takes over what another has finished.
    sampler : "auto", "nutpie" or "pymc"
        Whose NUTS.
    **arguments
        More for `bayes_sparse.fit`: target, likelihood, keep, weights, offset ...

    Returns
    -------
    xarray.DataTree
        A child for each rung, itself a tree as from `fit`: ``ladder["full"]["posterior"]``.
    """
    _check(rungs)
    if is_chunked(data):
        raise ValueError(
            "A ladder samples, which needs the rows in memory: fit these by bs.fit, then climb with the columns that "
            "are kept, of a sample of the rows."
        )
    chosen = choose_model(model)
    own = chosen if isinstance(chosen, Declared) else None
    hyper = checked_hyper(chosen.hyper if hyper is None else hyper)
    if hyper is None and own is None:
        hyper = chosen.proper_hyper
    found = _usable(chosen, method, hyper, arguments)
    if own is not None:
        set_data(own.model, data)
    what = {
        "model": _described(chosen) if own is None else "a pm.Model",
        "method": repr(method),
        "hyper": list(hyper or ()),
        "basis": json.loads(json.dumps(bases.settings(bases.resolve(basis)))),
        "draws": draws,
        "chains": chains,
        "random_seed": random_seed,
        "more": {name: fingerprint(value) for name, value in sorted(arguments.items())},
        "data": fingerprint(data if own is None else own.model),
    }
    done = _earlier(earlier, store, what)
    same: dict[str, Any] = {"random_seed": random_seed, "progressbar": progressbar, **arguments}
    if chosen.slab == "auto" and found is not None:  # the last rung's for all of them, as the hyper-prior is
        same = {"slab": sampled_slab(chosen, kernel=bases.resolve(basis).kernel), **same}
    drawn: dict[str, Any] = {"draws": draws, "chains": chains}
    for number, rung in enumerate(RUNGS, 1):
        if rung in rungs and rung not in done:  # another process may have been at the same ladder meanwhile
            done = _earlier(None, store, what) | done
        if rung not in rungs or rung in done:
            continue
        _log.info("Rung %d of 4: %s.", number, rung.replace("_", "-"))
        if rung in ("plug_in", "approximation"):
            tree = fit(model, data, method=method, hyper=found, basis=basis, **drawn, **same)
            done[rung] = tree if rung == "approximation" else mode_alone(tree)
        elif rung == "conditional":
            held = NUTS(condition="alpha", start=method, sampler=sampler)
            done[rung] = fit(model, data, method=held, hyper=found, basis=basis, **drawn, **same)
        else:
            whole = NUTS(start=method, sampler=sampler)
            declared = hyper if own is None else None
            done[rung] = fit(model, data, method=whole, hyper=declared, basis=_known(basis, done), **drawn, **same)
        if store is not None:
            with alone(Path(store).parent):
                done = _earlier(None, store, what) | done
                _save(done, what, Path(store))
    return _tree(done, what)


def _check(rungs: Sequence[str]) -> None:
    wrong = [rung for rung in rungs if rung not in RUNGS] if not isinstance(rungs, str) else [rungs]
    if wrong:
        raise ValueError(f"`rungs` are some of {', '.join(map(repr, RUNGS))}, in a list; got {wrong[0]!r}.")


def _described(model: Model) -> str:
    """The model with its settings; the hyper-prior stands beside it."""
    settings = [f"{f.name}={vars(model)[f.name]!r}" for f in fields(model) if f.name != "hyper"]
    return f"{type(model).__name__}({', '.join(settings)})"


def _usable(model: Model, method: str | Method, hyper: Hyper | None, arguments: dict[str, Any]) -> Hyper | None:
    """The hyper-prior for a method that can use one, None for one that finds its own alpha*."""
    chosen = choose_method(method, model, hyper, arguments.get("likelihood", "auto"))
    return hyper if rules_of(chosen).uses_hyper(chosen) else None


def _known(basis: Any, done: dict[str, xr.DataTree]) -> Any:
    """A kernel whose width was found by evidence, with that width."""
    resolved = bases.resolve(basis)
    for tree in done.values():
        width = tree["evidence"].attrs.get("width") if "evidence" in tree.children else None
        if width is not None and isinstance(resolved, bases.rbf) and resolved.width == "evidence":
            return replace(resolved, width=float(width))
    return basis


def _earlier(earlier: xr.DataTree | None, store: str | Path | None, what: dict[str, Any]) -> dict[str, xr.DataTree]:
    """The rungs that are there already, of the same ladder."""
    if earlier is None and store is not None and Path(store).exists():
        try:
            earlier = from_netcdf(store)
        except ValueError as error:
            raise ValueError(
                f"`store` names a file that cannot be read as a ladder, {str(store)!r}: remove it, or name another."
            ) from error
    if earlier is None:
        return {}
    try:
        before = dict(json.loads(earlier.attrs["ladder"]))
    except (KeyError, TypeError, ValueError):  # none, or changed on the way
        no_ladder = "`earlier` or `store` holds no ladder: give a tree from bs.ladder, or another file."
        raise ValueError(no_ladder) from None
    other = [name for name in what if before.get(name) != json.loads(json.dumps(what[name]))]
    if other:
        raise ValueError(
            f"The earlier ladder is another one: it differs in {', '.join(other)}. Give the same arguments, or another "
            "file."
        )
    return {str(name): child for name, child in earlier.children.items()}


def _tree(done: dict[str, xr.DataTree], what: dict[str, Any]) -> xr.DataTree:
    ladder = xr.DataTree(children={rung: done[rung] for rung in RUNGS if rung in done})
    ladder.attrs["ladder"] = json.dumps(what)
    return ladder


def _save(done: dict[str, xr.DataTree], what: dict[str, Any], store: Path) -> None:
    """Save what is there; the file is whole at all times."""
    write_whole(store, as_netcdf(_tree(done, what)))
