"""What is known to lie between guarantee and run, as pages tell it: the ledger's own gaps, and what δ is worth."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tasks.privacy.accounting.gaps import large_delta
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.reporting.core import ledger
from tasks.reporting.core.results import Results

SHOWN_FROM = 0.1
"""δ times the number of users from which it is shown."""

NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")


def of(results: Results, entry: LedgerEntry) -> tuple[str, ...]:
    """Every known gap of an entry, with the remedy of those that have one."""
    return (*ledger.gaps(entry), *worth_of_delta(entry, _n_users(results)))


def worth_of_delta(entry: LedgerEntry, n_users: int) -> tuple[str, ...]:
    """That δ allows one random user's data to be published with some probability; nothing where that is below a tenth.

    Publishing every user's data with probability δ each is (0, δ)-private and publishes δ n users on average
    (Dwork and Roth 2014, section 2.3).
    """
    delta = max(entry.accounted_delta, entry.claimed_delta)
    probability = delta * n_users
    if probability < SHOWN_FROM or set(large_delta(delta, n_users)) & set(entry.gaps):
        return ()
    return (
        f"δ = {delta:g} among {n_users:,} users: publishing everything about one random user with probability "
        f"{min(probability, 1.0):.2g} would meet it, too.",
    )


def merged(texts: Sequence[str]) -> str:
    """Sentences that differ in their numbers alone, as one: each number that differs becomes "least to most"."""
    numbers = [NUMBER.findall(text) for text in texts]
    ranges = iter([_range(values) for values in zip(*numbers, strict=True)])
    return NUMBER.sub(lambda _: next(ranges), texts[0])


def _range(values: tuple[str, ...]) -> str:
    ascending = sorted(values, key=lambda value: float(value.replace(",", "")))
    least, most = ascending[0], ascending[-1]
    return least if least == most else f"{least} to {most}"


def _n_users(results: Results) -> int:
    return int(results.processed.counts[-1]["users"])
