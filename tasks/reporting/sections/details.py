"""The tables behind the results: privacy ledger, audits, data quality, provenance."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from tasks.evaluation.run_numbers import seed_of, split_of
from tasks.reporting.core import audits, known_gaps, ledger
from tasks.reporting.core.layout import Cell, Heading, Row, Table, join_words, missing_cell, words
from tasks.reporting.core.results import BASE, Results, unique
from tasks.reporting.core.section import Blocks, Fold, Section, bullets, heading, optional, paragraph, subsection
from tasks.reporting.sections import composition, one_run

SHORT_REVISION = 10
NOISE = {
    "published": "Noise as published.",
    "released": "Noise as in the code that the authors released.",
    "rigorous": "Noise calibrated to this total.",
}

NATURE = {
    "optimised unary encoding": (
        "Optimised unary encoding keeps a user's true category with probability one half at any budget; a larger "
        "budget only adds fewer false ones."
    )
}
"""Part of a mechanism's name -> what its budget does not tell (Wang et al., USENIX Security 2017, section 4)."""


def ledger_section(results: Results) -> Section:
    """Budgets with their gaps, and the audits."""
    known = gaps(results)
    about = paragraph(
        "The method is Steinke, Nasr and Jagielski's (2023). Audited is a lower bound: a low one does not show "
        "privacy, and the control shows what the same guesses prove where there is no noise."
    )
    blocks: list[Blocks] = [
        paragraph(
            "Claimed is the budget by the paper's own formula, accounted what follows under composition over "
            "everything one run did, audited what an attack on the mechanism proves at least. ∞ means that no "
            "finite guarantee follows, – that nothing is claimed; the reason stands below it. Neighbours differ in "
            "prepared data, not in the raw files."
        ),
        ledger_table(results),
        *composition.blocks(results),
        [paragraph("{}", note) for note in notes(results)],
        *([heading("Known gaps between guarantee and run")] if known else []),
        *(block for name, each in known for block in (paragraph("<strong>{}</strong>", name), bullets(each))),
        heading("Audits"),
        [audit_table(results) or paragraph("No mechanism of this suite was audited.")],
        *subsection("one-run", "Audited by one training run", about, one_run.table(results)),
    ]
    return Section("ledger", "Privacy ledger", blocks)


def quality_section(results: Results, docs: str) -> Section:
    """The checks that the results passed."""
    where = paragraph("Data docs lie where the checks ran; they are not in git.", kind="soft")
    return Section("quality", "Data quality", [[quality_table(results, docs), where]])


def provenance_section(results: Results) -> Section:
    """Where the data are from, how the results were made and with which parameters."""
    runs = optional(runs_table(results), packages_table(results))
    blocks: list[Blocks] = [
        paragraph(
            "Regenerate with <code>dvc repro report@{}</code>. The same revision and seeds on the same machine give "
            "the same metrics.",
            results.suite,
        ),
        heading("Data"),
        paragraph("{}", results.licence),
        *(runs or [paragraph("Revision, time and machine were not recorded with these results.")]),
        heading("Parameters"),
        *(Fold(name, Markup("<pre>{}</pre>").format(text)) for name, text in parameters(results)),
    ]
    return Section("provenance", "Provenance", blocks)


def ledger_table(results: Results) -> Table:
    """Claimed, accounted and audited budgets of every system and setting, with the reasons and the gaps."""
    rows = []
    for line in ledger.lines(results):
        entry, audit = line.entry, line.audit
        setting = "" if line.setting == BASE else f", {line.setting}"
        rows.append(
            Row(
                f"{results.full_label(line.system)}{setting}",
                [
                    Cell(line.protects, (entry.neighbouring,), "wide short"),
                    Cell(entry.mechanism, (seeds_text(line.seeds),), "wide short"),
                    Cell(ledger.claimed_budget(entry), (line.claimed_note,), "budget"),
                    Cell(
                        ledger.accounted_budget(entry),
                        (entry.reason or NOISE[entry.accounting],),
                        "budget",
                    ),
                    Cell(audits.format_bound(audit) if audit else line.unjoined, (line.audited_note,), "budget"),
                    Cell(ledger.format_budget(audit["provable"])) if audit else missing_cell(),
                ],
            )
        )
    headings = [
        "System",
        "Protects, neighbouring inputs",
        "Mechanism",
        "claimed",
        "accounted",
        "audited",
        "largest provable",
    ]
    return Table(
        "Privacy ledger: ε of one run. Audited is a lower bound, and nothing above the largest provable could be shown",
        [Heading(text, "number" if text == "largest provable" else "") for text in headings],
        rows,
        groups=[("", 2), ("ε", 4)],
    )


def gaps(results: Results) -> list[tuple[str, tuple[str, ...]]]:
    """Known gaps between guarantee and run, each once, headed by what it concerns; what concerns most comes first.

    Those that differ in their numbers alone are one.
    """
    concerned: dict[str, dict[tuple[str, str, str], None]] = {}
    alike: dict[str, list[str]] = {}
    for line in ledger.lines(results):
        for gap in known_gaps.of(results, line.entry):
            text = known_gaps.NUMBER.sub("#", gap)
            alike.setdefault(text, []).append(gap)
            concerned.setdefault(text, {})[line.system.label, line.network, line.entry.protects] = None
    by_owners: dict[tuple[tuple[str, str, str], ...], list[str]] = {}
    for text, owners in concerned.items():
        by_owners.setdefault(tuple(sorted(owners)), []).append(known_gaps.merged(alike[text]))
    known = sorted(by_owners.items(), key=lambda each: -len(each[0]))
    return [(_name_concerned(owners), tuple(named)) for owners, named in known]


def _name_concerned(owners: Sequence[tuple[str, str, str]]) -> str:
    """Systems with what they protect: "dpmf and privsr: ratings"."""
    things: dict[str, list[str]] = {}
    for thing in unique([protects for *_, protects in owners]):
        named = _name_owners([(system, network) for system, network, protects in owners if protects == thing])
        things.setdefault(named, []).append(f"{thing}s")
    return "; ".join(f"{named}: {join_words(protected)}" for named, protected in things.items())


def _name_owners(concerned: list[tuple[str, str]]) -> str:
    """Systems, and the networks that it is true of where there are two."""
    networks = unique([network for _, network in concerned if network])
    where = f" on {join_words(networks)}" if networks else ""
    return f"{join_words(unique([system for system, _ in concerned]))}{where}"


def notes(results: Results) -> list[str]:
    """What a reader should know of a mechanism beyond its budget, for the mechanisms that this suite used."""
    used = {spent.entry.mechanism for system in results.systems for spent in system.spent}
    return [note for part, note in NATURE.items() if any(part in mechanism for mechanism in used)]


def audit_table(results: Results) -> Table | None:
    """Every audited mechanism; None where nothing was audited."""
    rows = [
        Row(
            record["mechanism"],
            [
                Cell(
                    record["protects"],
                    (record["neighbouring"], f"worst case: {record['worst_case']}", *_audited_systems(results, record)),
                    "wide short",
                ),
                Cell(ledger.format_budget(record["epsilon_claimed"], record["delta"])),
                Cell(audits.format_bound(record), (audits.saturation_note(record),), "number wrap"),
                Cell(ledger.format_budget(record["provable"])),
                Cell(audits.format_controls(record)),
                Cell(f"{100 * record['confidence']:.6g} %", (f"{record['samples']:,} samples",)),
                Cell(record["verdict"], kind="bad" if record["verdict"] == "refuted" else ""),
            ],
        )
        for record in results.audit
    ]
    if not rows:
        return None
    headings = ["Mechanism", "Protects", "claimed ε", "audited ε", "largest provable", "half the noise, none"]
    headings += ["confidence", "verdict"]
    return Table(
        "Audits: the claim is refuted where audited exceeds it, inconclusive where the largest provable does not, "
        "where more is accounted than claimed, or where the claim is not refuted of the same system with half of its "
        "noise, and with none, by the same audit (–: not run). The worst case says of how many steps an audit of "
        "training is; bounds are rounded down",
        [Heading(text, "" if text in ("Mechanism", "Protects", "verdict") else "number") for text in headings],
        rows,
    )


def _audited_systems(results: Results, record: dict[str, Any]) -> list[str]:
    """Of which systems an audit is, at which settings where `base` is not among them, and on which network of two."""
    known = {system.experiment: system.label for system in results.systems}
    named = [
        known[experiment] + ("" if BASE in settings else f" at {', '.join(settings)}")
        for experiment, settings in record["covers"].items()
        if experiment in known
    ]
    where = f", on {record['network']}" if record["network"] else ""
    return [f"of {join_words(named)}{where}"] if named else []


def quality_table(results: Results, docs: str) -> Table:
    """Every check that the runs of this suite passed.

    docs: where the data docs lie, seen from the page; empty where they are not published with it.
    """
    rows = []
    for check in results.checks:
        contract, name = check["contract"], check["name"]
        link = f"{docs}/{quote(contract, safe='')}/{quote(name, safe='')}/index.html"
        rows.append(
            Row(
                contract,
                [
                    Cell(name, kind=""),
                    Cell("passed" if check["success"] else "failed", kind="" if check["success"] else "bad"),
                    Cell(str(check["evaluated"])),
                    Cell(str(check["failed"])),
                    Cell("data docs", kind="", href=link if docs else ""),
                ],
            )
        )
    headings = ["Contract", "Data", "Result", "expectations", "failed", "Details"]
    return Table(
        "Checks that these results passed",
        [Heading(text, "number" if text in ("expectations", "failed") else "") for text in headings],
        rows,
    )


def runs_table(results: Results) -> Table | None:
    """Revision, processor, time and memory of every stage; None without a record of them."""
    if not results.runs:
        return None
    known = {system.experiment: system for system in results.systems}
    rows = []
    for run in results.runs:
        system = known.get(run.name)
        rows.append(
            Row(
                f"{results.full_label(system) if system else run.name}, {run.stage}",
                [
                    Cell(short_revision(run.revision), kind="code"),
                    Cell(seeds_text(system.seeds) if system else "", kind=""),
                    Cell(run.started, kind=""),
                    Cell(f"{run.processor}, {run.cores} cores", kind=""),
                    Cell(f"{run.seconds:.0f}"),
                    Cell(f"{run.cpu_seconds:.0f}"),
                    Cell(f"{run.peak_memory_mb}"),
                ],
            )
        )
    headings = ["Run", "revision", "seeds", "started", "processor", "seconds", "CPU seconds", "peak memory (MB)"]
    return Table(
        "Runs. Finished seeds are kept: seconds are of the last part of what was resumed, CPU seconds of all parts",
        [Heading(text, "number" if index > 4 else "") for index, text in enumerate(headings)],
        rows,
    )


def packages_table(results: Results) -> Table | None:
    """Versions of the packages that the runs used, more than one where runs differ; None without a record of them."""
    versions: dict[str, set[str]] = {}
    for run in results.runs:
        for package, version in run.packages.items():
            versions.setdefault(package, set()).add(version)
    if not versions:
        return None
    rows = [Row(package, [words(", ".join(sorted(used)))]) for package, used in sorted(versions.items())]
    return Table("Packages", [Heading("Package", ""), Heading("version", "")], rows)


def revisions(results: Results) -> list[str]:
    """Distinct git revisions of the runs, shortened; empty without a record of them."""
    return sorted({short_revision(run.revision) for run in results.runs})


def parameters(results: Results) -> list[tuple[str, str]]:
    """What decided each run, as readable JSON."""
    named = [(results.full_label(system), system.parameters) for system in results.systems]
    named += [("attack", results.attack)] if results.attack is not None else []
    return [(name, json.dumps(values, indent=2, sort_keys=True, ensure_ascii=False)) for name, values in named]


def short_revision(revision: str) -> str:
    """A revision by its first digits; the mark of uncommitted changes stays."""
    commit, mark, changes = revision.partition("+")
    return commit[:SHORT_REVISION] + mark + changes


def seeds_text(seeds: Iterable[int]) -> str:
    """The runs of a system as running text: their seeds, and on how many splits."""
    by_split: dict[int, list[int]] = {}
    for run in sorted(seeds):
        by_split.setdefault(split_of(run), []).append(seed_of(run))
    own, *others = by_split.values()
    if others and all(other == own for other in others):
        return f"{seeds_text(own)} on {1 + len(others)} splits"
    if others:
        return "; ".join(f"{seeds_text(some)} on split {split}" for split, some in by_split.items())
    if len(own) > 2 and own == list(range(own[0], own[-1] + 1)):
        return f"seeds {own[0]} to {own[-1]}"
    return ("seed " if len(own) == 1 else "seeds ") + ", ".join(str(seed) for seed in own)
