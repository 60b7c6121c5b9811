"""The attack on embeddings: what it finds, that systems are compared pair by pair, and what it refuses."""

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from tasks.core import contracts
from tasks.core.contracts import Feature
from tasks.core.errors import ConfigurationError, DataError
from tasks.evaluation.alignment import Anchors
from tasks.evaluation.classification import decision_tree, logistic_regression
from tasks.pipeline.common import RUNS, read_json
from tasks.quality import metrics
from tasks.stages import attack_embeddings
from tasks.stages.attack_embeddings import classifier, guesses
from tests.stages import tiny_embeddings as tiny
from tests.stages import tiny_networks
from tests.stages.tiny_embeddings import ATTACK, EXPERIMENTS, SEEDS, processed

Key = tuple[str, int, str, int | None]
FRIENDS = {f"links/{attacker}/{kind}" for attacker in ("cosine", "dot", "hadamard") for kind in ("auc", "tpr")}
METRICS = Path("attack/metrics.parquet")
TELLING, NOISE, JOINT = EXPERIMENTS


def make() -> None:
    tiny.build(Path())
    for name in EXPERIMENTS:
        attack_embeddings.main(name)


def measured(name: str) -> dict[Key, float]:
    """(setting, seed, metric, k) -> value."""
    table = contracts.read(RUNS / "tiny" / name / METRICS, contracts.METRICS)
    assert set(table.select("suite", "experiment", "dataset", "model").iter_rows()) == {
        ("tiny", name, "tiny", EXPERIMENTS[name]["model"])
    }
    return {row[:4]: row[4] for row in table.select("setting", "seed", "metric", "k", "value").iter_rows()}


def of_run(name: str, seed: int, setting: str = "base") -> dict[str, float]:
    """Metrics without a cut-off."""
    return {
        metric: value
        for (where, run, metric, k), value in measured(name).items()
        if (where, run, k) == (setting, seed, None)
    }


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_run_has_the_metrics_that_the_check_expects_and_no_others(name: str) -> None:
    """The second network has neither attributes nor labels; accounts are matched only where one space has both."""
    schemas = {"left": tiny_networks.LEFT, "right": tiny_networks.RIGHT}
    expected = set(metrics.embedding_attack_metrics(schemas, ATTACK["k"], joint=name == JOINT))
    runs = {(setting, seed) for setting in tiny.settings(name) for seed in SEEDS}
    actual = [key for key in measured(name) if key[2] != "anchors/confident/precision"]
    assert {key[:2] for key in actual} == runs
    for run in runs:
        assert {key[2:] for key in actual if key[:2] == run} == expected
    of_right = {metric.removeprefix("right/") for metric, _ in expected if metric.startswith("right/")}
    assert of_right == FRIENDS
    assert ("anchors/precision" in {metric for metric, _ in expected}) == (name == JOINT)
    table = contracts.read(RUNS / "tiny" / name / METRICS, contracts.METRICS)
    assert table["value"].is_between(0, 1).all()


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize("seed", SEEDS)
def test_vectors_that_hold_attributes_and_friendships_give_them_away(seed: int) -> None:
    actual = of_run(TELLING, seed)
    for attribute in ("gender", "occupation"):
        for score in ("precision", "precision-swapped", "micro-f1", "precision-weighted"):
            assert actual[f"left/{attribute}/{score}"] == 1
            assert actual[f"left/{attribute}/majority/{score}"] < 0.7
    assert actual["right/links/cosine/auc"] == actual["right/links/cosine/tpr"] == 1


@pytest.mark.parametrize(("attribute", "shares"), [("gender", [0.7, 0.3]), ("occupation", [0.6, 0.3, 0.1])])
def test_random_vectors_do_not_beat_the_majority_beyond_their_error(attribute: str, shares: list[float]) -> None:
    """Twenty draws of vectors and splits: the mean gain in micro-F1 is no further above 0 than Student's t is with a
    probability of 0.1 % (random guesses are right less often than the most frequent class); what tells is far above.
    Classes of equal shares would not do: who is frequent among the taught is rare among the tested then."""
    feature = next(feature for feature in tiny_networks.FEATURES if feature.name == attribute)
    of = np.random.default_rng(1).permutation(
        np.repeat(np.arange(len(shares)), (200 * np.array(shares)).round(0).astype(int))
    )

    def gain(signal: float, seed: int) -> float:
        vectors = np.random.default_rng(seed).standard_normal((len(of), 6))
        vectors[:, 0] += signal * of
        values = {record["metric"]: record["value"] for record in guesses("left", vectors, feature, of, seed)}
        return values[f"left/{attribute}/micro-f1"] - values[f"left/{attribute}/majority/micro-f1"]

    limit = stats.t.ppf(0.999, 19)
    nothing, much = (np.array([gain(signal, seed) for seed in range(20)]) for signal in (0, 3))
    assert nothing.mean() <= limit * nothing.std(ddof=1) / np.sqrt(20)
    assert much.mean() > limit * much.std(ddof=1) / np.sqrt(20)


@pytest.mark.parametrize(
    ("categories", "unknown", "expected"),
    [
        (("a", "b"), None, logistic_regression),
        (("a", "b", "?"), "?", logistic_regression),
        (("a", "b", "c"), None, decision_tree),
        (("a", "b", "c", "?"), "?", decision_tree),
    ],
)
def test_one_of_two_classes_is_guessed_by_logistic_regression_and_one_of_several_by_a_tree(
    categories: tuple[str, ...], unknown: str | None, expected: object
) -> None:
    feature = Feature(name="x", kind="categorical", categories=categories, sensitive=True, unknown=unknown)
    assert classifier(feature) is expected


def test_an_anchor_that_a_system_was_trained_on_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It knows by heart all but the three anchors that are held out, and nothing of these."""
    monkeypatch.chdir(tmp_path)
    pair = {"suite": "tiny", "data": "tiny"}
    alone = {"networks": "processed/tiny", "model": "deepwalk", "reads": ["edge"], "text": None, "seeds": list(SEEDS)}
    known = {
        "of": "embeddings/tiny", "ways": [], "anchor_shares": [0.5], "test_share": 0.34, "split_seed": 5,
        "anchors": "truth", "config": {}, "k": [1], "seeds": list(SEEDS),
    }  # fmt: skip
    joint = {**pair, "model": "crosue", "features": "aligned/tiny-known", "seeds": list(SEEDS)}
    tiny.build(
        tmp_path, embeddings={"tiny": pair | alone}, aligned={"tiny-known": pair | known}, experiments={JOINT: joint}
    )
    anchors = Anchors.split(tiny_networks.tables()["anchors"].to_numpy(), known["test_share"], known["split_seed"])
    sources, targets = anchors.known.T
    for seed in SEEDS:
        rows = tiny.vectors(NOISE, "base", seed)
        rows["right"][targets] = rows["left"][sources]
        rows["right"][anchors.test[:, 1]] = -rows["left"][anchors.test[:, 0]]
        for network, of in rows.items():
            tiny.release(tmp_path, JOINT, "base", seed, network, of)
    tiny.passed(tmp_path, JOINT)
    attack_embeddings.main(JOINT)
    assert read_json(RUNS / "tiny" / JOINT / "attack/inputs.json")["known"]["anchors"] == len(anchors.test) == 3
    for seed in SEEDS:
        assert measured(JOINT)["base", seed, "anchors/precision", 1] == 0
        assert of_run(JOINT, seed)["anchors/confident/share"] == 0


@pytest.mark.usefixtures("inside")
def test_two_systems_are_attacked_on_the_same_users_and_pairs_and_two_runs_on_others() -> None:
    """Two of the systems released the same vectors of the first network, so only other pairs could tell them apart;
    and what needs no vectors is the same for all."""
    runs = {(name, seed): of_run(name, seed) for name in EXPERIMENTS for seed in SEEDS}
    for seed in SEEDS:
        noise, joint, telling = (runs[name, seed] for name in (NOISE, JOINT, TELLING))
        of_left = {metric: value for metric, value in noise.items() if metric.startswith("left/")}
        assert of_left.items() <= joint.items()
        without = {metric: value for metric, value in noise.items() if "/majority/" in metric}
        assert len(without) == 8
        assert without.items() <= telling.items()
    first, second = (
        {metric: value for metric, value in runs[TELLING, seed].items() if "/majority/" in metric} for seed in SEEDS
    )
    assert first != second


def test_unknown_experiments_and_suites_without_this_attack_are_refused(fresh: Path) -> None:
    with pytest.raises(ConfigurationError, match="experiments: there is no 'other'; known: tiny-joint"):
        attack_embeddings.main("other")
    shutil.rmtree(fresh / "data")
    tiny.build(fresh, attack=None)
    with pytest.raises(
        ConfigurationError,
        match=r"suites/tiny/attack\.yaml: attack: is not of kind embeddings; there are no embeddings",
    ):
        attack_embeddings.main(NOISE)
    assert not (RUNS / "tiny" / NOISE / "attack").exists()


def test_a_release_that_was_not_checked_is_refused(fresh: Path) -> None:
    rows = tiny.vectors(NOISE, "base", 0)["left"]
    tiny.release(fresh, NOISE, "base", 0, "left", 2 * rows)
    with pytest.raises(
        DataError, match=r"left/seed-0\.parquet: not the file that was checked; run `dprec scrub`, then `dvc repro"
    ):
        attack_embeddings.main(NOISE)


@pytest.mark.usefixtures("fresh")
def test_an_attribute_that_only_one_user_tells_is_refused() -> None:
    users = tiny_networks.tables()["left/users"]
    alone = users.with_columns(gender=pl.when(pl.col("user") == 3).then(pl.lit("1")).otherwise(pl.lit("unknown")))
    contracts.write(alone, processed("left/users"), contracts.users_schema(tiny_networks.FEATURES))
    with pytest.raises(DataError, match=r"left/users\.parquet: 'gender' is known of 1 users"):
        attack_embeddings.main(NOISE)
