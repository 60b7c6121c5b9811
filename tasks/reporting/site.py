"""Pages over all suites: an index, leaderboards, privacy cards, coverage of the papers, findings and documentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from tasks.reporting import cards, costs, coverage, reversals
from tasks.reporting.core import headline, ledger, origins
from tasks.reporting.core.assumptions import OF_PREPARED
from tasks.reporting.core.chart import Chart
from tasks.reporting.core.layout import Cell, Heading, Row, Table, join_words, missing_cell, number
from tasks.reporting.core.paper_report import PaperReport
from tasks.reporting.core.results import Results, unique
from tasks.reporting.core.section import Blocks, Section, bullets, optional, paragraph
from tasks.reporting.documents import document, parts, search
from tasks.reporting.overview import Audited, audit_chart, audited_claims, finding
from tasks.reporting.page import headline_cutoff, render
from tasks.reporting.sections import differences as pairs
from tasks.reporting.sections.details import revisions
from tasks.reporting.sections.verdicts import verdicts
from tasks.reporting.templating import environment, script
from tasks.results.claims import Claim

PAGES = {
    "index.html": "Suites",
    "leaderboards.html": "Leaderboards",
    "cards.html": "Privacy cards",
    "coverage.html": "Coverage of the papers",
    "findings.html": "Findings",
    "docs.html": "Documentation",
}
"""File -> its name in every page."""
ABOUT = {
    "index.html": "Differentially private recommenders, reproduced from their papers, attacked and audited. A row is a "
    f"suite: systems, mostly of one paper, on one data set. {OF_PREPARED}",
    "leaderboards.html": "Systems of one data set, one measure and one unit of protection, by the ε that follows from "
    f"what they ran. Compare within a table: protocols differ between suites. {OF_PREPARED}",
    "cards.html": f"What each private system protects, from whom, and what its guarantee is worth. {OF_PREPARED}",
    "coverage.html": "How many of the numbers that the papers print were measured here, on which data, how near they "
    "are, and why the others are missing. Statistics of data and settings of systems are among them. A number counts "
    "once: on the real data, on a part of them, or on a synthetic replica, which is compared with nothing.",
    "findings.html": "What the numbers say about each paper, and why.",
    "docs.html": "Every page of the documentation, and a search over its sections.",
}
WITH_TERMS = ("index.html", "cards.html", "coverage.html", "findings.html")
"""Pages that end with the licences of all data; leaderboards have them beside their data."""
BANDS = (1.0, 10.0)
"""Upper ends of the bands of ε that leaderboards are sorted by."""
SCHEMA = "https://json-schema.org/draft/2020-12/schema"
"""The dialect of the schema of report.json."""
FINDINGS = "What the numbers say about"
"""How the headings of findings begin, in docs/choices-*.md."""


class Verdict(BaseModel):
    """A line of a report's first screen."""

    topic: str
    text: str
    alarm: bool


class ClaimRecord(BaseModel):
    """What a paper says, tested."""

    artefact: str
    claim: str
    verdict: str
    evidence: str


class SystemRecord(BaseModel):
    """A system at its base setting."""

    name: str
    utility: float | None
    """Mean over seeds."""
    protects: list[str]
    claimed: list[str]
    accounted_epsilon: float | None
    """Largest of one run; null: no finite one."""
    unit: str
    """What that is for, such as "a user"; empty where it is not finite."""
    given: str
    """What that takes as fixed, such as "given the configuration"; empty for nothing."""
    audited_epsilon: float | None
    """Largest that an audit proves, a lower bound; null: nothing was audited."""
    refuted: bool


class Report(BaseModel):
    """report.json: what a suite's report says, for programs."""

    suite: str
    title: str
    paper: str | None
    dataset: str
    synthetic: bool
    data: origins.Kind
    """Whether they are all of the real data."""
    utility: str
    systems: list[SystemRecord]
    """Best utility first."""
    verdicts: list[Verdict]
    claims: list[ClaimRecord]


@dataclass(frozen=True)
class Suite:
    """What the pages over all suites need of one, and its own page."""

    page: str
    report: Report
    reference: str
    licence: str
    origin: str
    frontier: Chart
    cards: list[Blocks]
    private: list[Row]
    """Its cards, one line each."""
    near: int
    """Published numbers that our means are within 10 % of."""
    known: int
    """Published numbers that we measured."""
    state: str
    """Of which revision its results are."""
    audits: Sequence[Audited]
    evidence: coverage.Evidence | None
    """What it has of its paper's printed numbers; None where there are none of the data that its own stand for."""
    difference: reversals.Difference | None
    """What it adds to its paper's page of reversed pairs; None where it reproduces no paper."""
    cost: costs.Cost | None
    """What it took; None without a record of its stages."""
    cores: frozenset[int]
    """Of the machines that its stages ran on."""


def suite(results: Results, report: PaperReport, claims: Sequence[Claim]) -> Suite:
    """Everything that is shown of one suite."""
    k = headline_cutoff(results)
    numbers = headline.reproduction_counts(results)
    frontier = headline.frontier(results, k)
    return Suite(
        render(results, report, claims, docs="", home="../../index.html", why=reversals.link(results, "../../")),
        record(results, claims, k),
        results.layout.reference,
        results.licence,
        results.origin,
        replace(frontier, anchor=f"frontier-{results.suite}", title=f"{results.suite}, {results.layout.utility.at(k)}"),
        [block for system in results.compared for block in cards.card(results, system, k)],
        cards.summary_rows(results, k),
        numbers["within_10_percent"],
        numbers["run"],
        f"revision {join_words(revisions(results)) or 'not recorded'}",
        audited_claims(results),
        coverage.evidence(results, report, k),
        reversals.difference(results, report, claims),
        costs.cost(results.suite, results.runs),
        frozenset(run.cores for run in results.runs),
    )


def record(results: Results, claims: Sequence[Claim], k: int) -> Report:
    """What report.json of a suite holds."""
    utility = results.layout.utility
    systems = []
    for standing in headline.standings(results, k):
        lines = ledger.lines_at(results, standing.system)
        systems.append(
            SystemRecord(
                name=standing.system.label,
                utility=standing.utility,
                protects=unique([f"{line.protects} ({line.entry.neighbouring})" for line in lines]),
                claimed=unique(
                    [ledger.claimed_budget(line.entry) for line in lines if line.entry.claimed_epsilon is not None]
                ),
                accounted_epsilon=standing.accounted,
                unit=standing.unit,
                given=standing.given,
                audited_epsilon=standing.proved,
                refuted=standing.refuted,
            )
        )
    return Report(
        suite=results.suite,
        title=results.title,
        paper=results.paper,
        dataset=results.dataset,
        synthetic=results.synthetic,
        data=origins.kind(results),
        utility=f"{utility.at(utility.cutoff(k))}, {utility.spoken}",
        systems=systems,
        verdicts=[Verdict(topic=line.topic, text=line.text, alarm=line.alarm) for line in verdicts(results, claims, k)],
        claims=[
            ClaimRecord(artefact=c.artefact, claim=c.claim, verdict=c.verdict, evidence=c.evidence) for c in claims
        ],
    )


def pages(
    suites: Sequence[Suite],
    counted: Sequence[coverage.Line],
    documents: Mapping[str, str],
    changes: Table | None = None,
) -> dict[str, str]:
    """File -> the page, of all that is not one suite's.

    Args:
        suites: what is shown of each.
        counted: how much of each table and figure of the papers these suites have.
        documents: name without suffix -> Markdown.
        changes: what changed since a revision; None where none was asked for.
    """
    suites = real_first(suites)
    chosen = [text for name, text in documents.items() if name.startswith("choices")]
    articles = [part for text in chosen for part in parts(text, "docs/") if part.title.startswith(FINDINGS)]
    differences = [entry.difference for entry in suites if entry.difference is not None]
    took = [(entry.report.suite, entry.cost) for entry in suites]
    changed = [] if changes is None else [Section("changes", "What changed", [changes])]
    content: dict[str, list[Section]] = {
        "index.html": [
            Section("audits", "Claims and audits", optional(audit_chart([entry.audits for entry in suites]))),
            *changed,
            Section("suites", "All suites", [_index(suites)]),
            Section("differences", "Why we differ", optional(reversals.overview(differences)), paragraph(pairs.ABOUT)),
            Section("artefacts", "Tables and figures of the papers", [coverage.artefacts(counted)]),
            Section("costs", "What it takes", [costs.table(took, {n for entry in suites for n in entry.cores})]),
        ],
        "leaderboards.html": _leaderboards(suites),
        "cards.html": [
            Section(
                "systems", "Every private system", [cards.summary([row for entry in suites for row in entry.private])]
            ),
            *(
                Section(f"cards-{entry.report.suite}", entry.report.title, entry.cards)
                for entry in suites
                if entry.cards
            ),
        ],
        "coverage.html": [
            Section("coverage", "Printed numbers by paper", [coverage.by_paper(counted, _references(suites, counted))]),
            Section("data", "Printed numbers by table and data set", [coverage.by_data(counted)]),
        ],
        "findings.html": [
            Section(f"finding-{place}", article.title.removeprefix(f"{FINDINGS} ").partition(",")[0], finding(article))
            for place, article in enumerate(articles)
        ],
        "docs.html": [Section("sections", "Sections", [search(documents)])],
    }
    for file in WITH_TERMS:
        content[file] += _terms(suites)
    states = unique([entry.state.removeprefix("revision ") for entry in suites])
    made = {file: _page(PAGES[file], ABOUT[file], sections, revisions=states) for file, sections in content.items()}
    for file, (title, about, sections) in reversals.pages(differences, documents).items():
        made[file] = _page(title, about, sections, revisions=states)
    for name, text in documents.items():
        made[f"docs/{name}.html"] = _page(parts(text)[0].title, "", document(text), up="../")
    return made


def real_first(suites: Sequence[Suite]) -> list[Suite]:
    """Suites on real data, then those on a part of them, then on synthetic ones."""
    return sorted(suites, key=lambda entry: [*origins.KINDS, None].index(entry.report.data))


def _page(title: str, about: str, sections: Sequence[Section], up: str = "", revisions: Sequence[str] = ()) -> str:
    """A page; `revisions` are those of the results that it shows, which stand in what is exported from it."""
    templates = environment()
    return templates.get_template("site.html.j2").render(
        **script(templates),
        title=title,
        about=about,
        sections=sections,
        revisions=revisions,
        pages=[(f"{up}{file}", name) for file, name in PAGES.items()],
    )


def _index(suites: Sequence[Suite]) -> Table:
    rows = []
    for entry in suites:
        report, verdict = entry.report, [claim.verdict for claim in entry.report.claims]
        untested = verdict.count("not run")
        tested = len(verdict) - untested
        privacy, *others = report.verdicts
        alarms = [f"{line.topic}: {line.text}" for line in others if line.alarm]
        rows.append(
            Row(
                report.title,
                [
                    Cell(f"{privacy.topic}: {privacy.text}", tuple(alarms[:1]), "reasons"),
                    Cell(report.suite, href=f"suites/{report.suite}/index.html", kind=""),
                    Cell(report.data, (report.dataset,), ""),
                    Cell(str(len(report.systems))),
                    Cell(f"{entry.near} of {entry.known}") if entry.known else missing_cell(),
                    Cell(f"{verdict.count('supported')} of {tested}", (f"{untested} not run",) if untested else ())
                    if tested
                    else missing_cell(),
                    Cell(entry.state, kind=""),
                ],
            )
        )
    headings = ["Suite", "headline", "report", "data", "systems", "results within 10 %", "claims supported", "state"]
    return Table(
        "All suites",
        [Heading(text, "number" if 3 < place < 7 else "") for place, text in enumerate(headings)],
        rows,
    )


def _leaderboards(suites: Sequence[Suite]) -> list[Section]:
    """Per data set the frontier of every suite on it, and its systems by unit of protection and band of ε."""
    made = []
    for origin in unique([entry.origin for entry in suites]):
        blocks: list[Blocks] = []
        for entry in suites:
            if entry.origin != origin:
                continue
            blocks += [optional(entry.frontier), _boards(entry), paragraph("Data: {}", entry.licence, kind="soft")]
        kind = " (synthetic)" if all(e.report.synthetic for e in suites if e.origin == origin) else ""
        made.append(Section(f"data-{origin}", f"{origin}{kind}", blocks))
    return made


def _boards(entry: Suite) -> list[Table]:
    """A table per unit of protection; systems without a finite ε stand in the last one."""
    known = unique([system.unit for system in entry.report.systems if system.unit])
    return [_board(entry, unit) for unit in (*known, "") if any(system.unit == unit for system in entry.report.systems)]


def _board(entry: Suite, unit: str) -> Table:
    rows = []
    systems = [system for system in entry.report.systems if system.unit == unit]
    lacking = "not run" if any(system.utility is not None for system in entry.report.systems) else "not measured"
    for system in sorted(systems, key=lambda system: _band(system.accounted_epsilon)[0]):
        epsilon = system.accounted_epsilon
        rows.append(
            Row(
                f"{system.name} ✗" if system.refuted else system.name,
                [
                    Cell(_band(epsilon)[1], kind=""),
                    missing_cell(lacking) if system.utility is None else Cell(number(system.utility)),
                    Cell(ledger.format_budget(epsilon), tuple(filter(None, [system.given])), "number wrap")
                    if system.protects
                    else missing_cell("no entry"),
                    Cell("", tuple(system.claimed) or (ledger.UNCLAIMED,), "stack"),
                    Cell("", tuple(system.protects), "reasons"),
                ],
            )
        )
    headings = ["System", "band", entry.report.utility, "accounted ε", "claimed ε", "what is protected"]
    of = f"systems by ε for {unit}" if unit else "systems without a finite ε"
    return Table(
        f"{entry.report.title}, {of}: ✗ marks a claim that an audit refutes",
        [Heading(text, "number" if 1 < place < 5 else "") for place, text in enumerate(headings)],
        rows,
    )


def _band(epsilon: float | None) -> tuple[int, str]:
    if epsilon is None:
        return len(BANDS) + 1, "none"
    place = sum(epsilon > end for end in BANDS)
    return place, f"ε ≤ {BANDS[place]:g}" if place < len(BANDS) else f"ε > {BANDS[-1]:g}"


def _terms(suites: Sequence[Suite]) -> list[Section]:
    """Where the data of all suites are from and under which licences."""
    known = unique([f"{entry.origin}: {entry.licence}" for entry in suites if entry.licence])
    return [Section("terms", "Data and licences", [bullets(known)])] if known else []


def _references(suites: Sequence[Suite], counted: Sequence[coverage.Line]) -> dict[str, str]:
    """Paper -> its reference."""
    known = {
        paper: [entry.reference for entry in suites if entry.report.paper == paper]
        for paper in unique([line.paper for line in counted])
    }
    return {paper: join_words(unique(of)) or "no suite of it has results yet" for paper, of in known.items()}


def schema() -> dict[str, Any]:
    """JSON schema of report.json."""
    return {"$schema": SCHEMA, "$id": "urn:dprec:report"} | Report.model_json_schema()
