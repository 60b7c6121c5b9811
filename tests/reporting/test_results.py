"""Reading values by system, metric and seed."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from tasks.errors import DataError
from tasks.reporting.core.results import Results, label
from tests.reporting.example import CUTOFFS, MAJORITY, SEEDS


def test_values_come_in_order_of_seed(real: Results) -> None:
    shuffled = replace(real, metrics=real.metrics.sample(fraction=1.0, shuffle=True, seed=1))
    system = real.systems[2]
    for metric in ("full/ndcg", "attribute/age/neural/f1"):
        assert (real.values(system, metric, 10) == shuffled.values(system, metric, 10)).all()
        assert sorted(real.by_seed(system, metric, 10)) == list(SEEDS)


def test_what_was_not_measured_is_empty(real: Results) -> None:
    assert not len(real.values(real.systems[0], "full/ndcg", 7))


def test_a_value_given_twice_is_refused(real: Results) -> None:
    twice = replace(real, metrics=pl.concat([real.metrics, real.metrics.head(1)]))
    with pytest.raises(DataError, match="given twice"):
        twice.values(real.systems[0], "full/ndcg", 10)


def test_pairs_use_the_seeds_that_both_have(real: Results) -> None:
    first, other = real.systems[:2]
    fewer = real.metrics.filter((pl.col("experiment") != first.experiment) | (pl.col("seed") != 1))
    left, right = replace(real, metrics=fewer).paired_values(first, "full/ndcg", 10, other, "full/ndcg", 10)
    assert len(left) == len(right) == 2
    assert list(right) == [real.by_seed(other, "full/ndcg", 10)[seed] for seed in (0, 2)]


def test_the_index_knows_what_there_is(real: Results) -> None:
    assert real.cutoffs("full/ndcg") == list(CUTOFFS)
    assert real.cutoffs("attribute/age/neural/f1") == list(CUTOFFS)  # not 0, the ratings alone
    assert real.attributes() == sorted(MAJORITY)
    assert real.attackers("age")[0] == "neural"
    assert "majority" not in real.attackers("age")
    assert real.majority("gender") == pytest.approx(MAJORITY["gender"])
    assert [system.name for system in real.yardsticks] == ["popularity", "dp-popularity"]


def test_labels_drop_the_suite() -> None:
    assert [label("gerai-bpr", "gerai"), label("gerai", "gerai"), label("x-bpr", "gerai")] == ["bpr", "gerai", "x-bpr"]


def test_gains_are_those_of_the_setting_base(every: Results) -> None:
    system = every.find_compared("gerai")
    gain = every.gain(system, "age", "neural", 10, "random")
    assert gain is not None
    assert (gain.mean, gain.low, gain.high) == pytest.approx((0.03, 0.01, 0.05))
    assert every.gain(system, "age", "neural", 5, "random") is None
    twice = replace(every, gains=pl.concat([every.gains, every.gains.head(1)]))
    with pytest.raises(DataError, match="given twice; run its attack stage again"):
        twice.gain(system, "age", "neural", 10, "random")
