"""What all suites on one data set release together: each page composes what its own suite releases, and no more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tasks.config.params import load
from tasks.reporting.core.results import Results
from tasks.reporting.sections.composition import Together, applies, together
from tasks.stages.common import RESULTS
from tasks.stages.report import read


def by_source() -> Iterator[tuple[str, tuple[str, ...], list[Together]]]:
    """Each data set with private releases: its name, the suites that release something of it, and what that spends.

    Reads data/results/ of all suites that params.yaml still knows the data of. A data set is one download, whatever
    protocols make of it: its users are the same. Twins are data sets of their own.

    Raises:
        DataError: a file of results is not what was written.
    """
    processed, sources = load().processed, dict[str, dict[str, Results]]()
    for suite in sorted(path.parent.name for path in RESULTS.glob("*/results.json")):
        results = read(suite)[0]
        for source in {processed[system.dataset].dataset for system in results.systems if system.dataset in processed}:
            own = [
                system
                for system in results.systems
                if system.dataset in processed and processed[system.dataset].dataset == source
            ]
            of_source = replace(results, systems=tuple(own))
            if applies(of_source):
                sources.setdefault(source, {})[suite] = of_source
    for source, suites in sorted(sources.items()):
        yield source, tuple(suites), together(*suites.values())
