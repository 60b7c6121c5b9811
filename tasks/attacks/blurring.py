"""Can one tell a blurred profile from a true one? An obfuscation that shows invites its removal.

Source: Strucks, Slokom and Larson, "BlurM(or)e: revisiting gender obfuscation in the user-item matrix" (RMSE at RecSys
2019), who see BlurMe's extra interactions in plots of the data; here an attacker learns to see them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import PredefinedSplit, cross_val_score

from tasks.attacks.attribute import FOLDS, Profiles
from tasks.attacks.targets import FEWEST_LABELLED
from tasks.core.errors import DataError

INVERSE_PENALTIES = (0.001, 0.01, 0.1, 1.0)
"""What the attacker chooses scikit-learn's C from."""
BLOCK = 1 << 22
"""Resampled users held in memory at a time."""


@dataclass(frozen=True)
class Detection:
    """How well blurred profiles of the targets are distinguished from their true ones; 0.5 is chance."""

    auc: float
    """Probability that a blurred profile looks more blurred than a true one, of whichever targets; ties count half."""
    low: float
    """Lower end of its 95 % interval."""
    high: float
    """Upper end."""


def detect(original: Profiles, blurred: Profiles, is_target: NDArray[np.bool_], seed: int) -> Detection:
    """Learn from both profiles of the labelled users, then judge each of the targets' by itself.

    The attacker is a logistic regression on the counts; its penalty is chosen by the mean AUC of five-fold
    cross-validation over the labelled users, both profiles of a user in the same fold.

    Args:
        original, blurred: (n_users, n_items), the same users in the same order.
        is_target: (n_users,), see `tasks.attacks.targets.split_users`; users who are not blurred are better left out.

    Raises:
        DataError: the shapes differ, or there are fewer than ten labelled users or no target.
    """
    if original.shape != blurred.shape or len(original) != len(is_target):
        raise DataError(
            f"profiles: {original.shape} true, {blurred.shape} blurred and {len(is_target)} users do not belong "
            "together; give both profiles of the same users"
        )
    n_labelled = int((~is_target).sum())
    if n_labelled < FEWEST_LABELLED or not is_target.any():
        raise DataError(
            f"profiles: {n_labelled} labelled users and {is_target.sum()} targets; at least {FEWEST_LABELLED} and 1 "
            "are needed, change attack.target_share"
        )
    rng = np.random.default_rng(seed)
    examples = csr_array(np.concatenate([original[~is_target], blurred[~is_target]]))
    is_blurred = np.repeat([0, 1], n_labelled)
    folds = PredefinedSplit(np.tile(rng.permutation(n_labelled) % FOLDS, 2))
    aucs = [
        cross_val_score(_attacker(penalty), examples, is_blurred, cv=folds, scoring="roc_auc").mean()
        for penalty in INVERSE_PENALTIES
    ]
    attacker = _attacker(INVERSE_PENALTIES[int(np.argmax(aucs))]).fit(examples, is_blurred)
    suspicion = [attacker.decision_function(csr_array(profiles[is_target])) for profiles in (original, blurred)]
    return auc_interval(suspicion[0], suspicion[1], rng)


def auc_interval(
    negatives: NDArray[np.floating],
    positives: NDArray[np.floating],
    rng: np.random.Generator,
    *,
    resamples: int = 10_000,
) -> Detection:
    """AUC of one negative and one positive score per user, with its 95 % percentile bootstrap interval over users.

    A user is drawn with both scores, since they are not independent (Efron & Tibshirani 1993, ch. 8: resample what was
    sampled). Where all are distinguished, the interval is the point 1, which is too sure of itself.

    Args:
        negatives, positives: (n_users,) scores in the same order.
    """
    n_users = len(negatives)
    order = np.argsort(negatives)
    below, up_to = (np.searchsorted(negatives[order], positives, side) for side in ("left", "right"))

    def auc(counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """AUC of each of (n, n_users) numbers of times that a user was drawn: (n,)."""
        smaller = np.zeros((len(counts), n_users + 1), np.int64)  # negatives among the k smallest
        np.cumsum(counts[:, order], axis=1, out=smaller[:, 1:])
        return (counts * (smaller[:, below] + smaller[:, up_to])).sum(axis=1) / (2 * n_users**2)

    size = max(1, BLOCK // n_users)
    blocks = [min(size, resamples - start) for start in range(0, resamples, size)]
    each = np.full(n_users, 1 / n_users)
    values = np.concatenate([auc(rng.multinomial(n_users, each, size=rows)) for rows in blocks])
    tail = (1 - 0.95) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return Detection(float(auc(np.ones((1, n_users), np.int64))[0]), float(low), float(high))


def _attacker(penalty: float) -> LogisticRegression:
    return LogisticRegression(C=penalty, max_iter=1000)
