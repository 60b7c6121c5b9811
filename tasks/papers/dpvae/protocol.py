"""DP-VAE's protocol (docs/methods.md §4): bounded contributions and a random split per user.

**Lower bound.** The paper's section 4.1.1 omits users *and items* with fewer interactions than the bound. Here that is
done once, on the counts before anything is omitted; `omit: [users]` gives the published counts of ML-100K.

**Upper bound.** Users above it keep their most recent interactions; of those of the same time, the ones with the
highest original item ids.

**Original data.** Without a bound (`omega: null`) all users, items and interactions stay, split in the same way: what
Table 5 compares with.

**Sample.** Ratings are drawn one by one (docs/choices-dpvae.md: the paper must have drawn Netflix's in another way).

**Repeats** merge as docs/methods.md §4 says, in the order of time, those of the same time from the lowest rating to the
highest. Where nothing says which was first, their mean is taken. What was a rating on a scale is then a number within
its ends.

Columns are sorted as one packed (user, item) key and handled one after another: a hundred million interactions take
less than 5 GB.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field, model_validator

from tasks.core.errors import DataError
from tasks.core.hashing import Uniforms
from tasks.core.raw import RawTables
from tasks.evaluation.splits import positions, within_users
from tasks.papers import protocol
from tasks.papers.protocol import ListedOptions, Prepared, RangeOptions


class Options(RangeOptions, ListedOptions):
    """Which interactions are kept, how much one user may contribute, and the split."""

    sample: float | None = Field(gt=0, lt=1)
    """This share of all interactions, each at random; those of one user with one item together. None: all."""
    omega: float | None = Field(gt=0, lt=1)
    """ω: error rate that the contribution bound allows. None, as are then δ, d and p_min: no bound, which leaves the
    original data of the paper's Table 5."""
    delta: float | None = Field(gt=0, lt=1)
    """δ: probability that the bound fails; not the δ of differential privacy."""
    d: float | None = Field(gt=0)
    """Dimension of the hypothesis space (docs/methods.md §4: about 85 on ML-100K)."""
    p_min: float | None = Field(gt=0, le=1)
    """Lowest weight of a user's contribution: the lower bound is this share of the upper one."""
    omit: tuple[Literal["users", "items"], ...]
    """Which of them are left out below the lower bound; no user where there is none."""
    test_share: float = Field(gt=0, lt=1)
    """Share of each user's interactions."""
    valid_share: float = Field(gt=0, lt=1)
    """Share of each user's interactions: 0.1 and a test share of 0.1 splits 8:1:1."""
    split_seed: int = Field(ge=0)
    """Of the sample and of the split."""

    @model_validator(mode="after")
    def _something_to_learn_from(self) -> Options:
        if self.test_share + self.valid_share >= 1:
            raise ValueError("test_share and valid_share leave nothing to train on")
        return self

    @model_validator(mode="after")
    def _bound_is_complete(self) -> Options:
        named = [name for name in ("omega", "delta", "d", "p_min") if getattr(self, name) is not None]
        if 0 < len(named) < 4:
            raise ValueError(f"omega, delta, d and p_min make one bound: null for all of them, or none (has {named})")
        if self.omit and not named:
            raise ValueError("omit: no one is below a bound that is null; say []")
        return self

    def bounds(self) -> tuple[int, int] | None:
        """See the function `bounds`; None for no bound."""
        if self.omega is None or self.delta is None or self.d is None or self.p_min is None:
            return None
        return bounds(self.omega, self.delta, self.d, self.p_min)


def prepare(raw: RawTables, options: Options) -> Prepared:
    """Users and items that are left after all steps, numbered in the order of their original ids; one row per pair.

    Raises:
        DataError: nothing is left; users are above the bound and nothing says which interactions are the most recent.
    """
    time = protocol.ordering(raw)
    start = protocol.encode(raw, options.keep, options.listed)
    user_ids, item_ids, published, draws = (
        start.user_ids,
        start.item_ids,
        start.published,
        start.draws(options.split_seed),
    )
    columns = start.rows.select("user", "item", "rating", *([pl.col(time).alias("time")] if time else [])).to_dict()
    del start  # so that `in_order` can let go of them
    rows = in_order(columns)
    counts = [published, protocol.count_coded("in-ranges", rows)]
    if options.sample is not None:
        rows = sample(rows, options.sample, draws)
        counts.append(protocol.count_coded("sampled", rows))
    rows = merge(rows)
    counts.append(protocol.count_coded("one-row-per-pair", rows))

    if bound := options.bounds():
        lower, upper = bound
        rows = rows.filter(pl.Series(frequent(rows, lower, options.omit)))
        omitted = "-and-".join(sorted({*options.omit}, reverse=True)) or "none"
        counts.append(protocol.count_coded(f"{omitted}-omitted", rows, least=lower))
        rows = most_recent(rows, upper)
        counts.append(protocol.count_coded("most-recent", rows, most=upper))

    codes = within_users(
        rows["user"].to_numpy(),
        rows["item"].to_numpy(),
        draws,
        test_share=options.test_share,
        valid_share=options.valid_share / (1 - options.test_share),
    )
    users, user_ids = protocol.renumber_survivors(rows["user"].to_numpy(), user_ids, options.listed)
    items, item_ids = protocol.renumber_survivors(rows["item"].to_numpy(), item_ids, options.listed)
    rows = rows.drop("user", "item")
    interactions = rows.select(
        pl.Series("user", users),
        pl.Series("item", items),
        "rating",
        (pl.col("time") if raw.schema.time == "seconds" else pl.lit(None, pl.Int64)).alias("timestamp"),
        protocol.split_names(codes),
    )
    minimum_counts = "items" in options.omit
    return protocol.prepared(
        raw, interactions, user_ids, item_ids, counts, minimum_counts=minimum_counts, listed=options.listed
    )


def bounds(omega: float, delta: float, d: float, p_min: float) -> tuple[int, int]:
    """The fewest and the most interactions of a user that are used, to the nearest integer as the paper prints them.

    p_min/ω (d + 1 + log 1/δ) and 1/ω (d + 1 + log 1/δ), natural logarithm (section 3.2 of the paper).
    """
    upper = (d + 1 + math.log(1 / delta)) / omega
    return round(p_min * upper), round(upper)


def in_order(columns: dict[str, pl.Series]) -> pl.DataFrame:
    """Rows (user, item, rating, perhaps time) by user and item, then time, then rating.

    Args:
        columns: taken out one after another, so that none is held twice.
    """
    n_items = int(columns["item"].max()) + 1  # type: ignore[arg-type]  # there is a row
    key = pl.DataFrame(columns).select(pl.col("user").cast(pl.Int64) * n_items + pl.col("item")).to_series().to_numpy()
    order = pl.Series(argsort(key).astype(np.uint32))
    del key
    # Gathering from the many chunks that streaming leaves takes ten times as long.
    rows = pl.DataFrame([columns.pop(name).rechunk().gather(order) for name in list(columns)])
    again = np.flatnonzero(_is_repeated(rows))
    if len(again):
        by = [name for name in ("user", "item", "time", "rating") if name in rows.columns]
        repeats = rows[again].sort(by)  # the rows of a pair lie together, so they stay in their places
        rows = rows.with_columns(rows[name].scatter(again, repeats[name]) for name in by[2:])
    return rows


def argsort(key: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places of the numbers (0 or more) in rising order, equal ones as they come.

    A number and its place, packed into one, are sorted without an index: in a quarter of the time and half the memory.
    """
    bits = len(key).bit_length()
    if not len(key) or int(key.max()).bit_length() + bits > 63:
        return np.argsort(key, kind="stable")
    packed = key << bits
    packed |= np.arange(len(key))
    packed.sort()
    packed &= (1 << bits) - 1
    return packed


def sample(rows: pl.DataFrame, share: float, draws: Uniforms) -> pl.DataFrame:
    """A share of the rows, in their order."""
    uniform = draws.of_pairs("sample", rows["user"].to_numpy(), rows["item"].to_numpy())
    return rows.filter(pl.Series(uniform < share))


def merge(rows: pl.DataFrame) -> pl.DataFrame:
    """One row per pair: ratings r^1..r^m in the order of time become Σ r^t 2t/(m(m+1)), and the time is the last one.

    Without times all r^t weigh 1/m. Where a rating is missing, so is the merged one.

    Args:
        rows: in the order of `in_order`.
    """
    again = _is_repeated(rows)
    if not again.any():
        return rows
    first = ~_as_before(rows)
    repeats = rows.filter(pl.Series(again))
    starts = np.flatnonzero(first[again])
    m = np.diff(np.append(starts, repeats.height))
    weight = 1 / np.repeat(m, m)
    if "time" in rows.columns:
        weight *= 2 * (positions(m) + 1) / np.repeat(m + 1, m)
    ratings = repeats["rating"].cast(pl.Float64).fill_null(math.nan).to_numpy()
    at = np.flatnonzero(again & first)
    total = pl.Series(np.add.reduceat(ratings * weight, starts), dtype=pl.Float32).fill_nan(None)
    columns = {"rating": rows["rating"].scatter(at, total)}
    if "time" in rows.columns:
        columns["time"] = rows["time"].scatter(at, repeats["time"].gather(starts + m - 1))
    return rows.with_columns(**columns).filter(pl.Series(first))


def frequent(rows: pl.DataFrame, lower: int, omit: tuple[str, ...]) -> NDArray[np.bool_]:
    """The rows whose user and item (those that `omit` names) have `lower` rows or more; (n_rows,)."""
    result = np.ones(rows.height, dtype=bool)
    for name in omit:
        codes = rows[name.removesuffix("s")].to_numpy()
        result &= (np.bincount(codes) >= lower)[codes]
    return result


def most_recent(rows: pl.DataFrame, n: int) -> pl.DataFrame:
    """The last n rows of each user in time, of the same time those with the highest items; in their order.

    Raises:
        DataError: a user has more, and there are no times.
    """
    users = rows["user"].to_numpy()
    above = np.bincount(users) > n
    if not above.any():
        return rows
    if "time" not in rows.columns:
        raise DataError(
            f"interactions: {above.sum()} users have more than {n}, and nothing says which are the most recent; raise "
            "`d` or lower `omega` in params.yaml, or take a data set that has time stamps"
        )
    at = np.flatnonzero(above[users])  # by user and item, and the sort is stable
    by_time = np.lexsort((rows["time"].gather(at).to_numpy(), users[at]))
    length = np.bincount(users[at])
    early = by_time[positions(length) < np.repeat(length - n, length)]
    stays = np.ones(rows.height, dtype=bool)
    stays[at[early]] = False
    return rows.filter(pl.Series(stays))


def _as_before(rows: pl.DataFrame) -> NDArray[np.bool_]:
    """Whether a row has the user and item of the one before; (n_rows,)."""
    users, items = rows["user"].to_numpy(), rows["item"].to_numpy()
    result = np.zeros(rows.height, dtype=bool)
    result[1:] = (users[1:] == users[:-1]) & (items[1:] == items[:-1])
    return result


def _is_repeated(rows: pl.DataFrame) -> NDArray[np.bool_]:
    """Whether another row has the same user and item; (n_rows,) of rows where those lie together."""
    result = _as_before(rows)
    result[:-1] |= result[1:]
    return result
