"""The part of the table that is about attacks and audits of training: the stages of each kind, for one suite."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, product
from string import Formatter

from tasks.config.attacks import Attackers
from tasks.config.networks import held_out
from tasks.config.params import Experiment, Suite
from tasks.core.fingerprints import Plugin
from tasks.pipeline.stage import Stage, checked, inherited_keys, model, names

DECIDES_NOTHING = True


def usual(name: str, suite: Suite) -> Iterator[Stage]:
    """What a kind of attack has: one stage, of each experiment or, where that `writes` a table, of systems together."""
    attack, kind, runs = suite.attack, suite.attack_kind, f"data/runs/{name}/${{key}}"
    assert attack is not None
    assert kind is not None
    stage, named = kind.module.replace("_", "-"), kind.named(attack)
    systems = [*dict.fromkeys(chain.from_iterable(named.values()))]
    layers = {suite.experiments[system].features for system in systems} | {f"processed/{suite.data}"}
    known = named | {
        "suite": [name],
        "data": [suite.data],
        "splits": suite.splits,
        "checked": [*checked(*sorted(layers))],
    }
    reads = [path for pattern in kind.reads for path in _filled(pattern, known)]
    if kind.writes is not None:
        yield _of_suite(stage, name, suite, systems, reads, kind.writes, kind.keys)
        return
    attackers = attack.attackers if isinstance(attack, Attackers) else []
    keys = {f"suites/{name}/params.yaml": (*inherited_keys(suite, "experiments"), *kind.keys)} if kind.keys else {}
    released = f"{runs}/released", "data/quality/recommendations/${key}.json"
    yield Stage(
        stage,
        {key: {"data": experiment.data} for key, experiment in suite.experiments.items()},
        deps=("data/processed/${item.data}", *released, *reads),
        outs=(f"{runs}/attack",),
        params={f"suites/{name}/attack.yaml": ("attack",)} | keys,
        plugins=lambda _: [Plugin("tasks.attacks", "ATTACKERS", attacker) for attacker in attackers],
        decides=lambda key: _named(suite.experiments[key]),
    )


def _filled(pattern: str, known: Mapping[str, list[str]]) -> Iterator[str]:
    """A pattern with each of the texts that its fields stand for."""
    fields = [field for _, field, *_ in Formatter().parse(pattern) if field]
    for texts in product(*(known[field] for field in fields)):
        yield pattern.format(**dict(zip(fields, texts, strict=True)))


def attribute(name: str, suite: Suite) -> Iterator[Stage]:
    """On attributes of targets who were chosen once."""
    data = f"data/processed/{suite.data}"
    yield Stage(
        "targets",
        {name: {}},
        deps=(f"{data}/schema.json", f"{data}/users.parquet", f"data/quality/processed/{suite.data}.json"),
        outs=(f"data/targets/{name}.parquet",),
        params={f"suites/{name}/attack.yaml": ("attack.split_seed", "attack.target_share")},
    )
    yield from usual(name, suite)


def embeddings(name: str, suite: Suite) -> Iterator[Stage]:
    """The model, too, decides: it says whether both networks are in one space, and which anchors judge."""
    (stage,) = usual(name, suite)

    def decides(key: str) -> list[object]:
        experiment = suite.experiments[key]
        split = held_out(experiment.features, suite.aligned)
        return [experiment.model, *([list(split)] if split else []), *_named(experiment)]

    yield replace(stage, decides=decides)


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
    return _of_suite("audit-training", name, suite, audited, deps, "one_run.json", section="training_audit")


def _named(experiment: Experiment) -> list[object]:
    """The system, settings and seeds, as outputs have them."""
    return [experiment.system, *names(experiment)]


def _of_suite(
    stage: str,
    name: str,
    suite: Suite,
    systems: Sequence[str],
    deps: Iterable[str],
    writes: str,
    keys: tuple[str, ...] = (),
    section: str = "attack",
) -> Stage:
    """A stage that attacks systems of a suite together."""
    keys = (*keys, *inherited_keys(suite, "experiments"), *(f"experiments.{system}" for system in systems))
    return Stage(
        stage,
        {name: {}},
        deps=(*deps,),
        outs=(f"data/runs/{name}/{writes}",),
        params={f"suites/{name}/attack.yaml": (section,), f"suites/{name}/params.yaml": keys},
        plugins=lambda _: [model(suite.experiments[system].model) for system in systems],
        decides=lambda _: [[system, *names(suite.experiments[system])] for system in systems],
    )
