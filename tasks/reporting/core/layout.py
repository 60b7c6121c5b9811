"""Tables as they are shown, and how numbers are written; `templates/table.html.j2` draws them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

NUMBER = "number"
MISSING = "missing number"
DASH = "–"
HIGHER, LOWER = "↑", "↓"
"""What is better, as headings mark it."""
NAMED = 6
"""Up to so many systems are named, more are counted."""
NUMERIC = {"number", "budget", "stack"}
"""Kinds of cells that columns are sorted by as numbers."""
_LEADING = re.compile(r"[≥≤<>~\s]*([+−-]?\d[\d,]*(?:\.\d+)?(?:e[+−-]?\d+)?|∞)")
_PLAIN = re.compile(r"[+−-]?\d+(\.\d+)?")
"""Texts that page.js reads as numbers."""
_ASCII = str.maketrans({"−": "-", ",": None, "∞": "inf"})


@dataclass(frozen=True)
class Heading:
    """A column heading; `kind` is a CSS class."""

    text: str
    kind: str = NUMBER
    better: str = ""
    """`HIGHER` or `LOWER`; empty where neither is better."""


@dataclass(frozen=True)
class Cell:
    """A cell: a text, smaller lines below it, and a CSS class."""

    text: str
    lines: tuple[str, ...] = ()
    kind: str = NUMBER
    href: str = ""
    """Where the text links to, within the project's data."""

    @property
    def value(self) -> float | None:
        """What it is sorted by: its number, of several lines the largest, ∞ included; None where it has none.

        A line of several is "what: number" or "what number".
        """
        kinds = set(self.kind.split())
        if "missing" in kinds or not kinds & NUMERIC:
            return None
        parts = [self.text] if self.text else [re.sub(r"^[^\d∞+−-]+", "", line.split(": ")[-1]) for line in self.lines]
        known = [leading[1] for part in parts if (leading := _LEADING.match(part))]
        return max((float(text.translate(_ASCII)) for text in known), default=None)

    @property
    def sort(self) -> str:
        """`value` for the page's script; empty where the text alone is that number, or there is none."""
        value = self.value
        return "" if value is None or _PLAIN.fullmatch(self.text) else f"{value:.12g}".replace("inf", "Infinity")


@dataclass(frozen=True)
class Row:
    """A row with its heading; `kind` is a CSS class ("reference" and "foot" are set apart from the systems)."""

    name: str
    cells: Sequence[Cell]
    kind: str = ""
    about: Sequence[tuple[str, str]] = ()
    """Terms and texts that the row opens to, such as its exact command."""


@dataclass(frozen=True)
class Table:
    """A table; `headings` include the heading of the row names, `groups` (name, columns) do not."""

    caption: str
    headings: Sequence[Heading]
    rows: Sequence[Row]
    groups: Sequence[tuple[str, int]] = ()

    @property
    def columns(self) -> list[tuple[Heading, str, bool]]:
        """Every heading with the name of its group, empty for none, and whether its column has numbers."""
        named = ["", *(name for name, span in self.groups for _ in range(span))]
        named += [""] * (len(self.headings) - len(named))
        numeric = [False] * len(self.headings)
        for row in self.rows:
            for place, cell in enumerate(row.cells, 1):
                numeric[place] |= cell.value is not None
        return list(zip(self.headings, named, numeric, strict=True))


def direction_mark(*, lower: bool) -> str:
    """The mark of a heading whose numbers are better when they are lower, or higher."""
    return LOWER if lower else HIGHER


def words(text: str) -> Cell:
    """A cell of running text."""
    return Cell(text, kind="wide")


def missing_cell(text: str = DASH) -> Cell:
    """A cell that says why it holds no number."""
    return Cell(text, kind=MISSING)


def number(value: float, digits: int = 3) -> str:
    """A number with a fixed count of decimals and a true minus sign; never "-0.000"."""
    text = f"{value:.{digits}f}"
    if float(text) == 0:
        text = text.removeprefix("-")
    return text.replace("-", "−")


def group_digits(value: float, digits: int) -> str:
    """A number with a fixed count of decimals and commas between thousands."""
    return f"{value:,.{digits}f}"


def plain_cell(value: float | None) -> Cell:
    """A number, or what stands where there is none."""
    return missing_cell() if value is None else Cell(number(value))


def format_difference(value: float, digits: int = 3) -> str:
    """A difference with its sign."""
    text = number(value, digits)
    return text if text.startswith("−") or float(text) == 0 else f"+{text}"


def with_interval(mean: float, low: float, high: float, digits: int = 3) -> str:
    """A difference with its interval: "+0.010 (0.002 to 0.018)"."""
    return f"{format_difference(mean, digits)} ({number(low, digits)} to {number(high, digits)})"


def join_words(items: Sequence[str]) -> str:
    """Items as running text: "a", "a and b", "a, b and c"."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def name_some(labels: Sequence[str]) -> str:
    """Systems as running text, counted where they are many."""
    return join_words(labels) if len(labels) <= NAMED else f"{len(labels)} systems"


def count(n: int, singular: str, plural: str = "") -> str:
    """A number with its noun: "1 seed", "5 seeds"."""
    return f"{n} {singular if n == 1 else plural or singular + 's'}"
