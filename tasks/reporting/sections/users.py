"""How utility and exposure spread over users: no user is shown, and no group of fewer than ten."""

from __future__ import annotations

from tasks.reporting.core.chart import Chart, Panel, Point, Series, thin
from tasks.reporting.core.figures import sample_of, series_of
from tasks.reporting.core.results import Results, System
from tasks.reporting.core.section import Section, optional, paragraph

MARKS = 14
"""Of a curve: more cover one another."""
METRICS = {"ndcg": "NDCG", "exposure": "exposure"}


def section(results: Results) -> Section:
    """One curve per system and quantity."""
    return Section(
        "users",
        "Distributions over users",
        optional(chart(results)),
        link="Users",
        about=paragraph(
            "A curve shows the share of users whose value is at most x. A user's exposure is the mean popularity of "
            "the items in the list: the share of all users who have an item. Values are means over seeds. "
            "Bins with fewer than ten users are joined with the next."
        ),
    )


def chart(results: Results) -> Chart:
    """Cumulative distributions over users."""
    panels = []
    for metric, name in METRICS.items():
        measured = {of["experiment"]: of for of in results.spreads if of["metric"] == metric and of["bins"]}
        known = [system for system in results.compared if system.experiment in measured]
        series = [_curve(results, of, name, measured[of.experiment]["bins"]) for of in known]
        if series:
            label = f"{name}@{measured[known[0].experiment]['k']}"
            panels.append(Panel(f"{label} over users", label, "share of users", series))
    return Chart(
        "chart-users",
        "Users",
        "Cumulative distribution over users. NDCG: lower curves are better; exposure: further left is less popular.",
        panels,
        finding=_finding(results),
        sample=_sample(results),
    )


def _sample(results: Results) -> str:
    """How many systems, seeds and users are drawn."""
    of = {row["experiment"]: sum(users for *_, users in row["bins"]) for row in results.spreads}
    labels = [system.label for system in results.compared if system.experiment in of]
    drawn = sample_of(results, labels, first_split=True)
    return f"{drawn}, {max(of.values(), default=0):g} users"


def _curve(results: Results, system: System, name: str, bins: list[list[float]]) -> Series:
    """A line with marks, which tell systems of one colour apart."""
    return series_of(results, system, thin(_points(system, name, bins), MARKS))


def _points(system: System, name: str, bins: list[list[float]]) -> list[Point]:
    """The share of users up to both ends of every bin, each once."""
    total, below = sum(users for *_, users in bins), 0.0
    shares: dict[float, float] = {}
    for low, high, users in bins:
        shares[low] = below / total
        below += users
        shares[high] = below / total
    return [
        Point(edge, share, f"{system.label}: {100 * share:.0f} % have {name} of at most {edge:g}")
        for edge, share in shares.items()
    ]


def _finding(results: Results) -> str:
    """Below which edge half of the users have their NDCG: with whom it is highest, and lowest."""
    known = {system.experiment: system.label for system in results.compared}
    half = {
        known[of["experiment"]]: _median_edge(of["bins"])
        for of in results.spreads
        if of["metric"] == "ndcg" and of["bins"] and of["experiment"] in known
    }
    if not half:
        return ""
    best, worst = max(half, key=half.__getitem__), min(half, key=half.__getitem__)
    return f"half have NDCG of at most {half[best]:g} with {best}, {half[worst]:g} with {worst}"


def _median_edge(bins: list[list[float]]) -> float:
    """The upper edge of the bin that the middle user is in."""
    total, below = sum(users for *_, users in bins), 0.0
    for _, high, users in bins:
        below += users
        if below >= total / 2:
            return high
    return bins[-1][1]
