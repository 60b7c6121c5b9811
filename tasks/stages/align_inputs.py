"""What an alignment reads: two networks' vectors, the attributes that both have, and the anchors, split."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tasks.config.networks import Alignment
from tasks.config.params import PARAMS_FILE, Params
from tasks.core import contracts
from tasks.core.contracts import ProcessedTables
from tasks.core.errors import ConfigurationError
from tasks.evaluation.alignment import Anchors
from tasks.pipeline.common import PERTURBED, PROCESSED, digest
from tasks.stages.network_files import EMBEDDINGS, Source, embedding_file, read_anchors, read_attributes, read_vectors

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Inputs:
    """Where the inputs of one setting and seed lie; nothing is read before it is asked for.

    data: the processed pair.
    embeddings: of each network a table; None where nothing is embedded.
    attributes: of each network the folder with its schema and its users, or their perturbed attributes; None likewise.
    """

    data: ProcessedTables
    embeddings: tuple[Path, ...] | None
    attributes: tuple[Path, ...] | None

    @property
    def sizes(self) -> tuple[int, int]:
        """How many users each network has."""
        first, second = (self.data.network(name).schema.n_users for name in self.data.schema.networks)
        return first, second

    @cached_property
    def digest(self) -> str:
        """Fingerprint of all files read here."""
        folder = self.data.folder
        files = [folder / "anchors.parquet", *(folder / name / "schema.json" for name in self.data.schema.networks)]
        files += self.embeddings or ()
        for location in self.attributes or ():
            perturbed = PERTURBED in location.parents
            files += [location / "schema.json", location / ("features.parquet" if perturbed else "users.parquet")]
        return digest(*files)

    def read_vectors(self) -> tuple[Vectors, Vectors]:
        """(n_users, d) vectors of each network: its embeddings, or where nothing is embedded its shared attributes."""
        if self.embeddings is None:
            return self.read_attributes()
        tables = zip(self.embeddings, self.sizes, strict=True)
        first, second = (read_vectors(path, n_users) for path, n_users in tables)
        return first, second

    def read_attributes(self) -> tuple[Vectors, Vectors]:
        """(n_users, n_shared) the encoded attributes that both networks have under one name."""
        assert self.attributes is not None, "params.yaml has ways that read attributes only where it has these"
        schemas = [contracts.read_schema(location / "schema.json") for location in self.attributes]
        shared = [column for column in schemas[0].columns if column in schemas[1].columns]
        if not shared:
            raise ConfigurationError(
                f"{PARAMS_FILE}: users of {self.attributes[0]} and {self.attributes[1]} have no attribute of one name; "
                "leave out the ways of `aligned` that read attributes"
            )
        first, second = (
            read_attributes(schema, location)[:, [schema.columns.index(column) for column in shared]]
            for schema, location in zip(schemas, self.attributes, strict=True)
        )
        return first, second

    def anchors(self, options: Alignment) -> Anchors:
        """Read the anchors and split them by `options.split_seed`.

        Raises:
            ConfigurationError: there are too few for the shares that are wanted.
        """
        true = read_anchors(self.data.folder).astype(np.int64)
        anchors = Anchors.split(true, options.test_share, options.split_seed)
        for share in (options.test_share, *options.anchor_shares):
            if not round(share * anchors.n_usable):
                raise ConfigurationError(
                    f"{PARAMS_FILE}: a share of {share:g} of the {anchors.n_usable} anchors of {options.data} is none; "
                    "raise test_share or anchor_shares of `aligned`"
                )
        return anchors


def locate(options: Alignment, params: Params) -> dict[tuple[str, int], Inputs]:
    """(setting, seed) -> where the inputs lie, of every one that an entry of `aligned` aligns.

    Raises:
        ConfigurationError: the data are not a pair of networks with anchors, or a network that is to be aligned by its
            embedding has no friendships.
        DataError: the processed pair is not there.
    """
    data = contracts.read_processed(PROCESSED / options.data)
    if len(data.schema.networks) != 2 or "anchors" not in data.schema.tables:
        raise ConfigurationError(f"{PARAMS_FILE}: {options.data!r} in `aligned` is not a pair of networks with anchors")
    for network in data.schema.networks if options.embeddings is not None else ():
        if "social" not in data.network(network).schema.tables:
            raise ConfigurationError(
                f"{PARAMS_FILE}: network {network!r} of {options.data} has no friendships and is not embedded; align "
                "its attributes alone"
            )
    networks = params.networks_of(options)
    source = Source.read(options.data, networks)
    inputs = {}
    for setting in params.networks_settings(networks):
        for seed in options.seeds:
            tables = folders = None
            if options.embeddings is not None:
                location = EMBEDDINGS / options.embeddings
                tables = tuple(embedding_file(location, setting, name, seed) for name in data.schema.networks)
            if options.reads_attributes:
                folders = tuple(source.folder(network, setting, seed) for network in data.schema.networks)
            inputs[setting, seed] = Inputs(data, tables, folders)
    return inputs
