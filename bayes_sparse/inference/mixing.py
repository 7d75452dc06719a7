"""Anderson's acceleration of a fixed point: the next point from the last few, and from where each of them led."""

from __future__ import annotations

from collections import deque

import numpy as np

from bayes_sparse.common.types import FloatArray

__all__ = ["Mixing"]

_MEMORY = 5  # rounds
_CUT = 1e-12  # of a square: directions that rounds hardly differ along are left out
_SHORTEST = 1e-3  # of a step


class Mixing:
    """Rounds so far; ``scale`` makes all numbers of a point matter alike."""

    def __init__(self, scale: FloatArray) -> None:
        self._scale, self._step = scale.ravel(), 1.0
        rounds = min(_MEMORY, scale.size + 1)  # more of them would only repeat what a small point can tell
        self._points: deque[FloatArray] = deque(maxlen=rounds)
        self._moves: deque[FloatArray] = deque(maxlen=rounds)

    def next(self, here: FloatArray, towards: FloatArray) -> FloatArray:
        """Where to go from a point that the fixed point's map sends to ``towards``."""
        x, move = here.ravel(), (towards - here).ravel()
        self._points.append(x)
        self._moves.append(move)
        step = self._step * move
        if len(self._points) > 1:
            dx, dm = np.diff(np.array(self._points), axis=0), np.diff(np.array(self._moves), axis=0)
            scaled = dm * self._scale
            gram = scaled @ scaled.T
            squares = gram.diagonal()
            gram.flat[:: len(gram) + 1] = np.where(squares > 0, squares * (1 + _CUT), 1.0)
            share = np.linalg.solve(gram, scaled @ (move * self._scale))
            step -= share @ (dx + self._step * dm)
        self._step = min(1.0, 1.5 * self._step)
        return np.asarray((x + step).reshape(here.shape))

    def shorter(self, like: FloatArray) -> FloatArray | None:
        """Half as far from the last point that was good, forgetting those before; None where that is no step."""
        x, move = self._points[-1], self._moves[-1]
        self._points.clear()
        self._moves.clear()
        self._points.append(x)
        self._moves.append(move)
        self._step /= 3
        return np.asarray((x + self._step * move).reshape(like.shape)) if self._step > _SHORTEST else None
