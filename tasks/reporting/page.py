"""The report as one self-contained HTML page: no network, everything escaped, and all of it there without script.

One script lets readers sort, filter and export tables. The page's content-security policy names its digest and allows
no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tasks.reporting.core import figures, headline
from tasks.reporting.core.chart import Chart, sample_size
from tasks.reporting.core.paper_report import PaperReport
from tasks.reporting.core.results import Results
from tasks.reporting.core.section import Blocks, Section, optional
from tasks.reporting.sections import (
    accounting,
    alignment,
    attacks,
    controls,
    data_statistics,
    details,
    differences,
    edges,
    links,
    means,
    membership,
    published,
    reconstruction,
    summary,
    tables,
    tradeoff,
    users,
    validation,
    verdicts,
)
from tasks.reporting.templating import environment, script
from tasks.results.claims import Claim


def sections(results: Results, report: PaperReport, claims: Sequence[Claim], *, k: int, docs: str) -> list[Section]:
    """Every section in its order; one to which these results have nothing to say has no blocks."""
    return [
        tables.section(results, k),
        _comparisons(results, k),
        users.section(results),
        controls.attacks_section(results),
        links.section(results),
        alignment.section(results),
        attacks.section(results, k),
        reconstruction.section(results),
        tradeoff.section(results, k),
        accounting.section(results, k),
        edges.section(results),
        membership.section(results),
        validation.section(results, k),
        controls.interests_section(results),
        *(section(results, k) for section in report.sections),
        published.section(results, report, claims, k),
        differences.section(results, report, claims),
        data_statistics.limits_section(results),
        summary.section(results, claims, k),
        details.ledger_section(results),
        details.quality_section(results, docs),
        details.provenance_section(results),
    ]


def render(
    results: Results,
    report: PaperReport,
    published_claims: Sequence[Claim],
    *,
    docs: str,
    home: str = "",
    why: tuple[str, str] | None = None,
) -> str:
    """The page of a suite; the same results always give the same bytes.

    Args:
        results: what the suite's runs produced.
        report: what its paper's reports show.
        published_claims: what the suite's paper says, judged; empty where it is set beside none.
        docs: where the data docs lie, as a relative address seen from the page; empty where they are not published.
        home: the address of the index over all suites; empty where the page stands alone.
        why: address and name of the page of all reversed pairs of the paper; None where there is none.
    """
    k = headline_cutoff(results)
    every = sections(results, report, published_claims, k=k, docs=docs)
    templates = environment()
    return templates.get_template("index.html.j2").render(
        results=results,
        home=home,
        why=why,
        **script(templates),
        sample=sample_size(
            len(results.compared), [len(system.seeds) for system in results.compared], results.word_for_run
        ),
        first=_first_figure(headline.frontier(results, k), every),
        verdicts=verdicts.verdicts(results, published_claims, k),
        revisions=details.revisions(results),
        sections=[section for section in every if any(section.blocks)],
    )


def _first_figure(frontier: Chart, sections: Sequence[Section]) -> Chart:
    """Utility by accounted ε; where no utility is measured, the first panel of the first other figure."""
    if frontier.panels:
        return frontier
    drawn = (part for section in sections for block in section.blocks for part in _parts(block))
    chart = next((part for part in drawn if isinstance(part, Chart) and part.panels), frontier)
    return replace(chart, anchor=frontier.anchor, panels=chart.panels[:1])


def _parts(block: Blocks) -> Sequence[Any]:
    return block if isinstance(block, list | tuple) else [block]


def _comparisons(results: Results, k: int) -> Section:
    """Every system against the baselines."""
    drawn = optional(figures.comparisons(results, k), means.table(results, k))
    return Section("comparisons", "Against the baselines", drawn, link="Comparisons")


def headline_cutoff(results: Results) -> int:
    """The measured cut-off nearest to the main one of the suite's layout."""
    layout = results.layout
    measured = results.cutoffs(layout.utility.metric) or [layout.headline_k]
    return min(measured, key=lambda k: (abs(k - layout.headline_k), k))
