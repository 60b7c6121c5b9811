"""Stage `embed-networks`: the users of each network of a pair, embedded alone (DP-CroSUE, section 4.2).

Writes data/embeddings/<name>/: <setting>/<network>/seed-<s>.parquet (node, vector), ledger.json (setting, seed, network
and the fields of an entry: what the perturbation spent on the kinds of data that the model reads, and what it read as
it was), history.json and inputs.json. Nothing validates: every epoch is run.

A finished network and the epochs of an unfinished one are kept under data/checkpoints/, named by all that decides them,
so that a rerun goes on where it stopped.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tasks.config.networks import NetworkEmbeddings
from tasks.config.params import Params, entry, load
from tasks.models import model_class
from tasks.models.user_networks.base import UserEmbedder
from tasks.models.user_networks.word2vec import Word2VecConfig, with_word_vectors
from tasks.stages import runs
from tasks.stages.code import fingerprint
from tasks.stages.command import run_stage
from tasks.stages.common import CHECKPOINTS, atomic_write, digest, read_json, require_inputs, write_json
from tasks.stages.network_files import EMBEDDINGS, Source, embeddable_users, embedding_file, write_vectors
from tasks.stages.networks import fit, read, spent_entries
from tasks.stages.screen import Screen


@dataclass(frozen=True)
class Unit(runs.SeedUnit):
    """One network with one setting and one seed: what is embedded at a time."""

    network: str
    number: int
    """Of the network, so that two do not start from the same weights."""


def work(name: str) -> runs.Work[Unit]:
    """What embedding the networks of `name` consists of.

    Raises:
        ConfigurationError: params.yaml has no such name.
        DataError: the data did not pass their check, or have no friendships.
    """
    torch.set_num_threads(1)
    params = load()
    options = entry("embeddings", name, params.embeddings)
    checks = require_inputs(options.data, options.networks, options.suite)
    units, source = plan(name, params), Source.read(options.data, options.networks)
    return runs.Work(
        title=f"embed-networks {name}",
        units=units,
        run=lambda unit, place, screen: complete(unit, options, source, place, screen),
        assemble=lambda: assemble(name, options, units, checks),
        kept=CHECKPOINTS / "embeddings" / name,
    )


def plan(name: str, params: Params) -> list[Unit]:
    """Every setting, seed and network."""
    options = params.embeddings[name]
    source, code = Source.read(options.data, options.networks), fingerprint("embed-networks", name, params)
    decided = options.model_dump(mode="json", exclude={"seeds", "data", "networks"})
    units = []
    for setting in params.networks_settings(options.networks):
        for seed in options.seeds:
            for number, network in enumerate(embeddable_users(options.data)):
                tables = digest(source.folder(network, setting, seed))
                label, kept = f"{setting}-{network}-seed-{seed}", CHECKPOINTS / "embeddings" / name
                folder = runs.folder_of(kept, label, decided, seed, number, tables, code)
                units.append(Unit(label, folder, setting, seed, network, number))
    return units


def complete(unit: Unit, options: NetworkEmbeddings, source: Source, place: Path, screen: Screen) -> None:
    """Embed one network, and write what came out below `place`."""
    cls = model_class(options.model)
    assert issubclass(cls, UserEmbedder), "the types of params.yaml let no other model pass"
    kinds = frozenset(options.reads)
    data = read(source, unit.network, unit.setting, unit.seed, kinds)
    rng = np.random.default_rng([unit.seed, unit.number])
    if options.text is not None:
        data = with_word_vectors(data, Word2VecConfig.model_validate(options.text.model_dump()), rng)
    model = cls(cls.Config.model_validate(options.config))
    label = f"{unit.setting} {unit.network} seed {unit.seed}"
    history, seconds = fit(model, data, rng, unit.progress, screen, label)
    write_vectors(place / "users.parquet", model.embed())
    write_json(place / "history.json", history)
    write_json(place / runs.SECONDS, seconds)
    write_json(place / "ledger.json", [entry.model_dump(mode="json") for entry in model.ledger()])


def assemble(name: str, options: NetworkEmbeddings, units: list[Unit], checks: list[dict[str, Any]]) -> None:
    """Put the finished units together as the stage's output.

    What the perturbation spent is what it says now: its entries also tell of releases beside the one that was read.
    """
    cls, source = model_class(options.model), Source.read(options.data, options.networks)
    assert issubclass(cls, UserEmbedder), "the types of params.yaml let no other model pass"
    kinds = cls.reads & frozenset(options.reads)
    entries, histories = [], []
    with atomic_write(EMBEDDINGS / name) as place:
        place.mkdir()
        for unit in units:
            file = embedding_file(place, unit.setting, unit.network, unit.seed)
            file.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(unit.done / "users.parquet", file)
            about = {"setting": unit.setting, "seed": unit.seed, "network": unit.network}
            before = [
                known.model_dump(mode="json")
                for known in spent_entries(source, unit.network, unit.setting, unit.seed, kinds)
            ]
            entries += [about | entry for entry in [*before, *read_json(unit.done / "ledger.json")]]
            histories.append(about | {"epochs": read_json(unit.done / "history.json")})
        write_json(place / "ledger.json", entries)
        write_json(place / "history.json", histories)
        runs.write_inputs(place, options.data, checks)


main = runs.stage(work)

if __name__ == "__main__":
    run_stage(main, units=True)
