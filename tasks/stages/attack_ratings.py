"""Stage `attack-ratings`: what others than the users can reconstruct of one experiment's sensitive training ratings.

Reads what a deployed system leaves with others, data/runs/<suite>/<experiment>/released/, and the training ratings of
every fold, of which the attackers see the published ones and are judged on the sensitive ones. Every attacker of
`tasks.attacks.reconstruction` tries for which there is something to look at: a system without item vectors leaves the
control alone. A setting in which no training rating is sensitive has nothing to reconstruct, and one in which none is
published nothing to begin with: neither has metrics. Writes data/runs/<suite>/<experiment>/attack/.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow.parquet as pq
from typing_extensions import override

from tasks.attacks import reconstruction, submissions
from tasks.attacks.reconstruction import Floats, Published, Targets, TunedAttacker
from tasks.attacks.submissions import Measured
from tasks.config.attacks import ReconstructionAttack
from tasks.core import contracts
from tasks.core.contracts import Schema
from tasks.core.errors import DamagedError
from tasks.evaluation.rating import mae
from tasks.pipeline.common import file_digest
from tasks.stages.attacks import ExperimentAttack, Unit
from tasks.stages.inputs import read_inputs
from tasks.stages.network_files import read_vectors

if TYPE_CHECKING:
    from tasks.core.rows import Row

Run = tuple[str, int]
"""Setting and seed."""


class RatingAttack(ExperimentAttack[ReconstructionAttack, Run]):
    """Every setting and seed is a unit."""

    stage, kind = "attack-ratings", ReconstructionAttack

    @override
    def plan(self) -> Iterator[Unit[Run]]:
        for setting, config in self.experiment.settings().items():
            inputs = read_inputs(self.experiment, self.params, config).digest
            for seed in self.experiment.seeds_at(setting):
                tables = sorted((self.released / setting).rglob(f"seed-{seed}.parquet"))
                digests = {str(table): file_digest(table) for table in tables}
                decides = inputs, config["sensitive_share"], config.get("initial_spread"), digests, seed
                yield self.unit(f"{setting}-seed-{seed}", (setting, seed), *decides)

    @override
    def attack(self, target: Run, _: Path, __: Callable[[int], None]) -> Row:
        setting, seed = target
        config = self.experiment.settings()[setting]
        inputs = read_inputs(self.experiment, self.params, config).for_seed(seed)
        trained = inputs.interactions.filter(pl.col("split") == "train").sort("user", "item")
        release = Release(self.released / setting, seed)
        return attack_release(trained, inputs.schema, release, self.options.ridge, config.get("initial_spread", 0.0))

    @override
    def write(self, units: list[Unit[Run]], path: Path) -> Row:
        results = {unit: unit.result() for unit in units}
        rows = [
            dict(zip(("setting", "seed"), unit.target, strict=True))
            | {"metric": f"reconstruction/{attacker}/mae", "value": value}
            for unit, result in results.items()
            for attacker, value in result["errors"].items()
        ]
        self.write_metrics(rows, path)
        return {
            "targets": max(result["targets"] for result in results.values()),
            "known_to_friends": {unit.label: result["known_to_friends"] for unit, result in results.items()},
        }


@dataclass(frozen=True)
class Release:
    """What one setting and seed left with others: tables seed-<seed>.parquet in folders below that of the setting.

    There is none of a kind that the system does not have. What cannot be read, or is not about all items or the hidden
    ratings, is a DataError.
    """

    folder: Path
    seed: int

    def path(self, kind: str) -> Path:
        """Its table of a kind, whether there is one or not."""
        return self.folder / kind / f"seed-{self.seed}.parquet"

    def has(self, kind: str) -> bool:
        """Whether there is a table of a kind."""
        return self.path(kind).exists()

    @property
    def size(self) -> int:
        """K."""
        return int(pq.read_schema(self.path("items")).field("vector").type.list_size)

    def vectors(self, kind: str, n_items: int) -> Floats:
        """Item vectors: (n_items, K)."""
        return read_vectors(self.path(kind), n_items).astype(np.float64)

    def averages(self, kind: str) -> pl.DataFrame:
        """Averaged messages, sorted by sender and subject."""
        return contracts.read(self.path(kind), contracts.received_schema(self.size)).sort("sender", "subject")

    def about(self, kind: str, hidden: pl.DataFrame) -> pl.DataFrame:
        """`submissions`, `replayed` or `information`, in the order of the hidden ratings."""
        schemas = {"submissions": contracts.received_schema, "replayed": contracts.replayed_schema}
        schema = schemas[kind](self.size) if kind in schemas else contracts.INFORMATION
        table = contracts.read(self.path(kind), schema).sort("sender", "subject")
        fits = table.select(user="sender", item="subject").equals(hidden.select("user", "item"))
        if fits and kind == "information":
            fits = (table["row"].list.len() == hidden.select(pl.len().over("user")).to_series()).all()
        if not fits:
            raise DamagedError(
                f"{self.path(kind)}: is not about the {len(hidden)} sensitive training ratings, each once; run train "
                "again"
            )
        return table

    def information(self, hidden: pl.DataFrame) -> Measured | None:
        """What all submissions say of the hidden ratings, in their order; None where the system has no such table."""
        if not self.has("information"):
            return None
        table = self.about("information", hidden)
        counts = table.group_by("sender", maintain_order=True).len()["len"].to_numpy().astype(np.int64)
        matrices = np.split(table["row"].explode().to_numpy(), np.cumsum(counts**2)[:-1])
        squares = [matrix.reshape(size, size) for matrix, size in zip(matrices, counts, strict=True)]
        return Measured(table["guess"].to_numpy(), table["gradient"].to_numpy(), squares)


def attack_release(
    trained: pl.DataFrame, schema: Schema, release: Release, ridge: float, deviation: float
) -> dict[str, object]:
    """`errors` of every attacker that has something to look at, `targets`, and of how many of these friends know more.

    Args:
        trained: training ratings, sorted by user and item, with columns user, item, rating and sensitive.
        ridge: of the attacker of the paper.
        deviation: of coordinates of users' vectors at their common start, where the system has any (`initial_spread`).
    """
    hidden, public = trained.filter("sensitive"), trained.filter(~pl.col("sensitive"))
    if hidden.is_empty() or public.is_empty():
        return {"errors": {}, "targets": 0, "known_to_friends": 0}
    assert schema.scale is not None, "the protocol gives one with the folds"
    low, high = schema.scale.low, schema.scale.high
    ratings = public["rating"].to_numpy().astype(np.float64)
    published = Published(
        public["user"].to_numpy(), public["item"].to_numpy(), ratings, schema.n_users, schema.n_items, low, high
    )
    targets = Targets(hidden["user"].to_numpy(), hidden["item"].to_numpy())
    guesses = {"public": reconstruction.expected_ratings(published, targets)}
    friends = 0
    if release.has("items"):
        items = release.vectors("items", schema.n_items)
        literal = reconstruction.fit(published, items, ridge).vectors
        guesses["published"] = reconstruction.predict(literal, items, targets, published)
        tuned = reconstruction.tune(published, targets, items)
        guesses["tuned"] = tuned.guess(tuned.profiles.vectors)
        if release.has("submissions"):
            guesses |= listen(tuned, release, hidden, deviation)
        if release.has("friends"):
            received = release.averages("friends")
            senders = received["sender"].to_numpy()
            guesses["friend"], friends = reconstruction.from_friends(tuned, senders, *averages(received)["weighted"])
    truth = hidden["rating"].to_numpy()
    errors = {attacker: mae(truth, guess, low, high) for attacker, guess in guesses.items()}
    return {"errors": errors, "targets": len(truth), "known_to_friends": friends}


def listen(tuned: TunedAttacker, release: Release, hidden: pl.DataFrame, deviation: float) -> dict[str, Floats]:
    """What attackers guess who get submissions about the hidden ratings."""
    mean_items = release.vectors("mean-items", tuned.published.n_items)
    messages = averages(release.about("submissions", hidden))
    guesses = {name: submissions.from_submissions(tuned, mean_items, *sent) for name, sent in messages.items()}
    recalled = release.about("replayed", hidden)
    items, first, variances, expected, along = (
        recalled[column].to_numpy().astype(np.float64)
        for column in ("first_items", "first", "first_variance", "expected", "along")
    )
    guess = submissions.from_first(tuned, items, first, variances, deviation)
    guesses["first"] = tuned.published.clip(guess[0])
    guesses["replayed"] = submissions.from_replay(tuned, guess, (expected, along), *messages["weighted"])
    measured = release.information(hidden)
    if measured is not None:
        guesses["joint"] = submissions.from_information(tuned.published, guess, measured)
    return guesses


def averages(received: pl.DataFrame) -> dict[str, tuple[Floats, Floats]]:
    """Messages averaged plainly and with weights, and the variances of their noise: (n, K) each."""
    mean, weighted, by_coordinate = (
        received[column].to_numpy().astype(np.float64) for column in ("mean", "weighted", "weighted_variance")
    )
    variance = np.repeat(received["mean_variance"].to_numpy().astype(np.float64)[:, None], mean.shape[1], axis=1)
    return {"averaged": (mean, variance), "weighted": (weighted, by_coordinate)}


work, main = RatingAttack.commands(__name__)
