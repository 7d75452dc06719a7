"""Small grey images with known outlines."""

import numpy as np

SIZE = 28


def disc(x=13.5, y=13.5, radius=7.0):
    """A disc whose edge is one ramp wide: its half level is a circle of the radius, up to interpolation."""
    column, row = np.meshgrid(np.arange(SIZE), np.arange(SIZE))
    return 255.0 * np.clip(radius - np.hypot(column - x, row - y) + 0.5, 0.0, 1.0)


def ring(x=13.5, y=13.5, outer=9.0, inner=4.0):
    return disc(x, y, outer) - disc(x, y, inner)


def bar(left, top, right, bottom):
    image = np.zeros((SIZE, SIZE))
    image[top:bottom, left:right] = 255.0
    return image


def scrawls(n, seed=0):
    """Strokes through a few random places: two classes, open curves and rings with a tail."""
    rng = np.random.default_rng(seed)
    column, row = np.meshgrid(np.arange(SIZE), np.arange(SIZE))
    images, labels = [], []
    for i in range(n):
        turn = np.linspace(0.0, (1.2 + 0.8 * (i % 2)) * np.pi, 60) + 0.3 * rng.standard_normal()
        x = 13.5 + (6 + rng.standard_normal()) * np.cos(turn)
        y = 13.5 + (7 + rng.standard_normal()) * np.sin(turn)
        near = np.hypot(column[..., None] - x, row[..., None] - y).min(axis=-1)
        images.append(np.round(255.0 * np.clip(2.0 - near, 0.0, 1.0)))
        labels.append(i % 2)
    return np.array(images), np.array(labels)
