"""What PrivSR and its baselines spent (docs/methods.md §9)."""

from __future__ import annotations

from typing import Literal

from tasks.privacy.accounting.account import accounted_entry
from tasks.privacy.accounting.gaps import CONFIGURATION, EPOCH, FLOATS, GIVEN_EPOCH, METRICS, ONCE, OWN_FILE, PREPARED
from tasks.privacy.accounting.ledger import Accounting, Event, LedgerEntry, unbounded_entry

VALUE = "the value of one sensitive rating replaced"
RIGOROUS = "Gaussian noise on submissions computed with vectors of published ratings"
"""The mechanism of rigorous accounting."""
NOISY_SUMS = "Laplace noise on items' sums of sensitive ratings"
"""The mechanism of `tasks.models.social.rating_means.PrivateRatingMeans`."""
PRESENCE = "Which items a user rated is not hidden: users with a rating of an item send messages about it."
OWN = (
    "A user's own predictions are computed from that user's own ratings, so the guarantee is towards everyone else "
    "(joint differential privacy). " + OWN_FILE
)
UNUSED = (CONFIGURATION, METRICS, PREPARED)
"""Gaps of a model to which no sensitive rating goes."""


def unused_entry() -> LedgerEntry:
    """The entry of a model that reads published ratings alone."""
    return LedgerEntry(
        protects="rating",
        neighbouring=VALUE,
        mechanism="sensitive ratings are not used",
        accounting="rigorous",
        claimed_epsilon=None,
        claimed_delta=0.0,
        accounted_epsilon=0.0,
        accounted_delta=0.0,
        given=GIVEN_EPOCH,
        reason="What is learnt does not depend on any sensitive rating. Published ratings are not protected.",
        gaps=(EPOCH, *UNUSED),
    )


def without_noise(accounting: Accounting) -> LedgerEntry:
    """The entry of a run with an infinite budget."""
    reason = "An infinite budget trains without noise."
    return unbounded_entry("rating", VALUE, "none", reason, accounting=accounting, gaps=(EPOCH, PRESENCE), events=())


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
    gaps = [
        f"Noise is fresh in each of {iterations} iterations and the claim is for one: if one were "
        f"{epsilon:g}-differentially private, all would be {iterations * epsilon:g}-differentially private.",
        "The untrusted recommender draws h itself: towards it the noise is Gaussian of known variance, not Laplace, "
        "and h can be small.",
        "A single submission carries 1/√n of the noise of the sum of n, and the recommender receives each.",
        EPOCH,
        PRESENCE,
        OWN,
        FLOATS,
    ]
    if friends is not None:
        gaps.insert(3, "A friend draws h as well, and receives each other friend's message.")
    return unbounded_entry(
        "rating",
        VALUE,
        f"fresh Laplace noise of ε = {sensitive:g} shared among the senders of an item, in every iteration",
        "A user's vector depends on all ratings of the user and is in all of the user's messages, those about "
        "other ratings included, which have noise for their own rating alone and no bound for this change; so not even "
        "one iteration after the first is covered by the claim.",
        claimed=(epsilon, 0.0),
        gaps=tuple(gaps),
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
        One entry, or two if towards sums: what the same noise is worth to somebody who sees each submission.
    """

    def entry(multiplier: float, observer: str, claimed: float | None, gaps: tuple[str, ...]) -> LedgerEntry:
        return accounted_entry(
            [Event(kind="gaussian", parameters={"noise_multiplier": multiplier}, count=iterations)],
            delta,
            protects="rating",
            neighbouring=f"{VALUE}, towards {observer}",
            observer=observer,
            mechanism=RIGOROUS,
            claimed_epsilon=claimed,
            given=GIVEN_EPOCH,
            gaps=gaps,
        )

    gaps = (EPOCH, *ONCE, PRESENCE, OWN, FLOATS)
    each, together = "a recommender who sees each submission", "one who sees sums per item"
    if towards == "recommender":
        return [entry(noise_multiplier, each, epsilon, gaps)]
    sums = "Submissions are added up before anybody sees them, as secure aggregation would do; that is assumed."
    entries = [entry(noise_multiplier, together, epsilon, (sums, *gaps))]
    if most_raters:
        worst = f"For a rating of the item with most sensitive ratings, {most_raters}: others are better protected."
        entries.append(entry(noise_multiplier / most_raters**0.5, each, None, (worst, *gaps)))
    return entries
