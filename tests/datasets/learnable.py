"""How well simple models learn what synthetic data are built to have."""

import numpy as np
import polars as pl
from numpy.typing import NDArray


def matrix(interactions: pl.DataFrame, n_items: int | None = None) -> NDArray[np.float64]:
    """(n_users, n_items) 0/1: who has which of the most popular items; users and items in the order of their ids."""
    counts = interactions.group_by("item").len().sort("len", "item", descending=True)
    top = counts["item"].head(len(counts) if n_items is None else n_items)
    rows = interactions.filter(pl.col("item").is_in(top.implode()))
    users, items = (rows[name].rank("dense").to_numpy() - 1 for name in ("user", "item"))
    preferences = np.zeros((users.max() + 1, items.max() + 1))
    preferences[users, items] = 1
    return preferences


def recalls(has: NDArray[np.float64]) -> tuple[float, float, float]:
    """Recall at 10 of a fifth of the pairs held out: of a model of items, of popularity, and of chance.

    The model is ridge regression of each item on the others (Steck, 2019): closed form, nothing to tune.
    """
    rng = np.random.default_rng(0)
    held = has * (rng.random(has.shape) < 0.2)
    train = has - held
    inverse = np.linalg.inv(train.T @ train + 200 * np.eye(train.shape[1]))
    weights = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0)

    def recall(scores: NDArray[np.float64]) -> float:
        top = np.argsort(np.where(train > 0, np.inf, -scores), axis=1)[:, :10]
        hits = np.take_along_axis(held, top, axis=1).sum(axis=1)
        return float((hits / np.clip(held.sum(axis=1), 1, 10)).mean())

    popularity = np.broadcast_to(train.sum(axis=0), train.shape)
    return recall(train @ weights), recall(popularity), recall(rng.random(train.shape))
