"""Every table and figure of the suite's paper beside ours, with what the paper says of it."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from tasks.reporting.core import comparison, figures, headline, origins
from tasks.reporting.core.paper_report import PaperReport
from tasks.reporting.core.results import Results
from tasks.reporting.core.section import Blocks, Fold, Section, bullets, heading, optional, paragraph
from tasks.reporting.sections import data_statistics, reconstruction, tables, word_vectors
from tasks.results.claims import Claim
from tasks.results.paper import artefact_name

RULE = (
    "A claim is supported where each of its comparisons is significant. It is contradicted where one is the other way, "
    "after Holm's correction over all of the claim's. One of most cases, or of what holds in general, needs more than "
    "half of them, and half the other way contradict it; there both directions are corrected together."
)
SEEDS = "Comparisons are paired t-tests over {}s{}, at 2.5 % in each direction. " + RULE
FOLDS = (
    "Comparisons are paired t-tests over {0}s, at 2.5 % in each direction, corrected for the overlap of their training "
    "data (Nadeau and Bengio 2003). "
    + RULE
    + " d is the mean difference in standard deviations of the differences over {0}s; the interval is that of the test."
)
ELSEWHERE = "<strong>The paper has no results on these data</strong>: nothing printed stands beside ours{}."
PART = "<strong>Part of the data.</strong> {} The paper's numbers are of the whole data set."
ORDER = (
    "Ordering agreement is the share of method pairs within a printed column that our means order the same way. "
    "Methods marked “not run” have no result of ours; those below the paper's are ours alone."
)
NOTHING = (
    "<strong>No result can be compared.</strong> The paper prints statistics of its data as numbers, and its results "
    "as pictures without any: what it says of them in words is tested instead."
)
ABSENT = "<strong>Not for these data:</strong> the paper prints it for others."
DRAWN = "The paper draws this figure for {} without printing its numbers.{}"
CLAIMS = '<h4>What the paper says, and what our numbers say</h4>\n<ul class="claims">\n{}</ul>\n'
CLAIM = (
    '<li id="claim-{0.artefact}-{2}"><span class="verdict {0.kind}">{1}</span>: {0.claim}. <span class="evidence">'
    '{0.evidence} <a class="row-link" href="#claim-{0.artefact}-{2}" aria-label="Link to this claim">#</a></span>'
    "</li>\n"
)


def section(results: Results, report: PaperReport, claims: Sequence[Claim], k: int) -> Section:
    """Statistics of the data, settings, tables and figures; without a paper our own results in its tables.

    Args:
        results: what the suite's runs produced.
        report: what its paper's reports show.
        claims: what the paper says, judged.
        k: the cut-off of what the paper names none for.
    """
    blocks = [
        optional(figures.agreement(headline.first_scores(results))),
        *_introduction(results, claims),
        *_preparation(results, report, claims),
        *_tables(results, report, claims, k),
    ]
    return Section("published", "Published and ours" if results.reproduced else "Result tables", blocks)


def _introduction(results: Results, claims: Sequence[Claim]) -> list[Blocks]:
    """What is compared with what, and how claims are judged; nothing without a paper."""
    paper = results.reproduced
    if paper is None:
        return []
    printed = comparison.is_printed(results, paper)
    untested = results.networks and not claims
    elsewhere = "" if untested else ", and its claims are tested on data that it did not use"
    return [
        paragraph("{}", paper.reference),
        optional(
            None if printed else paragraph(ELSEWHERE, elsewhere),
            paragraph(PART, results.part) if results.part else None,
        ),
        None if paper.tables and not printed and results.networks else paragraph(ORDER if paper.tables else NOTHING),
        [_testing(results)] if claims else None,
    ]


def _testing(results: Results) -> Markup:
    """How claims are judged."""
    text = "Below each table stands what the paper says of it. "
    overlapping = results.layout.overlap is not None
    text += FOLDS if overlapping else SEEDS
    if overlapping and reconstruction.attacked_systems(results):
        text += (
            " That an attacker errs more on one system than on another means little where it "
            '<a href="#reconstruction">does not beat the control</a> on either.'
        )
    if results.attributes():
        text += (
            " They speak of the same attacked users: that an F1 is lower means little where the attack "
            '<a href="#attacks">beats no control</a>.'
        )
    return paragraph(text, results.word_for_run, "" if results.networks else " on means over K")


def _preparation(results: Results, report: PaperReport, claims: Sequence[Claim]) -> list[Blocks]:
    """Statistics of the data, settings of the method and embeddings of words."""
    layout, blocks = results.layout, list[Blocks]()
    tables_of = [(report.statistics or data_statistics.table)(of) for of in origins.counted(results)]
    if statistics := [table for table in tables_of if table]:
        note, steps = data_statistics.note(results), data_statistics.steps(results)
        counted = layout.counted if results.synthetic else layout.counted.replace("generated data", "these data")
        about = paragraph("{}", note or counted)
        blocks += [_heading(results, layout.data_table, "Statistics of the data"), [about], *statistics]
        if results.networks:
            blocks += optional(steps)
        elif steps:
            blocks += [Fold("What each step of the protocol left", steps), [_claims_of(claims, layout.data_table)]]
    if settings := report.settings(results) if report.settings else None:
        note = layout.settings_note if results.reproduced else ""
        blocks += [_heading(results, layout.settings_table, "Settings of the network")]
        blocks += [[paragraph("{}", note)] if note else [], settings, _claims_of(claims, layout.settings_table)]
    if words := word_vectors.table(results):
        title = heading("Embeddings of users' metadata", anchor="embeddings")
        blocks += [title, words, bullets(word_vectors.sentences(results))]
    return blocks


def _heading(results: Results, key: str, title: str) -> Markup:
    """A heading with the number of the table where there is a paper."""
    return heading("{}", f"{artefact_name(key)}: {title}" if results.reproduced else title, anchor=key)


def _tables(results: Results, report: PaperReport, claims: Sequence[Claim], k: int) -> list[Blocks]:
    """Every table and every figure of the paper, with its chart, its claims and what the data cannot give."""
    paper, blocks = results.reproduced, list[Blocks]()
    lacking = report.lacking(results) if report.lacking else {}
    charts = report.charts(results, k)
    for shown, parts in tables.published_tables(results):
        protocol = "" if shown.comparable else f", protocol {shown.protocol}"
        title = f"{shown.name}{protocol}: {shown.title}" if paper else f"{shown.title}{protocol}"
        absent = None if parts or shown.key in lacking else paragraph(ABSENT)
        blocks += [
            heading("{}", title, anchor=shown.anchor),
            paragraph("{}", f"{shown.note} {shown.remark}" if paper else shown.note),
            optional(_missing_note(lacking, shown.key), absent, charts.get(shown.anchor), *parts),
            [_claims_of(claims, shown.key)] if shown.comparable else [],
        ]
    for figure in results.layout.figures:
        if paper or figure.key in charts:
            swept = figure.key in charts or figure.key in lacking
            drawn = "" if swept else f" {figure.method} has not been run at several values here."
            about = paragraph(DRAWN, figure.method, drawn) if paper else None
            note = paragraph("{}", figure.note) if figure.note else None
            blocks += [
                heading("{}", f"{figure.name}: {figure.title}" if paper else figure.title, anchor=figure.key),
                optional(about, _missing_note(lacking, figure.key), note, charts.get(figure.key)),
                _claims_of(claims, figure.key),
            ]
    return blocks


def _missing_note(lacking: dict[str, list[str]], key: str) -> Markup | None:
    """Why these data cannot give a table or a figure, or a part of it."""
    if key not in lacking:
        return None
    return Markup("{}\n{}\n").format(paragraph("<strong>Not reproducible here:</strong>"), bullets(lacking[key]))


def _claims_of(claims: Sequence[Claim], artefact: str) -> Markup:
    """What the paper says of a table or figure, judged; empty where it says nothing."""
    mine = [claim for claim in claims if claim.artefact == artefact]
    judged = [Markup(CLAIM).format(claim, claim.verdict.capitalize(), place) for place, claim in enumerate(mine, 1)]
    return Markup(CLAIMS).format(Markup().join(judged)) if judged else Markup()
