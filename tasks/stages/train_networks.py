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

import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tasks import contracts
from tasks.config.fields import model_config
from tasks.config.params import Experiment, Params, entry, load
from tasks.config.tasks import TASKS
from tasks.errors import ConfigurationError
from tasks.evaluation.classification import interests, split_seed
from tasks.models import model_class
from tasks.models.user_networks.base import PairData, PairEmbedder, UserEmbedder
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.stages import runs
from tasks.stages.code import fingerprint
from tasks.stages.command import run_stage
from tasks.stages.common import (
    CHECKPOINTS,
    OF_SUITE,
    PROCESSED,
    RUNS,
    atomic_write,
    digest,
    read_json,
    require_inputs,
    write_json,
)
from tasks.stages.network_files import (
    ALIGNED,
    EMBEDDINGS,
    Source,
    embeddable_users,
    embedding_file,
    read_vectors,
    write_vectors,
)
from tasks.stages.networks import anchors_entry, fit, read, spent_entries
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

    entries: of the ledger what the models themselves spent, each with the network that it is about.
    histories: network (or `both`) -> a record per epoch. seconds: what every epoch took, of all networks in turn.
    """

    vectors: Vectors = field(default_factory=dict)
    entries: list[dict[str, Any]] = field(default_factory=list)
    histories: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)


def work(name: str) -> runs.Work[Unit]:
    """What embedding the users of experiment `name` consists of."""
    torch.set_num_threads(1)
    params = load()
    experiment = entry("experiments", name, params.experiments)
    if not TASKS[params.suites[experiment.suite].task].networks:
        raise ConfigurationError(
            f"suites/{experiment.suite}/params.yaml: task: is not embedding; its stage is tasks.stages.train"
        )
    layer = experiment.features.partition("/")[0]
    if not issubclass(model_class(experiment.model), PairEmbedder if layer == "aligned" else UserEmbedder):
        raise ConfigurationError(f"experiments.{name}.model: {experiment.model!r} embeds no users of {layer}/ data")
    checks = require_inputs(experiment.data, experiment.features, experiment.suite)
    units = plan(name, params)
    return runs.Work(
        title=name,
        units=units,
        run=lambda unit, place, screen: complete(unit, experiment, params, place, screen),
        assemble=lambda: assemble(name, experiment, params, units, checks),
        fits=len(embeddable_users(experiment.data)) if layer in ("processed", "perturbed") else 1,
        kept=CHECKPOINTS / experiment.suite / name,
    )


def plan(name: str, params: Params) -> list[Unit]:
    """Every setting and seed of experiment `name`."""
    experiment = params.experiments[name]
    code = fingerprint("train", name, params)
    units = []
    for setting, config in experiment.settings().items():
        own = model_config(config)
        for seed in experiment.seeds:
            inputs = digest(*input_files(experiment, params, setting, seed))
            evaluation_seed = params.suites[experiment.suite].evaluation.seed
            label, kept = f"{setting}-seed-{seed}", CHECKPOINTS / experiment.suite / name
            folder = runs.folder_of(kept, label, own, seed, inputs, experiment.model, evaluation_seed, code)
            units.append(Unit(label, folder, setting, seed, own))
    return units


def input_files(experiment: Experiment, params: Params, setting: str, seed: int) -> list[Path]:
    """All files and folders that one setting and seed is made and judged from."""
    networks = embeddable_users(experiment.data)
    layer, name = experiment.features.split("/")
    paths = [PROCESSED / experiment.data]
    if layer == "aligned":
        paths.append(ALIGNED / name / setting / f"seed-{seed}")
        layer, name = "embeddings", _embeddings_of(name, params)
        alone = params.embeddings[name].networks
        paths += [Source.read(experiment.data, alone).folder(network, setting, seed) for network in networks]
    if layer == "embeddings":
        paths.append(EMBEDDINGS / name / "history.json")
        return paths + [embedding_file(EMBEDDINGS / name, setting, network, seed) for network in networks]
    source = Source.read(experiment.data, experiment.features)
    return paths + [source.folder(network, setting, seed) for network in networks]


def complete(unit: Unit, experiment: Experiment, params: Params, place: Path, screen: Screen) -> None:
    """Embed and judge one unit, and write its results below `place`."""
    trained = embed_alone(unit, experiment, params, screen)
    metrics = []
    for network, vectors in trained.vectors.items():
        write_vectors(place / f"{network}.parquet", vectors)
        tables = contracts.read_processed(PROCESSED / experiment.data / network)
        if tables.schema.labels:
            labels = contracts.read(tables.folder / "labels.parquet", contracts.labels_schema(tables.schema.labels))
            seed = split_seed(params.suites[experiment.suite].evaluation.seed, unit.seed)
            metrics += interests(network, vectors, labels, seed=seed)
    write_json(place / "metrics.json", metrics)
    write_json(place / "history.json", trained.histories)
    write_json(place / runs.SECONDS, trained.seconds)
    write_json(place / "ledger.json", trained.entries)


def embed_alone(unit: Unit, experiment: Experiment, params: Params, screen: Screen) -> TrainingResult:
    """The embeddings of one setting and seed, and what they cost."""
    layer, name = experiment.features.split("/")
    if layer == "embeddings":
        screen.skip()
        return TrainingResult(taken_over(name, experiment.data, unit), histories=learnt_before(name, unit))
    if layer == "aligned":
        return embed_jointly(unit, experiment, params, screen)
    cls = model_class(experiment.model)
    assert issubclass(cls, UserEmbedder), "main lets no other model pass"
    source, trained = Source.read(experiment.data, experiment.features), TrainingResult()
    for number, network in enumerate(embeddable_users(experiment.data)):
        model = cls(cls.Config.model_validate(unit.config))
        data = read(source, network, unit.setting, unit.seed)
        label = f"{unit.setting} {network} seed {unit.seed}"
        rng, progress = np.random.default_rng([unit.seed, number]), unit.progress / network
        trained.histories[network], seconds = fit(model, data, rng, progress, screen, label)
        trained.seconds += seconds
        trained.vectors[network] = model.embed()
        trained.entries += records(model.ledger(), network)
    return trained


def taken_over(name: str, data: str, unit: Unit) -> Vectors:
    """What the stage `embed-networks` learnt."""
    return {
        network: read_vectors(embedding_file(EMBEDDINGS / name, unit.setting, network, unit.seed), n_users)
        for network, n_users in embeddable_users(data).items()
    }


def learnt_before(name: str, unit: Unit) -> dict[str, list[dict[str, Any]]]:
    """How it was learnt: network -> a record per epoch."""
    return {
        history["network"]: history["epochs"]
        for history in read_json(EMBEDDINGS / name / "history.json")
        if (history["setting"], history["seed"]) == (unit.setting, unit.seed)
    }


def embed_jointly(unit: Unit, experiment: Experiment, params: Params, screen: Screen) -> TrainingResult:
    """Both networks embedded together, from what was learnt of each and the anchors that were found."""
    cls = model_class(experiment.model)
    assert issubclass(cls, PairEmbedder), "main lets no other model pass"
    aligned = experiment.features.split("/")[1]
    alone = _embeddings_of(aligned, params)
    start, trained = taken_over(alone, experiment.data, unit), TrainingResult()
    source = Source.read(experiment.data, params.embeddings[alone].networks)
    first, second = embeddable_users(experiment.data)
    path = ALIGNED / aligned / unit.setting / f"seed-{unit.seed}" / "anchors.parquet"
    anchors = contracts.read(path, contracts.ANCHORS).select("source", "target").to_numpy()
    first_network, second_network = (read(source, network, unit.setting, unit.seed) for network in (first, second))
    pair = PairData((first_network, second_network), anchors, (start[first], start[second]))
    model = cls(cls.Config.model_validate(unit.config))
    label = f"{unit.setting} seed {unit.seed}"
    rng = np.random.default_rng([unit.seed, *b"pair"])  # apart from those of the networks alone
    trained.histories["both"], trained.seconds = fit(model, pair, rng, unit.progress, screen, label)
    trained.vectors = dict(zip((first, second), model.embed(), strict=True))
    return trained


def inherited_entries(unit: Unit, experiment: Experiment, params: Params) -> list[dict[str, Any]]:
    """What was spent on what a unit reads: by a perturbation, on networks that were embedded before, on anchors.

    Of finished units, too, it is what those stages say now: their entries also tell of releases beside the one that was
    read.
    """
    layer, name = experiment.features.split("/")
    if layer not in OF_SUITE:
        source, cls = Source.read(experiment.data, experiment.features), model_class(experiment.model)
        assert issubclass(cls, UserEmbedder), "main lets no other model pass"
        return [
            record
            for network in embeddable_users(experiment.data)
            for record in records(spent_entries(source, network, unit.setting, unit.seed, cls.reads), network)
        ]
    known = anchors_entry(params.aligned[name]) if layer == "aligned" else None
    entries, of = [], {"setting": unit.setting, "seed": unit.seed}
    for record in read_json(
        EMBEDDINGS / (_embeddings_of(name, params) if layer == "aligned" else name) / "ledger.json"
    ):
        if {key: record.pop(key) for key in of} == of:
            network = record.pop("network")
            entries += records([LedgerEntry.model_validate(record)], network)
    return entries + records([known] if known else [], "")


def records(entries: Iterable[LedgerEntry], network: str) -> list[dict[str, Any]]:
    """Entries as they are written, with the network that they are about (empty: the pair)."""
    return [{"network": network} | entry.model_dump(mode="json") for entry in entries]


def _embeddings_of(aligned: str, params: Params) -> str:
    name = params.aligned[aligned].embeddings
    assert name is not None, "params.load lets no alignment without embeddings pass"
    return name


def assemble(
    name: str, experiment: Experiment, params: Params, units: list[Unit], checks: list[dict[str, Any]]
) -> None:
    """Put the finished units together as the stage's two outputs."""
    out = RUNS / experiment.suite / name
    networks = embeddable_users(experiment.data)
    with atomic_write(out / "released") as place:
        for unit in units:
            for network in networks:
                file = embedding_file(place, unit.setting, network, unit.seed)
                file.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(unit.done / f"{network}.parquet", file)
    entries: list[dict[str, Any]] = []
    history: dict[str, dict[str, Any]] = {}
    with atomic_write(out / "train") as place:
        place.mkdir()
        for unit in units:
            about = {"setting": unit.setting, "seed": unit.seed}
            spent_of_unit = [*inherited_entries(unit, experiment, params), *read_json(unit.done / "ledger.json")]
            entries += [about | entry for entry in spent_of_unit]
            histories = read_json(unit.done / "history.json")
            epochs = [{"network": network} | epoch for network, of in histories.items() for epoch in of]
            history.setdefault(unit.setting, {})[str(unit.seed)] = epochs
        rows = runs.read_records(units, "metrics.json")
        runs.write_metrics(rows, place, experiment.suite, name, experiment.data, experiment.system)
        write_json(place / "ledger.json", entries)
        write_json(place / "history.json", history)
        runs.write_inputs(place, experiment.data, checks)


main = runs.stage(work)

if __name__ == "__main__":
    run_stage(main, units=True)
