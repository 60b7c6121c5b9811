"""Recommenders that are functions of a release alone: fitted again and again, they cost nothing more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tasks.release import denoising, rule
from tasks.release.making import Release

Array = NDArray[np.float64]
Kind = Literal["svd", "ease", "knn", "als", "popularity"]
RIDGE = 4.0
"""Of EASE, times the mean of the diagonal, where none is given."""
ALS_SHARE = 0.1
"""Weight in ALS of an item that a user does not have, by which a user's own items are distinguished from all others."""


@dataclass(frozen=True)
class Model:
    """What is served: scores of the head's items for a row of it, and an order of all items."""

    kind: Kind
    counts: Array
    """(n_items,) noisy counts, 0 where they are negative: what ranks all that the matrices do not."""
    head: NDArray[np.int64]
    arrays: Mapping[str, Array]
    """By kind: `vectors` and `gains`, or `matrix`, or `factors`; `blend`, the share of counts in a score."""

    def scores(self, rows: Array) -> Array:
        """(b, H) scores for (b, H) rows of 0 and 1."""
        made = _SCORES[self.kind](rows, self.arrays)
        made /= np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1e-9)
        counts = self.counts[self.head]
        return np.asarray(made + self.arrays["blend"] * (counts / max(float(np.linalg.norm(counts)), 1e-9)))


def fit(release: Release, kind: Kind, ridge: float | None = None) -> Model:
    """A model of a release; popularity where it has counts alone.

    Args:
        ridge: of EASE; None: `RIDGE` times the mean of the diagonal.
    """
    counts = np.maximum(release.counts, 0)
    if not len(release.head) or kind == "popularity":
        return Model("popularity", counts, np.empty(0, np.int64), {})
    low = denoising.denoise(release)
    blend = 1e-6
    if kind == "svd":
        second = low.values[1] if len(low.values) > 1 else 0.0
        blend = rule.BLEND * (5 if second < 3 * low.noise else 1)
        arrays = {"vectors": low.vectors, "gains": low.gains}
    elif kind == "ease":
        arrays = {"matrix": ease(low.matrix(), counts[release.head], ridge)}
    elif kind == "knn":
        arrays = {"matrix": _cosine(low.matrix())}
    else:
        arrays = {"factors": low.vectors * np.sqrt(low.values.clip(0) * low.gains)}
    return Model(kind, counts, release.head, arrays | {"blend": np.array(blend)})


def ease(pairs: Array, counts: Array, ridge: float | None = None) -> Array:
    """EASE (Steck, WWW 2019) with counts on the scale of the pairs as its diagonal.

    Args:
        pairs: (H, H); counts: (H,); ridge: as in `fit`.

    Returns:
        (H, H), what an item of a row adds to each score.
    """
    own = np.diag(pairs)
    diagonal = np.maximum(counts * own.sum() / max(float(counts.sum()), 1e-9), own)
    added = RIDGE * max(float(diagonal.mean()), 1e-6) if ridge is None else ridge
    inverse = np.linalg.inv(pairs - np.diag(own) + np.diag(diagonal + added))
    weights = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0)
    return np.asarray(weights)


def _cosine(pairs: Array) -> Array:
    own = np.sqrt(np.maximum(np.diag(pairs), 1e-9 + 1e-3 * np.diag(pairs).mean()))
    similar = pairs / own[:, None] / own
    np.fill_diagonal(similar, 0)
    return np.asarray(similar)


def _from_factors(rows: Array, arrays: Mapping[str, Array]) -> Array:
    """Weighted least squares for each row's own vector (Hu, Koren and Volinsky, ICDM 2008), items held fixed."""
    factors = arrays["factors"]
    shared = ALS_SHARE * factors.T @ factors
    outer = np.einsum("ik,il->ikl", factors, factors).reshape(len(factors), -1)
    grams = (rows @ outer).reshape(-1, *shared.shape) + shared
    grams += (1e-9 + np.trace(shared) / len(shared)) * np.eye(len(shared))
    vectors = np.linalg.solve(grams, (rows @ factors)[:, :, None])[:, :, 0]
    return np.asarray(vectors @ factors.T)


_SCORES: Mapping[Kind, Callable[[Array, Mapping[str, Array]], Array]] = {
    "svd": lambda rows, arrays: (rows @ arrays["vectors"] * arrays["gains"]) @ arrays["vectors"].T,
    "ease": lambda rows, arrays: rows @ arrays["matrix"],
    "knn": lambda rows, arrays: rows @ arrays["matrix"],
    "als": _from_factors,
}
