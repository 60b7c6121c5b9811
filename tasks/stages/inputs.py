"""What an experiment learns from and is judged on, read from the contracts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.config.params import Experiment, Params
from tasks.core import contracts
from tasks.core.contracts import Schema
from tasks.core.errors import DataError
from tasks.core.hashing import Uniforms
from tasks.core.sequences import Sequences
from tasks.core.training_data import TrainingData
from tasks.datasets.encoding import classes, encode
from tasks.evaluation.ranking import Seen
from tasks.evaluation.run_numbers import seed_of
from tasks.evaluation.splits import of_fold
from tasks.models.base import Model, NextItemRecommender
from tasks.pipeline.common import PERTURBED, PROCESSED, WORDS, digest, read_json


@dataclass(frozen=True)
class Inputs:
    """A processed data set and the layer its user features come from."""

    schema: Schema
    interactions: pl.DataFrame
    processed: Path
    features_layer: Path
    """The processed folder (true features), one of word vectors or a perturbed one."""
    sensitive_share: float | None = None
    """Share of the ratings that their users keep to themselves; None where ratings are not distinguished."""

    @cached_property
    def digest(self) -> str:
        """Fingerprint of all files read here, and of what was spent on them."""
        tables = ["interactions.parquet", "schema.json", "users.parquet", "user_ids.parquet", "item_ids.parquet"]
        if self.sensitive_share is not None:
            tables += ["folds.parquet", "social.parquet"]
        ledger = [self.features_layer.parent / "ledger.json"] if PERTURBED in self.features_layer.parents else []
        return digest(*(self.processed / table for table in tables), self.features_layer, *ledger)

    def for_seed(self, seed: int) -> Inputs:
        """What the run of `seed` learns from and is judged on.

        Where ratings are cross-validated, the fold of that number is its test and `interactions` has a column
        `sensitive` (`of_fold`); otherwise all seeds have the same.
        """
        if self.sensitive_share is None:
            return self
        folds = contracts.read(self.processed / "folds.parquet", contracts.FOLDS)
        rows = self.interactions.join(folds, on=["user", "item"], how="left", maintain_order="left")
        split = of_fold(rows["fold"].to_numpy(), seed, rows["validates"].to_numpy())
        sensitive = pl.col("sensitivity") < self.sensitive_share
        rows = rows.select(
            "user", "item", "rating", "timestamp", split=np.array(contracts.SPLITS)[split], sensitive=sensitive
        )
        return replace(self, interactions=rows)

    def pairs(self, *splits: str) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Users and items of the interactions in `splits`, sorted by user and item."""
        rows = self.interactions.filter(pl.col("split").is_in(splits)).sort("user", "item")
        return rows["user"].to_numpy(), rows["item"].to_numpy()

    def seen_items(self, *splits: str) -> Seen:
        """The items of each user in `splits`."""
        return Seen.from_pairs(*self.pairs(*splits), self.schema.n_users)

    def draws(self, seed: int) -> Uniforms:
        """What is drawn of users and items, by their published ids."""
        files = (self.processed / f"{name}_ids.parquet" for name in ("user", "item"))
        return Uniforms.of(seed, *(contracts.read(file, contracts.ID_MAP)["original"] for file in files))

    def features(self, seed: int) -> NDArray[np.float32]:
        """Encoded user features, true or as released for `seed`, or as word vectors: (n_users, n_columns)."""
        if self.features_layer == self.processed:
            return encode(self._users, self.schema.features)
        columns, file = self.schema.columns, f"seed-{seed_of(seed)}.parquet"
        if self.features_layer.parent == WORDS:
            columns, file = read_json(self.features_layer / "words.json")["columns"], "features.parquet"
        table = contracts.read(self.features_layer / file, contracts.features_schema(columns))
        return table.sort("user").select(columns).to_numpy()

    def sequences(self, split: str) -> Sequences:
        """The events of `split` in the order of the table, which for such data is that of the sequences."""
        rows = self.interactions.filter(pl.col("split") == split)
        return Sequences.from_events(rows["user"].to_numpy(), rows["item"].to_numpy())

    def histories(self) -> Sequences:
        """Training events of all users in the order of time, those of one time by item.

        Raises:
            DataError: the time of an event is not known.
        """
        rows = self.interactions.filter(pl.col("split") == "train").sort("user", "timestamp", "item")
        if rows["timestamp"].has_nulls():
            raise DataError(f"{self.processed}: no times of interactions, and a model that reads sequences needs them")
        return Sequences.from_events(rows["user"].to_numpy(), rows["item"].to_numpy())

    def training_data(self, cls: type[Model], seed: int, last: bool = True) -> TrainingData:
        """What a model of class `cls` may see.

        Args:
            seed: chooses among perturbed releases of the features.
            last: with False, the last training event of every user is left out (data with an order only).
        """
        rows = self.interactions.filter(pl.col("split") == "train")
        if not last:
            rows = rows.filter(pl.col("user") == pl.col("user").shift(-1))
        sequences = None
        if self.schema.repeats:
            sequences = Sequences.from_events(rows["user"].to_numpy(), rows["item"].to_numpy())
            rows = rows.unique(["user", "item"], keep="last", maintain_order=True)
        elif issubclass(cls, NextItemRecommender):
            sequences = self.histories()
        rows = rows.sort("user", "item")
        return TrainingData(
            self.schema.n_users,
            self.schema.n_items,
            rows["user"].to_numpy(),
            rows["item"].to_numpy(),
            features=self.features(seed) if cls.uses_features else None,
            attributes=classes(self._users, self.schema.sensitive) if cls.uses_attributes else {},
            ratings=rows["rating"].to_numpy() if cls.uses_ratings else None,
            sequences=sequences,
            sensitive=rows["sensitive"].to_numpy() if "sensitive" in rows.columns else None,
            links=self._links if cls.uses_links else None,
        )

    @property
    def _links(self) -> NDArray[np.int32]:
        social = contracts.read(self.processed / "social.parquet", contracts.SOCIAL)
        return social.select("source", "target").unique(maintain_order=True).to_numpy()

    @property
    def _users(self) -> pl.DataFrame:
        return contracts.read(self.processed / "users.parquet", contracts.users_schema(self.schema.features))


def read_inputs(experiment: Experiment, params: Params, config: dict[str, Any], split: str | None = None) -> Inputs:
    """The inputs of one setting of an experiment.

    Args:
        config: of the setting; it chooses among perturbed releases and says which ratings are sensitive.
        split: processed data that are split otherwise than the experiment's own; None: the experiment's own.

    Raises:
        DataError: they have other users, whom the features are not of.
    """
    data = split or experiment.data
    read = params.features_of(experiment, data)
    processed = PROCESSED / data
    layer, name = read.split("/")
    if data != experiment.data and read == experiment.features:
        users = [digest(folder / "users.parquet") for folder in (PROCESSED / experiment.data, processed)]
        if users[0] != users[1]:
            raise DataError(
                f"{processed}/users.parquet: {read} has features of the users of {experiment.data}, which differ; add "
                f"an entry to {layer} in params.yaml whose data are {data}"
            )
    folders = {"processed": PROCESSED, "words": WORDS, "perturbed": PERTURBED}
    features = processed if layer == "processed" else folders[layer] / name
    if layer == "perturbed":
        features /= f"epsilon={params.features_epsilon(experiment, config):g}"
    interactions = contracts.read(processed / "interactions.parquet", contracts.INTERACTIONS)
    share = config.get("sensitive_share")
    return Inputs(contracts.read_schema(processed / "schema.json"), interactions, processed, features, share)
