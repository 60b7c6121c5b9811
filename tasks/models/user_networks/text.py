"""What users wrote, as vectors: every post the mean of its words' vectors (DP-CroSUE, section 5.2).

Where only one vector for all texts of a user is known, it is the vector of that user's only post.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import embedding_bag

from tasks.errors import DataError
from tasks.models.user_networks.base import NetworkData, scale


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

        Vectors are scaled (`scaled`): how long they are only says how they were learnt.

        Raises:
            DataError: there are posts, but no vectors of their words.
        """
        by_user = np.zeros(data.n_users + 1, np.int64)
        if data.posts is not None:
            if data.word_vectors is None:
                raise DataError("network: posts without vectors of their words; learn them first (word2vec)")
            np.cumsum(np.bincount(data.posts.users, minlength=data.n_users), out=by_user[1:])
            words = scale(data.word_vectors)
            return cls(by_user, words, torch.from_numpy(data.posts.indptr), torch.from_numpy(data.posts.tokens).long())
        if data.text_vectors is None:
            return None
        has_text = np.ones(data.n_users, np.bool_) if data.has_text is None else data.has_text
        np.cumsum(has_text, out=by_user[1:])
        return cls(by_user, scale(data.text_vectors[has_text]))

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

    def blocks(self, most: int) -> Iterator[tuple[int, int, int, int]]:
        """Users first:last and their posts first:last, at most so many posts unless one user has more; all users."""
        user, n_users = 0, len(self.by_user) - 1
        while user < n_users:
            end = int(np.searchsorted(self.by_user, self.by_user[user] + most, side="right")) - 1
            end = max(end, user + 1)
            yield user, end, int(self.by_user[user]), int(self.by_user[end])
            user = end

    def mean_of_users(self, first: int, last: int, of_posts: Tensor) -> Tensor:
        """(last - first, d): means over the posts of users first:last, zeros for users without any.

        of_posts: (n, d), values of these users' posts, in their order.
        """
        counts = torch.from_numpy(np.diff(self.by_user[first : last + 1]))
        owners = torch.repeat_interleave(torch.arange(last - first), counts)
        sums = of_posts.new_zeros(last - first, of_posts.shape[1]).index_add(0, owners, of_posts)
        return sums / counts.clamp(min=1).unsqueeze(1)

    def means(self, most: int) -> Tensor:
        """(n_users, d): the mean of each user's posts, at most `most` posts at a time."""
        parts = [
            self.mean_of_users(first, last, self.of_posts(start, end)) for first, last, start, end in self.blocks(most)
        ]
        return torch.cat(parts) if parts else self.rows.new_zeros(0, self.size)
