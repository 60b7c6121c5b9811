"""Kinds of events: each once, and few of them where sampled Gaussians are many, at the cost of an upper bound."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from tasks.privacy.accounting.ledger import Event

LEAST_PROBABILITY = 1e-300
"""Smaller probabilities of a record count as this one, since their inverses are out of range."""


def merged(events: Sequence[Event]) -> list[Event]:
    """The same releases, each kind with its parameters once."""
    counts = Counter[tuple[str, tuple[tuple[str, float], ...]]]()
    for event in events:
        known = event.parameters
        if "sampling_probability" in known:
            known = known | {"sampling_probability": max(known["sampling_probability"], LEAST_PROBABILITY)}
        counts[event.kind, tuple(sorted(known.items()))] += event.count
    return [Event(kind=kind, parameters=dict(known), count=count) for (kind, known), count in counts.items()]


def distinct(events: list[Event], most: int) -> list[Event]:
    """At most so many kinds, where sampled Gaussians are the reason for more: with less noise, of larger samples."""
    step = 1e-3
    while len(events) > most and step < 1:
        sampled = [event for event in events if event.kind == "sampled-gaussian"]
        coarser = [
            Event(
                kind=event.kind,
                parameters={
                    "noise_multiplier": _rounded_down(event.parameters["noise_multiplier"], step),
                    "sampling_probability": 1 / _rounded_down(1 / event.parameters["sampling_probability"], step),
                },
                count=event.count,
            )
            for event in sampled
        ]
        events = [event for event in events if event.kind != "sampled-gaussian"] + merged(coarser)
        step *= 2
    return events


def _rounded_down(value: float, step: float) -> float:
    """To a power of 1 + step; 1 and more stay at least 1."""
    return min(value, (1 + step) ** math.floor(math.log(value) / math.log1p(step)))
