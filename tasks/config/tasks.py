"""What a suite's systems can be for, and how they can be attacked: one entry each.

Entries name modules of the stages and say what a suite's files must have. Stages import of them only what
`tasks.pipeline.table` lists as their plug-ins; what else an entry says is in dvc.yaml, or decides only what is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from tasks.config import attacks

DECIDES_NOTHING = True


@dataclass(frozen=True)
class Task:
    """What the systems of a suite are for."""

    checks: str
    """In tasks.stages.checks: what released tables and metrics must be."""
    checked_against: tuple[str, ...]
    """Files of the processed data that released tables are checked against; "": all of them."""
    validation: str
    """The metric that chose epochs, with `{k}` for its cut-off; empty for what the report's layout calls it."""
    bands: Mapping[str, float]
    """Names of metrics that training measures, as patterns -> how far the mean over seeds may be from the committed one
    where seeds do not differ (`dprec compare`); the first pattern that fits counts."""
    evaluator: str | None = None
    """Class that validates and tests the models; None where no stage `train` does."""
    trained_by: str = "train"
    """The module of the stage `train@E`."""
    collects: str | None = None
    """Function (suite, params) -> more fields of its results."""
    collected_from: tuple[str, ...] = ()
    """What that function reads of every experiment, apart from its metrics."""
    keys: frozenset[str] = frozenset()
    """Which of OPTIONAL the suite's file must have; it must have no others."""
    tested_by_epoch: bool = False
    """Whether its evaluator can test every epoch (`Experiment.chosen_on_test`)."""
    folds: bool = False
    """Whether seeds are folds, and settings say which share of the ratings is sensitive."""
    networks: bool = False
    """Whether its data are networks of users; only then it may have `embeddings` and `aligned`."""


OPTIONAL = ("evaluation.k", "evaluation.negatives", "evaluation.recall", "training.validation_k")
"""Keys of a suite's file that not every task has."""
TASKS = {
    "top-k": Task(
        evaluator="tasks.stages.evaluators.lists:TopK",
        checks="tasks.stages.checks.lists:TOP_K",
        checked_against=("/interactions.parquet", "/schema.json"),
        validation="",
        collects="tasks.stages.collect_parts:collect_distributions",
        collected_from=("released",),
        bands={"sampled-*": 0.03, "full/*": 0.03, "whole/*": 0.03, "few-*": 0.03, "catalogue/*": 0.03},
        keys=frozenset(OPTIONAL),
    ),
    "fold-in": Task(
        evaluator="tasks.stages.evaluators.held_out:HeldOut",
        checks="tasks.stages.checks.lists:FOLD_IN",
        checked_against=("/interactions.parquet", "/schema.json"),
        validation="",
        bands={"full/*": 0.03},
        keys=frozenset(OPTIONAL) - {"evaluation.negatives"},
    ),
    "next-item": Task(
        evaluator="tasks.stages.evaluators.next_items:NextItem",
        checks="tasks.stages.checks.lists:NEXT_ITEM",
        checked_against=("/interactions.parquet", "/schema.json"),
        validation="Recall@{k}",
        bands=dict.fromkeys(("next/*", "next-new/*", "chosen-on-test/*"), 0.01),  # of a few hundredths at most cut-offs
        tested_by_epoch=True,
        keys=frozenset({"evaluation.k", "training.validation_k"}),
    ),
    "rating": Task(
        evaluator="tasks.stages.evaluators.ratings:Ratings",
        checks="tasks.stages.checks.lists:RATING",
        checked_against=("/folds.parquet", "/schema.json"),
        validation="minus the MAE",
        bands={
            "mae": 0.02,  # of ratings from 1 to 5
            "mae/*": 0.02,
            "communication/*": 0.5,  # counts, which are exact
            "iterations": 100,  # validation ends training, some epochs earlier or later on another processor
        },
        folds=True,
    ),
    "embedding": Task(
        trained_by="train_networks",
        checks="tasks.stages.checks.embedding",
        checked_against=("",),
        validation="",
        bands={
            "alignment/*/found": 100,  # pairs, of 64 to 4980
            "alignment/*": 0.03,
            "*/interests/*": 0.1,  # scores of a classifier, as of attacks
        },
        collects="tasks.stages.collect_parts:collect_networks",
        keys=frozenset({"evaluation.k"}),
        networks=True,
    ),
}
"""`task` of a suite -> what that means."""


@dataclass(frozen=True)
class AttackKind:
    """How released systems can be attacked."""

    module: str
    """The module of tasks.stages that attacks."""
    what: str
    """What it attacks, for messages."""
    bands: Mapping[str, float] = field(default_factory=dict)
    """The same of the metrics that it measures; those of the task come first."""
    task: str | None = None
    """The only task that has this; None: all tasks have."""
    names: tuple[str, ...] = ()
    """Keys of its parameters that name experiments of the suite."""
    each: str | None = None
    """Where every experiment is attacked by itself: function (suite, experiment, setting) -> names of its metrics."""
    rates: tuple[str, ...] = ()
    """Kinds of these metrics, from 0 to 1, that `tasks.quality.metrics` does not know."""
    writes: str | None = None
    """Where it is not each experiment: the folder in data/runs/S/ whose table of that name is collected."""
    reads: tuple[str, ...] = ()
    """What the stage reads, of each experiment besides what this released. `{suite}`, `{data}` and `{splits}` are the
    suite's, `{checked}` all data of the systems that `names` have, with their verdicts; a key of `names` is each of its
    own."""
    keys: tuple[str, ...] = ()
    """What it reads of the suite's params.yaml, besides the systems that `names` have."""
    stages: str = "tasks.pipeline.table_attacks:usual"
    """Function (suite's name, suite) -> its stages (`tasks.pipeline.stage.Stage`)."""
    table: str | None = None
    """Where metrics have all that was found: function (results, overlap of folds) -> `attacks.parquet`."""
    evidence: tuple[str, ...] = ("tasks.results.leakage:USUAL",)
    """How what was found is read and shown (`tasks.results.leakage.Kind`), one section of a page each."""

    def named(self, attack: object) -> dict[str, list[str]]:
        """Key of its parameters -> experiments of the suite that it names."""
        values = {key: getattr(attack, key) for key in self.names}
        return {key: [value] if isinstance(value, str) else [*value] for key, value in values.items()}


def measured_by(attack: AttackKind | None) -> tuple[str, ...]:
    """The stages that measure every experiment by itself."""
    return ("train", "attack") if attack is not None and attack.each else ("train",)


ATTACKS = {
    "attribute": AttackKind(
        module="attack",
        what="attributes to infer",
        bands={
            # an F1 over a fifth of the users, six of the demo's 60; another processor moved it by 0.061
            "attribute/*": 0.1,
            "attribute-random/*": 0.1,
            "attribute-blurred/*": 0.1,
            "blurring/*": 0.1,
        },
        each="tasks.stages.checks.attacks:attribute",
        reads=("data/targets/{suite}.parquet", "data/processed/{splits}/interactions.parquet"),
        stages="tasks.pipeline.table_attacks:attribute",
        evidence=("tasks.results.leakage:ATTRIBUTES",),
    ),
    "edges": AttackKind(
        module="attack_edges",
        what="interactions to attack",
        names=("systems", "control"),
        writes="edges",
        reads=(
            "data/processed/{data}",
            "data/runs/{suite}/{systems}/train",
            "data/runs/{suite}/{control}/train",
            "data/quality/recommendations/{systems}.json",
        ),
        keys=("evaluation.seed",),
        evidence=("tasks.results.leakage:INTERACTIONS",),
    ),
    "membership": AttackKind(
        module="attack_membership",
        what="members to tell from others",
        task="top-k",
        names=("systems", "fewer"),
        writes="membership",
        reads=("{checked}",),
        evidence=("tasks.results.leakage:MEMBERSHIP",),
    ),
    "reconstruction": AttackKind(
        module="attack_ratings",
        what="ratings to reconstruct",
        bands={"reconstruction/*": 0.03},
        task="rating",
        each="tasks.stages.checks.attacks:reconstruction",
        keys=("experiments.${key}",),
        table="tasks.results.attacked:ratings",
        evidence=("tasks.results.leakage:RATINGS",),
    ),
    "embeddings": AttackKind(
        module="attack_embeddings",
        what="embeddings to attack",
        bands={
            "anchors/*": 0.03,
            # scores of a classifier on every attribute of every network
            "*/links/*": 0.1,
            "*/micro-f1": 0.1,
            "*/precision": 0.1,
            "*/precision-swapped": 0.1,
            "*/precision-weighted": 0.1,
        },
        task="embedding",
        each="tasks.stages.checks.attacks:embeddings",
        rates=("tpr", "share"),
        stages="tasks.pipeline.table_attacks:embeddings",
        table="tasks.results.attacked:vectors",
        evidence=("tasks.results.leakage:VECTORS", "tasks.results.leakage:ACCOUNTS"),
    ),
}
"""`kind` of a suite's attack -> what that means."""
Attack = (
    attacks.AttributeAttack
    | attacks.EdgeAttack
    | attacks.EmbeddingAttack
    | attacks.MembershipAttack
    | attacks.ReconstructionAttack
)
"""What a suite's own file may say of attacks."""


def resolve(target: str) -> Any:
    """The module, or its attribute, that `module` or `module:attribute` names."""
    module, _, attribute = target.partition(":")
    loaded = import_module(module)
    return getattr(loaded, attribute) if attribute else loaded
