"""Ratings are tested fold by fold, validated on published ones, and end as the tables of their contracts say."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from tasks.config.params import Evaluation, Training, load
from tasks.core import contracts
from tasks.core.errors import DataError
from tasks.models.base import RatingPredictor
from tasks.pipeline.common import RUNS, read_json
from tasks.stages import check, train
from tasks.stages.evaluators.ratings import Ratings
from tasks.stages.inputs import read_inputs
from tests.stages import tiny_ratings as tiny
from tests.stages.tiny import Untrained
from tests.stages.tiny_ratings import inputs

EVALUATION = Evaluation(k=[], negatives=None, seed=1, recall="relevant")
TRAINING = Training(patience=2, validation_k=None)


class Constant(Untrained, RatingPredictor):
    """Predicts one number, and 0 for the pairs that it was told of."""

    uses_links = True
    value = 3.0
    known: frozenset[tuple[int, int]] = frozenset()

    def predict(self, users: np.ndarray, items: np.ndarray) -> torch.Tensor:
        pairs = zip(users.tolist(), items.tolist(), strict=True)
        return torch.tensor([0.0 if pair in self.known else self.value for pair in pairs])


@pytest.mark.usefixtures("fresh")
def test_what_is_sensitive_is_nested_and_is_told_to_the_model() -> None:
    shares = [inputs(share).for_seed(1).interactions["sensitive"].to_numpy() for share in (0.0, 0.25, 0.5, 1.0)]
    assert not shares[0].any()
    assert shares[-1].all()
    for less, more in pairwise(shares):
        assert (less <= more).all()
    assert shares[1].mean() == pytest.approx(0.25, abs=0.01)
    data = inputs(0.25).for_seed(1).training_data(Constant, 0)
    rows = inputs(0.25).for_seed(1).interactions.filter(pl.col("split") == "train").sort("user", "item")
    assert data.sensitive.tolist() == rows["sensitive"].to_list()
    assert {tuple(link) for link in data.links.tolist()} == set(tiny.friends().select("source", "target").rows())


@pytest.mark.usefixtures("fresh")
def test_without_folds_all_seeds_have_the_same() -> None:
    full = read_inputs(load().experiments["tiny-privsr"], load(), {})
    assert full.for_seed(7) is full


@pytest.mark.usefixtures("fresh")
def test_errors_are_of_the_folds_ratings_cut_off_at_the_ends_of_the_scale() -> None:
    of_fold = inputs(0.25).for_seed(2)
    rows = of_fold.interactions.filter(pl.col("split") == "test").sort("user", "item")
    model = Constant(None)
    model.value = 9.0
    tested = Ratings(of_fold, EVALUATION, TRAINING).evaluate(model)
    predictions, values = tested.released, {row["metric"]: row["value"] for row in tested.metrics}
    truth, sensitive = rows["rating"].to_numpy(), rows["sensitive"].to_numpy()
    assert values["mae"] == pytest.approx((5 - truth).mean())
    assert values["mae/uncut"] == pytest.approx((9 - truth).mean())
    assert values["mae/sensitive"] == pytest.approx((5 - truth[sensitive]).mean())
    assert values["mae/public"] == pytest.approx((5 - truth[~sensitive]).mean())
    assert {row["k"] for row in tested.metrics} == {None}
    assert predictions.select("user", "item", "rating").equals(rows.select("user", "item", "rating"))
    assert set(predictions["prediction"]) == {9.0}


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(("share", "expected"), [(0.25, 0), (1.0, 1)])
def test_validation_looks_at_published_ratings_alone_where_there_are_any(share: float, expected: int) -> None:
    of_fold = inputs(share).for_seed(0)
    valid = of_fold.interactions.filter(pl.col("split") == "valid")
    hidden = valid.filter(pl.col("sensitive"))
    assert len(hidden)
    model = Constant(None)
    evaluator = Ratings(of_fold, EVALUATION, TRAINING)
    before = evaluator.validate(model)
    model.known = frozenset(hidden.select("user", "item").rows())
    assert (evaluator.validate(model) != before) == bool(expected)


def test_systems_are_trained_on_every_fold_and_pass_their_check(fresh: Path) -> None:
    for name in ("tiny-privsr", "tiny-mf-ratings", "tiny-rating-means"):
        train.main(name)
        check.main(f"recommendations/{name}")
    released = fresh / RUNS / "tiny/tiny-privsr/released"
    settings = {folder.name for folder in released.iterdir()}
    assert settings == {"base", "sensitive_share=0.0", "epsilon=0.1,sensitive_share=1.0"}
    for setting in settings:
        items = contracts.read(released / setting / "items/seed-2.parquet", contracts.embeddings_schema(4))
        assert len(items) == tiny.N_ITEMS
    received = contracts.read(released / "base/submissions/seed-2.parquet", contracts.received_schema(4))
    learnt = inputs(0.25).for_seed(2).interactions.filter((pl.col("split") == "train") & pl.col("sensitive"))
    pairs = received.select(user="sender", item="subject").sort("user", "item")
    assert pairs.equals(learnt.select("user", "item").sort("user", "item"))
    measured = contracts.read(fresh / RUNS / "tiny/tiny-privsr/train/metrics.parquet", contracts.METRICS)
    assert set(measured.filter(pl.col("metric") == "mae")["seed"]) == {0, 2}
    assert not measured.filter(pl.col("setting") == "sensitive_share=0.0", metric="mae/sensitive").height
    exchanged = measured.filter(pl.col("metric") == "communication/messages", setting="base")["value"]
    assert (exchanged > 0).all()


@pytest.mark.usefixtures("fresh")
def test_sensitive_ratings_are_accounted_for_and_so_is_their_absence() -> None:
    for name in ("tiny-privsr", "tiny-mf-ratings"):
        train.main(name)
    spent = {
        name: [entry for entry in read_json(RUNS / f"tiny/tiny-{name}/train/ledger.json") if entry["setting"] == "base"]
        for name in ("privsr", "mf-ratings")
    }
    assert {entry["protects"] for entries in spent.values() for entry in entries} == {"rating"}
    assert {entry["accounted_epsilon"] for entry in spent["privsr"]} == {None}
    assert {entry["claimed_epsilon"] for entry in spent["privsr"]} == {1.0}
    assert {entry["accounted_epsilon"] for entry in spent["mf-ratings"]} == {0.0}


def test_a_prediction_that_is_missing_fails_the_check(fresh: Path) -> None:
    train.main("tiny-rating-means")
    file = fresh / RUNS / "tiny/tiny-rating-means/released/base/seed-0.parquet"
    contracts.write(contracts.read(file, contracts.PREDICTIONS)[1:], file, contracts.PREDICTIONS)
    with pytest.raises(DataError, match=r"must be 1: every rating of the fold is predicted once"):
        check.main("recommendations/tiny-rating-means")
