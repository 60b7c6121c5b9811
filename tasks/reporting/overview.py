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
    refuted: bool
    suite: str


def audited_claims(results: Results) -> list[Audited]:
    """Every audited claim of a suite."""
    made = []
    for audit in results.audit:
        claimed, proved = float(audit["epsilon_claimed"]), float(audit["audited_epsilon"])
        of = f"{audit['mechanism']}, {audit['neighbouring']}: claimed ε = {claimed:.3g}, proved ≥ {proved:.3g}"
        made.append(Audited(of, claimed, proved, audit["verdict"] == headline.REFUTED, results.suite))
    return made


def audit_chart(suites: Sequence[Sequence[Audited]]) -> Chart:
    """Claimed and proved ε of every audited claim; an audit that several suites have in common is one."""
    known: dict[tuple[str, float, float, bool], list[str]] = {}
    for audit in (audit for audits in suites for audit in audits):
        known.setdefault((audit.claim, audit.claimed, audit.proved, audit.refuted), []).append(audit.suite)
    held, refuted = (
        [
            Point(max(claimed, LEAST), max(proved, LEAST), f"{claim} ({join_words(unique(names))})")
            for (claim, claimed, proved, is_refuted), names in known.items()
            if is_refuted == wanted
        ]
        for wanted in (False, True)
    )
    series = [
        Series("not refuted", 0, held, line=False),
        Series("refuted", 1, refuted, line=False, alarm=True),
    ]
    series = [drawn for drawn in series if drawn.points]
    panel = Panel("Proved ε by claimed ε", "claimed ε", "proved ε", series, size=WIDE, log=True, identity=True)
    return Chart(
        "audits-all",
        "Claimed and proved ε",
        "One mark for each audit, whichever suites have it. Above the dashed line more is proved than claimed: "
        f"the claim is refuted (red). Both axes are logarithmic; what is below {LEAST:g} stands there.",
        [panel] if series else [],
        finding=f"{len(refuted)} of {len(known)} audits refute their claim",
        sample=f"n = {len(known)} audits of {sum(map(bool, suites))} suites",
    )


def finding(part: Part) -> list[Blocks]:
    """What a section of findings says in bold, as a list of at most `LEAD` words, and on demand all of it."""
    said = [" ".join(text.replace("`", "").split()).rstrip(".:,") for text in BOLD.findall(part.text)]
    shown = [text for place, text in enumerate(said) if len(" ".join(said[: place + 1]).split()) <= LEAD]
    lead = [f"{text[:1].upper()}{text[1:]}." for text in shown]
    return [bullets(lead) if lead else None, Fold("Numbers and reasons", part.html)]
