"""How training went: the validation metric by epoch for all systems in one figure, and what an epoch costs."""

from __future__ import annotations

from math import log

from tasks.reporting.core import figures
from tasks.reporting.core.chart import Chart, Panel, Point, Series, thin
from tasks.reporting.core.figures import series_of
from tasks.reporting.core.layout import NUMBER, Cell, Heading, Row, Table, missing_cell, number
from tasks.reporting.core.results import BASE, Results, System
from tasks.reporting.core.section import Block, Fold, Section, optional, paragraph
from tasks.reporting.core.sweeps import as_number

BOTH = "both"
"""Of a history: of two networks that are embedded together."""
NEGATIVES = 1
"""Of R-GCN and CroGCN where parameters do not say it (DP-CroSUE's Q)."""


def section(results: Results, k: int) -> Section:
    """Training, and the figures that stand beside no table."""
    charts = [Fold(drawn.title, drawn) if drawn.folded else drawn for drawn in figures.charts(results, k)]
    about = paragraph("Point at a mark to read its value.", kind="soft")
    parts = optional(chart(results), *charts, seconds(results), ended(results), unlearnt(results))
    return Section("figures", "Figures", [about, parts])


def chart(results: Results) -> Chart:
    """Mean over seeds at every epoch that all seeds reached, setting `base`."""
    layout = results.layout
    metric = results.validation or layout.validation
    if layout.utility.lower:  # curves show the error itself
        metric = metric.removeprefix("minus the ")
    title, run = f"validation {metric}", results.word_for_run
    every = [curve for system in results.compared if len((curve := _curve(results, system)).points) > 1]
    labels = {system.label for name in layout.apart if (system := results.find(name)) is not None}
    panels = []
    for name, group in (
        (title, [curve for curve in every if curve.name not in labels]),
        (f"{title}, last training event of each user", [curve for curve in every if curve.name in labels]),
    ):
        if group:
            panels.append(Panel(name, "epoch", metric, group, named=True))
    note = (
        " Models that know users and no sequences validate on the last training event of each user, the others on the "
        "users set apart for it: compare within a panel."
        if labels
        else ""
    )
    return Chart(
        "validation-curves",
        "Validation by epoch",
        f"Mean over {run}s, setting base, as far as all {run}s went.{note}",
        panels,
        sample=figures.sample_of(results, [curve.name for curve in every]),
    )


def seconds(results: Results) -> Table | None:
    """Epochs and seconds of every system that trains by epochs, setting `base`; None where there is none."""
    rows, run = [], results.word_for_run
    for system in results.compared:
        lengths = [len(history) for history in system.trainings.values()]
        if not lengths:
            continue
        span = str(lengths[0]) if len(set(lengths)) == 1 else f"{min(lengths)} to {max(lengths)}"
        trained = results.run("train", system.experiment)
        each, total = (None, None) if trained is None else (trained.epoch_seconds, trained.training_seconds)
        rows.append(
            Row(
                system.label,
                [
                    Cell(span),
                    missing_cell() if each is None else Cell(number(each, 2)),
                    missing_cell() if total is None else Cell(f"{total:.0f}"),
                ],
            )
        )
    if not rows:
        return None
    headings = ["System", "epochs", "seconds per epoch", "seconds in all"]
    return Table(
        f"Training of one {run}: median over epochs and {run}s, and sum over epochs, mean over {run}s",
        [Heading(text, NUMBER if place else "") for place, text in enumerate(headings)],
        rows,
    )


def ended(results: Results) -> Block | None:
    """Which runs the cap on epochs ended and not validation; None where nothing validates."""
    trained = [
        s for s in results.systems if any("valid" in epoch for epochs in s.trainings.values() for epoch in epochs)
    ]
    if not trained:
        return None
    cut = [run for system in trained for run in _runs(results, system, system.cut_off)]
    if not cut:
        return paragraph("Validation ended every training run whose number of epochs is not a part of its noise.")
    return paragraph("Ended by the cap on epochs, and not by validation: {}.", ", ".join(cut))


def unlearnt(results: Results) -> Block | None:
    """Which embeddings of networks end, at `base`, no better in their loss than vectors of zeros; None: no such.

    That need not mean that they tell nothing: a loss of inner products does not look at angles alone.
    """
    runs = [
        run
        for system in results.systems
        if (seeds := tuple(seed for seed in system.seeds if _ends_at_zero(system, seed)))
        for run in _runs(results, system, {BASE: seeds})
    ]
    said = "The loss on friendships ends no better than that of zero vectors: {}."
    return paragraph(said, ", ".join(runs)) if runs else None


def _ends_at_zero(system: System, seed: int) -> bool:
    """Whether the loss of a network, or of both together, is no less than ln 2 for each friend and each negative."""
    last = {network: records[-1] for (of, network), records in system.trainings.items() if of == seed}
    if "embeddings" not in system.parameters:  # other models have other losses
        return False
    parameters = system.parameters if "aligned" in system.parameters else system.parameters["embeddings"]
    zero = (1 + parameters["config"].get("negatives", NEGATIVES)) * log(2)
    return any(
        record.get("friendships", record["loss"]) >= zero * (2 if network == BOTH else 1)
        for network, record in last.items()
    )


def _runs(results: Results, system: System, by_setting: dict[str, tuple[int, ...]]) -> list[str]:
    return [
        f"{results.full_label(system)} ({setting}: {len(seeds)} of {_n_runs(system, setting)} {results.word_for_run}s)"
        for setting, seeds in by_setting.items()
    ]


def _n_runs(system: System, setting: str) -> int:
    """How many runs a setting has: a sweep point is of the first split, and may be of fewer seeds."""
    if setting == BASE:
        return len(system.seeds)
    return len(system.parameters["seeds"][: system.parameters.get("sweep_seeds")])


def _curve(results: Results, system: System) -> Series:
    lower = results.layout.utility.lower
    by_epoch: dict[float, list[float]] = {}
    histories = list(system.trainings.values())
    for history in histories:
        for epoch in history:
            value = as_number(epoch.get("valid"))
            if value is not None:  # what is selected by is maximised: of an error it may be the negative
                by_epoch.setdefault(float(epoch["epoch"]), []).append(abs(value) if lower else value)
    points = [
        Point(x, sum(values) / len(values), f"{system.label}, epoch {x:g}: {number(sum(values) / len(values), 4)}")
        for x, values in sorted(by_epoch.items())
        if len(values) == len(histories)
    ]
    line = series_of(results, system, points)
    return Series(line.name, line.style, thin(line.points), markers=False, muted=line.muted)
