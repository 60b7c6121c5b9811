"""What PrivSR and its baselines spent (docs/methods.md §9)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tasks.privacy.accounting.account import accounted_entry
from tasks.privacy.accounting.gaps import EPOCH, FLOATS, GIVEN_EPOCH, ONCE, OWN_FILE, UNUSED
from tasks.privacy.accounting.ledger import Accounting, Event, LedgerEntry, unbounded_entry, untouched_entry
from tasks.privacy.mechanisms.shared_noise import SharedNoise
from tasks.privacy.remarks import KnownGap, because, gap
from tasks.privacy.terms import Observer

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


class Messages(NamedTuple):
    """Noisy messages of one kind, sent to be added up; some receivers see more than their sums."""

    noise: SharedNoise
    sensitivity: float
    """How far one sender moves a sum."""
    iterations: int
    senders: NDArray[np.integer]
    """(n_sums,) how many there are of each sum; zeros where that is not known."""

    def event(self, shares_known: float) -> tuple[Event, int]:
        """See `SharedNoise.event`; where the number of senders is not known, of one sender alone."""
        senders = self.senders if self.senders.any() else np.ones(1, np.int64)
        return self.noise.event(self.sensitivity, senders, shares_known, self.iterations)


class View(NamedTuple):
    """What one observer sees of submissions."""

    observer: Observer
    shares_known: float
    """Of the noise of an item's sum, how many raters' the observer knows; infinity: submissions one by one."""
    event: Event
    gaps: tuple[KnownGap, ...]


def views(submissions: Messages, colluders: int) -> list[View]:
    """What each kind of observer sees; all users receive item vectors, and with them the sums of submissions.

    Args:
        colluders: raters of an item who know each other's shares of its noise.
    """
    together, _ = submissions.event(0)
    pooled, _ = submissions.event(colluders)
    single, most = submissions.event(math.inf)
    worst = () if math.isinf(submissions.noise.colluders) else (gap("most-raters", most_raters=most),)
    return [
        View("recommender-of-sums", 0, together, (gap("submissions-added-up"),)),
        View("co-raters", colluders, pooled, (gap("shares-known", shares=colluders),)),
        View("friend", 0, together, ()),
        View("recommender-of-submissions", math.inf, single, worst),
    ]


def published(epsilon: float, submissions: Messages, friends: Messages | None) -> list[LedgerEntry]:
    """The entries of the published noise, one for each observer.

    Args:
        epsilon: claimed.
        submissions: about sensitive ratings.
        friends: what they send; None without friends.
    """
    iterations = submissions.iterations
    untrusted = gap("untrusted-recommender")
    more: dict[Observer, tuple[KnownGap, ...]] = {
        "recommender-of-sums": (untrusted,),
        "recommender-of-submissions": (untrusted, gap("single-submission")),
        "friend": (gap("friend-draws"),),
    }
    entries = []
    for view in views(submissions, colluders=1):
        events = [view.event]
        if view.observer == "friend":
            if friends is None:
                continue
            events.append(friends.event(math.inf)[0])
        entry = unbounded_entry(
            "rating",
            "sensitive-rating",
            "shared-laplace",
            because("user-vectors-in-messages"),
            claimed=(epsilon, 0.0),
            gaps=(
                gap("claim-for-one-iteration", iterations=iterations, epsilon=epsilon),
                *more.get(view.observer, ()), *view.gaps, EPOCH, gap("who-rated-shown"), *USER_LOCAL, FLOATS,
            ),
            events=(*events, Event(kind="messages-with-private-vectors", count=iterations)),
        )  # fmt: skip
        entries.append(entry.model_copy(update={"observer": view.observer}))
    return entries


def rigorous(
    epsilon: float, delta: float, towards: Observer, colluders: int, submissions: Messages
) -> list[LedgerEntry]:
    """The entries of noise calibrated to the total, one for each observer; first the one that it is calibrated for.

    Friends' messages and submissions about published ratings are functions of what is published and of item vectors.

    Args:
        epsilon, delta: the budget of all iterations together.
        towards: the observer that the noise is calibrated for.
        colluders: see `views`.
        submissions: about sensitive ratings; of all iterations that are planned, no more were done.
    """

    def entry(view: View) -> LedgerEntry:
        return accounted_entry(
            [view.event],
            delta,
            protects="rating",
            unit="sensitive-rating",
            neighbouring="replace",
            observer=view.observer,
            mechanism="submissions-gaussian",
            claimed_epsilon=epsilon if view.observer == towards else None,
            given=GIVEN_EPOCH,
            gaps=(*view.gaps, EPOCH, *ONCE, gap("who-rated-shown"), *USER_LOCAL, FLOATS),
        )

    is_certain = submissions.senders.any()
    seen = [
        view for view in views(submissions, colluders) if is_certain or view.shares_known <= submissions.noise.colluders
    ]
    return [entry(view) for view in sorted(seen, key=lambda view: view.observer != towards)]
