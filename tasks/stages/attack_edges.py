"""Stage `attack-edges`: can somebody tell two worlds apart that differ in one interaction of one user?

For each budget of each system under attack, an attacker tries on tested users' sequences, from which an interaction is
removed, or two neighbouring ones swapped: once from the aggregates that the system releases, once from its lists after
the last event, in as many independent inferences as there are trials (`tasks.attacks.edges`). Without noise, as in the
control, inferences are all the same. Writes data/runs/<suite>/edges/: edges.parquet and inputs.json.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # stages run side by side, and sums must not depend on thread counts

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from tasks import contracts
from tasks.attacks import edges
from tasks.config.attacks import EdgeAttack
from tasks.config.fields import BASE
from tasks.config.params import Experiment, Params, attack_of, entry, load
from tasks.errors import ConfigurationError, DataError
from tasks.evaluation import ranking
from tasks.models import model_class
from tasks.models.sessions.dipsgnn import DIPSGNN
from tasks.sequences import Sequences
from tasks.stages import runs
from tasks.stages.code import fingerprint
from tasks.stages.command import run_stage
from tasks.stages.common import (
    CHECKPOINTS,
    PROCESSED,
    RUNS,
    atomic_write,
    file_digest,
    read_json,
    require_passed,
    write_json,
)
from tasks.stages.inputs import read_inputs
from tasks.stages.screen import Screen

KEPT, FOUND = CHECKPOINTS / "attack-edges", "found.json"
SHORTEST = 4
"""Events of a sequence that has two interior ones to swap."""
WORLDS: dict[str, Callable[[NDArray[np.int32], int], NDArray[np.int64]]] = {
    "removed": edges.remove_visit,
    "swapped": edges.swap_visits,
}


@dataclass(frozen=True)
class Target:
    """A tested user's sequence, and the interior event that is removed, or swapped with the next."""

    user: int
    items: NDArray[np.int32]
    position: int


@dataclass(frozen=True)
class Unit(runs.Unit):
    """One budget of one system, or the control: a trained model to attack."""

    system: str
    setting: str | None
    """None: the control's."""


def work(name: str) -> runs.Work[Unit]:
    """What attacking the systems of suite `name` consists of."""
    torch.set_num_threads(1)
    params = load()
    suite, attack = entry("suites", name, params.suites), attack_of(name, params, EdgeAttack)
    checks = [require_passed("recommendations", experiment, name) for experiment in attack.systems]
    targets = choose_targets(params.experiments[attack.control], attack)
    units = plan(name, attack, params)
    return runs.Work(
        title=f"attack-edges {name}",
        units=units,
        run=lambda unit, place, screen: complete(unit, targets, attack, params, place, screen),
        assemble=lambda: assemble(name, suite.data, units, checks),
        kept=KEPT / name,
    )


def plan(name: str, attack: EdgeAttack, params: Params) -> list[Unit]:
    """The settings of every system that differ in the budget of edges alone, and the control after each system's."""
    code, control = fingerprint("attack-edges", name, params), params.experiments[attack.control]
    seen = [read_inputs(control, None).digest, params.suites[name].evaluation.seed, attack.model_dump(mode="json")]
    units = []
    for system in attack.systems:
        experiment = params.experiments[system]
        models: list[tuple[str | None, Path]] = [
            (setting, model_file(system, experiment, setting))
            for setting, config in experiment.settings().items()
            if set(config.items()) - set(experiment.config.items()) <= {("epsilon", config.get("epsilon"))}
        ]
        for setting, file in [*models, (None, model_file(attack.control, control, BASE))]:
            label = f"{system}-{setting or 'control'}"
            folder = runs.folder_of(KEPT / name, label, file_digest(file), setting is None, *seen, code)
            units.append(Unit(label, folder, system, setting))
    return units


def complete(
    unit: Unit, targets: list[Target], attack: EdgeAttack, params: Params, place: Path, screen: Screen
) -> None:
    """Attack one model in both worlds, and write what was found below `place`."""
    screen.begin(f"{unit.system} {unit.setting or 'control'}", len(WORLDS))
    model = model_of(unit, attack, params)
    seed = params.suites[params.experiments[unit.system].suite].evaluation.seed
    order = ranking.tie_order(model.network.items.num_embeddings, seed)
    rows = [
        {"system": unit.system, "setting": BASE, "epsilon": model.config.epsilon} | row
        for row in attacked(model, targets, attack, order)
    ]
    write_json(place / FOUND, rows)
    screen.step(len(WORLDS))


def assemble(name: str, data: str, units: list[Unit], checks: list[dict[str, Any]]) -> None:
    """Put what was found of all models together as the stage's output."""
    rows = [row for unit in units for row in read_json(unit.done / FOUND)]
    with atomic_write(RUNS / name / "edges") as place:
        place.mkdir()
        contracts.write(pl.DataFrame(rows), place / "edges.parquet", edges.EDGES)
        synthetic = contracts.read_schema(PROCESSED / data / "schema.json").synthetic
        write_json(place / "inputs.json", {"checks": checks, "synthetic": synthetic})


def model_file(name: str, experiment: Experiment, setting: str) -> Path:
    """The trained model of a setting's first seed."""
    folder = RUNS / experiment.suite / name / "train" / "models" / setting
    return folder / f"seed-{experiment.seeds[0]}.safetensors"


def model_of(unit: Unit, attack: EdgeAttack, params: Params) -> DIPSGNN:
    """The model that a unit attacks.

    Raises:
        ConfigurationError: a system has no noise, the control has some, or it aggregates no graph.
    """
    name, setting = (attack.control, BASE) if unit.setting is None else (unit.system, unit.setting)
    model = read_model(name, params.experiments[name], setting)
    if unit.setting is None and model.config.epsilon is not None:
        raise ConfigurationError(f"attack.control: {name} has noise; name a system without")
    if unit.setting is not None and model.config.epsilon is None:
        raise ConfigurationError(f"attack.systems: {name} has no noise; it can be the control alone")
    return model


def read_model(name: str, experiment: Experiment, setting: str) -> DIPSGNN:
    """The trained model of a setting's first seed.

    Raises:
        ConfigurationError: it aggregates no graph.
    """
    model = model_class(experiment.model).load(model_file(name, experiment, setting))
    if not isinstance(model, DIPSGNN):
        raise ConfigurationError(f"attack: {name} aggregates no graph; the attack on edges knows nothing of it")
    model.key = experiment.seeds[0]  # the secret of training is in no file, and inferences have noise of their own
    return model


def choose_targets(experiment: Experiment, attack: EdgeAttack) -> list[Target]:
    """Tested sequences with enough events, drawn by the attack's seed, and an interior event of each.

    Raises:
        DataError: there is no such sequence.
    """
    inputs = read_inputs(experiment, None)
    tested = inputs.sequences("test")
    learnt = np.isin(tested.users, inputs.sequences("train").users)
    rng = np.random.default_rng(attack.seed)
    long_enough = rng.permutation(np.flatnonzero(learnt & (tested.lengths >= SHORTEST)))
    if not len(long_enough):
        raise DataError(
            f"{inputs.processed}: no tested sequence of {SHORTEST} events or more, of a user who trained; keep more of "
            "each user, or leave the attack out"
        )
    chosen: list[Target] = []
    for row in long_enough[: attack.targets]:
        items = tested.items[tested.indptr[row] : tested.indptr[row + 1]]
        chosen.append(Target(int(tested.users[row]), items, int(rng.integers(1, len(items) - 2))))
    return chosen


def attacked(
    model: DIPSGNN, targets: list[Target], attack: EdgeAttack, order: NDArray[np.int64]
) -> Iterator[dict[str, Any]]:
    """Both attacks in both worlds: records of `edges.EDGES` without system, setting and budget."""
    rng = np.random.default_rng([attack.seed, 1])
    for world, other in WORLDS.items():
        aggregates, lists = [], []
        for number, target in enumerate(targets):
            try:
                changed = other(target.items, target.position).astype(np.int32)
            except ValueError:  # to swap equal items changes nothing
                continue
            states = model.aggregated_states(target.user).double().numpy()
            difference = edges.aggregate_difference(target.items, changed, states)
            aggregates.append(edges.aggregate_advantage(difference, model.sigma, model.releases, attack.trials, rng))
            true, false = (
                recommended(model, target.user, items, attack, order, first=(2 * number + which) * attack.trials)
                for which, items in enumerate((target.items, changed))
            )
            lists.append(edges.list_advantage(true, false, len(order), rng))
        for kind, found in (("aggregates", aggregates), ("recommendations", lists)):
            mean = edges.mean_advantage(found, seed=attack.seed)
            yield {
                "target": kind,
                "world": world,
                "advantage": mean.value,
                "low": mean.low,
                "high": mean.high,
                "theory": mean.optimal,
                "targets": len(found),
                "trials": attack.trials,
            }


def recommended(
    model: DIPSGNN, user: int, items: NDArray[np.int32], attack: EdgeAttack, order: NDArray[np.int64], first: int
) -> NDArray[np.int32]:
    """The lists after the last event of a sequence, in independent inferences: (trials, k).

    Where inference is without noise they are all the same, and computed once. first: number of the first draw of noise;
    no two sequences that are told apart share one.
    """
    trials = attack.trials if model.noisy_inference else 1
    asked = Sequences(
        np.full(trials, user, np.int32), np.arange(trials + 1, dtype=np.int64) * len(items), np.tile(items, trials)
    )
    scores = model.score_again(asked, first + np.arange(trials))[torch.from_numpy(asked.indptr[1:] - 1)]
    nothing = ranking.Seen.from_pairs(np.empty(0, np.int32), np.empty(0, np.int32), trials)
    rows = np.arange(trials, dtype=np.int32)
    lists, _ = ranking.top_k(lambda part: scores[torch.from_numpy(part).long()], rows, nothing, attack.k, order)
    return np.broadcast_to(lists, (attack.trials, attack.k))


main = runs.stage(work)

if __name__ == "__main__":
    run_stage(main, units=True)
