"""What attacks measure of every experiment, setting by setting."""

from __future__ import annotations

from tasks import contracts
from tasks.config.attacks import AttributeAttack, EmbeddingAttack
from tasks.config.fields import BASE
from tasks.config.params import Experiment, Suite
from tasks.quality.metrics import attack_metrics, embedding_attack_metrics, reconstruction_metrics
from tasks.stages.checks.embedding import schemas
from tasks.stages.checks.subject import Names
from tasks.stages.common import PROCESSED


def attribute(suite: Suite, _: Experiment, setting: str) -> Names:
    """Of attribute inference."""
    attack = suite.attack
    assert isinstance(attack, AttributeAttack)
    attributes = [feature.name for feature in contracts.read_schema(PROCESSED / suite.data / "schema.json").sensitive]
    attackers, controls = attack.attackers_at(setting), attack.control_k if setting == BASE else []
    return attack_metrics(attackers.k, attributes, lambda k: attack.seeing(attackers.attackers, k), controls)


def reconstruction(_: Suite, experiment: Experiment, setting: str) -> Names:
    """Of the reconstruction of ratings."""
    return reconstruction_metrics(experiment.settings()[setting]["sensitive_share"])


def embeddings(suite: Suite, experiment: Experiment, _: str) -> Names:
    """Of attacks on embeddings."""
    attack = suite.attack
    assert isinstance(attack, EmbeddingAttack)
    joint = experiment.features.startswith("aligned/")
    return embedding_attack_metrics(schemas(suite.data), attack.k, joint)
