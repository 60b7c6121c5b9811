"""What `collect` reads: differences between systems, users, networks and counts; hashes of public data alone."""

import json
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from tasks.config.network_references import Wrong
from tasks.config.params import Params, load
from tasks.config.references import check_suite
from tasks.core import contracts
from tasks.core.errors import DataError
from tasks.evaluation.metrics import measure
from tasks.evaluation.pairs import BY_USER, by_user
from tasks.evaluation.ranking import Seen, full_values
from tasks.evaluation.run_numbers import APART
from tasks.pipeline.common import PROCESSED, RESULTS, RUNS, digest, write_json
from tasks.results.facts import System
from tasks.stages import collect, collect_parts, train
from tasks.stages.collect_parts import compare_pairs
from tests.parameters import ROOT
from tests.results.test_printed import STEPS
from tests.stages import example, test_splits, tiny
from tests.stages.tiny import passed


def test_pairs_are_the_planned_ones_and_their_means_those_of_the_metrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(example.build(tmp_path))
    collect.main("gerai")
    actual = pl.read_parquet(RESULTS / "gerai/pairs.parquet")
    assert actual.select("a", "b").unique(maintain_order=True).rows() == [
        ("gerai-gerai", "gerai-dp-popularity"), ("gerai-gerai", "gerai-gcn"), ("gerai-gerai-nf", "gerai-dp-popularity")
    ]  # fmt: skip
    base = pl.read_parquet(RESULTS / "gerai/metrics.parquet").filter(setting="base")
    level = base.group_by("experiment", "metric", "k").agg(pl.col("value").mean())
    keys = ["metric", "k"]
    joined = actual.join(level, left_on=["a", *keys], right_on=["experiment", *keys])
    joined = joined.join(level, left_on=["b", *keys], right_on=["experiment", *keys], suffix=" of b")
    assert len(joined) == len(actual) == 3 * base.filter(pl.col("metric").str.contains("full|sampled"))[keys].n_unique()
    assert (joined["value"] - joined["value of b"]).to_list() == pytest.approx(joined["mean"].to_list())
    assert set(actual["n_users"]) == {4}
    assert actual["var_users"].to_list() == pytest.approx([0.0] * len(actual))  # all users differ alike


def test_users_are_compared_over_splits_by_their_published_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other split numbers the same users from the last to the first."""
    monkeypatch.chdir(tmp_path)
    test_splits.build(tmp_path)
    ids = pl.DataFrame({"id": range(tiny.N_USERS), "original": [f"u{user}" for user in range(tiny.N_USERS)]})
    contracts.write(ids, PROCESSED / "tiny/user_ids.parquet", contracts.ID_MAP)
    contracts.write(
        ids.with_columns(pl.col("original").reverse()),
        PROCESSED / test_splits.OTHER / "user_ids.parquet",
        contracts.ID_MAP,
    )
    for name in ("tiny-counts", "tiny-gerai"):
        train.main(name)
    pairs = compare_pairs("tiny", load()).filter(metric="full/ndcg", k=5)
    assert pairs.select("a", "b", "n_users", "n_runs").rows() == [("tiny-gerai", "tiny-counts", tiny.N_USERS, 2)]
    by_user = {}
    for run in test_splits.RUNS_OF_BASE:
        gerai, counts = (
            contracts.read(RUNS / "tiny" / name / f"train/users/seed-{run}.parquet", BY_USER)
            .filter(metric="full/ndcg", k=5).sort("user")["total"].to_numpy()
            for name in ("tiny-gerai", "tiny-counts")
        )  # fmt: skip
        by_user[run] = (gerai - counts)[:: -1 if run >= APART else 1]
    values = np.array(list(by_user.values()))
    assert pairs["mean"][0] == pytest.approx(values.mean())
    assert pairs["var_users"][0] == pytest.approx(values.mean(axis=0).var(ddof=1))
    assert pairs["var_runs"][0] == pytest.approx(values.reshape(2, 2, -1).mean(axis=(1, 2)).var(ddof=1))


N_USERS, N_ITEMS, K = 40, 30, 10


@dataclass(frozen=True)
class Made:
    """Lists of two systems of the demo: one that puts every held-out item first, and one that shows item 0 first."""

    records: pl.DataFrame

    def bins(self, experiment: str, metric: str) -> list[tuple[float, float, int]]:
        return self.records.filter(experiment=experiment, metric=metric).select("low", "high", "users").rows()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    place = tmp_path_factory.mktemp("users")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        loaded = load()
        patch.chdir(place)
        users = np.arange(N_USERS)
        held = users % (N_ITEMS - 1) + 1
        splits = np.repeat(["train", "test"], N_USERS)
        interactions = tiny.interactions(np.tile(users, 2), np.concatenate([0 * users, held]), splits)
        folder = Path("data/processed/demo")
        folder.mkdir(parents=True)
        contracts.write(interactions, folder / "interactions.parquet", contracts.INTERACTIONS)
        for name, first in (("demo-ease", held), ("demo-popularity", np.zeros(N_USERS, np.int32))):
            for seed in loaded.suites["demo"].experiments[name].seeds:
                _write(name, seed, first)
        records = collect_parts.collect_distributions("demo", loaded)["spreads"]
    return Made(records)


def _write(name: str, seed: int, first: np.ndarray) -> None:
    """Lists that begin with `first`, and go on with items that no one holds out: (N_USERS, K) as a table."""
    lists = np.empty((N_USERS, K), np.int32)
    for user, item in enumerate(first):
        rest = [other for other in range(N_ITEMS) if other not in (0, item, user % (N_ITEMS - 1) + 1)]
        lists[user] = [item, *rest[: K - 1]]
    tiny.write_lists(lists, Path("data/runs/demo") / name / "released/base", seed)
    users = np.arange(N_USERS)
    tested = measure("full", *full_values(lists, Seen.from_pairs(users, users % (N_ITEMS - 1) + 1, N_USERS), [K]))
    path = Path("data/runs/demo") / name / "train/users" / f"seed-{seed}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    contracts.write(by_user(tested), path, BY_USER)


def test_users_are_counted_by_what_their_lists_are_worth(made: Made) -> None:
    assert made.bins("demo-ease", "ndcg") == [(0.95, 1.0, N_USERS)]
    assert made.bins("demo-popularity", "ndcg") == [(0.0, 0.05, N_USERS)]
    assert set(made.records["k"]) == {K}


def test_exposure_is_of_training_data(made: Made) -> None:
    # Everyone has item 0 in the training data, and no one anything else: one item of ten, or none.
    assert made.bins("demo-popularity", "exposure") == [(0.1, 0.12, N_USERS)]
    assert made.bins("demo-ease", "exposure") == [(0.0, 0.02, N_USERS)]


def test_results_have_no_hash_of_somebodys_own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would confirm any guess at the data, one user's presence among others."""
    tiny.build(tmp_path)
    monkeypatch.chdir(tmp_path)
    params = load()
    assert collect.data_fingerprints("tiny", params) == {"tiny": digest(PROCESSED / "tiny")}
    source = params.datasets["tiny"].model_copy(update={"source": "custom"})
    own = params.model_copy(update={"datasets": {"tiny": source}})
    assert collect.data_fingerprints("tiny", own) == {}


def test_a_pair_is_read_network_by_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    feature = {"name": "gender", "sensitive": True}
    known: dict[str, object] = {
        "schema.json": {"networks": ["one", "two"]},
        "counts.json": [{"step": "published", "links": 9}, {"step": "anchors-once", "links": 7}],
        "one/schema.json": {"labels": ["art"], "features": [feature], "tables": ["social", "vectors"]},
        "one/counts.json": [{"users": 5, "posts": 0, "links": 3}],
        "two/schema.json": {"labels": [], "features": [], "tables": ["users"]},
        "two/counts.json": [{"users": 4, "posts": 0, "links": 0}],
    }
    for name, content in known.items():
        file = tmp_path / "data/processed/made-up" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content), encoding="utf-8")
    suite = SimpleNamespace(data="made-up", aligned={})
    params: Any = SimpleNamespace(suites={"tiny": suite})
    collected = collect_parts.collect_networks("tiny", params)
    (first, second) = collected["networks"]
    assert collected["anchors"] == 7
    assert (first.users, first.friendships, first.labelled, first.sensitive, first.texts) == (
        5,
        3,
        True,
        ("gender",),
        "vectors",
    )
    assert (second.labelled, second.sensitive, second.texts, second.attributed) == (False, (), "none", False)
    (tmp_path / "data/processed/made-up/schema.json").write_text('{"networks": []}', encoding="utf-8")
    with pytest.raises(DataError, match="needs a pair"):
        collect_parts.collect_networks("tiny", params)


SYSTEM = dict.fromkeys(("experiment", "model", "label", "dataset"), "a") | {
    "seeds": (0,),
    "parameters": {},
    "cut_off": {},
}
SUITE, PART, ALL = "dipsgnn-ml-1m", "dipsgnn-ml-1m-part", "dipsgnn-ml-1m-no-timestamps"


@pytest.fixture
def params(monkeypatch: pytest.MonkeyPatch) -> Params:
    monkeypatch.chdir(ROOT)
    return load()


@pytest.mark.parametrize(
    ("suite", "counts", "problem"),
    [
        (SUITE, "elsewhere", "'elsewhere'"),
        (SUITE, "dpvae-ml-1m", "must be all of what"),  # by another paper's protocol
        (SUITE, "dipsgnn-ml-1m-twin", "must be all of what"),  # generated
        (SUITE, PART, "must be all of what"),
        ("dipsgnn", ALL, "must be all of what"),  # its own data are whole
        ("dpcrosue-weibo-twin", "dpcrosue-ione", "there are none in a suite whose task is embedding"),
    ],
)
def test_only_all_of_what_the_suite_has_a_part_of_is_counted(
    params: Params, suite: str, counts: str, problem: str
) -> None:
    own = params.suites[suite]
    check_suite(own, params, {})
    with pytest.raises(Wrong, match=problem) as caught:
        check_suite(own.model_copy(update={"counts": counts}), params, {})
    assert caught.value.key == "counts"


def test_what_is_counted_has_its_rows_next_to_the_suites_own_and_must_have_passed_its_check(
    params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = params.suites[SUITE]
    inputs = {("a", "train"): {"synthetic": False, "checks": []}}
    monkeypatch.setattr(collect, "read_system", lambda *_: System(**SYSTEM))
    monkeypatch.chdir(tmp_path)
    for name in (ALL, own.data):
        (PROCESSED / name).mkdir(parents=True)
        write_json(PROCESSED / name / "schema.json", {"features": [{}, {}, {}]})
        write_json(PROCESSED / name / "counts.json", [step | {"numbers": {"least": 10}} for step in STEPS])
    write_json(PROCESSED / own.data / "source.json", {"dataset": "", "address": "", "licence": "", "synthetic": False})
    passed("processed", ALL)
    facts = collect._facts(SUITE, params, inputs, {})
    assert (facts.counted, facts.n_counted_features, set(facts.fingerprints)) == ("ml-1m", 3, {ALL, own.data})
    rows = collect._counts(ALL, params, counted=True)
    assert (set(rows["dataset"]), rows["interactions"].to_list()) == ({"ml-1m"}, [row["interactions"] for row in STEPS])
    assert set(rows["numbers"]) == {'{"least": 10}'}
    passed("processed", ALL, success=False)
    with pytest.raises(DataError, match="failed their check"):
        collect._facts(SUITE, params, inputs, {})
    without = params.model_copy(update={"suites": {SUITE: own.model_copy(update={"counts": None})}})
    assert collect._facts(SUITE, without, inputs, {}).counted == ""
