"""Synthetic people for Yelp's replicas: where they live, what they like, how active they are, who is whose friend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tasks.datasets.synthetic.skew import Floats, Ints, Opinions, Strata, activity, blocks

AREAS = 11
AREA_SHARES = 0.75 ** np.arange(AREAS)
TOPICS = {
    "Restaurants": 0.40, "Food": 0.13, "Nightlife": 0.09, "Shopping": 0.07, "Beauty & Spas": 0.07,
    "Home Services": 0.06, "Health & Medical": 0.04, "Automotive": 0.04, "Hotels & Travel": 0.04,
    "Active Life": 0.03, "Pets": 0.02, "Arts & Entertainment": 0.01,
}  # fmt: skip
"""Kinds of businesses and their shares of reviews. Area and topic make a stratum: area * number of topics + topic."""
TOPIC_SHARES = np.array(list(TOPICS.values()))
AT_HOME, NEARBY, TASTE = 0.85, 0.7, 1.2
"""Share of reviews in the user's own area, share of friendships among neighbours of the same taste, spread of taste."""
FAME = 1.2
"""How much more often the active are somebody's friend: log of weight for one standard deviation of propensity."""
BLOCK = 1_000_000
"""Rows that are rated at a time."""


@dataclass(frozen=True)
class People:
    """n users; row i of every array is user i."""

    home: Ints
    """(n,) area"""
    taste: Floats
    """(n, n_topics) log of taste"""
    propensity: Floats
    """(n,) about standard normal: who has much of it reviews much, and gets much."""


def some_people(rng: np.random.Generator, n: int) -> People:
    """n of them."""
    home = rng.choice(AREAS, n, p=AREA_SHARES / AREA_SHARES.sum())
    taste = np.round(TASTE * rng.standard_normal((n, len(TOPICS))), 6)
    return People(home, taste, np.round(rng.standard_normal(n), 6))


def by_activity(rng: np.random.Generator, propensity: Floats, total: int, most: int, sigma: float) -> Ints:
    """How much each user has, (n,): `skew.activity` of one or more, the largest for those with most propensity."""
    counts = np.empty(len(propensity), dtype=np.int64)
    number = activity(rng, len(propensity), total, least=1, most=most, sigma=sigma)
    counts[np.argsort(propensity, kind="stable")] = np.sort(number)
    return counts


def friendships(rng: np.random.Generator, people: People, n_members: int, n_pairs: int) -> tuple[Ints, Ints]:
    """About `n_pairs` friendships of so many users, each once (two arrays of users).

    All of these users have one, the most active many. Most are between neighbours who like the same topic best.
    """
    n = len(people.home)
    members = np.sort(np.argsort(people.propensity + rng.standard_normal(n), kind="stable")[-n_members:])
    n_pairs = min(max(n_pairs, n_members), n_members * (n_members - 1) // 4)
    cell = (people.home * len(TOPICS) + people.taste.argmax(axis=1))[members]
    fame = np.ceil(np.exp(FAME * people.propensity[members]) * 1000)
    near = Strata(cell, fame, AREAS * len(TOPICS))
    far = Strata(np.zeros(n_members, dtype=np.int64), fame, 1)

    def anybody(number: int) -> Ints:
        return far.pick(rng, np.zeros(number, dtype=np.int64))

    keys = np.empty(0, dtype=np.int64)
    source = np.arange(n_members)
    while len(keys) < n_pairs:
        target = anybody(len(source))
        close = rng.random(len(source)) < NEARBY
        target[close] = near.pick(rng, cell[source[close]])
        target = np.where(target == source, (source + rng.integers(1, n_members, len(source))) % n_members, target)
        new = np.setdiff1d(np.minimum(source, target) * n_members + np.maximum(source, target), keys)
        keys = np.concatenate([keys, rng.permutation(new)[: n_pairs - len(keys)]])
        source = anybody((n_pairs - len(keys)) * 5 // 4 + 16)
    return members[keys // n_members], members[keys % n_members]


def both_ways(pairs: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
    """Every friendship as seen by either friend, in the order of the first and then of the second."""
    source, target = np.concatenate(pairs), np.concatenate(pairs[::-1])
    order = np.lexsort((target, source))
    return source[order], target[order]


def stars_of(
    rng: np.random.Generator, items: Strata, people: People, rows: tuple[Ints, Ints, Ints], levels: Sequence[float]
) -> Ints:
    """Stars from 1, (n_rows,).

    Args:
        items: businesses; their strata are areas and topics.
        rows: how many each user has, and user and business of all rows, users ascending.
        levels: shares of 1, 2, ... stars.
    """
    quota, user, item = rows
    opinions = Opinions(rng, items.weight, levels)
    ends = np.cumsum(quota)
    stars = np.empty(len(user), dtype=np.int64)
    for begin, end in blocks(quota, BLOCK):
        here = slice(ends[begin] - quota[begin], ends[end - 1])
        liking = people.taste[user[here], items.stratum[item[here]] % len(TOPICS)] / TASTE
        stars[here] = 1 + opinions(rng, user[here] - begin, item[here], liking, end - begin)
    return stars
