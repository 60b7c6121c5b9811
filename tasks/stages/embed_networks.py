"""Stage `embed-networks`: the users of each network of a pair, embedded alone (DP-CroSUE, section 4.2).

Writes data/embeddings/<name>/: <setting>/<network>/seed-<s>.parquet (node, vector), ledger.json (setting, seed, network
and the fields of an entry: what the perturbation spent on the kinds of data that the model reads, and what it read as
it was), history.json and inputs.json. Nothing validates: every epoch is run.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from typing_extensions import override

from tasks.config.networks import NetworkEmbeddings
from tasks.config.params import Params
from tasks.models import model_class
from tasks.models.user_networks.skipgram import Word2VecConfig, with_word_vectors
from tasks.pipeline.common import copy, digest, read_json, write_json
from tasks.pipeline.jobs import SeedJob
from tasks.pipeline.monitor import Monitor
from tasks.pipeline.runs import SeedUnit, write_results
from tasks.pipeline.screen import Screen
from tasks.stages.network_files import EMBEDDINGS, Source, embeddable_users, embedding_file, write_vectors
from tasks.stages.networks import read, spent


class Embedding(SeedJob[NetworkEmbeddings]):
    """A unit is a network with one setting and one seed. What a perturbation spent is what it says now."""

    stage, section = "embed-networks", "embeddings"

    def __init__(self, name: str, params: Params) -> None:
        super().__init__(name, params)
        self.reads, self.output = {self.data: self.options.networks}, EMBEDDINGS / name
        self.source = Source.read(self.data, self.options.networks)
        self.model: Any = model_class(self.options.model)

    @override
    def plan(self) -> Iterator[SeedUnit]:
        decided = self.options.model_dump(mode="json", exclude={"seeds", "data", "networks"})
        for setting in self.params.networks_settings(self.options.networks):
            for seed in self.options.seeds:
                for number, network in enumerate(embeddable_users(self.data)):
                    tables = digest(self.source.folder(network, setting, seed))
                    yield self.unit(setting, seed, number, decided, seed, number, tables, self.code, part=network)

    @override
    def run(self, unit: SeedUnit, path: Path, screen: Screen) -> None:
        data = read(self.source, unit.part, unit.setting, unit.seed, frozenset(self.options.reads))
        rng = np.random.default_rng([unit.seed, unit.inputs])  # no two networks start from the same weights
        if self.options.text is not None:
            data = with_word_vectors(data, Word2VecConfig.model_validate(self.options.text.model_dump()), rng)
        model = self.model(self.model.Config.model_validate(self.options.config))
        monitor = Monitor(unit.progress, screen, f"{unit.setting} {unit.part} seed {unit.seed}")
        model.fit(data, rng=rng, progress=monitor)
        write_vectors(path / "users.parquet", model.embed())
        ledger = [entry.model_dump(mode="json") for entry in model.ledger()]
        write_results(path, history=monitor.history, seconds=monitor.seconds, ledger=ledger)

    @override
    def inherited(self, unit: SeedUnit) -> Iterator[dict[str, object]]:
        return spent(self.source.ledger, self.model.reads & frozenset(self.options.reads), **unit.key)

    @override
    def write(self, units: list[SeedUnit], path: Path) -> dict[str, object]:
        for unit in units:
            copy(unit.done / "users.parquet", embedding_file(path, unit.setting, unit.part, unit.seed))
        write_json(path / "ledger.json", self.ledger(units))
        write_json(path / "history.json", self.history(units))
        return {}

    @override
    def history(self, units: list[SeedUnit]) -> list[dict[str, object]]:
        return [unit.key | {"epochs": read_json(unit.done / "history.json")} for unit in units]


work, main = Embedding.commands(__name__)
