"""Draw the README's picture: ``python docs/pictures/make.py``."""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

import bayes_sparse as bs


def main() -> None:
    """Ten true features among 2000, and a curve from a few kernels."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")

    wide = bs.datasets.sparse_linear(n=200, p=2000, k=10, noise=0.5, random_seed=0)
    tree = bs.fit("ard_gaussian", (wide.X, wide.y), random_seed=0)
    bs.plot_relevance(tree, ax=left)
    names = [label.get_text() for label in left.get_yticklabels()]
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
    figure.savefig(Path(__file__).parent / "readme.png", dpi=120)


if __name__ == "__main__":
    main()
