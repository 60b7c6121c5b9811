"""Stage `train` of suites that embed users: one experiment, all its settings and seeds.

What an experiment's `features` name decides how it is done:

* `processed/<name>`, `perturbed/<name>`: the model embeds each network with friendships alone;
* `embeddings/<name>`: the embeddings of that stage are taken over as they are, since they are the same model's;
* `aligned/<name>`: the model embeds both networks together, from embeddings that were aligned and the anchors found.

Writes data/runs/<suite>/<experiment>/released/<setting>/<network>/seed-<s>.parquet (what a deployed system exposes:
embeddings) and .../train/ (metrics of predicting interests, ledger, history, inputs.json). A finished setting and seed
and the epochs of an unfinished one are kept under data/checkpoints/, as `tasks.stages.train` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks import contracts
from tasks.config.fields import model_config
from tasks.config.params import Params, entry
from tasks.evaluation.classification import interests, split_seed
from tasks.models import model_class
from tasks.models.user_networks.base import PairData
from tasks.privacy.accounting.ledger import LedgerEntry, unprotected_entry
from tasks.privacy.remarks import because
from tasks.stages import runs
from tasks.stages.command import run_stage
from tasks.stages.common import (
    CHECKPOINTS,
    OF_SUITE,
    PROCESSED,
    RUNS,
    atomic_write,
    copy,
    digest,
    read_json,
    require_inputs,
    write_json,
)
from tasks.stages.jobs import Job
from tasks.stages.network_files import (
    ALIGNED,
    EMBEDDINGS,
    Source,
    embeddable_users,
    embedding_file,
    read_vectors,
    write_vectors,
)
from tasks.stages.networks import fit, read, spent_entries
from tasks.stages.screen import Screen

Vectors = dict[str, NDArray[np.float32]]
"""Network -> (n_users, d)."""


@dataclass(frozen=True)
class Unit(runs.SeedUnit):
    """One setting with one seed: what is embedded and judged at a time."""

    config: dict[str, Any]


@dataclass
class TrainingResult:
    """What one unit came to.

    vectors: network -> (n_users, d). entries: of the ledger what the models themselves spent, each with the network
    that it is about. histories: network (or `both`) -> a record per epoch. seconds: what every epoch took.
    """

    vectors: Vectors
    entries: list[dict[str, Any]] = field(default_factory=list)
    histories: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)


class Training(Job[Unit]):
    """What embedding the users of experiment `name` consists of."""

    stage = "train"

    def __init__(self, name: str, params: Params) -> None:
        super().__init__(name, params)
        self.experiment = entry("experiments", name, params.experiments)
        self.layer, self.input = self.experiment.features.split("/")
        self.model: Any = model_class(self.experiment.model)
        self.evaluation_seed = params.suites[self.experiment.suite].evaluation.seed
        self.embeddings = (params.aligned[self.input].embeddings or "") if self.layer == "aligned" else self.input
        stored = self.layer in OF_SUITE
        networks = params.embeddings[self.embeddings].networks if stored else self.experiment.features
        self.source = Source.read(self.experiment.data, networks)
        self.title, self.kept = name, CHECKPOINTS / self.experiment.suite / name

    def checks(self) -> list[dict[str, Any]]:
        """Those of all that is read."""
        return require_inputs(self.experiment.data, self.experiment.features, self.experiment.suite)

    @cached_property
    def users(self) -> dict[str, int]:
        """Network -> its users, of those that are embedded."""
        return embeddable_users(self.experiment.data)

    def plan(self) -> Iterator[Unit]:
        """Every setting and seed."""
        for setting, config in self.experiment.settings().items():
            for seed in self.experiment.seeds:
                decides = [model_config(config), seed, digest(*self._input_files(setting, seed))]
                decides += [self.experiment.model, self.evaluation_seed, self.code]
                label = f"{setting}-seed-{seed}"
                yield Unit(label, runs.folder_of(self.kept, label, *decides), setting, seed, model_config(config))

    def _input_files(self, setting: str, seed: int) -> list[Path]:
        """All files and folders that one setting and seed is made and judged from."""
        paths = [PROCESSED / self.experiment.data]
        if self.layer == "aligned":
            paths.append(ALIGNED / self.input / setting / f"seed-{seed}")
        if self.layer != "embeddings":
            paths += [self.source.folder(network, setting, seed) for network in self.users]
        if self.layer in OF_SUITE:
            folder = EMBEDDINGS / self.embeddings
            paths += [folder / "history.json", *(embedding_file(folder, setting, name, seed) for name in self.users)]
        return paths

    def run(self, unit: Unit, folder: Path, screen: Screen) -> None:
        """Embed and judge one unit, and write its results into `folder`."""
        trained = self._embed(unit, screen)
        metrics = []
        for network, vectors in trained.vectors.items():
            write_vectors(folder / f"{network}.parquet", vectors)
            tables = contracts.read_processed(PROCESSED / self.experiment.data / network)
            if tables.schema.labels:
                labels = contracts.read(tables.folder / "labels.parquet", contracts.labels_schema(tables.schema.labels))
                metrics += interests(network, vectors, labels, seed=split_seed(self.evaluation_seed, unit.seed))
        write_json(folder / "metrics.json", metrics)
        write_json(folder / "history.json", trained.histories)
        write_json(folder / runs.SECONDS, trained.seconds)
        write_json(folder / "ledger.json", trained.entries)

    def _embed(self, unit: Unit, screen: Screen) -> TrainingResult:
        """The embeddings of one setting and seed, and what they cost."""
        if self.layer == "embeddings":
            histories = {
                history["network"]: history["epochs"]
                for history in read_json(EMBEDDINGS / self.embeddings / "history.json")
                if (history["setting"], history["seed"]) == (unit.setting, unit.seed)
            }
            return TrainingResult(self._stored(unit), histories=histories)
        if self.layer == "aligned":
            return self._embed_jointly(unit, screen)
        trained = TrainingResult({})
        for number, network in enumerate(self.users):
            model = self.model(self.model.Config.model_validate(unit.config))
            data = read(self.source, network, unit.setting, unit.seed)
            label = f"{unit.setting} {network} seed {unit.seed}"
            rng, progress = np.random.default_rng([unit.seed, number]), unit.progress / network
            trained.histories[network], seconds = fit(model, data, rng, progress, screen, label)
            trained.seconds += seconds
            trained.vectors[network] = model.embed()
            trained.entries += records(model.ledger(), network)
        return trained

    def _stored(self, unit: Unit) -> Vectors:
        """The vectors of the stage `embed-networks`."""
        folder = EMBEDDINGS / self.embeddings
        return {
            network: read_vectors(embedding_file(folder, unit.setting, network, unit.seed), n_users)
            for network, n_users in self.users.items()
        }

    def _embed_jointly(self, unit: Unit, screen: Screen) -> TrainingResult:
        """Both networks embedded together, from the vectors of each and the anchors that were found."""
        start, (first, second) = self._stored(unit), self.users
        path = ALIGNED / self.input / unit.setting / f"seed-{unit.seed}" / "anchors.parquet"
        anchors = contracts.read(path, contracts.ANCHORS).select("source", "target").to_numpy()
        networks = tuple(read(self.source, network, unit.setting, unit.seed) for network in (first, second))
        pair = PairData((networks[0], networks[1]), anchors, (start[first], start[second]))
        model = self.model(self.model.Config.model_validate(unit.config))
        rng = np.random.default_rng([unit.seed, *b"pair"])  # apart from those of the networks alone
        label = f"{unit.setting} seed {unit.seed}"
        epochs, seconds = fit(model, pair, rng, unit.progress, screen, label)
        vectors = dict(zip((first, second), model.embed(), strict=True))
        return TrainingResult(vectors, histories={"both": epochs}, seconds=seconds)

    def assemble(self, units: list[Unit], checks: list[dict[str, Any]]) -> None:
        """Put the finished units together as the stage's two outputs."""
        out = RUNS / self.experiment.suite / self.name
        with atomic_write(out / "released") as folder:
            for unit in units:
                for network in self.users:
                    copy(unit.done / f"{network}.parquet", embedding_file(folder, unit.setting, network, unit.seed))
        entries, history = list[dict[str, Any]](), dict[str, dict[str, Any]]()
        with atomic_write(out / "train") as folder:
            folder.mkdir()
            for unit in units:
                key = {"setting": unit.setting, "seed": unit.seed}
                of_unit = [*self._inherited_entries(unit), *read_json(unit.done / "ledger.json")]
                entries += [key | entry for entry in of_unit]
                histories = read_json(unit.done / "history.json").items()
                epochs = [{"network": network} | epoch for network, epochs in histories for epoch in epochs]
                history.setdefault(unit.setting, {})[str(unit.seed)] = epochs
            rows, about = runs.read_records(units, "metrics.json"), self.experiment
            runs.write_metrics(rows, folder, about.suite, self.name, about.data, about.system)
            write_json(folder / "ledger.json", entries)
            write_json(folder / "history.json", history)
            runs.write_inputs(folder, self.experiment.data, checks)

    def _inherited_entries(self, unit: Unit) -> list[dict[str, Any]]:
        """What was spent on what a unit reads: by a perturbation, on networks embedded before, on anchors.

        Of finished units, too, it is what those stages say now: their entries also tell of releases next to this one.
        """
        key = {"setting": unit.setting, "seed": unit.seed}
        if self.layer not in OF_SUITE:
            return [
                record
                for network in self.users
                for record in records(
                    spent_entries(self.source, network, unit.setting, unit.seed, self.model.reads), network
                )
            ]
        entries = []
        for record in read_json(EMBEDDINGS / self.embeddings / "ledger.json"):
            if {name: record.pop(name) for name in key} == key:
                network = record.pop("network")
                entries += records([LedgerEntry.model_validate(record)], network)
        if self.layer == "aligned" and self.params.aligned[self.input].anchors == "truth":
            # found anchors follow from embeddings or attributes alone, and cost nothing beyond what those did
            entries += records([unprotected_entry("anchor", because("true-anchors"))], "")
        return entries


def records(entries: Iterable[LedgerEntry], network: str) -> list[dict[str, Any]]:
    """Entries as they are written, with the network that they are about (empty: the pair)."""
    return [{"network": network} | entry.model_dump(mode="json") for entry in entries]


work, main = Training.work, Training.main

if __name__ == "__main__":
    run_stage(main, units=True)
