"""Writes what an audit found: audit.json, index.html and, for the owner of the data alone, exposed.csv."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from tasks.errors import ConfigurationError
from tasks.external import folders
from tasks.external.findings import Answer, Audit, Canaries, Measure
from tasks.reporting.core import roc
from tasks.reporting.core.chart import Chart
from tasks.reporting.core.layout import Cell, Heading, Row, Table, missing_cell, number, words
from tasks.reporting.core.section import Blocks, Section, bullets, optional, paragraph
from tasks.reporting.templating import environment, script

SCHEMA = Path(__file__).with_name("audit.schema.json")
MOST_CURVES = 6
"""Of a figure: more cannot be told apart."""
HEADINGS = {
    "attributes": "Attributes: {}",
    "own items": "Training data in the lists",
    "users": "Membership of users",
    "interactions": "Membership of interactions",
    "held-back ratings": "Held-back ratings",
    "links": "Links",
    "re-identification": "Re-identification",
}


def schema() -> str:
    """The schema of audit.json, as it is committed."""
    return json.dumps(Audit.model_json_schema(), indent=2, ensure_ascii=False) + "\n"


def require_folder(out: Path) -> None:
    """Refuse a folder that cannot be made, before an audit that may take hours.

    Raises:
        ConfigurationError: there is a file of that name.
    """
    if out.exists() and not out.is_dir():
        raise ConfigurationError(f"--out {out}: there is a file of that name; choose another folder")


def write(audit: Audit, exposed: pl.DataFrame | None, out: Path) -> list[Path]:
    """Write all files; their paths. The same audit gives the same bytes."""
    folders.make(out)
    data, page, owner = out / "audit.json", out / "index.html", out / "exposed.csv"
    data.write_text(json.dumps(audit.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    page.write_text(render(audit), encoding="utf-8")
    if exposed is None or not len(exposed):
        owner.unlink(missing_ok=True)
        return [data, page]
    with folders.secret(owner) as file:
        exposed.write_csv(file)
    return [data, page, owner]


def render(audit: Audit) -> str:
    """The page, self-contained and without ids of users or items."""
    templates = environment("tasks.external")
    return templates.get_template("audit.html.j2").render(
        **script(templates), audit=audit, sections=_sections(audit), revisions=[]
    )


def _sections(audit: Audit) -> list[Section]:
    sections = [_section(place, answer) for place, answer in enumerate(audit.answers)]
    if audit.canaries is not None:
        sections.append(_canaries(audit.canaries))
    if audit.exposure:
        sections.append(_exposure(audit))
    rows = [
        Row(file.role, [words(file.path), Cell(f"{file.rows:,}"), words(file.roles), words("; ".join(file.notes))])
        for file in audit.files
    ]
    headings = [Heading("file", ""), Heading("path", ""), Heading("rows"), Heading("columns", ""), Heading("notes", "")]
    return [*sections, Section("files", "What was read", [Table("Files of this audit", headings, rows)])]


def _section(place: int, answer: Answer) -> Section:
    blocks: list[Blocks] = [
        optional(
            paragraph("{}", answer.sentence, kind="lead"),
            bullets(answer.notes) if answer.notes else None,
            _table(answer) if answer.attacks else None,
            _curves(place, answer),
        )
    ]
    return Section(f"answer-{place}", HEADINGS[answer.question].format(answer.subject), blocks)


def _curves(place: int, answer: Answer) -> Chart:
    """The ROC curves of the attacks that show most, by p-value; no panel where none has one."""
    best = sorted((attack for attack in answer.attacks if attack.roc), key=lambda attack: attack.p)[:MOST_CURVES]
    panels = {"": {attack.name: attack.roc for attack in best}} if best else {}
    return roc.chart(f"roc-{place}", f"ROC, {answer.subject}", panels, of="attack")


def _table(answer: Answer) -> Table:
    first = answer.attacks[0]
    names = [measure.name for measure in first.measures]
    controls = [measure.name for measure in first.controls]
    rows = [
        Row(
            attack.name,
            [
                *(_cell(_find_measure(attack.measures, name)) for name in names),
                *(_cell(_find_measure(attack.controls, name)) for name in controls),
                Cell(_p(attack.p_corrected)),
                Cell("shown" if attack.shown else "not shown", kind="found" if attack.shown else "quiet"),
            ],
        )
        for attack in answer.attacks
    ]
    headings = [Heading("attack", ""), *map(Heading, names), *map(Heading, controls), Heading("p, corrected")]
    return Table(
        "Attacks and their controls, with 95 % intervals",
        [*headings, Heading("a leak is", "")],
        rows,
        groups=[("attack", len(names)), ("controls", len(controls)), ("", 2)],
    )


def _find_measure(measures: list[Measure], name: str) -> Measure | None:
    return next((measure for measure in measures if measure.name == name), None)


def _cell(measure: Measure | None) -> Cell:
    if measure is None:
        return missing_cell()
    if measure.low is None or measure.high is None:
        return Cell(number(measure.value))
    return Cell(number(measure.value), (f"{number(measure.low)} to {number(measure.high)}",))


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else number(value)


def _canaries(canaries: Canaries) -> Section:
    rows = [
        Row("ε is at least", [Cell(number(canaries.epsilon, 2))]),
        Row("the most that could be proved", [Cell(number(canaries.provable, 2))]),
        Row("claimed", [Cell("–" if canaries.claimed is None else f"{canaries.claimed:g}")]),
        Row("claim", [Cell(canaries.claim, kind="")]),
        Row("ε proved of the control", [Cell("–" if canaries.control is None else number(canaries.control))]),
        Row("right guesses", [Cell(f"{canaries.correct} of {canaries.guesses}")]),
        Row("canaries", [Cell(str(canaries.canaries))]),
        Row("rule", [words(canaries.rule)]),
        Row("δ, confidence", [Cell(f"{canaries.delta:g}, {canaries.confidence:.0%}")]),
    ]
    about = paragraph("Unit and neighbours: {}.", canaries.unit)
    headings = [Heading("canaries", ""), Heading("")]
    return Section("canaries", "Canaries", [[about, Table("What the coins prove", headings, rows)]])


def _exposure(audit: Audit) -> Section:
    rows = [
        Row(of.of, [Cell(f"{of.count:,}"), *(Cell(number(value)) for value in (of.mean, of.p90, of.p99, of.most))])
        for of in audit.exposure
    ]
    headings = [Heading("of", ""), *map(Heading, ("number", "mean", "90th percentile", "99th percentile", "most"))]
    about = paragraph(
        "By the attack that decides: the share of held-back pairs that a training pair outranks (1/2 by chance), or "
        "the share of listed items that were trained on. Ids are in exposed.csv alone."
    )
    return Section("exposure", "Most exposed", [[about, Table("Exposure", headings, rows)]])
