"""The documentation as it lies in docs/: its pages on the site, its links, and its words."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Mapping
from html import unescape
from pathlib import Path, PurePosixPath

import pytest

from tasks.reporting import api, site
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
    return site.pages([], [], {**documents, **api.documents("dprec")})


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


@pytest.mark.parametrize("module", ["accounting", "attacks", "audits", "mechanisms", "metrics"])
def test_every_name_of_the_library_has_its_docstring_on_a_page(module: str, pages: Mapping[str, str]) -> None:
    library = importlib.import_module(f"dprec.{module}")
    text = unescape(re.sub(r"<[^>]+>", "", pages[f"docs/api-dprec-{module}.html"]))
    for name in library.__all__:
        assert f'id="{name.lower()}"' in pages[f"docs/api-dprec-{module}.html"]
        (first, *_) = inspect.getdoc(getattr(library, name)).splitlines()
        assert re.sub(r"[`*]", "", first)[:40] in re.sub(r"[`*]", "", text), name
    assert 'href="api-dprec-metrics.html"' in pages["docs/api-dprec.html"]


def test_places_of_a_page_have_names_of_their_own_and_code_is_reached_by_keyboard(pages: Mapping[str, str]) -> None:
    for file, text in pages.items():
        ids = re.findall(r'\bid="([^"]+)"', text)
        assert len(ids) == len(set(ids)), file
        assert "<pre>" not in text
    assert [part.anchor for part in parts("# A\n\n## Gain\n\n## gain\n")] == ["a", "gain", "gain-1"]


def test_a_document_is_headed_once(pages: Mapping[str, str]) -> None:
    for file, text in pages.items():
        (title,) = re.findall(r"<h1>([^<]+)</h1>", text)
        assert title not in re.findall(r"<h2>([^<]+)</h2>", text), file
        assert "*" not in title


def test_links_to_files_that_no_site_has_become_text() -> None:
    (section,) = document("# A\n\nSee [the code](../tasks/a.py), [b](b.md#c) and [all](https://example.org/x).\n")
    (html,) = section.blocks
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


def test_every_module_that_a_document_names_is_there(documents: Mapping[str, str]) -> None:
    known = [path.as_posix() for folder in ("tasks", "flows", "tests") for path in (ROOT / folder).rglob("*.py")]
    for name, text in documents.items():
        for module in re.findall(r"`([\w./]+/\w+\.py)`", text):
            assert any(path.endswith(f"/{module}") for path in known), (name, module)
