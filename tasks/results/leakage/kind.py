"""What a kind of attack is to a report: how its gains are read, which controls decide, and what else its section shows.

A kind is added by a module with a `Kind`, a line in `KINDS` (`tasks.results.leakage`) and the template
`tasks/pages/templates/attacks/NAME.html.j2`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl

from tasks.results.leakage.significance import Finding, assess, findings, strongest
from tasks.results.load import Results

Shown = Callable[[Results, pl.DataFrame], dict[str, Any]]


def nothing(results: Results, judged: pl.DataFrame) -> dict[str, Any]:
    """What a section shows that has its findings alone."""
    del results, judged
    return {}


@dataclass(frozen=True)
class Kind:
    """A kind of attack."""

    name: str
    """Of its template."""
    of: str
    """`kind` of the attack in the suite's parameters; empty where the suite has evidence of it without an attack."""
    gains: Callable[[Results], pl.DataFrame]
    """`significance.GAINS` of a suite; no rows where it has none."""
    deciding: tuple[str, ...] = ()
    """Controls that an attack has to beat; empty for all."""
    shown: Shown = nothing
    """What else its section shows: numbers, ids and rows, of the results and the judged attacks."""


@dataclass(frozen=True)
class Evidence:
    """What a suite has of one kind."""

    kind: Kind
    gains: pl.DataFrame
    """`significance.GAINS`."""
    judged: pl.DataFrame
    """`significance.assess` of these."""
    shown: dict[str, Any]

    @property
    def findings(self) -> list[Finding]:
        """What was found, target by target."""
        return findings(self.judged)

    @property
    def top(self) -> float:
        """The largest gain or loss of any attack, for a common scale."""
        return float(self.judged["gain"].abs().max() or 0.0)  # type: ignore[arg-type]  # of floats

    @property
    def strongest(self) -> list[dict[str, Any]]:
        """`significance.strongest` of these."""
        return strongest(self.judged, self.gains)


def evidence(results: Results, kind: Kind) -> Evidence | None:
    """What a suite has of a kind; None for nothing."""
    attack = results.suite.attack or {}
    if kind.of and attack.get("kind") != kind.of:
        return None
    gains = kind.gains(results)
    judged = assess(gains, kind.deciding)
    shown = kind.shown(results, judged)
    return Evidence(kind, gains, judged, shown) if gains.height or any(shown.values()) else None
