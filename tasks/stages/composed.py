"""What all suites on one data set release together: each page composes what its own suite releases, and no more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tasks.config.params import load
from tasks.reporting.core import assumptions, ledger
from tasks.reporting.core.results import Results
from tasks.reporting.sections.composition import applies, compose_releases
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
NOTE = assumptions.OF_PREPARED
"""What stands below them."""


def rows() -> Iterator[tuple[str, ...]]:
    """Each kind of private release of each data set, as texts in the order of `COLUMNS`.

    Reads data/results/ of all suites. A data set is one download, whatever protocols make of it: its users are the
    same. Synthetic replicas are data sets of their own, and what params.yaml no longer names is left out. Releases in
    brackets are private and spend on the same, without a bound; systems without noise are in no row.

    Raises:
        DataError: a file of results is not what was written.
    """
    for source, suites in sorted(_by_source().items()):
        for group in compose_releases(*suites.values()):
            towards = f", towards {group.observer}" if group.observer else ""
            budgets = ledger.format_budget(group.largest), group.total
            what = f"{group.protects}{towards}", group.neighbouring, group.counted
            yield source, ", ".join(suites), *what, *budgets


def _by_source() -> dict[str, dict[str, Results]]:
    """Data set -> suite -> what the suite's systems on it spent, where they released anything with a finite ε."""
    sources: dict[str, dict[str, Results]] = {}
    of = {name: processed.dataset for name, processed in load().processed.items()}
    for suite in sorted(path.parent.name for path in RESULTS.glob("*/results.json")):
        results = read(suite)[0]
        for source in {of[system.dataset] for system in results.systems if system.dataset in of}:
            systems = tuple(system for system in results.systems if of.get(system.dataset) == source)
            if applies(own := replace(results, systems=systems)):
                sources.setdefault(source, {})[suite] = own
    return sources
