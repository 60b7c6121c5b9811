"""Stage `attack-membership`: who, and which interactions, a suite's systems were trained on.

Trains every attacked system at setting `base` again and again on random parts of the training interactions: the run
that is attacked and its shadows (`tasks.attacks.shadows`). All epochs are run, nothing is validated. A unit is some
runs of one system. Writes data/runs/<suite>/membership/: membership.parquet and inputs.json.

Nothing but what training released tells members from others, so an accounted (ε, δ) bounds the attacks: the true
positive rate is at most e^ε times the false positive rate, plus δ. Two tests hold them to it: of these rates, as if
targets were independent, and a bound on ε from guesses of coins, which needs no such assumption
(`tasks.privacy.audits.one_run`) but proves nothing where δ is about one in the number of targets. What refutes the
ledger ends the stage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import torch

from tasks.attacks import shadows
from tasks.config.attacks import MembershipAttack
from tasks.config.fields import BASE, model_config
from tasks.config.params import Params, attack_of, entry, load
from tasks.device import hold
from tasks.errors import PrivacyError
from tasks.evaluation.detection import RATES
from tasks.models import model_class
from tasks.models.base import Recommender
from tasks.models.ranking.folding import fold_in
from tasks.models.ranking.many import fit_many, together
from tasks.privacy.accounting.account import account
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.audits import one_run
from tasks.privacy.units import group_event
from tasks.privacy.units import steps as steps_between
from tasks.stages import runs
from tasks.stages.code import fingerprint
from tasks.stages.command import run_stage
from tasks.stages.common import CHECKPOINTS, RUNS, atomic_write, read_json, require_passed, write_json
from tasks.stages.inputs import read_inputs
from tasks.stages.screen import Screen
from tasks.training_data import TrainingData

KEPT, SIGNALS, LEDGER = CHECKPOINTS / "attack-membership", "signals.npz", "ledger.json"
ALARM = 0.01
"""Probability that any of the tests of a suite refutes a guarantee that holds."""
GUESSED = 0.25
"""Share of the targets about whom the attacker guesses, half of them `in`."""
UNITS: Mapping[shadows.Kind, Literal["user", "interaction"]] = {"user": "user", "interaction": "interaction"}
Bounds = dict[shadows.Kind, tuple[float, float]]
"""Kind of target -> (ε, δ) that is accounted for; none where nothing bounds it."""


@dataclass(frozen=True)
class Unit(runs.Unit):
    """Some runs of one system; run 0 is the attacked one."""

    system: str
    numbers: tuple[int, ...]


def work(name: str) -> runs.Work[Unit]:
    """What attacking the systems of suite `name` consists of."""
    torch.set_num_threads(1)
    params = load()
    suite, attack = entry("suites", name, params.suites), attack_of(name, params, MembershipAttack)
    checks = [require_passed("processed", suite.data)]
    layers = {suite.experiments[system].features for system in attack.systems} - {f"processed/{suite.data}"}
    checks += [require_passed(*layer.split("/")) for layer in sorted(layers)]
    units = plan(name, attack, params)
    return runs.Work(
        title=f"attack-membership {name}",
        units=units,
        run=hold(torch.device("cpu"))(  # small models, which are served from the CPU
            lambda unit, place, screen: complete(unit, name, attack, params, place, screen)
        ),
        assemble=lambda: assemble(name, units, attack, params, checks),
        kept=KEPT / name,
    )


def plan(name: str, attack: MembershipAttack, params: Params) -> list[Unit]:
    """Every system's runs, as many at a time as its models are best fitted."""
    code, units = fingerprint("attack-membership", name, params), []
    seen = [attack.asked, attack.k, attack.seed, code]
    for system in attack.systems:
        experiment = params.suites[name].experiments[system]
        inputs = read_inputs(experiment, params, experiment.config).digest
        numbers = range(1 + attack.shadows_of(system))
        size = together(model_class(experiment.model))
        for start in range(0, len(numbers), size):
            some = tuple(numbers[start : start + size])
            label = f"{system}-{some[0]}-{some[-1]}"
            folder = runs.folder_of(KEPT / name, label, experiment.model_dump(mode="json"), inputs, list(some), *seen)
            units.append(Unit(label, folder, system, some))
    return units


def complete(unit: Unit, suite: str, attack: MembershipAttack, params: Params, place: Path, screen: Screen) -> None:
    """Train the runs of a unit, and write what they say of all targets below `place`."""
    screen.begin(unit.label, len(unit.numbers))
    cls, data, targets = read_targets(suite, unit.system, attack, params)
    experiment = params.suites[suite].experiments[unit.system]
    config = cls.Config.model_validate(model_config(experiment.config))
    thrown = [
        shadows.throw(targets, np.random.default_rng([attack.seed, number, *b"coins"])) for number in unit.numbers
    ]
    models = fit_many(
        cls,
        config,
        [restrict(data, trained) for trained, _ in thrown],
        [np.random.default_rng([attack.seed, number, *b"fit"]) for number in unit.numbers],
        [(experiment.data, unit.system, BASE, f"membership {number}") for number in unit.numbers],
    )
    signals = []
    for model in models:
        signals.append(shadows.read_signals(fold_in(model, targets.served, data.n_items), targets, attack.k))
        screen.step(len(signals))
    arrays: dict[str, Any] = {seen: np.array([of[seen] for of in signals]) for seen in shadows.SEEN}
    np.savez(place / SIGNALS, **arrays, included=np.array([included for _, included in thrown]))
    write_json(place / LEDGER, [made.model_dump(mode="json") for made in models[0].ledger()])


def assemble(
    name: str, units: list[Unit], attack: MembershipAttack, params: Params, checks: list[dict[str, Any]]
) -> None:
    """Attack every system by its signals and put all of it together as the stage's output.

    Raises:
        PrivacyError: an attack proves more than is accounted for.
    """
    rows = []
    tests = sum(len(shadows.KINDS) * len(shadows.SEEN) * len(shadows.ATTACKS) for _ in attack.systems)
    for system in attack.systems:
        mine = [unit for unit in units if unit.system == system]
        _, _, targets = read_targets(name, system, attack, params)
        bounds = accounted([LedgerEntry.model_validate(made) for made in read_json(mine[0].done / LEDGER)])
        for record in attack_system(mine, targets, attack.seed):
            scores, included = record.pop("scores", None), record.pop("included", None)
            bound = bounds.get(record["target"])
            limits = None if scores is None else refute(scores, included, bound, ALARM / tests, attack.seed)
            rows.append({"system": system} | record | (limits or dict.fromkeys(NOT_BOUND)))
    with atomic_write(RUNS / name / "membership") as place:
        place.mkdir()
        pl.DataFrame(rows, schema=shadows.COLUMNS).write_parquet(place / "membership.parquet")
        runs.write_inputs(place, params.suites[name].data, checks)
    for row in rows:
        if row["refuted"]:
            raise PrivacyError(
                f"{RUNS / name / 'membership'}: {row['system']}: accounted at epsilon {row['epsilon']:.4g} for one "
                f"{row['target']}, but {row['attack']} on {row['seen']} finds more than that allows (AUC "
                f"{row['auc']:.3f}, and epsilon is at least {row['proved']:.3g}); mend the model before anything is "
                "released"
            )


def attack_system(units: list[Unit], targets: shadows.Targets, seed: int) -> list[dict[str, Any]]:
    """The records of all attacks on one system, from the signals of its finished units."""
    parts = []
    for unit in units:
        with np.load(unit.done / SIGNALS) as file:
            parts.append({name: file[name] for name in file.files})
    signals = {seen: np.concatenate([part[seen] for part in parts]) for seen in shadows.SEEN}
    coins = np.concatenate([part["included"] for part in parts])
    own = {seen: values[0] for seen, values in signals.items()}
    return shadows.records(own, {seen: values[1:] for seen, values in signals.items()}, coins, targets, seed)


NOT_BOUND = ("epsilon", "delta", "proved", "provable", "allowed", "refuted")


def refute(
    scores: shadows.Floats, included: shadows.Bools, bound: tuple[float, float] | None, alarm: float, seed: int
) -> dict[str, Any] | None:
    """What the attack's guesses prove of ε, beside what is accounted for; None where nothing is.

    Args:
        scores: (m,) of one kind of target; those that are missing count as undecided.
        included: (m,) their coins.
        bound: (ε, δ); alarm: probability of refuting it falsely; seed: of ties.
    """
    if bound is None:
        return None
    epsilon, delta = bound
    ranks = shadows.ranked(scores, np.random.default_rng([seed, *b"ties"]))
    proved = one_run.audit(ranks, included, int(GUESSED * len(scores)), delta, 1 - alarm / 2)
    return {
        "epsilon": epsilon,
        "delta": delta,
        "proved": proved.epsilon,
        "provable": proved.provable,
        "allowed": shadows.allowed_tpr(epsilon, delta, RATES[0]),
        "refuted": proved.epsilon > epsilon or shadows.exceeds(ranks, included, epsilon, delta, alarm / 2),
    }


def accounted(ledger: list[LedgerEntry]) -> Bounds:
    """What is accounted for of users and of interactions: all releases together, by group privacy where it takes steps.

    A kind of target has no bound where a release has no finite ε for it. Entries of the same events, for several units,
    are one release.
    """
    bounds: Bounds = {}
    entries = [made for made in ledger if made.protects == "interaction"]
    if any(made.accounted_epsilon is None for made in entries):
        return bounds
    for kind, unit in UNITS.items():
        steps: dict[tuple[str, ...], tuple[int, LedgerEntry]] = {}
        for made in entries:
            key = tuple(event.model_dump_json() for event in made.events)
            known = steps.get(key, (0, made))[0]
            here = steps_between(unit, made.unit)
            steps[key] = (min(filter(None, (known, here)), default=0), made)
        if steps and all(count for count, _ in steps.values()):
            events = [group_event(event, count) for count, made in steps.values() for event in made.events]
            spent = account(events, max(made.accounted_delta or 0.0 for made in entries))
            if spent.epsilon is not None:
                bounds[kind] = (spent.epsilon, spent.delta)
    return bounds


def read_targets(
    suite: str, system: str, attack: MembershipAttack, params: Params
) -> tuple[type[Recommender], TrainingData, shadows.Targets]:
    """A system's class, all that it may be trained on, and who is attacked: the same for all systems on equal data."""
    experiment = params.suites[suite].experiments[system]
    cls = model_class(experiment.model)
    assert issubclass(cls, Recommender)
    inputs = read_inputs(experiment, params, experiment.config)
    data = inputs.training_data(cls, experiment.seeds[0])
    rng = np.random.default_rng([attack.seed, *b"targets"])
    return cls, data, shadows.choose(data.users, data.items, data.n_users, attack.asked, rng)


def restrict(data: TrainingData, trained: shadows.Bools) -> TrainingData:
    """The same with these interactions alone; nobody's features are left out."""
    ratings = None if data.ratings is None else data.ratings[trained]
    return replace(data, users=data.users[trained], items=data.items[trained], ratings=ratings)


main = runs.stage(work)

if __name__ == "__main__":
    run_stage(main, units=True)
