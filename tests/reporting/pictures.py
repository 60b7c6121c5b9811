"""What a picture shows, read from its SVG: the places of its texts, and where they cover one another."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from itertools import combinations, pairwise
from xml.etree import ElementTree

NARROW, WIDE = set("fijlrtI.,:;'|!()[]- /"), set("mwMWGOQ@%✗")
BODY = 394
"""Pixels that a picture has on a screen of 420."""


@dataclass(frozen=True)
class Text:
    """A text of a picture."""

    text: str
    size: float
    """Height of its letters in pixels."""
    corners: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Picture:
    """The texts of an SVG, its width and its height."""

    width: float
    height: float
    texts: tuple[Text, ...]

    @property
    def smallest(self) -> float:
        """Size of its smallest text on a screen of 420 pixels."""
        return min((text.size for text in self.texts), default=math.inf) * min(1.0, BODY / self.width)

    @property
    def covered(self) -> list[tuple[str, str]]:
        """Texts that cover one another."""
        return [(a.text, b.text) for a, b in combinations(self.texts, 2) if _cover(a.corners, b.corners)]

    @property
    def outside(self) -> list[str]:
        """Texts that leave the picture."""
        return [
            text.text
            for text in self.texts
            if not all(-4 <= x <= self.width + 4 and -4 <= y <= self.height + 4 for x, y in text.corners)
        ]


def picture(svg: str) -> Picture:
    """An SVG as the project draws it, its letters about as wide as those of Arial."""
    tree = ElementTree.fromstring(svg)
    texts: list[Text] = []
    _collect(tree, (1.0, 0.0, 0.0, 1.0, 0.0, 0.0), texts)
    return Picture(float(tree.attrib["width"]), float(tree.attrib["height"]), tuple(texts))


def _collect(element: ElementTree.Element, matrix: tuple[float, ...], texts: list[Text]) -> None:
    for kind, inside in re.findall(r"(\w+)\(([^)]*)\)", element.get("transform", "")):
        numbers = [float(number) for number in re.split(r"[ ,]+", inside.strip())]
        matrix = _apply(matrix, kind, numbers)
    if element.tag.endswith("text") and element.get("opacity") != "0":
        lines = ["".join(part.itertext()) for part in element] or [element.text or ""]
        size = float(element.get("font-size", "11px").removesuffix("px"))
        wide = max(sum(_letter(sign) for sign in line) for line in lines) * size
        begin = {"middle": -wide / 2, "end": -wide}.get(element.get("text-anchor", "start"), 0.0)
        top, bottom = -0.72 * size, 0.2 * size + (len(lines) - 1) * 1.15 * size
        a, b, c, d, e, f = matrix
        box = ((begin, top), (begin + wide, top), (begin + wide, bottom), (begin, bottom))
        if any(line.strip() for line in lines):
            corners = tuple((a * x + c * y + e, b * x + d * y + f) for x, y in box)
            texts.append(Text(" ".join(lines), size, corners))
        return
    for child in element:
        _collect(child, matrix, texts)


def _apply(matrix: tuple[float, ...], kind: str, numbers: list[float]) -> tuple[float, ...]:
    a, b, c, d, e, f = matrix
    if kind == "translate":
        x, y = (*numbers, 0.0)[:2]
        return (a, b, c, d, a * x + c * y + e, b * x + d * y + f)
    if kind == "rotate":
        cos, sin = math.cos(math.radians(numbers[0])), math.sin(math.radians(numbers[0]))
        return (a * cos + c * sin, b * cos + d * sin, c * cos - a * sin, d * cos - b * sin, e, f)
    if kind == "scale":
        x, y = (*numbers, numbers[0])[:2]
        return (a * x, b * x, c * y, d * y, e, f)
    raise ValueError(f"{kind} is not known")


def _letter(sign: str) -> float:
    """Width of a letter, in heights of its font."""
    return 0.31 if sign in NARROW else 0.85 if sign in WIDE else 0.69 if sign.isupper() else 0.55


def _cover(first: tuple[tuple[float, float], ...], other: tuple[tuple[float, float], ...]) -> bool:
    """Whether two rectangles cover one another by more than two pixels along every side of either."""
    for polygon in (first, other):
        for (x, y), (u, v) in pairwise((*polygon, polygon[0])):
            length = math.hypot(u - x, v - y) or 1.0
            across = [[(p * (v - y) - q * (u - x)) / length for p, q in points] for points in (first, other)]
            if min(max(across[0]), max(across[1])) - max(min(across[0]), min(across[1])) < 2:
                return False
    return True
