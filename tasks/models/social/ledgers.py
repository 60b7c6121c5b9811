"""What PrivSR and its baselines spent (docs/methods.md §9)."""

from __future__ import annotations

from typing import Literal

from tasks.privacy.accounting.account import accounted_entry
from tasks.privacy.accounting.gaps import EPOCH, FLOATS, GIVEN_EPOCH, ONCE, OWN_FILE, UNUSED
from tasks.privacy.accounting.ledger import Accounting, Event, LedgerEntry, unbounded_entry, untouched_entry
from tasks.privacy.terms import KnownGap, Observer, because, gap

USER_LOCAL = (gap("own-predictions"), OWN_FILE)


def unused_entry() -> LedgerEntry:
    """The entry of a model that reads published ratings alone."""
    return untouched_entry(
        "rating",
        "sensitive-rating",
        "sensitive-unused",
        because("nothing-sensitive"),
        given=GIVEN_EPOCH,
        gaps=(EPOCH, *UNUSED),
    )


def without_noise(accounting: Accounting) -> LedgerEntry:
    """The entry of a run with an infinite budget."""
    return unbounded_entry(
        "rating",
        "sensitive-rating",
        "none",
        because("infinite-budget"),
        accounting=accounting,
        gaps=(EPOCH, gap("who-rated-shown")),
        events=(),
    )


def published_entry(epsilon: float, sensitive: float, friends: float | None, iterations: int) -> LedgerEntry:
    """The entry of the published noise.

    Args:
        epsilon: claimed.
        sensitive: ε by which the noise on submissions about sensitive ratings is scaled, in every iteration.
        friends: ε of the noise on what friends send; None without friends.
        iterations: how many there were.
    """
    events = [
        Event(kind="laplace", parameters={"noise_multiplier": 1 / budget}, count=iterations)
        for budget in (sensitive, friends)
        if budget is not None
    ]
    friend = () if friends is None else (gap("friend-draws"),)
    return unbounded_entry(
        "rating",
        "sensitive-rating",
        "shared-laplace",
        because("user-vectors-in-messages"),
        claimed=(epsilon, 0.0),
        gaps=(
            gap("claim-for-one-iteration", iterations=iterations, epsilon=epsilon),
            gap("untrusted-recommender"),
            gap("single-submission"),
            *friend,
            EPOCH,
            gap("who-rated-shown"),
            *USER_LOCAL,
            FLOATS,
        ),
        events=(*events, Event(kind="messages-with-private-vectors", count=iterations)),
    )


def rigorous(
    epsilon: float,
    delta: float,
    towards: Literal["sums", "recommender"],
    noise_multiplier: float,
    iterations: int,
    most_raters: int,
) -> list[LedgerEntry]:
    """The entries of noise calibrated to the total.

    Args:
        epsilon, delta: asked for, in all.
        towards: see `PrivSRConfig.towards`.
        noise_multiplier: of an item's sum if towards sums, of every submission otherwise.
        iterations: planned; no more were done.
        most_raters: largest number of sensitive ratings of one item; 0 if it is not known, or if there are none.

    Returns:
        One entry, or two if towards sums: what the same noise is worth to someone who sees each submission.
    """

    def entry(multiplier: float, observer: Observer, claimed: float | None, remark: KnownGap | None) -> LedgerEntry:
        return accounted_entry(
            [Event(kind="gaussian", parameters={"noise_multiplier": multiplier}, count=iterations)],
            delta,
            protects="rating",
            unit="sensitive-rating",
            neighbouring="replace",
            observer=observer,
            mechanism="submissions-gaussian",
            claimed_epsilon=claimed,
            given=GIVEN_EPOCH,
            gaps=(*filter(None, [remark]), EPOCH, *ONCE, gap("who-rated-shown"), *USER_LOCAL, FLOATS),
        )

    if towards == "recommender":
        return [entry(noise_multiplier, "recommender-of-submissions", epsilon, None)]
    entries = [entry(noise_multiplier, "recommender-of-sums", epsilon, gap("submissions-added-up"))]
    if most_raters:
        worst = gap("most-raters", most_raters=most_raters)
        entries.append(entry(noise_multiplier / most_raters**0.5, "recommender-of-submissions", None, worst))
    return entries
