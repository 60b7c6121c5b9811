"""Why a mechanism of a ledger has no audit: a private line has either one or a reason that stands here."""

from __future__ import annotations

from tasks.privacy.accounting.ledger import LedgerEntry

REASONS: dict[str, str] = {
    "Gaussian noise on aggregates, in training": "the claim was audited for one step of propagation alone",
    "Gaussian noise on every user's prior": "no finite ε follows, and no worst case was built against the claim",
    "exponential mechanism on distances of word vectors": "the budget is per unit of distance, or of texts of another "
    "length than the audited one; what `texts` audits is a user's whole text",
    "exponential mechanism on word distances, for some words": "no finite ε follows; other words pass as they are",
    "functional mechanism on the ranking loss": "no finite ε follows, and no worst case was built against the claim",
    "left out": "nothing is released of it",
    "Gaussian noise on submissions computed with vectors of published ratings, towards a recommender who sees each "
    "submission": "with as many ratings of an item as here; the audit has four of them",
    "lists beside Gaussian noise on aggregates in training, of standard deviation σ²": "no finite ε follows: lists "
    "are computed without noise; what the noise is worth for aggregates has a line and an audit of its own",
    "lists beside Gaussian noise on adjacency matrices, once": "no finite ε follows; the list after an event tells it",
    "no aggregation": "nothing is aggregated",
    "sensitive ratings are not used": "nothing that is released depends on them",
    "sensitive ratings stay with their users": "nothing that is released depends on them",
    "user-level SGD with noise of each user's budget": "the worst case is of equal budgets under a constant bound",
    "within the users' gradients": "one guarantee with that of interactions, whose line says what was audited",
}
"""Mechanism as a ledger names it, or mechanism and observer of a line that claims nothing, which is of noise that was
made for another observer -> the reason, which follows "not audited: "."""


def reason(entry: LedgerEntry) -> str:
    """Why there is no audit of what an entry says; empty where nothing is said."""
    observed = f"{entry.mechanism}, towards {entry.observer}"
    of_observer = REASONS.get(observed, "") if entry.claimed_epsilon is None else ""
    return of_observer or REASONS.get(entry.mechanism, "")
