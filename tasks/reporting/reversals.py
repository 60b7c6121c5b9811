"""Why we differ, a page per paper: reversed pairs of its suites on real data, its reasons, and their evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from markupsafe import Markup

from tasks.reporting.core import differences, origins
from tasks.reporting.core.layout import Cell, Table, count, join_words
from tasks.reporting.core.paper_report import PaperReport
from tasks.reporting.core.results import Results, unique
from tasks.reporting.core.section import Blocks, Section, paragraph
from tasks.reporting.sections import differences as pairs
from tasks.results.claims import Claim, Reason

ABOUT = (
    "Every two methods whose order in a printed column is the reverse of ours, and what is known of it. Where a paper "
    "prints no numbers of methods: every claim in words that ours contradict. {}"
)
TITLE = "Why we differ: {}"
REPLICAS = (
    "Suites on replicas are compared with nothing, since what is generated says nothing about the paper; none of their "
    "pairs is here: {}."
)
NOTHING = (
    "Nothing is printed of methods side by side as numbers that this suite has, so no pair can be reversed. Of its "
    "paper's claims in words our numbers contradict {}{}."
)
TURNS_NONE = "measured; the test shows no pair that it orders as printed"
REASON = '<li><span class="verdict">{}</span>: {} ({}). <span class="evidence">{} {}</span></li>\n'


@dataclass(frozen=True)
class Difference:
    """What one suite adds to the page of its paper."""

    suite: str
    title: str
    paper: str
    """Its key."""
    name: str
    reference: str
    synthetic: bool
    """Whether it is on a replica, and compared with nothing."""
    counts: Counter[str]
    """`differences.counts` of its pairs."""
    blocks: Sequence[Blocks]
    """These counts by table, and all reversed pairs, or contradicted claims of a paper that prints no pair."""
    reasons: Sequence[tuple[Reason, int, tuple[str, ...]]]
    """Every reason of the paper, how many pairs or claims it covers, and the systems that its reading waits for."""
    contradicted: int = 0
    """How many of the paper's claims our numbers contradict."""


def page_of(paper: str) -> str:
    """The file of a paper's page, by its key."""
    return f"why-{paper}.html"


def link(results: Results, up: str) -> tuple[str, str] | None:
    """Address and name of the page of a suite's paper; None where the suite is compared with none.

    up: the way from the suite's page to the site's.
    """
    paper = results.reproduced
    return None if paper is None else (f"{up}{page_of(paper.key)}", TITLE.format(paper.name))


def difference(results: Results, report: PaperReport, claims: Sequence[Claim] = ()) -> Difference | None:
    """What a suite adds; None where it reproduces no paper.

    claims: what the paper says, judged.
    """
    if results.paper is None:
        return None
    every = differences.pairs(results, report.differences)
    turned = differences.reversed_pairs(every)
    blocks = pairs.blocks_of(results, report, every) if every else pairs.blocks_of_claims(results, report, claims)
    whys = [pair.reason for pair in turned]
    whys += differences.contradicted(results, claims, report.differences).values()
    covered = [(reason, whys.count(reason)) for reason in differences.weighed(results, report.differences)]
    return Difference(
        results.suite,
        results.title,
        results.layout.key,
        results.layout.name,
        results.layout.reference,
        origins.kind(results) == "synthetic",
        differences.counts(every),
        blocks,
        [(reason, n, tuple(differences.absent(results, reason))) for reason, n in covered],
        sum(claim.verdict == "contradicted" for claim in claims),
    )


def pages(collected: Sequence[Difference], documents: Collection[str]) -> dict[str, tuple[str, str, list[Section]]]:
    """File -> title, what stands below it, and sections: a page for each paper that a suite on its data reproduces.

    documents: names of the pages of documentation that the site has.
    """
    papers = unique([of.paper for of in collected if not of.synthetic])
    made = {}
    for paper in papers:
        mine = [of for of in collected if of.paper == paper]
        real = [of for of in mine if not of.synthetic]
        replicas = [of.suite for of in mine if of.synthetic]
        sections = [Section(f"pairs-{of.suite}", of.title, _pairs(of)) for of in real]
        about = pairs.ABOUT if any(of.counts for of in real) else pairs.IN_WORDS
        if reasons := _reasons(real, documents):
            sections.insert(0, Section("reasons", "Known reasons", [reasons]))
        sections[0] = replace(sections[0], about=paragraph(about))
        if replicas:
            sections.append(Section("replicas", "Replicas", [paragraph("{}", REPLICAS.format(join_words(replicas)))]))
        made[page_of(paper)] = TITLE.format(real[0].name), ABOUT.format(real[0].reference), sections
    return made


def overview(collected: Sequence[Difference]) -> Table | None:
    """A line for each paper with its page; None without papers on real data."""
    real = sorted((of for of in collected if not of.synthetic), key=lambda of: of.paper)
    rows = []
    for paper, group in groupby(real, key=lambda of: of.paper):
        mine = [*group]
        link = Cell(TITLE.format(mine[0].name), href=page_of(paper), kind="wide")
        rows.append((mine[0].name, [link], sum((of.counts for of in mine), Counter[str]())))
    return pairs.counted("Reversed pairs by paper", ["Paper", "page"], rows) if rows else None


def _pairs(of: Difference) -> list[Blocks]:
    """The counts of one suite and its pairs, with a link to its report."""
    link = Markup('<p><a href="suites/{0}/index.html">Report of {0}</a></p>').format(of.suite)
    where = "; they stand in its report" if of.contradicted else ""
    return [link, *(of.blocks or [paragraph("{}", NOTHING.format(of.contradicted or "none", where))])]


def _reasons(real: Sequence[Difference], documents: Collection[str]) -> Markup:
    """Every reason of a paper: its kind, what it covers, its evidence, and where that stands; empty without any."""
    items = []
    for place, (reason, *_) in enumerate(real[0].reasons):
        suites = {of.suite: of.reasons[place] for of in real if of.counts or of.blocks}
        said = [f"{suite}: {_state(*of)}" if len(suites) > 1 else _state(*of) for suite, of in suites.items()]
        moved = unique([of.kind for of, *_ in suites.values() if of.turned or of.broken])
        kind = join_words(moved or [reason.kind])
        kind = f"{kind[:1].upper()}{kind[1:]}"
        at = Markup(", ").join(_source(source, documents) for source in reason.sources)
        items.append(Markup(REASON).format(kind, reason.name, join_words(said), reason.evidence, at))
    return Markup('<ul class="claims">\n{}</ul>\n').format(Markup().join(items)) if items else Markup()


def _source(source: str, documents: Collection[str]) -> Markup:
    """Where evidence stands, as a link where the site has that page."""
    page, _, anchor = source.removeprefix("docs/").partition(".md#")
    if page not in documents:
        return Markup("<code>{}</code>").format(source)
    return Markup('<a href="docs/{}.html#{}">{}</a>').format(page, anchor, source)


def _state(reason: Reason, covered: int, waiting: Sequence[str]) -> str:
    """What a reason comes to in a suite: the pairs or claims that it covers, or what it waits for."""
    moved = reason.turned or reason.broken
    moves = f"; by means it orders {reason.turned} as printed and reverses {reason.broken}" if moved else ""
    if covered or reason.claims:
        return f"{count(covered, 'claim' if reason.claims else 'pair')}{moves}"
    return f"waits for results of {join_words(waiting)}" if waiting else f"{TURNS_NONE}{moves}"
