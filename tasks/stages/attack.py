"""Stage `attack`: attribute inference against everything one experiment released.

Reads only what an attacker may see: data/runs/<suite>/<experiment>/released/, the rated items (train and valid), and
the users' labels, those of the targets (data/targets/) for scoring alone. Writes metrics, and what each attack gains
over its controls, to data/runs/<suite>/<experiment>/attack/. The attacker of each seed attacks every distinct release
once, whatever experiment it is of, and the ratings alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray
from typing_extensions import override

from tasks.attacks import attribute, blurring
from tasks.config.attacks import AttributeAttack
from tasks.config.fields import BASE
from tasks.core import contracts
from tasks.core.errors import ConfigurationError, DataError
from tasks.evaluation.gains import GAINS
from tasks.evaluation.statistics import gain
from tasks.pipeline import runs
from tasks.pipeline.common import CHECKPOINTS, PROCESSED, digest, text_digest
from tasks.stages.attacks import ExperimentAttack, Unit
from tasks.stages.targets import FOLDER, read_labels, read_targets

if TYPE_CHECKING:
    from tasks.core.rows import Row

TRUE, RANDOM, BLURRED, ALONE = "attribute", "attribute-random", "attribute-blurred", "ratings-alone"
"""Kinds of attack: on true labels, shuffled ones, blurred profiles (all three begin metrics' names), ratings alone."""
LABELS = {TRUE: "", RANDOM: "-random-attributes", BLURRED: "-blurred-profiles"}
Right = dict[tuple[str, str, int], NDArray[np.bool_]]
"""(attribute, attacker, k) -> whether each target of known class was guessed right, in order of user."""
Results = dict[tuple[str, str, int], Right]
"""(kind, setting, seed) -> what its unit found."""


@dataclass(frozen=True)
class Release:
    """What the attackers of one run see; `seed` is its number.

    profiles: (2, n) users and items of interactions.
    labels: attribute -> class of every user.
    lists: (n_users, K), of which the first k of each of `ks` are shown, one attack after another.
    """

    kind: str
    setting: str
    seed: int
    profiles: NDArray[np.int32]
    labels: Mapping[str, attribute.Labels]
    lists: NDArray[np.int32]
    ks: tuple[int, ...]
    attackers: tuple[str, ...]

    @property
    def label(self) -> str:
        """The name of its unit."""
        return f"{self.setting if self.kind != ALONE else ALONE}-seed-{self.seed}{LABELS.get(self.kind, '')}"

    def decides(self) -> list[object]:
        """All that results depend on besides the data, as JSON values."""
        lists, profiles = self.lists[:, : max(self.ks)].tolist(), text_digest(self.profiles.tobytes().hex())
        return [profiles, list(self.ks), list(self.attackers), self.seed, self.kind == RANDOM, lists]


class AttributeInference(ExperimentAttack[AttributeAttack, Release]):
    """The stage; a unit is a release with one seed's attackers, and shared by all experiments that release the same."""

    stage, kind, shares = "attack", AttributeAttack, True

    def read(self) -> None:
        """Read ratings, labels and targets."""
        name, suite = self.experiment.suite, self.params.suites[self.experiment.suite]
        if self.data != suite.data:
            raise ConfigurationError(f"suites.{name}.data: has no targets among the users of {self.data}")
        self.schema, self.labels = read_labels(self.data)
        self.runs = {setting: suite.runs(self.experiment, setting) for setting in self.experiment.settings()}
        self.data_of = {run: data for runs_of in self.runs.values() for run, data in runs_of.items()}
        self.rated = {data: _rated(data) for data in {*self.data_of.values()}}
        self.is_target = read_targets(name)
        self.truth = digest(PROCESSED / self.data, FOLDER / f"{name}.parquet")

    @override
    def folder(self, label: str, *decides: object) -> Path:
        data = self.options.split_seed, self.options.lengths, self.truth, self.code
        return runs.folder_of(CHECKPOINTS / self.stage, "release", *decides, *data)

    @override
    def plan(self) -> Iterator[Unit[Release]]:
        self.read()
        for release in self.releases():
            yield self.unit(release.label, release, *release.decides(), steps=len(release.ks) * len(release.attackers))

    def releases(self) -> Iterator[Release]:
        """The ratings alone, with each run's attackers; every release with its controls."""
        options = self.options
        attackers, control_k = tuple(options.attackers), tuple(options.control_k)
        nothing = np.empty((self.schema.n_users, 0), np.int32)
        for seed, data in self.data_of.items():
            yield Release(ALONE, "", seed, self.rated[data], self.labels, nothing, (0,), attackers)
        for setting, runs_of in self.runs.items():
            chosen = options.attackers_at(setting)
            for seed, data in runs_of.items():
                release = Release(
                    TRUE, setting, seed, self.rated[data], self.labels, self.lists(setting, seed),
                    tuple(chosen.k), tuple(chosen.attackers),
                )  # fmt: skip
                yield release
                if setting == BASE:
                    shuffled = attribute.shuffle_labels(self.labels, seed)
                    yield replace(release, kind=RANDOM, labels=shuffled, ks=control_k)
                    if (blurred := self.profiles(release)) is not None:
                        yield replace(release, kind=BLURRED, profiles=blurred, ks=(0, *control_k))

    def lists(self, setting: str, seed: int) -> NDArray[np.int32]:
        """The released recommendations, best first: (n_users, K).

        Raises:
            DataError: users have lists of different lengths, or shorter ones than `attack.k` asks for.
        """
        path, longest, n_users = (
            self.released / setting / f"seed-{seed}.parquet",
            max(self.options.k),
            len(self.is_target),
        )
        table = contracts.read(path, contracts.RECOMMENDATIONS).sort("user", "rank")
        length = len(table) // n_users
        if len(table) != length * n_users or length < longest:
            raise DataError(
                f"{path}: {len(table)} rows for {n_users} users hold no lists of {longest} items, which attack.k asks "
                "for; lower it or raise evaluation.k"
            )
        return table["item"].to_numpy().reshape(-1, length)

    def profiles(self, release: Release) -> NDArray[np.int32] | None:
        """(2, n) the rated items and what the system was given in addition; None where it was given these alone."""
        path = self.released / release.setting / "profiles" / f"seed-{release.seed}.parquet"
        if not path.exists():
            return None
        blurred = contracts.read(path, contracts.PROFILES).to_numpy()
        return np.unique(np.concatenate([blurred, release.profiles.T]), axis=0).T

    @override
    def attack(self, target: Release, _: Path, step: Callable[[int], None]) -> list[tuple[str, str, int, list[bool]]]:
        rows = []
        for number, k in enumerate(target.ks, start=1):
            profiles = attribute.profiles(
                target.profiles[0], target.profiles[1], target.lists[:, :k], self.schema.n_items
            )
            seeds, attackers = (self.options.split_seed, target.seed), self.options.seeing(target.attackers, k)
            for score in attribute.attack(profiles, target.labels, self.is_target, attackers, seeds):
                rows.append((score.attribute, score.attacker, k, score.right.tolist()))
            step(number * len(target.attackers))
        return rows

    @override
    def write(self, units: list[Unit[Release]], path: Path) -> Row:
        results: Results = {
            (unit.target.kind, unit.target.setting, unit.target.seed): {
                (name, attacker, k): np.array(right, bool) for name, attacker, k, right in unit.result()
            }
            for unit in units
        }
        majority = {name: attribute.majority_right(labels, self.is_target) for name, labels in self.labels.items()}
        rows = [row for key, right in results.items() if key[0] != ALONE for row in metrics(*key, right, majority)]
        for setting, runs_of in self.runs.items():
            attackers = self.options.attackers_at(setting).attackers
            for seed in runs_of:
                shared = {key: right for key, right in results[ALONE, "", seed].items() if key[1] in attackers}
                rows += metrics(TRUE, setting, seed, shared, majority)
                rows += [
                    _row(setting, seed, f"{TRUE}/{name}/majority/f1", 0, right.mean())
                    for name, right in majority.items()
                ]
        rows += [row for unit in units if unit.target.kind == BLURRED for row in self.detection(unit.target)]
        self.write_metrics(rows, path)
        table = pl.DataFrame(gains(results, majority), GAINS.names, orient="row").with_columns(
            pl.col("k").cast(pl.Int32)
        )
        contracts.write(table, path / "gains.parquet", GAINS)
        return {"targets": int(self.is_target.sum())}

    def detection(self, release: Release) -> Iterator[dict[str, object]]:
        """How well one can tell a blurred profile from a true one, as metrics with k = 0."""
        nothing = release.lists[:, :0]
        true, blurred = (
            attribute.profiles(users, items, nothing, self.schema.n_items)
            for users, items in (self.rated[self.data_of[release.seed]], release.profiles)
        )
        differ = (true != blurred).any(axis=1)
        detected = blurring.detect(true[differ], blurred[differ], self.is_target[differ], self.options.split_seed)
        for name in ("auc", "low", "high"):
            yield _row(release.setting, release.seed, f"blurring/detector/{name}", 0, getattr(detected, name))


def _rated(data: str) -> NDArray[np.int32]:
    """(2, n) users and items of the interactions that systems are trained on."""
    rated = contracts.read(PROCESSED / data / "interactions.parquet", contracts.INTERACTIONS)
    return rated.filter(pl.col("split") != "test").select("user", "item").sort("user", "item").to_numpy().T


def metrics(
    kind: str, setting: str, seed: int, right: Right, majority: Mapping[str, NDArray[np.bool_]]
) -> Iterator[dict[str, object]]:
    """The F1 of every attack, and its advantage where attributes are the true ones."""
    for (name, attacker, k), guessed in right.items():
        yield _row(setting, seed, f"{kind}/{name}/{attacker}/f1", k, guessed.mean())
        if kind == TRUE:
            advantage = guessed.mean() - majority[name].mean()
            yield _row(setting, seed, f"{kind}/{name}/{attacker}/advantage", k, advantage)


def _row(setting: str, seed: int, metric: str, k: int, value: float) -> dict[str, object]:
    return {"setting": setting, "seed": seed, "metric": metric, "k": k, "value": float(value)}


def gains(results: Results, majority: Mapping[str, NDArray[np.bool_]]) -> Iterator[tuple[object, ...]]:
    """What every attack on true attributes gains over each of its controls (rows of `GAINS`)."""
    runs_of: dict[str, list[int]] = {}
    for kind, setting, seed in results:
        if kind == TRUE:
            runs_of.setdefault(setting, []).append(seed)

    def by_seed(kind: str, setting: str, seeds: list[int]) -> Right:
        """(n_seeds, n_targets) of each attack."""
        tables = [results[kind, setting, seed] for seed in seeds if (kind, setting, seed) in results]
        return {key: np.array([table[key] for table in tables]) for key in (tables[0] if tables else {})}

    for setting, chosen in runs_of.items():
        ratings, shuffled = by_seed(ALONE, "", chosen), by_seed(RANDOM, setting, chosen)
        attacks = by_seed(TRUE, setting, chosen)
        for (name, attacker, k), right in attacks.items():
            controls = {"majority": majority[name][None], "ratings": ratings[name, attacker, 0]}
            if (name, attacker, k) in shuffled:
                controls["random"] = shuffled[name, attacker, k]
            for control, values in controls.items():
                yield setting, name, attacker, k, control, *gain(right, values)


work, main = AttributeInference.commands(__name__)
