"""Why a mechanism of a ledger has no audit: a private line has either one or a reason that stands here."""

from __future__ import annotations

from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.terms import Mechanism, Unaudited

REASONS: dict[Mechanism, Unaudited] = {
    "aggregates-training": "one-step-alone",
    "exponential-some-words": "other-words",
    "exponential-words": "other-length",
    "functional": "no-bound-and-no-case",
    "left-out": "nothing-released",
    "no-aggregation": "nothing-aggregated",
    "noiseless-lists": "lists-exact",
    "personal-sgd": "equal-budgets",
    "prior-gaussian": "no-bound-and-no-case",
    "sensitive-local": "nothing-depends",
    "sensitive-unused": "nothing-depends",
    "within-gradients": "with-interactions",
}


def is_private(entry: LedgerEntry) -> bool:
    """Whether a ledger claims or accounts a finite budget."""
    return entry.claimed_epsilon is not None or entry.accounted_epsilon is not None


def reason(entry: LedgerEntry) -> Unaudited | None:
    """Why there is no audit of what an entry says; None where no reason is known."""
    if entry.accounted_epsilon == 0:
        return "nothing-depends"
    if entry.mechanism == "shared-laplace" and entry.observer not in ("", "recommender-of-sums"):
        return "sees-more"
    return REASONS.get(entry.mechanism)
