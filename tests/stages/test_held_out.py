"""Users who were not trained on: nothing of theirs reaches a model, and their lists are made of what is folded in."""

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tasks.config import references
from tasks.config.params import Evaluation, Training, load
from tasks.core import contracts
from tasks.core.errors import DataError
from tasks.core.hashing import Uniforms
from tasks.evaluation.metrics import ranking_metrics
from tasks.evaluation.ranking import MEASURED
from tasks.evaluation.splits import TEST, TRAIN, VALID, random_ranks
from tasks.models.ranking.ease import EASE, EASEConfig
from tasks.pipeline.common import PROCESSED, RUNS, read_json
from tasks.stages import check, train
from tasks.stages.evaluators.held_out import HeldOut
from tests import parameters
from tests.stages import tiny

N_TEST, N_HELD, N_ITEMS = 30, 60, 40
KS = [5, 10]
ROWS = {"epochs": 2, "batch_size": 30, "learning_rate": 0.01, "optimiser": "adam", "values": "binary", "dimension": 4,
        "hidden": 8, "beta": 0.2, "prior": "standard"}  # fmt: skip
PRIVATE = {"privacy": "dpsgd", "accounting": "rigorous", "epsilon_max": 5.0, "delta": 1e-3, "clip_norm": 1.0}
SYSTEMS = {
    "popularity": {},
    "dp-popularity": {"epsilon": 2.0, "contribution": 3},
    "ease": {"regularization": 5.0},
    "ials": {"dimension": 4, "iterations": 3, "alpha": 10.0, "regularization": 1.0},
    "vae": ROWS | {"privacy": "none"},
    "dpals": {"epsilon": 5.0, "delta": 1e-3, "dimension": 3, "iterations": 2, "user_ridge": 0.1, "item_ridge": 10.0}
    | {"clip": 1.0, "contribution": 5.0, "counts_share": 0.3, "head": 20},
    "gram-svd": {"epsilon": 5.0, "delta": 1e-3},
    "gaussian-popularity": {"epsilon": 5.0, "delta": 1e-3},
    "dpae": {"epochs": 2, "batch_size": 30, "learning_rate": 0.1, "momentum": 0.9, "dimension": 3, "epsilon": 5.0}
    | {"delta": 1e-3, "clip_norm": 1.0},
}


def interactions() -> pl.DataFrame:
    """Even users like even items, odd users odd ones; a fifth of what the first users like is to be found."""
    rng = np.random.default_rng(0)
    likes = (np.add.outer(np.arange(tiny.N_USERS), np.arange(N_ITEMS)) % 2 == 0) & (
        rng.random((tiny.N_USERS, N_ITEMS)) < 0.6
    )
    likes[:, :2] |= ~likes.any(1)[:, None]
    users, items = np.nonzero(likes)
    targets = random_ranks(users, items, Uniforms.of(0, range(tiny.N_USERS), range(N_ITEMS))) < 3
    part = np.where(users < N_TEST, TEST, np.where(users < N_HELD, VALID, TRAIN))
    split = np.where(targets, part, TRAIN)
    return tiny.interactions(users, items, np.array(contracts.SPLITS)[split])


SCHEMA = tiny.SCHEMA.model_copy(update={"n_items": N_ITEMS})


def evaluator(rows: pl.DataFrame) -> HeldOut:
    evaluation = Evaluation(k=KS, negatives=None, seed=1, recall="reachable")
    return HeldOut(tiny.Numbered(SCHEMA, rows, PROCESSED, PROCESSED), evaluation, Training(patience=2, validation_k=10))


def fitted(of: HeldOut) -> EASE:
    return EASE(EASEConfig(regularization=5.0)).fit(of.training_data(EASE, 0), rng=np.random.default_rng(0))


def test_models_learn_from_training_users_alone() -> None:
    rows = interactions()
    data = evaluator(rows).training_data(EASE, 0)
    expected = rows.filter(pl.col("user") >= N_HELD)
    assert data.n_users == tiny.N_USERS - N_HELD
    assert (data.users + N_HELD).tolist() == expected["user"].to_list()
    assert data.items.tolist() == expected["item"].to_list()


def test_lists_are_judged_by_what_was_not_folded_in() -> None:
    rows = interactions()
    of = evaluator(rows)
    model = fitted(of)
    tested = of.evaluate(model)
    lists = tested.released
    assert lists["user"].unique().sort().to_list() == list(range(N_TEST))
    known = rows.filter((pl.col("user") < N_TEST) & (pl.col("split") == "train"))
    assert lists.join(known, on=["user", "item"]).is_empty()
    hits, n_targets = np.zeros((N_TEST, 10), bool), np.zeros(N_TEST, np.int64)
    for user in range(N_TEST):
        history = np.zeros(N_ITEMS)
        history[known.filter(pl.col("user") == user)["item"].to_numpy()] = 1
        scores = np.where(history > 0, -np.inf, history @ model.weights)
        targets = rows.filter((pl.col("user") == user) & (pl.col("split") == "test"))["item"].to_list()
        hits[user], n_targets[user] = np.isin(np.argsort(-scores)[:10], targets), len(targets)
    expected = ranking_metrics(hits, n_targets, KS, recall="reachable")
    expected = {metric: expected[metric] for metric in MEASURED}
    expected["recall-reachable"] = expected.pop("recall")
    measured = {(record["metric"], record["k"]): record["value"] for record in tested.metrics}
    assert measured == pytest.approx({(f"full/{name}", k): at[k] for name, at in expected.items() for k in KS})
    assert measured["full/ndcg", 10] > 0.4


def test_validation_looks_at_no_test_user_and_the_test_at_none_of_validation() -> None:
    rows = interactions()
    of = evaluator(rows)
    model = fitted(of)
    emptied = {
        split: evaluator(
            rows.filter((pl.col("split") != split) | (pl.col("item") == pl.col("item").min().over("user", "split")))
        )
        for split in ("valid", "test")
    }
    assert emptied["test"].validate(model) == of.validate(model) != emptied["valid"].validate(model)
    assert emptied["valid"].test(model) == of.test(model) != emptied["test"].test(model)


def test_data_that_hold_no_users_out_are_refused() -> None:
    rows = interactions().with_columns(user=tiny.N_USERS - 1 - pl.col("user"))
    with pytest.raises(DataError, match="users whose rows are test are not those from number 0 on; this task needs"):
        evaluator(rows).training_data(EASE, 0)


def build(root: Path) -> None:
    """A suite of everything that can be folded in."""
    dpvae = tiny.experiment("vae", ROWS | PRIVATE, seeds=[0], system="dpvae-rigorous")
    tiny.build(
        root,
        experiments={f"tiny-{name}": tiny.experiment(name, config, seeds=[0]) for name, config in SYSTEMS.items()}
        | {"tiny-dpvae": dpvae},
        suites=tiny.suites("fold-in"),
        evaluation={"k": KS, "negatives": None, "seed": 1, "recall": "reachable"},
        tuning={"seed": 1000, "grid": {"ease": {"regularization": [1.0, 5.0]}}},
        attack=None,
    )
    contracts.write(interactions(), PROCESSED / "tiny" / "interactions.parquet", contracts.INTERACTIONS)
    tiny.write_schema(PROCESSED / "tiny", SCHEMA)


@pytest.mark.usefixtures("fresh")
def test_every_system_is_trained_on_the_others_and_passes_its_checks() -> None:
    for name in (*SYSTEMS, "dpvae"):
        train.main(f"tiny-{name}")
    check.main("recommendations/tiny-ials")
    check.main("metrics/tiny")
    ndcg = {}
    for name in ("popularity", "ease", "ials"):
        measured = contracts.read(RUNS / "tiny" / f"tiny-{name}" / "train" / "metrics.parquet", contracts.METRICS)
        ndcg[name] = measured.filter((pl.col("metric") == "full/ndcg") & (pl.col("k") == 10))["value"].item()
    assert min(ndcg["ease"], ndcg["ials"]) > ndcg["popularity"]
    for name in ("dp-popularity", "dpals", "dpae", "dpvae"):
        (entry,) = read_json(RUNS / "tiny" / f"tiny-{name}" / "train" / "ledger.json")
        assert entry["accounted_epsilon"] <= 5.0


@pytest.mark.parametrize("name", ["ml-20m", "netflix", "dpvae-held-out"])
def test_the_suites_in_the_documentation_are_of_this_project(name: str, tmp_path: Path) -> None:
    parameters.copy(tmp_path)
    shutil.copytree(parameters.ROOT / "docs" / name, tmp_path / "suites" / name)
    params = load(tmp_path / "params.yaml")
    references.check(params, tmp_path / "params.yaml")
    suite = params.suites[name]
    assert suite.tuning.grid.keys() <= {experiment.system for experiment in suite.experiments.values()}
    for experiment in suite.experiments.values():  # into which users can be folded
        assert experiment.model in {*SYSTEMS, "ae", "dpmf"}
        assert experiment.config.get("values", "binary") == "binary"
