"""Stage `embed-networks`: whose vectors it writes, what they follow from, what they cost, and what is refused."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tasks.core import contracts
from tasks.core.errors import DataError
from tasks.pipeline.common import CHECKPOINTS, PERTURBED, PROCESSED, digest, read_json, write_json
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.stages import embed_networks
from tasks.stages.network_files import EMBEDDINGS, embedded_networks, embedding_file, read_vectors
from tests.stages import tiny_systems as tiny

pytestmark = pytest.mark.usefixtures("fresh")
KEYS = ("setting", "seed", "network")


def vectors(name: str, network: str = "left", seed: int = 0, setting: str = "base") -> np.ndarray:
    return read_vectors(embedding_file(EMBEDDINGS / name, setting, network, seed), tiny.SIZES[network])


def ledger(name: str) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """Entries by setting, seed and network."""
    entries: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for record in read_json(EMBEDDINGS / name / "ledger.json"):
        entries.setdefault(tuple(record.pop(key) for key in KEYS), []).append(record)
    return entries


def results(name: str) -> str:
    """All that a run writes: no clock is in it."""
    return digest(EMBEDDINGS / name)


def units(name: str) -> list[Path]:
    return sorted((CHECKPOINTS / "embeddings" / name).iterdir())


@pytest.mark.parametrize("name", ["raw", "private", "walks"])
def test_every_setting_network_and_seed_has_finite_vectors_of_its_users(name: str) -> None:
    tiny.release()
    embed_networks.main(name)
    settings = tiny.SETTINGS if name == "private" else ["base"]
    files = {file.relative_to(EMBEDDINGS / name).as_posix() for file in (EMBEDDINGS / name).rglob("*.parquet")}
    assert files == {
        f"{setting}/{net}/seed-{seed}.parquet" for setting in settings for net in tiny.SIZES for seed in (0, 1)
    }
    actual = [vectors(name, net, seed, setting) for setting in settings for net in tiny.SIZES for seed in (0, 1)]
    assert all(rows.shape[1] == tiny.WIDTH and np.isfinite(rows).all() for rows in actual)
    assert len({rows.tobytes() for rows in actual}) == len(actual), "each has noise, a network or a start of its own"
    histories = read_json(EMBEDDINGS / name / "history.json")
    assert [len(history["epochs"]) for history in histories] == [0 if name == "walks" else 2] * len(actual)
    record = read_json(EMBEDDINGS / name / "inputs.json")
    assert record["synthetic"]
    assert [check["contract"] for check in record["checks"]] == ["processed", "perturbed"][: len(settings)]


@pytest.mark.parametrize("name", ["raw", "walks"])
def test_two_networks_do_not_start_from_equal_weights(name: str) -> None:
    folder = PROCESSED / "tiny"
    shutil.rmtree(folder / "right")
    shutil.copytree(folder / "left", folder / "right")
    embed_networks.main(name)
    left, right = (read_vectors(embedding_file(EMBEDDINGS / name, "base", net, 0), 200) for net in tiny.SIZES)
    assert not np.isclose(left, right).all(axis=1).any()


@pytest.mark.parametrize(
    ("kind", "poison"),
    [
        ("feature", lambda: tiny.change("left/users", hash=1 - pl.col("hash"), gender=pl.lit("1"))),
        ("text", lambda: tiny.change("left/posts", tokens=pl.col("tokens").reverse())),
        ("text", lambda: tiny.change("right/vectors", vector=pl.col("vector").reverse())),
    ],
)
def test_what_is_not_read_changes_nothing(kind: str, poison: Callable[[], None]) -> None:
    """Next to embeddings that read it, which do change."""
    others = [name for name in ("feature", "edge", "text") if name != kind]
    blind = tiny.ALONE | {"reads": others, "text": tiny.WORDS if "text" in others else None}
    tiny.parameters(embeddings={"raw": tiny.ALONE, "blind": blind}, aligned={}, experiments={})
    for name in ("raw", "blind"):
        embed_networks.main(name)
    before, seen, made = results("blind"), results("raw"), units("blind")
    poison()
    for name in ("raw", "blind"):
        embed_networks.main(name)
    assert len(set(units("blind")) - set(made)) == 2, "the network was embedded again, with both seeds"
    assert results("blind") == before
    assert results("raw") != seen


@pytest.mark.parametrize("reads", [["feature", "edge", "text"], ["edge"], ["edge", "text"]])
def test_a_release_costs_what_was_spent_on_the_kinds_that_are_read(reads: list[str]) -> None:
    tiny.release()
    entry = tiny.EMBEDDINGS["private"] | {"reads": reads, "text": tiny.WORDS if "text" in reads else None}
    tiny.parameters(embeddings={"private": entry}, aligned={}, experiments={})
    embed_networks.main("private")
    released = [record for record in read_json(PERTURBED / "published" / "ledger.json") if record["protects"] in reads]
    assert sorted(map(str, read_json(EMBEDDINGS / "private" / "ledger.json"))) == sorted(map(str, released))
    assert set(ledger("private")) == {
        (setting, seed, net) for setting in tiny.SETTINGS for seed in (0, 1) for net in tiny.SIZES
    }


def test_a_model_costs_only_the_kinds_that_it_makes_use_of() -> None:
    """Whatever it is shown: walks go along friendships alone."""
    tiny.release()
    shown = {"networks": "perturbed/published", "reads": ["feature", "edge", "text"]}
    tiny.parameters(embeddings=tiny.without(tiny.EMBEDDINGS, "walks", **shown), aligned={}, experiments={})
    embed_networks.main("walks")
    assert {record["protects"] for of in ledger("walks").values() for record in of} == {"edge"}


def test_processed_data_cost_an_entry_without_a_budget_for_each_kind_that_is_read() -> None:
    for name in ("raw", "walks"):
        embed_networks.main(name)
    every = {"left": ["feature", "edge", "text"], "right": ["edge", "text"]}
    for (_, _, network), entries in ledger("raw").items():
        assert [entry["protects"] for entry in entries] == every[network]
        assert {LedgerEntry.model_validate(entry).accounted_epsilon for entry in entries} == {None}
    assert {tuple(record["protects"] for record in of) for of in ledger("walks").values()} == {("edge",)}
    assert len(ledger("walks")) == 4


WORDLESS = tiny.without(tiny.EMBEDDINGS, "raw", text=None)


def no_friendships() -> None:
    for network in tiny.SIZES:
        path = PROCESSED / "tiny" / network / "schema.json"
        schema = contracts.read_schema(path)
        tables = tuple(table for table in schema.tables if table != "social")
        write_json(path, schema.model_copy(update={"tables": tables}).model_dump(mode="json"))


def test_a_network_without_friendships_is_left_out_and_others_are_in_the_order_of_the_pair() -> None:
    pair = contracts.read_schema(PROCESSED / "tiny" / "schema.json")
    turned = pair.model_copy(update={"networks": ("right", "left")})
    write_json(PROCESSED / "tiny" / "schema.json", turned.model_dump(mode="json"))
    assert [*embedded_networks(contracts.read_processed(PROCESSED / "tiny"))] == ["right", "left"]
    path = PROCESSED / "tiny" / "right" / "schema.json"
    schema = contracts.read_schema(path)
    write_json(path, schema.model_copy(update={"tables": ("users", "user_ids")}).model_dump(mode="json"))
    embed_networks.main("walks")
    assert {file.parent.name for file in (EMBEDDINGS / "walks").rglob("*.parquet")} == {"left"}


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("raw", lambda: tiny.passed("processed", "tiny", success=False), "processed/tiny.json: .* failed their check"),
        ("private", lambda: tiny.passed("perturbed", "published", success=False), "published.json: .* failed their"),
        ("raw", lambda: tiny.parameters(embeddings=WORDLESS, aligned={}, experiments={}), "vectors of their words"),
        ("raw", no_friendships, "no network with friendships, so there is no one to embed"),
        ("raw", lambda: (PROCESSED / "tiny/left/posts.parquet").unlink(), "left/posts.parquet: no such table"),
        ("raw", lambda: (PROCESSED / "tiny/left/users.parquet").unlink(), "left/users.parquet: no such table"),
        ("raw", lambda: (PROCESSED / "tiny/right/social.parquet").unlink(), "right/social.parquet: no such table"),
        ("private", lambda: (tiny.released("base", 1, "left") / "features.parquet").unlink(), "base/seed-1/left/feat"),
    ],
)
def test_what_cannot_be_embedded_is_refused_in_one_line(name: str, change: Callable[[], Any], message: str) -> None:
    tiny.release()
    change()
    with pytest.raises(DataError, match=message) as refusal:
        embed_networks.main(name)
    assert "\n" not in str(refusal.value)
    assert not (EMBEDDINGS / name).exists()
