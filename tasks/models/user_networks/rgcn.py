"""R-GCN over users and posts (Schlichtkrull et al., 2018; DP-CroSUE, Eq. 8-9): the embedding of one network.

Relations: friendship between users, and writing in both directions, user to post and post to user. A layer gives a
node σ(W₀ h + Σ_r W_r · mean of h over its neighbours under r): Eq. 8, where the self-loop's h_j must be h_i. Inputs are
users' attributes and posts' vectors. σ is a leaky rectifier after the first layer, and nothing after the second, as in
the released code: friends' vectors are compared by inner products, which must be able to be negative.

All users are computed in every step, without sampling neighbours, and exactly. What that holds: the first layer of a
user reads three rows that never change (own, mean of friends, mean of posts), so it is one product; the first layer of
posts is computed in blocks, again in the backward pass, so that its memory does not grow with the number of posts.

A network without texts has no posts and no writing. Without attributes every user has a learned vector instead. Without
friendships there is nothing to learn from: the weights stay as drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import embedding_bag, leaky_relu
from torch.utils.checkpoint import checkpoint
from typing_extensions import override

from tasks.core.errors import DataError
from tasks.models.training import EpochConfig, draw_weights
from tasks.models.user_networks.base import EpochEmbedder, NetworkData, UserEmbedder, centre, scale
from tasks.models.user_networks.friendship import batches, friendship_loss, mean_of_friends

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
    """Length of the learned vectors of users, where there are no attributes."""


class RGCNNetwork(nn.Module):
    """Two layers. The weights of all relations that end in one kind of node lie side by side in one matrix."""

    features: Tensor | None
    _mean_posts: Tensor
    _constant: Tensor | None

    def __init__(self, data: NetworkData, config: RGCNConfig, posts: PostVectors | None) -> None:
        super().__init__()
        self.posts = posts
        self.friends = mean_of_friends(data.links, data.n_users)
        self.free = nn.Parameter(torch.empty(data.n_users, config.free)) if data.features is None else None
        self.register_buffer("features", None if data.features is None else scale(data.features), persistent=False)
        width = config.free if data.features is None else data.features.shape[1]
        read = 0 if posts is None else posts.size
        self.users_first = nn.Linear(width + width + read, config.hidden)
        self.own_second = nn.Linear(config.hidden, config.dimension)
        self.friends_second = nn.Linear(config.hidden, config.dimension, bias=False)
        if posts is not None:
            self.posts_own = nn.Linear(posts.size, config.hidden)
            self.posts_writer = nn.Linear(width, config.hidden, bias=False)
            self.posts_second = nn.Linear(config.hidden, config.dimension, bias=False)
            self.register_buffer("_mean_posts", posts.means(POSTS_AT_ONCE), persistent=False)
        # rows that no weight changes are put together once
        constant = None if self.features is None else self._rows(self.features)
        self.register_buffer("_constant", constant, persistent=False)

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
        counts = torch.from_numpy(np.diff(self.posts.by_user[first : last + 1])).to(users.device)
        writers = torch.repeat_interleave(self.posts_writer(users[first:last]), counts, dim=0)
        hidden = leaky_relu(writers + self.posts_own(self.posts.of_posts(start, end)), inplace=True)
        return self.posts_second(self.posts.mean_of_users(first, last, hidden))


class RGCN(EpochEmbedder, UserEmbedder):
    """Users' vectors from their attributes, friends and posts. On perturbed networks: the paper's DP-R-GCN."""

    config: RGCNConfig
    network: RGCNNetwork

    @override
    def build(self, data: NetworkData, rng: np.random.Generator) -> nn.Module:  # type: ignore[override]
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
        if network.posts is not None:
            network.posts = network.posts.to(self.device)
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


@dataclass(frozen=True)
class PostVectors:
    """Vectors of posts, made when asked for: with millions of posts only words' vectors are kept.

    by_user: (n_users + 1,) int64; the posts of user u are by_user[u]:by_user[u + 1].
    rows: (n_rows, d) float32, vectors of words or of whole texts.
    indptr, tokens: the words of each post, int64; None where every row is a post.
    """

    by_user: NDArray[np.int64]
    rows: Tensor
    indptr: Tensor | None = None
    tokens: Tensor | None = None

    @classmethod
    def from_data(cls, data: NetworkData) -> PostVectors | None:
        """The posts of a network; None where it has no texts.

        Vectors are centred and scaled (`centre`, `scale`): what they have in common, and how long they are, only says
        how they were learned.
        """
        by_user = np.zeros(data.n_users + 1, np.int64)
        if data.posts is not None:
            if data.word_vectors is None:
                raise DataError("network: posts without vectors of their words; learn them first (word2vec)")
            np.cumsum(np.bincount(data.posts.users, minlength=data.n_users), out=by_user[1:])
            words = scale(centre(data.word_vectors))
            return cls(by_user, words, torch.from_numpy(data.posts.indptr), torch.from_numpy(data.posts.tokens).long())
        if data.text_vectors is None:
            return None
        has_text = np.ones(data.n_users, np.bool_) if data.has_text is None else data.has_text
        np.cumsum(has_text, out=by_user[1:])
        return cls(by_user, scale(centre(data.text_vectors[has_text])))

    def to(self, device: torch.device) -> PostVectors:
        """The same on another device."""
        indptr, tokens = (None if part is None else part.to(device) for part in (self.indptr, self.tokens))
        return PostVectors(self.by_user, self.rows.to(device), indptr, tokens)

    @property
    def size(self) -> int:
        """d."""
        return self.rows.shape[1]

    def of_posts(self, first: int, last: int) -> Tensor:
        """(last - first, d) float32: vectors of posts first:last; a post without words gets zeros."""
        if self.indptr is None or self.tokens is None:
            return self.rows[first:last]
        bounds = self.indptr[first : last + 1]
        tokens = self.tokens[bounds[0] : bounds[-1]]
        if not len(tokens):
            return self.rows.new_zeros(last - first, self.size)
        return embedding_bag(tokens, self.rows, bounds[:-1] - bounds[0], mode="mean")

    def blocks(self, limit: int) -> Iterator[tuple[int, int, int, int]]:
        """Users first:last and their posts first:last, at most so many posts unless one user has more; all users."""
        user, n_users = 0, len(self.by_user) - 1
        while user < n_users:
            end = int(np.searchsorted(self.by_user, self.by_user[user] + limit, side="right")) - 1
            end = max(end, user + 1)
            yield user, end, int(self.by_user[user]), int(self.by_user[end])
            user = end

    def mean_of_users(self, first: int, last: int, of_posts: Tensor) -> Tensor:
        """(last - first, d): means over the posts of users first:last, zeros for users without any.

        of_posts: (n, d), values of these users' posts, in their order.
        """
        counts = torch.from_numpy(np.diff(self.by_user[first : last + 1])).to(of_posts.device)
        owners = torch.repeat_interleave(counts)
        sums = of_posts.new_zeros(last - first, of_posts.shape[1]).index_add(0, owners, of_posts)
        return sums / counts.clamp(min=1).unsqueeze(1)

    def means(self, limit: int) -> Tensor:
        """(n_users, d): the mean of each user's posts, at most `most` posts at a time."""
        parts = [
            self.mean_of_users(first, last, self.of_posts(start, end)) for first, last, start, end in self.blocks(limit)
        ]
        return torch.cat(parts) if parts else self.rows.new_zeros(0, self.size)
