"""Canaries in someone else's training data: made here, trained on there, and what guessing their coins proves.

A canary is a made-up user with a few rare items A and another, B, who is in the training data if a coin says so. Its
witness is a made-up user with A alone, who always is. Who was trained on canary and witness alike recommends B to the
witness. No one sees the canary's own list: what is bounded is the ε of everyone else's (joint differential privacy),
for one user's row added or removed. `tasks.privacy.audits.one_run` has the theorem.
"""

from __future__ import annotations

import csv
import os
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.attacks.membership import Bools, Floats
from tasks.attacks.targets import shuffled_groups
from tasks.core.disk import atomic_write
from tasks.core.errors import ConfigurationError, DataError
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
        write_rows(new / path, [table.header, *table.rows, *planted.rows(included, rng)], table.separator)
        planted.write(new / coins, included)
        with folders.secret(new / page) as file:
            file.write(text.format(count=count, table=path, coins=coins, n_items=n_items, least=fewest))
    return [out / name for name in names_of_files]


class Planting(NamedTuple):
    """Canaries that are drawn, before any coin is thrown: ids, the item that only a canary has, and rows as text."""

    canaries: list[str]
    witnesses: list[str]
    items: list[str]
    of_canaries: list[list[list[str]]]
    of_witnesses: list[list[list[str]]]

    def rows(self, included: Bools, rng: np.random.Generator) -> list[list[str]]:
        """The rows of all witnesses and of the canaries that are in, in random order."""
        parts = [*self.of_witnesses, *(rows for rows, is_in in zip(self.of_canaries, included, strict=True) if is_in)]
        rows = [row for part in parts for row in part]
        return [rows[i] for i in rng.permutation(len(rows))]

    def write(self, path: Path, included: Bools) -> None:
        """Write the coins, for their owner alone."""
        coins = (str(int(is_in)) for is_in in included)
        write_rows(path, [("canary", "witness", "item", "included"), *zip(*self[:3], coins, strict=True)])


def draw(path: Path, table: TextTable, count: int, n_items: int, fewest: int, rng: np.random.Generator) -> Planting:
    """Draw canaries and their witnesses for a table; see `plant`.

    Raises:
        DataError: the table has fewer than n_items + 1 items that are common enough.
    """
    user, item, rating = table.columns["user"], table.columns["item"], table.columns.get("rating")
    names, counts = np.unique(np.array([row[item] for row in table.rows], dtype=object).astype(str), return_counts=True)
    names, counts = names[counts >= fewest], counts[counts >= fewest]
    rare = names[np.lexsort((rng.random(len(names)), counts))[: count * (n_items + 1)]]
    if len(rare) < n_items + 1:
        raise DataError(f"{path}: {len(rare)} items have {fewest} interactions or more; {n_items + 1} are needed")
    chosen = shuffled_groups(rare, count, n_items + 1, rng)
    ids = _new_ids({row[user] for row in table.rows}, 2 * count, rng)
    high = "" if rating is None else max((row[rating] for row in table.rows), key=float)

    def rows(name: str, items: NDArray[np.str_]) -> list[list[str]]:
        result = []
        for what in items:
            row = list(table.rows[int(rng.integers(len(table.rows)))])  # times and whatever else, of some real row
            row[user], row[item] = name, what
            if rating is not None:
                row[rating] = high
            result.append(row)
        return result

    canaries, witnesses = ids[:count], ids[count:]
    return Planting(
        canaries,
        witnesses,
        [str(items[-1]) for items in chosen],
        [rows(name, items) for name, items in zip(canaries, chosen, strict=True)],
        [rows(name, items[:-1]) for name, items in zip(witnesses, chosen, strict=True)],
    )


def write_rows(path: Path, rows: Iterable[Sequence[str]], separator: str = ",") -> None:
    """Write rows, of which the first is a header, as a CSV file that its owner alone can read."""
    with folders.secret(path) as file:
        csv.writer(file, delimiter=separator, lineterminator="\n").writerows(rows)


class Run(NamedTuple):
    """The canaries of a run, (m,): who was in, and how high each one's item stands with its witness."""

    planted: list[str]
    """The ids of canaries and witnesses."""
    included: Bools
    ranks: Floats
    """See `excess_rank`."""


def check_run(coins: Given, train: Given, lists: Given) -> Run:
    """The canaries of a run, which was trained on `train` and gave `lists`.

    Raises:
        DataError: the training data are not those that the canaries were put in, or no witness has a list.
    """
    trained, canaries, path = set(train.rows["user"]), set(coins.rows["canary"]), coins.taken.path
    for line, row in enumerate(coins.rows.iter_rows(named=True), start=2):
        if (row["canary"] in trained) != bool(row["included"]):
            state = "in but has no row in" if row["included"] else "out but is in"
            raise DataError(f"{path}:{line}: canary {row['canary']} is {state} {train.taken.path}; give the table")
        if row["witness"] not in trained:
            raise DataError(f"{path}:{line}: witness {row['witness']} has no row in {train.taken.path}")
        if row["witness"] in canaries:  # whose list nothing is proved by
            raise DataError(f"{path}:{line}: witness {row['witness']} is a canary; give the file as it was made")
    if set(lists.rows["user"]).isdisjoint(coins.rows["witness"]):  # of few it only proves less: no list has their items
        raise DataError(f"{path}: no witness has a list in {lists.taken.path}; recommend to all users, them too")
    planted = [*coins.rows["canary"], *coins.rows["witness"]]
    return Run(planted, coins.rows["included"].to_numpy() == 1, excess_rank(coins.rows, lists.rows))


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
    _, included, ranks = (np.concatenate(values) for values in zip(*runs, strict=True))
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
    m, each = len(scores), 1 - (1 - confidence) / len(RULES)
    best, provable = (0.0, 0, 0, "no rule proves anything"), 0.0
    for share_in, share_out in RULES:
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


def _new_ids(users: set[str], count: int, rng: np.random.Generator) -> list[str]:
    """Ids that no user has, whole numbers where all ids are: no one's role can be read off them."""
    if all(user.isascii() and user.isdigit() for user in users):
        first = max(map(int, users)) + 1
        return [str(first + int(i)) for i in rng.permutation(count)]
    new: dict[str, None] = {}
    while len(new) < count:
        if (name := f"u{rng.integers(16**10):010x}") not in users:
            new[name] = None
    return list(new)
