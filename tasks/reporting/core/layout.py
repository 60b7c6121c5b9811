"""Tables as they are shown, and how numbers are written; `templates/table.html.j2` draws them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

NUMBER = "number"
MISSING = "missing number"
DASH = "–"
HIGHER, LOWER = "↑", "↓"
"""What is better, as headings mark it."""


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


def count(n: int, singular: str, plural: str = "") -> str:
    """A number with its noun: "1 seed", "5 seeds"."""
    return f"{n} {singular if n == 1 else plural or singular + 's'}"
