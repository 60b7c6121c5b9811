"""What an audit is about, with dense ids: who was trained on what, what is public, what was recommended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tasks.attacks.membership import Bools, Floats
from tasks.core.errors import DataError
from tasks.external.reading import Given

Ints = NDArray[np.int64]
NOBODY = -1
"""Where a list has ended."""


@dataclass(frozen=True)
class Pairs:
    """Interactions: (n,) users and items, and ratings where there are some."""

    users: Ints
    items: Ints
    ratings: Floats | None = None

    def matrix(self, n_users: int, n_items: int) -> csr_array:
        """(n_users, n_items) of 0 and 1, rows sorted."""
        matrix = csr_array((np.ones(len(self.users), np.float32), (self.users, self.items)), (n_users, n_items))
        matrix.sort_indices()
        return matrix

    def keys(self, n_items: int) -> Ints:
        """(n,) user × n_items + item."""
        return self.users * n_items + self.items


def row(matrix: csr_array, user: int) -> Ints:
    """The items of one user."""
    return np.asarray(matrix.indices[matrix.indptr[user] : matrix.indptr[user + 1]])


def keys_of(matrix: csr_array) -> Ints:
    """user × n_items + item of everything in a matrix, sorted."""
    users = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    return np.asarray(users * matrix.shape[1] + matrix.indices)


def listed(lists: Ints, n_items: int) -> csr_array:
    """(n, n_items) 1 where an item is in a list, of (n, K) lists."""
    rows, ranks = np.nonzero(lists != NOBODY)
    return Pairs(rows, lists[rows, ranks]).matrix(len(lists), n_items)


@dataclass(frozen=True)
class Scores:
    """Released scores of pairs, sorted by key = user × n_items + item."""

    keys: Ints
    values: Floats

    def lookup(self, keys: Ints) -> Floats:
        """The scores of these pairs; NaN where none is released."""
        if not len(self.keys):
            return np.full(len(keys), np.nan)
        rows = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[rows] == keys, self.values[rows], np.nan)

    def of_others(self, keys: Ints, n_items: int) -> Floats:
        """The control of `lookup`: what is released of the same items for other users, on average.

        Of an item that no one else has a score of it is the score itself: whose that is cannot be told.
        """
        values, items, scored = self.lookup(keys), keys % n_items, self.keys % n_items
        counts = np.bincount(scored, minlength=n_items)[items] - 1
        total = np.bincount(scored, self.values, n_items)[items] - values
        return np.where(counts > 0, (total / np.maximum(counts, 1)).round(9), values.round(9))


@dataclass(frozen=True)
class Shadow:
    """A run, audited or a shadow: keys of what it was trained on, user × n_items + item, sorted; and its lists."""

    keys: Ints
    lists: Ints


@dataclass(frozen=True)
class Inputs:
    """All that was given. Users and items have the ids of `user_names` and `item_names`.

    public: known and not trained on; pairs that were trained on are not among them.
    lists: (n_users, K), best first; `NOBODY` from where a list has ended.
    planted: (n_users,) canaries and their witnesses, whom no other question is asked about.
    """

    user_names: pl.Series
    item_names: pl.Series
    train: Pairs
    public: Pairs
    lists: Ints
    scores: Scores | None
    planted: Bools
    shadows: tuple[Shadow, ...]

    @property
    def n_users(self) -> int:
        """Users in any file."""
        return len(self.user_names)

    @property
    def n_items(self) -> int:
        """Items in any file."""
        return len(self.item_names)

    @cached_property
    def trained(self) -> csr_array:
        """(n_users, n_items) 1 where trained on."""
        return self.train.matrix(self.n_users, self.n_items)

    @cached_property
    def held_back(self) -> csr_array:
        """(n_users, n_items) 1 where public."""
        return self.public.matrix(self.n_users, self.n_items)

    @cached_property
    def known(self) -> csr_array:
        """(n_users, n_items) 1 where trained on or public."""
        return self.trained + self.held_back

    @cached_property
    def trained_keys(self) -> Ints:
        """What was trained on, as user × n_items + item, sorted."""
        return np.unique(self.train.keys(self.n_items))

    @cached_property
    def is_member(self) -> Bools:
        """(n_users,) trained on and not planted."""
        return (np.diff(self.trained.indptr) > 0) & ~self.planted

    @cached_property
    def has_list(self) -> Bools:
        """(n_users,) with a list of an item or more."""
        return np.asarray(self.lists[:, 0] != NOBODY)

    @cached_property
    def compared(self) -> Ints:
        """Members with a list of whom something was held back."""
        return np.flatnonzero(self.is_member & self.has_list & (np.diff(self.held_back.indptr) > 0))

    @cached_property
    def rated(self) -> bool:
        """Whether there are ratings; a column of equal numbers says that there was an interaction, and no more."""
        if self.train.ratings is None:
            return False
        held_back = np.empty(0) if self.public.ratings is None else self.public.ratings
        return bool(np.ptp(np.concatenate([self.train.ratings, held_back])))

    @cached_property
    def popularity(self) -> Ints:
        """(n_items,) users who have each item, in training or public."""
        return np.bincount(self.known.indices, minlength=self.n_items)


def assemble(
    train: Given,
    recommended: Given,
    public: Given | None,
    scores: Given | None,
    planted: Sequence[str],
    shadows: Iterable[tuple[Given, Given]],
) -> Inputs:
    """Give users and items dense ids and lay out what was read.

    planted: ids of canaries and witnesses; shadows: (training data, lists) of each shadow run.

    Raises:
        DataError: no list is of a user who was trained on, or a shadow run was trained on what the audited one was.
    """
    public_rows = train.rows.select("user", "item").clear() if public is None else public.rows
    user_names = pl.concat([train.rows["user"], public_rows["user"]]).unique().sort()
    item_names = pl.concat([train.rows["item"], public_rows["item"], recommended.rows["item"]]).unique().sort()
    n_users, n_items = len(user_names), len(item_names)
    ids = {"user": pl.Enum(user_names), "item": pl.Enum(item_names)}
    trained = _pairs(numbered(train.rows, ids))
    trained_keys = np.unique(trained.keys(n_items))
    held_back = numbered(public_rows, ids)
    held_back = held_back.filter(~np.isin(_pairs(held_back).keys(n_items), trained_keys))
    lists = _lists(numbered(recommended.rows, ids), n_users)
    if not np.isin(np.flatnonzero(lists[:, 0] != NOBODY), trained.users).any():
        raise DataError(f"{recommended.taken.path}: no list is of a user of {train.taken.path}; do the ids agree?")
    runs = []
    for trained_on, served in shadows:
        keys = np.unique(_pairs(numbered(trained_on.rows, ids)).keys(n_items))
        runs.append(Shadow(keys, _lists(numbered(served.rows, ids), n_users)))
        if (runs[-1].lists == NOBODY).all():
            raise DataError(f"{served.taken.path}: holds no user of {train.taken.path}; do the ids agree?")
        if np.array_equal(keys, trained_keys):
            path = trained_on.taken.path
            raise DataError(f"{path}: is what the audited run was trained on, which is no shadow of itself")
    return Inputs(
        user_names,
        item_names,
        trained,
        _pairs(held_back),
        lists,
        _scores(numbered(scores.rows, ids), n_items) if scores is not None else None,
        user_names.is_in(list(planted)).to_numpy(),
        tuple(runs),
    )


def numbered(rows: pl.DataFrame, ids: Mapping[str, pl.Enum]) -> pl.DataFrame:
    """The rows whose ids are all known, by number; column -> its ids."""
    codes = [pl.col(name).cast(code, strict=False).to_physical().cast(pl.Int64) for name, code in ids.items()]
    return rows.with_columns(codes).drop_nulls(list(ids))


def _pairs(rows: pl.DataFrame) -> Pairs:
    ratings = rows["rating"].to_numpy() if "rating" in rows.columns else None
    return Pairs(rows["user"].to_numpy(), rows["item"].to_numpy(), ratings)


def _lists(rows: pl.DataFrame, n_users: int) -> Ints:
    """(n_users, K) items."""
    ranks = rows.select(pl.col("rank").rank("ordinal").over("user").cast(pl.Int64) - 1)["rank"].to_numpy()
    result = np.full((n_users, int(ranks.max(initial=0)) + 1), NOBODY, np.int64)
    result[rows["user"].to_numpy(), ranks] = rows["item"].to_numpy()
    return result


def _scores(rows: pl.DataFrame, n_items: int) -> Scores:
    rows = rows.select("score", key=pl.col("user") * n_items + pl.col("item")).sort("key")
    return Scores(rows["key"].to_numpy(), rows["score"].to_numpy())


def sample(ids: Ints, size: int, rng: np.random.Generator) -> Ints:
    """All ids, or so many of them at random, sorted, where there are more."""
    return ids if len(ids) <= size else np.sort(rng.choice(ids, size, replace=False))
