"""The documentation as it lies in docs/: its pages on the site, its links, and its words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import unescape
from pathlib import Path, PurePosixPath

import polars as pl
import pytest

from tasks.reporting import site
from tasks.reporting.documents import document, parts

ROOT = Path(__file__).resolve().parents[2]
PAPERS = ("gerai", "dpvae", "dipsgnn", "privsr", "dpcrosue")
PRIVATE = re.compile(r"(?<![\w/-])twins?(?![\w.-])|dealt out at random|tells? an attacker more than", re.IGNORECASE)
"""Words of this project alone, where the field has its own: replica, shuffled labels, leaks beyond."""
SHOWN = (
    "README.md", "docs/*.md", "suites/*/params.yaml", "params.yaml", "data/results/*/*.json", "data/results/*/*.csv",
    "tasks/papers/**/*.py", "tasks/reporting/**/*.py", "tasks/reporting/templates/*",
)  # fmt: skip
"""Where the text of pages comes from."""


@pytest.fixture(scope="module")
def documents() -> dict[str, str]:
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md"))}


@pytest.fixture(scope="module")
def pages(documents: Mapping[str, str]) -> dict[str, str]:
    return site.pages([], pl.read_csv(ROOT / "data/reference/paper_tables.csv", infer_schema=False), documents)


def test_every_link_between_documents_leads_to_a_section(pages: Mapping[str, str]) -> None:
    ids = {file: set(re.findall(r'\bid="([^"]+)"', text)) for file, text in pages.items()}
    for file, text in pages.items():
        for link in map(unescape, re.findall(r'\bhref="([^"]+)"', text)):
            if link.startswith(("http", "data:")):
                continue
            path, _, fragment = link.partition("#")
            target = str(PurePosixPath(file).parent / path) if path and not path.startswith("../") else path[3:] or file
            assert target in pages, (file, link)
            assert not fragment or fragment in ids[target], (file, link)


def test_links_of_documents_hold_where_they_lie(documents: Mapping[str, str]) -> None:
    anchors = {name: {part.anchor for part in parts(text)} for name, text in documents.items()}
    for name, text in documents.items():
        for path, fragment in re.findall(r"\]\((?!http)([^)#]*)(?:#([^)]+))?\)", text):
            assert not path or (ROOT / "docs" / path).exists(), (name, path)
            if fragment and path.endswith(".md"):
                assert fragment in anchors[path.removesuffix(".md")], (name, path, fragment)


def test_each_paper_has_a_page_of_choices_and_an_article_of_findings(
    documents: Mapping[str, str], pages: Mapping[str, str]
) -> None:
    assert len(documents["choices"].splitlines()) <= 60
    for paper in PAPERS:
        assert f"(choices-{paper}.md#" in documents["choices"]
    findings = re.findall(r"<h2>([^<]+)</h2>", pages["findings.html"])
    assert sorted(findings) == ["DIPSGNN", "DP-CroSUE", "DP-VAE", "GERAI", "PrivSR"]


def test_links_to_files_that_no_site_has_become_text() -> None:
    (html,) = document("# A\n\nSee [the code](../tasks/a.py), [b](b.md#c) and [all](https://example.org/x).\n").blocks
    assert "See the code, " in str(html)
    assert re.findall(r'href="([^"]+)"', str(html)) == ["b.html#c", "https://example.org/x"]


def test_pages_use_the_words_of_the_field() -> None:
    private = [
        (str(path.relative_to(ROOT)), text[max(0, match.start() - 30) : match.end() + 30])
        for pattern in SHOWN
        for path in sorted(ROOT.glob(pattern))
        for text in [path.read_text(encoding="utf-8")]
        for match in PRIVATE.finditer(text)
    ]
    assert private == []
