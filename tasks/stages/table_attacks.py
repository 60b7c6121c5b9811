"""The part of the table that is about attacks and audits of training: the stages of each kind, for one suite."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tasks.config.attacks import AttributeAttack, EdgeAttack, MembershipAttack
from tasks.config.networks import held_out
from tasks.config.params import Experiment, Suite
from tasks.fingerprints import Plugin
from tasks.stages.stage import Items, Stage, checked, inherited_keys, model, names

DECIDES_NOTHING = True


def attribute(name: str, suite: Suite) -> Iterator[Stage]:
    """On attributes of targets who were chosen once, from each experiment's lists."""
    attack = suite.attack
    assert isinstance(attack, AttributeAttack)
    data, targets = f"data/processed/{suite.data}", f"data/targets/{name}.parquet"
    yield Stage(
        "targets",
        {name: {}},
        deps=(f"{data}/schema.json", f"{data}/users.parquet", f"data/quality/processed/{suite.data}.json"),
        outs=(targets,),
        params={f"suites/{name}/attack.yaml": ("attack.split_seed", "attack.target_share")},
    )
    attackers = [Plugin("tasks.attacks", "ATTACKERS", attacker) for attacker in attack.attackers]
    yield _of_experiments("attack", name, suite, deps=(targets,), plugins=attackers, decides=_named_parts)


def reconstruction(name: str, suite: Suite) -> Iterator[Stage]:
    """On ratings that users keep to themselves, from what each experiment's parties exchanged."""
    yield _of_experiments("attack-ratings", name, suite, keys=("experiments.${key}",))


def embeddings(name: str, suite: Suite) -> Iterator[Stage]:
    """On each experiment's embeddings of users."""

    def joint(experiment: Experiment) -> list[Any]:
        """Next to those, the model, which says whether both networks are in one space, and which anchors judge."""
        split = held_out(experiment.features, suite.aligned)
        return [experiment.model, *([list(split)] if split else []), *_named_parts(experiment)]

    yield _of_experiments("attack-embeddings", name, suite, decides=joint)


def edges(name: str, suite: Suite) -> Iterator[Stage]:
    """On single interactions, of all systems together."""
    attack = suite.attack
    assert isinstance(attack, EdgeAttack)
    systems = [*attack.systems, attack.control]
    deps = (
        f"data/processed/{suite.data}",
        *(f"data/runs/{name}/{system}/train" for system in systems),
        *(f"data/quality/recommendations/{system}.json" for system in attack.systems),
    )
    decides = [[system, *names(suite.experiments[system])] for system in systems]
    yield _of_suite("attack-edges", name, suite, systems, deps, "edges", decides, keys=("evaluation.seed",))


def membership(name: str, suite: Suite) -> Iterator[Stage]:
    """On membership, of all systems together; it trains them itself."""
    attack = suite.attack
    assert isinstance(attack, MembershipAttack)
    layers = {suite.experiments[system].features for system in attack.systems} | {f"processed/{suite.data}"}
    yield _of_suite(
        "attack-membership", name, suite, attack.systems, checked(*sorted(layers)), "membership", list(attack.systems)
    )


def audit_training(name: str, suite: Suite) -> Stage:
    """One training run with canaries of each audited setting."""
    assert suite.training_audit is not None
    audited, data = [*suite.training_audit.experiments], f"processed/{suite.data}"
    layers = sorted({suite.experiments[key].features for key in audited} | {data})
    deps = (
        f"data/{data}/interactions.parquet",
        f"data/{data}/schema.json",
        *(f"data/{layer}" for layer in layers if not layer.startswith("processed/")),
        *(f"data/quality/{layer}.json" for layer in layers),
    )
    return _of_suite("audit-training", name, suite, audited, deps, "one_run.json", [], section="training_audit")


def _named_parts(experiment: Experiment) -> list[Any]:
    """Next to settings and seeds the system, whose name results have; no parameter of these stages says it."""
    return [experiment.system, *names(experiment)]


def _of_experiments(
    stage: str,
    name: str,
    suite: Suite,
    *,
    deps: tuple[str, ...] = (),
    keys: tuple[str, ...] = (),
    plugins: Sequence[Plugin] = (),
    decides: Callable[[Experiment], list[Any]] = names,
) -> Stage:
    """A stage that attacks every experiment by itself; settings and seeds are those of what was released."""
    runs = f"data/runs/{name}"
    items: Items = {key: {"data": experiment.data} for key, experiment in suite.experiments.items()}
    released = f"{runs}/${{key}}/released", "data/quality/recommendations/${key}.json"
    more = {f"suites/{name}/params.yaml": (*inherited_keys(suite, "experiments"), *keys)} if keys else {}
    return Stage(
        stage,
        items,
        deps=("data/processed/${item.data}", *released, *deps),
        outs=(f"{runs}/${{key}}/attack",),
        params={f"suites/{name}/attack.yaml": ("attack",)} | more,
        plugins=lambda _: plugins,
        decides=lambda key: decides(suite.experiments[key]),
    )


def _of_suite(
    stage: str,
    name: str,
    suite: Suite,
    systems: Sequence[str],
    deps: tuple[str, ...],
    writes: str,
    decides: list[Any],
    keys: tuple[str, ...] = (),
    section: str = "attack",
) -> Stage:
    """A stage that attacks systems of a suite together."""
    keys = (*keys, *inherited_keys(suite, "experiments"), *(f"experiments.{system}" for system in systems))
    return Stage(
        stage,
        {name: {}},
        deps=deps,
        outs=(f"data/runs/{name}/{writes}",),
        params={f"suites/{name}/attack.yaml": (section,), f"suites/{name}/params.yaml": keys},
        plugins=lambda _: [model(suite.experiments[system].model) for system in systems],
        decides=lambda _: decides,
    )
