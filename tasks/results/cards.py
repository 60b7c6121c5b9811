"""The privacy card of a system: the same typed fields for every one, in ids and numbers, as JSON.

Its sections are those of OpenDP's registry of deployments. A system of a benchmark is no deployment: the form is for
whoever deploys it. Where no finite ε follows there are no `privacy_parameters`, and `reasons` say why.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from tasks.privacy.accounting.ledger import Accounting, Noise
from tasks.privacy.audits.unaudited import is_private, reason
from tasks.privacy.terms import (
    Condition,
    Explanation,
    KnownGap,
    Level,
    Mechanism,
    Neighbouring,
    Observer,
    Protected,
    Unaudited,
    Unit,
)
from tasks.results.budgets import accounted, level, worst
from tasks.results.facts import BASE, Facts, Kind, System
from tasks.results.load import Line, Results
from tasks.results.standings import Measure


class Basic(Facts):
    """What the system is."""

    name: str
    model: str
    suite: str
    experiment: str
    title: str
    """Of the suite."""
    dataset: str
    kind: Kind
    """Whether the data are real, a part of them, or synthetic."""
    stands_for: str
    """Published data set that these are a replica or a part of; empty for themselves."""


class Utility(Facts):
    """What it reaches, next to noisy popularity."""

    metric: str
    lower_is_better: bool
    mean: float
    std: float | None
    runs: int
    noisy_popularity: float | None


class Parameters(Facts):
    """A finite budget."""

    epsilon: float
    delta: float


class Audit(Facts):
    """What audits prove, at most."""

    epsilon: float
    """Lower bound."""
    provable: float
    """The largest bound that so many samples could prove."""
    verdict: str


class Loss(Facts):
    """What is spent at one level, by all releases of one run."""

    level: Level
    units: tuple[Unit, ...]
    neighbouring: tuple[Neighbouring, ...]
    observers: tuple[Observer, ...]
    claimed: float | None
    privacy_parameters: Parameters | None
    conditions: tuple[Condition, ...]
    reasons: tuple[Explanation, ...]
    """Why there is no finite ε; empty where there is one."""
    audit: Audit | None
    unaudited: tuple[Unaudited, ...]
    """Why there is no audit."""


class Accounted(Facts):
    """A line of the ledger."""

    protects: Protected
    unit: Unit
    neighbouring: Neighbouring
    observer: Observer
    mechanism: Mechanism
    accounting: Accounting
    claimed: float | None
    privacy_parameters: Parameters | None


class Implementation(Facts):
    """How to run it again."""

    command: str
    commits: tuple[str, ...]
    seeds: tuple[int, ...]
    configuration: dict[str, Any]
    noise: tuple[Noise, ...]


class Administrative(Facts):
    """Where its data are from."""

    source: str
    address: str
    licence: str


class Card(Facts):
    """A system at setting `base`."""

    basic: Basic
    utility: Utility | None
    privacy_loss: tuple[Loss, ...]
    accounting: tuple[Accounted, ...]
    gaps: tuple[KnownGap, ...]
    """What is known to lie between the guarantees and the run."""
    implementation: Implementation
    administrative: Administrative


def card(results: Results, system: System, by: Measure) -> Card:
    """The card of a system; one without a private line has what it lacks."""
    lines = [line for line in results.lines if (line.experiment, line.setting) == (system.experiment, BASE)]
    levels = dict.fromkeys(level(line.entry) for line in lines)
    entries = [line.entry for line in lines]
    runs = [run.revision for run in results.runs if run.name == system.experiment]
    suite = results.suite
    return Card(
        basic=Basic(
            **{name: getattr(system, name) for name in ("model", "experiment", "dataset")},
            **{name: getattr(suite, name) for name in ("suite", "title", "kind", "stands_for")},
            name=system.label,
        ),
        utility=_utility(results, system, by),
        privacy_loss=tuple(_loss(each, [line for line in lines if level(line.entry) == each]) for each in levels),
        accounting=_once(
            Accounted(
                **entry.model_dump(include={*Accounted.model_fields}),
                claimed=entry.claimed_epsilon,
                privacy_parameters=_parameters(entry.accounted_epsilon, entry.accounted_delta),
            )
            for entry in entries
        ),
        gaps=_once(gap for entry in entries if is_private(entry) for gap in entry.gaps),
        implementation=Implementation(
            command=f"dvc repro suites/{suite.suite}/dvc.yaml:train@{system.experiment}",
            commits=_once(runs),
            seeds=system.seeds,
            configuration=system.config,
            noise=_once(entry.noise for entry in entries if is_private(entry)),
        ),
        administrative=Administrative(
            source=suite.source.dataset, address=suite.source.address, licence=suite.source.licence
        ),
    )


def _utility(results: Results, system: System, by: Measure) -> Utility | None:
    means = {"experiment": system.experiment, "setting": BASE, "metric": by.metric, "k": by.k}
    mean = results.means.filter(**means)
    if mean.is_empty():
        return None
    noisy = next((other.experiment for other in results.suite.compared if other.label == by.noisy), "")
    row = mean.row(0, named=True)
    return Utility(
        metric=by.label,
        lower_is_better=by.lower,
        mean=row["mean"],
        std=row["std"],
        runs=row["n"],
        noisy_popularity=results.mean(noisy, by.metric, by.k),
    )


def _loss(at: Level, lines: Sequence[Line]) -> Loss:
    entries = [line.entry for line in lines]
    audits = [line.audit for line in lines if line.audit is not None]
    spent = accounted(lines)
    endless = [entry for entry in entries if entry.accounted_epsilon is None]
    return Loss(
        level=at,
        units=_once(entry.unit for entry in entries),
        neighbouring=_once(entry.neighbouring for entry in entries),
        observers=_once(entry.observer for entry in entries),
        claimed=max((entry.claimed_epsilon for entry in entries if entry.claimed_epsilon is not None), default=None),
        privacy_parameters=_parameters(
            None if math.isinf(spent) else spent, max(entry.accounted_delta for entry in entries)
        ),
        conditions=_once(
            condition for entry in entries if entry.accounted_epsilon is not None for condition in entry.given
        ),
        reasons=_once(why for entry in endless for why in entry.reasons),
        audit=Audit(
            epsilon=max(audit["audited_epsilon"] for audit in audits),
            provable=max(audit["provable"] for audit in audits),
            verdict=worst(audit["verdict"] for audit in audits) or "",
        )
        if audits
        else None,
        unaudited=()
        if audits
        else _once(why for entry in entries if is_private(entry) and (why := reason(entry)) is not None),
    )


def _parameters(epsilon: float | None, delta: float) -> Parameters | None:
    return None if epsilon is None else Parameters(epsilon=epsilon, delta=delta)


def _once(values: Any) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(values))


def schema() -> str:
    """JSON schema of cards."""
    made = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:dprec:card"}
    return json.dumps(made | Card.model_json_schema(mode="serialization"), indent=1) + "\n"
