"""Budgets by level, audits of ledger lines, and tables that read back as they were written."""

import math
from pathlib import Path
from typing import Any, get_args

import polars as pl
import pytest

from tasks.core.errors import DataError
from tasks.pages.page import rounded_down
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.terms import Level, Unit
from tasks.results import files, tables
from tasks.results.budgets import budgets, worst
from tasks.results.facts import Kind
from tasks.results.load import PROVENANCE, Results, read_runs
from tasks.results.tables import Spent
from tests.results import made
from tests.results.made import SEEDS, entry, system

AUDIT = {
    "protects": "interaction", "unit": "user", "neighbouring": "replace", "mechanism": "counts-discrete-laplace",
    "observer": "", "audit": "dp-popularity", "network": "", "covers": {"gerai-a": ["base"]}, "delta": 0.0,
    "epsilon_claimed": 1.0, "epsilon_accounted": 1.0, "audited_epsilon": 0.9, "confidence": 0.999, "samples": 1000,
    "provable": 5.0, "controls": {"half": 1.75, "none": 5.0},
}  # fmt: skip


def results(folder: Path, *spent: Spent, audited: list[dict[str, Any]] | None = None, **facts: Any) -> Results:
    """Results of system a, which spent this."""
    settings = [of.setting for of in spent]
    return made.write(
        folder, made.suite([system("a", *dict.fromkeys(settings)), system("b")], **facts), (), spent, audited or []
    )


def runs(
    *entries: LedgerEntry, seeds: tuple[int, ...] = SEEDS, setting: str = "base", network: str = ""
) -> list[Spent]:
    return [Spent("gerai-a", setting, seed, of, network) for seed in seeds for of in entries]


def spent(folder: Path, *given: Spent) -> dict[str, float]:
    """Level -> what is accounted for at setting `base`."""
    table = budgets(results(folder, *given)).filter(setting="base")
    return dict(table.select("level", "accounted").iter_rows())


def test_seeds_that_spent_the_same_share_a_line_and_one_that_spent_more_decides(tmp_path: Path) -> None:
    more = entry(1.0, accounted_epsilon=2.0)
    of = results(tmp_path, *runs(more, seeds=(0,)), *runs(entry(1.0), seeds=(1, 2)))
    assert [line.seeds for line in of.lines] == [(0,), (1, 2)]
    assert budgets(of)["accounted"].to_list() == [2.0]


def test_budgets_of_one_level_add_up_and_those_of_others_stand_apart(tmp_path: Path) -> None:
    other = entry(0.5, mechanism="aggregates-once")
    features = entry(20.0, "features", protects="feature")
    assert spent(tmp_path, *runs(entry(1.0), other, features)) == {"user": 1.5, "feature": 20.0}


def test_one_guarantee_for_two_things_is_counted_once(tmp_path: Path) -> None:
    """The same events for the same unit are the same releases; for another unit they are accounted for themselves."""
    both = runs(entry(1.0), entry(1.0, protects="rating"))
    assert spent(tmp_path / "one", *both) == {"user": 1.0}
    apart = runs(entry(1.0), entry(1.0, "interaction"))
    assert spent(tmp_path / "two", *apart) == {"user": 1.0, "interaction": 1.0}


def test_one_part_without_a_guarantee_leaves_none_at_its_level(tmp_path: Path) -> None:
    endless = entry(None, protects="rating", mechanism="none", events=())
    table = budgets(results(tmp_path, *runs(entry(1.0), endless)))
    (row,) = table.to_dicts()
    assert (row["level"], row["claimed"], row["accounted"], row["private"]) == ("user", 1.0, math.inf, True)


def test_entries_towards_one_observer_do_not_add_up_with_those_towards_another(tmp_path: Path) -> None:
    towards = [entry(epsilon, observer=observer, mechanism="sums-laplace") for epsilon, observer in
               ((1.0, "recommender-of-sums"), (3.0, "recommender-of-submissions"))]  # fmt: skip
    table = budgets(results(tmp_path, *runs(entry(0.5), *towards)))
    assert table.select("level", "accounted", "observer").rows() == [("user", 3.5, "recommender-of-submissions")]


def test_networks_of_a_pair_are_spent_apart(tmp_path: Path) -> None:
    given = runs(entry(1.0), network="one") + runs(entry(1.0), network="two")
    assert spent(tmp_path, *given) == {"user": 2.0}


@pytest.mark.parametrize(
    ("change", "joined"),
    [({}, True), ({"covers": {"gerai-a": ["epsilon=2"]}}, False), ({"covers": {"gerai-b": ["base"]}}, False),
     ({"mechanism": "none"}, False), ({"protects": "feature"}, False), ({"observer": "recommender-of-sums"}, False),
     ({"network": "one"}, False)],
)  # fmt: skip
def test_an_audit_is_of_the_lines_that_it_covers(tmp_path: Path, change: dict[str, Any], joined: bool) -> None:
    of = results(tmp_path, *runs(entry(1.0)), audited=[AUDIT | change])
    assert [line.audit is not None for line in of.lines] == [joined]
    table = budgets(of)
    assert table["audited"].to_list() == [0.9 if joined else None]
    assert table["verdict"].to_list() == ["consistent" if joined else None]


def test_an_audit_of_whole_texts_is_of_no_line_of_a_word(tmp_path: Path) -> None:
    about: dict[str, Any] = {"protects": "text", "mechanism": "exponential-words", "neighbouring": "replace"}
    units: tuple[Unit, ...] = ("near-word", "word", "texts")
    of = results(tmp_path, *runs(*(entry(1.0, unit=unit, **about) for unit in units)),
                 audited=[AUDIT | about | {"audit": "texts", "unit": "texts"}])  # fmt: skip
    assert [(line.entry.unit, line.audit is not None) for line in of.lines] == [
        ("near-word", False), ("word", False), ("texts", True)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "verdict"),
    [({}, "consistent"), ({"audited_epsilon": 1.2}, "refuted"), ({"controls": {}}, "inconclusive"),
     ({"controls": {"half": 1.75, "none": 0.8}}, "inconclusive"), ({"epsilon_accounted": 3.0}, "inconclusive")],
)  # fmt: skip
def test_a_bound_above_the_claim_refutes_it_and_a_low_one_needs_its_controls(
    tmp_path: Path, change: dict[str, Any], verdict: str
) -> None:
    assert results(tmp_path, *runs(entry(1.0)), audited=[AUDIT | change]).audits["verdict"].to_list() == [verdict]


def test_a_claim_of_more_than_was_audited_stays_inconclusive(tmp_path: Path) -> None:
    """The line's own ε is larger than that of the audited mechanism."""
    of = results(tmp_path, *runs(entry(1.0, accounted_epsilon=4.0)), audited=[AUDIT])
    assert of.audits["verdict"].to_list() == ["inconclusive"]


def test_the_worst_of_several_verdicts_is_theirs() -> None:
    assert worst(()) is None
    assert worst(("consistent", "inconclusive")) == "inconclusive"
    assert worst(("consistent", "inconclusive", "refuted")) == "refuted"


@pytest.mark.parametrize("bound", [0.0, 0.12345, 1.0, 1.23999, 123.456, 4.18, math.inf])
def test_bounds_are_rounded_down(bound: float) -> None:
    shown = rounded_down(bound)
    assert shown <= bound * (1 + 1e-11)
    assert shown == bound or shown > bound * (1 - 1e-2)


@pytest.mark.parametrize(
    ("synthetic", "of", "kind"), [(False, "", "real"), (False, "a", "part"), (True, "a", "synthetic")]
)
def test_every_table_says_of_what_kind_of_data_it_is(tmp_path: Path, synthetic: bool, of: str, kind: Kind) -> None:
    read = results(tmp_path, *runs(entry(1.0)), synthetic=synthetic, stands_for=of)
    assert read.suite.kind == kind
    for file in files.WRITTEN:
        if file != files.SUITE:
            table = (pl.read_csv if file.endswith("csv") else pl.read_parquet)(tmp_path / file)
            assert set(table["data"]) <= {kind}, file
    assert "data" not in read.metrics.columns


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("suite.json", None, r"suite\.json: not found"),
        ("suite.json", "{", "not the facts of a suite"),
        ("suite.json", '{"systems": []}', "not the facts of a suite"),
        ("metrics.parquet", "PAR1", r"metrics\.parquet: not a readable table"),
        ("ledger.csv", "line\n0\n", r"ledger\.csv: not a readable table"),
        ("events.csv", None, r"events\.csv: not a readable table"),
    ],
)
def test_what_is_no_table_is_refused_in_one_line(tmp_path: Path, file: str, content: str | None, message: str) -> None:
    of = results(tmp_path, *runs(entry(1.0)))
    (tmp_path / file).unlink()
    if content is not None:
        (tmp_path / file).write_text(content)
    with pytest.raises(DataError, match=message) as caught:
        _ = (of.suite, of.metrics, of.lines)
    assert "\n" not in str(caught.value)


def test_a_record_of_runs_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / PROVENANCE).write_text('{"machines": [], "runs": [{"machine": 0}]}')
    with pytest.raises(DataError, match=r"provenance\.json: not a record of runs"):
        read_runs(tmp_path / PROVENANCE)


def test_a_value_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    of = made.of_rows(tmp_path, made.levels({("a", "base", 5): 0.1}) * 2)
    with pytest.raises(DataError, match="is given twice"):
        of.values("gerai-a", made.HIT, 5)


def test_means_have_their_deviation_and_count() -> None:
    rows = [("full/ndcg", 5, 0, 0.25), ("full/ndcg", 5, 1, 0.75), ("full/ndcg", 10, 0, 0.5), ("iterations", None, 0, 7)]
    schema = {"metric": pl.String, "k": pl.Int32, "seed": pl.Int64, "value": pl.Float64}
    about = {key: pl.lit(key) for key in ("suite", "experiment", "dataset", "model", "setting")}
    table = pl.DataFrame(rows, schema=schema, orient="row").with_columns(**about)
    assert tables.means(table).write_csv(float_precision=6).splitlines() == [
        "experiment,setting,metric,n,mean,std,mean@5,std@5,mean@10,std@10",
        "experiment,setting,full/ndcg,1,,,,,0.500000,",
        "experiment,setting,full/ndcg,2,,,0.500000,0.353553,,",
        "experiment,setting,iterations,1,7.000000,,,,,",
    ]


@pytest.mark.parametrize("suite", made.COMMITTED)
def test_levels_of_committed_budgets_are_known_and_refuted_claims_exceed_them(suite: str) -> None:
    of = made.committed(suite)
    assert set(budgets(of)["level"]) <= set(get_args(Level))
    for row in of.audits.filter(verdict="refuted").iter_rows(named=True):
        assert row["audited_epsilon"] > row["epsilon_claimed"]
