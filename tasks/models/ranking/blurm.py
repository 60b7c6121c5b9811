"""Blurm: BPR on profiles that users blurred themselves, so that they look less like their class.

Source: BlurMe (Weinsberg, Bhagat, Ioannidis and Taft, RecSys 2012), its greedy strategy with logistic regression; a
baseline of GERAI (§5.2).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse import csr_array
from torch import Tensor
from typing_extensions import override

from tasks.errors import DataError
from tasks.evaluation.ranking import Seen
from tasks.models.base import SILENT, Progress
from tasks.models.ranking.bpr import BPR, BPRConfig
from tasks.models.training import NegativeSampler
from tasks.privacy.accounting.ledger import LedgerEntry, unbounded_entry
from tasks.privacy.terms import because, gap
from tasks.training_data import TrainingData

UNKNOWN = -1
INVERSE_PENALTY = 0.1
"""scikit-learn's C of the regression behind the strengths. Of 0.001 ... 10 it guesses gender best on MovieLens 100K's
training interactions (five-fold cross-validation over users: accuracy 0.753, majority 0.710). It is fixed because it
only decides an order of items: at C = 0.03 and 0.3, 44 and 48 of the 60 items at its two ends are the same."""


class BlurmConfig(BPRConfig):
    """Configuration of `Blurm`."""

    attribute: str
    """The sensitive attribute to hide; of two classes."""
    share: float = Field(gt=0, le=1)
    """Items added per interaction that a user has (rounded half up, at least one)."""
    added: Literal["offered", "withheld"]
    """Whether items added to a user's profile may be recommended to that user. `withheld`: the system believes that
    the user has them, as a system that is given the blurred profiles does. `offered`: they compete like any other."""


class Blurm(BPR):
    """`BPR` trained on the interactions with those that blur them; these are chosen once, without randomness."""

    config: BlurmConfig
    uses_attributes = True
    withheld: Seen
    """Items never recommended to a user besides those of the training interactions."""
    _profiles: tuple[NDArray[np.int32], NDArray[np.int32]] | None = None

    def fit(self, data: TrainingData, *, rng: np.random.Generator, progress: Progress = SILENT) -> Self:
        """Blur, then train; see `PairwiseModel.fit`."""
        NegativeSampler(data.users, data.items, data.n_users, data.n_items)  # whoever has everything is refused as such
        users, items = blur(data, self.config.attribute, self.config.share)
        withheld = slice(None) if self.config.added == "withheld" else slice(0)
        self.withheld = Seen.from_pairs(users[withheld], items[withheld], data.n_users)
        users, items = np.concatenate([data.users, users]), np.concatenate([data.items, items])
        order = np.lexsort((items, users))
        self._profiles = users[order], items[order]
        return super().fit(replace(data, users=users, items=items), rng=rng, progress=progress)

    def score(self, users: NDArray[np.int32]) -> Tensor:
        """See `Recommender.score`; withheld items come below all others."""
        scores = super().score(users)
        rows, items = map(torch.from_numpy, self.withheld.pairs(users))
        lowest = scores.amin(1)
        scores[rows, items.long()] = (lowest - lowest.abs() - 1)[rows]
        return scores

    def profiles(self) -> tuple[NDArray[np.int32], NDArray[np.int32]] | None:
        """Users and items of the blurred interactions, sorted by both; None if the model was loaded."""
        return self._profiles

    def released(self) -> dict[str, Tensor]:
        """See `Model.released`: `BPR`'s tensors, and the withheld items of every user."""
        withheld = {"withheld_indptr": self.withheld.indptr, "withheld_items": self.withheld.items}
        return super().released() | {name: torch.from_numpy(array) for name, array in withheld.items()}

    @override
    def restore_released(self, tensors: dict[str, Tensor]) -> None:
        tensors_left = dict(tensors)
        self.withheld = Seen(
            tensors_left.pop("withheld_indptr").cpu().numpy(), tensors_left.pop("withheld_items").cpu().numpy()
        )
        self._profiles = None
        super().restore_released(tensors_left)

    def ledger(self) -> list[LedgerEntry]:
        """An obfuscation without any bound on what it lets through."""
        return [
            unbounded_entry(
                "feature",
                "private-attribute",
                "blurme",
                because("heuristic"),
                gaps=(gap("classifier-fitted"), gap("extra-interactions"), gap("other-attributes")),
            )
        ]


def blur(data: TrainingData, attribute: str, share: float) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Users and items of the interactions to be added.

    A user of known class with n > 0 interactions gets the `share` · n (rounded half up, at least one) items most
    strongly associated with the other class that the user does not have; of equally strong ones those with lower ids.

    Returns:
        (n_added,) int32 each, by user and then strongest first.

    Raises:
        DataError: the attribute is not there or not of two classes, or a user would have every item.
    """
    if attribute not in data.attributes:
        names = ", ".join(sorted(data.attributes)) or "none"
        raise DataError(f"attributes: no attribute {attribute!r} (there are: {names}); change the model's `attribute`")
    classes = data.attributes[attribute]
    pair = np.unique(classes[classes != UNKNOWN])
    if len(pair) not in (0, 2):
        raise DataError(
            f"attributes: users have {len(pair)} classes of {attribute!r}, not two; change the model's `attribute`"
        )
    counts = np.bincount(data.users, minlength=data.n_users)
    extra = np.maximum(np.floor(share * counts + 0.5).astype(np.int64), 1)
    extra[(counts == 0) | (classes == UNKNOWN)] = 0
    if (full := np.flatnonzero(counts + extra >= data.n_items)).size:
        raise DataError(
            f"interactions: user {full[0]} has {counts[full[0]]} of {data.n_items} items and cannot get "
            f"{extra[full[0]]} more, of which none would be left to rank below them; lower the model's `share`"
        )
    blurred = np.flatnonzero(extra)
    if not len(blurred):
        return np.empty(0, np.int32), np.empty(0, np.int32)
    strength = strengths(data, classes)
    typical = np.stack([np.argsort(sign * strength, kind="stable") for sign in (1, -1)])  # of either class, first first
    # A user has `counts` items, so the wanted ones are among the first `counts + extra` of the other class's list.
    looked_at = (counts + extra)[blurred]
    users = np.repeat(blurred, looked_at)
    places = np.arange(len(users)) - np.repeat(np.cumsum(looked_at) - looked_at, looked_at)
    other = (classes == pair[0]).astype(np.intp)
    items = typical[other[users], places]
    new = ~Seen.from_pairs(data.users, data.items, data.n_users).contains(users, items)
    users, items = users[new], items[new]
    first = np.searchsorted(users, blurred)
    rank = np.arange(len(users)) - np.repeat(first, np.diff(np.append(first, len(users))))
    chosen = rank < extra[users]
    return users[chosen].astype(np.int32), items[chosen].astype(np.int32)


def strengths(data: TrainingData, classes: NDArray[np.int64]) -> NDArray[np.float64]:
    """How strongly each item speaks for the higher class (negative: for the lower one): (n_items,).

    Weights of an L2-regularised logistic regression on the binary profiles of the users of known class, two classes
    in all, as in BlurMe.
    """
    from sklearn.linear_model import (
        LogisticRegression,
    )  # a second to import, which checking a configuration need not pay

    shape = (data.n_users, data.n_items)
    profiles = csr_array((np.ones(len(data.users)), (data.users, data.items)), shape=shape)
    labelled = classes != UNKNOWN
    regression = LogisticRegression(C=INVERSE_PENALTY, tol=1e-6, max_iter=1000)
    return regression.fit(profiles[labelled], classes[labelled]).coef_[0]
