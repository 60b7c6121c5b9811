"""RAP: a recommender trained against an adversary that infers private attributes from its recommendations.

Source: Beigi et al., "Privacy-Aware Recommendation with Private-Attribute Protection using Adversarial Learning"
(WSDM 2020); a baseline of GERAI (Tables 2 and 3). The recommender is `BPR`. The adversary is a recurrent network over
each user's current list; it minimises its cross-entropy, the recommender its ranking loss minus `alpha` times that
cross-entropy. Both steps are one: the adversary's gradient changes its sign and size on its way into the recommender.

The choice of a list has no gradient, so every item on it enters as its vector times the user's squashed score for it:
through these the recommender learns what gives a user away, and which items to move off the list.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from tasks.errors import DataError
from tasks.evaluation.ranking import Seen
from tasks.models.ranking.bpr import BPR, BPRConfig, BPRNetwork
from tasks.models.training import PairwiseModel, draw_weights
from tasks.privacy.accounting.ledger import LedgerEntry, unbounded_entry
from tasks.privacy.terms import because, gap
from tasks.training_data import TrainingData

UNKNOWN = -1  # class of a user whose attribute no one knows


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
        self._cross_entropies: list[float] = []
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
        self._cross_entropies.append(adversary.item())
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

    def diagnostics(self) -> dict[str, float]:
        """Mean of the adversary's loss over the steps since the last call (see `adversary_loss`)."""
        losses, self._cross_entropies = self._cross_entropies, []
        return {"adversary_cross_entropy": float(np.mean(losses)) if losses else 0.0}

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
