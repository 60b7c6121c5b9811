"""Rows of systems open to how they were run, headings say what is better, and both without script."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape

from tasks.reporting.core.layout import HIGHER, LOWER, Cell, Heading, Row, Table
from tasks.reporting.core.results import Results
from tasks.reporting.sections import tables
from tasks.reporting.templating import environment

K = 10


def drawn(table: Table) -> str:
    return str(environment().get_template("table.html.j2").module.table(table))  # type: ignore[attr-defined]


def test_a_row_opens_to_its_command_parameters_commit_and_data(real: Results) -> None:
    fingerprint = "ab" * 32
    known = replace(real, fingerprints={real.dataset: fingerprint}, runs=())
    system = known.compared[1]
    about = dict(tables.system_terms(known, system))
    assert about["Command"] == f"dvc repro suites/gerai/dvc.yaml:train@{system.experiment}"
    assert json.loads(about["Parameters"]) == system.parameters
    assert about["Commit"] == tables.UNRECORDED
    assert about["Data"] == f"{real.dataset}, SHA-256 {fingerprint}"
    text = drawn(tables.headline(known, K))
    assert len(re.findall(r"<details class=\"run\">", text)) == len(known.systems)
    for term, value in about.items():
        assert f"<dt>{term}</dt><dd>{value}</dd>" in unescape(text)


def test_commits_are_those_of_the_runs(demo: Results) -> None:
    assert demo.runs
    system = demo.compared[0]
    (train,) = [run for run in demo.runs if (run.stage, run.name) == ("train", system.experiment)]
    about = dict(tables.system_terms(replace(demo, fingerprints={}), system))
    assert about["Commit"].startswith(f"{train.revision} (train, {train.started})")
    assert about["Data"].endswith("SHA-256 not recorded")


def test_headings_say_what_is_better(real: Results) -> None:
    table = tables.headline(real, K)
    marks = {heading.text: heading.better for heading in table.headings}
    for quality in real.layout.qualities:
        assert HIGHER in [mark for text, mark in marks.items() if text.startswith(quality.at(K))]
    assert {marks[attribute] for attribute in real.attributes()} == {LOWER}
    assert (marks["System"], marks["claimed"], marks["accounted"], marks["audited"]) == ("", LOWER, LOWER, "")


def test_marks_are_read_aloud_and_names_are_escaped() -> None:
    table = Table(
        "a", [Heading("System", ""), Heading("MAE", better=LOWER)], [Row("x", [Cell("1")], about=[("<b>", "<i>")])]
    )
    text = drawn(table)
    assert 'MAE <abbr title="lower is better">↓</abbr></th>' in text
    assert "<dt>&lt;b&gt;</dt><dd>&lt;i&gt;</dd>" in text
