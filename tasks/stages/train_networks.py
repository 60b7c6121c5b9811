"""Stage `train` of suites that embed users: one experiment, all its settings and seeds.

What an experiment's `features` name decides how it is done:

* `processed/<name>`, `perturbed/<name>`: the model embeds each network with friendships alone;
* `embeddings/<name>`: the embeddings of that stage are taken over as they are, since they are the same model's;
* `aligned/<name>`: the model embeds both networks together, from embeddings that were aligned and the anchors found.

Writes data/runs/<suite>/<experiment>/released/<setting>/<network>/seed-<s>.parquet (what a deployed system exposes:
embeddings) and .../train/ (metrics of predicting interests, ledger, history, inputs.json).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from tasks.config.fields import model_config
from tasks.config.params import Params
from tasks.core import contracts
from tasks.evaluation.classification import interests, split_seed
from tasks.models import model_class
from tasks.models.user_networks.base import NetworkData, PairData
from tasks.pipeline.common import OF_SUITE, PROCESSED, copy, digest, read_json
from tasks.pipeline.jobs import TrainingJob
from tasks.pipeline.monitor import Monitor
from tasks.pipeline.runs import SeedUnit, write_results
from tasks.pipeline.screen import Screen
from tasks.privacy.accounting.ledger import LedgerEntry, unprotected_entry
from tasks.privacy.remarks import because
from tasks.stages.network_files import (
    ALIGNED,
    EMBEDDINGS,
    Source,
    embeddable_users,
    embedding_file,
    read_anchors,
    read_vectors,
    write_vectors,
)
from tasks.stages.networks import ALL, read, spent

Vectors = dict[str, NDArray[np.float32]]
"""Network -> (n_users, d)."""


class Training(TrainingJob):
    """A unit is one setting with one seed, embedded and judged."""

    def __init__(self, name: str, params: Params) -> None:
        super().__init__(name, params)
        self.reads = {self.data: self.options.features}
        self.layer, self.input = self.options.features.split("/")
        self.model: Any = model_class(self.options.model)
        self.evaluation_seed = self.suite.evaluation.seed
        self.embeddings = (params.aligned[self.input].embeddings or "") if self.layer == "aligned" else self.input
        self.embedded = EMBEDDINGS / self.embeddings
        stored = self.layer in OF_SUITE
        networks = params.embeddings[self.embeddings].networks if stored else self.options.features
        self.source = Source.read(self.data, networks)

    @cached_property
    def users(self) -> dict[str, int]:
        """Network -> its users, of those that are embedded."""
        return embeddable_users(self.data)

    @override
    def plan(self) -> Iterator[SeedUnit]:
        for setting, config in self.options.settings().items():
            for seed in self.options.seeds:
                chosen, files = model_config(config), digest(*self._input_files(setting, seed))
                decides = [chosen, seed, files, self.options.model, self.evaluation_seed, self.code]
                yield self.unit(setting, seed, chosen, *decides)

    def _input_files(self, setting: str, seed: int) -> list[Path]:
        """All files and folders that one setting and seed is made and judged from."""
        paths = [PROCESSED / self.data]
        if self.layer == "aligned":
            paths.append(ALIGNED / self.input / setting / f"seed-{seed}")
        if self.layer != "embeddings":
            paths += [self.source.folder(network, setting, seed) for network in self.users]
        if self.layer in OF_SUITE:
            tables = (embedding_file(self.embedded, setting, name, seed) for name in self.users)
            paths += [self.embedded / "history.json", *tables]
        return paths

    @override
    def run(self, unit: SeedUnit, path: Path, screen: Screen) -> None:
        vectors, results = self._embed(unit, screen)
        metrics = []
        for network, rows in vectors.items():
            write_vectors(path / f"{network}.parquet", rows)
            tables = contracts.read_processed(PROCESSED / self.data / network)
            if tables.schema.labels:
                labels = contracts.read(tables.folder / "labels.parquet", contracts.labels_schema(tables.schema.labels))
                metrics += interests(network, rows, labels, seed=split_seed(self.evaluation_seed, unit.seed))
        write_results(path, metrics=metrics, **results)

    def _embed(self, unit: SeedUnit, screen: Screen) -> tuple[Vectors, dict[str, object]]:
        """The embeddings of one setting and seed.

        With them: network (or `both`) -> a record per epoch, what every epoch took in seconds, and what the models
        themselves spent.
        """
        vectors, histories, seconds, ledger = Vectors(), dict[str, Any](), list[float](), list[dict[str, Any]]()
        if self.layer == "embeddings":
            vectors = self._stored(unit)
            for record in read_json(self.embedded / "history.json"):
                if unit.key.items() <= record.items():
                    histories[record["network"]] = record["epochs"]
        elif self.layer == "aligned":
            rng = np.random.default_rng([unit.seed, *b"pair"])  # apart from those of the networks alone
            model, monitor = self._fit(unit, self._pair(unit), rng, screen)
            vectors = dict(zip(self.users, model.embed(), strict=True))
            histories, seconds = {"both": monitor.history}, monitor.seconds
        else:
            for number, network in enumerate(self.users):
                data, rng = self._read(unit, network), np.random.default_rng([unit.seed, number])
                model, monitor = self._fit(unit, data, rng, screen, network)
                vectors[network], histories[network] = model.embed(), monitor.history
                seconds += monitor.seconds
                ledger += records(model.ledger(), network)
        return vectors, {"history": histories, "seconds": seconds, "ledger": ledger}

    def _fit(
        self, unit: SeedUnit, data: NetworkData | PairData, rng: np.random.Generator, screen: Screen, network: str = ""
    ) -> tuple[Any, Monitor]:
        """A model fitted to one network or to both, and what its epochs were like. Nothing validates."""
        model = self.model(self.model.Config.model_validate(unit.inputs))
        label = " ".join(filter(None, (unit.setting, network, f"seed {unit.seed}")))
        monitor = Monitor(unit.progress / network, screen, label)
        return model.fit(data, rng=rng, progress=monitor), monitor

    def _read(self, unit: SeedUnit, network: str) -> NetworkData:
        return read(self.source, network, unit.setting, unit.seed)

    def _stored(self, unit: SeedUnit) -> Vectors:
        """The vectors of the stage `embed-networks`."""
        return {
            network: read_vectors(embedding_file(self.embedded, unit.setting, network, unit.seed), n_users)
            for network, n_users in self.users.items()
        }

    def _pair(self, unit: SeedUnit) -> PairData:
        """Both networks, with the vectors of each and the anchors that were found."""
        start, (first, second) = self._stored(unit), self.users
        anchors = read_anchors(ALIGNED / self.input / unit.setting / f"seed-{unit.seed}")
        networks = self._read(unit, first), self._read(unit, second)
        return PairData(networks, anchors, (start[first], start[second]))

    @override
    def release(self, unit: SeedUnit, folder: Path) -> None:
        for network in self.users:
            copy(unit.done / f"{network}.parquet", embedding_file(folder, unit.setting, network, unit.seed))

    @override
    def history(self, units: list[SeedUnit]) -> dict[str, object]:
        return {
            setting: {
                seed: [{"network": network} | epoch for network, epochs in networks.items() for epoch in epochs]
                for seed, networks in seeds.items()
            }
            for setting, seeds in super().history(units).items()
        }

    @override
    def inherited(self, unit: SeedUnit) -> Iterator[dict[str, object]]:
        ledger, kinds = self.source.ledger, self.model.reads
        if self.layer in OF_SUITE:
            ledger, kinds = self.embedded / "ledger.json", ALL
        for network in self.users:
            yield from spent(ledger, kinds, **unit.key, network=network)
        if self.layer == "aligned" and self.params.aligned[self.input].anchors == "truth":
            # found anchors follow from embeddings or attributes alone, and cost nothing beyond what those did
            yield from records([unprotected_entry("anchor", because("true-anchors"))], "")


def records(entries: Iterable[LedgerEntry], network: str) -> list[dict[str, object]]:
    """Entries as they are written, with the network that they are about (empty: the pair)."""
    return [{"network": network} | entry.model_dump(mode="json") for entry in entries]


work, main = Training.commands(__name__)
