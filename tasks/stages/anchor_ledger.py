"""What the anchors of an alignment reveal of who is whom, for the ledgers of systems that learn from them."""

from __future__ import annotations

from tasks.config.networks import Alignment
from tasks.privacy.accounting.ledger import Event, LedgerEntry


def anchors_entry(options: Alignment) -> LedgerEntry | None:
    """The entry of the anchors that an alignment hands on; None where it found them without a true one.

    Found anchors follow from embeddings or attributes alone, and cost nothing beside what those did. What a release
    gives away of who is whom is measured, not accounted: no mechanism hides it.
    """
    if options.anchors != "truth":
        return None
    return LedgerEntry(
        protects="anchor",
        neighbouring="any change",
        mechanism="none",
        accounting="published",
        claimed_epsilon=None,
        claimed_delta=0.0,
        accounted_epsilon=None,
        accounted_delta=0.0,
        reason="The model learns from true anchors without noise.",
        events=(Event(kind="non-private"),),
    )
