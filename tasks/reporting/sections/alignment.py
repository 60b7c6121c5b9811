"""Whose account is whose: how often accounts of one person are matched across two networks, and what that risks.

Precision@k is the share of judged anchors whose true account is among the k nearest; chance is k divided by the number
of accounts. A seed is at chance where so many first guesses would be right by chance with a probability above
`AT_CHANCE`: unsupervised ways may fail at single seeds, which a mean hides, so every seed's value is shown.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tasks.reporting.core.chart import WIDE, Chart, Level, Panel, Point, Series, sample_size
from tasks.reporting.core.layout import DASH, Cell, Heading, Row, Table, count, join_words, missing_cell, number
from tasks.reporting.core.results import Aligned, Results
from tasks.reporting.core.section import Section, bullets, optional, paragraph, subsection

WAYS = {
    "adversarial": "unsupervised: adversarial start",
    "cycle": "unsupervised: the authors' aligner",
    "attributes": "nearest by attributes",
    "attribute-start": "unsupervised: attributes as start",
    "anchors-1%": "1 % of the anchors known",
    "anchors-5%": "5 % of the anchors known",
    "anchors-10%": "10 % of the anchors known",
    "anchors-80%": "80 % of the anchors known",
}
"""Ways in the order of the tables -> how they are told."""
TICKS = {"attribute-start": "attr. start"}
BLIND = "adversarial"
"""The way that knows nothing but vectors."""
NAMES = "attributes"
"""The way that knows nothing but attributes, the hash of the name among them."""
CUTOFFS = (1, 10)
CHANCE = "alignment/chance"
AT_CHANCE = 0.001


@dataclass(frozen=True)
class Way:
    """What one way of one entry reached: metric and cut-off -> value by seed."""

    entry: Aligned
    name: str
    precision: dict[int, dict[int, float]]
    """Cut-off -> seed -> precision."""
    chance: dict[int, float]
    """Cut-off -> precision of guessing."""

    @property
    def title(self) -> str:
        """As it is told."""
        return WAYS.get(self.name, self.name.replace("-", " "))

    @property
    def failed(self) -> list[int]:
        """Seeds whose first guesses are no better than chance."""
        chance, n = self.chance.get(1), self.entry.judged
        if chance is None or n < 1:
            return []
        from scipy.stats import binom  # half a second to import, for suites with alignments alone

        return [
            seed
            for seed, value in sorted(self.precision.get(1, {}).items())
            if float(binom.sf(round(value * n) - 1, n, chance)) > AT_CHANCE
        ]


def ways(results: Results) -> list[Way]:
    """Every way of every entry, in the order of the entries and of `WAYS`."""
    every = []
    for entry in results.aligned:
        names = {
            metric.split("/")[1]
            for metric in results.metrics_of(entry.name)
            if metric.startswith("alignment/") and metric.endswith("/precision") and metric.count("/") == 2
        }
        known = {k: results.metric_values(entry.name, CHANCE, k) for k in CUTOFFS}
        chance = {k: float(np.mean(list(values.values()))) for k, values in known.items() if values}
        for name in sorted(names, key=_place):
            precision = {k: results.metric_values(entry.name, f"alignment/{name}/precision", k) for k in CUTOFFS}
            every.append(Way(entry, name, precision, chance))
    return every


def section(results: Results) -> Section:
    """Matched accounts and re-identification."""
    texts = sentences(results)
    about = paragraph(
        "How many people an attacker names with confidence, and how many of these names are right: an account that is "
        "named gives the other network's data, too."
    )
    return Section(
        "alignment",
        "Alignment of accounts, and its risk",
        [
            optional(chart(results), table(results), bullets(texts) if texts else None),
            *subsection("risk", "Re-identification", about, risk(results)),
        ],
        link="Alignment",
        about=paragraph(
            "Matching the accounts of one person across networks is what the method builds on, and an attack on that "
            "person. Chance guesses among all accounts. Single seeds of an unsupervised way may fail: every seed is "
            "shown."
        ),
    )


def sentences(results: Results) -> list[str]:
    """Per entry: whether structure alone is enough, which seeds fail, and what attributes give away."""
    texts = []
    every = ways(results)
    for entry in results.aligned:
        mine = {way.name: way for way in every if way.entry == entry and way.precision.get(1)}
        parts = []
        if blind := mine.get(BLIND):
            n = len(blind.precision[1])
            parts.append(
                f"without any known anchor the adversarial start matches {_share(blind)} of the accounts"
                + (f" and is at chance at {len(blind.failed)} of {count(n, 'seed')}" if blind.failed else "")
            )
            if len(blind.failed) == n:
                working = [way.title for way in mine.values() if way.name != BLIND and not way.failed]
                parts.append(f"so it fails, while these work: {join_words(working) or 'none'}")
        if named := mine.get(NAMES):
            times = _times(named)
            parts.append(f"attributes alone, the hash of the name among them, match {_share(named)}{times}")
        known = [way for way in mine.values() if way.name.startswith("anchors-")]
        parts += [f"{way.title}: {_share(way)}" for way in known]
        if parts:
            texts.append(f"{_title(entry)}: {'; '.join(parts)}.")
    return texts


def lead(results: Results) -> str:
    """The best match without known anchors, as a risk."""
    free = [way for way in ways(results) if not way.name.startswith("anchors-") and way.precision.get(1)]
    if not free:
        return ""
    best = max(free, key=lambda way: _mean(way, 1))
    blind = [way for way in free if way.name == BLIND]
    failing = [way for way in blind if len(way.failed) == len(way.precision[1])]
    if all(len(way.failed) == len(way.precision[1]) for way in free):
        return "Without any known anchor no way matches more accounts of one person than chance, at any seed."
    text = (
        f"Without any known anchor {_share(best)} of the accounts of one person are matched{_times(best)} "
        f"({best.title}, {best.entry.name})."
    )
    if blind and len(failing) == len(blind):
        text += " From vectors alone the adversarial start fails at every seed."
    return text


def table(results: Results) -> Table | None:
    """Precision of every way beside chance, with each seed's value; None where nothing was aligned."""
    rows, entry = [], None
    for way in ways(results):
        if way.entry != entry:
            entry = way.entry
            cells = [Cell(number(way.chance[k], 4)) if k in way.chance else missing_cell() for k in CUTOFFS]
            rows.append(
                Row(f"{_title(entry)}: chance", [*cells, missing_cell(), missing_cell(), missing_cell()], "reference")
            )
        pairs = _seeds(results, way, "found")
        rows.append(
            Row(
                way.title,
                [
                    *(_cell(way.precision.get(k, {})) for k in CUTOFFS),
                    _failures(way),
                    _cell(pairs, 0),
                    _cell(_seeds(results, way, "found/precision")),
                ],
            )
        )
    if not rows:
        return None
    headings = ["way", "precision@1", "precision@10", "seeds at chance", "pairs found", "of them right"]
    return Table(
        "Accounts of one person matched: mean over seeds, and below it the value of each seed in order. All ways are "
        "judged on the same anchors, which none of them knows; pairs found are mutual nearest neighbours",
        [Heading(text, "number" if text else "") for text in headings],
        rows,
    )


def risk(results: Results) -> Table | None:
    """Re-identification: accounts that an attacker names with confidence, and how often it is right then."""
    rows = []
    for way in ways(results):
        share, right = (_seeds(results, way, f"confident/{name}") for name in ("share", "precision"))
        if share:
            cells = [_cell(way.precision.get(1, {})), _cell(share), _confident_cell(right, share)]
            rows.append(Row(f"{way.title} ({way.entry.name})", cells))
    for system in results.compared:
        first, share, right = (
            results.by_seed(system, f"anchors/{name}", k)
            for name, k in (("precision", 1), ("confident/share", 0), ("confident/precision", 0))
        )
        if first or share:
            rows.append(
                Row(f"vectors released by {system.label}", [_cell(first), _cell(share), _confident_cell(right, share)])
            )
    if not rows:
        return None
    return Table(
        "Re-identification: mean over seeds, and below it the value of each seed in order. Ways, and vectors trained "
        "on true anchors (crosue-known), are judged on anchors that were held out from them; other vectors on all",
        [Heading("Who matches accounts", ""), *map(Heading, ("first guess right", "named with confidence",
         "of them right"))],
        rows,
    )  # fmt: skip


def chart(results: Results) -> Chart:
    """Precision@1 of every way: one mark for each seed, so that seeds that fail are seen."""
    every = ways(results)
    names = sorted({way.name for way in every}, key=_place)
    series = []
    for style, entry in enumerate(results.aligned):
        points = []
        for way in every:
            if way.entry == entry:
                for seed, value in sorted(way.precision.get(1, {}).items()):
                    text = f"{entry.name}, {way.title}, seed {seed}: {number(value)}"
                    points.append(Point(_tick(way.name), value, text))
        if points:
            series.append(Series(entry.name, style, points, line=False))
    ticks = [_tick(name) for name in names]
    chance = [way.chance[1] for way in every if 1 in way.chance]
    levels = [Level("chance", float(np.mean(chance)), "dashed")] if chance else []
    panel = Panel(
        "Accounts matched at first guess", "way; %: anchors known", "precision@1", series, levels, ticks, size=WIDE
    )
    return Chart(
        "chart-alignment",
        "Accounts matched by way and seed",
        "One mark for each seed. Higher is better alignment, and a higher risk of being recognised.",
        [panel] if series else [],
        sample=sample_size(
            len(series), [len(way.precision[1]) for way in every if way.precision.get(1)], "seed", "pair"
        ),
    )


def _seeds(results: Results, way: Way, metric: str) -> dict[int, float]:
    return results.metric_values(way.entry.name, f"alignment/{way.name}/{metric}")


def _title(entry: Aligned) -> str:
    return f"{entry.name} ({entry.sees})" if entry.sees else entry.name


def _tick(name: str) -> str:
    return TICKS.get(name, name.removeprefix("anchors-"))


def _place(name: str) -> tuple[int, str]:
    order = list(WAYS)
    return (order.index(name) if name in order else len(order), name)


def _mean(way: Way, k: int) -> float:
    return float(np.mean(list(way.precision[k].values())))


def _share(way: Way) -> str:
    """Its precision@1 as percent."""
    return f"{number(100 * _mean(way, 1), 1)} %"


def _times(way: Way) -> str:
    """How much more often than by chance; empty where chance is not known."""
    chance = way.chance.get(1)
    return f", {_mean(way, 1) / chance:,.0f} times as many as by chance" if chance else ""


def _failures(way: Way) -> Cell:
    if not way.precision.get(1) or 1 not in way.chance or way.entry.judged < 1:
        return missing_cell()
    failed = way.failed
    failing = (f"seed {join_words([str(seed) for seed in failed])}",) if failed else ()
    return Cell(f"{len(failed)} of {len(way.precision[1])}", failing, "number found" if failed else "number")


def _confident_cell(values: dict[int, float], share: dict[int, float]) -> Cell:
    """Of the seeds at which anybody is named; the others have a dash."""
    if not values:
        return missing_cell("nobody named")
    by_seed = " ".join(number(values[seed]) if seed in values else DASH for seed in sorted(share))
    return Cell(number(float(np.mean(list(values.values())))), (by_seed,) if len(share) > 1 else ())


def _cell(values: dict[int, float], digits: int = 3) -> Cell:
    if not values:
        return missing_cell()
    each = [values[seed] for seed in sorted(values)]
    by_seed = (" ".join(number(value, digits) for value in each),) if len(each) > 1 else ()
    return Cell(number(float(np.mean(each)), digits), by_seed)
