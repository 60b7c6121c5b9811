"""What all suites on one data set release together: each page composes what its own suite releases, and no more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from tasks.config.params import load
from tasks.results import composition
from tasks.results.composition import Spender
from tasks.results.facts import Together
from tasks.stages.common import RESULTS
from tasks.stages.report import collected, results_of


@dataclass(frozen=True)
class Composed:
    """All suites on one download, whatever protocols make of it: its users are the same."""

    source: str
    suites: tuple[str, ...]
    together: list[Together]
    open: list[str]
    """Experiments without noise, in no sum."""
    trials: dict[str, int]
    """Suite -> recorded trials of its experiments, which have no noise either."""


def compose() -> Iterator[Composed]:
    """Every data set on which something has a finite ε, over data/results/ of all suites.

    Synthetic replicas are data sets of their own; what params.yaml no longer names is left out.

    Raises:
        DataError: a file of results is not what was written.
    """
    for source, spenders in sorted(_by_source().items()):
        if composition.applies(spenders):
            suites = tuple(results.suite.suite for results, _ in spenders)
            trials = {suite: _trials(suite, spender) for suite, spender in zip(suites, spenders, strict=True)}
            yield Composed(source, suites, composition.compose(spenders), composition.without_noise(spenders), trials)


def _trials(suite: str, spender: Spender) -> int:
    path = RESULTS / suite / "tuning.csv"
    if not path.exists():
        return 0
    names = [system.experiment for system in spender[1]]
    return pl.read_csv(path, columns=["experiment"]).filter(pl.col("experiment").is_in(names)).height


def _by_source() -> dict[str, list[Spender]]:
    sources: dict[str, list[Spender]] = {}
    downloads = {name: processed.dataset for name, processed in load().processed.items()}
    for results in map(results_of, collected()):
        systems = [system for system in results.suite.systems if system.dataset in downloads]
        for source in sorted({downloads[system.dataset] for system in systems}):
            sources.setdefault(source, []).append(
                (results, [system for system in systems if downloads[system.dataset] == source])
            )
    return sources
