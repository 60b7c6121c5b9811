"""The summary of a report is read, not deciphered: no sentence of it has more than thirty words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import unescape

import pytest
from markupsafe import Markup

from tasks.reporting import page
from tasks.reporting.core.layout import Table
from tasks.reporting.core.results import Results
from tasks.reporting.core.section import Blocks
from tasks.reporting.sections import summary
from tests.reporting import shown
from tests.reporting.committed import read, sections

SUITES = ("demo", "gerai", "dipsgnn", "dpvae", "privsr", "dpcrosue", "dpcrosue-weibo-twin")


def texts(blocks: Sequence[Blocks]) -> Iterator[str]:
    """Paragraphs and items; nothing is folded away, so that no sentence loses the one before it."""
    for block in blocks:
        if isinstance(block, Markup):
            for part in re.split(r"</(?:p|li|h3)>", block):
                yield unescape(re.sub(r"<[^>]+>", "", part)).strip()
        else:
            assert block is None or isinstance(block, Table), block


def long(results: Results) -> list[str]:
    k = page.headline_cutoff(results)
    blocks = summary.section(results, shown.claims(results, k)[:1], k).blocks
    sentences = [sentence for text in texts(blocks) for sentence in re.split(r"(?<=[.!?])\s+", text)]
    assert len(sentences) > 5
    return [sentence for sentence in sentences if len(sentence.split()) > 30]


@pytest.mark.parametrize("suite", SUITES)
def test_no_sentence_of_a_summary_has_more_than_thirty_words(suite: str) -> None:
    assert long(read(suite)[0]) == []


@pytest.mark.parametrize("suite", SUITES)
def test_no_sentence_that_introduces_a_section_has_more_than_thirty_words(suite: str) -> None:
    abouts = [
        unescape(re.sub(r"<[^>]+>", "", section.about or "")) for section in sections(suite) if any(section.blocks)
    ]
    sentences = [sentence for text in abouts for sentence in re.split(r"(?<=[.!?])\s+", text)]
    assert [sentence for sentence in sentences if len(sentence.split()) > 30] == []


def test_counts_agree_with_one_another(every: Results) -> None:
    (line,) = [text for text in summary.standing(every, 10) if "NDCG@10" in text and "against popularity" in text]
    counts = [int(number) for number in re.findall(r"(\d+)(?: of \d+)? (?:better|worse|undecided)", line)]
    assert sum(counts) == int(re.findall(r"of (\d+) better", line)[0])
    assert len(summary.attempts(every, 10)) == len(every.attributes())
