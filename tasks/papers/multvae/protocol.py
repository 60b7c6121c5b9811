"""The split of Mult-VAE (Liang, Krishnan, Hoffman and Jebara, WWW 2018, section 4.1): strong generalisation.

Users with enough interactions are split, not their interactions. Of users who are held out, for validation and for the
test, a model learns nothing; most of their items are given to the fitted model (fold-in), the others are to be found.

As the authors' code does: items that no training user has are left out, also of held-out users; of n items of a
held-out user ⌊n × `target_share`⌋ at random are to be found. A held-out user who then has fewer than `min_items` is
left out, since the authors' code gives such a user nothing to find.

**In the tables** test users come first, then those of validation, then training users, each in the order of their
original ids. `split` is `train` for what may be known: all rows of training users, and what is folded in of the others.
`valid` and `test` are the rows to be found. So the users of a split are those numbered below the last one who has it.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field, model_validator

from tasks.core.errors import DataError
from tasks.core.hashing import Uniforms
from tasks.core.raw import RawTables
from tasks.evaluation.splits import TEST, TRAIN, VALID, random_ranks
from tasks.papers import protocol
from tasks.papers.protocol import Prepared, RangeOptions


class Options(RangeOptions):
    """Which interactions are kept, and how many users are held out."""

    min_items: int = Field(ge=2)
    """Users with fewer are left out."""
    held_out: float = Field(gt=0, lt=0.5)
    """Share of the users who validate, and of those of the test; each user at random."""
    target_share: float = Field(gt=0, lt=1)
    """Share of a held-out user's items that are to be found; rounded down."""
    split_seed: int = Field(ge=0)

    @model_validator(mode="after")
    def _everybody_has_a_target(self) -> Options:
        if not n_targets(np.array(self.min_items), self.target_share):
            raise ValueError("min_items times target_share must be 1 or more: else a user has nothing to be found")
        return self


def prepare(raw: RawTables, options: Options) -> Prepared:
    """See the module; one row per user and item, the most recent one.

    Raises:
        DataError: nothing is left, or no one is held out or trained on.
    """
    coded = protocol.encode(raw, options.keep)
    rows, counts = coded.rows, [coded.published, protocol.count_coded("in-ranges", coded.rows)]
    if not raw.schema.unique_pairs:
        rows = protocol.keep_latest(rows)
        counts.append(protocol.count_coded("one-row-per-pair", rows))
    rows = rows.select("user", "item", "rating", "timestamp").sort("user", "item")

    sizes = np.bincount(rows["user"].to_numpy(), minlength=len(coded.user_ids))
    rows = rows.filter(pl.Series((sizes >= options.min_items)[rows["user"].to_numpy()]))
    counts.append(protocol.count_coded("users-with", rows, least=options.min_items))

    draws = coded.draws(options.split_seed)
    test, valid, training = draw_users(np.flatnonzero(sizes >= options.min_items), options.held_out, draws)
    rows = _known_items(rows, training, len(coded.user_ids), len(coded.item_ids))
    sizes = np.bincount(rows["user"].to_numpy(), minlength=len(coded.user_ids))
    test, valid = (users[sizes[users] >= options.min_items] for users in (test, valid))
    order = np.concatenate([test, valid, training])
    numbers = np.full(len(coded.user_ids), -1, np.int32)
    numbers[order] = np.arange(len(order), dtype=np.int32)
    rows = rows.filter(pl.Series(numbers[rows["user"].to_numpy()] >= 0))
    users = rows["user"].to_numpy()
    targets = random_ranks(users, rows["item"].to_numpy(), draws) < n_targets(sizes, options.target_share)[users]
    part = np.repeat([TEST, VALID, TRAIN], [len(test), len(valid), len(training)])[numbers[users]]
    rows = rows.with_columns(protocol.split_names(np.where(targets, part, TRAIN)))
    items, item_ids = protocol.renumber_survivors(rows["item"].to_numpy(), coded.item_ids)
    rows = rows.with_columns(pl.Series("user", numbers[users]), pl.Series("item", items)).sort("user", "item")
    counts.append(protocol.count_coded("of-training-users-items", rows))

    originals = coded.user_ids["original"].gather(order)
    user_ids = pl.DataFrame([pl.Series("id", np.arange(len(order), dtype=np.int32)), originals])
    return protocol.prepared(raw, rows, user_ids, item_ids, counts)


def draw_users(
    users: NDArray[np.integer], share: float, draws: Uniforms
) -> tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.integer]]:
    """Users of the test, of validation and of training, drawn from (n,) ascending ids; each ascending.

    Raises:
        DataError: one of these is empty.
    """
    part = np.minimum(draws.of_users("held out")[users] // share, 2)
    test, valid, training = (users[part == number] for number in range(3))
    if not (len(test) and len(valid) and len(training)):
        raise DataError(
            f"interactions: of {len(users)} users with enough items {len(test)} test, {len(valid)} validate and "
            f"{len(training)} train; correct `held_out` or `split_seed` in params.yaml"
        )
    return test, valid, training


def n_targets(sizes: NDArray[np.int64], target_share: float) -> NDArray[np.int64]:
    """⌊n × share⌋ for each n of `sizes`; the margin: 100 * 0.29 = 28.999999999999996."""
    return np.floor(sizes * target_share + 1e-9).astype(np.int64)


def _known_items(rows: pl.DataFrame, training: NDArray[np.integer], n_users: int, n_items: int) -> pl.DataFrame:
    users, items = rows["user"].to_numpy(), rows["item"].to_numpy()
    trained, in_training = np.zeros(n_users, bool), np.zeros(n_items, bool)
    trained[training] = True
    in_training[items[trained[users]]] = True
    return rows.filter(pl.Series(in_training[items]))
