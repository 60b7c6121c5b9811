"""Stage `train` of suites that embed users: each way to embed, what it follows from, what it costs, what is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tasks.config.params import load
from tasks.core import contracts
from tasks.core.errors import ConfigurationError, DataError
from tasks.pipeline.common import CHECKPOINTS, PERTURBED, PROCESSED, RUNS, digest, read_json
from tasks.stages import align, collect, embed_networks, train_networks
from tasks.stages.network_files import ALIGNED, EMBEDDINGS, embedding_file, read_vectors, write_vectors
from tests.stages import tiny_systems as tiny

pytestmark = pytest.mark.usefixtures("fresh")
KINDS = ("precision", "precision-swapped", "micro-f1")
SCORES = {f"left/interests/{control}{kind}" for control in ("", "majority/", "everything/") for kind in KINDS}
PAIRS = [[3, 4], [5, 6]]


def out(name: str) -> Path:
    return RUNS / "tiny" / f"tiny-{name}"


def vectors(name: str, network: str = "left", seed: int = 0, setting: str = "base") -> np.ndarray:
    return read_vectors(embedding_file(out(name) / "released", setting, network, seed), tiny.SIZES[network])


def all_vectors(name: str, settings: list[str]) -> dict[tuple[str, str, int], np.ndarray]:
    which = [(setting, network, seed) for setting in settings for network in tiny.SIZES for seed in tiny.SEEDS]
    return {(setting, net, seed): vectors(name, net, seed, setting) for setting, net, seed in which}


def metrics(name: str) -> pl.DataFrame:
    return contracts.read(out(name) / "train" / "metrics.parquet", contracts.METRICS)


def ledger(name: str, **of: Any) -> list[dict[str, Any]]:
    records = read_json(out(name) / "train" / "ledger.json")
    return [record for record in records if all(record[key] == value for key, value in of.items())]


def sorted_records(records: list[dict[str, Any]]) -> list[str]:
    return sorted(str(sorted(record.items())) for record in records)


def joint(name: str = "raw", pairs: list[list[int]] | None = None) -> None:
    tiny.learnt(EMBEDDINGS / name, ["base"])
    tiny.anchors(name, PAIRS if pairs is None else pairs, ["base"])


def test_a_model_on_processed_data_embeds_each_network() -> None:
    train_networks.main("tiny-degree")
    for network, size in tiny.SIZES.items():
        links = contracts.read(PROCESSED / "tiny" / network / "social.parquet", contracts.SOCIAL)
        friends = {frozenset(pair) for pair in links.select("source", "target").iter_rows()}
        expected = [sum(user in pair for pair in friends) for user in range(size)]
        for seed in tiny.SEEDS:
            assert vectors("degree", network, seed)[:, 0].tolist() == expected
    assert {(entry["network"], entry["protects"], entry["accounted_epsilon"]) for entry in ledger("degree")} == {
        ("left", "edge", None),
        ("right", "edge", None),
    }
    assert read_json(out("degree") / "train" / "history.json") == {"base": {"0": [], "1": []}}


def test_a_model_on_perturbed_data_embeds_each_release_and_costs_what_it_reads_of_it() -> None:
    tiny.release()
    train_networks.main("tiny-sne")
    actual = all_vectors("sne", tiny.SETTINGS)
    assert all(rows.shape[1] == tiny.WIDTH and np.isfinite(rows).all() for rows in actual.values())
    assert len({rows.tobytes() for rows in actual.values()}) == len(actual)
    released = read_json(PERTURBED / "published" / "ledger.json")
    read = [record for record in released if record["protects"] in ("feature", "edge")]
    assert sorted_records(ledger("sne")) == sorted_records(read)
    epochs = read_json(out("sne") / "train" / "history.json")["base"]["1"]
    assert [(epoch["network"], epoch["epoch"]) for epoch in epochs] == [
        ("left", 1), ("left", 2), ("right", 1), ("right", 2)
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["sne", "dp-rgcn"])
def test_a_release_that_others_join_costs_what_it_says_then(name: str) -> None:
    """Of a finished unit, too: what it is made from stays as it is."""
    single, embeddings = experiment(name, seeds=[0], sweep=[]), tiny.without(tiny.EMBEDDINGS, "private")
    alone = {"aligned": {}, "experiments": {f"tiny-{name}": single}}
    embeddings["private"] = embeddings["private"] | {"seeds": [0]}
    fewer = tiny.PUBLISHED | {"seeds": [0], "sweep": {}}
    for release in (fewer, fewer | {"seeds": [0, 1]}):
        tiny.parameters(perturbed={"published": release}, embeddings=embeddings, **alone)
        tiny.release()
        embed_networks.main("private")
        train_networks.main(f"tiny-{name}")
    released = read_json(PERTURBED / "published" / "ledger.json")
    kinds = {"feature", "edge"} | ({"text"} if name == "dp-rgcn" else set())
    read = [record for record in released if record["seed"] == 0 and record["protects"] in kinds]
    assert sorted_records(ledger(name)) == sorted_records(read)


def test_embeddings_are_taken_over_bit_by_bit_with_what_they_cost() -> None:
    tiny.release()
    embed_networks.main("private")
    train_networks.main("tiny-dp-rgcn")
    written = [file.relative_to(EMBEDDINGS / "private") for file in (EMBEDDINGS / "private").rglob("*.parquet")]
    assert len(written) == 8
    for file in written:
        assert digest(out("dp-rgcn") / "released" / file) == digest(EMBEDDINGS / "private" / file)
    assert sorted_records(ledger("dp-rgcn")) == sorted_records(read_json(EMBEDDINGS / "private" / "ledger.json"))
    epochs = read_json(out("dp-rgcn") / "train" / "history.json")["base"]["1"]
    assert [(epoch["network"], epoch["epoch"]) for epoch in epochs] == [(n, e) for n in tiny.SIZES for e in (1, 2)]
    parameters = collect.deciding_parameters(load().experiments["tiny-dp-rgcn"], load())
    assert parameters["embeddings"]["config"]["dimension"] == 4


def experiment(name: str, **changes: Any) -> dict[str, Any]:
    return {"suite": "tiny", "data": "tiny", "seeds": tiny.SEEDS} | tiny.EXPERIMENTS[name] | changes


@pytest.mark.parametrize("name", ["degree", "rgcn", "crosue"])
def test_interests_are_predicted_where_there_are_labels_and_nowhere_else(name: str) -> None:
    joint()
    train_networks.main(f"tiny-{name}")
    actual = metrics(name)
    assert set(actual["metric"]) == SCORES
    assert len(actual) == len(SCORES) * len(tiny.SEEDS)
    assert actual["value"].is_between(0, 1).all()
    assert actual["k"].is_null().all()
    about = {"suite": "tiny", "experiment": f"tiny-{name}", "dataset": "tiny", "model": name, "setting": "base"}
    assert actual.select(*about).unique().to_dicts() == [about]


def test_both_networks_are_embedded_together_in_one_space_from_a_stream_of_their_own(monkeypatch: Any) -> None:
    joint()
    keys, rng_of = [], np.random.default_rng
    monkeypatch.setattr(np.random, "default_rng", lambda key: keys.append(key) or rng_of(key))
    train_networks.main("tiny-crosue")
    alone = {rng_of([seed, number]).random() for seed in (0, 1) for number in (0, 1)}
    assert alone.isdisjoint(rng_of(key).random() for key in keys), "a zero at the end of a key is nothing"
    actual = all_vectors("crosue", ["base"])
    assert all(rows.shape[1] == tiny.WIDTH and np.isfinite(rows).all() for rows in actual.values())
    before = read_vectors(embedding_file(EMBEDDINGS / "raw", "base", "left", 0), tiny.SIZES["left"])
    assert not np.isclose(actual["base", "left", 0], before).all(axis=1).any()
    epochs = read_json(out("crosue") / "train" / "history.json")["base"]["0"]
    assert [(epoch["network"], epoch["epoch"]) for epoch in epochs] == [("both", 1), ("both", 2)]
    params = load()
    parameters = collect.deciding_parameters(params.experiments["tiny-crosue"], params)
    assert (parameters["aligned"]["of"], parameters["embeddings"]["model"]) == ("embeddings/raw", "rgcn")


def test_a_pair_costs_what_its_networks_did_and_found_anchors_nothing() -> None:
    tiny.release()
    embed_networks.main("private")
    tiny.anchors("private", PAIRS, tiny.SETTINGS)
    train_networks.main("tiny-dp-crosue")
    assert sorted_records(ledger("dp-crosue")) == sorted_records(read_json(EMBEDDINGS / "private" / "ledger.json"))
    assert {entry["network"] for entry in ledger("dp-crosue")} == {"left", "right"}


def test_true_anchors_are_named_in_the_ledger_of_every_seed() -> None:
    embed_networks.main("raw")
    align.main("known")
    train_networks.main("tiny-crosue-known")
    entries = ledger("crosue-known", protects="anchor")
    assert [(entry["network"], entry["seed"], entry["accounted_epsilon"]) for entry in entries] == [
        ("", 0, None),
        ("", 1, None),
    ]
    alone = read_json(EMBEDDINGS / "raw" / "ledger.json")
    assert len(ledger("crosue-known")) == len(alone) + 2
    truth = contracts.read(PROCESSED / "tiny" / "anchors.parquet", contracts.ANCHORS)
    used = contracts.read(ALIGNED / "known" / "base" / "seed-0" / "anchors.parquet", contracts.ANCHORS)
    assert 0 < len(used) < len(truth), "those that judge are kept back"


def test_what_a_unit_is_made_and_judged_from_makes_it_anew() -> None:
    def trained() -> set[str]:
        train_networks.main("tiny-crosue")
        return {place.name for place in (CHECKPOINTS / "tiny" / "tiny-crosue").iterdir()}

    joint()
    before = trained()
    for change in (
        lambda: tiny.anchors("raw", PAIRS[:1], ["base"]),
        lambda: made_up_anew("raw"),
        lambda: tiny.change("right/social", source=pl.col("source").reverse()),
        lambda: tiny.change("left/labels", music=1 - pl.col("music")),
    ):
        change()
        after = trained()
        assert not before & after
        before = after


def made_up_anew(name: str) -> None:
    for seed in tiny.SEEDS:
        rows = np.random.default_rng(seed).standard_normal((tiny.SIZES["right"], tiny.WIDTH)).astype(np.float32)
        write_vectors(embedding_file(EMBEDDINGS / name, "base", "right", seed), rows)


@pytest.mark.parametrize(
    ("name", "change", "error", "message"),
    [
        ("none", lambda: None, ConfigurationError, "experiments: there is no 'tiny-none'; known: tiny-crosue"),
        ("degree", lambda: tiny.passed("processed", "tiny", success=False), DataError, "processed/tiny.json: .*"),
        ("sne", lambda: tiny.passed("perturbed", "published", success=False), DataError, "published.json: .* failed"),
        ("rgcn", lambda: tiny.passed("embeddings", "raw", success=False), DataError, "suites/tiny/dvc.yaml:check-embe"),
        ("crosue", lambda: tiny.passed("aligned", "raw", success=False), DataError, "suites/tiny/dvc.yaml:check-alig"),
        ("degree", lambda: (PROCESSED / "tiny/left/labels.parquet").unlink(), DataError, "left/labels.parquet: no"),
        ("rgcn", lambda: made_up_of(9), DataError, "right/seed-0.parquet: does not hold the 30 vectors once"),
        ("crosue", lambda: tiny.anchors("raw", [[3, 30]], ["base"]), DataError, "beyond the 200 and 30"),
        ("crosue", lambda: made_up_of(30, 3), DataError, "embeddings: shapes"),
    ],
)
def test_what_cannot_be_embedded_is_refused_in_one_line(
    name: str, change: Callable[[], Any], error: type[Exception], message: str
) -> None:
    joint()
    change()
    with pytest.raises(error, match=message) as refusal:
        train_networks.main(f"tiny-{name}")
    assert "\n" not in str(refusal.value)
    assert not out(name).exists()


def made_up_of(n: int, width: int = tiny.WIDTH) -> None:
    write_vectors(embedding_file(EMBEDDINGS / "raw", "base", "right", 0), np.zeros((n, width), np.float32))
