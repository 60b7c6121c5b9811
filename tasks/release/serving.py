"""Lists from a model and users' own rows: a list is a function of the release and of that user's row alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tasks.core.errors import ConfigurationError, DataError
from tasks.release.models import Model
from tasks.release.sums import BLOCK, Rows


@dataclass(frozen=True)
class Recommender:
    """A model with the ids of its catalogue."""

    model: Model
    items: Sequence[str]
    marks: Mapping[str, str]
    """What every file of the release says: its ε and δ, what these are conditional on, and what noise it has."""

    @cached_property
    def _place(self) -> dict[str, int]:
        return {item: number for number, item in enumerate(self.items)}

    def recommend(self, items: Sequence[str | int], k: int = 20) -> list[str]:
        """The `k` best items for who has `items`, best first, without these.

        Raises:
            DataError: an item is not in the catalogue.
            ConfigurationError: `k` is below 1.
        """
        unknown = [item for item in items if str(item) not in self._place]
        if unknown:
            raise DataError(f"{len(unknown)} items are not in the catalogue, such as {str(unknown[0])!r}")
        places = np.unique([self._place[str(item)] for item in items]).astype(np.int64)
        rows = csr_array((np.ones(len(places)), places, np.array([0, len(places)])), shape=(1, len(self.items)))
        return [self.items[number] for number in lists(self.model, rows, k)[0] if number >= 0]


def lists(model: Model, rows: Rows, k: int) -> NDArray[np.int64]:
    """(n_users, k) items, or all of fewer, for each row, best first, without the row's own; -1 where there are no more.

    Items of the head come first, by the model, for anyone who has one of them; all others by noisy
    counts, of which those below 0 count as 0.

    Raises:
        ConfigurationError: `k` is below 1.
    """
    if k < 1:
        raise ConfigurationError(f"k must be 1 or more (is {k})")
    k = min(k, len(model.counts))
    result = np.full((rows.shape[0], k), -1, np.int64)
    popular = np.argsort(-model.counts, kind="stable")
    outside = popular[~np.isin(popular, model.head)]
    for start in range(0, rows.shape[0], BLOCK):
        block = rows[start : start + BLOCK].tocsr()
        best = _head(model, block, k)
        for user in range(block.shape[0]):
            history = block.indices[block.indptr[user] : block.indptr[user + 1]]
            chosen = best[user][best[user] >= 0] if len(best) else best[:0].ravel()
            if len(chosen) < k:
                others = outside if len(chosen) else popular
                more = others[: k + len(history)]
                chosen = np.concatenate([chosen, more[~np.isin(more, history)]])[:k]
            result[start + user, : len(chosen)] = chosen
    return result


def _head(model: Model, block: Rows, k: int) -> NDArray[np.int64]:
    """(b, at most k) items of the head, -1 where a row has none of it or there are no more."""
    if not len(model.head):
        return np.empty((0, 0), np.int64)
    dense = block[:, model.head].toarray().astype(np.float64)
    scores = np.where(dense > 0, -np.inf, model.scores(dense))
    few = min(k, len(model.head))
    top = np.sort(np.argpartition(-scores, few - 1, axis=1)[:, :few], axis=1)
    values = np.take_along_axis(scores, top, 1)
    order = np.argsort(-values, axis=1, kind="stable")
    top, values = np.take_along_axis(top, order, 1), np.take_along_axis(values, order, 1)
    shown = np.isfinite(values) & dense.any(axis=1, keepdims=True)
    return np.where(shown, model.head[top], -1)


def table(served: Recommender, rows: Rows, users: Sequence[str], k: int) -> pl.DataFrame:
    """Lists with columns `user`, `item` and `rank`, from 1."""
    result = lists(served.model, rows, k)
    user, rank = np.nonzero(result >= 0)
    columns = {"user": np.array(users, object)[user], "item": np.array(served.items, object)[result[user, rank]]}
    return pl.DataFrame(columns, schema={"user": pl.String, "item": pl.String}).with_columns(rank=pl.Series(rank + 1))
