"""DIPSGNN as the code computes it that its authors released: with less noise, and each metric's best epoch on the test.

Nothing of it stands in another table or on a leaderboard: a choice on the test is no result.
"""

from __future__ import annotations

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from tasks.reporting.core import comparison, ledger
from tasks.reporting.core.layout import (
    HIGHER,
    NUMBER,
    Cell,
    Heading,
    Row,
    Table,
    format_difference,
    missing_cell,
    number,
)
from tasks.reporting.core.results import Results, System
from tasks.reporting.core.section import Blocks, Section, paragraph
from tasks.reporting.core.sweeps import swept

SYSTEM, PAPER_METHOD = "dipsgnn-authors-code", "DIPSGNN"
THEOREM = "accounting=published"
"""The setting that has the noise of the theorem, all else being equal."""
CHOSEN = "chosen-on-test/"
"""What begins the names of metrics whose epoch the test chose."""
MEASURES = tuple(
    (f"{label}@{k}", metric, k) for k in (20, 10) for label, metric in (("Recall", "recall"), ("MRR", "mrr"))
)
K, DIGITS = MEASURES[0][2], 4
ABOUT = (
    "The code that the authors released multiplies N(0, 1) by σ², not by σ, and evaluates on the test after every "
    "epoch, without noise. Of each metric it keeps the best epoch. Columns “chosen on test” repeat that: they are what "
    "that code would print, and no estimate of how well the system ranks. Beside them are the same runs at the epoch "
    "that validation chose. At the paper's C the same system has the noise of the theorem, too, with as many epochs "
    "and the same δ. Batches are ours, of all prefixes of some users; those of that code are of 100 prefixes. As many "
    "epochs are fewer steps here, so that a printed number that is not reached is not refuted. All means are over the "
    "seeds that every C has."
)


def section(results: Results, _: int) -> Section:
    """Printed and measured side by side, for every C; nothing where the system was not run."""
    system = results.find_compared(SYSTEM)
    settings = {} if system is None else swept(results, system).get("clip", {})
    blocks: list[Blocks] = []
    if system is not None and settings:
        blocks = [_sentence(results, system, settings), _table(results, system, settings)]
    return Section("authors-code", "As the authors' code computes it", blocks, paragraph(ABOUT), "Authors' code")


def _values(results: Results, system: System | None, metric: str, k: int, setting: str | None) -> NDArray[np.float64]:
    """(n_seeds,) values at the seeds that every C has, on the first split: none stands beside those of other runs."""
    ours = results.find_compared(SYSTEM)
    if system is None or setting is None or ours is None:
        return np.empty(0)
    settings = swept(results, ours).get("clip", {}).values()
    seeds = set[int].intersection(*({*results.by_seed(ours, "next/recall", K, each)} for each in settings))
    by_seed = results.by_seed(system, metric, k, setting)
    return np.array([by_seed[seed] for seed in sorted(seeds & by_seed.keys())], np.float64)


def _mean(results: Results, system: System | None, metric: str, k: int, setting: str | None) -> float | None:
    values = _values(results, system, metric, k, setting)
    return float(values.mean()) if len(values) else None


def _theorem(results: Results, system: System, setting: str) -> float | None:
    """What Theorem 4.2 gives for the aggregates at the noise that was drawn."""
    lines = ledger.lines_at(results, system, setting)
    return next((line.entry.claimed_epsilon for line in lines if line.protects == "session graph"), None)


def _printed(results: Results) -> dict[str, float]:
    """Metric such as recall@20 -> what the paper prints of its method; empty for data of which it prints nothing."""
    values = {} if results.reproduced is None else comparison.printed_values(results, results.reproduced)
    return {
        metric: value
        for (artefact, method, _, metric), value in values.items()
        if (artefact, method) == ("table2", PAPER_METHOD)
    }


def _sentence(results: Results, system: System, settings: dict[float, str]) -> Markup:
    """Whether the printed row is reproduced at the paper's C, and what noise and choice have each to do with it."""
    clip = min(settings)
    setting, metric = settings[clip], "next/recall"
    chosen, held = (_mean(results, system, name, K, setting) for name in (f"{CHOSEN}{metric}", metric))
    epsilon, printed = _theorem(results, system, setting), _printed(results).get(f"recall@{K}")
    if chosen is None or held is None:
        return paragraph("Not measured: the choice of epochs on the test.")
    with_noise = (
        f"with noise worth ε = {ledger.format_budget(epsilon)} for the aggregates by the paper's own theorem, ∞ for "
        "what is released, choosing epochs on the test"
    )
    if printed is None:
        text = f"Recall@{K} at C = {clip:g} is {number(chosen, DIGITS)} {with_noise}"
    else:
        near = abs(chosen - printed) <= comparison.NEAR * printed
        text = (
            f"The printed Recall@{K} of {number(printed, DIGITS)} is {'reproduced' if near else 'not reached'} (ours "
            f"{number(chosen, DIGITS)}) {with_noise}"
        )
    text += f". The choice on the test makes {format_difference(chosen - held, DIGITS)} of it"
    published = _with_theorem(results, system, clip)
    if published is not None:
        text += (
            f"; the other noise makes {format_difference(held - published, DIGITS)} where validation chooses epochs "
            f"({number(published, DIGITS)} with the theorem's, all else being equal)"
        )
    return paragraph("{}.", text)


def _with_theorem(results: Results, system: System, clip: float) -> float | None:
    """Recall of the same system, with as many epochs, and the theorem's noise; measured at the C of setting `base`."""
    setting = THEOREM if clip == system.config.get("clip") else None
    return _mean(results, system, "next/recall", K, setting)


def _table(results: Results, system: System, settings: dict[float, str]) -> Table:
    """A row for every C, below what the paper prints at its own."""
    rows, printed = [], _printed(results)
    if printed:
        figures = [_cell(printed.get(name.lower()), "not printed") for name, *_ in MEASURES]
        rows.append(Row("the paper, Table 2", [*[missing_cell()] * 4, *figures], "reference"))
    for clip, setting in settings.items():
        lines = ledger.lines_at(results, system, setting)
        released = [ledger.format_budget(line.entry.accounted_epsilon) for line in lines if line.protects == "edge"]
        cells = [Cell(ledger.format_budget(_theorem(results, system, setting))), *map(Cell, released)]
        cells += [_cell(_with_theorem(results, system, clip)), _cell(_mean(results, system, "next/recall", K, setting))]
        for _, metric, k in MEASURES:
            values = _values(results, system, f"{CHOSEN}next/{metric}", k, setting)
            deviation = f"± {number(float(values.std(ddof=1)), DIGITS)}" if len(values) > 1 else ""
            cells.append(_cell(float(values.mean()) if len(values) else None, line=deviation))
        rows.append(Row(f"C = {clip:g}", cells))
    headings = ["aggregates, Theorem 4.2", "what is released", "noise of the theorem", "noise of the code"]
    return Table(
        "The noise of the authors' code, by C: mean ± standard deviation over seeds",
        [
            Heading("", ""),
            *(Heading(text, NUMBER, HIGHER if place > 1 else "") for place, text in enumerate(headings)),
            *(Heading(name, NUMBER, HIGHER) for name, *_ in MEASURES),
        ],
        rows,
        [("ε", 2), ("Recall@20, chosen on validation", 2), ("noise of the code, chosen on test", len(MEASURES))],
    )


def _cell(value: float | None, absent: str = "not run", line: str = "") -> Cell:
    """A share; beside it what is smaller."""
    return missing_cell(absent) if value is None else Cell(number(value, DIGITS), (line,) if line else ())
