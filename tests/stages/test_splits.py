"""Several splits of one data set: every system at setting `base` is run on each, and all else on the first alone."""

from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from safetensors.numpy import load_file

from tasks.config.params import load
from tasks.config.references import check_references
from tasks.core import contracts
from tasks.core.errors import ConfigurationError, DataError
from tasks.evaluation.run_numbers import APART
from tasks.pipeline import table
from tasks.pipeline.common import PROCESSED, RUNS, read_json
from tasks.privacy.noise import recording
from tasks.stages import attack, check, collect, perturb, targets, train
from tasks.stages.inputs import read_inputs
from tests.stages import test_train, tiny

OTHER = "tiny-split-2"
RUNS_OF_BASE = [0, 1, APART, APART + 1]
SEEING = {"k": [5], "attackers": ["naive_bayes"]}
ATTACK = SEEING | {"kind": "attribute", "sweep": SEEING, "control_k": [5], "target_share": 0.2, "split_seed": 5}


def build(root, sweep_seeds=None, attack=None, **changes):
    """A workspace with a second split: the same interactions, of which others are held out."""
    config = test_train.CONFIG | {"epochs": 1, "epsilon": 0.4}
    swept = {"sweep": [{"features_epsilon": 7.5}], "sweep_seeds": sweep_seeds}
    gerai = tiny.experiment("gerai", config, features="perturbed/tiny", **swept)
    suite = tiny.suites()["tiny"] | {"splits": [OTHER]} | changes
    processed = tiny.parameters()["processed"]["tiny"]
    options = processed["options"] | {"split_seed": processed["options"]["split_seed"] + 1}
    tiny.build(
        root,
        experiments={"tiny-counts": tiny.COUNTS, "tiny-gerai": gerai},
        suites={"tiny": suite},
        processed={"tiny": processed, OTHER: processed | {"options": options}},
        evaluation={"k": [5, 10], "negatives": 20, "seed": 1, "recall": "relevant"},
        attack=attack,
    )
    rows, users = test_train.interactions(), contracts.users_schema(tiny.FEATURES)
    held = pl.concat([rows["split"][2:], rows["split"][:2]]).alias("split")
    people = contracts.read(PROCESSED / "tiny/users.parquet", users)
    for name, table_ in (("tiny", rows), (OTHER, rows.with_columns(held))):
        (PROCESSED / name).mkdir(exist_ok=True)
        tiny.write_interactions(table_, PROCESSED / name, n_items=test_train.N_ITEMS)
        contracts.write(people, PROCESSED / name / "users.parquet", users)
    tiny.passed("processed", OTHER)
    tiny.passed("perturbed", "tiny")
    perturb.main("tiny")


def make():
    build(Path())
    for name in ("tiny-gerai", "tiny-counts"):
        train.main(name)


def test_sweep_points_are_run_on_every_split_where_that_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    build(tmp_path, sweep_splits=True)
    suite = load().suites["tiny"]
    runs = {setting: [*suite.runs(suite.experiments["tiny-gerai"], setting)] for setting in ("base", "x=1")}
    assert runs == {"base": RUNS_OF_BASE, "x=1": RUNS_OF_BASE}


@pytest.mark.usefixtures("inside")
def test_base_is_run_on_every_split_and_a_sweep_point_on_the_first():
    rows = contracts.read(RUNS / "tiny/tiny-gerai/train/metrics.parquet", contracts.METRICS)
    of = {setting: sorted(set(some["seed"])) for (setting,), some in rows.group_by("setting")}
    assert of == {"base": RUNS_OF_BASE, "features_epsilon=7.5": [0, 1]}
    spent = {(line["setting"], line["seed"]) for line in read_json(RUNS / "tiny/tiny-gerai/train/ledger.json")}
    assert spent == {(setting, run) for setting, every in of.items() for run in every}
    passed = read_json(RUNS / "tiny/tiny-gerai/train/inputs.json")["checks"]
    assert [verdict["name"] for verdict in passed] == ["tiny", "tiny", OTHER]


def test_a_sweep_may_have_fewer_seeds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    build(tmp_path, sweep_seeds=1)
    units = {(unit.setting, unit.seed) for unit in train.Training("tiny-gerai", load()).plan()}
    assert units == {*(("base", run) for run in RUNS_OF_BASE), ("features_epsilon=7.5", 0)}
    raw = (tmp_path / "suites/tiny/params.yaml").read_text()
    (tmp_path / "suites/tiny/params.yaml").write_text(raw.replace("sweep_seeds: 1", "sweep_seeds: 3"))
    with pytest.raises(ConfigurationError, match=r"experiments.tiny-gerai.sweep_seeds: 3 of 2 seeds"):
        check_references(load())


@pytest.mark.usefixtures("copied")
def test_a_run_on_another_split_is_served_and_tested_there():
    seen = test_train.interactions().filter(pl.col("split") != "test").select("user", "item")
    folder = RUNS / "tiny/tiny-counts/released/base"
    repeated = {
        run: contracts.read(folder / f"seed-{run}.parquet", contracts.RECOMMENDATIONS).join(seen, on=["user", "item"])
        for run in RUNS_OF_BASE
    }
    assert {run for run, again in repeated.items() if len(again)} == {APART, APART + 1}
    check.main("recommendations/tiny-counts")  # against its own split all of it is new
    (folder / f"seed-{APART}.parquet").write_bytes((folder / "seed-0.parquet").read_bytes())
    with pytest.raises(DataError, match=f"recommendations, {OTHER}.*must not be in the user's training"):
        check.main("recommendations/tiny-counts")


def test_attributes_are_inferred_from_the_ratings_and_lists_of_every_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    build(tmp_path, attack=ATTACK)
    train.main("tiny-counts")
    check.main("recommendations/tiny-counts")
    targets.main("tiny")
    attack.main("tiny-counts")
    folder = RUNS / "tiny/tiny-counts"
    rows = contracts.read(folder / "attack/metrics.parquet", contracts.METRICS)
    assert sorted(rows["seed"].unique()) == RUNS_OF_BASE
    for unit in attack.AttributeInference("tiny-counts", load()).plan():
        seen = unit.target
        own = contracts.read(
            PROCESSED / ("tiny", OTHER)[seen.seed // APART] / "interactions.parquet", contracts.INTERACTIONS
        )
        rated = own.filter(pl.col("split") != "test").select("user", "item").rows()
        assert set(zip(*seen.profiles.tolist(), strict=True)) == set(rated), unit.label
        if seen.kind == attack.TRUE:
            released = contracts.read(folder / f"released/base/seed-{seen.seed}.parquet", contracts.RECOMMENDATIONS)
            assert seen.lists.ravel().tolist() == released.sort("user", "rank")["item"].to_list()


@pytest.mark.usefixtures("fresh")
def test_runs_of_another_split_draw_noise_weights_and_negatives_of_their_own():
    """On two splits that are the same: whatever they shared, their difference would show on data that differ in one."""
    rows = PROCESSED / "tiny/interactions.parquet"
    (PROCESSED / OTHER / "interactions.parquet").write_bytes(rows.read_bytes())
    for name in ("tiny-counts", "tiny-gerai"):
        with recording() as drawn:
            train.main(name)
        alike: dict = {}
        for draw in drawn:
            alike.setdefault((draw.release, draw.law, draw.scale, draw.shape), []).append(draw.values)
        assert alike
        for values in alike.values():
            assert len(values) >= len(RUNS_OF_BASE)
            assert not any(np.array_equal(first, other) for first, other in combinations(values, 2))
    models = RUNS / "tiny/tiny-gerai/train/models/base"
    kept = [load_file(models / f"seed-{run}.safetensors") for run in RUNS_OF_BASE]
    for first, other in combinations(kept, 2):
        assert not any(np.array_equal(first[name], other[name]) for name in first if first[name].any())


@pytest.mark.usefixtures("fresh")
def test_a_split_of_other_users_is_refused():
    people = contracts.read(PROCESSED / OTHER / "users.parquet", contracts.users_schema(tiny.FEATURES))
    contracts.write(people.reverse(), PROCESSED / OTHER / "users.parquet", contracts.users_schema(tiny.FEATURES))
    experiment = load().experiments["tiny-gerai"]
    with pytest.raises(DataError, match="features of the users of tiny, which differ; add an entry to perturbed"):
        read_inputs(experiment, load(), experiment.config, OTHER)


@pytest.mark.usefixtures("fresh")
def test_users_whose_features_depend_on_the_split_are_perturbed_on_each():
    path = Path("params.yaml")
    raw = yaml.safe_load(path.read_text())
    raw["perturbed"] |= {"tiny-2": raw["perturbed"]["tiny"] | {"data": OTHER, "epsilon": [1.0]}}
    path.write_text(yaml.safe_dump(raw))
    params = load()
    experiment = params.experiments["tiny-gerai"]
    assert params.features_of(experiment, OTHER) == "perturbed/tiny-2"
    assert "data/${item.features_0}" in table.find_stage("train", "tiny-gerai", params).deps
    assert table.find_stage("train", "tiny-gerai", params).items["tiny-gerai"]["features_0"] == "perturbed/tiny-2"
    people = contracts.read(PROCESSED / OTHER / "users.parquet", contracts.users_schema(tiny.FEATURES))
    shuffled = people.with_columns(pl.col("share").reverse())
    contracts.write(shuffled, PROCESSED / OTHER / "users.parquet", contracts.users_schema(tiny.FEATURES))
    perturb.main("tiny-2")
    tiny.passed("perturbed", "tiny-2")
    by_run = {unit.seed: unit.inputs.features(unit.seed) for unit in train.Training("tiny-gerai", params).plan()}
    own = read_inputs(experiment, params, experiment.config, OTHER)
    assert np.array_equal(by_run[APART + 1], own.features(1))
    assert not np.array_equal(by_run[APART + 1], by_run[1])
    assert collect.deciding_parameters(experiment, params)["features_of_splits"] == ["perturbed/tiny-2"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"splits": ["tiny"]}, "splits: tiny must be tiny with another split_seed"),
        ({"splits": ["elsewhere"]}, "splits: .*'elsewhere'"),
        ({"splits": [OTHER, OTHER]}, f"{OTHER} is repeated"),
    ],
)
@pytest.mark.usefixtures("fresh")
def test_a_split_is_the_same_data_split_otherwise(changes, message):
    own = Path("suites/tiny/params.yaml")
    given = "splits:\n" + "".join(f"- {name}\n" for name in changes["splits"])
    own.write_text(own.read_text().replace(f"splits:\n- {OTHER}\n", given))
    with pytest.raises(ConfigurationError, match=message):
        check_references(load())
