"""What no type says about networks in params.yaml and the suites' files; `references` has all else."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from importlib import import_module
from typing import TYPE_CHECKING

from tasks.config.fields import AnyNetworks, PerturbedFeatures
from tasks.config.tasks import TASKS
from tasks.papers import PROTOCOLS

if TYPE_CHECKING:
    from tasks.config.params import Experiment, Params, Suite

LAYERS = ("embeddings", "aligned")
"""Where only suites whose task is embedding read from."""
READ = {
    "perturbed": ("perturbed data", "perturbs"),
    "words": ("table of word vectors", "embeds"),
    "embeddings": ("entry of embeddings", "is about"),
    "aligned": ("entry of aligned", "is about"),
}
"""Layer -> what an entry of it is called, and what it does to its data."""
BUDGETS = ("features_epsilon", "edges_epsilon", "text_epsilon")


class Wrong(Exception):
    """What is wrong with a key of a file; the key is empty where all of the file is meant."""

    def __init__(self, key: str, text: str) -> None:
        super().__init__(key, text)
        self.key, self.text = key, text


def makes_networks(protocol: str) -> bool:
    """Whether a protocol makes networks of users: its paper's folder says `NETWORKS`, so the protocol is not loaded."""
    return bool(getattr(import_module(PROTOCOLS[protocol].rpartition(".")[0]), "NETWORKS", False))


def check_networks(suite: Suite, params: Params) -> None:
    """Embeddings and alignments in the file of a suite."""
    for section, entries in (("embeddings", suite.embeddings), ("aligned", suite.aligned)):
        for name, entry in entries.items():
            where = f"{section}.{name}"
            if not TASKS[suite.task].networks:
                raise Wrong(where, f"{section} are for suites whose task is embedding")
            for other in params.suites.values():
                if other is not suite and name in getattr(other, section):
                    raise Wrong(where, "another suite has an entry of this name")
            _check_data(where, entry.data, params)
    for name, embedding in suite.embeddings.items():
        check_read(f"embeddings.{name}", "networks", embedding.networks, embedding.data, embedding.seeds, params)
    for name, pair in suite.aligned.items():
        where = f"aligned.{name}"
        if pair.embeddings is None:
            check_read(where, "of", pair.of, pair.data, pair.seeds, params)
            continue
        check_name(f"{where}.of", pair.embeddings, suite.embeddings, "embeddings of this suite")
        embedding = suite.embeddings[pair.embeddings]
        if embedding.data != pair.data:
            raise Wrong(f"{where}.of", f"{pair.embeddings!r} embeds {embedding.data!r}, not {pair.data!r}")
        check_seeds(where, pair.seeds, embedding.seeds, f"embeddings.{pair.embeddings}")


def check_layer(where: str, experiment: Experiment, task: str, params: Params) -> None:
    """Where an experiment reads networks."""
    layer, name = experiment.features.split("/")
    if not TASKS[task].networks:
        if layer in LAYERS:
            raise Wrong(f"{where}.features", f"{layer} are for suites whose task is embedding")
        if any(key in config for config in experiment.settings().values() for key in BUDGETS[1:]):
            raise Wrong(f"{where}.sweep", "edges_epsilon and text_epsilon are for suites whose task is embedding")
        return
    _check_data(where, experiment.data, params)
    if layer == "words":
        raise Wrong(f"{where}.features", "word vectors are the features of a table of users, not networks")
    check_read(where, "features", experiment.features, experiment.data, experiment.seeds, params)
    networks = experiment.features
    if layer in LAYERS:
        embedding = params.aligned[name].embeddings or "" if layer == "aligned" else name
        if embedding not in params.embeddings:
            raise Wrong(f"{where}.features", f"aligned.{name} has no embeddings to start from")
        networks = params.embeddings[embedding].networks
    if layer == "embeddings":
        if experiment.model != params.embeddings[name].model:
            raise Wrong(f"{where}.model", f"embeddings.{name} is learned by {params.embeddings[name].model!r}")
        if experiment.config:
            raise Wrong(f"{where}.config", f"must be empty; embeddings.{name} says how they are learned")
    read, release = networks.split("/")
    if read != "processed" and not isinstance(params.perturbed.get(release), AnyNetworks):
        return  # another suite's entry, which is refused with that
    available = params.networks_settings(networks)
    for setting, config in experiment.settings().items():
        of_model = layer == "processed" and not set(config) & set(BUDGETS)
        if setting not in available and not of_model:
            raise Wrong(f"{where}.sweep", f"{networks!r} has no setting {setting!r}; known: {', '.join(available)}")


def check_read(
    where: str, key: str, read: str, data: str, seeds: Iterable[int], params: Params, *, networks: bool = True
) -> None:
    """A layer that is read, LAYER/NAME: whether it is there, and of these data, kinds and seeds.

    networks: whether networks are read, rather than the features of a table of users.
    """
    layer, name = read.split("/")
    if layer == "processed":
        if name != data:
            raise Wrong(f"{where}.{key}", f"{name!r} is not the data {data!r}")
        return
    kind, verb = READ[layer]
    table = getattr(params, layer)
    check_name(f"{where}.{key}", name, table, kind)
    entry = table[name]
    if entry.data != data:
        raise Wrong(f"{where}.{key}", f"{name!r} {verb} {entry.data!r}, not {data!r}")
    if layer == "perturbed" and isinstance(entry, PerturbedFeatures) == networks:
        contents = ("the features of a table of users", "networks")
        raise Wrong(f"{where}.{key}", f"{name!r} has {contents[not networks]}, not {contents[networks]}")
    if layer != "words":
        check_seeds(where, seeds, entry.seeds, f"{layer}.{name}")


def _check_data(where: str, data: str, params: Params) -> None:
    check_name(f"{where}.data", data, params.processed, "processed data set")
    if not makes_networks(protocol := params.processed[data].protocol):
        raise Wrong(f"{where}.data", f"the protocol of {data!r} is {protocol!r}, which has no networks")


def check_seeds(where: str, seeds: Iterable[int], available: Iterable[int], owner: str) -> None:
    """That what is read was made with all seeds."""
    if missing := set(seeds) - set(available):
        raise Wrong(f"{where}.seeds", f"{min(missing)} is not among the seeds of {owner}")


def check_name(where: str, name: str, table: Collection[str], kind: str) -> None:
    """That a table has a name."""
    if name not in table:
        raise Wrong(where, f"unknown {kind} {name!r}; known: {', '.join(sorted(table))}")
