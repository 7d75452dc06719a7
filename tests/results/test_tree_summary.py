"""A fit at a glance: the numbers are those of the functions it asks, for every kind of tree, in a hundred columns."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import bayes_sparse as bs

RNG = np.random.default_rng(16)
X = RNG.normal(size=(100, 8))
X[:, 1] = 0.95 * X[:, 0] + 0.3 * X[:, 1]  # two columns that say nearly the same
Y = X[:, 0] - 0.3 * X[:, 4] + RNG.normal(size=100)
LABELS = np.array(["a", "b", "c"])[np.argmax(2 * X[:, 2:5] + RNG.gumbel(size=(100, 3)), axis=1)]
SMALL = {"draws": 200, "chains": 2, "random_seed": 0, "progressbar": False}


@pytest.fixture(scope="module")
def tree():
    return bs.fit("ard_gaussian", (X, Y), random_seed=0)


def two_vectors():
    """Weights of their own and levels that share a precision each, none of which is called w."""
    rng = np.random.default_rng(3)
    kind, place = rng.integers(0, 3, 100), rng.integers(0, 4, 100)
    eta = X[:, :4] @ [1.5, 0.0, 0.0, 0.0] + np.array([-1.0, 0.0, 1.0])[kind]
    with pm.Model(coords={"x": ["one", "two", "three", "four"], "kind": list("abc"), "place": list("pqrs")}) as model:
        slope = pm.Normal("slope", 0.0, tau=pm.Gamma("s", 0.5, 0.005, dims="x"), dims="x")
        level = pm.Normal("level", 0.0, tau=pm.Gamma("k", 0.5, 0.005), dims="kind")
        spot = pm.Normal("spot", 0.0, tau=pm.Gamma("p", 0.5, 0.005), dims="place")
        mean = X[:, :4] @ slope + level[kind] + spot[place]
        pm.Normal("y", mean, pm.HalfNormal("sigma", 1.0), observed=eta + rng.normal(size=100))
    return model


def sampled(apart=0.0):
    """The layout of a model of the user's own, sampled by chains this far apart: no evidence, no weights called w."""
    draws = np.random.default_rng(4).normal(size=(4, 500, 3)) + np.array([5.0, 0.0, -1.0])
    draws += apart * np.arange(4)[:, None, None]
    posterior = xr.Dataset(
        {"slope": (("chain", "draw", "x"), draws)}, coords={"x": list("abc")}, attrs={"method": "nuts", "condition": ""}
    )
    out = xr.DataTree.from_dict({"posterior": posterior})
    out.attrs["bayes_sparse"] = '{"model": "declared"}'
    return out


KINDS = {
    "evidence": lambda: bs.fit("ard_gaussian", (X, Y), **SMALL),
    "without draws": lambda: bs.fit("ard_gaussian", (X, Y), draws=0),
    "directions": lambda: bs.fit("laplace_eigen", (X, Y), **SMALL),
    "L1 path": lambda: bs.fit("jeffreys_laplace", (X, Y), **SMALL),
    "L1 by cross-validation": lambda: bs.fit("jeffreys_laplace", (X, Y), method="cv", **SMALL),
    "classes": lambda: bs.fit("student_multinomial", (X, LABELS), **SMALL),
    "one against the rest": lambda: bs.fit("student_multinomial", (X, LABELS), method="one_vs_rest", **SMALL),
    "two classes": lambda: bs.fit("ard_gaussian", (X, np.where(Y > 0, "yes", "no")), **SMALL),
    "corrected": lambda: bs.correct(bs.fit("ard_gaussian", (X, Y > 0), **SMALL), random_seed=0),
    "horseshoe": lambda: bs.fit("horseshoe", (X, Y), **SMALL),
    "variational": lambda: bs.fit("ard_gaussian", (X, Y), method="variational", **SMALL),
    "kernels": lambda: bs.fit("ard_gaussian", (X[:, :1], Y), basis=bs.basis.rbf(1.0), **SMALL),
    "two vectors": lambda: bs.fit(two_vectors(), sparse=["slope"], grouped=["level", "spot"], **SMALL),
    "NUTS at alpha*": lambda: bs.fit("ard_gaussian", (X, Y), method="nuts", condition="alpha", sampler="pymc", **SMALL),
    "of a user's own by NUTS": sampled,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_tree_has_a_summary_also_from_a_file(kind, tmp_path):
    tree = KINDS[kind]()
    found = bs.summary(tree)
    text = str(found)
    assert max(map(len, text.splitlines())) <= 100
    assert "nan" not in text.replace("nuisance", "")
    assert " ".join(text.split()).startswith(found.sentence)
    assert found.sentence.endswith(".")
    assert len(found.terms) > 0
    tree.to_netcdf(tmp_path / "tree.nc")
    with xr.open_datatree(tmp_path / "tree.nc") as back:
        again = bs.summary(back)
    assert str(again) == text
    assert again._repr_html_() == found._repr_html_()


@pytest.mark.quick
def test_the_numbers_are_those_of_relevance_and_diagnose(tree):
    found, table, diagnosis = bs.summary(tree), bs.relevance(tree), bs.diagnose(tree)
    names = list(table.query("relevant").index)
    assert found.sentence == (
        f"Of 8 columns {len(names)} are relevant ({', '.join(names)}), perhaps {len(table.query('kept')) - len(names)} "
        "more; the posterior can be trusted, given the terms kept."
    )
    assert found.trust.level == "good"
    facts = dict(found.facts)
    assert facts["model"] == "ard_gaussian, normal likelihood, linear basis"
    assert facts["rows"] == "100"
    assert facts["noise (sigma)"] == f"{float(tree['evidence']['sigma']):.3g}"
    assert facts["log evidence"] == f"{float(tree['evidence']['log_evidence']):.2f} (exact)"
    assert facts["check"].startswith(f"k-hat {diagnosis.k_hat:.2f}, below")
    assert facts["verdict"] == "can be trusted"
    assert facts["status"] == "converged"
    line = next(line for line in str(found).splitlines() if line.startswith(names[0]))
    own = table.loc[names[0]]
    assert line.split()[:3] == [names[0], f"{own['mean']:.3g}", f"{own['sd']:.3g}"]
    assert line.split()[-1] == own["rival"][0]  # its twin, which could stand in its place
    assert f">{own['rival'][0]}</td>" in found._repr_html_()


def test_what_each_kind_says():
    trees = {name: KINDS[name]() for name in ("directions", "classes", "kernels", "variational", "two vectors")}
    said = {name: bs.summary(tree) for name, tree in trees.items()}
    kept = trees["directions"]["evidence"].attrs["directions_kept"]
    assert said["directions"].sentence.startswith(f"Of 8 directions {kept} are kept, each a mixture of all weights;")
    assert "3 are relevant to some class" in said["classes"].sentence
    assert list(said["classes"].terms.index.names) == ["basis", "class"]
    labels, sizes = np.unique(LABELS, return_counts=True)
    assert dict(said["classes"].facts)["base rate"] == f"{sizes.max()}% {labels[sizes.argmax()]}"  # of a hundred rows
    assert said["kernels"].sentence.startswith("Of 100 kernels ")
    assert "given the precisions found" in said["variational"].sentence
    chosen = dict(bs.summary(KINDS["L1 by cross-validation"]()).facts)["what it is"]
    assert chosen == "evidence, Laplace approximation at lambda*"
    bound = float(trees["variational"]["evidence"]["bound"])
    assert dict(said["variational"].facts)["log p(y) at least"] == f"{bound:.2f}"
    grouped = said["two vectors"]
    # Four slopes, and two groups of levels.
    assert grouped.sentence.startswith("Of 6 terms 2 are relevant (slope[one], level[a] and 2 more); ")
    assert list(grouped.terms["group"]) == ["slope[one]", *["level[a] and 2 more"] * 3]


def test_a_fit_that_is_not_to_be_trusted_says_why_and_what_to_do(tree):
    ended = tree.assign({"evidence": xr.DataTree(tree["evidence"].to_dataset().assign_attrs(status="max_iterations"))})
    found = bs.summary(ended)
    assert found.trust.level == "bad"
    assert found.sentence.endswith("the posterior is not to be trusted: the fit ended as 'max_iterations'.")
    assert any("raise max_iterations" in step for step in found.next_steps)
    assert any("bs.correct(tree)" in step for step in found.next_steps)
    without = bs.summary(KINDS["without draws"]())
    assert without.trust.level == "care"
    assert "it was not checked" in without.sentence
    assert "draws > 0" in dict(without.facts)["check"]


def test_nothing_found():
    rng = np.random.default_rng(0)
    with pytest.warns(bs.FitWarning, match="No basis function"):
        tree = bs.fit("ard_gaussian", (rng.normal(size=(80, 5)), rng.normal(size=80)), **SMALL)
    found = bs.summary(tree)
    assert found.sentence.startswith("Of 5 columns none is relevant; ")
    assert found.trust.level == "care"
    assert found.terms.empty
    assert any("the model without any" in step for step in found.next_steps)


def test_a_likelihood_that_residuals_contradict():
    rng = np.random.default_rng(1)
    counts = rng.poisson(np.exp(0.5 + 0.7 * X[:, 0] + rng.normal(size=100)))
    tree = bs.fit("ard_gaussian", (X, counts), likelihood="poisson", **SMALL)
    found = bs.summary(tree)
    assert "the residuals do not look like its likelihood" in found.sentence
    assert any("negative_binomial" in step for step in found.next_steps)


def test_chains_that_disagree():
    found = bs.summary(sampled(apart=1.0))
    assert "the chains disagree" in found.sentence
    assert found.trust.level == "bad"
    assert any("target_accept" in step for step in found.next_steps)


def test_only_trees_of_fits():
    with pytest.raises(TypeError, match="summary takes a tree"):
        bs.summary(xr.DataTree())
