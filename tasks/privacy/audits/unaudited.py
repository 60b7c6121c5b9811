"""Why a mechanism of a ledger has no audit: a private line has either one or a reason that stands here."""

from __future__ import annotations

from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.terms import Mechanism, Unaudited

REASONS: dict[Mechanism, Unaudited] = {
    "aggregates-training": "one-step-alone",
    "exponential-some-words": "other-words",
    "exponential-words": "other-length",
    "functional": "no-bound-and-no-case",
    "noiseless-lists": "lists-exact",
    "personal-sgd": "equal-budgets",
    "prior-gaussian": "no-bound-and-no-case",
    "within-gradients": "with-interactions",
}
TRUE_OF: dict[Unaudited, set[str]] = {
    "equal-budgets": {"uniform-budgets", "clip-from-gradients"}, "one-step-alone": {"claim-for-one-aggregation"},
    "other-length": {"near-word", "word"}, "with-interactions": {"feature"},
}  # fmt: skip
"""Reason -> the unit, kind of data, reason or gap of lines that it is true of. Others: lines without a finite ε."""


def is_private(entry: LedgerEntry) -> bool:
    """Whether a ledger claims or accounts a finite budget."""
    return entry.claimed_epsilon is not None or entry.accounted_epsilon is not None


def reason(entry: LedgerEntry) -> Unaudited | None:
    """Why there is no audit of what an entry says; None where no reason is known that is true of it."""
    if entry.accounted_epsilon == 0:
        return "nothing-depends"
    if entry.mechanism == "shared-laplace" and entry.observer not in ("", "recommender-of-sums"):
        return "sees-more"
    why = REASONS.get(entry.mechanism)
    if why not in TRUE_OF:
        return why if entry.accounted_epsilon is None else None
    terms = (term.id for term in (*entry.reasons, *entry.gaps))
    return None if TRUE_OF[why].isdisjoint({entry.unit, entry.protects, *terms}) else why
