"""Leakage: what attacks and audits of users' data show of the systems of a suite, one module for each kind."""

from __future__ import annotations

from tasks.results.leakage import accounts, attributes, interactions, membership, ratings, users, vectors
from tasks.results.leakage.kind import Evidence, evidence
from tasks.results.load import Results

KINDS = (
    membership.KIND,
    attributes.KIND,
    interactions.KIND,
    ratings.KIND,
    vectors.KIND,
    accounts.KIND,
    users.KIND,
)
"""In the order of a page."""


def collect(results: Results) -> list[Evidence]:
    """What a suite has of every kind, in the order of `KINDS`; kinds of which it has nothing are left out."""
    return [known for kind in KINDS if (known := evidence(results, kind)) is not None]
