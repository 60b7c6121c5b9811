"""R-GCN over users and posts (Schlichtkrull et al., 2018; DP-CroSUE, Eq. 8-9): the embedding of one network.

Relations: friendship between users, and writing in both directions, user to post and post to user. A layer gives a
node σ(W₀ h + Σ_r W_r · mean of h over its neighbours under r): Eq. 8, where the self-loop's h_j must be h_i. Inputs are
users' attributes and posts' vectors. σ is a leaky rectifier after the first layer, and nothing after the second, as in
the released code: friends' vectors are compared by inner products, which must be able to be negative.

All users are computed in every step, without sampling neighbours, and exactly. What that holds: the first layer of a
user reads three rows that never change (own, mean of friends, mean of posts), so it is one product; the first layer of
posts is computed in blocks, again in the backward pass, so that its memory does not grow with the number of posts.

A network without texts has no posts and no writing. Without attributes every user has a learnt vector instead. Without
friendships there is nothing to learn from: the weights stay as drawn.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import leaky_relu
from torch.utils.checkpoint import checkpoint
from typing_extensions import override

from tasks.models.base import ModelConfig
from tasks.models.training import EpochConfig, draw_weights
from tasks.models.user_networks.base import EpochEmbedder, NetworkData, UserEmbedder, scale
from tasks.models.user_networks.friendship import batches, friendship_loss, mean_of_friends
from tasks.models.user_networks.text import PostVectors

POSTS_AT_ONCE = 1 << 16
"""Posts whose first layer is held at a time: 64 MiB at 256 columns."""


class RGCNConfig(EpochConfig):
    """Configuration of `RGCN`.

    Published: hidden 256, dimension 128. Released code: 300 steps of 50,000 friendships, negatives 1, learning_rate
    0.001, regularization 5e-5 (its weight decay 1e-4).
    """

    hidden: int = Field(default=256, ge=1)
    """Width of the first layer."""
    dimension: int = Field(default=128, ge=1)
    """Width of the second: length of the embeddings."""
    negatives: int = Field(default=1, ge=1)
    """Q: users drawn against each friendship."""
    free: int = Field(default=64, ge=1)
    """Length of the learnt vectors of users, where there are no attributes."""


class RGCNNetwork(nn.Module):
    """Two layers. The weights of all relations that end in one kind of node lie side by side in one matrix."""

    def __init__(self, data: NetworkData, config: RGCNConfig, posts: PostVectors | None) -> None:
        super().__init__()
        self.posts = posts
        self.friends = mean_of_friends(data.links, data.n_users)
        self.free = nn.Parameter(torch.empty(data.n_users, config.free)) if data.features is None else None
        self.features = None if data.features is None else scale(data.features)
        width = config.free if data.features is None else data.features.shape[1]
        read = 0 if posts is None else posts.size
        self.users_first = nn.Linear(width + width + read, config.hidden)
        self.own_second = nn.Linear(config.hidden, config.dimension)
        self.friends_second = nn.Linear(config.hidden, config.dimension, bias=False)
        if posts is not None:
            self.posts_own = nn.Linear(posts.size, config.hidden)
            self.posts_writer = nn.Linear(width, config.hidden, bias=False)
            self.posts_second = nn.Linear(config.hidden, config.dimension, bias=False)
            self._mean_posts = posts.means(POSTS_AT_ONCE)
        # rows that no weight changes are put together once
        self._constant = None if self.features is None else self._rows(self.features)

    def _rows(self, users: Tensor) -> Tensor:
        parts = [users, self.friends(users)]
        return torch.cat(parts if self.posts is None else [*parts, self._mean_posts], 1)

    def forward(self) -> Tensor:
        """(n_users, dimension)."""
        users = self.features if self.features is not None else self.free
        assert users is not None
        rows = self._constant if self._constant is not None else self._rows(users)
        hidden = leaky_relu(self.users_first(rows), inplace=True)
        embeddings = self.own_second(hidden) + self.friends(self.friends_second(hidden))
        return embeddings if self.posts is None else embeddings + self._of_posts(self.posts, users)

    def _of_posts(self, posts: PostVectors, users: Tensor) -> Tensor:
        """What the posts' first layer adds to their writers' second: (n_users, dimension)."""
        blocks = list(posts.blocks(POSTS_AT_ONCE))
        if len(blocks) == 1:
            return self._block(users, *blocks[0])
        parts = [
            checkpoint(self._block, users, *block, use_reentrant=False, preserve_rng_state=False) for block in blocks
        ]
        return torch.cat(parts) if parts else users.new_zeros(0, self.posts_second.out_features)

    def _block(self, users: Tensor, first: int, last: int, start: int, end: int) -> Tensor:
        assert self.posts is not None
        counts = torch.from_numpy(np.diff(self.posts.by_user[first : last + 1]))
        writers = torch.repeat_interleave(self.posts_writer(users[first:last]), counts, dim=0)
        hidden = leaky_relu(writers + self.posts_own(self.posts.of_posts(start, end)), inplace=True)
        return self.posts_second(self.posts.mean_of_users(first, last, hidden))


class RGCN(EpochEmbedder, UserEmbedder):
    """Users' vectors from their attributes, friends and posts. On perturbed networks: the paper's DP-R-GCN."""

    Config: ClassVar[type[ModelConfig]] = RGCNConfig  # type: ignore[assignment]
    config: RGCNConfig
    network: RGCNNetwork

    def build(self, data: NetworkData, rng: np.random.Generator) -> nn.Module:  # type: ignore[override]
        """See `EpochModel.build`.

        Raises:
            DataError: there are posts, but no vectors of their words.
        """
        self._social = data
        network = RGCNNetwork(data, self.config, PostVectors.from_data(data))
        draw_weights(network, rng)
        for name, weight in network.named_parameters():
            # inner products of embeddings begin near 1: at Glorot's scale they are near 100, and training begins by
            # shrinking all embeddings to nothing
            if name.endswith("_second.weight"):
                scale = self.config.hidden**-0.5 * self.config.dimension**-0.25
                weight.data = torch.from_numpy(rng.normal(0.0, scale, weight.shape).astype(np.float32))
        if network.free is not None:
            network.free.data = torch.from_numpy(rng.standard_normal(network.free.shape, np.float32))
        return network

    def train_epoch(self) -> float:
        """Every friendship once from each side; returns the mean loss."""
        data, config = self._social, self.config
        n_batches = -(-2 * len(data.links) // config.batch_size)
        if not n_batches:
            return 0.0
        total = 0.0
        for pairs, negatives in batches(data.links, data.n_users, config.negatives, n_batches, self._rng):
            embeddings = self.network()
            total += self.step(friendship_loss(embeddings, embeddings, pairs, negatives)) * len(pairs)
        return total / (2 * len(data.links))

    @override
    def compute(self) -> dict[str, Tensor]:
        return {"users": self.network()}
