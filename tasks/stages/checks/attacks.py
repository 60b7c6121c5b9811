"""What attacks measure of every experiment, setting by setting."""

from __future__ import annotations

from itertools import product

from tasks.config.attacks import AttributeAttack, EmbeddingAttack
from tasks.config.fields import BASE
from tasks.config.params import Experiment, Suite
from tasks.core import contracts
from tasks.pipeline.common import PROCESSED
from tasks.quality.metrics import Names, embedding_attack_metrics
from tasks.stages.checks.embedding import schemas


def attribute(suite: Suite, _: Experiment, setting: str) -> Names:
    """Of attribute inference (docs/methods.md §7); k = 0 is the ratings-only attacker."""
    attack, names = suite.attack, Names()
    assert isinstance(attack, AttributeAttack)
    chosen, controls = attack.attackers_at(setting), attack.control_k if setting == BASE else []
    seeing = {k: attack.seeing(chosen.attackers, k) for k in (0, *chosen.k, *controls)}
    for feature in contracts.read_schema(PROCESSED / suite.data / "schema.json").sensitive:
        names.append((f"attribute/{feature.name}/majority/f1", 0))
        for kind, k in product(("f1", "advantage"), (0, *chosen.k)):
            names += [(f"attribute/{feature.name}/{attacker}/{kind}", k) for attacker in seeing[k]]
        names += [(f"attribute-random/{feature.name}/{attacker}/f1", k) for k in controls for attacker in seeing[k]]
    return names


def reconstruction(_: Suite, experiment: Experiment, setting: str) -> Names:
    """Of the reconstruction of ratings (docs/methods.md §7): where some of them are sensitive, and not all."""
    return [("reconstruction/public/mae", None)] * (0 < experiment.settings()[setting]["sensitive_share"] < 1)


def embeddings(suite: Suite, experiment: Experiment, _: str) -> Names:
    """Of attacks on embeddings."""
    attack = suite.attack
    assert isinstance(attack, EmbeddingAttack)
    joint = experiment.features.startswith("aligned/")
    return embedding_attack_metrics(schemas(suite.data), attack.k, joint)
