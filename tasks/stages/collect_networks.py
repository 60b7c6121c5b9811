"""What `collect` keeps of a suite that embeds users: its networks, and the alignments with their metrics."""

from __future__ import annotations

from typing import Any

import polars as pl

from tasks import contracts
from tasks.config.params import Params
from tasks.errors import DataError
from tasks.reporting.core.layout import join_words
from tasks.reporting.core.results import Aligned, Network
from tasks.stages.common import PROCESSED, RUNS, read_json

LAYERS = {"processed": "true attributes", "perturbed": "perturbed attributes"}
"""Layer of the attributes that an alignment sees -> how it is told."""


def collect_networks(suite: str, params: Params) -> dict[str, Any]:
    """Fields of the suite's results, and the tables of metrics of alignments."""
    networks, anchors = read_networks(params.suites[suite].data)
    aligned = read_aligned(suite, params, anchors)
    return {
        "networks": networks,
        "anchors": anchors,
        "aligned": tuple(entry for entry, _ in aligned),
        "metrics": [table for _, table in aligned],
    }


def read_networks(data: str) -> tuple[tuple[Network, ...], int]:
    """The networks of processed data that are a pair, and how many people are known to be in both.

    Raises:
        DataError: the data are no pair, or a file is not there.
    """
    names = read_json(PROCESSED / data / "schema.json")["networks"]
    if not names:
        raise DataError(f"{PROCESSED / data}/schema.json: it has no networks; a suite of embeddings needs a pair")
    anchors = read_json(PROCESSED / data / "counts.json")[-1]["links"]
    return tuple(_network(data, name) for name in names), int(anchors)


def _network(data: str, name: str) -> Network:
    schema = read_json(PROCESSED / data / name / "schema.json")
    left = read_json(PROCESSED / data / name / "counts.json")[-1]
    return Network(
        name=name,
        users=left["users"],
        posts=left["posts"],
        friendships=left["links"],
        labelled=bool(schema["labels"]),
        sensitive=tuple(feature["name"] for feature in schema["features"] if feature["sensitive"]),
        texts=next((kind for kind in ("posts", "vectors") if kind in schema["tables"]), "none"),
        attributed=bool(schema["features"]),
    )


def read_aligned(suite: str, params: Params, anchors: int) -> list[tuple[Aligned, pl.DataFrame]]:
    """Every alignment of the suite, with its metrics.

    Args:
        suite: the suite's name.
        params: of all suites.
        anchors: people who are known to be in both networks.

    Raises:
        DataError: the metrics of an entry are not there or not what their contract says.
    """
    folder = RUNS / suite / "alignments"
    return [
        (alignment(name, params, anchors), contracts.read(folder / name / "metrics.parquet", contracts.METRICS))
        for name in params.suites[suite].aligned
    ]


def alignment(name: str, params: Params, anchors: int) -> Aligned:
    """What there is to tell of an entry of `aligned`."""
    entry = params.aligned[name]
    layer = params.networks_of(entry).partition("/")[0]
    sees = [f"vectors by {params.embeddings[entry.embeddings].model}"] if entry.embeddings else []
    columns = "" if entry.matches_columns else ", unknown which is which"
    sees += [LAYERS[layer] + columns] if entry.reads_attributes else []
    return Aligned(name, join_words(sees), round(entry.test_share * anchors))
