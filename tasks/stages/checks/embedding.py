"""The task `embedding`: released vectors, networks embedded alone, and alignments."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from tasks.config.params import Experiment, Params, Suite, entry
from tasks.core import contracts
from tasks.core.contracts import Schema
from tasks.pipeline.common import PROCESSED, RUNS
from tasks.quality.metrics import Names, alignment_metrics, alignment_tables, embedding_metrics
from tasks.quality.releases import embedding_releases
from tasks.quality.rules import Table
from tasks.stages.checks.subject import Subject
from tasks.stages.network_files import ALIGNED, EMBEDDINGS, embedded_networks, embedding_file


def embeddings(key: str, params: Params) -> Subject:
    """Each network of a pair embedded alone, every setting and seed."""
    options = entry("embeddings", key, params.embeddings)
    settings = params.networks_settings(options.networks)
    return released_vectors(EMBEDDINGS / key, options.data, settings, options.seeds)


def released_vectors(folder: Path, data: str, settings: Sequence[str], seeds: Sequence[int]) -> Subject:
    """Embeddings of the networks with friendships, below `folder`; without their schema, that it is missing.

    data: the processed networks.
    """
    schema = PROCESSED / data / "schema.json"
    if not schema.is_file():
        return Subject([schema], list)
    networks = schemas(data)
    files = {
        network: {
            (setting, seed): embedding_file(folder, setting, network, seed) for setting in settings for seed in seeds
        }
        for network in networks
    }

    def tables() -> list[Table]:
        return [
            table
            for network, by_unit in files.items()
            for table in embedding_releases(
                {which: pl.scan_parquet(file) for which, file in by_unit.items()}, networks[network], f"{network}/"
            )
        ]

    return Subject([*(file for by_unit in files.values() for file in by_unit.values()), schema], tables)


def aligned_subject(key: str, params: Params) -> Subject:
    """The pairs that an alignment hands on, every setting and seed, and its metrics."""
    pair = entry("aligned", key, params.aligned)
    folder, data = ALIGNED / key, PROCESSED / pair.data
    settings = params.networks_settings(params.networks_of(pair))
    measured_file = RUNS / pair.suite / "alignments" / key / "metrics.parquet"
    files = {
        (setting, seed): folder / setting / f"seed-{seed}" / "anchors.parquet"
        for setting in settings
        for seed in pair.seeds
    }

    def tables() -> list[Table]:
        anchors = {which: contracts.read(file, contracts.ANCHORS) for which, file in files.items()}
        measured = contracts.read(measured_file, contracts.METRICS)
        expected = alignment_metrics(settings, pair.seeds, pair.all_ways, pair.k)
        networks = contracts.read_processed(data)
        first, second = (networks.network(name).schema.n_users for name in networks.schema.networks)
        return alignment_tables(anchors, measured, (first, second), expected)

    return Subject([*files.values(), measured_file, data / "schema.json"], tables)


def released(key: str, experiment: Experiment, _: Suite) -> Subject:
    """What an experiment released of every network with friendships."""
    folder = RUNS / experiment.suite / key / "released"
    return released_vectors(folder, experiment.data, list(experiment.settings()), experiment.seeds)


def metrics(suite: Suite, _: Experiment, __: str) -> Names:
    """Metrics that training measures."""
    return embedding_metrics(schemas(suite.data))


def schemas(data: str) -> dict[str, Schema]:
    """Schemas of the networks with friendships, by name."""
    pair = contracts.read_processed(PROCESSED / data)
    return {name: network.schema for name, network in embedded_networks(pair).items()}
