"""Stage `attack-edges`: can somebody tell two worlds apart that differ in one interaction of one user?

For each budget of each system under attack, an attacker tries on tested users' sequences, from which an interaction is
removed, an earlier one or the last, or two neighbouring ones swapped. It sees the aggregates that the system releases,
its list at the end, or its lists after every event, in as many independent inferences as there are trials
(`tasks.attacks.edges`). Without noise, as in the control, inferences are all the same. The same attacker is shown
random lists and the most popular items, which tell nothing. Writes data/runs/<suite>/edges/: edges.parquet and
inputs.json.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from tasks import contracts
from tasks.attacks import edge_worlds, edges
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
    RUNS,
    atomic_write,
    file_digest,
    read_json,
    require_passed,
    write_json,
)
from tasks.stages.inputs import read_inputs
from tasks.stages.screen import Screen

KEPT, RESULT = CHECKPOINTS / "attack-edges", "found.json"


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
    targets = choose_targets(params, attack)
    units = plan(name, attack, params)
    return runs.Work(
        title=f"attack-edges {name}",
        units=units,
        run=lambda unit, place, screen: complete(unit, targets, attack, params, place, screen),
        assemble=lambda: assemble(name, suite.data, units, checks, control_rows(targets, attack, params)),
        kept=KEPT / name,
    )


def plan(name: str, attack: EdgeAttack, params: Params) -> list[Unit]:
    """The settings of every system that differ in the budget of edges alone, and the control after each system's."""
    code, control = fingerprint("attack-edges", name, params), params.experiments[attack.control]
    inputs, evaluation = read_inputs(control, params, control.config), params.suites[name].evaluation
    seen = [inputs.digest, evaluation.seed, attack.model_dump(mode="json")]
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
            epochs = epochs_of(*trained_of(system, setting, attack), params)
            folder = runs.folder_of(KEPT / name, label, file_digest(file), epochs, setting is None, *seen, code)
            units.append(Unit(label, folder, system, setting))
    return units


def complete(
    unit: Unit, targets: list[edge_worlds.Target], attack: EdgeAttack, params: Params, place: Path, screen: Screen
) -> None:
    """Attack one model in both worlds, and write what was found below `place`."""
    screen.begin(f"{unit.system} {unit.setting or 'control'}", len(edge_worlds.WORLDS))
    model = model_of(unit, attack, params)
    seed = params.suites[params.experiments[unit.system].suite].evaluation.seed
    order = ranking.tie_order(model.network.items.num_embeddings, seed)
    epochs = epochs_of(*trained_of(unit.system, unit.setting, attack), params)
    rows = [
        {"system": unit.system, "setting": BASE, "epsilon": model.config.epsilon} | row
        for row in edge_worlds.attack(
            released_model(model, attack, order, epochs), targets, edge_worlds.Trials(attack.trials, attack.seed)
        )
    ]
    write_json(place / RESULT, rows)
    screen.step(len(edge_worlds.WORLDS))


def assemble(
    name: str, data: str, units: list[Unit], checks: list[dict[str, Any]], controls: list[dict[str, Any]]
) -> None:
    """Put what was found of all models and without any together as the stage's output."""
    rows = [*(row for unit in units for row in read_json(unit.done / RESULT)), *controls]
    with atomic_write(RUNS / name / "edges") as place:
        place.mkdir()
        contracts.write(pl.DataFrame(rows), place / "edges.parquet", edges.EDGES)
        runs.write_inputs(place, data, checks)


def model_file(name: str, experiment: Experiment, setting: str) -> Path:
    """The trained model of a setting's first seed."""
    folder = RUNS / experiment.suite / name / "train" / "models" / setting
    return folder / f"seed-{experiment.seeds[0]}.safetensors"


def trained_of(system: str, setting: str | None, attack: EdgeAttack) -> tuple[str, str]:
    """The experiment and the setting whose model is attacked. setting: None for the control."""
    return (attack.control, BASE) if setting is None else (system, setting)


def epochs_of(name: str, setting: str, params: Params) -> int:
    """How many epochs the training of a setting's first seed had, validation and all."""
    experiment = params.experiments[name]
    history = read_json(RUNS / experiment.suite / name / "train" / "history.json")
    return len(history[setting][str(experiment.seeds[0])])


def model_of(unit: Unit, attack: EdgeAttack, params: Params) -> DIPSGNN:
    """The model that a unit attacks.

    Raises:
        ConfigurationError: a system has no noise, the control has some, or it aggregates no graph.
    """
    name, setting = trained_of(unit.system, unit.setting, attack)
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


def choose_targets(params: Params, attack: EdgeAttack) -> list[edge_worlds.Target]:
    """The sequences to attack, see `edge_worlds.choose_targets`.

    Raises:
        DataError: there is none.
    """
    control = params.experiments[attack.control]
    inputs = read_inputs(control, params, control.config)
    trained = inputs.sequences("train").users
    targets = edge_worlds.choose_targets(inputs.sequences("test"), trained, attack.targets, attack.seed)
    if not targets:
        raise DataError(
            f"{inputs.processed}: no tested sequence of {edge_worlds.SHORTEST} events or more, of a user who trained; "
            "keep more of each user, or leave the attack out"
        )
    return targets


def released_model(model: DIPSGNN, attack: EdgeAttack, order: NDArray[np.int64], epochs: int) -> edge_worlds.Released:
    """What an attacker sees of a model. Aggregates are those of a sequence that was learnt from.

    Args:
        order: of items with equal scores.
        epochs: of training, each of which released noisy aggregates, unless those of all are one release.
    """
    return edge_worlds.Released(
        states=lambda user: model.aggregated_states(user).double().cpu().numpy(),
        sigma=model.sigma,
        releases=min(model.releases, epochs),
        lists=lambda user, items, first: recommended_lists(model, user, items, attack, order, first),
        n_items=len(order),
    )


def control_rows(targets: list[edge_worlds.Target], attack: EdgeAttack, params: Params) -> list[dict[str, Any]]:
    """The attack on lists that tell nothing."""
    experiment = params.experiments[attack.control]
    inputs = read_inputs(experiment, params, experiment.config)
    popularity = np.bincount(inputs.sequences("train").items, minlength=inputs.schema.n_items)
    return [
        {"system": control, "setting": BASE, "epsilon": None} | row
        for control, row in edge_worlds.attack_controls(
            targets, popularity, attack.k, edge_worlds.Trials(attack.trials, attack.seed)
        )
    ]


def recommended_lists(
    model: DIPSGNN, user: int, items: NDArray[np.int32], attack: EdgeAttack, order: NDArray[np.int64], first: int
) -> NDArray[np.int32]:
    """The lists after every event of a sequence, in independent inferences: (trials, n_events, k).

    Where inference is without noise they are all the same, and computed once. first: number of the first draw of noise;
    no two sequences that are told apart share one.
    """
    trials = attack.trials if model.noisy_inference else 1
    asked = Sequences(
        np.full(trials, user, np.int32), np.arange(trials + 1, dtype=np.int64) * len(items), np.tile(items, trials)
    )
    scores = model.score_again(asked, first + np.arange(trials))
    nothing = ranking.Seen.from_pairs(np.empty(0, np.int32), np.empty(0, np.int32), len(scores))
    rows = np.arange(len(scores), dtype=np.int32)
    lists, _ = ranking.top_k(lambda part: scores[torch.from_numpy(part).long()], rows, nothing, attack.k, order)
    lists = lists.reshape(trials, len(items), -1)
    return np.broadcast_to(lists, (attack.trials, *lists.shape[1:]))


main = runs.stage(work)

if __name__ == "__main__":
    run_stage(main, units=True)
