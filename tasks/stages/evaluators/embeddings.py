"""What embeddings are worth: the interests that they predict, and what training and the attack share for that.

Source: DP-CroSUE, section 5.3, Table 3. The names of the metrics begin with that of the network whose users they are
of.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from tasks.evaluation.classification import Prediction, Vectors, predict_labels

Record = dict[str, Any]
"""A metric without what it is of: `metric`, `k` (None where it has no cut-off) and `value`."""


def interests(network: str, vectors: Vectors, labels: pl.DataFrame, *, seed: int) -> list[Record]:
    """How well a decision tree predicts interests, and what giving the same to everybody scores.

    Args:
        network: its name.
        vectors: (n_users, d), row i of user i.
        labels: `contracts.labels_schema`; users one of whose labels is not known are left out.
        seed: of splits and trees (`split_seed`), the same for all systems that are compared.

    Returns:
        NET/interests/{precision, precision-swapped, micro-f1}, the mean over five splits, and the same of the controls
        `majority` and `everything`.

    Raises:
        DataError: fewer than two users are labelled, or see `tasks.evaluation.classification.predict_labels`.
    """
    known = labels.drop_nulls()
    users, truth = known["user"].to_numpy(), known.drop("user").to_numpy()
    return scores(f"{network}/interests", predict_labels(vectors, users, truth, seed=seed))


def scores(name: str, prediction: Prediction) -> list[Record]:
    """Metrics NAME/SCORE and NAME/CONTROL/SCORE: means over the splits."""
    found = {name: prediction.scores} | {f"{name}/{control}": of for control, of in prediction.controls.items()}
    return [
        record(f"{whose}/{score.replace('_', '-')}", np.mean([getattr(split, score) for split in splits]))
        for whose, splits in found.items()
        for score in splits[0]._fields
    ]


def record(metric: str, value: float | np.floating, k: int | None = None) -> Record:
    """One metric."""
    return {"metric": metric, "k": k, "value": float(value)}


def split_seed(seed: int, run: int) -> int:
    """The seed of everything random in judging a run: of the suite's seed and the run's, whatever the system.

    So two systems meet the same splits and pairs in their runs of one seed, and other ones in those of another.
    """
    return int(np.random.SeedSequence([seed, run]).generate_state(1)[0])
