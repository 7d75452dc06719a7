"""Which basis functions matter, and how much; in which order; and the pruned ones put back as zeros."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayes_sparse.inference.claims import FALSE_FINDS, chance_of
from bayes_sparse.trees.alternatives import alternative_sets, rivals
from bayes_sparse.trees.damage import reads_a_fit
from bayes_sparse.trees.read import StoredFit, stored
from bayes_sparse.trees.spread import is_thin, sds

__all__ = ["relevance", "taken_up", "unpruned"]


def taken_up(evidence: xr.Dataset, owner: pd.Series) -> pd.Series:
    """Gain of each group of kept terms when it is taken up, in nats, best first.

    Parameters
    ----------
    evidence : xarray.Dataset
        The group of that name of a fit with a posterior over the terms kept.
    owner : pandas.Series
        The group of each basis function, by its name. Coordinates that have none (a bias) are in from the start.
    """
    if is_thin(evidence):  # nothing was selected
        raise ValueError(
            "order='forward' is for the terms that a search has kept, and this fit keeps all: leave it out."
        )
    labels = evidence["coordinate"].to_numpy()
    factor = evidence["covariance_factor"].to_numpy()
    sd = sds(factor)
    scaled = factor / sd[:, None]  # units do not matter to the order, but to rounding errors
    P = np.linalg.inv(scaled @ scaled.T)
    b = P @ (evidence["coordinate_mean"].to_numpy() / sd)
    groups: dict[object, list[int]] = {}
    start: list[int] = []
    inside = evidence["column"].to_numpy() < evidence.sizes["basis"]
    for position, (name, basis) in enumerate(zip(labels.tolist(), inside.tolist(), strict=True)):
        (groups.setdefault(owner[name], []) if basis else start).append(position)
    gains: dict[object, float] = {}
    at = start
    while True:
        b, P = _set_free(b, P, np.array(at, dtype=np.intp))
        if not groups:
            return pd.Series(gains, dtype=float)
        gain = {name: _worth(b, P, np.array(own)) for name, own in groups.items()}
        best = max(gain, key=lambda name: gain[name])
        gains[best], at = gain[best], groups.pop(best)


def _set_free(
    b: NDArray[np.float64], P: NDArray[np.float64], at: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The posterior of the others once some coordinates follow them: a Schur complement."""
    if not len(at):
        return b, P
    K = np.linalg.solve(P[np.ix_(at, at)], P[at])
    return b - K.T @ b[at], P - P[:, at] @ K


def _worth(b: NDArray[np.float64], P: NDArray[np.float64], at: NDArray[np.intp]) -> float:
    return 0.5 * float(b[at] @ np.linalg.solve(P[np.ix_(at, at)], b[at]))


_WORDS = ("relevant", "perhaps", "")  # of terms that are, of terms kept that chance may explain, of the others


@reads_a_fit
def relevance(
    tree: xr.DataTree,
    *,
    space: Literal["weights", "eigen"] = "weights",
    by: Literal["weight", "feature", "column"] = "weight",
    order: Literal["strength", "forward"] = "strength",
    false_finds: float = FALSE_FINDS,
    delta: float | Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """Basis functions by name, or directions by number, most relevant first.

    Two words: a term is *kept* if the fit predicts better with it, and *relevant* only if chance is an unlikely
    explanation of it too. Terms kept that are not relevant are there "perhaps".

    Parameters
    ----------
    tree : xarray.DataTree
        From `bayes_sparse.fit`.
    space : "weights" or "eigen"
        Of a one-step method: the weights, none of which is pruned, or the directions it chose among.
    by : "weight", "feature" or "column"
        With several classes: a row for each feature and class, or for each feature, over all classes. ``"column"``: a
        row for each column as it was handed in, over all levels of a category (terms of a formula), and all classes.
    order : "strength" or "forward"
        How the terms kept are ordered: by how large each is beside all others, in units of its sd; or by which would be
        taken up first, second ... by a greedy search in the posterior. To select a given number of features the latter
        is the better one.
    false_finds : float
        The chance at most of a relevant term: how often data without any signal may have one.
    delta : float or mapping, optional
        Where NUTS sampled everything: how large a weight would have to be to matter to you, in the units of your
        columns and targets; by name where columns differ. The table then has beyond, the posterior probability of
        ``|w| > delta``.

    Returns
    -------
    pandas.DataFrame
        Columns:

        - precision (infinite where pruned), mean and sd of the weight (none where pruned), and gamma, how well the data
          determine it, 0 to 1;
        - score, the squared z-score with the other terms in, and chance, how probable it is that the best of all
          columns scores as high if none of them has anything to do with the target;
        - kept, relevant (kept, and chance at most ``false_finds``), and both as a word: "relevant", "perhaps" or "";
        - rival, the names of the columns left out that could stand in the term's place at a loss of less than three
          nats, best first; rival_loss, what the best column in its place loses, everything else re-estimated (NaN where
          none pays); alternatives, the term and its rivals in words, "x0 or x1";
        - group, where some terms share one precision: they are kept or left out together, and score, chance, kept and
          relevant are those of the group, with as many degrees of freedom as it has; a group has no rivals.

        Ordered by relevant, then by ``|mean| / sd``, then by score. A method on the L1 path has pull, the slope of the
        log-likelihood along the column in units of lambda: 1 or -1 where the weight is not zero, and else how near it
        is to entering. By feature: the number of classes that keep it, the sum of their gammas, strength (the root of
        the sum of (mean / sd)^2 over classes), and the best score and chance; by column the same, with the number of
        levels kept. Columns left out because they are constant stand last, and are not relevant. In the order "forward"
        there is gain, what each added when it was taken up, in nats. Of directions: curvature h of the likelihood, u at
        the expansion point, alpha, mode, mean and sd of u, gamma and relevant. Where NUTS sampled everything nothing is
        pruned and nothing has a rival: there are low and high, the ends of the central 95% interval; sign, the
        posterior probability that a weight has the sign it most probably has; gamma, the mean over draws of h / (h +
        precision) with h the likelihood's curvature along the column, and gamma_low and gamma_high, between which 95%
        of the draws have it; and the score is (mean / sd)^2. None of these is the probability that a feature matters.
        The weights of a one-step method have mean and sd alone: it chooses among directions, each a mixture of all
        weights, and calls no weight relevant or not. Their sd is not the posterior's, in which a direction left out is
        exactly zero, but the root mean squared distance from the mean of what the data alone say; NaN where they do not
        determine a weight by itself (more columns than rows, kernels).
    """
    fit = stored(tree)
    if "evidence" not in tree.children:
        evidence = _of_draws(tree, fit, delta)
    elif delta is None:
        evidence = tree["evidence"].to_dataset()
    else:
        raise ValueError("`delta` is asked of the draws of method='nuts': leave it out, or sample the model.")
    one_step = fit.by_direction
    if space == "eigen":
        if not one_step:
            raise ValueError("space='eigen' shows the directions of a one-step method (method='revm'); this has none.")
        return _directions(evidence)
    if space != "weights":
        raise ValueError(f"`space` is 'weights' or 'eigen', got {space!r}.")
    if by not in ("weight", "feature", "column"):
        raise ValueError(f"`by` is 'weight', 'feature' or 'column', got {by!r}.")
    if not 0 <= false_finds <= 1:
        raise ValueError(f"`false_finds` is a probability, from 0 to 1, got {false_finds!r}.")
    prunes = not one_step and "column" in evidence
    if order not in ("strength", "forward") or (order == "forward" and not prunes):
        raise ValueError(f"`order` is 'strength', or 'forward' for a fit that prunes weights, got {order!r}.")
    table = _weights(fit, evidence) if one_step else _terms(evidence, false_finds)
    several = "of_class" in evidence.coords
    group, owner = _groups(evidence), _owner(fit, evidence, by if several or by == "column" else "weight")
    summed = owner is not None
    if owner is not None:
        table = (
            _mixed(table, owner) if one_step else _of_features(table, owner, "classes" if by == "feature" else "levels")
        )
    else:
        owner = pd.Series(table.index, index=table.index) if group is None else group
    if order == "forward":
        gain = taken_up(evidence, owner)
        if owner is group:
            gain = pd.Series({name: value for own, value in gain.items() for name in group.index[group == own]})
        table = _taken_up_first(table, gain)
    table = _by_class(table, evidence) if several and not summed else table
    return table if one_step else _with_constant(table, fit, by)


def _owner(fit: StoredFit, evidence: xr.Dataset, by: str) -> pd.Series | None:
    """What each basis function belongs to, by its name; None where it stands for itself."""
    if by == "weight":
        return None
    names = pd.Series(evidence["basis"].to_numpy(), index=evidence["basis"].to_numpy())
    feature = _owners(evidence)[0] if "of_class" in evidence.coords else names
    if by == "feature":
        return feature
    sources: dict[str, str] = {}
    for how in [] if fit.declared else fit.encodings:
        sources |= how.source
    return feature.map(lambda name: sources.get(str(name), str(name)))


def _with_constant(table: pd.DataFrame, fit: StoredFit, by: str) -> pd.DataFrame:
    """The table with the columns that were left out because they are constant, at its end: not relevant."""
    left = [] if fit.declared else [(how, name) for how in fit.encodings for name in how.constant]
    names = dict.fromkeys(how.owner(name) if by == "column" else name for how, name in left)
    if isinstance(table.index, pd.MultiIndex):
        classes = fit.classes or []
        owners = fit.encodings if fit.by_class else fit.encodings * len(classes)
        added: list[Any] = [(n, label) for how, label in zip(owners, classes, strict=True) for n in how.constant]
    else:
        added = [name for name in names if name not in table.index]
    if not added:
        return table
    blank = {name: _BLANK.get(name, np.nan) for name in table.columns}
    index = pd.MultiIndex.from_tuples(added, names=table.index.names) if isinstance(added[0], tuple) else added
    rest = pd.DataFrame({name: [value] * len(added) for name, value in blank.items()}, index=index)
    whole = pd.concat([table, rest.astype(dict(table.dtypes))])
    return (
        whole.rename_axis(table.index.names) if isinstance(table.index, pd.MultiIndex) else whole.rename_axis("basis")
    )


# What the table says of a column that is not in the model.
_BLANK: dict[str, Any] = {
    "precision": np.inf,
    "mean": 0.0,
    "kept": False,
    "relevant": False,
    "word": _WORDS[2],
    "rival": (),
    "alternatives": "",
    "group": "",
    "classes": 0,
    "levels": 0,
    "strength": 0.0,
    "gamma": 0.0,
    "chance": 1.0,
    "score": 0.0,
}


def _of_draws(tree: xr.DataTree, fit: StoredFit, delta: float | Mapping[str, float] | None) -> xr.Dataset:
    """What the draws of a sampled tree say of each weight, none of which is ever pruned."""
    posterior = tree["posterior"].to_dataset() if "posterior" in tree.children else xr.Dataset()
    if "w" not in posterior or posterior["w"].dims[2:] != ("basis",):
        raise ValueError(
            "This tree has neither a group 'evidence' nor draws of weights 'w' by basis function: see az.summary(tree)."
        )
    w = posterior["w"]
    over = ("chain", "draw")
    said = xr.Dataset({"mean": w.mean(over), "sd": w.std(over)})
    said["low"], said["high"] = _between(w)
    said["sign"] = np.maximum((w > 0).mean(over), (w < 0).mean(over))
    gamma = fit.gamma_draws
    if gamma is not None:
        said["gamma"] = gamma.mean(over)
        said["gamma_low"], said["gamma_high"] = _between(gamma)
    if delta is not None:
        said["beyond"] = (abs(w) > _threshold(delta, w["basis"])).mean(over)
    said["score"] = (said["mean"] / said["sd"]) ** 2
    said["chance"] = ("basis", chance_of(said["score"].to_numpy(), said.sizes["basis"]))
    owners = {name: fit.constant[name] for name in ("of_column", "of_class") if name in fit.constant}
    return said.assign_coords({name: ("basis", values.to_numpy()) for name, values in owners.items()})


def _between(draws: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray]:
    """Ends of the central 95% interval."""
    low, high = draws.quantile([0.025, 0.975], ("chain", "draw")).drop_vars("quantile")
    return low, high


def _threshold(delta: float | Mapping[str, float], basis: xr.DataArray) -> xr.DataArray:
    """The size that matters, a value a weight; NaN, which nothing is beyond, where none was given."""
    names = [str(name) for name in basis.to_numpy()]
    unknown = [name for name in delta if name not in names] if isinstance(delta, Mapping) else []
    if unknown:
        raise ValueError(f"`delta` names {unknown[0]!r}, which is none of the {len(names)} basis functions.")
    values = [delta.get(name, np.nan) if isinstance(delta, Mapping) else delta for name in names]
    if not all(isinstance(value, int | float | np.number) and not value < 0 for value in values):
        raise ValueError(f"`delta` is a size, 0 or larger, or one a basis function by name; got {delta!r}.")
    return xr.DataArray(np.array(values, dtype=float), dims="basis", coords={"basis": basis})


def _taken_up_first(table: pd.DataFrame, gain: pd.Series) -> pd.DataFrame:
    """The terms kept in another order, what each gained beside them."""
    left = table.index[~table.index.isin(gain.index)]
    out = table.loc[[*gain.index, *left]].copy()
    out["gain"] = gain.reindex(out.index)
    out.index.name = "basis"
    return out


def _terms(evidence: xr.Dataset, false_finds: float) -> pd.DataFrame:
    """Weights one a row: those relevant, the others kept, then those left out by how near they were."""
    every = ("alpha", "mean", "sd", "low", "high", "gamma", "gamma_low", "gamma_high", "pull", "sign", "beyond")
    table = pd.DataFrame(
        {name: evidence[name].to_numpy() for name in (*every, "score", "chance") if name in evidence},
        index=pd.Index(evidence["basis"].to_numpy(), name="basis"),
    ).rename(columns={"alpha": "precision"})
    sampled = "kept" not in evidence
    kept = pd.Series(True if sampled else evidence["kept"].to_numpy(), index=table.index)
    table["kept"], table["relevant"] = kept, kept & (table["chance"] <= false_finds)
    outside = table["pull"].abs() if "pull" in table else table["score"].fillna(0.0)
    near = (table["mean"].abs() / table["sd"]).where(kept, outside)
    group = _groups(evidence)
    if group is not None:  # its terms next to each other
        table["group"], near = group, near.groupby(group).transform("max")
    table = table.assign(_near=near).sort_values(["relevant", "kept", "_near"], ascending=False, kind="stable")
    table = table.drop(columns="_near")
    _put_word(table)
    if sampled:
        table.loc[~table["relevant"], "word"] = _WORDS[2]
        return table
    known, sets = rivals(evidence), alternative_sets(evidence)
    table["rival"] = [sets.get(name, (name,))[1:] for name in table.index]
    table["rival_loss"] = [known[name][0][1] if name in known else np.nan for name in table.index]
    table["alternatives"] = [" or ".join(sets.get(name, ())) for name in table.index]
    return table


def _groups(evidence: xr.Dataset) -> pd.Series | None:
    """The group of each basis function, by its name; None where no two share a precision."""
    if "group" not in evidence or evidence["group"].dims != ("basis",):  # a variable of the user's may have that name
        return None
    return pd.Series(evidence["group"].to_numpy(), index=evidence["basis"].to_numpy())


def _put_word(table: pd.DataFrame) -> None:
    table["word"] = np.where(table["relevant"], _WORDS[0], np.where(table["kept"], _WORDS[1], _WORDS[2]))


def _by_class(table: pd.DataFrame, evidence: xr.Dataset) -> pd.DataFrame:
    """The same with feature and class apart in the index."""
    of_column, of_class = _owners(evidence)
    labels = [of_column[table.index].to_numpy(), of_class[table.index].to_numpy()]
    return table.set_axis(pd.MultiIndex.from_arrays(labels, names=["basis", "class"]))


def _of_features(table: pd.DataFrame, owners: pd.Series, count: str) -> pd.DataFrame:
    """One row a feature, over all classes, or one a column, over its levels too; ``count`` is how many are kept."""
    kept = table["kept"]
    owner = owners[table.index].to_numpy()
    parts = pd.DataFrame(
        {
            count: kept.astype(int),
            "gamma": table.get("gamma", np.nan),
            "strength": ((table["mean"] / table["sd"]).where(kept, 0.0) ** 2).fillna(0.0),
        },
        index=table.index,
    )
    grouped = table.groupby(owner, sort=False)
    out = parts.groupby(owner, sort=False).sum(min_count=1)
    out["strength"] = np.sqrt(out["strength"])
    out["score"], out["chance"] = grouped["score"].max(), grouped["chance"].min()
    out["kept"], out["relevant"] = out[count] > 0, grouped["relevant"].any()
    _put_word(out)
    near = out["strength"].where(out["kept"], out["score"].fillna(0.0))
    out = out.assign(_near=near).sort_values(["relevant", "kept", "_near"], ascending=False, kind="stable")
    return out.drop(columns="_near").rename_axis("basis")


def _owners(evidence: xr.Dataset) -> tuple[pd.Series, pd.Series]:
    """Feature and class of each basis function, by its name."""
    names = evidence["basis"].to_numpy()
    column, label = evidence["of_column"].to_numpy(), evidence["of_class"].to_numpy()
    return pd.Series(column, index=names), pd.Series(label, index=names)


def _weights(fit: StoredFit, evidence: xr.Dataset) -> pd.DataFrame:
    """Weights of a one-step method, all of them there; in posterior sds, if in no other unit, for the order alone."""
    size, sd = np.abs(evidence["mean"].to_numpy()), fit.posterior_sd
    fitted = np.divide(size, sd, out=np.zeros_like(size), where=sd > 0)
    table = pd.DataFrame(
        {name: evidence[name].to_numpy() for name in ("mean", "sd")},
        index=pd.Index(evidence["basis"].to_numpy(), name="basis"),
    )
    strength: pd.Series = (table["mean"].abs() / table["sd"]).where(table["sd"] > 0, -1 / (1 + fitted))
    return table.loc[strength.sort_values(ascending=False, kind="stable").index]


def _mixed(table: pd.DataFrame, owners: pd.Series) -> pd.DataFrame:
    """The same, one row a feature."""
    owner = owners[table.index].to_numpy()
    square = ((table["mean"] / table["sd"]) ** 2).groupby(owner, sort=False).sum(min_count=1)
    out = pd.DataFrame({"strength": square**0.5}).rename_axis("basis")
    return out.sort_values("strength", ascending=False, kind="stable")


def _directions(evidence: xr.Dataset) -> pd.DataFrame:
    """Directions of a one-step method, those with the largest mode in units of the likelihood's own sd first."""
    names = ["h", "u_expansion", "alpha", "u_mode", "u_mean", "u_sd", "gamma", "relevant"]
    table = pd.DataFrame(
        {name: evidence[name].to_numpy() for name in names},
        index=pd.Index(evidence["direction"].to_numpy(), name="direction"),
    )
    strength: pd.Series = (table["h"] ** 0.5 * table["u_mode"].abs()).where(table["relevant"], -1.0)
    return table.loc[strength.sort_values(ascending=False, kind="stable").index]


@reads_a_fit
def unpruned(tree: xr.DataTree) -> xr.DataTree:
    """The same tree with the pruned weights in its posterior, as zeros.

    The posterior of a named model holds only the terms kept, so that no draw is constant; here its weights have their
    full shape. Of a `pm.Model` of your own it has all variables in full already, and nothing is changed.

    Parameters
    ----------
    tree : xarray.DataTree
        From an evidence method of `bayes_sparse.fit`, with draws.
    """
    if "posterior" not in tree.children:
        raise ValueError("This tree has no posterior draws; fit with draws > 0.")
    posterior = tree["posterior"].to_dataset()
    for name, (dim, labels) in stored(tree).vectors.items():
        if name in posterior and posterior.sizes[dim] == len(labels):
            continue
        if name in posterior:
            posterior = posterior.reindex({dim: labels}, fill_value=0.0)
        else:
            shape = (posterior.sizes["chain"], posterior.sizes["draw"], len(labels))
            posterior = posterior.assign_coords({dim: labels})
            posterior[name] = (("chain", "draw", dim), np.zeros(shape))
    whole = tree.copy()
    whole["posterior"] = xr.DataTree(posterior)
    return whole
