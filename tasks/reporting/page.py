"""The report as one self-contained HTML page: no script, no network, everything that is shown escaped."""

from __future__ import annotations

from collections.abc import Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined

from tasks.reporting.core import claims, comparison, figures
from tasks.reporting.core.claim_specs import Claim
from tasks.reporting.core.paper_report import PaperReport
from tasks.reporting.core.results import Results
from tasks.reporting.sections import (
    accounting,
    alignment,
    attacks,
    controls,
    data_statistics,
    details,
    edges,
    embeddings,
    iterations,
    lead,
    links,
    means,
    one_run,
    reconstruction,
    summary,
    tables,
    validation,
)
from tasks.reporting.sections import tradeoff as ladder


def render(results: Results, report: PaperReport, published_claims: Sequence[Claim], *, docs: str) -> str:
    """The page of a suite; the same results always give the same bytes.

    Args:
        results: what the suite's runs produced.
        report: what its paper's reports show.
        published_claims: what the suite's paper says, judged; empty where it is set beside none.
        docs: where the data docs lie, as a relative address seen from the page.
    """
    k = headline_cutoff(results)
    environment = Environment(
        loader=PackageLoader("tasks.reporting", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("index.html.j2").render(
        results=results,
        k=k,
        paper=results.reproduced,
        layout=results.layout,
        revisions=details.revisions(results),
        lead=lead.lead(results, k),
        ranking=summary.ranking(results, k),
        attacks=summary.attacks(results, k),
        budgets=summary.budgets(results),
        headline=tables.headline(results, k),
        unbeaten=attacks.unbeaten(results, k),
        beaten=attacks.beaten(results, k),
        gains=attacks.gains(results, k),
        blurring=attacks.blurring(results, k),
        sweep_points=tables.sweep_points(results, k),
        published=tables.beside_published(results),
        drawn=report.charts(results, k),
        claims=published_claims,
        verdicts=claims.counted(published_claims),
        statistics=report.statistics(results),
        settings=report.settings(results) if report.settings else None,
        steps=data_statistics.steps(results),
        data_note=data_statistics.note(results),
        accounting=accounting.table(results, k),
        accounting_chart=accounting.chart(results, k),
        means=means.table(results, k),
        reconstruction=reconstruction.table(results),
        reconstructed=reconstruction.sentences(results),
        reconstruction_chart=reconstruction.chart(results),
        iterations_chart=iterations.chart(results, k),
        ladder=ladder.table(results, k),
        ladder_chart=ladder.chart(results, k),
        one_run=one_run.table(results),
        embeddings=embeddings.told(results),
        words=embeddings.table(results),
        edges=edges.table(results),
        edges_chart=edges.chart(results),
        interests=controls.utility(results),
        inferred=controls.attacks(results),
        told=[*controls.sentences(results), *links.sentences(results)],
        links=links.table(results),
        links_chart=links.chart(results),
        alignment=alignment.table(results),
        aligned=alignment.sentences(results),
        alignment_chart=alignment.chart(results),
        risk=alignment.risk(results),
        lacking=report.lacking(results) if report.lacking else {},
        limits=[*_caveats(results), *(text for text in results.limits.split("\n\n") if text.strip())],
        printed_here=results.reproduced is not None and comparison.is_printed(results, results.layout),
        validation=validation.chart(results),
        trained=validation.recorded(results),
        seconds=validation.seconds(results),
        charts=figures.charts(results, k),
        ledger=details.ledger_table(results),
        gaps=details.gaps(results),
        notes=details.notes(results),
        audits=details.audit_table(results),
        quality=details.quality_table(results, docs),
        runs=details.runs_table(results),
        packages=details.packages_table(results),
        parameters=details.parameters(results),
    )


def headline_cutoff(results: Results) -> int:
    """The measured cut-off nearest to the one that the suite's layout is told by."""
    layout = results.layout
    measured = results.cutoffs(layout.utility.metric) or [layout.headline_k]
    return min(measured, key=lambda k: (abs(k - layout.headline_k), k))


def _caveats(results: Results) -> list[str]:
    """What the paper's entry says of all its reports, and of these data."""
    caveats = results.layout.caveats
    return [*caveats.get("", ()), *caveats.get(results.origin, ())]
