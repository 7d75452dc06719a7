"""Draw the pictures of the documents: ``python docs/pictures/make.py``."""

import base64
import io
import json
from collections.abc import Iterable
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import bayes_sparse as bs

HERE = Path(__file__).parent
SHOWN = {"eigenvectors_on_ripley": 2, "lambda_without_a_knob": 1}  # which picture stands for it, else the first


def readme() -> None:
    """Ten true features among 2000, and a curve from a few kernels."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")

    wide = bs.datasets.sparse_linear(n=200, p=2000, k=10, noise=0.5, random_seed=0)
    tree = bs.fit("ard_gaussian", (wide.X, wide.y), random_seed=0)
    bs.plot_relevance(tree, ax=left)
    names = [label.get_text().split(" or ")[0] for label in left.get_yticklabels()]
    true = wide.weights[[int(name[1:]) for name in names]] * wide.X.std(axis=0)[[int(name[1:]) for name in names]]
    left.plot(true, left.get_yticks(), "x", color="#dd7722", ms=9, mew=2, label="truth")
    found = int(np.sum(tree["evidence"]["relevant"].to_numpy() & (wide.weights != 0)))
    seconds = tree["evidence"].attrs["seconds"]
    left.set_title(f"200 rows, 2000 features, 10 of them real: {found} found in {1e3 * seconds:.0f} ms")
    left.legend(frameon=False)

    sinc = bs.datasets.sinc(n=100, noise=0.2, random_seed=1)
    curve = bs.fit("ard_gaussian", (sinc.X, sinc.y), basis=bs.basis.rbf(width=2.0), draws=0)
    bs.plot_curve(curve, ax=right)
    right.set_title("100 kernels offered, a few kept")
    figure.savefig(HERE / "readme.png", dpi=120)


def relevant() -> None:
    """A term with a rival, one without, and a chance find."""
    figure, ax = plt.subplots(figsize=(6.6, 2.8), layout="constrained")
    rng = np.random.default_rng(16)
    X = rng.normal(size=(100, 8))
    X[:, 1] = 0.95 * X[:, 0] + 0.3 * X[:, 1]
    tree = bs.fit("ard_gaussian", (X, X[:, 0] - 0.3 * X[:, 4] + rng.normal(size=100)), draws=0)
    bs.plot_relevance(tree, ax=ax)
    figure.savefig(HERE / "relevant.png", dpi=120)


def revm() -> None:
    """Two classes with the boundary of an LREVM, its spectrum, and some of its one-dimensional integrals."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(15, 4.6), layout="constrained")
    data = bs.datasets.two_gaussians(250, random_seed=0)
    tree = bs.fit(
        "laplace_eigen", (data.X, data.y), likelihood="bernoulli", basis=bs.basis.rbf(width=0.5), draws=0, random_seed=0
    )

    low, high = data.X.min(axis=0) - 0.2, data.X.max(axis=0) + 0.2
    first, second = np.meshgrid(np.linspace(low[0], high[0], 120), np.linspace(low[1], high[1], 120))
    p = bs.predict(tree, np.column_stack([first.ravel(), second.ravel()]))["probability"].to_numpy()[:, 1]
    p = p.reshape(first.shape)
    left.contourf(first, second, p, levels=np.linspace(0, 1, 11), cmap="RdBu_r", alpha=0.5)
    left.contour(first, second, p, levels=[0.5], colors="black", linewidths=1.5)
    for label, mark, colour in ((0, "o", "#3366aa"), (1, "^", "#bb4433")):
        left.plot(*data.X[data.y == label].T, mark, color=colour, ms=4, mec="white", mew=0.5)
    kept = tree["evidence"].attrs["directions_kept"]
    left.set_title(f"250 kernels, {kept} directions: probability of class 1")

    bs.plot_spectrum(tree, ax=middle)
    bs.plot_evidence_1d(tree, ax=right)
    figure.savefig(HERE / "revm.png", dpi=100)


def jeffreys_laplace() -> None:
    """The criterion over one weight at three strengths of its signal; a path, where it meets N, and its weights."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(15, 4.4), layout="constrained")
    n, w = 50, np.geomspace(1e-7, 2, 2000)
    for c, colour in {0.2: "#888888", 0.35: "#2266aa", 0.6: "#dd7722"}.items():
        Q = n / 2 * np.log(1 - 2 * c * w + w**2) + np.log(w)  # standardised target and column, noise at its best
        left.semilogx(w, Q, color=colour, label=f"correlation {c}")
        roots = np.roots([n + 1, -(n + 2) * c, 1])
        if np.isreal(roots).all():
            left.plot(roots.max(), np.interp(roots.max(), w, Q), "o", color=colour, ms=8)
            left.plot(roots.min(), np.interp(roots.min(), w, Q), "o", color=colour, ms=8, mfc="white")
    left.axhline(0, color="black", lw=0.8, ls=":")
    left.text(1.3e-7, 0.3, "no weight, N = 0", fontsize="small")
    left.set(xlabel="w, on a log scale", ylabel="Q less that of no weight", ylim=(-17, 4))
    left.set_title("one column, 50 rows: minima and the fall towards zero")
    left.legend(frameon=False, loc="lower right")

    truth = bs.datasets.sparse_logistic(n=300, p=40, k=4, random_seed=0)
    tree = bs.fit("jeffreys_laplace", (truth.X, truth.y), likelihood="bernoulli", all_points=True, draws=0)
    bs.plot_path(tree, axes=(middle, right))
    right.set_title("4 of 40 columns are real")
    figure.savefig(HERE / "jeffreys_laplace.png", dpi=80)


def student_multinomial() -> None:
    """The weights that ten digits keep, on their mean images, and the strength of each pixel over all digits."""
    pixels, digit = load_digits(return_X_y=True, as_frame=True)
    X, _, y, _ = train_test_split(pixels, digit, train_size=1000, random_state=0)
    tree = bs.fit("student_multinomial", (X.loc[:, X.std() > 0], y), draws=0)
    effect = tree["evidence"]["mean"].to_numpy() * tree["constant_data"]["basis_scale"].to_numpy()
    names, owner = tree["evidence"]["of_column"].to_numpy(), tree["evidence"]["of_class"].to_numpy()

    figure = plt.figure(figsize=(13, 4.3), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[2.2, 1])
    axes = left.subplots(2, 5)
    for c, ax in enumerate(axes.flat):
        ax.imshow(X[y == c].mean().to_numpy().reshape(8, 8), cmap="Greys", alpha=0.3)
        weights = _image(names[owner == c], effect[owner == c])
        drawn = ax.imshow(np.where(weights == 0, np.nan, weights), cmap="RdBu_r", vmin=-2, vmax=2)
        ax.set(title=f"{c}: {np.sum(weights != 0)} kept", xticks=[], yticks=[])
    left.colorbar(drawn, ax=axes, label="effect of one sd", extend="both")
    features = bs.relevance(tree, by="feature")
    ax = right.subplots()
    strength = ax.imshow(_image(features.index, features["strength"]), cmap="Oranges")
    ax.set(title="strength of each pixel over all digits", xticks=[], yticks=[])
    right.colorbar(strength, ax=ax)
    figure.savefig(HERE / "student_multinomial.png", dpi=80)


def _image(names: Iterable[str], values: Iterable[float]) -> np.ndarray:
    """Values of some pixels, named "pixel_row_column", as an 8 x 8 image, zero elsewhere."""
    out = np.zeros((8, 8))
    for name, value in zip(names, values, strict=True):
        _, row, column = name.split("_")
        out[int(row), int(column)] = value
    return out


def gallery() -> None:
    """A picture of each notebook, from its stored outputs, small."""
    for path in (HERE.parents[1] / "notebooks").glob("*.ipynb"):
        outputs = [o for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] for o in cell.get("outputs", [])]
        pictures = [o["data"]["image/png"] for o in outputs if "image/png" in o.get("data", {})]
        chosen = Image.open(io.BytesIO(base64.b64decode("".join(pictures[SHOWN.get(path.stem, 0)])))).convert("RGB")
        chosen.thumbnail((640, 360))
        chosen.quantize(64).save(HERE / f"notebook_{path.stem}.png", optimize=True)


if __name__ == "__main__":
    readme()
    relevant()
    revm()
    jeffreys_laplace()
    student_multinomial()
    gallery()
