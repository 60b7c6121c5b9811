"""The attack on ratings: what it writes, what it looks at, and what it refuses."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tasks.attacks import reconstruction, submissions
from tasks.attacks.reconstruction import Published, Targets
from tasks.config.attacks import ReconstructionAttack
from tasks.config.params import load
from tasks.core import contracts
from tasks.core.errors import DataError
from tasks.evaluation.rating import mae
from tasks.pipeline.common import RUNS, read_json
from tasks.stages import attack_ratings, train
from tasks.stages.attack_ratings import Release, attack_release
from tests.stages import tiny, tiny_embeddings, tiny_ratings
from tests.stages.tiny_ratings import inputs

NAMES = ("tiny-privsr", "tiny-mf-ratings", "tiny-rating-means")
ALONE = {"public", "published", "tuned"}


def make() -> None:
    tiny_ratings.build(Path())
    for name in NAMES:
        train.main(name)
        tiny_embeddings.passed(Path(), name)
        attack_ratings.main(name)


def measured(name: str, setting: str = "base", seed: int = 2) -> dict[str, float]:
    table = contracts.read(RUNS / f"tiny/{name}/attack/metrics.parquet", contracts.METRICS)
    rows = table.filter(setting=setting, seed=seed)
    return {metric.split("/")[1]: value for metric, value in rows.select("metric", "value").rows()}


def learnt(share: float = 0.25, seed: int = 2) -> pl.DataFrame:
    rows = inputs(share).for_seed(seed).interactions
    return rows.filter(pl.col("split") == "train").sort("user", "item")


def known(rows: pl.DataFrame) -> tuple[Published, Targets, np.ndarray]:
    """Of training ratings: those that attackers see, and those that they are after, with the truth."""
    hidden, shown = (rows.filter(pl.col("sensitive") == which) for which in (True, False))
    columns = (shown["user"].to_numpy(), shown["item"].to_numpy(), shown["rating"].to_numpy().astype(np.float64))
    published = Published(*columns, tiny.N_USERS, tiny_ratings.N_ITEMS, 1.0, 5.0)
    return published, Targets(hidden["user"].to_numpy(), hidden["item"].to_numpy()), hidden["rating"].to_numpy()


def attack() -> ReconstructionAttack:
    return load().suites["tiny"].attack


def release(name: str = "tiny-privsr", setting: str = "base", seed: int = 2) -> Release:
    return Release(RUNS / "tiny" / name / "released" / setting, seed)


@pytest.mark.usefixtures("inside")
def test_every_attacker_tries_that_has_something_to_look_at() -> None:
    everything = ALONE | {"averaged", "weighted", "first", "replayed", "joint", "friend"}
    expected = {"tiny-privsr": everything, "tiny-mf-ratings": ALONE, "tiny-rating-means": {"public"}}
    for name, attackers in expected.items():
        for seed in (0, 2):
            assert set(measured(name, seed=seed)) == attackers
    assert set(measured("tiny-rating-means", "sensitive_share=0.5")) == {"public"}
    run = read_json(RUNS / "tiny/tiny-privsr/attack/inputs.json")
    assert run["synthetic"]
    assert run["targets"] == max(learnt(seed=seed)["sensitive"].sum() for seed in (0, 2))
    senders = release().averages("friends")["sender"]
    hidden = learnt().filter("sensitive")
    assert run["known_to_friends"]["base-seed-2"] == hidden["user"].is_in(senders.unique().to_list()).sum() > 0


@pytest.mark.usefixtures("inside")
def test_where_nothing_is_sensitive_or_nothing_published_there_are_no_metrics() -> None:
    assert measured("tiny-privsr", "sensitive_share=0.0") == {}
    assert measured("tiny-privsr", "epsilon=0.1,sensitive_share=1.0") == {}


@pytest.mark.usefixtures("inside")
def test_errors_are_of_the_folds_sensitive_training_ratings() -> None:
    """Of the control, from the tables; the ratings of the fold itself and of validation play no part."""
    published, targets, truth = known(learnt())
    expected = mae(truth, reconstruction.expected_ratings(published, targets))
    assert [measured(name)["public"] for name in NAMES] == pytest.approx([expected] * len(NAMES), rel=1e-9)


def rewritten(place: Path, kind: str, **columns: np.ndarray) -> Release:
    """What the first release holds, with columns of one of its tables replaced, in a folder of its own."""
    schemas = dict.fromkeys(("items", "mean-items"), contracts.embeddings_schema(4))
    schemas |= dict.fromkeys(("submissions", "friends"), contracts.received_schema(4))
    for each, schema in (schemas | {"replayed": contracts.replayed_schema(4)}).items():
        table = pl.read_parquet(release().path(each))
        if "sender" in table.columns:
            table = table.sort("sender", "subject")
        if each == kind:
            table = table.with_columns(**{name: pl.Series(values) for name, values in columns.items()})
        (place / each).mkdir(parents=True)
        contracts.write(table, place / each / "seed-2.parquet", schema)
    return Release(place, 2)


@pytest.mark.usefixtures("inside")
def test_each_submission_is_held_against_its_own_rating(tmp_path: Path) -> None:
    """Messages without noise, made from what `tuned` knows and the true ratings, give the true ratings back; the table
    is in another order than the ratings."""
    rows = learnt()
    published, targets, truth = known(rows)
    items = release().vectors("items", tiny_ratings.N_ITEMS)
    fitted = reconstruction.tune(published, targets, items).profiles.vectors[targets.users]
    mean_items = release().vectors("mean-items", tiny_ratings.N_ITEMS)[targets.items]
    errors = (fitted * mean_items).sum(axis=1) - truth
    exact = (2 * errors[:, None] * fitted).astype(np.float32)
    nothing = np.zeros(len(exact), np.float32)
    made = rewritten(
        tmp_path / "made", "submissions",
        mean=exact, mean_variance=nothing, weighted=exact, weighted_variance=np.zeros_like(exact),
    )  # fmt: skip
    table = made.averages("submissions")
    contracts.write(
        table.sample(fraction=1, shuffle=True, seed=1), made.path("submissions"), contracts.received_schema(4)
    )
    actual = attack_release(rows, inputs().schema, made, attack().ridge, 0.1)["errors"]
    assert actual["averaged"] == actual["weighted"] < 0.1 < actual["tuned"]


@pytest.mark.usefixtures("inside")
def test_first_submissions_without_noise_are_held_against_their_own_ratings(tmp_path: Path) -> None:
    """Made from the true ratings and users at the common start, they give these back, and to who replays, too."""
    rows = learnt()
    _, targets, truth = known(rows)
    start = np.full((len(truth), 4), 0.5)
    items = release().vectors("mean-items", tiny_ratings.N_ITEMS)[targets.items].astype(np.float32)
    first = 2 * ((start * items).sum(axis=1) - truth)[:, None] * start
    made = rewritten(
        tmp_path / "made", "replayed",
        first=first.astype(np.float32), first_variance=np.zeros_like(items), first_items=items,
    )  # fmt: skip
    table = pl.read_parquet(made.path("replayed"))
    contracts.write(table.sample(fraction=1, shuffle=True, seed=1), made.path("replayed"), contracts.replayed_schema(4))
    schema = inputs().schema
    actual = attack_release(rows, schema, made, attack().ridge, 0.1)["errors"]
    assert max(actual["first"], actual["replayed"]) < 1e-5 < actual["tuned"]


@pytest.mark.usefixtures("inside")
def test_messages_about_other_ratings_and_vectors_of_other_items_are_refused(tmp_path: Path) -> None:
    rows, schema = learnt(), inputs().schema
    subjects = release().averages("submissions")["subject"].to_numpy()
    for kind in ("submissions", "replayed"):
        wrong = rewritten(tmp_path / kind, kind, subject=(subjects + 1) % tiny_ratings.N_ITEMS)
        with pytest.raises(
            DataError, match=rf"{kind}/seed-2\.parquet: is not about the \d+ sensitive training ratings"
        ):
            attack_release(rows, schema, wrong, attack().ridge, 0.1)
    nodes = np.zeros(tiny_ratings.N_ITEMS, np.int32)
    wrong = rewritten(tmp_path / "nodes", "mean-items", node=nodes)
    with pytest.raises(DataError, match=r"mean-items/seed-2\.parquet: does not hold the 12 vectors once each"):
        attack_release(rows, schema, wrong, attack().ridge, 0.1)
    wrong.path("items").write_bytes(b"no table")
    with pytest.raises(DataError, match=r"items/seed-2\.parquet: not a table of vectors"):
        attack_release(rows, schema, wrong, attack().ridge, 0.1)


@pytest.mark.usefixtures("inside")
def test_what_all_submissions_say_is_held_against_its_own_ratings(tmp_path: Path) -> None:
    """Made from the true ratings, in another order, it gives them back; what is about others is refused."""
    rows, schema = learnt(), inputs().schema
    made = rewritten(tmp_path / "made", "none")
    table = pl.read_parquet(release().path("information")).sort("sender", "subject")
    off = rows.filter("sensitive")["rating"].to_numpy() - table["guess"].to_numpy()
    counts = table["row"].list.len().to_numpy().astype(np.int64)
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])  # of each row's numbers
    column = np.arange(counts.sum()) - np.repeat(first, counts)
    place = table["sender"].rle_id().to_numpy()
    at = np.arange(len(table)) - np.unique(place, return_index=True)[1][place]
    precision = 1e3 * max(submissions.INFLATIONS)
    unit = (column == np.repeat(at, counts)).astype(np.float64) * precision
    exact = table.with_columns(
        gradient=pl.Series(precision * off), row=pl.Series(np.split(unit, first[1:]), dtype=pl.List(pl.Float64))
    )
    made.path("information").parent.mkdir()
    contracts.write(exact.sample(fraction=1, shuffle=True, seed=1), made.path("information"), contracts.INFORMATION)
    actual = attack_release(rows, schema, made, attack().ridge, 0.1)["errors"]
    assert actual["joint"] < 0.05 < actual["replayed"]
    other = exact.with_columns(subject=(pl.col("subject") + 1) % tiny_ratings.N_ITEMS)
    shorter = exact.with_columns(row=pl.col("row").list.head(1))
    for wrong in (other, shorter):
        contracts.write(wrong, made.path("information"), contracts.INFORMATION)
        with pytest.raises(DataError, match=r"information/seed-2\.parquet: is not about the \d+ sensitive training"):
            attack_release(rows, schema, made, attack().ridge, 0.1)
