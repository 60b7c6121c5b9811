"""Sections of a page: values are escaped, one that does not apply is absent, and a paper may add its own."""

import re
from dataclasses import replace

from tasks.reporting import page
from tasks.reporting.core.results import Results
from tasks.reporting.core.section import Fold, Section, bullets, heading, paragraph
from tasks.results.paper import BudgetSweep
from tasks.stages.report import report_of

HOSTILE = "<b>&\"'"
ESCAPED = "&lt;b&gt;&amp;&#34;&#39;"


def test_values_are_escaped_and_the_projects_own_markup_is_not() -> None:
    for block in (paragraph("<em>{}</em>", HOSTILE, kind=HOSTILE), heading("<em>{}</em>", HOSTILE, anchor=HOSTILE)):
        assert block.count(ESCAPED) == 2
        assert f"<em>{ESCAPED}</em>" in block
    assert bullets([HOSTILE, "{}"]) == f"<ul><li>{ESCAPED}</li><li>{{}}</li></ul>"


def test_a_papers_own_section_stands_before_what_is_published(real: Results) -> None:
    def own(results: Results, k: int) -> Section:
        return Section("own", HOSTILE, [Fold(HOSTILE, paragraph("{}, {}", results.suite, k)), []], link="Own")

    def other(results: Results, k: int) -> Section:
        return Section("other", f"{results.suite} {k}", [None, []], "About nothing")

    report = replace(report_of(real.paper), sections=(own, other))
    text = page.render(real, report, [], docs="..")
    anchors = re.findall(r'<section id="([^"]+)"', text)
    assert anchors[anchors.index("published") - 1] == "own"
    assert len(anchors) == len(set(anchors))
    assert "About nothing" not in text
    assert '<li><a href="#own">Own</a></li>' in text
    assert f"<h2>{ESCAPED}</h2>" in text
    assert f"<details><summary>{ESCAPED}</summary><p>gerai, {page.headline_cutoff(real)}</p></details>" in text
    assert HOSTILE not in text


def test_utility_by_budget_and_by_what_attacks_gain_stand_on_the_same_page(every: Results) -> None:
    """A suite may have both: each has an anchor of its own."""
    layout = replace(every.layout, budget_sweeps=(BudgetSweep("gerai", "epsilon"),))
    text = page.render(replace(every, layout=layout), report_of(every.paper), [], docs="..")
    anchors = re.findall(r'\bid="([^"]+)"', text)
    assert len(anchors) == len(set(anchors))
    assert {"tradeoff", "chart-tradeoff", "chart-gains"} <= set(anchors)
    assert '<li><a href="#tradeoff">Utility by ε</a></li>' in text


def test_what_does_not_apply_has_neither_section_nor_link(real: Results) -> None:
    text = page.render(real, report_of(real.paper), [], docs="..")
    anchors = set(re.findall(r'<section id="([^"]+)"', text))
    assert {"attacks", "headline"} <= anchors
    assert anchors.isdisjoint({"links", "alignment", "reconstruction", "edges"})
    assert not re.search(r'href="#(links|alignment|reconstruction|edges)"', text)
