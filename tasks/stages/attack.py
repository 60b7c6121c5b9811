"""Stage `attack`: attribute inference against everything one experiment released.

Reads only what an attacker may see: data/runs/<suite>/<experiment>/released/, the rated items (train and valid), and
the users' labels, of which the targets' (data/targets/) are used to score. Writes metrics, and what each attack gains
over its controls, to data/runs/<suite>/<experiment>/attack/. The attacker of each seed attacks every distinct release
of it once, and the ratings alone. That is kept under data/checkpoints/attack/, named by everything that decides the
result: a rerun goes on where it stopped, and what was attacked before is not attacked again.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import torch
from numpy.typing import NDArray

from tasks import contracts
from tasks.attacks import attribute, blurring
from tasks.config.attacks import AttributeAttack
from tasks.config.fields import BASE
from tasks.config.params import Experiment, Params, attack_of, entry, load
from tasks.contracts import Schema
from tasks.errors import ConfigurationError, DataError
from tasks.evaluation.gains import GAINS, gain
from tasks.stages import runs
from tasks.stages.code import fingerprint
from tasks.stages.command import run_stage
from tasks.stages.common import (
    CHECKPOINTS,
    PROCESSED,
    RUNS,
    atomic_write,
    digest,
    require_passed,
    text_digest,
)
from tasks.stages.screen import Screen
from tasks.stages.targets import FOLDER, read_labels, read_targets

SCORES = pa.schema(
    [
        pa.field("attribute", pa.string(), nullable=False),
        pa.field("attacker", pa.string(), nullable=False),
        pa.field("k", pa.int32(), nullable=False),
        pa.field("right", pa.list_(pa.bool_()), nullable=False),  # of each target of known class, in order of user
    ]
)
TRUE, RANDOM, BLURRED = "attribute", "attribute-random", "attribute-blurred"
"""What an attack is judged on, or shown: first part of its metrics' names."""


@dataclass(frozen=True)
class Known:
    """What does not depend on a release. users, items: (n,) rated items; labels: attribute -> class of every user."""

    schema: Schema
    users: NDArray[np.int32]
    items: NDArray[np.int32]
    labels: dict[str, attribute.Labels]
    is_target: NDArray[np.bool_]
    digest: str


@dataclass(frozen=True)
class Unit(runs.Unit):
    """One release to attack. recommended: (n_users, K), of which the first k of each cut-off are shown."""

    title: str
    known: Known
    recommended: NDArray[np.int32]
    ks: tuple[int, ...]
    attackers: tuple[str, ...]
    seed: int

    @property
    def scores(self) -> pl.DataFrame:
        """What the attackers guessed right, once the unit is finished."""
        return contracts.read(self.done / "scores.parquet", SCORES)


def work(name: str) -> runs.Work[Unit]:
    """What attacking experiment `name` consists of."""
    torch.set_num_threads(1)
    params = load()
    experiment = entry("experiments", name, params.experiments)
    attack = attack_of(experiment.suite, params, AttributeAttack)
    checks = [require_passed("recommendations", name, experiment.suite)]
    known = read_known(name, attack, params)
    alone, units = plan(name, experiment, known, attack)
    return runs.Work(
        title=f"attack {name}",
        units=[*alone.values(), *units.values()],
        run=lambda unit, place, screen: complete(unit, attack, place, screen),
        assemble=lambda: assemble(name, experiment, attack, known, alone, units, checks),
    )


def assemble(
    name: str,
    experiment: Experiment,
    attack: AttributeAttack,
    known: Known,
    alone: dict[int, Unit],
    units: Units,
    checks: list[dict[str, Any]],
) -> None:
    """Put what was guessed of all releases together as the stage's output."""
    tables = [
        as_metrics(kind, unit.scores, known).with_columns(setting=pl.lit(setting), seed=pl.lit(seed, pl.Int64))
        for (kind, setting, seed), unit in units.items()
    ]
    for setting in experiment.settings():
        attackers = attack.attackers_at(setting).attackers
        for seed in experiment.seeds_at(setting):
            shared = as_metrics(TRUE, alone[seed].scores.filter(pl.col("attacker").is_in(attackers)), known)
            shared = pl.concat([shared, majority_metrics(known)])
            tables.append(shared.with_columns(setting=pl.lit(setting), seed=pl.lit(seed, pl.Int64)))
    tables += [detection(units, setting, seed, known, attack) for kind, setting, seed in units if kind == BLURRED]
    metrics = pl.concat(tables).to_dicts()
    with atomic_write(RUNS / experiment.suite / name / "attack") as place:
        place.mkdir()
        runs.write_metrics(metrics, place, experiment.suite, name, experiment.data, experiment.system)
        contracts.write(gains(alone, units, known), place / "gains.parquet", GAINS)
        runs.write_inputs(place, experiment.data, checks, targets=int(known.is_target.sum()))


def read_known(name: str, attack: AttributeAttack, params: Params) -> Known:
    """Read ratings, labels and targets."""
    experiment = params.experiments[name]
    folder = PROCESSED / experiment.data
    if experiment.data != params.suites[experiment.suite].data:
        raise ConfigurationError(f"suites.{experiment.suite}.data: has no targets among the users of {experiment.data}")
    schema, labels = read_labels(experiment.data)
    rated = contracts.read(folder / "interactions.parquet", contracts.INTERACTIONS)
    rated = rated.filter(pl.col("split") != "test").select("user", "item").sort("user", "item")
    is_target = read_targets(experiment.suite, schema.n_users)
    code = fingerprint("attack", name, params)
    decides = [attack.split_seed, digest(folder, FOLDER / f"{experiment.suite}.parquet"), code]
    key = text_digest(json.dumps(decides))
    return Known(schema, rated["user"].to_numpy(), rated["item"].to_numpy(), labels, is_target, key)


Units = dict[tuple[str, str, int], Unit]
"""(kind, setting, seed) -> unit."""


def plan(name: str, experiment: Experiment, known: Known, attack: AttributeAttack) -> tuple[dict[int, Unit], Units]:
    """The ratings alone by seed of the attacker, who has that of the run; and every release with its controls."""
    nothing = np.empty((known.schema.n_users, 0), np.int32)
    seeds = dict.fromkeys(seed for setting in experiment.settings() for seed in experiment.seeds_at(setting))
    alone = {seed: unit(f"ratings alone seed {seed}", known, nothing, (0,), attack.attackers, seed) for seed in seeds}
    units: Units = {}
    for setting in experiment.settings():
        attacker = attack.attackers_at(setting)
        for seed in experiment.seeds_at(setting):
            title = f"{setting} seed {seed}"
            lists = released_lists(name, experiment, setting, seed, known, max(attack.k))
            units[TRUE, setting, seed] = unit(title, known, lists, attacker.k, attacker.attackers, seed)
            if setting != BASE:
                continue
            chance = replace(known, labels=attribute.shuffle_labels(known.labels, seed))
            title += ", random attributes"
            units[RANDOM, setting, seed] = unit(title, chance, lists, attack.control_k, attack.attackers, seed, RANDOM)
            blurred = released_profiles(name, experiment, setting, seed, known)
            if blurred is not None:
                title = f"{setting} seed {seed}, blurred profiles"
                ks, shown = (0, *attack.control_k), replace(known, users=blurred[:, 0], items=blurred[:, 1])
                units[BLURRED, setting, seed] = unit(title, shown, lists, ks, attack.attackers, seed)
    return alone, units


def released_lists(
    name: str, experiment: Experiment, setting: str, seed: int, known: Known, longest: int
) -> NDArray[np.int32]:
    """The released recommendations of one setting and seed: (n_users, K)."""
    path = RUNS / experiment.suite / name / "released" / setting / f"seed-{seed}.parquet"
    table = contracts.read(path, contracts.RECOMMENDATIONS).sort("user", "rank")
    length = len(table) // known.schema.n_users
    if len(table) != length * known.schema.n_users or length < longest:
        raise DataError(
            f"{path}: {len(table)} rows for {known.schema.n_users} users hold no lists of {longest} items, which "
            "attack.k asks for; lower it or raise evaluation.k"
        )
    return table["item"].to_numpy().reshape(-1, length)


def released_profiles(
    name: str, experiment: Experiment, setting: str, seed: int, known: Known
) -> NDArray[np.int32] | None:
    """The rated items and what the system was given beside them: (n, 2); None where it was given the true ones."""
    path = RUNS / experiment.suite / name / "released" / setting / "profiles" / f"seed-{seed}.parquet"
    if not path.exists():
        return None
    given = contracts.read(path, contracts.PROFILES).to_numpy()
    return np.unique(np.concatenate([given, np.stack([known.users, known.items], axis=1)]), axis=0)


def unit(
    title: str,
    known: Known,
    recommended: NDArray[np.int32],
    ks: tuple[int, ...] | list[int],
    attackers: list[str],
    seed: int,
    labels: str = TRUE,
) -> Unit:
    """A release, which the attacker of one seed attacks once wherever it was released; labels: `TRUE` or `RANDOM`."""
    shown = recommended[:, : max(ks)]
    rated = text_digest(np.stack([known.users, known.items]).tobytes().hex())
    decides = [known.digest, rated, list(ks), list(attackers), seed, labels, shown.tolist()]
    folder = runs.folder_of(CHECKPOINTS / "attack", "release", *decides)
    return Unit(re.sub(r",? ", "-", title), folder, title, known, recommended, tuple(ks), tuple(attackers), seed)


def complete(unit: Unit, attack: AttributeAttack, place: Path, screen: Screen) -> None:
    """Attack one release, and write what was guessed right below `place`."""
    screen.begin(unit.title, len(unit.ks) * len(unit.attackers))
    rows, known = [], unit.known
    for number, k in enumerate(unit.ks, start=1):
        seen = attribute.profiles(known.users, known.items, unit.recommended[:, :k], known.schema.n_items)
        seeds = attack.split_seed, unit.seed
        scores = attribute.attack(seen, known.labels, known.is_target, unit.attackers, seeds)
        rows += [(score.attribute, score.attacker, k, score.right.tolist()) for score in scores]
        screen.step(number * len(unit.attackers))
    contracts.write(pl.DataFrame(rows, SCORES.names, orient="row"), place / "scores.parquet", SCORES)


def as_metrics(kind: str, scores: pl.DataFrame, known: Known) -> pl.DataFrame:
    """Columns metric, k and value: the F1 of every attack, and its advantage where attributes are the true ones."""
    majority = {name: attribute.majority_f1(labels, known.is_target) for name, labels in known.labels.items()}
    f1 = pl.col("right").list.mean()
    values = {"f1": f1}
    if kind == TRUE:
        values["advantage"] = f1 - pl.col("attribute").replace_strict(majority, return_dtype=pl.Float64)
    return pl.concat(
        scores.select(
            metric=pl.concat_str(pl.lit(kind), "attribute", "attacker", pl.lit(name), separator="/"),
            k="k",
            value=value,
        )
        for name, value in values.items()
    )


def majority_metrics(known: Known) -> pl.DataFrame:
    """The majority guess of each attribute, as k = 0."""
    rows = [
        (f"{TRUE}/{name}/majority/f1", 0, attribute.majority_f1(labels, known.is_target))
        for name, labels in known.labels.items()
    ]
    return pl.DataFrame(rows, {"metric": pl.String, "k": pl.Int32, "value": pl.Float64}, orient="row")


def detection(units: Units, setting: str, seed: int, known: Known, attack: AttributeAttack) -> pl.DataFrame:
    """How well one can tell a blurred profile from a true one, as metrics with k = 0."""
    nothing, n_items = np.empty((known.schema.n_users, 0), np.int32), known.schema.n_items
    given = units[BLURRED, setting, seed].known
    true, blurred = (attribute.profiles(block.users, block.items, nothing, n_items) for block in (known, given))
    differ = (true != blurred).any(axis=1)
    detected = blurring.detect(true[differ], blurred[differ], known.is_target[differ], attack.split_seed)
    rows = [(f"blurring/detector/{name}", 0, getattr(detected, name)) for name in ("auc", "low", "high")]
    table = pl.DataFrame(rows, {"metric": pl.String, "k": pl.Int32, "value": pl.Float64}, orient="row")
    return table.with_columns(setting=pl.lit(setting), seed=pl.lit(seed, pl.Int64))


def gains(alone: dict[int, Unit], units: Units, known: Known) -> pl.DataFrame:
    """What every attack on true attributes gains over each of its controls (`GAINS`), seed by seed of the attacker."""

    def right(parts: list[Unit]) -> dict[tuple[Any, ...], NDArray[np.bool_]]:
        """(attribute, attacker, k) -> (n_seeds, n_targets)."""
        tables = [{row[:3]: row[3] for row in part.scores.iter_rows()} for part in parts]
        return {key: np.array([table[key] for table in tables]) for key in (tables[0] if tables else {})}

    rows = []
    guess = {name: attribute.majority_right(labels, known.is_target) for name, labels in known.labels.items()}
    for setting in dict.fromkeys(setting for _, setting, _ in units):
        without = right([alone[seed] for kind, where, seed in units if (kind, where) == (TRUE, setting)])
        by_kind = {
            kind: right([part for (which, where, _), part in units.items() if (which, where) == (kind, setting)])
            for kind in (TRUE, RANDOM)
        }
        attacks = by_kind[TRUE]
        if setting == BASE:
            attacks = without | attacks
        for (name, attacker, k), guesses in attacks.items():
            controls = {"majority": guess[name][None]}
            if k:
                controls["ratings"] = without[name, attacker, 0]
            if (name, attacker, k) in by_kind[RANDOM]:
                controls["random"] = by_kind[RANDOM][name, attacker, k]
            rows += [(setting, name, attacker, k, control, *gain(guesses, of)) for control, of in controls.items()]
    return pl.DataFrame(rows, GAINS.names, orient="row").with_columns(pl.col("k").cast(pl.Int32))


main = runs.stage(work)

if __name__ == "__main__":
    run_stage(main, units=True)
