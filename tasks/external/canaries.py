"""Canaries in someone else's training data: made here, trained on there, and what guessing their coins proves.

A canary is a made-up user with a few rare items A and another, B, who is in the training data if a coin says so. Its
witness is a made-up user with A alone, who always is. Who was trained on canary and witness alike recommends B to the
witness. No one sees the canary's own list: what is bounded is the ε of everyone else's (joint differential privacy),
for one user's row added or removed. `tasks.privacy.audits.one_run` has the theorem.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.attacks.membership import Bools, Floats
from tasks.attacks.targets import shuffled_groups
from tasks.core.disk import atomic_write
from tasks.core.errors import ConfigurationError, DataError
from tasks.datasets.text import allow
from tasks.external import folders
from tasks.external.findings import Canaries
from tasks.external.reading import Given, Names, TextTable, text_table
from tasks.privacy.audits.one_run import count_correct, lower_bound

UNIT = (
    "one user's whole row in the training data, added or removed; the observer sees every list but that user's own, "
    "and knows all other users' rows"
)
RULES = ((1 / 8, 0.0), (1 / 4, 0.0), (3 / 8, 0.0), (1 / 8, 1 / 8), (1 / 4, 1 / 4), (1 / 2, 1 / 2))
"""Shares of the canaries that are guessed in (the highest scores) and out (the lowest), fixed before anything is seen.
The bound is the best of theirs, each at a confidence that makes up for the choice (Bonferroni)."""
FEW, MANY = (1 / 32, 1 / 32), 800
"""Another rule, for leaks about few, and from how many canaries on: of fewer it costs others more than it proves."""


def plant(train: Path, count: int, n_items: int, fewest: int, out: Path, names: Names) -> list[Path]:
    """Write the training data with canaries, the coins, and a page that says what to do; return their paths.

    Args:
        train: a CSV file of interactions.
        count: canaries. Half of them, about, will be in.
        n_items: rare items that a canary shares with its witness, besides the one that only the canary has.
        fewest: interactions that an item must have to count as rare; a system that drops rarer items needs this.

    Raises:
        DataError: the file is not readable, or has fewer than n_items + 1 such items.
        ConfigurationError: `out` is there already.
    """
    table = text_table(train, names)
    rng = np.random.default_rng(secrets.randbits(128))
    planted = draw(train, table, count, n_items, fewest, rng)
    included = rng.random(count) < 0.5
    if os.path.lexists(out):
        raise ConfigurationError(f"--out {out}: is there already; choose another folder")
    path, coins, page = names_of_files = "train-with-canaries.csv", "canaries.csv", "what-to-do.txt"
    text = (folders.TEMPLATES / page).read_text(encoding="utf-8")
    with atomic_write(out) as new:
        folders.make(new)
        table.write(new / path, pl.concat([table.rows, planted.rows(included, rng)]))
        planted.write(new / coins, included)
        with folders.secret(new / page) as file:
            file.write(text.format(count=count, table=path, coins=coins, n_items=n_items, least=fewest))
    return [out / name for name in names_of_files]


class Planting(NamedTuple):
    """Canaries that are drawn, before any coin is thrown."""

    coins: pl.DataFrame
    """Ids of each canary and its witness, and the item that only the canary has: canary, witness, item."""
    of_canaries: pl.DataFrame
    """Rows of the training data, of each canary as many."""
    of_witnesses: pl.DataFrame

    def rows(self, included: Bools, rng: np.random.Generator) -> pl.DataFrame:
        """The rows of all witnesses and of the canaries that are in, in random order."""
        each = len(self.of_canaries) // len(included)
        rows = pl.concat([self.of_witnesses, self.of_canaries.filter(included.repeat(each))])
        return rows[rng.permutation(len(rows))]

    def write(self, path: Path, included: Bools) -> None:
        """Write the coins, for their owner alone."""
        with folders.secret(path) as file:
            self.coins.with_columns(included=pl.Series(included).cast(pl.Int8)).write_csv(file)


def draw(path: Path, table: TextTable, count: int, n_items: int, fewest: int, rng: np.random.Generator) -> Planting:
    """Draw canaries and their witnesses for a table; see `plant`.

    Raises:
        DataError: the table has fewer than n_items + 1 items that are common enough.
    """
    user, item, rating = (table.columns.get(role, "") for role in ("user", "item", "rating"))
    common = table.rows.group_by(item=item).len("count").filter(pl.col("count") >= fewest).sort("item")
    names, counts = common
    rare = np.lexsort((rng.random(len(names)), counts))[: count * (n_items + 1)]
    if len(rare) < n_items + 1:
        raise DataError(f"{path}: {len(rare)} items have {fewest} interactions or more; {n_items + 1} are needed")
    chosen = shuffled_groups(rare, count, n_items + 1, rng)
    ids = pl.Series(_new_ids(table.rows[user], 2 * count, rng))

    def rows(users: pl.Series, items: NDArray[np.integer]) -> pl.DataFrame:
        copies = table.rows[rng.integers(len(table.rows), size=items.size)]  # times and whatever else, of real rows
        values = {user: users.gather(np.arange(count).repeat(items.shape[1])), item: names.gather(items.ravel())}
        if rating:
            values[rating] = pl.repeat(max(table.rows[rating], key=float), items.size, eager=True)
        return copies.with_columns(**values)

    coins = pl.DataFrame({"canary": ids[:count], "witness": ids[count:], "item": names.gather(chosen[:, -1])})
    return Planting(coins, rows(coins["canary"], chosen), rows(coins["witness"], chosen[:, :-1]))


class Run(NamedTuple):
    """The canaries of a run, (m,): who was in, and how high each one's item stands with its witness."""

    included: Bools
    ranks: Floats
    """See `excess_rank`."""


def check_run(coins: Given, train: Given, lists: Given) -> Run:
    """The canaries of a run, which was trained on `train` and gave `lists`.

    Raises:
        DataError: the training data are not those that the canaries were put in, or no witness has a list.
    """
    rows, path, table = coins.rows, Path(coins.taken.path), f"{train.taken.path}; give the table that has the canaries"
    trained, witness = train.rows["user"].unique().implode(), pl.col("witness")
    agrees = pl.col("canary").is_in(trained) == (pl.col("included") == 1)
    allow(path, rows, "included", agrees, f"whether the canary is in {table}", 2)
    allow(path, rows, "witness", witness.is_in(trained), f"a user of {table}", 2)
    no_canary = ~witness.is_in(rows["canary"].implode())  # by whose list nothing is proved
    allow(path, rows, "witness", no_canary, "a user without a coin; give the file as it was made", 2)
    if (
        not rows["witness"].is_in(lists.rows["user"].implode()).any()
    ):  # of few it only proves less: no list has their items
        raise DataError(f"{path}: no witness has a list in {lists.taken.path}; recommend to all users, them too")
    return Run(rows["included"].to_numpy() == 1, excess_rank(rows, lists.rows))


def audit(
    runs: Sequence[Run],
    delta: float,
    claimed: float | None = None,
    control: float | None = None,
    scores: Floats | None = None,
    confidence: float = 0.95,
) -> Canaries:
    """The largest ε that the guesses of any rule prove, and the largest that any could have proved.

    Of several runs with coins of their own all are guessed together: each coin concerns one run, so the runs together
    are as private as one of them (parallel composition), and the theorem holds for all coins at once.

    Args:
        control: what the same audit proves of the same system without its protection.
        scores: (m,) `scored` of the canaries of all runs; with them ε is the larger of two bounds (Bonferroni).
    """
    included, ranks = (np.concatenate(values) for values in zip(*runs, strict=True))
    signals = [ranks] if scores is None else [ranks, scores]
    each = 1 - (1 - confidence) / len(signals)
    best = max((bound(values, included, delta, claimed, control, each) for values in signals), key=lambda b: b.epsilon)
    return best.model_copy(update={"confidence": confidence})


def bound(
    scores: Floats,
    included: Bools,
    delta: float,
    claimed: float | None,
    control: float | None,
    confidence: float,
) -> Canaries:
    """The best bound of all rules, from the scores of canaries and their coins, both (m,).

    A claim is consistent only with a control that the same claim would have been refuted for.
    """
    m = len(scores)
    rules = (*RULES, FEW) if m >= MANY else RULES
    each = 1 - (1 - confidence) / len(rules)
    best, provable = (0.0, 0, 0, "no rule proves anything"), 0.0
    for share_in, share_out in rules:
        n_in, n_out = int(m * share_in), int(m * share_out)
        correct = count_correct(scores, included, n_in, n_out)
        proved = lower_bound(m, n_in + n_out, correct, delta, each)
        provable = max(provable, lower_bound(m, n_in + n_out, n_in + n_out, delta, each))
        if proved > best[0]:
            best = proved, n_in + n_out, correct, f"highest {n_in} in, lowest {n_out} out"
    epsilon, n_guesses, correct, rule = best
    claim: Literal["refuted", "consistent", "inconclusive", "none"] = "none"
    if claimed is not None:
        powerful = control is not None and control > claimed
        claim = "refuted" if epsilon > claimed else "consistent" if powerful else "inconclusive"
    return Canaries(
        epsilon=epsilon,
        provable=provable,
        control=control,
        delta=delta,
        confidence=confidence,
        canaries=m,
        rule=rule,
        guesses=n_guesses,
        correct=correct,
        claimed=claimed,
        claim=claim,
        unit=UNIT,
    )


def scored(canaries: pl.DataFrame, scores: pl.DataFrame) -> Floats:
    """The released score of each canary's item for its witness: (m,); the lowest of these where there is none."""
    pairs = canaries.select(user="witness", item="item")
    released = pairs.join(scores, on=["user", "item"], how="left", maintain_order="left")["score"]
    return released.fill_null(released.min()).fill_null(0.0).to_numpy()


def excess_rank(canaries: pl.DataFrame, lists: pl.DataFrame) -> Floats:
    """How high each canary's item stands with its witness: (m,).

    The reciprocal rank in the list, less its mean in the lists of all witnesses: what is recommended to all of them
    says nothing of one canary.

    canaries, lists: rows as `tasks.external.reading` gives them.
    """
    pairs = canaries.select(user="witness", item="item")
    ranks = lists.select("user", "item", value=1 / pl.col("rank"))
    mean = ranks.join(pairs, on="user", how="semi").group_by("item").agg(mean=pl.col("value").sum() / len(pairs))
    both = pairs.join(ranks, on=["user", "item"], how="left", maintain_order="left")
    both = both.join(mean, on="item", how="left", maintain_order="left").fill_null(0.0)
    return np.asarray((both["value"] - both["mean"]).round(9), np.float64)  # one list for all users is one value


def _new_ids(users: pl.Series, count: int, rng: np.random.Generator) -> list[str]:
    """Ids that no user has, whole numbers where all ids are: no one's role can be read off them."""
    if users.str.contains("^[0-9]+$").all():
        first = max(map(int, users.unique())) + 1
        return [str(first + i) for i in rng.permutation(count).tolist()]
    used, new = set(users), dict[str, None]()
    while len(new) < count:
        if (name := f"u{rng.integers(16**10):010x}") not in used:
            new[name] = None
    return list(new)
