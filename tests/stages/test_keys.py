"""Keys of what is kept: whatever decides a result, once it is another, names another folder."""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tasks.config.params import Experiment, Params, Suite, load
from tasks.pipeline.common import RUNS, write_json
from tasks.stages import attack, perturb

SUITE = "evaluation.seed=7 training.validation_k=4 experiments.tiny-gerai.patience=9 experiments.tiny-gerai.seeds=[5,6]"
ROWS, READ = "data/processed/tiny/interactions.parquet", "data/perturbed/tiny/epsilon=1/*.parquet"


def trial(stage: Any, params: Params, experiment: Experiment) -> Path:
    """Where a trial keeps its states."""
    config = experiment.config
    return stage.checkpoint("tiny-gerai", params, config, stage.read_inputs(experiment, params, config))


STAGES: dict[str, tuple[str, Callable[[Any, Params, Suite], list[Any]], str]] = {
    "train": ("test_train", lambda stage, params, _: stage.Training("tiny-gerai", params).plan(),
        f"{SUITE} {ROWS} data/processed/tiny/users.parquet data/perturbed/tiny/*/*.parquet evaluation.k=[3] "
        "evaluation.negatives=7 "
        "experiments.tiny-gerai.config.epochs=9 experiments.tiny-gerai.model='gcn' "
        "experiments.tiny-gerai.noise='secure' experiments.tiny-gerai.chosen_on_test=True "
        "experiments.tiny-gerai.tuned_elsewhere=True"),
    "tune": ("test_train", lambda stage, params, suite:
        [trial(stage, params, suite.experiments["tiny-gerai"])],
        f"{SUITE} {ROWS} data/perturbed/tiny/*/*.parquet tuning.seed=2000 experiments.tiny-gerai.config.epochs=9 "
        "experiments.tiny-gerai.config.features_epsilon=7.5"),
    "train_networks": ("tiny_systems", lambda stage, params, _: stage.Training("tiny-degree", params).plan(),
        "experiments.tiny-degree.seeds=[5] experiments.tiny-degree.model='sne' evaluation.seed=7 "
        "experiments.tiny-degree.config.dimension=9 data/processed/tiny/left/social.parquet"),
    "embed_networks": ("tiny_systems", lambda stage, params, _: stage.Embedding("raw", params).plan(),
        "embeddings.raw.seeds=[5] embeddings.raw.model='sne' embeddings.raw.config.dimension=9 "
        "embeddings.raw.reads=['edge'] embeddings.raw.text=None data/processed/tiny/*/social.parquet"),
    "align": ("tiny_pair", lambda stage, params, _: stage.Alignments("tiny", params).plan(),
        "aligned.tiny.split_seed=9 aligned.tiny.test_share=.5 aligned.tiny.anchor_shares=[.1] aligned.tiny.k=[1] "
        "aligned.tiny.ways=[] aligned.tiny.config.refinements=1 data/processed/tiny/anchors.parquet"),
    "attack_membership": ("test_attack_membership", lambda stage, params, _:
        [*stage.Membership("tiny", params).plan()][:4],
        "attack.asked=3 attack.k=7 attack.seed=2 experiments.tiny-ease.config.regularization=1. "
        f"experiments.tiny-ease.model='popularity' {ROWS} {READ}"),
    "audit": ("tiny", lambda stage, params, _: stage.Audits("tiny", params).plan(), ""),
    "audit_training": ("test_audit_training", lambda stage, params, _: stage.TrainingAudits("tiny", params).plan(),
        "training_audit.seed=9 training_audit.canaries=50 training_audit.guesses=20 training_audit.items=2 "
        f"training_audit.confidence=.9 experiments.tiny-dpae.config.epochs=9 experiments.tiny-dpae.sweep=[] {ROWS}"),
    "attack_edges": ("tiny_next", lambda stage, params, _: stage.InteractionAttack("tiny", params).plan(),
        "attack.targets=3 attack.trials=8 attack.k=3 attack.seed=1 evaluation.seed=7 "
        f"data/runs/tiny/*/train/models/*/* {ROWS} {READ}"),
    "attack_ratings": ("tiny_ratings", lambda stage, params, _: [*stage.RatingAttack("tiny-privsr", params).plan()][:2],
        "attack.ridge=1. experiments.tiny-privsr.config.sensitive_share=.5 data/processed/tiny/folds.parquet "
        "experiments.tiny-privsr.config.initial_spread=.2 "
        f"data/runs/tiny/tiny-privsr/released/base/items/*.parquet {ROWS} {READ}"),
    "attack_embeddings": ("tiny_embeddings", lambda stage, params, _: stage.VectorAttack("tiny-joint", params).plan(),
        "attack.pairs=9 attack.known_share=.3 attack.seed=1 data/runs/tiny/tiny-joint/released/*/*/* "
        "data/processed/tiny/*/social.parquet,data/processed/tiny/anchors.parquet"),
}  # fmt: skip
"""Stage -> the module that builds a workspace; units of one system's results; what decides these: places in the suite's
parameters with another value; tables, in another order."""


def folders(stage: str, params: Params) -> set[Path]:
    units = STAGES[stage][1](import_module(f"tasks.stages.{stage}"), params, params.suites["tiny"])
    return {unit if isinstance(unit, Path) else unit.folder for unit in units}


def put_models(params: Params) -> None:
    """Files in the place of what was trained; to a plan they are whatever they hold."""
    for name, experiment in params.experiments.items():
        run, table = RUNS / "tiny" / name, pl.DataFrame({"name": [name, "model"]})
        for setting, seed in product(experiment.settings(), experiment.seeds):
            of_seed = f"train/models/{setting}/seed-{seed}.safetensors", f"released/{setting}/items/seed-{seed}.parquet"
            for file in of_seed:
                (run / file).parent.mkdir(parents=True, exist_ok=True)
                table.write_parquet(run / file)
        write_json(run / "train/history.json", {of: {str(experiment.seeds[0]): []} for of in experiment.settings()})


def change(place: str, params: Params) -> None:
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
    ("stage", "place"), [(stage, place) for stage, of in STAGES.items() for place in [*of[2].split(), "code"]]
)
def test_whatever_decides_a_result_names_what_is_kept(
    stage: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    import_module(f"tests.stages.{STAGES[stage][0]}").build(tmp_path)
    code = "tasks.stages.tune.fingerprint" if stage == "tune" else "tasks.pipeline.jobs.fingerprint"
    monkeypatch.setattr(code, lambda *_: "code")
    params = load()
    if stage in ("attack_edges", "attack_ratings"):
        put_models(params)
    if place == READ:
        perturb.main("tiny")
        for experiment in params.experiments.values():
            vars(experiment)["features"] = "perturbed/tiny"
    before = folders(stage, params)
    assert before == folders(stage, params.model_copy(deep=True))
    if place == "code":
        monkeypatch.setattr(code, lambda *_: "other code")
    else:
        change(place, params)
    assert before.isdisjoint(folders(stage, params))


def test_whatever_an_attribute_attack_sees_names_what_is_kept() -> None:
    profiles, lists = np.array([[0, 1], [2, 3]], np.int32), np.array([[2, 3], [3, 2]], np.int32)
    release = attack.Release(attack.TRUE, "base", 0, profiles, {}, lists, (1, 2), ("knn",))
    others: list[dict[str, Any]] = [
        {"kind": attack.RANDOM}, {"seed": 1}, {"profiles": profiles[::-1]}, {"lists": lists[::-1]},
        {"ks": (0, 2)}, {"attackers": ("naive_bayes",)},
    ]  # fmt: skip
    keys = [str(release.decides()), *(str(replace(release, **change).decides()) for change in others)]
    assert len(set(keys)) == len(keys)
    assert replace(release, setting="epsilon=1").decides() == release.decides()
