"""Pages in a real browser: the first screen, tables, exports, links, and texts that try to break out."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tasks.reporting.core.results import Results
from tests.reporting import shown

K = 10
SIZES = ((1280, 900), (420, 900))
CORPUS = (
    "<script>document.title='broken'</script>",
    "</script><script>broken=1</script>",
    "<img src=x onerror=\"document.title='broken'\">",
    "</title><svg onload=\"document.title='broken'\">",
    "\" onmouseover=\"document.title='broken'",
    "' onfocus='broken=1' autofocus tabindex=1 '",
    "</style><style>main{display:none}</style>",
    "<iframe src=\"javascript:parent.document.title='broken'\">",
    "<a href=\"javascript:document.title='broken'\">x</a>",
    "{{ 7 * 7 }}",
    "{% include 'style.css' %}",
    "${document.title='broken'}",
    "datum.x); broken = (1",
    "]]><script>broken=1</script>",
    "&lt;script&gt;broken=1&lt;/script&gt;",
    "<base href=https://example.org>",
    "<meta http-equiv=refresh content=\"0;url=https://example.org\">",
    "<link rel=stylesheet href=https://example.org/x.css>",
    "<svg><animate onbegin=\"document.title='broken'\" attributeName=x dur=1s>",
    "--><script>broken=1</script><!--",
)  # fmt: skip


@pytest.fixture(scope="module")
def address(every: Results, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page with thirteen systems, beside its paper, one of whose claims an audit refutes."""
    assert every.audit
    refuted = {
        **every.audit[0],
        "audited_epsilon": 4.18,
        "verdict": "refuted",
        "mechanism": "noisy counts",
        "protects": "interaction",
    }
    text = shown.page(replace(every, audit=(*every.audit, refuted)), shown.claims(every, K))
    return written(tmp_path_factory.mktemp("page"), text)


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    yield from opened(browser, address)


def written(folder: Path, text: str) -> str:
    (folder / "index.html").write_text(text, encoding="utf-8")
    return (folder / "index.html").as_uri()


def opened(browser: Any, address: str, size: tuple[int, int] = SIZES[0]) -> Iterator[Any]:
    """A page that complained of nothing and asked for nothing when the test is over."""
    tab, problems = browser.new_page(viewport={"width": size[0], "height": size[1]}), []
    tab.on("console", lambda message: problems.append(message.text))
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.on("request", lambda request: problems.append(request.url) if request.url != address else None)
    tab.goto(address)
    yield tab
    tab.close()
    assert [problem for problem in problems if not problem.startswith("blob:")] == []


def names(table: Any) -> list[str]:
    return table.locator("tbody tr:visible th .name").all_inner_texts()


@pytest.mark.parametrize("size", SIZES)
def test_the_first_screen_holds_the_chart_and_the_verdicts(browser: Any, address: str, size: tuple[int, int]) -> None:
    for tab in opened(browser, address, size):
        lines = tab.locator(".verdicts li")
        assert 3 <= lines.count() <= 5
        assert "claims ε" in lines.first.inner_text()
        for part in (lines.last, tab.locator("#frontier svg")):
            box = part.bounding_box()
            assert 0 <= box["x"] <= box["x"] + box["width"] <= size[0]
            assert box["y"] + box["height"] <= size[1]
        caption = tab.locator("#frontier figcaption p")
        assert "Red ✗" in caption.inner_text()
        assert caption.is_visible()
        for link in lines.locator("a").all():
            assert tab.locator(link.get_attribute("href")).count() == 1
        for text in lines.all_inner_texts():
            for sentence in re.split(r"\.\s|\n", text):
                assert len(sentence.split()) <= 30


@pytest.mark.parametrize("size", SIZES)
def test_the_body_never_scrolls_sideways_and_labels_do_not_cover_one_another(
    browser: Any, address: str, size: tuple[int, int]
) -> None:
    for tab in opened(browser, address, size):
        tab.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
        assert tab.evaluate("document.documentElement.scrollWidth") <= size[0]
        pictures = tab.evaluate(
            """[...document.querySelectorAll('svg')].map(svg => [...svg.querySelectorAll('text')].map(text => {
              const box = text.getBoundingClientRect();
              return [text.textContent, box.left, box.top, box.right, box.bottom, text.outerHTML.includes('rotate')];
            }))"""
        )
        assert len(pictures) > 20
        for texts in pictures:
            straight = [text for text in texts if not text[5]]  # the box of turned text is larger than its letters
            for first, other in combinations(straight, 2):
                across = min(first[3], other[3]) - max(first[1], other[1])
                down = min(first[4], other[4]) - max(first[2], other[2])
                assert across <= 1.5 or down <= 3.5, (first, other)  # letters are lower than their line


def test_tables_sort_by_number_and_keep_their_references(page: Any) -> None:
    table = page.locator("#headline table").first
    before = names(table)
    heading = table.locator("thead tr:last-child th").nth(2)
    column = "tbody tr:not(.reference) td:nth-child(3)"
    for order, turned in (("ascending", False), ("descending", True)):
        heading.get_by_role("button").click()
        assert heading.get_attribute("aria-sort") == order
        numbers = [float(text.split()[0]) for text in table.locator(column).all_inner_texts()]
        assert numbers == sorted(numbers, reverse=turned)
    assert names(table)[:2] == before[:2]
    assert sorted(names(table)) == sorted(before)
    table.locator("thead tr:last-child th").first.get_by_role("button").press("Enter")
    assert names(table)[2:] == sorted(before[2:])
    table.locator("thead").get_by_role("button", name="accounted").click()
    budgets = table.locator("tbody tr:not(.reference) td:nth-last-child(2)").all_inner_texts()
    infinite = ["∞" in text for text in budgets]
    assert {True, False} == set(infinite)
    assert infinite == sorted(infinite), "a budget is infinite where any unit's is"


def test_rows_are_filtered_by_text_and_by_completeness(page: Any) -> None:
    table, tools = page.locator("#headline table").first, page.locator("#headline .tools").first
    every = names(table)
    tools.get_by_role("searchbox").fill("gerai-n")
    assert names(table) == ["gerai-nl", "gerai-nf"]
    tools.get_by_role("searchbox").fill("")
    assert names(table) == every
    lacking = "tbody tr:not(.reference):not(.foot) td.missing"
    box = page.locator(f".tools:has(+ .scroll {lacking})").first
    table = page.locator(f"#{box.locator('a').get_attribute('href').removeprefix('#')}")
    every = names(table)
    box.get_by_role("checkbox").check()
    assert 0 < len(names(table)) < len(every)
    assert table.locator(lacking).and_(page.locator(":visible")).count() == 0


def test_tables_are_exported_as_they_are_shown(page: Any) -> None:
    table, tools = page.locator("#headline table").first, page.locator("#headline .tools").first
    tools.get_by_role("searchbox").fill("gerai-n")
    texts = {}
    for name in ("CSV", "JSON", "LaTeX"):
        with page.expect_download() as download:
            tools.get_by_role("button", name=name).click()
        texts[name] = Path(download.value.path()).read_text(encoding="utf-8")
    head, *rows = csv.reader(io.StringIO(texts["CSV"]))
    assert head[0] == "System"
    assert [row[0] for row in rows] == names(table) == ["gerai-nl", "gerai-nf"]
    assert len(set(head)) == len(head)
    assert head[-2] == "ε of one run: accounted ↓", "a column is named with its group"
    assert re.fullmatch(r"0\.\d{3} ± 0\.\d{3}", rows[0][1])
    assert "-0." in texts["CSV"]
    assert "−" not in texts["CSV"] + texts["JSON"], "no program reads that minus sign"
    record = json.loads(texts["JSON"])
    assert record["caption"] == table.get_attribute("data-caption")
    assert [list(row.values()) for row in record["rows"]] == rows
    assert list(record["rows"][0]) == head
    assert r"\usepackage{booktabs,amssymb}" in texts["LaTeX"], "\\checkmark is of amssymb"
    assert r"\toprule" in texts["LaTeX"]
    assert r"\caption{Every system: mean $\pm$ standard deviation" in texts["LaTeX"]
    assert "revision " in texts["LaTeX"]
    assert texts["LaTeX"].count(r"\\") == 3
    assert not set(texts["LaTeX"]) & set("εδ∞±−≥–")
    with page.expect_download() as download:
        page.locator("#frontier a[download]").click()
    drawn = Path(download.value.path()).read_text(encoding="utf-8").splitlines()
    assert len(drawn) - 1 == 13 + 2  # systems, and the levels of the yardsticks


def test_tables_rows_and_claims_have_links_that_open_what_is_folded(page: Any) -> None:
    rows = page.locator("tr[id]").evaluate_all("rows => rows.map(row => row.id)")
    assert len(rows) == len(set(rows)) > 100
    folded = page.locator("details tr[id]").last.get_attribute("id")
    claim = page.locator(".claims li").last.get_attribute("id")
    for name in (rows[3], folded, claim, page.locator("table[id]").nth(2).get_attribute("id")):
        page.evaluate("name => { location.hash = name; }", name)
        page.wait_for_function("name => document.getElementById(name).getBoundingClientRect().height > 0", arg=name)
        top = page.evaluate("name => document.getElementById(name).getBoundingClientRect().top", name)
        assert -1 <= top <= 900


def test_a_link_to_a_filtered_row_shows_it_and_one_to_nothing_stops_nothing(browser: Any, address: str) -> None:
    for tab in opened(browser, address):
        row = tab.locator("#headline tbody tr").last
        tab.locator("#headline .tools").first.get_by_role("searchbox").fill("no such row")
        assert not row.is_visible()
        for name in (row.get_attribute("id"), "%E0%A4%A"):
            tab.evaluate("name => { location.hash = name; }", name)
            tab.wait_for_timeout(50)
        assert row.is_visible()


def test_links_of_rows_are_reached_by_keyboard_and_verdicts_look_like_links(page: Any) -> None:
    link = page.locator("#headline .row-link").nth(3)
    link.focus()
    assert link.evaluate("node => [node === document.activeElement, getComputedStyle(node).opacity]") == [True, "1"]
    topic = page.locator(".verdicts strong").first
    assert topic.evaluate("node => getComputedStyle(node).textDecorationLine") == "underline"


def test_all_cells_of_a_head_have_its_paper(page: Any) -> None:
    corner = page.locator("thead tr:first-child > td:first-child").first
    paper = "cell => getComputedStyle(cell).backgroundColor"
    assert corner.evaluate(paper) == page.locator("thead th").first.evaluate(paper)


def test_every_link_to_a_section_is_seen_on_a_wide_screen(page: Any) -> None:
    assert page.locator("nav ul").evaluate("list => list.scrollWidth <= list.clientWidth")
    assert page.locator("nav a").count() > 8


def test_pointing_at_a_mark_shows_its_value(page: Any) -> None:
    mark = page.locator("#frontier svg path[data-text]").last  # nothing lies above it
    mark.hover(force=True)
    assert page.locator(".tip").inner_text() == mark.get_attribute("data-text")


def test_without_script_all_content_is_there(browser: Any, address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(address)
    assert tab.locator("#headline tbody tr").count() > 13
    assert tab.locator("#headline tbody").first.is_visible()
    assert tab.locator("svg").count() > 20
    assert tab.locator(".tools").count() == 0
    context.close()


def test_dark_paper_changes_the_colours_of_pictures_and_print_hides_tools(page: Any) -> None:
    ink = "getComputedStyle(document.querySelector('#frontier svg text')).fill"
    light = page.evaluate(ink)
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(ink) != light
    page.emulate_media(media="print")
    assert not page.locator(".tools").first.is_visible()
    assert page.locator("#headline table").first.is_visible()


def test_nothing_that_data_are_named_gets_through(browser: Any, every: Results, tmp_path: Path) -> None:
    systems = [replace(system, label=text) for system, text in zip(every.systems, CORPUS, strict=False)]
    rest = iter(CORPUS[len(systems) :])
    hostile = replace(
        every,
        systems=tuple(systems),
        title=" ".join(CORPUS),
        suite=next(rest),
        licence=next(rest),
        part=next(rest),
        limits=next(rest),
        validation=next(rest),
        paper=None,
    )
    address = written(tmp_path, shown.page(hostile, []))
    for tab in opened(browser, address):
        assert tab.title() == " ".join(CORPUS)
        tab.locator("#frontier svg path[data-text]").first.hover(force=True)
        assert "broken" not in tab.evaluate("Object.keys(window).join()").split(",")
        assert tab.locator("script").count() == 1
        assert tab.locator("img, iframe, base, link, animate, meta[http-equiv=refresh]").count() == 0
        assert tab.locator("main").is_visible()
        assert "49" not in tab.locator("h1").inner_text()
        for text in CORPUS[:13]:
            assert tab.locator("#headline th .name", has_text=text).count() >= 1
