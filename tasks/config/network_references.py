"""What no type says about networks in params.yaml and the suites' files; `references` has all else."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tasks.config.fields import AnyNetworks, PerturbedFeatures
from tasks.config.messages import Problem
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


def makes_networks(protocol: str) -> bool:
    """Whether a protocol makes networks of users: its paper's folder says `NETWORKS`, so the protocol is not loaded."""
    return bool(getattr(import_module(PROTOCOLS[protocol].rpartition(".")[0]), "NETWORKS", False))


def network_problems(suite: Suite, params: Params) -> Iterator[Problem]:
    """What is wrong with embeddings and alignments in the file of a suite."""
    for section, entries in (("embeddings", suite.embeddings), ("aligned", suite.aligned)):
        for name, entry in entries.items():
            where = f"{section}.{name}"
            if not TASKS[suite.task].networks:
                yield Problem(where, f"{section} are for suites whose task is embedding")
            for other in params.suites.values():
                if other is not suite and name in getattr(other, section):
                    yield Problem(where, "another suite has an entry of this name")
            yield from _data_problems(where, entry.data, params)
    for name, embedding in suite.embeddings.items():
        where = f"embeddings.{name}"
        yield from read_problems(where, "networks", embedding.networks, embedding.data, embedding.seeds, params)
    for name, pair in suite.aligned.items():
        where = f"aligned.{name}"
        if pair.embeddings is None:
            yield from read_problems(where, "of", pair.of, pair.data, pair.seeds, params)
            continue
        yield from unknown_name(f"{where}.of", pair.embeddings, suite.embeddings, "embeddings of this suite")
        if pair.embeddings in suite.embeddings:
            embedding_name = suite.embeddings[pair.embeddings]
            if embedding_name.data != pair.data:
                yield Problem(f"{where}.of", f"{pair.embeddings!r} embeds {embedding_name.data!r}, not {pair.data!r}")
            yield from missing_seed(where, pair.seeds, embedding_name.seeds, f"embeddings.{pair.embeddings}")


def experiment_problems(where: str, experiment: Experiment, task: str, params: Params) -> Iterator[Problem]:
    """What is wrong with where an experiment reads networks."""
    layer, name = experiment.features.split("/")
    if not TASKS[task].networks:
        if layer in LAYERS:
            yield Problem(f"{where}.features", f"{layer} are for suites whose task is embedding")
        if any(key in config for config in experiment.settings().values() for key in BUDGETS[1:]):
            yield Problem(f"{where}.sweep", "edges_epsilon and text_epsilon are for suites whose task is embedding")
        return
    yield from _data_problems(where, experiment.data, params)
    if layer == "words":
        yield Problem(f"{where}.features", "word vectors are the features of a table of users, not networks")
        return
    problems = [*read_problems(where, "features", experiment.features, experiment.data, experiment.seeds, params)]
    yield from problems
    networks = experiment.features
    if layer in LAYERS and not problems:
        name = params.aligned[name].embeddings or "" if layer == "aligned" else name
        if name not in params.embeddings:
            yield Problem(
                f"{where}.features", f"aligned.{experiment.features.split('/')[1]} has no embeddings to start from"
            )
            return
        networks = params.embeddings[name].networks
    if layer == "embeddings" and not problems:
        if experiment.model != params.embeddings[name].model:
            yield Problem(f"{where}.model", f"embeddings.{name} is learned by {params.embeddings[name].model!r}")
        if experiment.config:
            yield Problem(f"{where}.config", f"must be empty; embeddings.{name} says how they are learned")
    read, _, release = networks.partition("/")
    if problems or (read != "processed" and not isinstance(params.perturbed.get(release), AnyNetworks)):
        return  # what is wrong then is said elsewhere
    available = params.networks_settings(networks)
    for setting, config in experiment.settings().items():
        of_model = layer == "processed" and not set(config) & set(BUDGETS)
        if setting not in available and not of_model:
            yield Problem(f"{where}.sweep", f"{networks!r} has no setting {setting!r}; known: {', '.join(available)}")


def read_problems(
    where: str, key: str, read: str, data: str, seeds: Iterable[int], params: Params, *, networks: bool = True
) -> Iterator[Problem]:
    """What is wrong with a layer that is read, LAYER/NAME: it is not there, or of other data, kinds or seeds.

    networks: whether networks are read, rather than the features of a table of users.
    """
    layer, name = read.split("/")
    if layer == "processed":
        if name != data:
            yield Problem(f"{where}.{key}", f"{name!r} is not the data {data!r}")
        return
    kind, verb = READ[layer]
    table: dict[str, Any] = getattr(params, layer)
    yield from unknown_name(f"{where}.{key}", name, table, kind)
    if name not in table:
        return
    entry = table[name]
    if entry.data != data:
        yield Problem(f"{where}.{key}", f"{name!r} {verb} {entry.data!r}, not {data!r}")
    elif layer == "perturbed" and isinstance(entry, PerturbedFeatures) == networks:
        contents = ("the features of a table of users", "networks")
        yield Problem(f"{where}.{key}", f"{name!r} has {contents[not networks]}, not {contents[networks]}")
    elif layer != "words":
        yield from missing_seed(where, seeds, entry.seeds, f"{layer}.{name}")


def _data_problems(where: str, data: str, params: Params) -> Iterator[Problem]:
    yield from unknown_name(f"{where}.data", data, params.processed, "processed data set")
    if data in params.processed and not makes_networks(protocol := params.processed[data].protocol):
        yield Problem(f"{where}.data", f"the protocol of {data!r} is {protocol!r}, which has no networks")


def missing_seed(where: str, seeds: Iterable[int], available: Iterable[int], owner: str) -> Iterator[Problem]:
    """The problem of a seed that what is read was not made with."""
    if missing := set(seeds) - set(available):
        yield Problem(f"{where}.seeds", f"{min(missing)} is not among the seeds of {owner}")


def unknown_name(where: str, name: str, table: Collection[str], kind: str) -> Iterator[Problem]:
    """The problem of a name that a table does not have."""
    if name not in table:
        yield Problem(where, f"unknown {kind} {name!r}; known: {', '.join(sorted(table))}")
