"""In how many steps one unit's guarantee bounds another: how far apart small data sets are, counted by brute force."""

import math
from collections.abc import Callable
from itertools import product
from typing import Any, get_args

import numpy as np
import pytest
from scipy.sparse.csgraph import shortest_path

from tasks.privacy import units
from tasks.privacy.accounting.account import account
from tasks.privacy.accounting.ledger import Event
from tasks.privacy.terms import Unit

UNUSED = {
    ("visit-of-known-items", "visit"),
    ("visit-given-states", "visit"),
    ("visit-of-known-items", "visit-given-states"),
}
"""Four steps, which are not counted; and a guarantee given what was learned bounds nothing without that."""
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


NEIGHBOURS: dict[tuple[Unit, str], Callable[[Any, Any], bool]] = {
    **dict.fromkeys([("features", "features"), ("edge", "edge"), ("texts", "words")], lambda *_: True),
    **dict.fromkeys([("user", "visits"), ("user-with-metadata", "visits")], lambda a, b: () in (a, b)),
    ("user-with-metadata", "features"): lambda a, b: None in (a, b),
    ("features-within-bounds", "features"): lambda a, b: {a, b} <= BOUNDED,
    ("features-within-categories", "features"): lambda a, b: {a, b} <= LISTED,
    ("features-within-both", "features"): lambda a, b: {a, b} <= BOUNDED & LISTED,
    ("interaction", "visits"): inserted,
    ("listed-cell", "visits"): lambda a, b: inserted(a, b) and sum(item for item, _ in a) != sum(item for item, _ in b),
    ("visit", "visits"): lambda a, b: only(a, b, lambda x, y: x[0] != y[0] and x[1] == y[1]),
    **dict.fromkeys([("visit-of-known-items", "visits"), ("visit-given-states", "visits")], moved),
    ("rating-value", "visits"): lambda a, b: only(a, b, lambda x, y: x[0] == y[0]),
    ("sensitive-rating", "visits"): lambda a, b: only(a, b, lambda x, y: x[0] == y[0] == 0),
    ("word", "words"): lambda a, b: only(a, b, lambda *_: True),
    ("near-word", "words"): lambda a, b: only(a, b, lambda x, y: "z" not in (x, y)),
}
"""Unit and kind of data -> whether two states are neighbours. Item 0 is sensitive, item 1 listed, word z near none."""


def distances(length: int) -> dict[tuple[Unit, Unit], float]:
    """(unit, another) -> how many steps of the other its neighbours are apart at most, in the data that both are of."""
    data, steps = states(length), dict[tuple[Unit, str], np.ndarray]()
    for (unit, kind), neighbours in NEIGHBOURS.items():
        steps[unit, kind] = np.array([[a != b and neighbours(a, b) for b in data[kind]] for a in data[kind]])
    apart = {key: shortest_path(matrix, unweighted=True) for key, matrix in steps.items()}
    farthest: dict[tuple[Unit, Unit], float] = dict.fromkeys(product(units.STEPS, units.STEPS), 0.0)
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


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        ("laplace", {"noise_multiplier": 2.0}),
        ("discrete-laplace", {"noise_parameter": 0.25, "sensitivity": 2.0}),
        ("pure-local", {"epsilon": 0.5}),
    ],
)
def test_two_steps_cost_twice_the_budget(kind: str, parameters: dict[str, float]) -> None:
    event = Event(kind=kind, parameters=parameters, count=3)
    assert account((units.group_event(event, 2),)).epsilon == pytest.approx(2 * (account((event,)).epsilon or 0.0))


def test_two_steps_of_gaussian_noise_are_twice_its_sensitivity_and_sampling_gains_nothing() -> None:
    sampled = Event(kind="sampled-gaussian", parameters={"noise_multiplier": 3.0, "sampling_probability": 0.5}, count=4)
    gaussian = Event(kind="gaussian", parameters={"noise_multiplier": 3.0}, count=4)
    twice = gaussian.model_copy(update={"parameters": {"noise_multiplier": 1.5}})
    assert units.group_event(sampled, 2) == units.group_event(gaussian, 2) == twice


def test_units_are_bounded_by_themselves_first_and_have_a_level() -> None:
    assert all(next(iter(of.items())) == (unit, 1) for unit, of in units.STEPS.items())
    assert set(units.STEPS) <= set(units.LEVELS)
    assert set(get_args(Unit)) - set(units.LEVELS) == {"any"}
