"""What δ is worth beside the number of users: said on every page that names a guarantee with one."""

from __future__ import annotations

import pytest

from tasks.privacy.accounting.gaps import large_delta
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.reporting import cards
from tasks.reporting.core import known_gaps, ledger
from tasks.reporting.sections import details
from tests.reporting.committed import read

ENTRY = LedgerEntry(
    protects="interaction",
    neighbouring="all interactions of a user",
    mechanism="DP-SGD",
    accounting="rigorous",
    claimed_epsilon=1.0,
    claimed_delta=0.001,
    accounted_epsilon=1.0,
    accounted_delta=0.001,
)


@pytest.mark.parametrize(("n_users", "probability"), [(943, "0.94"), (100, "0.1"), (1_000, "1")])
def test_a_delta_of_a_tenth_of_one_in_all_users_is_told(n_users: int, probability: str) -> None:
    (note,) = known_gaps.worth_of_delta(ENTRY, n_users)
    assert f"among {n_users:,} users" in note
    assert f"with probability {probability} would" in note


def test_a_small_delta_or_one_that_the_ledger_tells_of_is_not() -> None:
    assert known_gaps.worth_of_delta(ENTRY, 99) == ()
    known = ENTRY.model_copy(update={"gaps": large_delta(0.001, 2_000)})
    assert known_gaps.worth_of_delta(known, 2_000) == ()


@pytest.mark.parametrize("suite", ["dpvae", "gerai", "membership"])
def test_pages_of_users_tell_it_of_every_guarantee_for_a_user(suite: str) -> None:
    results, *_ = read(suite)
    lines = [line for line in ledger.lines(results) if line.entry.accounted_delta == 0.001]
    assert lines
    named = {gap for _, each in details.gaps(results) for gap in each}
    for line in lines:
        notes = known_gaps.worth_of_delta(line.entry, 943)
        assert set(notes) <= named
        card = cards.card(results, line.system, 10)
        assert not card or all(any(gap in str(block) for block in card) for gap in notes), line.system.label


def test_gaps_that_differ_in_their_numbers_alone_are_told_once() -> None:
    texts = ["In each of 180 steps: 0.1 each, 18 in all.", "In each of 1,050 steps: 0.05 each, 52.5 in all."]
    assert known_gaps.merged(texts) == "In each of 180 to 1,050 steps: 0.05 to 0.1 each, 18 to 52.5 in all."
    assert known_gaps.merged(texts[:1] * 2) == texts[0]
    named = [gap for _, gaps in details.gaps(read("demo")[0]) for gap in gaps]
    patterns = [known_gaps.NUMBER.sub("#", gap) for gap in named]
    assert len(patterns) == len(set(patterns))
