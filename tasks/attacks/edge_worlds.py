"""The trials of edge inference: whose sequences are attacked, how their other worlds differ, and what each world shows.

Each target is attacked by itself (`tasks.attacks.edges`); what is reported is the mean over targets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tasks.attacks import edges
from tasks.core.sequences import Sequences

SHORTEST = 4
"""Events of a sequence that has two interior ones to swap."""
Lists = Callable[[int, NDArray[np.int32], int], NDArray[np.int32]]
"""(user, items, number of the first draw of noise) -> lists after every event in independent inferences:
(trials, n_events, k)."""


@dataclass(frozen=True)
class Target:
    """A tested user's sequence, and the interior event that is removed, or swapped with the next."""

    user: int
    items: NDArray[np.int32]
    position: int


@dataclass(frozen=True)
class Released:
    """What an attacker sees of a system, and knows of it."""

    states: Callable[[int], NDArray[np.float64]]
    """User -> the states that its aggregates are sums of: (n_items, d)."""
    sigma: float
    """Standard deviation of the noise on aggregates."""
    releases: int
    """How often the same aggregates are released, with independent noise."""
    lists: Lists
    n_items: int
    twice: bool = False
    """Whether each of these releases has what precedes a visit twice; see `edges.aggregate_difference`."""


@dataclass(frozen=True)
class Trials:
    """How often the attack on each target is repeated, and its seed."""

    trials: int
    """In each of the two worlds."""
    seed: int


def choose_targets(tested: Sequences, trained: NDArray[np.integer], n: int, seed: int) -> list[Target]:
    """At most n tested sequences with enough events, drawn by the seed, and an interior event of each.

    Args:
        tested: sequences of the test.
        trained: users who trained; others are no targets.
    """
    rng = np.random.default_rng(seed)
    chosen = []
    for row in rng.permutation(np.flatnonzero(np.isin(tested.users, trained) & (tested.lengths >= SHORTEST)))[:n]:
        items = tested.items[tested.indptr[row] : tested.indptr[row + 1]]
        chosen.append(Target(int(tested.users[row]), items, int(rng.integers(1, len(items) - 2))))
    return chosen


def remove_visit(items: NDArray[np.integer], position: int) -> NDArray[np.integer]:
    """World 1 of a sequence, world 0, in which the visit at `position` never happened: (n - 1,).

    Where no other visit has that item, the graph loses a node too, which `tasks.privacy.mechanisms.aggregation` takes
    as public.
    """
    return np.delete(items, position)


def swap_visits(items: NDArray[np.integer], position: int) -> NDArray[np.integer]:
    """World 1 of a sequence, world 0, with the visits at `position` and the next one swapped: (n,).

    Items and last item stay, transitions change, and aggregates of rows of norm C move by at most √18 C. Under the
    guarantee of `tasks.privacy.mechanisms.aggregation` this is no neighbour: it is a visit removed and another added.
    """
    swapped = items.copy()
    swapped[[position, position + 1]] = items[[position + 1, position]]
    return swapped


WORLDS: dict[str, Callable[[NDArray[np.integer], int], NDArray[np.integer]]] = {
    "removed": remove_visit,
    "swapped": swap_visits,
    "last": lambda items, _: items[:-1],
}


def listed_events(length: int, missing: int | None) -> NDArray[np.int64]:
    """Which event's list is shown at the time of each of `length` events of world 0: (length,), numbered as in a world.

    At a time at which a world has no event, the list after the event before is shown.

    Args:
        missing: the event of world 0 that the other world lacks, 1 or later; None where none is lacking.
    """
    times = np.arange(length)
    return times if missing is None else times - (times >= missing)


def attack(system: Released, targets: list[Target], how: Trials) -> Iterator[dict[str, object]]:
    """All attacks, on all targets in all worlds: records of `edges.EDGES` without system, setting and budget."""
    rng = np.random.default_rng([how.seed, 1])
    for world, pairs in _other_worlds(targets):
        aggregates = []
        for target, changed in pairs:
            states, twice = system.states(target.user), system.twice and world != "last"  # which has no next visit
            difference = edges.aggregate_difference(target.items, changed, states, twice=twice)
            aggregates.append(edges.aggregate_advantage(difference, system.sigma, system.releases, how.trials, rng))
        yield _record("aggregates", world, aggregates, how)
        yield from _attack_lists(system.lists, world, pairs, system.n_items, how, rng)


def attack_controls(
    targets: list[Target], popularity: NDArray[np.integer], k: int, how: Trials
) -> Iterator[tuple[str, dict[str, object]]]:
    """The attack on lists that no event has changed: the most popular items, and a random run of the catalogue.

    Args:
        popularity: (n_items,) events of each item.
        k: length of the lists.

    Yields:
        One of `edges.CONTROLS` with a record as of `attack`.
    """
    popular = np.argsort(-popularity, kind="stable")[:k].astype(np.int32)
    rng = np.random.default_rng([how.seed, 2])

    def most_popular(_: int, items: NDArray[np.int32], __: int) -> NDArray[np.int32]:
        return np.broadcast_to(popular, (how.trials, len(items), len(popular)))

    def random(_: int, items: NDArray[np.int32], __: int) -> NDArray[np.int32]:
        start = rng.integers(0, len(popularity), (how.trials, len(items), 1))
        return ((start + np.arange(len(popular))) % len(popularity)).astype(np.int32)

    for control, lists in zip(edges.CONTROLS, (most_popular, random), strict=True):
        for world, pairs in _other_worlds(targets):
            for row in _attack_lists(lists, world, pairs, len(popularity), how, rng):
                yield control, row


def _attack_lists(
    lists: Lists,
    world: str,
    pairs: list[tuple[Target, NDArray[np.int32]]],
    n_items: int,
    how: Trials,
    rng: np.random.Generator,
) -> Iterator[dict[str, object]]:
    """The attack on the list at the end, and on those at the time of every event."""
    last, at_every = [], []
    for number, (target, changed) in enumerate(pairs):
        missing = {"removed": target.position, "last": len(target.items) - 1}.get(world)
        lists_seen = [
            lists(target.user, items, (2 * number + which) * how.trials)[:, listed_events(len(target.items), at)]
            for which, (items, at) in enumerate(((target.items, None), (changed, missing)))
        ]
        last.append(edges.list_advantage(lists_seen[0][:, -1], lists_seen[1][:, -1], n_items, rng))
        at_every.append(edges.list_advantage(lists_seen[0], lists_seen[1], n_items, rng))
    yield _record("recommendations", world, last, how)
    yield _record("every-list", world, at_every, how)


def _other_worlds(targets: list[Target]) -> Iterator[tuple[str, list[tuple[Target, NDArray[np.int32]]]]]:
    """Each world in which any target's transitions differ, with those targets and their sequences there."""
    for world, change in WORLDS.items():
        worlds = ((target, change(target.items, target.position).astype(np.int32)) for target in targets)
        pairs = [(target, items) for target, items in worlds if _transitions(items) != _transitions(target.items)]
        if pairs:
            yield world, pairs


def _transitions(items: NDArray[np.integer]) -> list[tuple[int, int]]:
    return sorted(pairwise(items.tolist()))


def _record(target: str, world: str, advantages: list[edges.Advantage], how: Trials) -> dict[str, object]:
    """A record of `edges.EDGES` without system, setting and budget."""
    mean = edges.mean_advantage(advantages, seed=how.seed)
    return {
        "target": target,
        "world": world,
        "advantage": mean.value,
        "low": mean.low,
        "high": mean.high,
        "theory": mean.optimal,
        "targets": len(advantages),
        "trials": how.trials,
    }
