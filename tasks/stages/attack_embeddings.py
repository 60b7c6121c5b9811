"""Stage `attack-embeddings`: what the released embeddings of one experiment give away about the users.

Reads what a deployed system exposes, data/runs/<suite>/<experiment>/released/SETTING/NETWORK/seed-S.parquet, and of the
processed data what the attacker knows and is judged on: classes of a part of the users, some pairs, some people's
accounts in both networks. Sensitive attributes are guessed by logistic regression where there are two classes and by a
decision tree where there are more (DP-CroSUE, section 5.3); friendships are stolen; where the users of two networks are
in one space, accounts are matched. The true friendships count, whatever the embeddings were trained on. Of a system
that was trained on true anchors those judge that it was not given. What a network has not is not attacked.

Splits, pairs and halves depend on the suite's seed and the run's alone, so systems are compared pair by pair; the
controls (the attributes, the numbers of friends, random vectors) are experiments like all others. Writes
data/runs/<suite>/<experiment>/attack/.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from tasks.attacks.embeddings.anchors import reidentify_tested
from tasks.attacks.embeddings.links import steal
from tasks.config.attacks import EmbeddingAttack
from tasks.config.networks import held_out
from tasks.core import contracts
from tasks.core.contracts import Feature, ProcessedTables
from tasks.core.errors import DataError
from tasks.datasets.encoding import UNKNOWN, classes
from tasks.evaluation.alignment import Anchors, similarity_scorer
from tasks.evaluation.classification import (
    Classifier,
    Vectors,
    decision_tree,
    logistic_regression,
    predict_classes,
    scores,
    split_seed,
)
from tasks.evaluation.metrics import Record, record
from tasks.models import model_class
from tasks.models.user_networks.base import PairEmbedder
from tasks.pipeline.common import PROCESSED, digest, file_digest
from tasks.stages.attacks import ExperimentAttack, Unit
from tasks.stages.network_files import embedded_networks, embedding_file, read_anchors, read_vectors

if TYPE_CHECKING:
    from tasks.core.rows import Row

BOTH = "both"
"""The part of a release that is attacked when the accounts of both networks are matched."""


class Part(NamedTuple):
    """One network of one setting and seed, or both together."""

    setting: str
    seed: int
    part: str


class VectorAttack(ExperimentAttack[EmbeddingAttack, Part]):
    """Every part of every setting and seed is a unit."""

    stage, kind = "attack-embeddings", EmbeddingAttack

    @override
    def plan(self) -> Iterator[Unit[Part]]:
        truth = {name: digest(*_files(network)) for name, network in self.networks.items()}
        if BOTH in self.parts:
            truth[BOTH] = f"{digest(self.pair.folder / 'anchors.parquet')} {self.judging}"
        for setting in self.experiment.settings():
            for seed in self.experiment.seeds:
                for part in self.parts:
                    tables = self.tables(setting, seed, part).values()
                    decides = [file_digest(table) for table in tables], truth[part], seed, part
                    yield self.unit(f"{setting}-seed-{seed}-{part}", Part(setting, seed, part), *decides)

    @override
    def attack(self, target: Part, _: Path, __: Callable[[int], None]) -> list[Record]:
        seed, part = split_seed(self.options.seed, target.seed), target.part
        vectors = {
            network: read_vectors(path, self.networks[network].schema.n_users)
            for network, path in self.tables(*target).items()
        }
        if part == BOTH:
            first, second = vectors.values()
            return match_accounts(first, second, self.anchors, self.options, seed)
        metrics = attack_links(part, vectors[part], self.friends[part], self.options, seed)
        for feature in self.networks[part].schema.sensitive:
            metrics += guesses(part, vectors[part], feature, self.classes[part][feature.name], seed)
        return metrics

    @override
    def write(self, units: list[Unit[Part]], path: Path) -> Row:
        rows = [
            {"setting": unit.target.setting, "seed": unit.target.seed} | metric
            for unit in units
            for metric in unit.result()
        ]
        self.write_metrics(rows, path)
        totals: dict[str, int] = {}
        for name, labels in self.classes.items():
            totals |= {f"{name}/{feature}": int((values != UNKNOWN).sum()) for feature, values in labels.items()}
            totals[f"{name}/links"] = len(self.friends[name])
        return {"known": totals | ({"anchors": len(self.anchors.test)} if BOTH in self.parts else {})}

    @cached_property
    def pair(self) -> ProcessedTables:
        """The processed networks."""
        return contracts.read_processed(PROCESSED / self.data)

    @cached_property
    def networks(self) -> dict[str, ProcessedTables]:
        """Those whose users are embedded."""
        return embedded_networks(self.pair)

    @property
    def parts(self) -> list[str]:
        """What is attacked at a time: each network, and both together where their users are in one space."""
        joint = issubclass(model_class(self.experiment.model), PairEmbedder) and len(self.networks) == 2
        return [*self.networks, *([BOTH] if joint else [])]

    def tables(self, setting: str, seed: int, part: str) -> dict[str, Path]:
        """Network -> the embedding that a part is about."""
        names = self.networks if part == BOTH else (part,)
        return {name: embedding_file(self.released, setting, name, seed) for name in names}

    @property
    def judging(self) -> tuple[float, int] | None:
        """Share and seed of the anchors that judge, where the model was trained on others; None: all judge."""
        return held_out(self.experiment.features, self.params.aligned)

    @cached_property
    def anchors(self) -> Anchors:
        """Accounts of the same people in the first and in the second network."""
        true = read_anchors(self.pair.folder).astype(np.int64)
        return Anchors.split(true, *self.judging) if self.judging else Anchors(true, true[:0], true)

    @cached_property
    def classes(self) -> dict[str, dict[str, NDArray[np.int64]]]:
        """Network -> sensitive attribute -> (n_users,) class or `UNKNOWN`."""
        return {name: _classes(network) for name, network in self.networks.items()}

    @cached_property
    def friends(self) -> dict[str, NDArray[np.int32]]:
        """Network -> (n_links, 2) true friendships or follows."""
        tables = {
            name: contracts.read(network.folder / "social.parquet", contracts.SOCIAL)
            for name, network in self.networks.items()
        }
        return {name: table.select("source", "target").to_numpy() for name, table in tables.items()}


def _files(network: ProcessedTables) -> list[Path]:
    """Of a processed network, those that are read."""
    tables = ["social.parquet", *(["users.parquet"] if network.schema.sensitive else [])]
    return [network.folder / name for name in ("schema.json", *tables)]


def _classes(network: ProcessedTables) -> dict[str, NDArray[np.int64]]:
    """Sensitive attribute -> (n_users,) class or `UNKNOWN`.

    Raises:
        DataError: the table is not what its contract says; an attribute is a number or known of fewer than two.
    """
    schema, path = network.schema, network.folder / "users.parquet"
    if not schema.sensitive:
        return {}
    labels = classes(contracts.read(path, contracts.users_schema(schema.features)), schema.sensitive)
    for name, values in labels.items():
        if (count := np.count_nonzero(values != UNKNOWN)) < 2:
            raise DataError(
                f"{path}: {name!r} is known of {count} users, and guessing it takes one to learn from and one to "
                "test; make it no sensitive attribute, or take more users"
            )
    return labels


def guesses(network: str, vectors: Vectors, feature: Feature, labels: NDArray[np.int64], seed: int) -> list[Record]:
    """How well a sensitive attribute is guessed from the vectors: metrics NET/ATTRIBUTE/...

    Args:
        labels: (n_users,) class or `UNKNOWN`; users of unknown class are neither trained nor tested on.
    """
    return scores(f"{network}/{feature.name}", predict_classes(vectors, labels, classifier(feature), seed=seed))


def classifier(feature: Feature) -> Classifier:
    """Who guesses an attribute in DP-CroSUE: logistic regression one of two classes, a decision tree one of several."""
    n_classes = len(feature.categories) - (feature.unknown is not None)
    return logistic_regression if n_classes <= 2 else decision_tree


def attack_links(
    network: str, vectors: Vectors, friends: NDArray[np.int32], options: EmbeddingAttack, seed: int
) -> list[Record]:
    """How well friends are distinguished from others: metrics NET/links/ATTACKER/{auc, tpr}."""
    thefts = steal(vectors, friends, pairs=options.pairs, known_share=options.known_share, seed=seed)
    return [
        record(f"{network}/links/{theft.attacker}/{kind}", getattr(theft, kind).value)
        for theft in thefts
        for kind in ("auc", "tpr")
    ]


def match_accounts(
    first: Vectors, second: Vectors, anchors: Anchors, options: EmbeddingAttack, seed: int
) -> list[Record]:
    """How well accounts of one person are matched by the cosine of their vectors: metrics anchors/...

    Judged on the tested anchors alone. anchors/confident/precision is absent where the confident attacker names no one.
    """
    matches = reidentify_tested(
        similarity_scorer(first, second), anchors, len(first), seed=seed, ks=options.k, wanted=options.wanted_precision
    )
    metrics = [record("anchors/precision", share.value, k) for k, share in matches.at.items()]
    metrics.append(record("anchors/confident/share", matches.confident.share.value))
    if matches.confident.precision is not None:
        metrics.append(record("anchors/confident/precision", matches.confident.precision))
    return metrics


work, main = VectorAttack.commands(__name__)
