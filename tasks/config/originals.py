"""Which published data set the data of a suite are or stand for, as the root's params.yaml declares it."""

from __future__ import annotations

from tasks.config.params import Data


def publication(data: str, params: Data) -> str:
    """The published data set that processed data were made from; of generated data the replica's own name."""
    return params.datasets[params.processed[data].dataset].source.replace("_", "-")


def stands_for(data: str, params: Data) -> str:
    """The published data set that processed data are a replica or a part of; empty where they are no other's."""
    dataset = params.datasets[params.processed[data].dataset]
    return dataset.replica_of or dataset.part_of or ""
