"""The part of the table that is about attacks: the stages of each kind, for one suite."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tasks.config.attacks import AttributeAttack, EdgeAttack, MembershipAttack
from tasks.config.params import Experiment, Suite
from tasks.fingerprints import Plugin
from tasks.stages.held_out import held_out
from tasks.stages.stage import Items, Stage, inherited_keys, model, names

DECIDES_NOTHING = True


def attribute(name: str, suite: Suite) -> Iterator[Stage]:
    """On attributes of everybody who was chosen once, from each experiment's lists."""
    attack = suite.attack
    assert isinstance(attack, AttributeAttack)
    data, targets = f"data/processed/{suite.data}", f"data/targets/{name}.parquet"
    yield Stage(
        "targets",
        "targets",
        {name: {}},
        deps=(f"{data}/schema.json", f"{data}/users.parquet", f"data/quality/processed/{suite.data}.json"),
        outs=(targets,),
        params={_file(name): ("attack.split_seed", "attack.target_share")},
    )
    attackers = [Plugin("tasks.attacks", "ATTACKERS", attacker) for attacker in attack.attackers]
    yield _attack_stage("attack", name, suite, deps=(targets,), plugins=attackers, decides=_named_parts)


def edges(name: str, suite: Suite) -> Iterator[Stage]:
    """On single interactions, of all systems together."""
    attack = suite.attack
    assert isinstance(attack, EdgeAttack)
    systems, runs = [*attack.systems, attack.control], f"data/runs/{name}"
    keys = ("evaluation.seed", *inherited_keys(suite, "experiments"), *(f"experiments.{system}" for system in systems))
    yield Stage(
        "attack-edges",
        "attack_edges",
        {name: {}},
        deps=(
            f"data/processed/{suite.data}",
            *(f"{runs}/{system}/train" for system in systems),
            *(f"data/quality/recommendations/{system}.json" for system in attack.systems),
        ),
        outs=(f"{runs}/edges",),
        params={_file(name): ("attack",), f"suites/{name}/params.yaml": keys},
        plugins=lambda _: [model(suite.experiments[system].model) for system in systems],
        decides=lambda _: [[system, *names(suite.experiments[system])] for system in systems],
    )


def membership(name: str, suite: Suite) -> Iterator[Stage]:
    """On membership, of all systems together; it trains them itself."""
    attack = suite.attack
    assert isinstance(attack, MembershipAttack)
    layers = {suite.experiments[system].features for system in attack.systems} | {f"processed/{suite.data}"}
    keys = (*inherited_keys(suite, "experiments"), *(f"experiments.{system}" for system in attack.systems))
    yield Stage(
        "attack-membership",
        "attack_membership",
        {name: {}},
        deps=tuple(f"data/{part}" for layer in sorted(layers) for part in (layer, f"quality/{layer}.json")),
        outs=(f"data/runs/{name}/membership",),
        params={_file(name): ("attack",), f"suites/{name}/params.yaml": keys},
        plugins=lambda _: [model(suite.experiments[system].model) for system in attack.systems],
        decides=lambda _: list(attack.systems),
    )


def reconstruction(name: str, suite: Suite) -> Iterator[Stage]:
    """On ratings that users keep to themselves, from what each experiment's parties exchanged."""
    further = {f"suites/{name}/params.yaml": (*inherited_keys(suite, "experiments"), "experiments.${key}")}
    yield _attack_stage("attack-ratings", name, suite, further=further)


def embeddings(name: str, suite: Suite) -> Iterator[Stage]:
    """On each experiment's embeddings of users."""

    def joint(experiment: Experiment) -> list[Any]:
        """Beside those, the model, which says whether both networks are in one space, and which anchors judge."""
        split = held_out(experiment.features, suite.aligned)
        return [experiment.model, *([list(split)] if split else []), *_named_parts(experiment)]

    yield _attack_stage("attack-embeddings", name, suite, decides=joint)


def _named_parts(experiment: Experiment) -> list[Any]:
    """Beside settings and seeds the system, whose name results have; no parameter of these stages says it."""
    return [experiment.system, *names(experiment)]


def _file(name: str) -> str:
    return f"suites/{name}/attack.yaml"


def _attack_stage(
    stage: str,
    name: str,
    suite: Suite,
    *,
    deps: tuple[str, ...] = (),
    further: dict[str, tuple[str, ...]] | None = None,
    plugins: Sequence[Plugin] = (),
    decides: Callable[[Experiment], list[Any]] = names,
) -> Stage:
    """A stage that attacks every experiment by itself; settings and seeds are those of what was released."""
    runs = f"data/runs/{name}"
    items: Items = {key: {"data": experiment.data} for key, experiment in suite.experiments.items()}
    return Stage(
        stage,
        stage.replace("-", "_"),
        items,
        deps=(
            "data/processed/${item.data}",
            f"{runs}/${{key}}/released",
            "data/quality/recommendations/${key}.json",
            *deps,
        ),
        outs=(f"{runs}/${{key}}/attack",),
        params={_file(name): ("attack",)} | (further or {}),
        plugins=lambda _: plugins,
        decides=lambda key: decides(suite.experiments[key]),
    )
