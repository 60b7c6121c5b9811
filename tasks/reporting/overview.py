"""What the pages over all suites begin with: claimed and proved ε of all of them, and the findings in a list."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tasks.reporting.core import headline
from tasks.reporting.core.chart import WIDE, Chart, Panel, Point, Series
from tasks.reporting.core.layout import join_words
from tasks.reporting.core.results import Results, unique
from tasks.reporting.core.section import Blocks, Fold, bullets
from tasks.reporting.documents import Part

BOLD = re.compile(r"^\* \*\*(.+?)\*\*", re.MULTILINE | re.DOTALL)
"""A claim in bold at the beginning of an item of a list in Markdown."""
LEAD = 120
"""Words of a finding that are shown before it is opened."""
VERDICTS = ("consistent", headline.REFUTED, "inconclusive")
"""Of audits, in the order of their colours."""
LEAST = 0.01
"""A claimed or proved ε below this is drawn there."""


@dataclass(frozen=True)
class Audited:
    """An audited claim of a suite."""

    claim: str
    """Which mechanism claims what, for which neighbouring inputs, and what is proved."""
    claimed: float
    proved: float
    """Lower bound on ε."""
    verdict: str
    suite: str
    synthetic: bool


def audited_claims(results: Results) -> list[Audited]:
    """Every audited claim of a suite."""
    made = []
    for audit in results.audit:
        claimed, proved = float(audit["epsilon_claimed"]), float(audit["audited_epsilon"])
        of = f"{audit['mechanism']}, {audit['neighbouring']}: claimed ε = {claimed:.3g}, proved ≥ {proved:.3g}"
        made.append(Audited(of, claimed, proved, audit["verdict"], results.suite, results.synthetic))
    return made


def audit_chart(suites: Sequence[Sequence[Audited]]) -> Chart:
    """Claimed and proved ε of every audited claim; an audit that several suites have in common is one."""
    known: dict[tuple[str, float, float, str], list[Audited]] = {}
    for audit in (audit for audits in suites for audit in audits):
        known.setdefault((audit.claim, audit.claimed, audit.proved, audit.verdict), []).append(audit)
    points: dict[str, list[Point]] = {verdict: [] for verdict in VERDICTS}
    for (claim, claimed, proved, verdict), made in known.items():
        of = f"{claim}, {verdict} ({join_words(unique([audit.suite for audit in made]))})"
        points.setdefault(verdict, []).append(Point(max(claimed, LEAST), max(proved, LEAST), of))
    series = [
        Series(verdict, place, points[verdict], line=False, alarm=verdict == headline.REFUTED)
        for place, verdict in enumerate(points)
        if points[verdict]
    ]
    replicas = sum(all(audit.synthetic for audit in made) for made in known.values())
    panel = Panel("Proved ε by claimed ε", "claimed ε", "proved ε", series, size=WIDE, log=True, identity=True)
    return Chart(
        "audits-all",
        "Claimed and proved ε",
        "One mark for each audit, whichever suites have it. Above the dashed line more is proved than claimed: "
        "the claim is refuted (red). An audit that refutes nothing is inconclusive unless it refutes the same claim of "
        "the same system with half of its noise, and with none; and where nothing finite follows from what was run. "
        f"Both axes are logarithmic; what is below {LEAST:g} stands there.",
        [panel] if series else [],
        finding=f"{len(points[headline.REFUTED])} of {len(known)} audits refute their claim",
        sample=f"n = {len(known)} audits of {sum(map(bool, suites))} suites; {replicas} of synthetic data alone",
    )


def finding(part: Part) -> list[Blocks]:
    """What a section of findings says in bold, as a list of at most `LEAD` words, and on demand all of it."""
    said = [" ".join(text.replace("`", "").split()).rstrip(".:,") for text in BOLD.findall(part.text)]
    shown = [text for place, text in enumerate(said) if len(" ".join(said[: place + 1]).split()) <= LEAD]
    lead = [f"{text[:1].upper()}{text[1:]}." for text in shown]
    return [bullets(lead) if lead else None, Fold("Numbers and reasons", part.html)]
