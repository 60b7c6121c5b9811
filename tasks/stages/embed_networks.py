"""Stage `embed-networks`: the users of each network of a pair, embedded alone (DP-CroSUE, section 4.2).

Writes data/embeddings/<name>/: <setting>/<network>/seed-<s>.parquet (node, vector), ledger.json (setting, seed, network
and the fields of an entry: what the perturbation spent on the kinds of data that the model reads, and what it read as
it was), history.json and inputs.json. Nothing validates: every epoch is run.

A finished network and the epochs of an unfinished one are kept under data/checkpoints/, named by all that decides them,
so that a rerun goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tasks.config.params import Params, entry
from tasks.models import model_class
from tasks.models.user_networks.skipgram import Word2VecConfig, with_word_vectors
from tasks.stages import runs
from tasks.stages.command import run_stage
from tasks.stages.common import CHECKPOINTS, atomic_write, copy, digest, read_json, require_inputs, write_json
from tasks.stages.jobs import Job
from tasks.stages.network_files import EMBEDDINGS, Source, embeddable_users, embedding_file, write_vectors
from tasks.stages.networks import fit, read, spent_entries
from tasks.stages.screen import Screen


@dataclass(frozen=True)
class Unit(runs.SeedUnit):
    """One network with one setting and one seed: what is embedded at a time."""

    network: str
    number: int
    """Of the network, so that two do not start from the same weights."""


class Embedding(Job[Unit]):
    """What embedding the networks of `name` consists of."""

    stage = "embed-networks"

    def __init__(self, name: str, params: Params) -> None:
        super().__init__(name, params)
        self.options = entry("embeddings", name, params.embeddings)
        self.source = Source.read(self.options.data, self.options.networks)
        self.model: Any = model_class(self.options.model)
        self.kept = CHECKPOINTS / "embeddings" / name

    def checks(self) -> list[dict[str, Any]]:
        """Those of all that is read."""
        return require_inputs(self.options.data, self.options.networks, self.options.suite)

    def plan(self) -> Iterator[Unit]:
        """Every setting, seed and network."""
        decided = self.options.model_dump(mode="json", exclude={"seeds", "data", "networks"})
        for setting in self.params.networks_settings(self.options.networks):
            for seed in self.options.seeds:
                for number, network in enumerate(embeddable_users(self.options.data)):
                    tables = digest(self.source.folder(network, setting, seed))
                    label = f"{setting}-{network}-seed-{seed}"
                    folder = runs.folder_of(self.kept, label, decided, seed, number, tables, self.code)
                    yield Unit(label, folder, setting, seed, network, number)

    def run(self, unit: Unit, folder: Path, screen: Screen) -> None:
        """Embed one network, and write the results into `folder`."""
        data = read(self.source, unit.network, unit.setting, unit.seed, frozenset(self.options.reads))
        rng = np.random.default_rng([unit.seed, unit.number])
        if self.options.text is not None:
            data = with_word_vectors(data, Word2VecConfig.model_validate(self.options.text.model_dump()), rng)
        model = self.model(self.model.Config.model_validate(self.options.config))
        label = f"{unit.setting} {unit.network} seed {unit.seed}"
        history, seconds = fit(model, data, rng, unit.progress, screen, label)
        write_vectors(folder / "users.parquet", model.embed())
        write_json(folder / "history.json", history)
        write_json(folder / runs.SECONDS, seconds)
        write_json(folder / "ledger.json", [entry.model_dump(mode="json") for entry in model.ledger()])

    def assemble(self, units: list[Unit], checks: list[dict[str, Any]]) -> None:
        """Put the finished units together as the stage's output.

        What the perturbation spent is what it says now: its entries also tell of releases next to the one that was
        read.
        """
        kinds = self.model.reads & frozenset(self.options.reads)
        entries, histories = list[dict[str, Any]](), list[dict[str, Any]]()
        with atomic_write(EMBEDDINGS / self.name) as folder:
            folder.mkdir()
            for unit in units:
                copy(unit.done / "users.parquet", embedding_file(folder, unit.setting, unit.network, unit.seed))
                before = spent_entries(self.source, unit.network, unit.setting, unit.seed, kinds)
                records = [entry.model_dump(mode="json") for entry in before] + read_json(unit.done / "ledger.json")
                about = {"setting": unit.setting, "seed": unit.seed, "network": unit.network}
                entries += [about | record for record in records]
                histories.append(about | {"epochs": read_json(unit.done / "history.json")})
            write_json(folder / "ledger.json", entries)
            write_json(folder / "history.json", histories)
            runs.write_inputs(folder, self.options.data, checks)


work, main = Embedding.work, Embedding.main

if __name__ == "__main__":
    run_stage(main, units=True)
