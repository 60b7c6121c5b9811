"""Canaries in somebody else's training data: made here, trained on there, and what guessing their coins proves.

A canary is a made-up user with a few rare items A and another, B, who is in the training data if a coin says so. Its
witness is a made-up user with A alone, who always is. Who was trained on canary and witness alike recommends B to the
witness. Nobody sees the canary's own list: what is bounded is the ε of everybody else's (joint differential privacy),
for one user's row added or removed. `tasks.privacy.audits.one_run` has the theorem.
"""

from __future__ import annotations

import csv
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.errors import ConfigurationError, DataError
from tasks.external.findings import Canaries
from tasks.external.inputs import Inputs
from tasks.external.reading import Given, Names, role_column, text_table
from tasks.external.signals import Floats
from tasks.privacy.audits.one_run import lower_bound

UNIT = (
    "one user's whole row in the training data, added or removed; the observer sees every list but that user's own, "
    "and knows all other users' rows"
)
RULES = ((1 / 8, 0.0), (1 / 4, 0.0), (3 / 8, 0.0), (1 / 8, 1 / 8), (1 / 4, 1 / 4), (1 / 2, 1 / 2))
"""Shares of the canaries that are guessed in (the highest scores) and out (the lowest), fixed before anything is seen.
The bound is the best of theirs, each at a confidence that makes up for the choice (Bonferroni)."""


def plant(train: Path, count: int, n_items: int, least: int, out: Path, names: Names, seed: int | None) -> list[Path]:
    """Write the training data with canaries, the coins, and a page that says what to do; return their paths.

    Args:
        train: a CSV file of interactions.
        count: canaries. Half of them, about, will be in.
        n_items: rare items that a canary shares with its witness, besides the one that only the canary has.
        least: interactions that an item must have to count as rare; a system that drops rarer items needs this.
        seed: of a test; None, as always otherwise, draws the coins from the operating system.

    Raises:
        DataError: the file is not readable, or has fewer than n_items + 1 such items.
        ConfigurationError: no canaries or no items are asked for.
    """
    if count < 1 or n_items < 1:
        raise ConfigurationError(f"--count and --items must be 1 or more (are {count} and {n_items})")
    user, item = (str(role_column(train, role, names)) for role in ("user", "item"))
    rating = role_column(train, "rating", names, required=False)
    header, rows, separator = text_table(train)
    wrong = next((n for n, row in enumerate(rows, start=2) if len(row) != len(header)), None)
    if wrong or not rows:
        raise DataError(f"{train}:{wrong or 2}: the row has not the {len(header)} fields of the header")
    rng = np.random.default_rng(secrets.randbits(128) if seed is None else seed)
    place = {name: header.index(name) for name in (user, item)}
    rare = _rare_items([row[place[item]] for row in rows], least, count * (n_items + 1), rng)
    if len(rare) < n_items + 1:
        raise DataError(f"{train}: {len(rare)} items have {least} interactions or more; {n_items + 1} are needed")
    hands = len(rare) // (n_items + 1)  # of one deal; once more where there are too few items
    deals = [rng.permutation(rare)[: hands * (n_items + 1)] for _ in range(-(-count // hands))]
    chosen = np.concatenate(deals).reshape(-1, n_items + 1)[:count]
    ids = _new_ids([row[place[user]] for row in rows], 2 * count, rng)
    included = rng.random(count) < 0.5
    high = max((row[header.index(rating)] for row in rows), key=_number) if rating else ""

    def made(who: str, what: str) -> list[str]:
        row = list(rows[int(rng.integers(len(rows)))])  # times and whatever else there is, of some real row
        row[place[user]], row[place[item]] = who, what
        if rating:
            row[header.index(rating)] = high
        return row

    new, secret = [], []
    for items, canary, witness, is_in in zip(chosen, ids[:count], ids[count:], included, strict=True):
        new += [made(witness, item_id) for item_id in items[:-1]]
        of_canary = [made(canary, item_id) for item_id in items]
        new += of_canary if is_in else []
        secret.append([canary, witness, str(items[-1]), str(int(is_in))])
    out.mkdir(parents=True, exist_ok=True)
    table = out / "train-with-canaries.csv"
    with table.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=separator, lineterminator="\n").writerows(
            [header, *rows, *(new[i] for i in rng.permutation(len(new)))]
        )
    coins = out / "canaries.csv"
    handle = os.open(coins, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.fchmod(handle, 0o600)
    with os.fdopen(handle, "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([["canary", "witness", "item", "included"], *secret])
    page = out / "what-to-do.txt"
    page.write_text(_PAGE.format(count=count, table=table.name, coins=coins.name, n_items=n_items, least=least))
    return [table, coins, page]


def check(delta: float, claimed: float | None, coins: Path | None) -> None:
    """Refuse what no audit can decide.

    Raises:
        ConfigurationError: delta is outside [0, 1), the claimed epsilon is negative, or nothing could refute it.
    """
    if not 0 <= delta < 1:
        raise ConfigurationError(f"--delta must be in [0, 1), not {delta}")
    if claimed is not None and not claimed >= 0:
        raise ConfigurationError(f"--claimed-epsilon must be 0 or more, not {claimed}")
    if claimed is not None and coins is None:
        raise ConfigurationError("--claimed-epsilon needs --canaries; `dprec audit canaries` makes them")


def verify(given: Given, train: Given, listed: Sequence[str]) -> list[str]:
    """The ids of all planted users.

    Raises:
        DataError: the training data are not those that the canaries were put in, or a witness has no list.
    """
    trained = set(train.rows["user"])
    with_list = set(listed)
    path = given.taken.path
    for line, row in enumerate(given.rows.iter_rows(named=True), start=2):
        if (row["canary"] in trained) != bool(row["included"]):
            state = "in but has no row in" if row["included"] else "out but is in"
            raise DataError(f"{path}:{line}: canary {row['canary']} is {state} {train.taken.path}; give the table")
        if row["witness"] not in trained:
            raise DataError(f"{path}:{line}: witness {row['witness']} has no row in {train.taken.path}")
        if row["witness"] not in with_list:
            raise DataError(f"{path}:{line}: witness {row['witness']} has no list; recommend to all users, them too")
    return [*given.rows["canary"], *given.rows["witness"]]


def audit(given: Given, inputs: Inputs, delta: float, claimed: float | None, confidence: float = 0.95) -> Canaries:
    """The largest ε that the guesses of any rule prove, and the largest that any could have proved."""
    included = given.rows["included"].to_numpy() == 1
    return bound(standing(given.rows, inputs), included, delta, claimed, confidence)


def bound(
    scores: Floats, included: NDArray[np.bool_], delta: float, claimed: float | None, confidence: float
) -> Canaries:
    """The best bound of all rules, from the scores of canaries and their coins, both (m,)."""
    m = len(scores)
    order = np.argsort(-scores, kind="stable")
    each = 1 - (1 - confidence) / len(RULES)
    best = (0.0, 0, 0, "no rule proves anything")
    provable = 0.0
    for share_in, share_out in RULES:
        n_in, n_out = int(m * share_in), int(m * share_out)
        correct = int(included[order[:n_in]].sum() + (~included[order[m - n_out :]]).sum())
        proved = lower_bound(m, n_in + n_out, correct, delta, each)
        provable = max(provable, lower_bound(m, n_in + n_out, n_in + n_out, delta, each))
        if proved > best[0]:
            best = proved, n_in + n_out, correct, f"highest {n_in} in, lowest {n_out} out"
    epsilon, n_guesses, correct, rule = best
    claim: Literal["refuted", "consistent", "inconclusive", "none"] = "none"
    if claimed is not None:
        claim = "refuted" if epsilon > claimed else "consistent" if provable > claimed else "inconclusive"
    return Canaries(
        epsilon=epsilon,
        provable=provable,
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


def standing(canaries: pl.DataFrame, inputs: Inputs) -> Floats:
    """How high each canary's item stands with its witness: (m,).

    The released score, where it is there for all of them. Else the reciprocal rank in the list, less its mean in the
    lists of all witnesses: what is recommended to all of them says nothing of one canary.
    """
    users = dict(zip(inputs.user_names, range(inputs.n_users), strict=True))
    items = dict(zip(inputs.item_names, range(inputs.n_items), strict=True))
    witnesses = np.array([users[name] for name in canaries["witness"]])
    rare = np.array([items.get(name, -2) for name in canaries["item"]])
    if inputs.scores is not None:
        scores = inputs.scores.lookup(witnesses * inputs.n_items + rare)
        if not np.isnan(scores).any():
            return scores
    lists = inputs.lists[witnesses]
    ranks = 1 / (1.0 + np.arange(lists.shape[1]))
    own = ((lists == rare[:, None]) * ranks).sum(axis=1)
    counts = np.zeros(inputs.n_items + 2)
    np.add.at(counts, lists.ravel(), np.broadcast_to(ranks, lists.shape).ravel())  # NOBODY is the last place
    return np.asarray(own - np.where(rare >= 0, counts[rare], 0.0) / len(lists), np.float64)


def _rare_items(items: Sequence[str], least: int, wanted: int, rng: np.random.Generator) -> NDArray[np.str_]:
    names, counts = np.unique(np.array(items, dtype=object).astype(str), return_counts=True)
    names, counts = names[counts >= least], counts[counts >= least]
    return np.asarray(names[np.lexsort((rng.random(len(names)), counts))[:wanted]])


def _new_ids(users: Sequence[str], count: int, rng: np.random.Generator) -> list[str]:
    """Ids that no user has, whole numbers where all ids are: nobody's role can be read off them."""
    if all(user.isascii() and user.isdigit() for user in users):
        first = max(map(int, users)) + 1
        return [str(first + int(i)) for i in rng.permutation(count)]
    taken = set(users)
    made: list[str] = []
    while len(made) < count:
        if (name := f"u{rng.integers(16**10):010x}") not in taken:
            taken.add(name)
            made.append(name)
    return made


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise DataError(f"rating {text!r} is no number; name the column with --rating-column") from None


_PAGE = """What to do with these files

1. {coins} holds the coins. It is yours alone: whoever knows it can pass the audit. Do not train on it.
2. Train your system on {table}, once, exactly as you do on your own data: same settings, same noise.
   It has two new users for each of {count} canaries. A witness has {n_items} items; a canary, if its coin put it
   in, the same and one more. If your system drops users with fewer than {n_items} interactions or items with
   fewer than {least}, make the files again with --items or --least.
3. Write the lists of all users of {table}, the new ones too, as you always do (user, item, rank).
4. dprec audit --train {table} --recommendations LISTS.csv --canaries {coins}
   with --claimed-epsilon and --delta if you claim some.
5. Do not deploy what was trained on {table}.

What is bounded: the epsilon of everybody else's lists for one user's whole row, added or removed, at 95 %.
The coins are thrown once. Of several systems or settings trained on this table, the best bound of all needs a
correction for their number; for independent audits make the files anew.
"""
