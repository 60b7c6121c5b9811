"""A paper's statistics of its data: what the protocol left of the suite's data, beside what the paper prints."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from markupsafe import Markup, escape

from tasks.reporting.core import comparison
from tasks.reporting.core.layout import (
    NUMBER,
    Cell,
    Heading,
    Row,
    Table,
    format_difference,
    group_digits,
    missing_cell,
    number,
)
from tasks.reporting.core.paper_report import PaperReport
from tasks.reporting.core.results import Processed, Results
from tasks.reporting.core.section import Section, paragraph
from tasks.reporting.sections import networks

STATISTICS = {
    "users": "Users",
    "items": "Items",
    "interactions": "Interactions",
    "avg_length": "Average length",
    "user_features": "User features",
}
"""`metric` in paper_tables.csv -> how it is shown."""


def limits_section(results: Results) -> Section:
    """What the paper's entry says of all its reports and of these data, and what the suite does."""
    caveats = results.layout.caveats
    texts = [*caveats.get("", ()), *caveats.get(results.origin, ()), *results.limits.split("\n\n")]
    paragraphs = [paragraph("{}", _with_code(text)) for text in texts if text.strip()]
    return Section("limits", "Limits of these data", [paragraphs])


def _with_code(text: str) -> Markup:
    """A text of parameters, with its `names` as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def table(results: Results) -> Table | None:
    """Users, items, interactions, average length and user features; None where the paper prints none of any data."""
    if not results.layout.notes:
        return None
    paper = results.reproduced
    printed = {} if paper is None else comparison.printed_statistics(results, paper)
    ours = statistics(results.processed)
    theirs_by_name = {name: printed.get(name) for name in STATISTICS}
    compared = any(value is not None for value in theirs_by_name.values())
    rows = []
    for name, label in STATISTICS.items():
        value, theirs = ours[name], theirs_by_name[name]
        digits = 2 if name == "avg_length" else 0
        cells = [Cell(group_digits(value, digits))]
        if compared:
            cells += (
                [missing_cell(), missing_cell()]
                if theirs is None
                else [Cell(group_digits(theirs, digits)), Cell(format_difference(value - theirs, digits))]
            )
        rows.append(Row(label, cells))
    return _compared(results, rows, compared)


def _compared(results: Results, rows: list[Row], compared: bool) -> Table:
    """Counts beside what the paper prints, where it prints any."""
    headings = ["count", "ours", *(["paper", "difference"] if compared else [])]
    return Table(
        f"{comparison.statistics_title(results)} after preprocessing",
        [Heading(text, NUMBER if place else "") for place, text in enumerate(headings)],
        rows,
    )


def network(results: Results) -> Table:
    """Users, items, ratings and relationships, the last as links that are left."""
    counted = [(count, count.printed(results)) for count in network_counts(results) if count.ours is not None]
    compared = any(printed is not None for _, printed in counted)
    rows = [networks.count_row(count.metric.capitalize(), count.ours, printed, compared) for count, printed in counted]
    return _compared(results, rows, compared)


def network_counts(results: Results) -> list[comparison.Count]:
    """What `network` counts; without links there are no relationships."""
    last = results.processed.counts[-1]
    links = next((count["links"] for count in reversed(results.processed.counts) if "links" in count), None)
    ours = {"users": last["users"], "items": last["items"], "ratings": last["interactions"], "relationships": links}
    return [comparison.Count(results.layout.data_table, name, value) for name, value in ours.items()]


def counts(results: Results, report: PaperReport) -> list[comparison.Count]:
    """What the paper's reports count of its data and set in its method; nothing where it prints none of any data."""
    if report.counts is not None:
        return report.counts(results)
    if not results.layout.notes:
        return []
    ours = statistics(results.processed)
    return [comparison.Count(results.layout.data_table, name, value) for name, value in ours.items()]


def steps(results: Results) -> Table | None:
    """What each step of the protocol left; None where the paper prints none of any data."""
    if results.networks:
        return networks.steps(results)
    if not results.layout.notes:
        return None
    linked = any("links" in count for count in results.processed.counts)
    rows = [
        Row(
            count["step"],
            [
                *(Cell(f"{count[name]:,}") for name in ("users", "items", "interactions")),
                Cell(number(count["interactions"] / count["users"], 2)),
                *([Cell(f"{count['links']:,}") if "links" in count else missing_cell()] if linked else []),
            ],
        )
        for count in results.processed.counts
        if count["users"]
    ]
    headings = ["Left after", "users", "items", "interactions", "interactions per user"] + ["links"] * linked
    return Table(
        "What each step of the protocol left",
        [Heading(text, NUMBER if n else "") for n, text in enumerate(headings)],
        rows,
    )


def note(results: Results) -> str:
    """What to know when the printed statistics are set beside ours; empty where nothing is."""
    paper = results.reproduced
    return "" if paper is None else paper.notes.get(results.origin, "")


def statistics(processed: Processed) -> dict[str, float]:
    """What the paper's table counts: everything before sequences are cut, but their events after it.

    That is how its printed numbers are explained (docs/methods.md §10), and none of it depends on the order of events:
    where a protocol does not cut sequences, both are what its last step left.
    """
    after = _last_state(processed, lambda step: step.startswith("last "))
    before = _last_state(processed, lambda step: step.endswith("-core"))
    return {
        "users": before["users"],
        "items": before["items"],
        "interactions": after["interactions"],
        "avg_length": before["interactions"] / before["users"],
        "user_features": processed.features,
    }


def _last_state(processed: Processed, which: Callable[[str], bool]) -> dict[str, Any]:
    counts = [count for count in processed.counts if which(count["step"])]
    return (counts or list(processed.counts))[-1]
