"""The pages over all suites, and what published pages may hold."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from html import unescape
from itertools import pairwise
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

import jsonschema
import polars as pl
import pytest

from tasks.errors import ConfigurationError
from tasks.reporting import coverage, files, site
from tasks.reporting.core.chart import ALARM, Panel
from tasks.reporting.core.layout import Table, missing_cell
from tasks.reporting.core.results import Results
from tasks.reporting.core.section import Fold
from tasks.reporting.documents import parts
from tasks.reporting.overview import audit_chart, audited_claims, finding
from tasks.reporting.sections import details, word_vectors
from tasks.stages import site as stage
from tasks.stages.report import report_of
from tests.reporting import shown
from tests.reporting.committed import drawn

ROOT = Path(__file__).resolve().parents[2]
K = 10
CURVES = {"fpr", "tpr"}
"""Lists that are rates at thresholds."""
PERSONAL = {"user", "users", "item", "items", "original", "account", "session", "target", "targets"}
"""Columns and keys that may hold whose value it is; where they hold counts, they are single numbers."""
DOCUMENTS = {
    "choices": "# Choices\n\nWhy.\n\n## What the numbers say about GERAI, and why\n\nSee [methods](methods.md).\n\n"
    "| a | b |\n| --- | --- |\n| <script>alert(1)</script> | 2 |\n",
    "methods": "# Methods\n\n## NDCG\n\nDiscounted gain.\n",
}


@pytest.fixture(scope="module")
def suites(real: Results, demo: Results) -> list[site.Suite]:
    return [site.suite(results, report_of(results.paper), shown.claims(results, K)) for results in (real, demo)]


@pytest.fixture(scope="module")
def counted(suites: list[site.Suite]) -> list[coverage.Line]:
    collected = [suite.evidence for suite in suites if suite.evidence is not None]
    return coverage.lines(collected, files.read_published(ROOT / "data/reference/paper_tables.csv"), {}, {})


@pytest.fixture(scope="module")
def pages(suites: list[site.Suite], counted: list[coverage.Line]) -> dict[str, str]:
    made = site.pages(suites[::-1], counted, DOCUMENTS)
    return made | {f"suites/{suite.report.suite}/index.html": suite.page for suite in suites}


def test_every_link_leads_to_a_page_or_a_place_of_the_site(pages: Mapping[str, str]) -> None:
    ids = {file: set(re.findall(r'\bid="([^"]+)"', text)) for file, text in pages.items()}
    for file, text in pages.items():
        assert len(ids[file]) == len(re.findall(r'\bid="([^"]+)"', text))
        for link in map(unescape, re.findall(r'\bhref="([^"]+)"', text)):
            if link.startswith("data:text/csv;"):
                continue
            path, _, fragment = link.partition("#")
            target = file if not path else _joined(file, path)
            assert target in pages, (file, link)
            assert not fragment or fragment in ids[target], (file, link)


def _joined(file: str, link: str) -> str:
    parts: list[str] = []
    for part in (PurePosixPath(file).parent / link).parts:
        parts = parts[:-1] if part == ".." else [*parts, part]
    return "/".join(parts)


def test_no_section_has_text_outside_a_paragraph(pages: Mapping[str, str]) -> None:
    for file, text in pages.items():
        assert not re.findall(r"</h2>\s*([^<\s][^<]{,40})", text), file


def test_the_index_says_of_every_suite_what_it_is_and_its_headline(suites: list[site.Suite]) -> None:
    table = site._index(suites)
    assert [row.cells[1].href for row in table.rows] == ["suites/gerai/index.html", "suites/demo/index.html"]
    assert [row.cells[2].text for row in table.rows] == ["real", "synthetic"]
    assert table.rows[1].cells[4].kind == "missing number", "synthetic data are set beside no paper"
    assert all(row.cells[6].text.startswith("revision ") for row in table.rows)
    for row, suite in zip(table.rows, suites, strict=True):
        assert row.cells[0].text.partition(": ")[2] in {line.text for line in suite.report.verdicts}


@pytest.mark.parametrize("file", ["index.html", "leaderboards.html", "cards.html"])
def test_real_data_come_before_synthetic_ones(pages: Mapping[str, str], file: str) -> None:
    named = re.findall(r"(?:suites/|frontier-|cards-)(gerai|demo)\b", pages[file])
    assert list(dict.fromkeys(named)) == ["gerai", "demo"]


def test_claims_that_were_not_run_do_not_count_as_tested(suites: list[site.Suite]) -> None:
    verdicts = ("supported", "not run", "contradicted", "not run", "supported")
    claims = [site.ClaimRecord(artefact="t", claim="c", verdict=verdict, evidence="") for verdict in verdicts]

    def cell(claims: list[site.ClaimRecord]) -> tuple[str, tuple[str, ...]]:
        report = suites[0].report.model_copy(update={"claims": claims})
        of = site._index([replace(suites[0], report=report)]).rows[0].cells[5]
        return of.text, of.lines

    assert cell(claims) == ("2 of 3", ("2 not run",))
    assert cell(claims[:1]) == ("1 of 1", ())
    assert cell(claims[1:2]) == (missing_cell().text, ())


def test_a_part_of_the_data_is_no_data_set(real: Results) -> None:
    part = site.suite(replace(real, stands_for="ml-1m"), report_of(real.paper), shown.claims(real, K))
    assert site._index([part]).rows[0].cells[2].text == "part"
    assert "part of the real data</span>" in part.page


def test_the_index_begins_with_every_audited_claim(
    suites: list[site.Suite], pages: Mapping[str, str], every: Results
) -> None:
    drawn = audit_chart([suite.audits for suite in suites])
    assert pages["index.html"].index('id="audits-all"') < pages["index.html"].index("<table")
    known = {(audit.claim, audit.verdict) for suite in suites for audit in suite.audits}
    assert len(list(drawn.panels[0].records)) == len(known) > 0
    twice = [*suites[0].audits, *(replace(audit, suite="another") for audit in suites[0].audits)]
    assert audit_chart([twice]).heading == audit_chart([suites[0].audits]).heading, "what suites share counts once"
    assert every.audit
    refuted = {**every.audit[0], "audited_epsilon": 4.18, "epsilon_claimed": 1.0, "verdict": "refuted"}
    claims = audited_claims(replace(every, audit=(*every.audit, refuted)))
    shown = audit_chart([claims, []])
    assert shown.heading == f"Claimed and proved ε: 1 of {len(claims)} audits refute their claim"
    (panel,) = shown.panels
    assert isinstance(panel, Panel)
    assert panel.identity
    assert [(line.colour, point.x, point.y) for line in panel.series if line.alarm for point in line.points] == [
        (ALARM, 1.0, 4.18)
    ]


@pytest.mark.parametrize("file", sorted((ROOT / "docs").glob("choices-*.md")), ids=lambda file: file.stem)
def test_findings_are_a_short_list_and_the_rest_is_folded(file: Path) -> None:
    articles = [part for part in parts(file.read_text(encoding="utf-8")) if part.title.startswith(site.FINDINGS)]
    for article in articles:
        lead, rest = finding(article)
        assert 10 <= len(str(lead).replace("<li>", " ").split()) <= 120
        assert str(lead).count("<li>") > 1
        assert isinstance(rest, Fold)
        assert rest.content == article.html


def test_every_card_says_what_training_cost_or_that_it_was_not_recorded(real: Results) -> None:
    assert real.runs
    timed = tuple(replace(run, seconds=71.0, training_seconds=None) for run in real.runs)
    for runs, said in ((timed, "71 s of training"), ((), "its cost was not recorded")):
        cards = site.suite(replace(real, runs=runs), report_of(real.paper), []).cards
        costs = [block for block in cards if isinstance(block, str) and block.startswith("<p>Utility")]
        assert costs
        assert all(said in cost for cost in costs)


def test_coverage_counts_every_printed_number_once(
    suites: list[site.Suite], counted: list[coverage.Line], pages: Mapping[str, str]
) -> None:
    *rows, total = coverage.by_paper(counted, site._references(suites, counted)).rows
    everything = sum(int(row.cells[1].text) for row in rows)
    assert total.cells[1].text == f"{everything:,}"
    assert everything == pl.read_csv(ROOT / "data/reference/paper_tables.csv").height
    assert all(sum(int(cell.text) for cell in row.cells[2:6]) == int(row.cells[1].text) for row in rows)
    assert {row.name: row.cells[0].text for row in rows}["multvae"] == "no suite of it has results yet"
    (gerai,) = [row for row in rows if row.name == "gerai"]
    assert int(gerai.cells[2].text) == suites[0].known > 0
    assert 0 <= int(gerai.cells[6].text) == suites[0].near <= suites[0].known
    assert suites[1].evidence is None, "the demo stands for nothing"
    assert 'id="artefacts"' in pages["index.html"]
    assert "no suite of the paper has results on tmall" in pages["coverage.html"]


def test_leaderboards_are_of_one_unit_and_sorted_by_band_and_utility(suites: list[site.Suite]) -> None:
    assert all(len(suite.frontier.heading.split()) <= 20 for suite in suites)
    boards = site._boards(suites[0])
    assert sum(len(table.rows) for table in boards) == len(suites[0].report.systems)
    units = {system.name: system.unit for system in suites[0].report.systems}
    assert len(boards) == len({*units.values()}) > 1
    for table in boards:
        assert len({units[row.name.removesuffix(" ✗")] for row in table.rows}) == 1
        bands = [row.cells[0].text for row in table.rows]
        assert bands == sorted(bands, key=["ε ≤ 1", "ε ≤ 10", "ε > 10", "none"].index)
        for band in set(bands):
            values = [float(row.cells[1].text) for row in table.rows if row.cells[0].text == band]
            assert values == sorted(values, reverse=True)
    assert [site._band(epsilon)[1] for epsilon in (0.0, 1.0, 1.1, 10.0, 11.0, None)] == [
        "ε ≤ 1", "ε ≤ 1", "ε ≤ 10", "ε ≤ 10", "ε > 10", "none",
    ]  # fmt: skip


def test_private_systems_have_cards_and_others_none(suites: list[site.Suite]) -> None:
    captions = [block.caption for block in suites[0].cards if isinstance(block, Table)]
    assert any("dp-popularity" in caption for caption in captions)
    assert not any("Privacy card of bpr" in caption for caption in captions)


def test_a_card_has_its_budgets_first_and_names_each_known_gap_once(suites: list[site.Suite]) -> None:
    budgets = ["Protects", "claimed ε", "accounted ε", "audited ε"]
    folds = 0
    for table, fold in pairwise(block for block in suites[0].cards if isinstance(block, Table | Fold)):
        if isinstance(table, Table):
            assert [heading.text for heading in table.headings][:4] == budgets
        if isinstance(table, Table) and isinstance(fold, Fold):
            folds += 1
            counts = [int(row.cells[-1].text) for row in table.rows]
            gaps = re.findall(r"<li>(.*?)</li>", str(fold.content))
            assert max(counts) <= int(fold.title.split()[0]) == len(gaps) == len(set(gaps))
    assert folds


def test_the_cards_begin_with_every_private_system_on_one_line(suites: list[site.Suite]) -> None:
    links = [row.cells[0].href.removeprefix("#") for row in suites[0].private]
    assert sorted(links) == sorted(re.findall(r'id="(card-[^"]+)"', "".join(map(str, suites[0].cards))))


def test_a_report_is_what_its_schema_says(suites: list[site.Suite]) -> None:
    schema = site.schema()
    for suite in suites:
        record = json.loads(suite.report.model_dump_json())
        jsonschema.validate(record, schema)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(record | {"systems": "none"}, schema)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert (schema["$schema"], schema["$id"]) == (
        jsonschema.Draft202012Validator.META_SCHEMA["$id"],
        "urn:dprec:report",
    )
    assert suites[0].report.claims
    assert any(system.audited_epsilon == 0.93 for system in suites[0].report.systems)
    assert any(system.accounted_epsilon == 1.0 for system in suites[0].report.systems)


def test_what_is_exported_from_pages_over_suites_names_their_revisions(
    suites: list[site.Suite], pages: Mapping[str, str]
) -> None:
    (revision,) = {suite.state.removeprefix("revision ") for suite in suites}
    assert f'data-revision="{revision}"' in pages["leaderboards.html"]
    assert 'data-revision="not recorded"' in pages["docs/methods.html"]


def test_documents_are_pages_that_can_be_searched_and_run_nothing(pages: Mapping[str, str]) -> None:
    assert "Discounted gain." in pages["docs.html"]
    assert 'href="docs/methods.html#ndcg"' in pages["docs.html"]
    assert "See methods." in pages["docs.html"], "a link is found by its words"
    assert 'href="methods.html"' in pages["docs/choices.html"]
    assert "&lt;script&gt;alert(1)" in pages["docs/choices.html"]
    assert "<h2>GERAI</h2>" in pages["findings.html"]
    for text in pages.values():
        assert len(re.findall(r"<script", text)) == 1
        assert "default-src 'none'" in text


def test_the_command_writes_the_site_from_committed_results_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in ("reference", "results/dpcrosue-ione"):
        shutil.copytree(ROOT / "data" / part, tmp_path / "data" / part)
    shutil.copy(ROOT / "params.yaml", tmp_path)  # says what data stand for
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "site"
    out.mkdir()
    (out / "thesis.txt").write_text("nobody's to remove")
    with pytest.raises(ConfigurationError, match="is no site and would be replaced"):
        stage.write(out, 1)
    (out / "thesis.txt").unlink()
    assert stage.write(out, 1) == 1
    first = (out / "suites/dpcrosue-ione/index.html").read_text(encoding="utf-8")
    (out / "index.html").write_text("of an older site")
    known = SimpleNamespace(map=lambda _, names: list(map(drawn, names)))  # as the process of the first time drew it
    monkeypatch.setattr(stage, "workers", lambda _: nullcontext(known))
    assert stage.write(out, 1) == 1, "a site is replaced"
    assert (out / "index.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert (out / "suites/dpcrosue-ione/index.html").read_text(encoding="utf-8") == first
    files = {file.relative_to(out).as_posix() for file in out.rglob("*") if file.is_file()}
    assert {*site.PAGES, "report.schema.json", "suites/dpcrosue-ione/report.json"} <= files


def _lists(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Every key with what it holds, at any depth."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield name, inner
            yield from _lists(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _lists(inner, key)


@pytest.mark.parametrize("folder", sorted((ROOT / "data/results").glob("*/")), ids=lambda folder: folder.name)
def test_committed_results_hold_aggregates_and_no_ids_of_users_or_items(folder: Path) -> None:
    for file in (*folder.glob("*.parquet"), *folder.glob("*.csv")):
        read = (
            pl.read_parquet_schema(file)
            if file.suffix == ".parquet"
            else pl.read_csv(file, infer_schema_length=None).schema
        )
        for name, kind in read.items():
            assert name not in PERSONAL or (name == "target" and kind == pl.String) or kind == pl.Int64, (file, name)
            assert not isinstance(kind, pl.List | pl.Struct) or name in CURVES, (file, name)
    for file in folder.glob("*.json"):
        for name, value in _lists(json.loads(file.read_text(encoding="utf-8"))):
            assert name not in PERSONAL or isinstance(value, int | str | float), (file, name)
            assert not isinstance(value, list) or len(value) < 500, (file, name)
    edges = folder / "edges.parquet"
    if edges.is_file():
        assert set(pl.read_parquet(edges)["target"]) <= {"aggregates", "recommendations", "every list"}


def test_groups_of_few_users_are_not_counted_on_pages(real: Results) -> None:
    words = {word: {"how": how, "users": n} for word, how, n in (("doctor", "sub-words", 7), ("student", "glove", 90))}
    origins = {"sub-words": {"words": 1, "users": 7}, "glove": {"words": 1, "users": 90}}
    vectors = {"name": "a", "n_users": 97, "words": words, "origins": origins}
    table = word_vectors.table(replace(real, words=(vectors,)))
    assert table is not None
    assert [row.cells[1].text for row in table.rows] == ["fewer than 10 of 97", "90 of 97"]


def test_pages_over_all_suites_name_the_licences_of_their_data(
    suites: list[site.Suite], pages: Mapping[str, str]
) -> None:
    for file in ("index.html", "cards.html", "coverage.html", "findings.html", "leaderboards.html"):
        for suite in suites:
            assert suite.licence
            assert suite.licence in unescape(pages[file]), file


def test_every_page_says_where_its_data_are_from_and_on_which_terms(real: Results, demo: Results) -> None:
    for results in (real, demo):
        assert results.licence
        text = " ".join(str(block) for block in details.provenance_section(results).blocks)
        assert results.licence in unescape(text)
