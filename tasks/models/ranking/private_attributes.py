"""BPR that hides a private attribute, without differential privacy: Blurm and RAP, baselines of GERAI (§5.2).

**Blurm**, after BlurMe (Weinsberg, Bhagat, Ioannidis and Taft, RecSys 2012), its greedy strategy with logistic
regression: BPR on profiles that users blurred themselves, so that they look less like their class.

**RAP** (Beigi et al., "Privacy-Aware Recommendation with Private-Attribute Protection using Adversarial Learning", WSDM
2020; GERAI, Tables 2 and 3): BPR trained against an adversary, a recurrent network over each user's current list, that
infers private attributes from it; it minimises its cross-entropy, the recommender its ranking loss minus `alpha` times
that cross-entropy. Both steps are one: the adversary's gradient changes its sign and size on its way into the
recommender. The choice of a list has no gradient, so every item on it enters as its vector times the user's squashed
score for it: through these the recommender learns what gives a user away, and which items to move off the list.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse import csr_array
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from typing_extensions import override

from tasks.core.errors import DataError
from tasks.core.training_data import TrainingData
from tasks.evaluation.ranking import Seen
from tasks.models.base import SILENT, Progress
from tasks.models.ranking.bpr import BPR, BPRConfig, BPRNetwork
from tasks.models.training import NegativeSampler, PairwiseModel, draw_weights
from tasks.privacy.accounting.ledger import LedgerEntry, unbounded_entry
from tasks.privacy.remarks import because, gap

UNKNOWN = -1
"""Class of a user whose attribute no one knows."""
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


class RAPConfig(BPRConfig):
    """Configuration of `RAP`: that of `BPR`, and the adversary's."""

    alpha: float = Field(ge=0, allow_inf_nan=False)
    """Weight of the adversary's cross-entropy in the recommender's loss; 0 leaves the recommender alone."""
    list_length: int = Field(ge=1)
    """K: recommended items that the adversary sees of a user, best first."""
    adversary_dimension: int = Field(ge=1)
    """Length of the adversary's hidden state."""
    adversary_users: int = Field(ge=1)
    """Labelled users drawn for the adversary in every step; all of them where there are fewer."""


class Adversary(nn.Module):
    """A GRU over a list of item vectors and one linear layer per attribute on its last state."""

    def __init__(self, dimension: int, hidden: int, n_classes: list[int]) -> None:
        """n_classes: number of classes of each attribute."""
        super().__init__()
        self.recurrent = nn.GRU(dimension, hidden, batch_first=True)
        self.heads = nn.ModuleList(nn.Linear(hidden, classes) for classes in n_classes)

    def forward(self, lists: Tensor) -> list[Tensor]:
        """lists: (n_users, list_length, d). Returns logits (n_users, n_classes) of each attribute."""
        _, last = self.recurrent(lists)
        return [head(last[0]) for head in self.heads]


class RAPNetwork(BPRNetwork):
    """The vectors of `BPR` and the adversary they are trained against."""

    def __init__(self, recommender: BPRNetwork, adversary: Adversary) -> None:
        super().__init__(*(tensor.detach() for tensor in (recommender.users, recommender.items, recommender.biases)))
        self.adversary = adversary


class Reversal(torch.autograd.Function):
    """The identity, whose gradient is multiplied by −alpha (Ganin and Lempitsky, ICML 2015)."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, alpha: float) -> Tensor:
        """`values` as they are."""
        ctx.alpha = alpha
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """−alpha times the gradient."""
        return -ctx.alpha * gradients[0], None


class RAP(BPR):
    """`BPR` whose lists hide from a recurrent adversary what the training data say of users' attributes."""

    config: RAPConfig
    uses_attributes: ClassVar[bool] = True
    figures = ("adversary_cross_entropy",)
    """`adversary_loss` of a step."""
    network: RAPNetwork

    def build(self, data: TrainingData, rng: np.random.Generator) -> nn.Module:
        """The recommender of `BPR` and an adversary, both at their initial weights."""
        recommender = super().build(data, rng)
        assert isinstance(recommender, BPRNetwork)
        counts = {name: np.bincount(classes[classes != UNKNOWN]) for name, classes in data.attributes.items()}
        hidden = sorted(name for name, count in counts.items() if np.count_nonzero(count) > 1)
        if not hidden:
            raise DataError("attributes: none has two classes or more, so RAP has nothing to hide; train bpr instead")
        classes = np.stack([data.attributes[name] for name in hidden])
        self._classes = torch.from_numpy(classes).to(self.device)
        self._entropies = [entropy(counts[name]) for name in hidden]
        self._labelled = np.flatnonzero((classes != UNKNOWN).any(0)).astype(np.int32)
        self._seen = Seen.from_pairs(data.users, data.items, data.n_users)
        config = self.config
        adversary = Adversary(config.dimension, config.adversary_dimension, [len(counts[name]) for name in hidden])
        draw_weights(adversary, rng)
        return RAPNetwork(recommender, adversary)

    train_batch = PairwiseModel.train_batch  # by autograd, and by this loss

    def loss(self, users: Tensor, items: Tensor, negatives: Tensor) -> Tensor:
        """The ranking loss of the triples plus the adversary's loss on a random sample of labelled users."""
        size = min(self.config.adversary_users, len(self._labelled))
        sample = self._rng.choice(self._labelled, size, replace=False)
        lists = Reversal.apply(self.lists(sample), self.config.alpha)
        adversary = self.adversary_loss(sample, self.network.adversary(lists))
        self._noted["adversary_cross_entropy"].append(adversary.item())
        return super().loss(users, items, negatives) + adversary

    def lists(self, users: NDArray[np.int32]) -> Tensor:
        """What the adversary sees: σ(s_uv) q_v of each user's best items that are not training items, best first.

        Returns:
            (len(users), list_length, d), with gradients to user and item vectors; zeros where a user has fewer items.
        """
        scores = self.score(users)
        row, item = self._seen.pairs(users)
        scores[torch.from_numpy(row), torch.from_numpy(item).long()] = -torch.inf
        best, items = scores.topk(min(self.config.list_length, scores.shape[1]))
        network = self.network
        vectors = network.items[items]
        user = network.users[torch.from_numpy(users).long()]
        weights = torch.sigmoid((vectors @ user.unsqueeze(2)).squeeze(2) + network.biases[items])
        return vectors * (weights * torch.isfinite(best)).unsqueeze(2)

    def adversary_loss(self, users: NDArray[np.int32], logits: list[Tensor]) -> Tensor:
        """Mean over attributes of the cross-entropy on users whose class is known, relative to the classes' entropy.

        Near 1 the adversary knows no more than how frequent classes are; so scaled, attributes weigh alike.
        """
        of_users = self._classes[:, torch.from_numpy(users).long()]
        losses = [
            cross_entropy(logit, classes, ignore_index=UNKNOWN, reduction="sum")
            / ((classes != UNKNOWN).sum().clamp(min=1) * uncertainty)
            for logit, classes, uncertainty in zip(logits, of_users, self._entropies, strict=True)
        ]
        return torch.stack(losses).mean()

    def released(self) -> dict[str, Tensor]:
        """The recommender alone; the adversary stays with the trainer."""
        state = super().released()
        return {name: tensor for name, tensor in state.items() if not name.startswith("adversary.")}

    def ledger(self) -> list[LedgerEntry]:
        """RAP claims no differential privacy, and none follows (docs/methods.md §9; GERAI §1 on RAP)."""
        return [
            unbounded_entry(
                "feature",
                "private-attribute",
                "adversarial-training",
                because("adversary-alone"),
                gaps=(gap("attacker-of-another-kind"), gap("some-users-unknown"), gap("labels-in-vectors")),
            )
        ]


def entropy(counts: NDArray[np.int64]) -> float:
    """Entropy in nats of classes that occur so often; counts: (n_classes,), not all 0."""
    frequencies = counts[counts > 0] / counts.sum()
    return float(-(frequencies * np.log(frequencies)).sum())
