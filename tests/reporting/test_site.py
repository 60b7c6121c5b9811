"""The pages over all suites, and what published pages may hold."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from html import unescape
from pathlib import Path, PurePosixPath
from typing import Any

import jsonschema
import polars as pl
import pytest

from tasks.reporting import site
from tasks.reporting.core.layout import Table
from tasks.reporting.core.results import Results
from tasks.reporting.sections import details, word_vectors
from tasks.stages import site as stage
from tasks.stages.report import report_of
from tests.reporting import shown

ROOT = Path(__file__).resolve().parents[2]
K = 10
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
def printed() -> pl.DataFrame:
    return pl.read_csv(ROOT / "data/reference/paper_tables.csv", infer_schema=False)


@pytest.fixture(scope="module")
def pages(suites: list[site.Suite], printed: pl.DataFrame) -> dict[str, str]:
    made = site.pages(suites, printed, DOCUMENTS)
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


def test_the_index_says_of_every_suite_what_it_is_and_its_headline(suites: list[site.Suite]) -> None:
    table = site._index(suites)
    assert [row.cells[0].href for row in table.rows] == ["suites/gerai/index.html", "suites/demo/index.html"]
    assert [row.cells[1].text for row in table.rows] == ["real", "synthetic"]
    assert table.rows[1].cells[3].kind == "missing number", "synthetic data are set beside no paper"
    for row, suite in zip(table.rows, suites, strict=True):
        assert row.cells[5].text.partition(": ")[2] in {line.text for line in suite.report.verdicts}


def test_coverage_counts_every_printed_number_once(suites: list[site.Suite], printed: pl.DataFrame) -> None:
    *rows, total = site._coverage(suites, printed).rows
    assert total.cells[1].text == f"{printed.height:,}" == f"{1013:,}"
    assert sum(int(row.cells[1].text) for row in rows) == printed.height
    (gerai,) = [row for row in rows if row.name == "gerai"]
    assert 0 <= int(gerai.cells[3].text) <= int(gerai.cells[2].text) <= int(gerai.cells[1].text)
    assert int(gerai.cells[2].text) == suites[0].known > 0


def test_leaderboards_are_sorted_by_band_and_utility(suites: list[site.Suite]) -> None:
    table = site._board(suites[0])
    bands = [row.cells[0].text for row in table.rows]
    assert bands == sorted(bands, key=["ε ≤ 1", "ε ≤ 10", "ε > 10", "no finite ε"].index)
    for band in set(bands):
        values = [float(row.cells[1].text) for row in table.rows if row.cells[0].text == band]
        assert values == sorted(values, reverse=True)
    assert [site._band(epsilon)[1] for epsilon in (0.0, 1.0, 1.1, 10.0, 11.0, None)] == [
        "ε ≤ 1", "ε ≤ 1", "ε ≤ 10", "ε ≤ 10", "ε > 10", "no finite ε",
    ]  # fmt: skip


def test_private_systems_have_cards_and_others_none(suites: list[site.Suite]) -> None:
    captions = [block.caption for block in suites[0].cards if isinstance(block, Table)]
    assert any("dp-popularity" in caption for caption in captions)
    assert not any("Privacy card of bpr" in caption for caption in captions)


def test_a_report_is_what_its_schema_says(suites: list[site.Suite]) -> None:
    schema = site.schema()
    for suite in suites:
        record = json.loads(suite.report.model_dump_json())
        jsonschema.validate(record, schema)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(record | {"systems": "none"}, schema)
    assert suites[0].report.claims
    assert any(system.accounted_epsilon == 1.0 for system in suites[0].report.systems)


def test_documents_are_pages_that_can_be_searched_and_run_nothing(pages: Mapping[str, str]) -> None:
    assert "Discounted gain." in pages["docs.html"]
    assert 'href="docs/methods.html#ndcg"' in pages["docs.html"]
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
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "site"
    assert stage.write(out, 1) == 1
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
        read = pl.read_parquet_schema(file) if file.suffix == ".parquet" else pl.read_csv(file, n_rows=1).schema
        for name, kind in read.items():
            assert name not in PERSONAL or (name == "target" and kind == pl.String) or kind == pl.Int64, (file, name)
            assert not isinstance(kind, pl.List | pl.Struct), (file, name)
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


def test_every_page_says_where_its_data_are_from_and_on_which_terms(real: Results, demo: Results) -> None:
    for results in (real, demo):
        assert results.licence
        text = " ".join(str(block) for block in details.provenance_section(results).blocks)
        assert results.licence in unescape(text)
