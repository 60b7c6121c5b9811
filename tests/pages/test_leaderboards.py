"""Who is compared with whom, who is best at a level, and cards: facts of committed tables and of made-up rows."""

import json
import math
from statistics import fmean
from typing import Any

import polars as pl
import pytest

from tasks.results import cards, summary
from tasks.results.budgets import budgets
from tasks.results.standings import ENTRIES, Board, Measure, boards, entries, measure, outcome
from tests.pages import committed

NDCG = Measure("full/ndcg", 10, "NDCG@10", "full ranking", 3, False, "seed", (), "noisy", "own", None)
MAE = Measure("mae", 0, "MAE", "test fold", 3, True, "fold", (), "noisy", "own", None)


def row(system: str, utility: float, level: str = "user", accounted: float = 1.0, **more: Any) -> dict[str, Any]:
    about = {"suite": "a", "publication": "p", "dataset": "d", "kind": "real", "experiment": f"a-{system}"}
    spent = {"level": level, "accounted": accounted, "claimed": 1.0, "private": True, "given": []}
    known = about | spent | {"system": system, "setting": "base", "noisy": system == "noisy"}
    known |= {"utility": utility, "on_swept_splits": utility}
    return (
        known
        | {"role": "baseline" if known["noisy"] else "private", "unbounded": [level] if math.isinf(accounted) else []}
        | more
    )


def board(*rows: dict[str, Any], by: Measure = NDCG) -> Board:
    (made,) = boards([(by, pl.DataFrame(rows, schema=ENTRIES))])
    return made


def test_the_best_of_a_level_has_a_small_epsilon_there_and_a_finite_one_at_all_others() -> None:
    made = board(
        row("noisy", 0.9),
        row("large", 0.8, accounted=2.0),
        row("open-elsewhere", 0.7, unbounded=["feature"]),
        row("endless", 0.6, accounted=math.inf),
        row("good", 0.5),
        row("other-level", 0.95, level="interaction", accounted=0.1),
    )
    best = [made.best(level) for level in made.levels]
    assert [row and row["system"] for row in best] == ["good", "other-level"]
    assert set(made.curve("user")["system"]) == {"noisy", "large", "good"}
    assert made.levels == ["user", "interaction"]


def test_the_answer_at_an_epsilon_is_the_best_of_all_settings_within_it() -> None:
    made = board(
        row("open", 1.0, level="interaction", role="ceiling"),
        row("noisy", 0.3, accounted=0.5),
        row("a", 0.3, accounted=0.5),
        row("a", 0.5),
        row("b", 0.2, accounted=4.0),
        row("b", 0.7, accounted=8.0, setting="epsilon=8"),
        row("endless", 0.9, accounted=math.inf),
    )
    named = [tuple(each[name] for name in ("limit", "system", "share", "gain")) for each in made.answers()]
    assert named == [(0.5, "noisy", 0.3, 0.0), (1.0, "a", 0.5, 0.5 - 0.3), (8.0, "b", 0.7, 0.7 - 0.3)]


def test_an_answer_is_compared_on_the_splits_that_it_was_run_on() -> None:
    ceiling = row("open", 1.0, level="interaction", role="ceiling", on_swept_splits=0.5)
    swept = row("a", 0.4, setting="epsilon=1")
    (answer,) = board(ceiling, row("noisy", 0.3, on_swept_splits=0.1), swept).answers()
    assert (answer["share"], answer["gain"]) == (0.4 / 0.5, 0.4 - 0.1)


def test_what_is_not_significantly_worse_is_as_good() -> None:
    def on(system: str, *values: float, **more: Any) -> dict[str, Any]:
        return row(system, sum(values) / 3, runs=[0, 1000000, 2000000], values=list(values), **more)

    close = on("a", 0.3, 0.4, 0.501), on("b", 0.29, 0.42, 0.48), on("at 95 % alone", 0.28, 0.37, 0.48)
    rows = on("noisy", 0.1, 0.2, 0.3), *close, on("c", 0.2, 0.3, 0.4)
    (answer,) = board(*rows).answers()
    assert (answer["system"], answer["as_good"], answer["noisy_as_good"]) == ("a", ["b", "at 95 % alone"], False)
    assert answer["half"] == pytest.approx(4.302653 * pl.Series([0.3, 0.4, 0.501]).std() / 3**0.5)
    assert board(*rows, by=MAE).answers()[0]["noisy_as_good"]
    noisy_too = board(*close[:2], on("noisy", 0.29, 0.42, 0.47)).answers()[0]
    assert (noisy_too["as_good"], noisy_too["noisy_as_good"]) == (["b", "noisy"], True)
    (single,) = board(row("a", 0.5, runs=[0], values=[0.5]), row("noisy", 0.1, runs=[0], values=[0.1])).answers()
    assert (single["half"], single["noisy_as_good"]) == (None, True)


def test_where_less_is_better_the_least_is_best() -> None:
    rows = (row("noisy", 0.7), row("a", 0.9), row("b", 0.8))
    assert board(*rows, by=MAE).best("user")["system"] == "b"  # type: ignore[index]
    assert board(*rows).best("user")["system"] == "a"  # type: ignore[index]
    assert board(*rows, by=MAE).base["utility"].to_list() == [0.7, 0.8, 0.9]


def test_systems_that_differ_in_data_or_metric_share_no_board() -> None:
    first = pl.DataFrame([row("a", 0.5)], schema=ENTRIES)
    other = first.with_columns(dataset=pl.lit("e"), suite=pl.lit("b"))
    same = first.with_columns(suite=pl.lit("c"), system=pl.lit("b"))
    again = first.with_columns(suite=pl.lit("d"), n=pl.lit(3, pl.Int64), utility=pl.lit(0.4))
    unmeasured = first.with_columns(utility=pl.lit(None, dtype=pl.Float64))
    made = boards([(NDCG, first), (NDCG, other), (MAE, first), (NDCG, same), (NDCG, unmeasured)])
    assert sorted(len(of.rows) for of in made) == [1, 1, 2]
    (most,) = boards([(NDCG, first), (NDCG, again)])
    assert most.rows["suite"].to_list() == ["d"]


def test_real_data_come_before_parts_and_synthetic_ones() -> None:
    tables = [
        pl.DataFrame([row("a", 0.5, kind=kind, dataset=kind)], schema=ENTRIES) for kind in ("synthetic", "part", "real")
    ]
    assert [of.kind for of in boards([(NDCG, table) for table in tables])] == ["real", "part", "synthetic"]


@pytest.mark.parametrize(
    ("spent", "expected"),
    [
        ([], "unclaimed"),
        ([(None, math.inf, None)], "unclaimed"),
        ([(1.0, 1.0, "inconclusive")], "holds"),
        ([(1.0, 1.5, None)], "larger"),
        ([(1.0, math.inf, "inconclusive")], "unbounded"),
        ([(1.0, 1.0, None), (1.0, math.inf, None)], "unbounded"),
        ([(1.0, math.inf, None), (1.0, 1.0, "refuted")], "refuted"),
    ],
)
def test_the_outcome_of_claims_is_the_worst_of_all_levels(spent: list[tuple[Any, ...]], expected: str) -> None:
    assert outcome([dict(zip(("claimed", "accounted", "verdict"), of, strict=True)) for of in spent]) == expected


@pytest.mark.parametrize("suite", committed.SUITES)
def test_entries_have_the_means_of_metrics_csv_and_the_budgets_of_the_ledger(suite: str) -> None:
    results = committed.results(suite)
    by = measure(results, committed.paper(suite))
    table = entries(results, by)
    metrics = pl.read_csv(committed.RESULTS / suite / "metrics.csv").filter(metric=by.metric, setting="base")
    column = f"mean@{by.k}" if by.k else "mean"
    means = dict(zip(metrics["experiment"], metrics[column], strict=True)) if len(metrics) else {}
    base = table.filter(setting="base")
    assert set(base["experiment"]) == {system.experiment for system in results.suite.compared}
    for of in base.iter_rows(named=True):
        assert of["utility"] == pytest.approx(means.get(of["experiment"]), abs=1e-6)
        assert of["utility"] is None or of["utility"] == pytest.approx(fmean(of["values"])), "its interval's runs"
    ledger = pl.read_csv(committed.RESULTS / suite / "ledger.csv").filter(setting="base")
    claims = dict(ledger.group_by("experiment").agg(pl.col("claimed_epsilon").max()).iter_rows())
    for (experiment,), rows in base.group_by("experiment"):
        assert rows["claimed"].max() == claims.get(experiment)
        endless = ledger.filter(pl.col("experiment") == experiment)["accounted_epsilon"].is_infinite().any()
        assert bool(len(rows["unbounded"][0])) == bool(endless)


@pytest.mark.parametrize("suite", committed.SUITES)
def test_cards_have_no_infinite_budget_and_a_reason_where_there_is_none(suite: str) -> None:
    results = committed.results(suite)
    by = measure(results, committed.paper(suite))
    spent = budgets(results)
    audits = {row["audited_epsilon"] for row in results.audits.iter_rows(named=True)}
    gaps = {gap for line in results.lines for gap in line.entry.gaps}
    for system in results.suite.compared:
        card = cards.card(results, system, by, spent)
        assert "Infinity" not in card.model_dump_json()
        for loss in card.privacy_loss:
            assert bool(loss.reasons) == (loss.privacy_parameters is None), system.label
            assert loss.audit is None or loss.audit.epsilon in audits
            if loss.audit is None and (loss.claimed is not None or loss.privacy_parameters):
                assert loss.unaudited, "a private line has an audit or a reason"
        assert set(card.gaps) <= gaps
        assert len({loss.level for loss in card.privacy_loss}) == len(card.privacy_loss)


@pytest.mark.parametrize("suite", ["demo", "gerai", "dpcrosue-ione", "membership"])
def test_the_headline_and_plots_are_numbers_of_the_tables(suite: str) -> None:
    results = committed.results(suite)
    by = measure(results, committed.paper(suite))
    table = entries(results, by)
    short = summary.summary(results, next(iter(boards([(by, table)])), None))
    assert json.loads(json.dumps(short)) == short
    assert short["ledger"]["audited"] <= short["ledger"]["private"]
    drawn = summary.plots(results, by, table)
    points = drawn["utility.csv"]
    assert points["epsilon"].is_finite().all()
    assert (points["epsilon"] > 0).all()
    assert ((points["low"] <= points["utility"]) & (points["utility"] <= points["high"])).all()
    epochs = results.history.group_by("experiment", "network").agg(pl.col("epoch").max())["epoch"].sum()
    assert len(drawn["curves.csv"]) == epochs
    if suite == "gerai":
        (first,) = drawn["attacks.csv"].filter(system="bpr", attribute="age", k=10)["f1"]
        assert first == results.mean("gerai-bpr", "attribute/age/neural/f1", 10)
