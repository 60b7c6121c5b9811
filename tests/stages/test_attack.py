"""The attack stage: what it writes, what it refuses, and that an interruption changes nothing."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tasks.attacks import attribute
from tasks.config.params import load
from tasks.core import contracts
from tasks.core.errors import ConfigurationError, DataError
from tasks.evaluation.gains import GAINS
from tasks.pipeline.common import PROCESSED, RUNS, read_json
from tasks.stages import attack, targets
from tasks.stages.checks import attacks as checks
from tests.stages import tiny

COLOURS = ["red", "green", "blue"]
OUT = RUNS / "tiny" / "tiny-counts" / "attack"
NAMES = ("tiny-counts", "tiny-features")


def build(root: Path) -> None:
    """Ratings that say nothing of a user's colour, and lists that say it all: red users get item 0 first, and so on."""
    changes = {
        "kind": "attribute",
        "k": [1, 2],
        "attackers": ["naive_bayes", "knn", "default_knn"],
        "lengths": {"default_knn": [1]},
        "sweep": {"k": [1], "attackers": ["knn"]},
        "control_k": [1],
        "target_share": 0.2,
        "split_seed": 5,
    }
    tiny.build(root, attack=changes)
    write_runs()
    targets.main("tiny")


def make() -> None:
    build(Path())
    for name in NAMES:
        attack.main(name)


def write_runs() -> None:
    rng = np.random.default_rng(3)
    users = np.repeat(np.arange(tiny.N_USERS, dtype=np.int32), 3)
    items = np.concatenate([3 + rng.choice(5, 3, replace=False) for _ in range(tiny.N_USERS)]).astype(np.int32)
    folder = PROCESSED / "tiny"
    rows = tiny.interactions(users, items, np.tile(["train", "valid", "test"], tiny.N_USERS))
    contracts.write(rows, folder / "interactions.parquet", contracts.INTERACTIONS)
    people = contracts.read(folder / "users.parquet", contracts.users_schema(tiny.FEATURES))
    telling = np.array([COLOURS.index(colour) for colour in people["colour"]])
    for seed in (0, 1):
        release("tiny-counts", "base", seed, np.stack([telling, np.full(tiny.N_USERS, 9)], axis=1))
        for setting in ("base", "features_epsilon=7.5"):
            lists = np.stack([rng.permutation([8, 9]) for _ in range(tiny.N_USERS)])
            release("tiny-features", setting, seed, lists)
    for name in NAMES:
        tiny.passed("recommendations", name)


def release(name: str, setting: str, seed: int, items: np.ndarray) -> None:
    tiny.write_lists(items, RUNS / "tiny" / name / "released" / setting, seed)


def values(metric: str, k: int, out: Path = OUT) -> list[float]:
    table = contracts.read(out / "metrics.parquet", contracts.METRICS)
    return table.filter((pl.col("metric") == metric) & (pl.col("k") == k)).sort("setting", "seed")["value"].to_list()


@pytest.mark.usefixtures("inside")
def test_it_measures_what_the_lists_reveal_beyond_the_ratings() -> None:
    chance = values("attribute/colour/majority/f1", 0)
    assert len(chance) == 2  # once per seed
    for attacker in ("naive_bayes", "knn"):
        for k in (0, 1, 2):
            f1, advantage = (values(f"attribute/colour/{attacker}/{metric}", k) for metric in ("f1", "advantage"))
            assert np.subtract(f1, advantage) == pytest.approx(chance)
        assert values(f"attribute/colour/{attacker}/f1", 1) == [1.0, 1.0]
        assert max(values(f"attribute/colour/{attacker}/f1", 0)) < 0.6
    run = read_json(OUT / "inputs.json")
    assert run["synthetic"]
    assert run["checks"][0]["contract"] == "recommendations"
    assert run["targets"] == 60


@pytest.mark.usefixtures("inside")
def test_every_setting_is_attacked_and_named() -> None:
    out = RUNS / "tiny" / "tiny-features" / "attack"
    table = contracts.read(out / "metrics.parquet", contracts.METRICS)
    assert set(table.select("setting", "seed").unique().rows()) == {
        (setting, seed) for setting in ("base", "features_epsilon=7.5") for seed in (0, 1)
    }
    assert table.select("suite", "experiment", "dataset", "model").unique().rows() == [
        ("tiny", "tiny-features", "tiny", "gerai-nf")
    ]
    # base: 2 attackers x (f1, advantage) x k in 0, 1, 2, another x k in 0, 1, the majority guess, and 3 attackers on
    # random attributes; next to it: 1 attacker x (f1, advantage) x k in 0, 1, and the majority guess
    n_rows = 2 * (2 * 2 * 3 + 2 * 2 + 1 + 3) + 2 * (2 * 2 + 1)
    assert len(table) == len(table.unique(["setting", "seed", "metric", "k"])) == n_rows
    params = load()
    for setting in ("base", "features_epsilon=7.5"):
        expected = checks.attribute(params.suites["tiny"], params.experiments["tiny-features"], setting)
        assert set(table.filter(setting=setting).select("metric", "k").unique().rows()) == set(expected)


@pytest.mark.usefixtures("fresh")
def test_equal_releases_and_the_ratings_alone_are_attacked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, real = list[Any](), attribute.attack
    monkeypatch.setattr(attribute, "attack", lambda *given: calls.append(given) or real(*given))
    attack.main("tiny-counts")
    first = 2 * (1 + 2 + 1)  # by each seed's attacker: ratings alone; k = 1, 2 of the lists; random attributes
    assert len(calls) == first
    attack.main("tiny-features")
    assert len(calls) == first + 2 * (2 + 1) + 2 * 1  # ratings alone are known
    attack.main("tiny-features")
    assert len(calls) == first + 8


@pytest.mark.usefixtures("fresh")
def test_it_refuses_what_it_cannot_attack_and_writes_nothing() -> None:
    with pytest.raises(ConfigurationError, match="experiments: there is no 'other'"):
        attack.main("other")
    release("tiny-counts", "base", 1, np.full((tiny.N_USERS, 1), 9))
    with pytest.raises(DataError, match=r"seed-1\.parquet: 300 rows for 300 users hold no lists of 2 items"):
        attack.main("tiny-counts")
    path = PROCESSED / "tiny" / "users.parquet"
    schema = contracts.users_schema(tiny.FEATURES)
    people = contracts.read(path, schema)
    contracts.write(people.with_columns(colour=pl.Series(["red"] * 7 + ["mauve"] * 293)), path, schema)
    with pytest.raises(DataError, match=r"users: column 'colour': 293 values are outside the 3 categories"):
        attack.main("tiny-counts")
    tiny.passed("recommendations", "tiny-counts", success=False)
    with pytest.raises(DataError, match="failed their check"):
        attack.main("tiny-counts")
    assert not OUT.exists()


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(
    ("sensitive", "message"), [({}, "no feature is marked sensitive"), ({"count"}, "'count' is numeric")]
)
def test_it_refuses_a_schema_without_classes_to_infer(sensitive: set[str], message: str) -> None:
    features = [feature.model_copy(update={"sensitive": feature.name in sensitive}) for feature in tiny.FEATURES]
    schema = tiny.SCHEMA.model_copy(update={"features": tuple(features)})
    tiny.write_schema(PROCESSED / "tiny", schema)
    with pytest.raises(DataError, match=message):
        attack.main("tiny-counts")


def gains(name: str = "tiny-counts") -> dict[tuple[str, str, int, str], tuple[float, float, float]]:
    table = contracts.read(RUNS / "tiny" / name / "attack" / "gains.parquet", GAINS)
    return {row[:1] + row[2:5]: row[5:] for row in table.iter_rows()}


@pytest.mark.usefixtures("inside")
def test_gains_over_every_control_tell_lists_that_reveal_from_ratings_that_do_not() -> None:
    actual = gains()
    for attacker in ("naive_bayes", "knn"):
        for control in ("majority", "ratings", "random"):
            gain, low, high = actual["base", attacker, 1, control]
            assert 0.4 < low <= gain <= high
        assert ("base", attacker, 0, "majority") not in actual  # the same for every system, from no list
        assert ("base", attacker, 2, "random") not in actual  # not among control_k
    f1 = values("attribute/colour/knn/f1", 1)
    alone, chance = values("attribute/colour/knn/f1", 0), values("attribute-random/colour/knn/f1", 1)
    assert actual["base", "knn", 1, "ratings"][0] == pytest.approx(np.mean(f1) - np.mean(alone))
    assert actual["base", "knn", 1, "random"][0] == pytest.approx(np.mean(f1) - np.mean(chance))
    actual = gains("tiny-features")
    assert not [key for key, (_, low, _) in actual.items() if key[3] == "ratings" and low > 0.1]
    assert {key[1:] for key in actual if key[0] != "base"} == {("knn", 1, "majority"), ("knn", 1, "ratings")}


@pytest.mark.usefixtures("fresh")
def test_the_luck_of_an_attacker_is_no_gain_over_the_ratings_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def coin(_: np.ndarray, labels: np.ndarray, test: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.choice(labels, len(test))

    monkeypatch.setattr(attribute, "attacker", lambda _: coin)
    attack.main("tiny-counts")
    alone = values("attribute/colour/knn/f1", 0)
    assert alone[0] != alone[1]  # a draw of its own for each seed
    over = [gain for (_, _, _, control), gain in gains().items() if control == "ratings"]
    assert over == [(0.0, 0.0, 0.0)] * 5


@pytest.mark.usefixtures("fresh")
def test_where_a_system_was_given_other_profiles_these_are_attacked_and_detected() -> None:
    people = contracts.read(PROCESSED / "tiny" / "users.parquet", contracts.users_schema(tiny.FEATURES))
    telling = np.array([COLOURS.index(colour) for colour in people["colour"]], np.int32)
    profiles = pl.DataFrame({"user": np.arange(tiny.N_USERS, dtype=np.int32), "item": telling})
    for seed in (0, 1):
        folder = RUNS / "tiny" / "tiny-features" / "released" / "base" / "profiles"
        folder.mkdir(exist_ok=True)
        contracts.write(profiles, folder / f"seed-{seed}.parquet", contracts.PROFILES)
    attack.main("tiny-features")
    out = RUNS / "tiny" / "tiny-features" / "attack"
    assert values("attribute-blurred/colour/knn/f1", 0, out) == [1.0, 1.0]  # they hold what the ratings do not
    auc, low = (values(f"blurring/detector/{name}", 0, out) for name in ("auc", "low"))
    assert min(low) > 0.9  # every profile has one of three items that no true one has
    assert min(np.subtract(auc, low)) >= 0


@pytest.mark.usefixtures("fresh")
def test_targets_are_chosen_once() -> None:
    path = targets.FOLDER / "tiny.parquet"
    before = path.read_bytes()
    targets.main("tiny")
    assert path.read_bytes() == before
    table = contracts.read(path, targets.TARGETS)
    assert table["target"].sum() == 60
    with pytest.raises(ConfigurationError, match=r"suites: there is no 'other'"):
        targets.main("other")
