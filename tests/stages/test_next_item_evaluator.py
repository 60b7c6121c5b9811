"""Next items are validated and tested on users that are kept apart, from prefixes alone, and end as the tables say."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
import yaml

from tasks.config.params import Evaluation, Training
from tasks.core import contracts
from tasks.core.errors import DataError
from tasks.core.sequences import Sequences
from tasks.core.training_data import TrainingData
from tasks.models.base import SILENT, NextItemRecommender, Progress, Recommender
from tasks.pipeline.common import PROCESSED, RUNS, read_json
from tasks.stages import check, train
from tasks.stages.evaluators.lists import TopK
from tasks.stages.evaluators.next_items import NextItem
from tasks.stages.inputs import Inputs
from tests.core.test_sequences import listed
from tests.stages import tiny

N_ITEMS = 10
EVALUATION = Evaluation(k=[1, 3], negatives=None, seed=1, recall="relevant")
TRAINING = Training(patience=2, validation_k=1)

# User -> events in their order: 0 to 2 train and are tested, 3 validates, 4 has too few test events, 5 no others.
EVENTS = {
    0: {"train": [4, 2, 4, 1], "test": [9, 0, 9]},
    1: {"train": [7], "test": [1, 2]},
    2: {"train": [3, 8], "test": [5, 6, 5, 6]},
    3: {"valid": [2, 3, 2]},
    4: {"train": [6, 5, 0], "test": [1]},
    5: {"test": [2, 3]},
}
SCHEMA = tiny.SCHEMA.model_copy(update={"n_items": N_ITEMS, "repeats": True})


class Last(tiny.Untrained, NextItemRecommender):
    """Scores an item by how lately the sequence had it, and remembers what it was asked."""

    def score_next(self, sequences: Sequences) -> torch.Tensor:
        self.asked = getattr(self, "asked", []) + sequences.users.tolist()
        scores = torch.zeros(sequences.n_events, N_ITEMS)
        for event, (start, position) in enumerate(
            zip(sequences.indptr[sequences.owners], sequences.positions, strict=True)
        ):
            for place in range(position + 1):
                scores[event, sequences.items[start + place]] = place + 1
        return scores


class Counts(tiny.Untrained, Recommender):
    """Scores items by how often training had them."""

    def fit(
        self, data: TrainingData, *, rng: np.random.Generator | None = None, progress: Progress = SILENT
    ) -> "Counts":
        del rng, progress
        self.counts = torch.from_numpy(np.bincount(data.items, minlength=N_ITEMS).astype(np.float32))
        return self

    def score(self, users: np.ndarray) -> torch.Tensor:
        return self.counts.expand(len(users), -1)


def interactions(events: dict[int, dict[str, list[int]]]) -> pl.DataFrame:
    rows = [(user, item, split) for user, parts in events.items() for split, items in parts.items() for item in items]
    users, items, splits = zip(*rows, strict=True)
    return tiny.interactions(users, items, splits)


def inputs(events: dict[int, dict[str, list[int]]]) -> Inputs:
    return tiny.Numbered(SCHEMA.model_copy(update={"n_users": len(events)}), interactions(events), PROCESSED, PROCESSED)


@pytest.fixture
def evaluator() -> NextItem:
    return NextItem(inputs(EVENTS), EVALUATION, TRAINING)


def test_a_model_of_sequences_learns_from_all_training_events(evaluator: NextItem) -> None:
    data = evaluator.training_data(Last, 0)
    assert listed(data.sequences) == {user: parts["train"] for user, parts in EVENTS.items() if "train" in parts}
    pairs = {(user, item) for user, parts in EVENTS.items() for item in parts.get("train", [])}
    assert set(zip(data.users.tolist(), data.items.tolist(), strict=True)) == pairs
    assert len(data.users) == len(pairs)  # an item that a user had twice counts once


def test_lists_from_sequences_follow_the_last_training_event_in_time() -> None:
    """Times run against the order of the table; users without training events are scored zero."""
    events = {0: {"train": [4, 2, 1], "test": [9]}, 1: {"valid": [7], "test": [1]}, 2: {"train": [3, 8], "test": [5]}}
    table = interactions(events).with_columns(timestamp=-pl.col("timestamp"))
    schema = SCHEMA.model_copy(update={"n_users": len(events), "repeats": False})
    evaluator = TopK(tiny.Numbered(schema, table, PROCESSED, PROCESSED), EVALUATION, TRAINING)
    assert listed(evaluator.training_data(Last, 0).sequences) == {0: [1, 2, 4], 2: [8, 3]}
    scores = evaluator._scores(Last({}))(np.array([2, 1, 0], np.int32))
    assert [row.nonzero().flatten().tolist() for row in scores] == [[3, 8], [], [1, 2, 4]]
    assert scores[2].argmax() == 4
    unknown = table.with_columns(timestamp=pl.lit(None, pl.Int64))
    with pytest.raises(DataError, match="no times of interactions"):
        tiny.Numbered(schema, unknown, PROCESSED, PROCESSED).training_data(Last, 0)


def test_the_last_training_event_is_left_out_for_models_that_read_no_sequences(evaluator: NextItem) -> None:
    data = evaluator.training_data(Counts, 0)
    assert listed(data.sequences) == {0: [4, 2, 4], 2: [3], 4: [6, 5]}  # user 1 had one event
    assert list(zip(data.users.tolist(), data.items.tolist(), strict=True)) == [
        (0, 2), (0, 4), (2, 3), (4, 5), (4, 6)
    ]  # fmt: skip


def test_validation_asks_each_kind_of_model_what_was_kept_from_it(evaluator: NextItem) -> None:
    model = Last(None)
    assert evaluator.validate(model) == 0.0  # 2, 3, 2: what came last never comes next
    assert model.asked == [3]
    counts = Counts(None).fit(evaluator.training_data(Counts, 0))
    counts.counts = torch.zeros(N_ITEMS)
    counts.counts[7] = 1.0
    assert evaluator.validate(counts) == pytest.approx(1 / 4)  # the last training events are 1, 7, 8 and 0


def test_those_who_validate_and_those_who_never_trained_are_not_tested(evaluator: NextItem) -> None:
    model = Last(None)
    tested = evaluator.evaluate(model)
    table = tested.released
    assert set(model.asked) == {0, 1, 2}
    examples = table.select("user", "position").unique(maintain_order=True).rows()
    assert examples == [(0, 0), (0, 1), (1, 0), (2, 0), (2, 1), (2, 2)]
    assert table["rank"].to_list() == [1, 2, 3] * 6
    assert table.filter(pl.col("rank") == 1)["item"].to_list() == [9, 0, 1, 5, 6, 5]
    actual = {(record["metric"], record["k"]): record["value"] for record in tested.metrics}
    assert actual["next/recall", 1] == 0.0
    # 9 0 9, 1 2 and 5 6 5 6: the event before the last one comes next in three of six examples
    assert actual["next/recall", 3] >= 3 / 6
    assert set(actual) == {
        (f"{kind}/{metric}", k) for kind in ("next", "next-new") for metric in ("recall", "mrr") for k in (1, 3)
    }


@pytest.mark.parametrize("model", [Last, Counts])
def test_validation_never_looks_at_the_test(evaluator: NextItem, model: Any) -> None:
    changed = {
        user: {split: items for split, items in parts.items() if split != "test"} for user, parts in EVENTS.items()
    }
    changed[5] = {"test": [0, 0]}
    other = NextItem(inputs(changed), EVALUATION, TRAINING)
    values = []
    for each in (evaluator, other):
        fitted = model(None)
        if model is Counts:
            fitted.fit(each.training_data(Counts, 0))
        values.append(each.validate(fitted))
    assert values[0] == values[1]


@pytest.mark.parametrize(
    "events", [{0: {"train": [1, 2]}, 1: {"test": [3, 4]}}, {0: {"train": [1, 2], "test": [2, 1]}}]
)
def test_nobody_to_test_is_an_error(events: dict[int, dict[str, list[int]]]) -> None:
    with pytest.raises(DataError, match="nothing to test"):
        NextItem(inputs(events), EVALUATION, TRAINING).evaluate(Last(None))


@pytest.mark.parametrize("valid", [{}, {3: {"valid": [2]}}])
def test_nobody_to_validate_on_is_an_error(valid: dict[int, dict[str, list[int]]]) -> None:
    with pytest.raises(DataError, match="nothing to validate on"):
        NextItem(inputs({user: EVENTS[user] for user in range(3)} | valid), EVALUATION, TRAINING).validate(Last(None))


def build(root: Path) -> None:
    """A suite of next items that no one attacks, with a model of counts and one of vectors."""
    config = {"epochs": 2, "batch_size": 64, "learning_rate": 0.01, "regularization": 0.0, "dimension": 4}
    tiny.build(
        root,
        experiments={"tiny-counts": tiny.COUNTS, "tiny-bpr": tiny.experiment("bpr", config)},
        suites=tiny.suites("next-item"),
        evaluation={"k": [2, 5], "negatives": None, "seed": 1, "recall": "relevant"},
        tuning={"seed": 1000, "grid": {"dp-popularity": {"contribution": [1, 2]}}},
        attack=None,
    )
    rng = np.random.default_rng(0)
    events = {
        user: {"valid": rng.integers(0, 20, 4).tolist()}
        if user % 10 == 0
        else {split: rng.integers(0, 20, rng.integers(1, 6)).tolist() for split in ("train", "test")}
        for user in range(tiny.N_USERS)
    }
    tiny.write_interactions(interactions(events), n_items=20, repeats=True)


@pytest.mark.usefixtures("fresh")
def test_what_is_trained_passes_its_checks() -> None:
    for name in ("tiny-counts", "tiny-bpr"):
        train.main(name)
        check.main(f"recommendations/{name}")
    check.main("metrics/tiny")
    history = read_json(RUNS / "tiny" / "tiny-bpr" / "train" / "history.json")
    assert all(0 <= epoch["valid"] <= 1 for epoch in history["base"]["0"])
    path = RUNS / "tiny" / "tiny-bpr" / "released" / "base" / "seed-1.parquet"
    table = contracts.read(path, contracts.NEXT_ITEMS)
    contracts.write(table.filter(pl.col("user") != table["user"][-1]), path, contracts.NEXT_ITEMS)
    assert read_json(RUNS / "tiny" / "tiny-bpr" / "checked.json")["success"]
    with pytest.raises(DataError, match="next items per example, column rows"):
        check.main("recommendations/tiny-bpr")
    assert not (RUNS / "tiny" / "tiny-bpr" / "checked.json").exists()


def measured(name: str) -> dict[tuple[str, int, int], float]:
    table = contracts.read(RUNS / "tiny" / name / "train" / "metrics.parquet", contracts.METRICS)
    return {(row["metric"], row["k"], row["seed"]): row["value"] for row in table.iter_rows(named=True)}


def test_a_choice_on_the_test_is_measured_beside_the_choice_on_validation(fresh: Path) -> None:
    """Off unless asked for; then every epoch is run, and no number at the epoch of validation is another."""
    train.main("tiny-bpr")
    honest = measured("tiny-bpr")
    assert not any("chosen" in metric for metric, *_ in honest)
    shutil.rmtree(RUNS)
    file = fresh / "suites" / "tiny" / "params.yaml"
    params = yaml.safe_load(file.read_text())
    params["experiments"]["tiny-bpr"]["chosen_on_test"] = True
    file.write_text(yaml.safe_dump(params))
    for name in ("tiny-counts", "tiny-bpr"):
        train.main(name)
        check.main(f"recommendations/{name}")
    both = measured("tiny-bpr")
    assert {key: both[key] for key in honest} == honest
    chosen = {key: value for key, value in both.items() if key not in honest}
    assert {metric for metric, *_ in chosen} == {"chosen-on-test/next/recall", "chosen-on-test/next/mrr"}
    for (metric, k, seed), value in chosen.items():
        assert value >= honest[metric.removeprefix("chosen-on-test/"), k, seed]
    check.main("metrics/tiny")
