"""Networks of users and what they wrote, pairs of them with anchors, the models that embed their users, and controls.

Source: DP-CroSUE (Ren et al., CIKM 2022), sections 3 and 4. What a model is given was perturbed before, or is raw: the
data say which, kind by kind. Everything trained on perturbed inputs is post-processing of them, so it is the
perturbation that has the entries with a budget; a raw input gets an entry without one.

Controls are what an attacker has without any embedding: attributes as they are, the number of friends, and random
vectors. They are systems like all others, judged and attacked on the same users and pairs: what an embedding gives away
beyond them, it gives away itself.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from typing_extensions import override

from tasks.core.errors import DataError
from tasks.models.base import SILENT, Model, ModelConfig, Progress
from tasks.models.draws import normal
from tasks.models.training import EpochModel
from tasks.privacy.accounting.ledger import LedgerEntry, unbounded_entry
from tasks.privacy.remarks import because
from tasks.privacy.terms import Neighbouring, Protected, Unit

NEIGHBOURING: dict[Protected, tuple[Unit, Neighbouring]] = {
    "feature": ("features", "replace"),
    "edge": ("edge", "add-or-remove"),
    "text": ("word", "replace"),
}
"""The kinds of data of a network and what neighbouring inputs differ in (DP-CroSUE, Definition 3.4)."""


@dataclass(frozen=True)
class Posts:
    """Posts as ragged arrays, those of a user one after the other.

    users: (n_posts,) int32, ascending: who wrote each.
    indptr: (n_posts + 1,) int64; the words of post p are indptr[p]:indptr[p + 1]; a post may have none left.
    tokens: (n_tokens,) int32 ids of words.
    n_words: size of the vocabulary.
    """

    users: NDArray[np.int32]
    indptr: NDArray[np.int64]
    tokens: NDArray[np.int32]
    n_words: int

    def __post_init__(self) -> None:
        if len(self.indptr) != len(self.users) + 1 or self.indptr[0] != 0 or self.indptr[-1] != len(self.tokens):
            raise DataError(f"posts: {len(self.users)} users do not fit {len(self.indptr)} bounds of posts")
        if (np.diff(self.users) < 0).any() or (np.diff(self.indptr) < 0).any():
            raise DataError("posts: not in the order of their users; sort by user")
        if self.tokens.size and not 0 <= self.tokens.min() <= self.tokens.max() < self.n_words:
            raise DataError(f"posts: a word is not one of the {self.n_words} of the vocabulary")

    @cached_property
    def of_tokens(self) -> NDArray[np.int64]:
        """(n_tokens,) the post each word is in."""
        return np.repeat(np.arange(len(self.users)), np.diff(self.indptr))


@dataclass(frozen=True)
class NetworkData:
    """One social network.

    links: (n_links, 2) int32, friendships without direction: each pair of different users once, in any order.
    features: (n_users, n_columns) float32 attributes as numbers, raw or perturbed; None where there are none.
    posts: what users wrote; None where no text is known.
    word_vectors: (n_words, d) float32, a vector for each word of the posts; None where none were learned.
    text_vectors: (n_users, d) float32, one vector for all that a user wrote, where the texts are not known; or None.
    has_text: (n_users,) bool, who has a text vector; None: everyone. Rows of others are not read.
    perturbed: which of `feature`, `edge` and `text` were perturbed before, the budget being accounted for there.

    Raises:
        DataError: shapes that do not fit, a user who is not one, a link from a user to itself or twice.
    """

    n_users: int
    links: NDArray[np.int32]
    features: NDArray[np.float32] | None = None
    posts: Posts | None = None
    word_vectors: NDArray[np.float32] | None = None
    text_vectors: NDArray[np.float32] | None = None
    has_text: NDArray[np.bool_] | None = None
    perturbed: frozenset[Protected] = frozenset()

    def __post_init__(self) -> None:
        if self.links.ndim != 2 or self.links.shape[1] != 2:
            raise DataError(f"links: shape {self.links.shape}, not (n_links, 2)")
        ends = [self.links] if self.posts is None else [self.links, self.posts.users]
        if any(users.size and not 0 <= users.min() <= users.max() < self.n_users for users in ends):
            raise DataError(f"network: links or posts name a user beyond the {self.n_users} there are")
        if len(undirected_pairs(self.links)) != len(self.links):
            raise DataError("links: a user linked to itself or two users twice; see `undirected_pairs`")
        for name in ("features", "text_vectors", "has_text"):
            if (rows := getattr(self, name)) is not None and len(rows) != self.n_users:
                raise DataError(f"{name}: {len(rows)} rows for {self.n_users} users")
        words = self.posts.n_words if self.posts is not None else None
        if self.word_vectors is not None and len(self.word_vectors) != words:
            raise DataError(f"word vectors: {len(self.word_vectors)} for a vocabulary of {words} words")

    def kinds(self) -> set[Protected]:
        """Which kinds of data there are."""
        present: dict[Protected, bool] = {
            "feature": self.features is not None,
            "edge": len(self.links) > 0,
            "text": self.posts is not None or self.text_vectors is not None,
        }
        return {kind for kind, is_present in present.items() if is_present}


@dataclass(frozen=True)
class PairData:
    """Two networks, some of whose users are the same people.

    anchors: (n_anchors, 2) int32, a user of the first and one of the second: known, or found by an alignment and then
        perhaps wrong. A user may be in several.
    embeddings: for each network (n_users, d) float32 of its users learned alone, d the same for both: what models that
        join networks start from. None for models that learn their own.

    Raises:
        DataError: an anchor that is not a pair of users; embeddings of another shape.
    """

    networks: tuple[NetworkData, NetworkData]
    anchors: NDArray[np.int32]
    embeddings: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None

    def __post_init__(self) -> None:
        sizes = np.array([network.n_users for network in self.networks])
        if self.anchors.ndim != 2 or self.anchors.shape[1] != 2:
            raise DataError(f"anchors: shape {self.anchors.shape}, not (n_anchors, 2)")
        if (self.anchors < 0).any() or (self.anchors >= sizes).any():
            raise DataError(f"anchors: a user beyond the {sizes[0]} and {sizes[1]} of the two networks")
        if self.embeddings is not None:
            shapes = [rows.shape for rows in self.embeddings]
            if [rows for rows, _ in shapes] != sizes.tolist() or shapes[0][1] != shapes[1][1]:
                raise DataError(f"embeddings: shapes {shapes} for networks of {sizes.tolist()} users")


def undirected_pairs(links: NDArray[np.integer]) -> NDArray[np.int32]:
    """Friendships of follows: each pair of different users once, the smaller id first, sorted. (n_links, 2) int32."""
    pairs = np.sort(links[links[:, 0] != links[:, 1]], axis=1).astype(np.int64)
    if not len(pairs):
        return np.empty((0, 2), np.int32)
    size = pairs.max() + 1
    return np.stack(np.divmod(np.unique(pairs @ [size, 1]), size), axis=1).astype(np.int32)


def scale(rows: NDArray[np.float32]) -> Tensor:
    """The rows, all divided by one number, so that the mean square of their entries is 1.

    Attributes perturbed with a small budget are tens of times longer than true ones (all but a few are 0, and these are
    scaled up), and vectors of texts as long as whoever learned them made them; unscaled, the longest decide how fast a
    network learns from all the others.
    """
    size = float(np.sqrt(np.square(rows, dtype=np.float64).mean())) if rows.size else 0.0
    return torch.from_numpy(rows / np.float32(size or 1.0))


def centre(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """The rows less their mean.

    Vectors of texts have most of their length in common (69 % of the mean square, of a million posts): products of any
    two embeddings are then large, and training begins by shrinking all of them.
    """
    return rows - rows.mean(0, dtype=np.float64).astype(np.float32) if len(rows) else rows


def raw_inputs(networks: Iterable[NetworkData], reads: frozenset[Protected]) -> list[LedgerEntry]:
    """An entry without a budget for each kind of data that a model read as it was; none for what was perturbed."""
    raw_kinds = {kind for network in networks for kind in network.kinds() - network.perturbed}
    return [
        unbounded_entry(kind, unit, "none", because("true-embedding"), neighbouring=neighbouring, events=())
        for kind, (unit, neighbouring) in NEIGHBOURING.items()
        if kind in raw_kinds & reads
    ]


class Constants(nn.Module):
    """Tensors that a network reads and never learns: they move with it, and no checkpoint has them."""

    def __init__(self, tensors: Iterable[Tensor]) -> None:
        super().__init__()
        for number, tensor in enumerate(tensors):
            self.register_buffer(str(number), tensor, persistent=False)

    def __iter__(self) -> Iterator[Tensor]:
        return self.buffers()

    def __len__(self) -> int:
        return len(self._buffers)

    def __getitem__(self, number: int) -> Tensor:
        return self.get_buffer(str(number))


class Embedder(Model):
    """A model of the users of one network, or of two: rows of numbers, kept under the names of `released`."""

    reads: ClassVar[frozenset[Protected]] = frozenset(NEIGHBOURING)
    """The kinds of data that `fit` makes use of."""
    _entries: tuple[LedgerEntry, ...] = ()
    _embeddings: dict[str, Tensor] | None = None

    @abstractmethod
    def fit(self, data: Any, *, rng: np.random.Generator, progress: Progress = SILENT) -> Self:
        """Learn from `NetworkData`, or from `PairData`; fitting again forgets what was learned before."""

    @override
    def released(self) -> dict[str, Tensor]:
        if self._embeddings is None:
            with torch.no_grad():
                self._embeddings = {name: rows.contiguous() for name, rows in self.compute().items()}
        return self._embeddings

    def compute(self) -> dict[str, Tensor]:
        """The embeddings as the fitted weights give them: name -> (n_users, d) float32.

        A model whose `fit` makes the embeddings themselves has no others.
        """
        raise RuntimeError("embed called before fit")

    @override
    def restore_released(self, tensors: dict[str, Tensor]) -> None:
        self._embeddings = tensors

    def ledger(self) -> list[LedgerEntry]:
        """What `fit` read unperturbed; empty if it was all perturbed before."""
        return list(self._entries)


class UserEmbedder(Embedder):
    """Embeds the users of one network."""

    def embed(self) -> NDArray[np.float32]:
        """(n_users, d) float32, finite; a user about whom nothing is known has a row like any other."""
        return self.released()["users"].cpu().numpy()


class DirectEmbedder(UserEmbedder):
    """A user embedder without weights: `fit` makes the embeddings themselves."""

    @abstractmethod
    def vectors(self, data: NetworkData, rng: np.random.Generator) -> NDArray[np.float32]:
        """(n_users, d) float32."""

    @override
    def fit(self, data: NetworkData, *, rng: np.random.Generator, progress: Progress = SILENT) -> Self:  # type: ignore[override]
        self._entries = tuple(raw_inputs([data], self.reads))
        self._embeddings = {"users": torch.from_numpy(self.vectors(data, rng))}
        return self


class PairEmbedder(Embedder):
    """Embeds the users of two networks in one space."""

    def embed(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """(n_users, d) float32 of the first network and of the second, finite."""
        released = self.released()
        return released["first"].cpu().numpy(), released["second"].cpu().numpy()


class EpochEmbedder(EpochModel, Embedder):
    """An embedder trained by epochs of gradient steps: all but what it embeds."""

    def fit(self, data: Any, *, rng: np.random.Generator, progress: Progress = SILENT) -> Self:
        """See `EpochModel.fit`; `data` are a network or two, as `Embedder.fit` says."""
        networks = data.networks if isinstance(data, PairData) else (data,)
        self._entries = tuple(raw_inputs(networks, self.reads))
        return super().fit(data, rng=rng, progress=progress)

    @override
    def weights_changed(self) -> None:
        self._embeddings = None


class Attributes(DirectEmbedder):
    """A user's attributes, encoded; of perturbed ones what was released."""

    config: ModelConfig
    reads: ClassVar[frozenset[Protected]] = frozenset({"feature"})

    @override
    def vectors(self, data: NetworkData, rng: np.random.Generator) -> NDArray[np.float32]:
        if data.features is None:
            raise DataError("network: users have no attributes; choose a model that needs none")
        return data.features


class Degree(DirectEmbedder):
    """A vector of length one: a user's number of friends."""

    config: ModelConfig
    reads: ClassVar[frozenset[Protected]] = frozenset({"edge"})

    @override
    def vectors(self, data: NetworkData, rng: np.random.Generator) -> NDArray[np.float32]:
        return np.bincount(data.links.ravel(), minlength=data.n_users).astype(np.float32)[:, None]


class RandomConfig(ModelConfig):
    """Configuration of `Random`."""

    dimension: int = Field(default=128, ge=1)
    """Length of the vectors."""


class Random(DirectEmbedder):
    """Standard normal vectors, which know nothing: what they get is the level of chance."""

    config: RandomConfig
    reads: ClassVar[frozenset[Protected]] = frozenset()

    @override
    def vectors(self, data: NetworkData, rng: np.random.Generator) -> NDArray[np.float32]:
        return normal(rng, (data.n_users, self.config.dimension), single=True)
