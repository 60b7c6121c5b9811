"""Stage `attack-ratings`: what others than the users can reconstruct of one experiment's sensitive training ratings.

Reads what a deployed system leaves with others, data/runs/<suite>/<experiment>/released/, and the training ratings of
every fold, of which the attackers see the published ones and are judged on the sensitive ones. Every attacker of
`tasks.attacks.reconstruction` tries for which there is something to look at: a system without item vectors leaves the
control alone. A setting in which no training rating is sensitive has nothing to reconstruct, and one in which none is
published nothing to begin with: neither has metrics. Writes data/runs/<suite>/<experiment>/attack/.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, Field

from tasks import contracts
from tasks.attacks import joint, reconstruction, replay
from tasks.attacks.joint import Measured
from tasks.attacks.measurements import Floats
from tasks.attacks.reconstruction import Published, Targets, TunedAttacker
from tasks.config.attacks import ReconstructionAttack
from tasks.config.params import Experiment, Params, attack_of, entry, load
from tasks.contracts import Schema
from tasks.errors import DataError
from tasks.evaluation.rating import mae
from tasks.stages import replayed, runs
from tasks.stages.code import fingerprint
from tasks.stages.command import run_stage
from tasks.stages.common import (
    CHECKPOINTS,
    RUNS,
    atomic_write,
    file_digest,
    read_json,
    require_passed,
    write_json,
)
from tasks.stages.inputs import read_inputs
from tasks.stages.screen import Screen

KEPT, RESULT = CHECKPOINTS / "attack-ratings", "found.json"


@dataclass(frozen=True)
class Release:
    """What one setting and seed left with others: tables seed-<seed>.parquet in folders below that of the setting.

    There is none of a kind that the system does not have.
    """

    folder: Path
    seed: int

    def path(self, kind: str) -> Path:
        """Its table of a kind, whether there is one or not."""
        return self.folder / kind / f"seed-{self.seed}.parquet"

    def has(self, kind: str) -> bool:
        """Whether there is a table of a kind."""
        return self.path(kind).exists()

    def size(self) -> int:
        """K, from the table of item vectors."""
        path = self.path("items")
        try:
            return int(pq.read_schema(path).field("vector").type.list_size)
        except (pa.ArrowInvalid, KeyError, AttributeError, OSError) as error:
            raise DataError(f"{path}: not a table of vectors ({error}); delete it and run train again") from error

    def vectors(self, kind: str, n_items: int) -> Floats:
        """Item vectors: (n_items, K)."""
        table = contracts.read(self.path(kind), contracts.embeddings_schema(self.size())).sort("node")
        if not np.array_equal(table["node"].to_numpy(), np.arange(n_items)):
            raise DataError(f"{self.path(kind)}: does not hold the {n_items} items' vectors once each; run train again")
        return table["vector"].to_numpy().astype(np.float64)

    def averages(self, kind: str) -> pl.DataFrame:
        """Averaged messages, sorted by sender and subject."""
        return contracts.read(self.path(kind), contracts.received_schema(self.size())).sort("sender", "subject")

    def about(self, hidden: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Averaged submissions, and what their receiver has beside; both in the order of the hidden ratings.

        Raises:
            DataError: what was submitted is not about these.
        """
        recalled = contracts.read(self.path("replayed"), replayed.schema(self.size())).sort("sender", "subject")
        tables = self.averages("submissions"), recalled
        for kind, table in zip(("submissions", "replayed"), tables, strict=True):
            if not table.select(user="sender", item="subject").equals(hidden.select("user", "item")):
                raise DataError(
                    f"{self.path(kind)}: is not about the {len(hidden)} sensitive training ratings, each once; run "
                    "train again"
                )
        return tables

    def information(self, hidden: pl.DataFrame) -> Measured | None:
        """What all submissions say of the hidden ratings, in their order; None where the system has no such table.

        Raises:
            DataError: it is not about these.
        """
        if not self.has("information"):
            return None
        path = self.path("information")
        table = contracts.read(path, replayed.INFORMATION).sort("sender", "subject")
        counts = hidden.group_by("user", maintain_order=True).len()["len"].to_numpy().astype(np.int64)
        sizes = np.repeat(counts, counts)
        same = table.select(user="sender", item="subject").equals(hidden.select("user", "item"))
        if not same or not np.array_equal(table["row"].list.len().to_numpy(), sizes):
            raise DataError(
                f"{path}: is not about the {len(hidden)} sensitive training ratings, each once; run train again"
            )
        matrices = np.split(table["row"].explode().to_numpy(), np.cumsum(counts**2)[:-1])
        return Measured(
            table["guess"].to_numpy(),
            table["gradient"].to_numpy(),
            [matrix.reshape(size, size) for matrix, size in zip(matrices, counts, strict=True)],
        )


class AttackErrors(BaseModel):
    """Attacker -> error, and how much there was to attack."""

    errors: dict[str, float] = Field(default_factory=dict)
    targets: int = 0
    known_to_friends: int = 0
    """Targets of whose users a friend holds a vector; `friend` guesses the others as `tuned` does."""


def work(name: str) -> runs.Work[runs.SeedUnit]:
    """What attacking experiment `name` consists of."""
    params = load()
    experiment = entry("experiments", name, params.experiments)
    attack = attack_of(experiment.suite, params, ReconstructionAttack)
    checks = [require_passed("recommendations", name, experiment.suite)]
    units = plan(name, attack, params)
    return runs.Work(
        title=f"attack-ratings {name}",
        units=units,
        run=lambda unit, place, screen: complete(unit, name, attack, params, place, screen),
        assemble=lambda: assemble(name, experiment, units, checks),
        kept=KEPT / name,
    )


def plan(name: str, attack: ReconstructionAttack, params: Params) -> list[runs.SeedUnit]:
    """Every setting and seed."""
    experiment, code = params.experiments[name], fingerprint("attack-ratings", name, params)
    units = []
    for setting, config in experiment.settings().items():
        inputs = read_inputs(experiment, params, config)
        released = RUNS / experiment.suite / name / "released" / setting
        for seed in experiment.seeds_at(setting):
            seen = {str(file): file_digest(file) for file in sorted(released.rglob(f"seed-{seed}.parquet"))}
            asked = config["sensitive_share"], config.get("initial_spread")
            decides = [inputs.digest, *asked, seen, attack.model_dump(mode="json"), seed, code]
            label = f"{setting}-seed-{seed}"
            units.append(runs.SeedUnit(label, runs.folder_of(KEPT / name, label, *decides), setting, seed))
    return units


def complete(
    unit: runs.SeedUnit, name: str, attack: ReconstructionAttack, params: Params, place: Path, screen: Screen
) -> None:
    """Attack one setting and seed, and write what was found below `place`."""
    screen.begin(f"{unit.setting} seed {unit.seed}", 1)
    experiment = params.experiments[name]
    config = experiment.settings()[unit.setting]
    inputs = read_inputs(experiment, params, config).for_seed(unit.seed)
    learnt = inputs.interactions.filter(pl.col("split") == "train").sort("user", "item")
    release = Release(RUNS / experiment.suite / name / "released" / unit.setting, unit.seed)
    deviation = config.get("initial_spread", 0.0)
    write_json(place / RESULT, attack_release(learnt, inputs.schema, release, attack, deviation).model_dump())
    screen.step(1)


def assemble(name: str, experiment: Experiment, units: list[runs.SeedUnit], checks: list[dict[str, Any]]) -> None:
    """Put what was found at all settings and seeds together as the stage's output."""
    results = {unit: AttackErrors.model_validate(read_json(unit.done / RESULT)) for unit in units}
    rows = [
        {"setting": unit.setting, "seed": unit.seed, "metric": f"reconstruction/{attacker}/mae", "value": value}
        for unit, result in results.items()
        for attacker, value in result.errors.items()
    ]
    with atomic_write(RUNS / experiment.suite / name / "attack") as place:
        place.mkdir()
        runs.write_metrics(rows, place, experiment.suite, name, experiment.data, experiment.system)
        friends = {f"{unit.setting} seed {unit.seed}": result.known_to_friends for unit, result in results.items()}
        most = max(result.targets for result in results.values())
        runs.write_inputs(place, experiment.data, checks, targets=most, known_to_friends=friends)


def attack_release(
    learnt: pl.DataFrame, schema: Schema, release: Release, attack: ReconstructionAttack, deviation: float
) -> AttackErrors:
    """Every attacker that has something to look at.

    Args:
        learnt: training ratings, sorted by user and item, with columns user, item, rating and sensitive.
        deviation: of coordinates of users' vectors at their common start, where the system has any (`initial_spread`).

    Raises:
        DataError: what was submitted is not about the sensitive ratings.
    """
    hidden, shown = learnt.filter("sensitive"), learnt.filter(~pl.col("sensitive"))
    if hidden.is_empty() or shown.is_empty():
        return AttackErrors()
    assert schema.scale is not None, "the protocol gives one with the folds"
    low, high = schema.scale.low, schema.scale.high
    ratings = shown["rating"].to_numpy().astype(np.float64)
    of = schema.n_users, schema.n_items, low, high
    published = Published(shown["user"].to_numpy(), shown["item"].to_numpy(), ratings, *of)
    targets = Targets(hidden["user"].to_numpy(), hidden["item"].to_numpy())
    guesses = {"public": reconstruction.expected_ratings(published, targets)}
    friends = 0
    if release.has("items"):
        items = release.vectors("items", schema.n_items)
        literal = reconstruction.fit(published, items, attack.ridge).vectors
        guesses["published"] = reconstruction.predict(literal, items, targets, published)
        tuned = reconstruction.tune(published, targets, items)
        guesses["tuned"] = tuned.guess(tuned.profiles.vectors)
        if release.has("submissions"):
            mean_items = release.vectors("mean-items", schema.n_items)
            guesses |= listen(tuned, mean_items, *release.about(hidden), release.information(hidden), deviation)
        if release.has("friends"):
            received = release.averages("friends")
            senders = received["sender"].to_numpy()
            guesses["friend"], friends = reconstruction.from_friends(tuned, senders, *averages(received)["weighted"])
    truth = hidden["rating"].to_numpy()
    errors = {attacker: mae(truth, guess, low, high) for attacker, guess in guesses.items()}
    return AttackErrors(errors=errors, targets=len(truth), known_to_friends=friends)


def listen(
    tuned: TunedAttacker,
    mean_items: Floats,
    submitted: pl.DataFrame,
    recalled: pl.DataFrame,
    measured: Measured | None,
    deviation: float,
) -> dict[str, Floats]:
    """What attackers guess who get submissions; for the tables see `Release.about` and `Release.information`."""
    messages = averages(submitted)
    guesses = {name: reconstruction.from_submissions(tuned, mean_items, *given) for name, given in messages.items()}
    items, first, variances, expected, along = (
        recalled[column].to_numpy().astype(np.float64)
        for column in ("first_items", "first", "first_variance", "expected", "along")
    )
    guess = replay.from_first(tuned, items, first, variances, deviation)
    guesses["first"] = tuned.published.clip(guess[0])
    guesses["replayed"] = replay.from_replay(tuned, guess, (expected, along), *messages["weighted"])
    if measured is not None:
        guesses["joint"] = joint.from_information(tuned.published, guess, measured)
    return guesses


def averages(received: pl.DataFrame) -> dict[str, tuple[Floats, Floats]]:
    """Messages averaged plainly and with weights, and the variances of their noise: (n, K) each."""
    mean, weighted, by_coordinate = (
        received[column].to_numpy().astype(np.float64) for column in ("mean", "weighted", "weighted_variance")
    )
    variance = np.repeat(received["mean_variance"].to_numpy().astype(np.float64)[:, None], mean.shape[1], axis=1)
    return {"averaged": (mean, variance), "weighted": (weighted, by_coordinate)}


main = runs.stage(work)

if __name__ == "__main__":
    run_stage(main, units=True)
