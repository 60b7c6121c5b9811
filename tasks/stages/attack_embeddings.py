"""Stage `attack-embeddings`: what the released embeddings of one experiment give away about the users.

Reads what a deployed system exposes, data/runs/<suite>/<experiment>/released/SETTING/NETWORK/seed-S.parquet, and of the
processed data what the attacker knows and is judged on: classes of a part of the users, some pairs, some people's
accounts in both networks. Sensitive attributes are guessed by logistic regression where there are two classes and by a
decision tree where there are more (DP-CroSUE, section 5.3); friendships are stolen; where the users of two networks are
in one space, accounts are matched. The true friendships count, whatever the embeddings were learnt from. Of a system
that was trained on true anchors those judge that it was not given. What a network has not is not attacked.

Splits, pairs and halves depend on the suite's seed and the run's alone, so systems are compared pair by pair; the
controls (the attributes, the numbers of friends, random vectors) are experiments like all others. Writes
data/runs/<suite>/<experiment>/attack/. Every finished unit, one network of one setting and seed or both together, is
kept under data/checkpoints/, named by everything that decides it, so that a rerun goes on where it stopped.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks import contracts
from tasks.attacks.embeddings.anchors import reidentify_tested
from tasks.attacks.embeddings.links import steal
from tasks.config.attacks import EmbeddingAttack
from tasks.config.params import Experiment, attack_of, entry, load
from tasks.contracts import Feature, ProcessedTables
from tasks.datasets.encoding import UNKNOWN, classes
from tasks.errors import DataError
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
from tasks.stages import runs
from tasks.stages.code import fingerprint
from tasks.stages.command import run_stage
from tasks.stages.common import (
    CHECKPOINTS,
    PROCESSED,
    RUNS,
    atomic_write,
    digest,
    file_digest,
    require_passed,
    write_json,
)
from tasks.stages.held_out import held_out
from tasks.stages.network_files import embedded_networks, embedding_file, read_vectors
from tasks.stages.screen import Screen

KEPT, RESULT = CHECKPOINTS / "attack-embeddings", "found.json"
BOTH = "both"
"""The part of a release that is attacked when the accounts of both networks are matched."""


@dataclass(frozen=True)
class Known:
    """What the attacker of one network knows of a part of its users and pairs, and is judged on by the others."""

    network: ProcessedTables

    @property
    def files(self) -> list[Path]:
        """Of the processed network, those that are read."""
        tables = ["social"] + ["users"] * bool(self.network.schema.sensitive)
        return [self.network.folder / name for name in ("schema.json", *(f"{table}.parquet" for table in tables))]

    @cached_property
    def classes(self) -> dict[str, NDArray[np.int64]]:
        """Sensitive attribute -> (n_users,) class or `UNKNOWN`.

        Raises:
            DataError: the table is not what its contract says; an attribute is a number or known of fewer than two.
        """
        schema = self.network.schema
        if not schema.sensitive:
            return {}
        path = self.network.folder / "users.parquet"
        labels = classes(contracts.read(path, contracts.users_schema(schema.features)), schema.sensitive)
        for name, of in labels.items():
            if (known := np.count_nonzero(of != UNKNOWN)) < 2:
                raise DataError(
                    f"{path}: {name!r} is known of {known} users, and guessing it takes one to learn from and one to "
                    "test; make it no sensitive attribute, or take more users"
                )
        return labels

    @cached_property
    def friends(self) -> NDArray[np.int32]:
        """(n_links, 2) true friendships or follows."""
        social = contracts.read(self.network.folder / "social.parquet", contracts.SOCIAL)
        return social.select("source", "target").to_numpy()


@dataclass(frozen=True)
class Released:
    """The embeddings of one experiment, and the processed pair of networks that they are of."""

    folder: Path
    pair: ProcessedTables
    joint: bool
    """Whether the users of both networks are in one space."""
    split: tuple[float, int] | None
    """Share and seed of the anchors that judge, where the model learnt from others; None: all judge."""

    @cached_property
    def known(self) -> dict[str, Known]:
        """Of each network whose users are embedded."""
        return {name: Known(network) for name, network in embedded_networks(self.pair).items()}

    @property
    def parts(self) -> list[str]:
        """What is attacked at a time: each network, and both together."""
        return [*self.known, *([BOTH] if self.joint and len(self.known) == 2 else [])]

    @property
    def anchors_file(self) -> Path:
        """Table of the accounts that are known to be of the same people."""
        return self.pair.folder / "anchors.parquet"

    @cached_property
    def anchors(self) -> Anchors:
        """Accounts of the same people in the first and in the second network."""
        table = contracts.read(self.anchors_file, contracts.ANCHORS)
        true = table.select("source", "target").to_numpy().astype(np.int64)
        return Anchors.split(true, *self.split) if self.split else Anchors(true, true[:0], true)

    @cached_property
    def truth(self) -> dict[str, str]:
        """Part -> fingerprint of all that its attackers know and are judged on."""
        digests = {name: digest(*known.files) for name, known in self.known.items()}
        return digests | ({BOTH: f"{digest(self.anchors_file)} {self.split}"} if BOTH in self.parts else {})

    def paths(self, setting: str, seed: int, part: str) -> dict[str, Path]:
        """Network -> the embedding that a part is about."""
        names = self.known if part == BOTH else (part,)
        return {name: embedding_file(self.folder, setting, name, seed) for name in names}

    def counts(self) -> dict[str, int]:
        """How much there is to guess: users of known class, friendships or follows, and judging anchors."""
        totals: dict[str, int] = {}
        for name, known in self.known.items():
            totals |= {
                f"{name}/{feature}": int(np.count_nonzero(of != UNKNOWN)) for feature, of in known.classes.items()
            }
            totals[f"{name}/links"] = len(known.friends)
        return totals | ({"anchors": len(self.anchors.test)} if BOTH in self.parts else {})


@dataclass(frozen=True)
class Unit(runs.SeedUnit):
    """What is attacked at a time: one part of one setting and seed."""

    part: str


def work(name: str) -> runs.Work[Unit]:
    """What attacking experiment `name` consists of."""
    params = load()
    experiment = entry("experiments", name, params.experiments)
    attack = attack_of(experiment.suite, params, EmbeddingAttack)
    checks = [require_passed("recommendations", name, experiment.suite)]
    pair = contracts.read_processed(PROCESSED / experiment.data)
    joint = issubclass(model_class(experiment.model), PairEmbedder)
    split = held_out(experiment.features, params.aligned)
    released = Released(RUNS / experiment.suite / name / "released", pair, joint, split)
    units = plan(name, experiment, attack, released, fingerprint("attack-embeddings", name, params))
    return runs.Work(
        title=f"attack-embeddings {name}",
        units=units,
        run=lambda unit, place, screen: complete(unit, attack, released, place, screen),
        assemble=lambda: assemble(name, experiment, released, units, checks),
        kept=KEPT / name,
    )


def assemble(
    name: str, experiment: Experiment, released: Released, units: list[Unit], checks: list[dict[str, Any]]
) -> None:
    """Put what was found in all parts together as the stage's output."""
    with atomic_write(RUNS / experiment.suite / name / "attack") as place:
        place.mkdir()
        rows = runs.read_records(units, RESULT)
        runs.write_metrics(rows, place, experiment.suite, name, experiment.data, experiment.system)
        runs.write_inputs(place, experiment.data, checks, known=released.counts())


def plan(name: str, experiment: Experiment, attack: EmbeddingAttack, released: Released, code: str) -> list[Unit]:
    """Every part of every setting and seed.

    Raises:
        DataError: an embedding is not there.
    """
    units = []
    for setting in experiment.settings():
        for seed in experiment.seeds:
            for part in released.parts:
                files = released.paths(setting, seed, part).values()
                if missing := [file for file in files if not file.is_file()]:
                    raise DataError(f"{missing[0]}: no such table; run train again")
                seen = [file_digest(file) for file in files]
                decides = [seen, released.truth[part], attack.model_dump(mode="json"), seed, part, code]
                label = f"{setting}-seed-{seed}-{part}"
                units.append(Unit(label, runs.folder_of(KEPT / name, label, *decides), setting, seed, part))
    return units


def complete(unit: Unit, attack: EmbeddingAttack, released: Released, place: Path, screen: Screen) -> None:
    """Attack one part, and write what was found below `place`.

    Raises:
        DataError: a release or the truth is not what it should be (says which).
    """
    screen.begin(f"{unit.setting} seed {unit.seed}, {unit.part}", 1)
    try:
        write_json(place / RESULT, attack_release(unit, attack, released))
    except DataError as error:
        raise DataError(f"{unit.setting} seed {unit.seed}, {unit.part}: {error}") from error
    screen.step(1)


def attack_release(unit: Unit, attack: EmbeddingAttack, released: Released) -> list[Record]:
    """Every attack that a part gives something to."""
    seed = split_seed(attack.seed, unit.seed)
    vectors = {
        network: read_vectors(path, released.known[network].network.schema.n_users)
        for network, path in released.paths(unit.setting, unit.seed, unit.part).items()
    }
    if unit.part == BOTH:
        first, second = vectors.values()
        return match_accounts(first, second, released.anchors, attack, seed)
    known, rows = released.known[unit.part], vectors[unit.part]
    metrics = attack_links(unit.part, rows, known.friends, attack, seed)
    for feature in known.network.schema.sensitive:
        metrics += guesses(unit.part, rows, feature, known.classes[feature.name], seed)
    return metrics


def guesses(network: str, vectors: Vectors, feature: Feature, of: NDArray[np.int64], seed: int) -> list[Record]:
    """How well a sensitive attribute is guessed from the vectors: metrics NET/ATTRIBUTE/...

    Args:
        of: (n_users,) class or `UNKNOWN`; users of unknown class are neither taught nor tested.
    """
    return scores(f"{network}/{feature.name}", predict_classes(vectors, of, classifier(feature), seed=seed))


def classifier(feature: Feature) -> Classifier:
    """Who guesses an attribute in DP-CroSUE: logistic regression one of two classes, a decision tree one of several."""
    n_classes = len(feature.categories) - (feature.unknown is not None)
    return logistic_regression if n_classes <= 2 else decision_tree


def attack_links(
    network: str, vectors: Vectors, friends: NDArray[np.int32], attack: EmbeddingAttack, seed: int
) -> list[Record]:
    """How well friends are told from others: metrics NET/links/ATTACKER/{auc, tpr}."""
    thefts = steal(vectors, friends, pairs=attack.pairs, known_share=attack.known_share, seed=seed)
    return [
        record(f"{network}/links/{theft.attacker}/{kind}", getattr(theft, kind).value)
        for theft in thefts
        for kind in ("auc", "tpr")
    ]


def match_accounts(
    first: Vectors, second: Vectors, anchors: Anchors, attack: EmbeddingAttack, seed: int
) -> list[Record]:
    """How well accounts of one person are matched by the cosine of their vectors: metrics anchors/...

    Judged on the tested anchors alone. anchors/confident/precision is absent where the confident attacker names nobody.
    """
    matches = reidentify_tested(
        similarity_scorer(first, second), anchors, len(first), seed=seed, ks=attack.k, wanted=attack.wanted_precision
    )
    metrics = [record("anchors/precision", of.value, k) for k, of in matches.at.items()]
    metrics.append(record("anchors/confident/share", matches.confident.share.value))
    if matches.confident.precision is not None:
        metrics.append(record("anchors/confident/precision", matches.confident.precision))
    return metrics


main = runs.stage(work)

if __name__ == "__main__":
    run_stage(main, units=True)
