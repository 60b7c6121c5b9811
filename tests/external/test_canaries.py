"""Canaries of `dprec audit`: what is planted, and what guessing their coins may prove."""

import errno
import gzip
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NoReturn

import numpy as np
import polars as pl
import pytest

from tasks.core.errors import ConfigurationError, DataError
from tasks.external import canaries, reading
from tasks.external.canaries import bound, plant
from tasks.external.command import Repeated, repeat
from tasks.external.reading import Names
from tasks.external.run import AuditRequest, OtherRun, run
from tasks.privacy.audits.one_run import lower_bound
from tests.external.worlds import K, quiet

HEADER = "userId,movieId,rating,timestamp"


def ratings(folder: Path, n_users: int = 150, n_items: int = 400, each: int = 12) -> Path:
    rng = np.random.default_rng(1)
    rows = [
        f"{user},{item},{rng.integers(1, 6)},{rng.integers(10**9)}"
        for user in range(1, n_users + 1)
        for item in rng.choice(n_items, each, replace=False)
    ]
    path = folder / "ratings.csv"
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    return path


def item_knn(table: Path, out: Path, noise: float) -> Path:
    """Lists by cosines of items, with Laplace noise on all of them."""
    rows = reading.interactions(table, "train", Names()).rows
    users, items = rows["user"].unique().sort(), rows["item"].unique().sort()
    has = np.zeros((len(users), len(items)))
    has[users.search_sorted(rows["user"]).to_numpy(), items.search_sorted(rows["item"]).to_numpy()] = 1
    counts = has.sum(axis=0)
    similarity = has.T @ has / np.sqrt(counts * counts[:, None])
    np.fill_diagonal(similarity, 0)
    similarity += np.random.default_rng(0).laplace(0, noise, similarity.shape) if noise else 0
    lists = np.argsort(-np.where(has > 0, -np.inf, has @ similarity), axis=1, kind="stable")[:, :K]
    table_of_lists = {"user": users.gather(np.repeat(np.arange(len(users)), K)), "item": items.gather(lists.ravel())}
    pl.DataFrame(table_of_lists).with_columns(rank=pl.int_range(1, pl.len() + 1).over("user")).write_csv(out)
    return out


SEEDED = "tasks.external.canaries.secrets.randbits", lambda _: 5
"""Of coins that are the same every time."""


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with 40 canaries, next to the training data."""
    monkeypatch.setattr(*SEEDED)
    plant(ratings(tmp_path), 40, 3, 1, tmp_path / "planted", Names())
    return tmp_path / "planted"


def test_a_bad_row_is_named_before_anything_is_written(tmp_path: Path) -> None:
    path = ratings(tmp_path)
    with path.open("a") as file:
        file.write("1,,5,0\n")
    complaint = f"ratings.csv:{len(path.read_text().splitlines())}: movieId is empty"
    with pytest.raises(DataError, match=complaint):
        plant(path, 10, 3, 1, tmp_path / "new", Names())
    with pytest.raises(DataError, match=complaint):
        repeat(Repeated("true {train} {out}", 2, tmp_path / "work", canaries=0), AuditRequest(path, path), quiet)
    assert not (tmp_path / "new").exists()


def test_a_witness_that_is_a_canary_is_refused(planted: Path) -> None:
    lists = item_knn(planted / "train-with-canaries.csv", planted / "lists.csv", 0)
    coins = pl.read_csv(planted / "canaries.csv")
    coins.with_columns(witness=pl.col("canary").filter(included=1).first()).write_csv(planted / "canaries.csv")
    with pytest.raises(DataError, match=r"canaries.csv:\d+: witness is '\d+', not a user without a coin"):
        run(AuditRequest(planted / "train-with-canaries.csv", lists, canaries=planted / "canaries.csv"), quiet)


def test_a_canary_that_is_out_leaves_no_row_and_its_witness_is_always_in(planted: Path) -> None:
    before, after = (pl.read_csv(planted / name) for name in ("../ratings.csv", "train-with-canaries.csv"))
    assert after.columns == HEADER.split(",")
    assert after[: len(before)].equals(before)
    coins = pl.read_csv(planted / "canaries.csv")
    new = {user: set(rows["movieId"]) for (user,), rows in after[len(before) :].group_by("userId")}
    assert 8 < coins["included"].sum() < 32
    for row in coins.iter_rows(named=True):
        assert (row["canary"] in new) == bool(row["included"])
        assert len(new[row["witness"]]) == 3
        assert row["item"] not in new[row["witness"]]
        if row["included"]:
            assert new[row["canary"]] == new[row["witness"]] | {row["item"]}
    assert set(new).isdisjoint(before["userId"])
    assert after[len(before) :]["rating"].unique().to_list() == [5]
    assert oct((planted / "canaries.csv").stat().st_mode & 0o777) == "0o600"
    assert sorted({*coins["canary"], *coins["witness"]}) == list(range(151, 231))  # no role is read off an id


def test_items_are_the_rarest_that_are_common_enough(tmp_path: Path) -> None:
    table = ratings(tmp_path)
    counts = pl.read_csv(table)["movieId"].value_counts()
    plant(table, 10, 3, 4, tmp_path / "out", Names())
    items = pl.read_csv(tmp_path / "out/canaries.csv")["item"]
    chosen = counts.filter(pl.col("movieId").is_in(items.implode()))["count"]
    assert chosen.min() == 4
    assert items.n_unique() == 10
    with pytest.raises(DataError, match="0 items have 1000 interactions or more; 4 are needed"):
        plant(table, 10, 3, 1_000, tmp_path / "no", Names())


def test_coins_differ_from_time_to_time(tmp_path: Path) -> None:
    table = ratings(tmp_path)
    texts = []
    for out in (tmp_path / "first", tmp_path / "second"):
        plant(table, 40, 3, 1, out, Names())
        texts.append((out / "canaries.csv").read_text())
    assert texts[0] != texts[1]
    with pytest.raises(ConfigurationError, match="second: is there already; choose another folder"):
        plant(table, 40, 3, 1, out, Names())
    assert (out / "canaries.csv").read_text() == texts[1]


def test_canaries_are_written_all_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(canaries.Planting, "write", full)
    table = ratings(tmp_path)
    with pytest.raises(OSError, match="No space left on device"):
        plant(table, 10, 3, 1, tmp_path / "out", Names())
    assert list(tmp_path.iterdir()) == [table]


def test_all_else_in_the_training_data_is_written_as_it_was(tmp_path: Path) -> None:
    """Types of RecBole's columns, long fields and what is between quotes; of a packed table, too."""
    names, text = ["user_id:token", "item_id:token", "text:token_seq"], 'a,\n "b"' + 200_000 * "c"
    rows = [[str(user), str(item), text if user == item else ""] for user in range(1, 30) for item in range(9)]
    table = tmp_path / "ratings.inter"
    pl.DataFrame(rows, names, orient="row").with_columns(pl.all().replace("", None)).write_csv(table, separator="\t")
    plain = table.read_bytes()
    for number, packed in enumerate((plain, gzip.compress(plain))):
        table.write_bytes(packed)
        path, *_ = plant(table, 10, 3, 1, tmp_path / f"{number}", Names())
        assert path.read_bytes().startswith(plain)


@pytest.mark.parametrize("order", ["drawn", "in first", "out first"])
def test_one_list_for_all_users_proves_nothing_in_any_order_of_the_coins(planted: Path, order: str) -> None:
    coins = pl.read_csv(planted / "canaries.csv")
    if order != "drawn":
        coins.sort("included", descending=order == "in first").write_csv(planted / "canaries.csv")
    users = pl.read_csv(planted / "train-with-canaries.csv")["userId"].unique().sort()
    lists = users.to_frame().join(pl.DataFrame({"item": coins["item"][:10], "rank": range(1, 11)}), how="cross")
    lists.write_csv(planted / "l.csv")
    asked = AuditRequest(planted / "train-with-canaries.csv", planted / "l.csv", canaries=planted / "canaries.csv")
    audit, _ = run(replace(asked, claimed_epsilon=0.1), quiet)
    assert (audit.canaries.epsilon, audit.canaries.claim, audit.verdict.exit_code) == (0, "inconclusive", 4)


def test_many_canaries_find_a_leak_about_one_user_in_eight() -> None:
    rng = np.random.default_rng(0)
    included, known, noise = rng.random(1_600) < 0.5, rng.random(1_600) < 1 / 8, 0.1 * rng.random(1_600)
    scores = np.where(known, np.where(included, 1.0, -1.0), 0.0) + noise
    assert bound(scores, included, 1e-5, 1.0, 9.0, 0.95).claim == "refuted"


def test_a_claim_is_consistent_only_with_a_control_that_is_refuted(planted: Path) -> None:
    table, coins = planted / "train-with-canaries.csv", planted / "canaries.csv"
    noisy, bare = item_knn(table, planted / "noisy.csv", 30.0), item_knn(table, planted / "bare.csv", 0)
    asked = AuditRequest(table, noisy, canaries=coins, claimed_epsilon=0.5)
    claims = []
    for control in ([], [OtherRun(table, noisy, coins)], [OtherRun(table, bare, coins)]):
        audit, _ = run(replace(asked, control=control), quiet)
        claims.append((audit.canaries.claim, audit.canaries.control and audit.canaries.control > 0.5))
    assert claims == [("inconclusive", None), ("inconclusive", 0.0), ("consistent", True)]
    leaky = replace(asked, recommendations=bare, scores=planted / "scores.csv")
    first = pl.read_csv(coins)["item"][0]
    pl.read_csv(bare)["user"].unique().to_frame().with_columns(item=first, score=0.5).write_csv(planted / "scores.csv")
    audit, _ = run(replace(leaky, control=[OtherRun(table, bare, coins)]), quiet)
    assert audit.canaries.claim == "refuted"  # released scores are no reason not to look at the lists
    assert audit.canaries.control == audit.canaries.epsilon  # equal lists prove as much as a control, tests and all
    asked = replace(asked, claimed_epsilon=None)  # where nothing is proved, and nothing is known of the audit's power
    for control, state in (([], "cannot be decided"), ([OtherRun(table, bare, coins)], "not shown")):
        audit, _ = run(replace(asked, control=control), quiet)
        assert (audit.canaries.epsilon, audit.canaries.state) == (0, state)
    with pytest.raises(ConfigurationError, match="a control needs --canaries"):
        run(replace(asked, canaries=None, control=[OtherRun(table, bare, coins)]), quiet)


def test_a_system_that_promises_what_it_does_not_keep_is_refuted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of systems that keep it, one in twenty is refuted at this confidence: the coins are of a seed."""
    monkeypatch.setattr(*SEEDED)
    plant(ratings(tmp_path), 80, 4, 1, tmp_path / "c", Names())
    table = tmp_path / "c" / "train-with-canaries.csv"
    asked = AuditRequest(table, item_knn(table, tmp_path / "l.csv", 0), canaries=tmp_path / "c" / "canaries.csv")
    audit, _ = run(replace(asked, claimed_epsilon=0.5), quiet)
    assert audit.canaries.claim == "refuted"
    assert 0.5 < audit.canaries.epsilon <= audit.canaries.provable
    assert audit.verdict.exit_code == 3
    assert audit.verdict.sentences[-1].endswith("Claimed ε = 0.5 of a user's whole row: refuted.")
    item_knn(table, tmp_path / "l.csv", 30.0)
    noisy, _ = run(asked, quiet)
    assert (noisy.canaries.epsilon, noisy.verdict.exit_code) == (0, 4)
    assert sum(answer.question == "users" for answer in noisy.answers) == 1


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"delta": 1.0}, r"--delta must be in \[0, 1\)"),
        ({"claimed_epsilon": -1.0}, "--claimed-epsilon must be 0 or more"),
        ({"claimed_epsilon": 1.0}, "--claimed-epsilon needs --canaries"),
    ],
)
def test_what_canaries_cannot_decide_is_refused_before_anything_is_read(
    options: dict[str, float], complaint: str
) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        run(replace(AuditRequest(Path("nothing"), Path("nothing")), **options), quiet)


def test_training_data_that_the_canaries_are_not_in_are_refused(planted: Path) -> None:
    lists = item_knn(planted / "train-with-canaries.csv", planted / "l.csv", 0)
    coins = planted / "canaries.csv"
    with pytest.raises(DataError, match=r"canaries.csv:\d+: included is 1, not whether the canary is in .*ratings.csv"):
        run(AuditRequest(planted.parent / "ratings.csv", lists, canaries=coins), quiet)
    table = pl.read_csv(lists)
    witnesses = pl.read_csv(coins)["witness"]
    asked = AuditRequest(planted / "train-with-canaries.csv", lists, canaries=coins)
    table.filter(pl.col("user") != witnesses[0]).write_csv(lists)
    assert run(asked, quiet)[0].canaries is not None  # a system may find nothing for someone
    table.filter(~pl.col("user").is_in(witnesses.implode())).write_csv(lists)
    with pytest.raises(DataError, match=r"canaries.csv: no witness has a list in .*; recommend to all users"):
        run(asked, quiet)


RUNS, M = 300, 100
remembered = lru_cache(None)(lower_bound)  # the same few bounds are asked for again and again


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("law", ["laplace", "response"])
def test_the_epsilon_proved_exceeds_the_true_one_no_more_often_than_stated(
    epsilon: float, law: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each coin is released with Laplace noise, or by randomised response: exactly ε-DP for each canary."""
    monkeypatch.setattr(canaries, "lower_bound", remembered)
    above = certain = 0
    for seed in range(RUNS):
        rng = np.random.default_rng([3, seed])
        included = rng.random(M) < 0.5
        if law == "laplace":
            scores = included + rng.laplace(0, 1 / epsilon, M)
        else:
            scores = (included ^ (rng.random(M) > 1 / (1 + np.exp(-epsilon)))) + 0.1 * rng.random(M)
        above += bound(scores, included, 1e-5, None, None, 0.95).epsilon > epsilon
        certain += bound(scores, included, 1e-5, None, None, 1 - 1e-5).epsilon > epsilon
    assert above <= 27  # 5 % of 300, and three deviations
    assert certain == 0


def test_where_scores_are_released_too_each_of_two_bounds_has_half_of_the_error() -> None:
    included = np.random.default_rng(4).random(200) < 0.5
    run_of = canaries.Run(included, np.zeros(200))
    proved = canaries.audit([run_of], 1e-5, scores=included.astype(np.float64))
    alone = [bound(included.astype(np.float64), included, 1e-5, None, None, level) for level in (0.975, 0.95)]
    assert (proved.epsilon, proved.confidence) == (alone[0].epsilon, 0.95)
    assert proved.epsilon < alone[1].epsilon


def test_canaries_that_nobody_guesses_count_in_what_delta_allows() -> None:
    """With probability δ each may be shown in clear, so that the surest guesses are right the more there are."""
    included = np.arange(400) < 50
    included[50:] = np.random.default_rng(2).random(350) < 0.5
    scores = np.where(np.arange(400) < 50, 1.0, 0.0)
    proved = bound(scores, included, 1e-4, None, None, 0.95)
    assert (proved.guesses, proved.correct) == (50, 50)
    each = 1 - 0.05 / len(canaries.RULES)
    assert proved.epsilon == lower_bound(400, 50, 50, 1e-4, each) < lower_bound(50, 50, 50, 1e-4, each) - 0.1
