"""Embeddings of two networks whose right map is known."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Rotated:
    """A cloud, and the same rotated and in another order.

    anchors: (n, 2) every source user and who that is in the target, in random order.
    """

    source: NDArray[np.float64]
    target: NDArray[np.float64]
    rotation: NDArray[np.float64]
    anchors: NDArray[np.int64]


def rotated(cloud: NDArray[np.float64], rng: np.random.Generator) -> Rotated:
    """Rotate (or reflect) and shuffle an (n, d) cloud."""
    n, d = cloud.shape
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    order = rng.permutation(n)
    anchors = np.stack([order, np.arange(n)], axis=1)
    return Rotated(cloud, (cloud @ rotation)[order], rotation, anchors[rng.permutation(n)])


def clustered(n: int, d: int, n_clusters: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """(n, d) centred vectors in clusters of unequal size, no two directions of which look alike."""
    centres, sizes = rng.standard_normal((n_clusters, d)), rng.dirichlet(np.ones(n_clusters))
    cloud = centres[rng.choice(n_clusters, n, p=sizes)] + 0.4 * rng.standard_normal((n, d)) * rng.random(d)
    return cloud - cloud.mean(axis=0)
