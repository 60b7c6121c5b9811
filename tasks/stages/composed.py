"""What all suites on one data set release together: each page composes what its own suite releases, and no more."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from tasks.config.params import load
from tasks.reporting.core import assumptions, ledger
from tasks.reporting.core.results import Results, unique
from tasks.reporting.sections.composition import DERIVED, applies, compose_releases, without_noise
from tasks.stages.common import RESULTS
from tasks.stages.report import read

COLUMNS = (
    "data set",
    "suites",
    "protects",
    "neighbouring inputs",
    "releases",
    "largest ε of one with this unit",
    "ε of all together",
)


def compose() -> tuple[list[tuple[str, ...]], list[str]]:
    """Each kind of private release of each data set, as texts in the order of `COLUMNS`, and notes to stand below.

    Reads data/results/ of all suites. A data set is one download, whatever protocols make of it: its users are the
    same. Synthetic replicas are data sets of their own, and what params.yaml no longer names is left out. Releases in
    brackets are private and spend on the same, without a bound; what is in no row, for it has no noise, is in a note.

    Raises:
        DataError: a file of results is not what was written.
    """
    rows: list[tuple[str, ...]] = []
    notes = [assumptions.OF_PREPARED, DERIVED.strip()]
    for source, suites in sorted(_by_source().items()):
        for group in compose_releases(*suites.values()):
            towards = f", towards {group.observer}" if group.observer else ""
            budgets = ledger.format_budget(group.largest), group.total
            what = f"{group.protects}{towards}", group.neighbouring, group.counted
            rows.append((source, ", ".join(suites), *what, *budgets))
        clear = unique([name for results in suites.values() for name in without_noise(results)])
        trials = [f"{count} tuning trials of {suite}" for suite in suites if (count := _trials(suite, suites[suite]))]
        if named := [*clear, *trials]:
            notes.append(f"{source}: released without noise, so left out of every sum: {', '.join(named)}.")
    return rows, notes


def _trials(suite: str, results: Results) -> int:
    """How many recorded trials the experiments of a suite have."""
    path = RESULTS / suite / "tuning.csv"
    if not path.exists():
        return 0
    names = [system.experiment for system in results.systems]
    return pl.read_csv(path, columns=["experiment"]).filter(pl.col("experiment").is_in(names)).height


def _by_source() -> dict[str, dict[str, Results]]:
    """Data set -> suite -> what the suite's systems on it spent; data sets on which something has a finite ε."""
    sources: dict[str, dict[str, Results]] = {}
    of = {name: processed.dataset for name, processed in load().processed.items()}
    for suite in sorted(path.parent.name for path in RESULTS.glob("*/results.json")):
        results = read(suite)[0]
        for source in {of[system.dataset] for system in results.systems if system.dataset in of}:
            systems = tuple(system for system in results.systems if of.get(system.dataset) == source)
            sources.setdefault(source, {})[suite] = replace(results, systems=systems)
    return {source: suites for source, suites in sources.items() if any(map(applies, suites.values()))}
