"""The train stage: what it writes, what it protects, and that an interrupted run ends as an undisturbed one."""

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from safetensors.torch import load_file

from tasks.config.params import load
from tasks.core import contracts
from tasks.core.errors import DataError
from tasks.evaluation.pairs import BY_USER
from tasks.models.ranking.dpmf import DPMF
from tasks.pipeline import jobs, provenance
from tasks.pipeline.common import CHECKPOINTS, PROCESSED, RUNS, digest, read_json, write_json
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.stages import perturb, train
from tests.command import git
from tests.stages import tiny

NAMES = ("tiny-counts", "tiny-bpr", "tiny-gerai")
N_ITEMS = 60
CONFIG = {"epochs": 3, "batch_size": 256, "learning_rate": 0.01, "dimension": 4}


def interactions() -> pl.DataFrame:
    """Every user likes a tenth of the items, spread over the splits; all have some of each."""
    rng = np.random.default_rng(0)
    items = np.argsort(rng.random((tiny.N_USERS, N_ITEMS)), axis=1)[:, :8].astype(np.int32)
    splits = np.tile(["train"] * 5 + ["valid"] + ["test"] * 2, tiny.N_USERS)
    return tiny.interactions(np.repeat(np.arange(tiny.N_USERS), 8), items.ravel(), splits)


def build(root: Path = Path()) -> None:
    """A workspace with one model of each kind: counts, vectors, and a graph on perturbed features with a sweep."""
    reads = {"features": "perturbed/tiny", "sweep": [{"features_epsilon": 7.5}]}
    experiments = {
        "tiny-counts": tiny.COUNTS,
        "tiny-bpr": tiny.experiment("bpr", CONFIG),
        "tiny-gerai": tiny.experiment("gerai", CONFIG | {"epsilon": 0.4}, **reads),
    }
    evaluation = {"k": [5, 10], "negatives": 20, "seed": 1, "recall": "relevant"}
    tiny.build(root, experiments=experiments, suites=tiny.suites(), evaluation=evaluation)
    tiny.write_interactions(interactions(), n_items=N_ITEMS)
    perturb.main("tiny")
    tiny.passed("perturbed", "tiny")


def make() -> None:
    build()
    for name in NAMES:
        train.main(name)


def released(name: str) -> pl.DataFrame:
    paths = sorted((RUNS / "tiny" / name / "released").rglob("*.parquet"))
    frames = [contracts.read(path, contracts.RECOMMENDATIONS).with_columns(path=pl.lit(str(path))) for path in paths]
    return pl.concat(frames)


def metrics(name: str) -> pl.DataFrame:
    return contracts.read(RUNS / "tiny" / name / "train" / "metrics.parquet", contracts.METRICS)


@pytest.mark.usefixtures("inside")
def test_recommendations_are_unseen_and_every_setting_and_seed_is_measured():
    table = released("tiny-gerai")
    assert table.group_by("path", "user").len()["len"].unique().to_list() == [10]
    assert table["path"].n_unique() == 4
    seen = interactions().filter(pl.col("split") != "test").select("user", "item")
    assert table.join(seen, on=["user", "item"]).is_empty()
    counted = metrics("tiny-gerai").group_by("setting", "seed").len().sort("setting", "seed")
    assert counted["setting"].to_list() == ["base", "base", "features_epsilon=7.5", "features_epsilon=7.5"]
    assert counted["len"].to_list() == [20] * 4  # (3 sampled, 4 full, 3 further metrics) × 2 cut-offs
    run = read_json(RUNS / "tiny" / "tiny-gerai" / "train" / "inputs.json")
    assert run["synthetic"] is True
    assert [check["contract"] for check in run["checks"]] == ["processed", "perturbed"]


@pytest.mark.usefixtures("inside")
def test_metrics_at_base_are_what_they_are_for_users_on_average():
    folder = RUNS / "tiny/tiny-gerai/train/users"
    assert sorted(file.name for file in folder.iterdir()) == ["seed-0.parquet", "seed-1.parquet"]
    for seed in (0, 1):
        users = contracts.read(folder / f"seed-{seed}.parquet", BY_USER)
        sums = users.group_by("metric", "k").agg(pl.col("total").sum() / pl.col("examples").sum())
        measured = metrics("tiny-gerai").filter(setting="base", seed=seed).join(sums, on=["metric", "k"])
        assert len(measured) == len(sums) == 18
        assert measured["total"].to_list() == pytest.approx(measured["value"].to_list())


@pytest.mark.usefixtures("inside")
def test_the_ledger_names_what_is_protected_and_what_is_not():
    accounted = {}
    for name in NAMES:
        for record in read_json(RUNS / "tiny" / name / "train" / "ledger.json"):
            setting, seed = record.pop("setting"), record.pop("seed")
            entry = LedgerEntry.model_validate(record)
            accounted[name, setting, seed, entry.protects] = entry.accounted_epsilon
    assert accounted["tiny-counts", "base", 1, "interaction"] == pytest.approx(2.0)
    assert accounted["tiny-bpr", "base", 0, "interaction"] is None
    assert accounted["tiny-gerai", "base", 0, "interaction"] is None
    assert accounted["tiny-gerai", "base", 0, "feature"] == pytest.approx(1.0)
    assert accounted["tiny-gerai", "features_epsilon=7.5", 1, "feature"] == pytest.approx(7.5)
    assert ("tiny-bpr", "base", 0, "feature") not in accounted


@pytest.mark.usefixtures("fresh")
def test_units_depend_on_what_was_spent_on_the_features_they_read():
    """A unit's ledger repeats it, and a further budget of the same perturbation changes what it says of the others."""
    before = {
        name: [unit.folder for unit in train.Training(name, load()).plan()] for name in ("tiny-gerai", "tiny-bpr")
    }
    path = Path("data/perturbed/tiny/ledger.json")
    records = read_json(path)
    records[0]["gaps"] = [*records[0]["gaps"], "side-by-side"]
    write_json(path, records)
    after = {name: [unit.folder for unit in train.Training(name, load()).plan()] for name in before}
    assert not {*before["tiny-gerai"]} & {*after["tiny-gerai"]}
    assert before["tiny-bpr"] == after["tiny-bpr"]


@pytest.mark.usefixtures("fresh")
def test_what_is_for_each_users_own_eyes_lies_in_a_file_beside_the_model():
    raw = yaml.safe_load(Path("suites/tiny/params.yaml").read_text())
    config = {"dimension": 2, "epsilon": 1.0, "ridge": 1.0, "accounting": "rigorous"}
    raw["experiments"]["tiny-counts"] |= {"model": "dpmf", "config": config, "seeds": [0]}
    Path("suites/tiny/params.yaml").write_text(yaml.safe_dump(raw))
    train.main("tiny-counts")
    models = RUNS / "tiny" / "tiny-counts" / "train" / "models" / "base"
    assert {file.name: set(load_file(file)) for file in models.iterdir()} == {
        "seed-0.safetensors": {"items"}, "seed-0.own.safetensors": {"users"}
    }  # fmt: skip
    assert len(DPMF.load(models / "seed-0.safetensors").users) == tiny.N_USERS


@pytest.mark.usefixtures("fresh")
def test_secure_noise_is_in_the_ledger_and_in_no_seed():
    """A checkpoint of research noise is not taken for one of secure noise either."""
    counts = {}
    raw = yaml.safe_load(Path("suites/tiny/params.yaml").read_text())
    for mode in (None, "secure", "secure"):
        raw["experiments"]["tiny-counts"]["noise"] = mode
        Path("suites/tiny/params.yaml").write_text(yaml.safe_dump(raw))
        if (mode, 0) in counts:
            shutil.rmtree(CHECKPOINTS)
        train.main("tiny-counts")
        for seed in (0, 1):
            model = RUNS / "tiny" / "tiny-counts" / "train" / "models" / "base" / f"seed-{seed}.safetensors"
            counts.setdefault((mode, seed), []).append(load_file(model)["counts"])
        records = read_json(RUNS / "tiny" / "tiny-counts" / "train" / "ledger.json")
        assert [record.get("noise") for record in records] == [mode, mode]
        assert all(("secure" in record["gaps"], "seed" in record["gaps"]) == (mode == "secure", not mode)
                   for record in records)  # fmt: skip
    drawn = [of.tolist() for group in counts.values() for of in group]
    assert len(drawn) == 6
    assert all(drawn.count(noisy) == 1 for noisy in drawn)


def test_a_revision_is_changed_by_code_and_not_by_what_is_derived_from_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suites").mkdir()
    for name in ("code.json", "params.yaml"):
        (tmp_path / "suites" / name).write_text("1")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "a"]):
        git(tmp_path, *words)
    (tmp_path / "suites/code.json").write_text("2")
    assert "changes" not in provenance.git_revision()
    (tmp_path / "suites/params.yaml").write_text("2")
    assert provenance.git_revision().endswith("+changes")


@pytest.mark.usefixtures("fresh")
def test_a_unit_is_named_by_its_data(monkeypatch):
    """The noise of a fit has the name of its data."""
    monkeypatch.setattr(jobs, "fingerprint", lambda *_: "code")
    params, folders = load(), []
    shutil.copytree(PROCESSED / "tiny", PROCESSED / "same")
    for data in ("tiny", "same"):
        named = params.experiments["tiny-gerai"].model_copy(update={"data": data})
        monkeypatch.setitem(params.experiments, "tiny-gerai", named)
        folders.append({unit.folder for unit in train.Training("tiny-gerai", params).plan()})
    assert folders[0].isdisjoint(folders[1])


@pytest.mark.usefixtures("fresh")
def test_data_that_failed_their_check_are_not_trained_on():
    tiny.passed("perturbed", "tiny", success=False)
    with pytest.raises(DataError, match="failed their check"):
        train.main("tiny-gerai")
    assert not RUNS.exists()


def test_outputs_are_values_without_a_clock(made, fresh):
    for name in NAMES:
        timings = train.main(name)
        for record in (RUNS / "tiny" / name / "train").glob("*.json"):
            assert not {"seconds", "revision", "git_revision", "started", "packages"} & keys(read_json(record)), record
        assert bool(timings["epoch_seconds"]) == (name != "tiny-counts"), "the clock is told next to them"
    assert digest(fresh / RUNS) == digest(made / RUNS)


def keys(value) -> set[str]:
    """All keys of nested JSON."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (set(value) if isinstance(value, dict) else set()).union(*map(keys, inner))
