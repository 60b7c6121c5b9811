"""Keys of what is kept: whatever decides a result, once it is another, names another folder."""

from __future__ import annotations

import copy
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tasks import contracts
from tasks.config.params import Params, load
from tasks.stages import attack, perturb
from tasks.stages.attack_embeddings import Released
from tasks.stages.common import PROCESSED, RUNS, write_json
from tests.stages import (  # fmt: skip
    test_attack_membership,
    test_audit_training,
    test_train,
    tiny,
    tiny_embeddings,
    tiny_next,
    tiny_pair,
    tiny_ratings,
    tiny_systems,
)

BUILD = {
    "train": lambda root: test_train.build(root, pytest.MonkeyPatch()),
    "tune": lambda root: test_train.build(root, pytest.MonkeyPatch()),
    "train_networks": tiny_systems.build,
    "embed_networks": tiny_systems.build,
    "align": tiny_pair.build,
    "attack_membership": test_attack_membership.build,
    "audit_training": test_audit_training.build,
    "attack_edges": tiny_next.build,
    "attack_ratings": tiny_ratings.build,
    "attack_embeddings": tiny_embeddings.build,
}
SUITE = "evaluation.seed=7 training.validation_k=4 experiments.tiny-gerai.patience=9 experiments.tiny-gerai.seeds=[5,6]"
ROWS = "data/processed/tiny/interactions.parquet data/perturbed/tiny/*/*.parquet"
DECIDES = {
    "train": f"{SUITE} {ROWS} evaluation.k=[3] evaluation.negatives=7 experiments.tiny-gerai.config.epochs=9 "
    "experiments.tiny-gerai.model='gcn' experiments.tiny-gerai.noise='secure' "
    "experiments.tiny-gerai.chosen_on_test=True",
    "tune": f"{SUITE} {ROWS} tuning.seed=2000 experiments.tiny-gerai.config.epochs=9 "
    "experiments.tiny-gerai.config.features_epsilon=7.5",
    "train_networks": "experiments.tiny-degree.seeds=[5] experiments.tiny-degree.model='sne' evaluation.seed=7 "
    "experiments.tiny-degree.config.dimension=9 data/processed/tiny/left/social.parquet",
    "embed_networks": "embeddings.raw.seeds=[5] embeddings.raw.model='sne' embeddings.raw.config.dimension=9 "
    "embeddings.raw.reads=['edge'] embeddings.raw.text=None data/processed/tiny/*/social.parquet",
    "align": "aligned.tiny.split_seed=9 aligned.tiny.test_share=.5 aligned.tiny.anchor_shares=[.1] aligned.tiny.k=[1] "
    "aligned.tiny.ways=[] aligned.tiny.config.refinements=1 data/processed/tiny/anchors.parquet",
    "attack_membership": "attack.asked=3 attack.k=7 attack.seed=2 experiments.tiny-ease.config.regularization=1. "
    "experiments.tiny-ease.model='popularity' data/processed/tiny/interactions.parquet",
    "audit_training": "training_audit.seed=9 training_audit.canaries=50 training_audit.guesses=20 "
    "training_audit.items=2 training_audit.confidence=.9 experiments.tiny-dpae.config.epochs=9 "
    "experiments.tiny-dpae.sweep=[] data/processed/tiny/interactions.parquet",
    "attack_edges": "attack.targets=3 attack.trials=8 attack.k=3 attack.seed=1 evaluation.seed=7 "
    "data/processed/tiny/interactions.parquet data/runs/tiny/*/train/models/*/*",
    "attack_ratings": "attack.ridge=1. experiments.tiny-privsr.config.sensitive_share=.5 "
    "experiments.tiny-privsr.config.initial_spread=.2 data/processed/tiny/interactions.parquet "
    "data/processed/tiny/folds.parquet data/runs/tiny/tiny-privsr/released/base/items/*.parquet",
    "attack_embeddings": "attack.pairs=9 attack.known_share=.3 attack.seed=1 "
    "data/processed/tiny/*/social.parquet,data/processed/tiny/anchors.parquet data/runs/tiny/tiny-joint/released/*/*/*",
}
"""Stage -> what decides its results: places in the suite's parameters with another value; tables, in another order."""


def folders(stage: str, params: Params) -> set[Path]:
    """The folders of a stage's results."""
    module, suite = import_module(f"tasks.stages.{stage}"), params.suites["tiny"]
    if stage == "tune":
        return {module.checkpoint("tiny-gerai", params, params.experiments["tiny-gerai"].config)}
    pair, joint = PROCESSED / "tiny", RUNS / "tiny/tiny-joint/released"
    plans: dict[str, Any] = {
        "train": lambda: module.plan("tiny-gerai", params),
        "train_networks": lambda: module.plan("tiny-degree", params),
        "embed_networks": lambda: module.plan("raw", params),
        "align": lambda: module.plan(
            "tiny", params.aligned["tiny"], module.locate(params.aligned["tiny"], params), module.fingerprint()
        ),
        "attack_membership": lambda: module.plan("tiny", suite.attack, params)[:4],  # of the first system
        "audit_training": lambda: module.plan("tiny", suite.training_audit, params),
        "attack_edges": lambda: module.plan("tiny", suite.attack, params),
        "attack_ratings": lambda: module.plan("tiny-privsr", suite.attack, params)[:2],  # of the base setting
        "attack_embeddings": lambda: module.plan(
            "tiny-joint", params.experiments["tiny-joint"], suite.attack,
            Released(joint, contracts.read_processed(pair), joint=True, split=None), module.fingerprint(),
        ),
    }  # fmt: skip
    return {unit.folder for unit in plans[stage]()}


def put_models(params: Params) -> None:
    """Files in the place of what was trained; to a plan they are whatever they hold."""
    for name, experiment in params.experiments.items():
        write = pl.DataFrame({"name": [name, "model"]}).write_parquet
        for setting in experiment.settings():
            run = RUNS / "tiny" / name
            files = [run / "train/models" / setting / f"seed-{experiment.seeds[0]}.safetensors"]
            files += [run / "released" / setting / "items" / f"seed-{seed}.parquet" for seed in experiment.seeds]
            for file in files:
                file.parent.mkdir(parents=True, exist_ok=True)
                write(file)
        write_json(run / "train/history.json", {of: {str(experiment.seeds[0]): []} for of in experiment.settings()})


def change(place: str, params: Params) -> None:
    """Change what stands at one place."""
    if "/" in place:
        for file in [file for pattern in place.split(",") for file in Path().glob(pattern)]:
            pl.read_parquet(file).reverse().write_parquet(file)
        return
    where, _, text = place.partition("=")
    *steps, last = where.split(".")
    target: Any = params.suites["tiny"]
    for step in steps:
        target = target[step] if isinstance(target, dict) else getattr(target, step)
    (target if isinstance(target, dict) else vars(target))[last] = eval(text)


@pytest.mark.parametrize(
    ("stage", "place"), [(of, place) for of, all_ in DECIDES.items() for place in [*all_.split(), "code"]]
)
def test_whatever_decides_a_result_names_what_is_kept(
    stage: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    BUILD[stage](tmp_path)
    monkeypatch.setattr(f"tasks.stages.{stage}.fingerprint", lambda *_: "code")
    if stage in ("attack_edges", "attack_ratings"):
        put_models(load())
    before = folders(stage, load())
    params = copy.deepcopy(load())
    assert before == folders(stage, params)
    if place == "code":
        monkeypatch.setattr(f"tasks.stages.{stage}.fingerprint", lambda *_: "other code")
    else:
        change(place, params)
    assert before.isdisjoint(folders(stage, params))


@pytest.mark.parametrize("stage", ["attack_membership", "attack_edges", "attack_ratings"])
def test_a_system_that_reads_perturbed_features_is_attacked_by_the_release_that_it_reads(
    stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    BUILD[stage](tmp_path)
    monkeypatch.setattr(f"tasks.stages.{stage}.fingerprint", lambda *_: "code")
    put_models(load())
    perturb.main("tiny")
    params = load()
    for experiment in params.experiments.values():
        vars(experiment)["features"] = "perturbed/tiny"
    before = folders(stage, params)
    change("data/perturbed/tiny/epsilon=1/*.parquet", params)
    assert before.isdisjoint(folders(stage, params))


def test_whatever_an_attribute_attack_sees_names_what_is_kept() -> None:
    users, lists = np.array([0, 1]), np.array([[2, 3], [3, 2]], np.int32)
    known = attack.Known(tiny.SCHEMA, users, users, {}, users > 0, "digest")
    arguments: list[Any] = ["release", known, lists, (1, 2), ["knn"], 0, attack.TRUE]
    others = [replace(known, digest="of other data"), lists[::-1], (0, 2), ["naive_bayes"], 1, attack.RANDOM]
    made = [attack.unit(*arguments)]
    made += [attack.unit(*arguments[:at], value, *arguments[at + 1 :]) for at, value in enumerate(others, start=1)]
    assert len({unit.folder for unit in made}) == len(made)
