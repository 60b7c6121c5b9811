"""The documentation as it lies in docs/: its pages, its links, and the library's docstrings."""

import importlib
import inspect
import re
from html import unescape

import pytest

from tasks.pages import documents
from tests.pages.conftest import DOCUMENTS


@pytest.fixture(scope="module")
def pages(files: dict[str, str]) -> dict[str, str]:
    return {file: text for file, text in files.items() if file.startswith("docs/")}


def test_a_document_is_headed_once_and_its_parts_have_names_of_their_own(pages: dict[str, str]) -> None:
    for file, text in pages.items():
        assert len(re.findall(r"<h1>", text)) == 1, file
        assert "<pre>" not in text, "what may scroll is reached by keyboard"
    assert [part.anchor for part in documents.parts("# A\n\n## Gain\n\n## gain\n")] == ["a", "gain", "gain-1"]


def test_links_to_files_that_no_site_has_become_text() -> None:
    text = "# A\n\nSee [the *code*](../tasks/a.py), [b](b.md#c), [x](x.md) and [all](https://example.org/x).\n"
    (part,) = documents.parts(text, ["b"])
    assert part.text == "See the code, b, x and all."
    assert re.findall(r'href="([^"]+)"', str(part.html)) == ["b.html#c", "https://example.org/x"]
    assert "See the <em>code</em>, " in str(part.html)


def test_html_and_pictures_of_documents_are_not_shown() -> None:
    (part,) = documents.parts("# A\n\n<b>x</b> ![a](b.png)\n\n<script>y</script>\n")
    assert "<b>" not in part.html
    assert "<script" not in part.html
    assert "<img" not in part.html
    assert "&lt;script&gt;y" in part.html


def test_every_name_of_the_library_has_its_docstring_on_a_page(pages: dict[str, str]) -> None:
    for module in ("accounting", "attacks", "audits", "mechanisms", "metrics"):
        names = importlib.import_module(f"dprec.{module}")
        html = pages[f"docs/api-dprec-{module}.html"]
        text = re.sub(r"[`*]|<[^>]+>", "", unescape(re.sub(r"<[^>]+>", "", html)))
        for name in names.__all__:
            assert f'id="{name.lower()}"' in html
            (first, *_) = (inspect.getdoc(getattr(names, name)) or "").splitlines()
            assert re.sub(r"[`*]", "", first)[:40] in text, name
    assert 'href="api-dprec-metrics.html"' in pages["docs/api-dprec.html"]


def test_every_section_is_found_in_the_list(pages: dict[str, str]) -> None:
    html = pages[documents.INDEX]
    for name, text in DOCUMENTS.items():
        for title in re.findall(r"^## (.*)$", text, re.MULTILINE):
            plain = documents.parts(f"## {title}\n")[0].title
            assert plain in unescape(html), (name, title)
