"""Where names stand in a picture, so that none covers another; lengths in pixels."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

LETTER, ROW = 6.2, 14.0
"""About how wide a letter of a label is, and how high, in pixels."""
FARTHEST = 12
"""How many steps of four pixels a name may lie from its point."""


def wrapped(text: str, width: float, letter: float = LETTER) -> list[str]:
    """A text in lines of at most `width` pixels."""
    return textwrap.wrap(text, max(12, int(width / letter))) or [""]


def labels(
    points: Sequence[tuple[float, float, str]], width: float, height: float, lines: Sequence[float] = ()
) -> list[tuple[float, float]] | None:
    """Middles of the names of points: none covers another one, a mark or a horizontal line, or leaves the frame.

    Names of crowded points move up or down until they fit; None where one finds no place near its point.

    Args:
        points: x and y in pixels, and the name.
        width: of the frame, in pixels.
        height: of the frame, in pixels.
        lines: y in pixels.
    """
    taken = [(x - 6, y - 6, x + 6, y + 6) for x, y, _ in points]
    taken += [(-math.inf, y - 1, math.inf, y + 1) for y in lines]
    chosen = []
    for x, y, name in points:
        long = LETTER * len(name)
        sides = [side for side in (x + 9, x - 9 - long) if 2 <= side <= width - long - 2] or [width - long - 2]
        places = [
            (side, y + shift) for step in range(FARTHEST) for shift in {step * 4.0, -step * 4.0} for side in sides
        ]
        places.sort(key=lambda place: (abs(place[1] - y) + 8 * sides.index(place[0]), place[1]))
        free = [
            (left, middle)
            for left, middle in places
            if left >= 0
            and ROW / 2 <= middle <= height - ROW / 2
            and not any(
                left < right and begin < left + long and middle - ROW / 2 < bottom and top < middle + ROW / 2
                for begin, top, right, bottom in taken
            )
        ]
        if not free:
            return None
        left, middle = free[0]
        taken.append((left, middle - ROW / 2, left + long, middle + ROW / 2))
        chosen.append((left + long / 2, middle))
    return chosen


def separate(wanted: Sequence[float], low: float, high: float) -> list[float]:
    """Places `ROW` apart from `low` on, as near to the wanted ones (ascending) as least squares allows."""
    groups: list[tuple[float, int]] = []  # mean of wanted place minus place in line, how many
    for index, y in enumerate(wanted):
        offset, size = y - index * ROW, 1
        while groups and groups[-1][0] > offset:
            before, n = groups.pop()
            offset, size = (before * n + offset * size) / (n + size), n + size
        groups.append((offset, size))
    offsets = [offset for offset, size in groups for _ in range(size)]
    most = max(low, high - (len(wanted) - 1) * ROW)
    return [min(max(offset, low), most) + index * ROW for index, offset in enumerate(offsets)]
