"""Stage `check` on embeddings and on metrics of a suite that embeds users: good ones pass, bad ones stop in a line."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tasks.core import contracts
from tasks.core.errors import DataError
from tasks.pipeline.common import QUALITY, RUNS, read_json, require_passed
from tasks.stages import check
from tasks.stages.network_files import EMBEDDINGS, embedding_file, read_vectors, write_vectors
from tests.stages import tiny_systems as tiny
from tests.stages.tiny_embeddings import ATTACK

pytestmark = pytest.mark.usefixtures("fresh")
RELEASED = RUNS / "tiny" / "tiny-dp-rgcn" / "released"
LAYERS = {"embeddings/private": EMBEDDINGS / "private", "recommendations/tiny-dp-rgcn": RELEASED}
FIRST, LAST = LAYERS
SCORES = [
    f"{control}{score}" for control in ("", "majority/") for score in ("precision", "precision-swapped", "micro-f1")
]
TRAIN = [f"left/interests/{of}" for of in (*SCORES, *(f"everything/{score}" for score in SCORES[:3]))]
OF_CLASSES = [*SCORES, "precision-weighted", "majority/precision-weighted"]
ATTACKED = [
    *(f"left/{attribute}/{of}" for attribute in ("gender", "occupation") for of in OF_CLASSES),
    *(
        f"{network}/links/{attacker}/{kind}"
        for network in ("left", "right")
        for attacker in ("cosine", "dot", "hadamard")
        for kind in ("auc", "tpr")
    ),
]
SYSTEMS = ("tiny-degree", "tiny-crosue")


def embeddings() -> None:
    for place in LAYERS.values():
        tiny.made_up(place, tiny.SETTINGS)


def metrics() -> None:
    """Of two systems, one of which embeds both networks together."""
    about = {"suite": "tiny", "data": "tiny", "seeds": tiny.SEEDS}
    systems = {name: about | tiny.EXPERIMENTS[name.removeprefix("tiny-")] for name in SYSTEMS}
    tiny.parameters(experiments=systems, attack=dict(ATTACK))
    for name in SYSTEMS:
        joint = [("anchors/precision", 1), ("anchors/precision", 10), ("anchors/confident/share", None)]
        attacked = [(metric, None) for metric in ATTACKED] + (joint if name == "tiny-crosue" else [])
        write(name, "train", [(metric, None) for metric in TRAIN])
        write(name, "attack", attacked)


def write(name: str, stage: str, measured: list[tuple[str, int | None]]) -> None:
    rows = [(seed, metric, k, 0.25) for seed in tiny.SEEDS for metric, k in measured]
    kinds = {"seed": pl.Int64, "metric": pl.String, "k": pl.Int32, "value": pl.Float64}
    about = {"suite": "tiny", "experiment": name, "dataset": "tiny", "model": "any", "setting": "base"}
    table = pl.DataFrame(rows, schema=kinds, orient="row").with_columns(
        pl.lit(value).alias(key) for key, value in about.items()
    )
    file(name, stage).parent.mkdir(parents=True)
    contracts.write(table, file(name, stage), contracts.METRICS)


def file(name: str, stage: str) -> Path:
    return RUNS / "tiny" / name / stage / "metrics.parquet"


def edit(path: Path, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    contracts.write(change(contracts.read(path, contracts.METRICS)), path, contracts.METRICS)


def vectors(layer: str, change: Callable[[np.ndarray], np.ndarray]) -> None:
    """Change the vectors of one network, setting and seed."""
    path = embedding_file(LAYERS[layer], tiny.SETTINGS[1], "right", 1)
    write_vectors(path, change(read_vectors(path, tiny.SIZES["right"])))


def with_nan(rows: np.ndarray) -> np.ndarray:
    rows[7, 2] = np.nan
    return rows


@pytest.mark.parametrize("layer", LAYERS)
def test_good_embeddings_pass(layer: str) -> None:
    embeddings()
    check.main(layer)
    verdict = read_json(QUALITY / f"{layer}.json")
    assert verdict["success"]
    assert {Path(path).name for path in verdict["checked"]} == {"seed-0.parquet", "seed-1.parquet", "schema.json"}
    assert len(verdict["checked"]) == 1 + 2 * 2 * 2
    tables = {result["table"] for result in verdict["results"]}
    assert {"left/embeddings", "left/embeddings per user", "right/embeddings", "right/embeddings per user"} <= tables


@pytest.mark.parametrize(
    ("layer", "spoil", "message"),
    [
        (FIRST, lambda layer: vectors(layer, with_nan), "right/embeddings, column infinite must be 0: all numbers"),
        (LAST, lambda layer: embedding_file(LAYERS[layer], "base", "left", 0).unlink(), "left/seed-0.parquet: is not"),
    ],
)
def test_bad_embeddings_stop_in_one_line(layer: str, spoil: Callable[[str], Any], message: str) -> None:
    embeddings()
    spoil(layer)
    with pytest.raises(DataError, match=message) as refusal:
        check.main(layer)
    assert "\n" not in str(refusal.value)
    with pytest.raises(DataError):
        require_passed(*layer.split("/"))


def test_a_report_waits_for_releases_that_passed() -> None:
    embeddings()
    passed = RELEASED.parent / "checked.json"
    check.main("recommendations/tiny-dp-rgcn")
    assert read_json(passed)["success"]
    vectors("recommendations/tiny-dp-rgcn", with_nan)
    with pytest.raises(DataError):
        check.main("recommendations/tiny-dp-rgcn")
    assert not passed.exists()


@pytest.mark.parametrize("layer", ["embeddings/private", "recommendations/tiny-dp-rgcn", "aligned/private"])
def test_before_there_is_anything_it_says_which_stage_makes_it(layer: str) -> None:
    shutil.rmtree("data/processed")
    address = f"suites/tiny/dvc.yaml:check-{layer.replace('/', '@')}"
    with pytest.raises(
        DataError, match=f"is not there, so there is nothing to check; `dvc repro {address}` makes it first"
    ):
        check.main(layer)


def test_metrics_of_training_and_attack_pass() -> None:
    metrics()
    more = {"metric": pl.lit("anchors/confident/precision"), "value": pl.lit(1.0)}
    edit(file("tiny-crosue", "attack"), lambda table: pl.concat([table, table.head(1).with_columns(**more)]))
    check.main("metrics/tiny")
    assert read_json(QUALITY / "metrics" / "tiny.json")["success"], "who names no one has no such metric"


@pytest.mark.parametrize(
    ("name", "stage", "change", "message"),
    [
        ("tiny-degree", "train", pl.col("metric") != TRAIN[4], "metrics expected, column rows .* the metric was"),
        ("tiny-degree", "attack", pl.col("seed") != 1, "the metric was measured"),
        ("tiny-crosue", "attack", pl.col("k").is_null() | (pl.col("k") != 10), "the metric was measured"),
    ],
)
def test_a_metric_that_was_not_measured_stops_in_one_line(name: str, stage: str, change: pl.Expr, message: str) -> None:
    metrics()
    edit(file(name, stage), lambda table: table.filter(change))
    with pytest.raises(DataError, match=message) as refusal:
        check.main("metrics/tiny")
    assert "\n" not in str(refusal.value)
    assert not read_json(QUALITY / "metrics" / "tiny.json")["success"]


def test_metrics_of_an_attack_that_did_not_run_are_missed() -> None:
    metrics()
    file("tiny-degree", "attack").unlink()
    with pytest.raises(DataError, match=r"tiny-degree/attack/metrics\.parquet: is not there"):
        check.main("metrics/tiny")
