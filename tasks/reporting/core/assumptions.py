"""What finite guarantees take as fixed that a mechanism does not know, or its ledger did not say.

A mechanism's ε is of what it is given. Here a pipeline gives it prepared data, and nothing covers their preparation:
reports, leaderboards, cards and `dprec composed` say so, and it is a known gap of each finite line. What holds for some
lines alone stands in their `given`, in ledger.csv, too; `ledger.json` has what the stage wrote.
"""

from __future__ import annotations

from collections.abc import Iterable

from tasks.privacy.accounting.gaps import METRICS
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.reporting.core.layout import join_words
from tasks.reporting.core.results import unique

OF_PREPARED = (
    "Each ε is of prepared data: what was dropped, who is split how and in which order events stand is taken as fixed."
)
"""For whoever sees an ε without the known gaps of its line."""
AND = ", and "
"""Between what an entry takes as fixed and what is stated here."""

PREPARED = (
    "Neighbours differ in prepared data. What was dropped, which records are for training, and the order of events of "
    "one moment were decided from everybody's records, part of it by one stream of random numbers: one raw record less "
    "can change others'. All that is taken as fixed, and the budget does not cover it."
)
MASKS = "Masks of dropout come from the seed that noise comes from, and must stay as secret as that."
"""Of aggregates of learnt vectors: one visit less hands other masks to all items after it."""
WORDS = "which words all users together use often enough to be kept"
"""Of texts: rare words were dropped, so that one user's decide which of others' are released."""
OFTEN = "how often each item was visited"
"""Of noise by visit: an aggregate has that of each visit of its item, so its variance tells how many there are."""
ONCE = "that nobody visited an item twice"
"""Of noisy matrices, for which nothing finite follows otherwise."""


def state(entry: LedgerEntry) -> LedgerEntry:
    """The entry with all that its finite guarantee takes as fixed; the same where it has none."""
    if entry.accounted_epsilon is None:
        return entry
    given, gaps = "", [PREPARED, METRICS]
    if entry.protects == "text":
        given = WORDS
    elif entry.protects == "session graph":
        given = OFTEN if entry.accounting == "rigorous" else ONCE
        gaps += [MASKS] if "of every step" in entry.given else []
    if given in entry.given:
        given = ""
    return entry.model_copy(
        update={
            "given": AND.join(filter(None, (entry.given, given))),
            "gaps": tuple(dict.fromkeys((*entry.gaps, *gaps))),
        }
    )


def together(entries: Iterable[LedgerEntry]) -> str:
    """What any finite guarantee of some entries takes as fixed: each thing once."""
    given = [entry.given for entry in entries if entry.given and entry.accounted_epsilon is not None]
    parts = unique([part for text in given for part in text.split(AND)])
    return join_words([part for part in parts if not any(part in other for other in parts if other != part)])
