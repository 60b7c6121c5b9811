"""What changed in committed results: headline values and verdicts on claims, before and now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tasks.reporting.core.layout import DASH, Cell, Heading, Row, Table, number, words


@dataclass(frozen=True)
class State:
    """The headline of a suite at one revision."""

    values: Mapping[str, Any] = field(default_factory=dict)
    """`summary.json`: groups of named values."""
    claims: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """(artefact, claim) -> verdict."""


def table(before: Mapping[str, State], now: Mapping[str, State], revision: str) -> Table:
    """A row for each headline value and each verdict that differs; one alone for a suite that is new or gone.

    Args:
        before, now: the suites of either side, by name.
        revision: what `before` is of.
    """
    rows = []
    for suite in sorted(before.keys() | now.keys()):
        if suite not in before or suite not in now:
            rows.append(_row(suite, "suite", *(("", "new") if suite not in before else ("there", "gone"))))
            continue
        rows += [_row(suite, *change) for change in _values(before[suite].values, now[suite].values)]
        rows += [_row(suite, *change) for change in _claims(before[suite].claims, now[suite].claims)]
    rows = rows or [Row("all suites", [words("no headline value and no verdict differs"), Cell(""), Cell("")])]
    headings = ["Suite", "what", "before", "now"]
    return Table(f"What changed since {revision}", [Heading(text, "") for text in headings], rows)


def _row(suite: str, what: str, before: str, now: str) -> Row:
    return Row(suite, [words(what), Cell(before or DASH, kind=""), Cell(now or DASH, kind="")])


def _values(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    old, new = _flatten(before), _flatten(now)
    for name in {**old, **new}:
        texts = _format_value(old.get(name)), _format_value(new.get(name))
        if texts[0] != texts[1]:
            yield name, *texts


def _flatten(summary: Mapping[str, Any]) -> dict[str, Any]:
    return {
        f"{group}: {name.replace('_', ' ')}": value
        for group, values in summary.items()
        for name, value in values.items()
    }


def _format_value(value: Any) -> str:
    if value is None:
        return ""
    return number(value) if isinstance(value, float) else str(value)


def _claims(
    before: Mapping[tuple[str, str], str], now: Mapping[tuple[str, str], str]
) -> Iterator[tuple[str, str, str]]:
    for artefact, claim in {**before, **now}:
        old, new = before.get((artefact, claim), ""), now.get((artefact, claim), "")
        if old != new:
            yield f"claim ({artefact}): {claim}", old, new
