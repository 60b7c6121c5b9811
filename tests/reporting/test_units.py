"""In how many steps one unit's guarantee bounds another: how far apart small data sets are, counted by brute force."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from scipy.sparse.csgraph import shortest_path

from tasks.reporting.core import units

UNUSED = {(units.VISIT, units.REPLACED), (units.VISIT_GIVEN, units.REPLACED), (units.VISIT, units.VISIT_GIVEN)}
"""Four steps, which are not counted; and a guarantee given what was learnt bounds nothing without that."""
NUMBERS, CATEGORIES = (0.2, 0.8, 9.0), ("listed", "listed too", "other")
BOUNDED, LISTED = {*product(NUMBERS[:2], CATEGORIES)}, {*product(NUMBERS, CATEGORIES[:2])}


def states(length: int) -> dict[str, list[Any]]:
    """A user's data: up to `length` visits (item, rating), features (number, category), `length` words; and an edge."""
    visits = [some for n in range(length + 1) for some in product(product((0, 1), (1, 2)), repeat=n)]
    features = [None, *product(NUMBERS, CATEGORIES)]
    return {"visits": visits, "features": features, "words": [*product("abz", repeat=length)], "edge": [0, 1]}


def shorter(visits: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    return [visits[:place] + visits[place + 1 :] for place in range(len(visits))]


def inserted(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return a in shorter(b) or b in shorter(a)


def only(a: tuple[Any, ...], b: tuple[Any, ...], alike: Callable[[Any, Any], bool]) -> bool:
    """Whether they differ in one place, and there as `alike` says."""
    pairs = [pair for pair in zip(a, b, strict=False) if pair[0] != pair[1]]
    return len(a) == len(b) and len(pairs) == 1 and alike(*pairs[0])


def moved(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    """One visit has other transitions."""
    return sorted(a) == sorted(b) and not set(shorter(a)).isdisjoint(shorter(b))


NEIGHBOURS: dict[tuple[str, str], Callable[[Any, Any], bool]] = {
    **dict.fromkeys([(units.FEATURES, "features"), (units.EDGE, "edge"), (units.TEXTS, "words")], lambda *_: True),
    **dict.fromkeys([(units.USER, "visits"), (units.PROFILE, "visits")], lambda a, b: () in (a, b)),
    (units.PROFILE, "features"): lambda a, b: None in (a, b),
    (units.FEATURES_GIVEN, "features"): lambda a, b: {a, b} <= BOUNDED,
    (units.FEATURES_LISTED, "features"): lambda a, b: {a, b} <= LISTED,
    (units.FEATURES_GIVEN_BOTH, "features"): lambda a, b: {a, b} <= BOUNDED & LISTED,
    (units.INTERACTION, "visits"): inserted,
    (units.CELL, "visits"): lambda a, b: inserted(a, b) and sum(item for item, _ in a) != sum(item for item, _ in b),
    (units.REPLACED, "visits"): lambda a, b: only(a, b, lambda x, y: x[0] != y[0] and x[1] == y[1]),
    **dict.fromkeys([(units.VISIT, "visits"), (units.VISIT_GIVEN, "visits")], moved),
    (units.VALUE, "visits"): lambda a, b: only(a, b, lambda x, y: x[0] == y[0]),
    (units.SENSITIVE, "visits"): lambda a, b: only(a, b, lambda x, y: x[0] == y[0] == 0),
    (units.WORD, "words"): lambda a, b: only(a, b, lambda *_: True),
    (units.NEAR, "words"): lambda a, b: only(a, b, lambda x, y: "z" not in (x, y)),
}
"""Unit and kind of data -> whether two states are neighbours. Item 0 is sensitive, item 1 listed, word z near none."""


def distances(length: int) -> dict[tuple[str, str], float]:
    """(unit, another) -> how many steps of the other its neighbours are apart at most, in the data that both are of."""
    data, steps = states(length), dict[tuple[str, str], np.ndarray]()
    for (unit, kind), neighbours in NEIGHBOURS.items():
        steps[unit, kind] = np.array([[a != b and neighbours(a, b) for b in data[kind]] for a in data[kind]])
    apart = {key: shortest_path(matrix, unweighted=True) for key, matrix in steps.items()}
    farthest = dict.fromkeys(product(units.STEPS, repeat=2), 0.0)
    for (unit, kind), (other, other_kind) in product(steps, repeat=2):
        if kind == other_kind:
            largest = apart[other, kind][steps[unit, kind]].max()
            farthest[unit, other] = max(farthest[unit, other], largest)
    return farthest


def test_a_guarantee_counts_in_as_many_steps_as_neighbours_of_the_unit_are_apart() -> None:
    """Where distances grow with a user's data, or there is no way at all, no number of steps bounds the unit."""
    short, long = distances(2), distances(3)
    for (unit, other), distance in short.items():
        bound = 0 if math.isinf(distance) or long[unit, other] > distance or (unit, other) in UNUSED else distance
        assert units.steps(unit, other) == bound, f"{unit} / {other}"
