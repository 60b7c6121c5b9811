"""Released embeddings and their metrics: good ones pass; a fault breaks just its rule, which names the right rows."""

from typing import Any

import numpy as np
import polars as pl
import pytest

from tasks.config.tasks import ATTACKS
from tasks.core.contracts import Schema
from tasks.core.errors import DataError
from tasks.quality import metrics
from tasks.quality.releases import embedding_releases
from tasks.quality.rules import Rule, Table, count, first_rows
from tests.quality.changes import added, none, twice, value, without
from tests.quality.tables import FEATURES, N_USERS
from tests.quality.test_suites import failures, named

Release = tuple[str, int]
BASE, SWEPT = ("base", 1), ("alpha=1.0", 0)
ABOUT: dict[str, Any] = {"dataset": "tiny", "protocol": "dpcrosue", "synthetic": True, "n_items": 0}
FIRST = Schema(**ABOUT, n_users=N_USERS, features=FEATURES, tables=("social", "users", "labels"), labels=("films",))
SECOND = Schema(**ABOUT, n_users=9, features=(), tables=("social",))
NETWORKS = {"left": FIRST, "right": SECOND}
NAMES = [*metrics.embedding_metrics(NETWORKS), *metrics.embedding_attack_metrics(NETWORKS, [1, 10], joint=True)]
TABLE, USERS = "left/embeddings", "left/embeddings per user"


def embedding(seed: int, width: int = 3) -> pl.DataFrame:
    vectors = np.random.default_rng(seed).standard_normal((N_USERS, width)).astype(np.float32)
    return pl.DataFrame({"node": np.arange(N_USERS, dtype=np.int32), "vector": vectors})


def releases() -> dict[Release, pl.DataFrame]:
    """Two seeds of one setting, and one of another whose vectors are longer."""
    return {("base", 0): embedding(0), BASE: embedding(1), SWEPT: embedding(2, width=5)}


def failing(**changed: pl.DataFrame) -> list[tuple[Table, Rule]]:
    """What is found when the release of `base`, or of the sweep, is another one."""
    of = {BASE if name == "base" else SWEPT: table for name, table in changed.items()}
    return failures(embedding_releases(releases() | of, FIRST, "left/"))


def vector(row: int, numbers: list[float | None]) -> Any:
    """Replaces the vector of a row."""
    return lambda frame: frame.with_columns(
        vector=pl.Series(
            [numbers if n == row else old for n, old in enumerate(frame["vector"].to_list())],
            dtype=frame["vector"].dtype,
        )
    )


def test_good_embeddings_keep_every_rule_in_memory_and_scanned() -> None:
    assert failing() == []
    scanned = {which: table.lazy() for which, table in releases().items()}
    judged = embedding_releases(scanned, FIRST, "left/")
    assert failures(judged) == []
    assert [count(table)[0] for table in judged] == [3 * N_USERS, 3 * N_USERS]


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -float("inf"), None])
def test_a_number_that_is_none_is_found(wrong: float | None) -> None:
    [(table, rule)] = failing(base=vector(4, [0.0, wrong, 1.0])(embedding(1)))
    assert (table.name, rule.column, rule.kind) == (TABLE, "infinite", "between")
    rows, texts = first_rows(table, rule)
    assert rows == [4]
    assert texts == ["row 4 (setting=base, seed=1, node=4): infinite is 1"]


def test_a_user_without_a_vector_is_found() -> None:
    [(table, rule)] = failing(base=without(7)(embedding(1)))
    assert (table.name, rule.column, rule.kind) == (USERS, "rows", "between")
    assert first_rows(table, rule)[1] == [f"row {N_USERS + 7} (setting=base, seed=1, node=7): rows is 0"]


def test_users_with_two_vectors_and_users_of_no_network_are_found() -> None:
    assert named(failing(base=twice(7)(embedding(1)))) == {
        (TABLE, "setting, seed, node", "unique"),
        (USERS, "rows", "between"),
    }
    [(table, rule)] = failing(base=added("node", N_USERS)(embedding(1)))
    assert (table.name, rule.column, rule.kind) == (TABLE, "node", "between")
    assert named(failing(base=value(0, "node", None)(embedding(1)))) == {
        (TABLE, "node", "not_null"),
        (USERS, "rows", "between"),
    }


def test_vectors_of_one_setting_are_equally_long_and_those_of_another_need_not_be() -> None:
    [(table, rule)] = failing(base=embedding(1, width=4))
    assert (table.name, rule.column, rule.kind) == (TABLE, "width", "holds")
    assert failing(alpha=embedding(2, width=3)) == []


def test_vectors_without_numbers_and_nothing_at_all_are_faults() -> None:
    nothing = {("base", 0): embedding(0, width=0)}
    assert named(failures(embedding_releases(nothing, FIRST, ""))) == {("embeddings", "width", "between")}
    empty = {("base", 0): none(embedding(0))}
    assert named(failures(embedding_releases(empty, FIRST, ""))) == {
        ("embeddings", None, "row_count"),
        ("embeddings per user", "rows", "between"),
    }


@pytest.mark.parametrize(
    "table",
    [
        embedding(0).rename({"node": "user"}),
        embedding(0).with_columns(pl.col("vector").arr.to_list()),
        embedding(0).with_columns(pl.col("vector").cast(pl.Array(pl.Float64, 3))),
        embedding(0).drop("vector"),
    ],
)
def test_tables_that_are_no_embeddings_are_refused(table: pl.DataFrame) -> None:
    with pytest.raises(DataError, match="embeddings of base seed 1: columns"):
        failing(base=table)


def measured(names: list[tuple[str, int | None]] = NAMES, **changed: float) -> pl.DataFrame:
    """Every metric of two seeds, at 0.25, but for those that are given with `_` for `/`."""
    frame = metrics.measurements("tiny-joint", ["base"], [0, 1], names).with_columns(value=pl.lit(0.25))
    for name, number in changed.items():
        chosen = pl.col("metric").str.replace_all("/", "_", literal=True) == name
        frame = frame.with_columns(value=pl.when(chosen).then(number).otherwise("value"))
    return frame


def broken(frame: pl.DataFrame) -> set[tuple[str, str | None, str]]:
    expected = metrics.measurements("tiny-joint", ["base"], [0, 1], NAMES)
    return named(failures(metrics.metric_tables(frame, expected, ATTACKS["embeddings"].rates)))


def test_metrics_that_were_all_measured_pass_and_the_worth_of_names_may_be_there_or_not() -> None:
    assert broken(measured()) == set()
    assert broken(measured([*NAMES, ("anchors/confident/precision", None)])) == set()


@pytest.mark.parametrize("number", range(len(NAMES)), ids=lambda number: "-".join(map(str, NAMES[number])))
def test_a_metric_that_is_missing_is_found(number: int) -> None:
    assert broken(measured([*NAMES[:number], *NAMES[number + 1 :]])) == {("metrics expected", "rows", "between")}


@pytest.mark.parametrize("value", [-0.01, 1.01])
@pytest.mark.parametrize(
    "name",
    [
        "left_interests_precision-swapped",
        "left_gender_micro-f1",
        "right_links_dot_auc",
        "right_links_dot_tpr",
        "anchors_precision",
        "anchors_confident_share",
    ],
)
def test_scores_lie_between_0_and_1(name: str, value: float) -> None:
    assert broken(measured(**{name: value})) == {("metrics", "rate", "between")}
