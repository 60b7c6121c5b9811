"""Rank disagreements of made-up methods with made-up print, and which reason covers each."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tasks.evaluation.run_numbers import APART
from tasks.results import reproduction
from tasks.results.claims import Reading, Reason
from tasks.results.load import Results
from tasks.results.reproduction import PART, UNDECIDED, Pair
from tests.results import made
from tests.results.made import HIT, Row

PRINTED = {"BPR": 0.3, "GCN": 0.4, "Blurm": 0.1}
"""Made-up printed Hit@5."""
OURS = {"bpr": (0.50, 0.51, 0.52), "gcn": (0.41, 0.40, 0.42), "blurm": (0.45, 0.36, 0.44)}
"""Ours by seed: BPR is above GCN at each, and Blurm above it at two of three."""
AMONG_ALL = Reading(metric=("sampled-100/", "full/"))


def rows(of: Mapping[str, tuple[float, ...]], metric: str = HIT, setting: str = "base") -> list[Row]:
    return [
        (label, setting, metric, 5, seed, value) for label, values in of.items() for seed, value in enumerate(values)
    ]


@pytest.fixture
def pairs_of(tmp_path: Path) -> Any:
    """All pairs of a printed column by name, the better one first."""
    count = iter(range(100))

    def pairs(
        *reasons: Reason, ours: Mapping[str, tuple[float, ...]] = OURS, printed: Mapping[str, float] = PRINTED,
        more: tuple[Row, ...] = (), table: str = "table3", metric: str = "hit@5", id_: str = HIT, **facts: Any,
    ) -> dict[str, Pair]:  # fmt: skip
        numbers = [(table, method, metric, value) for method, value in printed.items()]
        of = made.of_rows(tmp_path / f"{next(count)}", [*rows(ours, id_), *more], facts=facts, printed=numbers)
        return {f"{pair.better.method} before {pair.worse.method}": pair for pair in every(of, *reasons)}

    return pairs


def every(of: Results, *reasons: Reason) -> list[Pair]:
    against = made.against(of)
    return reproduction.pairs(against, reproduction.blocks(against), reasons)


def reason(name: str = "made up", **changes: Any) -> Reason:
    return Reason(**{"name": name, "kind": "protocol", "evidence": "", "sources": ()} | changes)


def orders(pairs: Mapping[str, Pair]) -> dict[str, str]:
    return {name: pair.order for name, pair in pairs.items()}


def covered(pairs: Mapping[str, Pair]) -> dict[str, str]:
    return {name: pair.reason.name for name, pair in pairs.items() if pair.reason}


def kinds(pairs: Mapping[str, Pair]) -> dict[str, str]:
    return {name: pair.kind for name, pair in pairs.items() if pair.order == "reversed"}


def test_a_pair_is_reversed_where_our_means_say_so_and_shown_where_seeds_do(pairs_of: Any) -> None:
    pairs = pairs_of()
    assert orders(pairs) == {
        "GCN before BPR": "reversed", "GCN before Blurm": "reversed", "BPR before Blurm": "as printed"
    }  # fmt: skip
    assert [name for name, pair in pairs.items() if pair.shown] == ["GCN before BPR"], "0.45, 0.36, 0.44 shows nothing"


def test_less_is_better_of_what_attackers_reach(pairs_of: Any) -> None:
    """F1 of an attack: print has the lower one as the better."""
    pairs = pairs_of(table="table2", metric="f1_age@5", id_="attribute/age/neural/f1")
    assert orders(pairs)["BPR before GCN"] == "reversed"
    assert [name for name, pair in pairs.items() if pair.shown] == ["BPR before GCN"]


def test_what_is_printed_as_equal_is_no_pair_and_what_is_equal_here_is_not_reversed(pairs_of: Any) -> None:
    assert pairs_of(printed={"BPR": 0.3, "GCN": 0.3}) == {}
    pairs = pairs_of(ours={"bpr": (0.5, 0.5, 0.5), "gcn": (0.5, 0.5, 0.5)}, printed={"BPR": 0.3, "GCN": 0.4})
    assert orders(pairs) == {"GCN before BPR": "equal"}


@pytest.mark.parametrize("n", [1, 3])
def test_a_single_run_and_runs_without_randomness_show_nothing(pairs_of: Any, n: int) -> None:
    (pair,) = pairs_of(ours={"bpr": (0.5,) * n, "gcn": (0.4,) * n}, printed={"BPR": 0.3, "GCN": 0.4}).values()
    assert (pair.order, pair.shown) == ("reversed", False)


def test_the_first_reason_that_covers_a_pair_counts_and_none_is_not_decided(pairs_of: Any) -> None:
    first, second = reason("of Blurm", rows=("Blurm",)), reason("of all", better=("GCN",))
    assert covered(pairs_of(first, second)) == {"GCN before BPR": "of all", "GCN before Blurm": "of Blurm"}
    for narrow in (
        reason(better=("BPR",)),
        reason(better=("GCN",), not_worse=("B*",)),
        reason(rows=("RAP",)),
        reason(tables=("table2",)),
        reason(metrics=("ndcg@*",)),
    ):
        assert set(kinds(pairs_of(narrow)).values()) == {UNDECIDED}


def test_that_data_are_a_part_is_a_reason_on_a_part_alone(pairs_of: Any) -> None:
    part = reason(kind=PART)
    assert set(kinds(pairs_of(part)).values()) == {UNDECIDED}
    assert set(kinds(pairs_of(part, stands_for="ml-100k")).values()) == {PART}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((0.10, 0.11, 0.09), ["GCN before Blurm"]),
        ((0.30, 0.39, 0.45), []),  # below GCN in the mean, which three seeds do not show
        ((0.50, 0.50, 0.51), []),
        ((), []),
    ],
)
def test_a_reading_covers_what_it_is_shown_to_order_as_printed(
    pairs_of: Any, values: tuple[float, ...], expected: list[str]
) -> None:
    offered = reason(reading=Reading(settings={"Blurm": {"added": "offered"}}))
    assert [*covered(pairs_of(offered, more=tuple(rows({"blurm": values}, setting="added=offered"))))] == expected


def test_a_reading_of_another_metric_is_of_both_methods(pairs_of: Any) -> None:
    full = tuple(rows({"bpr": (0.1, 0.11, 0.1), "gcn": (0.2, 0.22, 0.2)}, "full/hit"))
    assert [*covered(pairs_of(reason(reading=AMONG_ALL), more=full))] == ["GCN before BPR"]


def test_a_system_in_place_of_another_is_read_under_its_own_metric(pairs_of: Any) -> None:
    instead = reason(reading=Reading(metric=("sampled", "tested"), metric_rows=("GCN",), systems={"GCN": "as-coded"}))
    assert covered(pairs_of(instead)) == {}
    better = tuple(rows({"as-coded": (0.90, 0.82, 0.89)}, "tested-100/hit"))
    assert [*covered(pairs_of(instead, more=better))] == ["GCN before BPR", "GCN before Blurm"]


def test_a_reading_that_reverses_as_many_pairs_as_it_turns_decides_nothing(pairs_of: Any) -> None:
    """Among all items GCN is above BPR, as printed; but RAP is above DPNE, and was below it, as printed."""
    ours = {"bpr": (0.5,) * 3, "gcn": (0.45,) * 3, "dpne": (0.2,) * 3, "rap": (0.1,) * 3}
    printed = {"GCN": 0.4, "BPR": 0.3, "DPNE": 0.2, "RAP": 0.1}
    turned = {"gcn": (0.6, 0.61, 0.6), "bpr": (0.5, 0.5, 0.51)}
    broken = {"rap": (0.4, 0.41, 0.4), "dpne": (0.3, 0.3, 0.31)}
    full = reason(reading=AMONG_ALL)
    for other, kind in ((turned, "protocol"), (turned | broken, UNDECIDED)):
        pairs = pairs_of(full, ours=ours, printed=printed, more=tuple(rows(other, "full/hit")))
        assert kinds(pairs) == {"GCN before BPR": kind}
        assert covered(pairs) == {"GCN before BPR": "made up"}


def test_systems_of_all_splits_and_of_the_first_are_compared_on_the_first(pairs_of: Any) -> None:
    """Ordered by means over other data a system would win by the splits that it has more."""
    further = tuple(("gcn", "base", HIT, 5, APART + seed, 0.9) for seed in range(3))
    pair = pairs_of(more=further)["GCN before BPR"]
    assert (pair.order, pair.ours) == ("reversed", pytest.approx(-0.1))


@pytest.mark.parametrize("facts", [{"synthetic": True}, {"paper": None}])
def test_replicas_and_suites_of_no_paper_have_no_pairs(pairs_of: Any, facts: Mapping[str, Any]) -> None:
    assert pairs_of(**facts) == {}
