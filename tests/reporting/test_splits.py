"""Results of several splits: what is tested over both, what is of the first alone, and what pages say of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from tasks.errors import DataError
from tasks.evaluation import statistics
from tasks.evaluation.run_numbers import APART
from tasks.reporting import page
from tasks.reporting.core import comparison, figures, findings
from tasks.reporting.core.figures import crossing_levels, point_of, sample_of, yardstick_levels
from tasks.reporting.core.results import BASE, Results, Spent, System
from tasks.reporting.sections import attacks, composition, details, tables, users
from tasks.stages.report import report_of
from tests.reporting.test_composition import entry, perturbed, spending

SPLITS = 3
SHIFT = 0.01
"""By how much every value is higher on each further split."""


@pytest.fixture
def crossed(real: Results) -> Results:
    """The made-up results, with what training measured at setting `base` on two further splits."""
    training = pl.col("metric").str.contains("^(full|sampled)") & (pl.col("setting") == BASE)
    rows = real.metrics.filter(training)
    more = [
        rows.with_columns(pl.col("seed") + split * APART, pl.col("value") + split * SHIFT) for split in range(1, SPLITS)
    ]
    systems = tuple(
        replace(
            system,
            seeds=tuple(split * APART + seed for split in range(SPLITS) for seed in system.seeds),
            parameters=system.parameters | {"features_of_splits": [system.parameters["features"]] * (SPLITS - 1)},
        )
        for system in real.systems
    )
    return replace(real, metrics=pl.concat([real.metrics, *more]), systems=systems)


def _two(results: Results) -> tuple[System, System]:
    first, second, *_ = (system for system in results.compared if not system.is_yardstick)
    return first, second


def test_runs_are_tested_over_splits_and_seeds(crossed: Results) -> None:
    first, second = _two(crossed)
    left, right = crossed.paired_values(first, "full/ndcg", 10, second, "full/ndcg", 10)
    assert len(left) == len(first.seeds)
    shaped = [values.reshape(SPLITS, -1) for values in (left, right)]
    tested = findings.paired_tests(crossed, {"": (left, right)})
    assert tested == statistics.paired_tests({"": (shaped[0], shaped[1])})
    interval = findings.interval(crossed, left)
    test = statistics.paired_tests({"": (shaped[0], np.zeros_like(shaped[0]))})[""]
    assert (interval.mean, interval.low, interval.high) == (test.difference, test.low, test.high)


def test_what_is_of_one_split_is_tested_over_seeds(real: Results, crossed: Results) -> None:
    first, second = _two(real)
    values = real.paired_values(first, "full/ndcg", 10, second, "full/ndcg", 10)
    assert findings.paired_tests(crossed, {"": values}) == findings.paired_tests(real, {"": values})
    assert findings.interval(crossed, values[0]) == findings.interval(real, values[0])


def test_values_of_some_runs_alone_are_not_taken_for_independent(crossed: Results) -> None:
    """A run without a value leaves a table with a hole, which the test of independent runs would not see."""
    first, second = _two(crossed)
    left, right = crossed.paired_values(first, "full/ndcg", 10, second, "full/ndcg", 10)
    with pytest.raises(DataError, match=f"{len(left) - 1} of {len(left)} runs on {SPLITS} splits"):
        findings.paired_tests(crossed, {"": (left[:-1], right[:-1])})


def test_rows_of_all_splits_and_of_the_first_are_compared_on_the_first(real: Results, crossed: Results) -> None:
    """Ordered by means over other data a system would win by the splits that it has more."""
    before, after = (comparison.entries(results) for results in (real, crossed))
    column = next(entry.column for entry in before if entry.column.metric.startswith("full") and len(entry.ours))
    own, every = ([row for row in rows if row.column == column and len(row.ours)] for rows in (before, after))
    assert all(len(row.ours) == SPLITS * len(old.ours) for row, old in zip(every, own, strict=True))
    np.testing.assert_equal([row.ours for row in comparison.on_same_runs(every)], [row.ours for row in every])
    mixed = comparison.on_same_runs([own[0], *every[1:]])
    assert [row.ours.tolist() for row in mixed] == [row.ours.tolist() for row in own]
    few = comparison.on_same_runs([replace(own[0], ours=own[0].ours[:2]), *own[1:]])
    assert [row.ours.tolist() for row in few] == [row.ours[:2].tolist() for row in own]


def test_a_point_of_a_sweep_is_of_the_first_split(real: Results, crossed: Results) -> None:
    first, _ = _two(real)
    alone, swept, every = (
        point_of(results, system, "full/ndcg", 10, 1.0, swept=swept)
        for results, swept in ((real, False), (crossed, True), (crossed, False))
        for system in results.systems
        if system.experiment == first.experiment
    )
    assert swept == alone
    assert alone is not None
    assert every is not None
    assert every.y == pytest.approx(alone.y + SHIFT)  # the mean of 0, 1 and 2 shifts


def test_levels_beside_a_sweep_are_of_the_first_split(real: Results, crossed: Results) -> None:
    alone, swept, every = (
        [level.y for level in yardstick_levels(results, 10, swept=swept)]
        for results, swept in ((real, False), (crossed, True), (crossed, False))
    )
    assert swept == alone != every
    assert [level.y for level in crossing_levels(crossed, 10)] == [level.y for level in crossing_levels(real, 10)]


def test_samples_of_lists_and_attacks_are_of_the_first_split(real: Results, crossed: Results) -> None:
    """Both are made of runs of the first split alone, so runs of others are no part of what is drawn."""
    names, bins = [system.experiment for system in real.compared], [[0.0, 0.1, 30]]
    records = tuple({"experiment": name, "metric": "ndcg", "k": 10, "bins": bins} for name in names)
    alone, every = (users.chart(replace(results, spreads=records)) for results in (real, crossed))
    seeds = len(real.compared[0].seeds)
    assert every.sample == alone.sample == f"n = {len(names)} systems, {seeds} seeds each, 30 users"
    assert attacks.chart(crossed, 10).sample == attacks.chart(real, 10).sample
    both = sample_of(crossed, [system.label for system in crossed.compared])
    assert both == f"n = {len(names)} systems, {SPLITS * seeds} runs each"


def test_tables_without_printed_numbers_name_what_their_means_are_over(real: Results, crossed: Results) -> None:
    for results, run in ((real, "seed"), (crossed, "run")):
        own = replace(results, paper=None)
        captions = [part.caption for _, parts in tables.published_tables(own) for part in parts]
        assert captions
        assert all(caption.endswith(f"(mean ± standard deviation over {run}s)") for caption in captions)


def test_gains_are_of_the_first_split_and_ranking_of_all(real: Results, crossed: Results) -> None:
    assert "attacked users and seeds; that of ranking is over seeds." in figures.tradeoff(real, 10).caption
    assert "the seeds of the first split; that of ranking is over runs." in figures.tradeoff(crossed, 10).caption


def test_perturbed_features_are_released_once_for_all_splits(crossed: Results) -> None:
    runs = [split * APART + seed for split in range(SPLITS) for seed in (0, 1)]
    features = tuple(Spent("base", run, entry(0.5, "feature")) for run in runs)
    shared, anew = ["perturbed/features"] * 2, ["perturbed/second", "perturbed/third"]
    for names, releases in ((shared, 2), (anew, 6)):
        results = spending(perturbed(crossed), features)
        of_splits = {"features_of_splits": names}
        systems = tuple(replace(system, parameters=system.parameters | of_splits) for system in results.systems)
        (group,) = composition.compose_releases(replace(results, systems=systems))
        assert (group.releases, group.epsilon) == (releases, pytest.approx(releases / 2))
    fits = tuple(Spent("base", run, entry(0.5)) for run in runs)
    (group,) = composition.compose_releases(spending(crossed, fits))
    assert (group.releases, group.epsilon) == (6, pytest.approx(3.0))


def test_pages_say_which_variation_an_interval_covers(real: Results, crossed: Results) -> None:
    text = page.render(crossed, report_of(crossed.paper), [], docs="..")
    seeds = len(real.systems[0].seeds)
    assert f"{SPLITS * seeds} runs each ({seeds} seeds on each of {SPLITS} splits)" in text
    assert "other seeds and other random splits of these data, neither other data nor another kind of processor" in text
    assert str(APART) not in text
    alone = page.render(real, report_of(real.paper), [], docs="..")
    assert "covers other seeds on this split, neither other data" in alone
    assert "runs each" not in alone


@pytest.mark.parametrize(
    ("runs", "text"),
    [
        ((0, 1, 2), "seeds 0 to 2"),
        ((0, 1, 2, APART, APART + 1, APART + 2), "seeds 0 to 2 on 2 splits"),
        ((0, 1, APART), "seeds 0, 1 on split 0; seed 0 on split 1"),
    ],
)
def test_runs_are_told_by_seed_and_split(runs: tuple[int, ...], text: str) -> None:
    assert details.seeds_text(runs) == text
