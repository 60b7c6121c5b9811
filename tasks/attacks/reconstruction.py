"""Reconstruction of the ratings that users keep to themselves, from what others hold (docs/methods.md §5 and §7).

Sources: Meng et al., "Personalized Privacy-Preserving Social Recommendation" (AAAI 2018), Eq. 10, for `published`. The
paper attacks with the final item vectors alone; what its parties get during training is attacked here as well.
Attackers know more and more, but that `first` does not average and `friend` hears no submissions:

- `expected_ratings`, the control: published ratings alone, as means of items and users
  (`tasks.evaluation.damped_means`). Who does worse has learned nothing from the system.
- `published`: Eq. 10. Each user's vector is fitted to that user's published ratings, given the item vectors.
- `tuned`: the same with the ridge, and the share of the control, that predict published ratings best when each is left
  out of its user's fit.
- `averaged`: the untrusted recommender, who averages what a user submits about a sensitive rating, 2 (uᵀv - r) u and
  noise, over iterations. Noise drawn again every time goes away in the average.
- `weighted`: the same, weighing iterations by the variance of their noise, which the recommender knows as it drew h.
- `first` and `replayed` (`tasks.attacks.submissions`): the same, who recalls the V that submissions answer.
- `friend`: instead, the noisy vector u that one friend has averaged.

The paper does not say what becomes of predictions beyond the scale: all are cut off at its ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tasks.evaluation.damped_means import DampedMeans

Floats = NDArray[np.float64]
RIDGES = (0.1, 1.0, 10.0, 100.0, 1000.0)
"""What `tuned` chooses from."""
OFFS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, np.inf)
"""Variances of what a friend's averaged vector is off even without noise: what `friend` chooses from."""
SMALLEST = 1e-12
"""Least variance of a rating around its prediction."""
BLOCK = 1 << 15
"""Ratings at a time of which K x K matrices are kept."""


@dataclass(frozen=True)
class Published(DampedMeans):
    """Published training ratings, and what everyone knows of the data; alone they make an attacker expect others."""

    def __post_init__(self) -> None:
        if not len(self.ratings):
            raise ValueError("no rating is published; an attacker has nothing to begin with")

    @cached_property
    def by_user(self) -> csr_array:
        """(n_users, n): which ratings are a user's."""
        return sums_by_user(self.users, self.n_users)

    def clip(self, ratings: Floats) -> Floats:
        """Cut off at the ends of the scale."""
        return np.clip(ratings, self.low, self.high)


@dataclass(frozen=True)
class Targets:
    """The sensitive training ratings that are attacked: (n_targets,) users and items."""

    users: NDArray[np.int32]
    items: NDArray[np.int32]

    def __post_init__(self) -> None:
        if not len(self.users):
            raise ValueError("there is no sensitive rating to reconstruct")


@dataclass(frozen=True)
class Profiles:
    """User vectors fitted to published ratings. vectors: (n_users, K); normal: (n_users, K, K) Σ vvᵀ + ridge I."""

    vectors: Floats
    normal: Floats


@dataclass(frozen=True)
class TunedAttacker:
    """What `tuned` knows.

    share: of the control in a guess.
    residual: variance of a rating around uᵀv for a fitted u that does not know it.
    variance: the same around the guess.
    guesses: (n_targets,)
    """

    published: Published
    targets: Targets
    vectors: Floats
    profiles: Profiles
    control: Floats
    share: float
    residual: float
    variance: float

    @property
    def precision(self) -> Floats:
        """Of the user vectors, given published ratings: (n_users, K, K)."""
        return self.profiles.normal / max(self.residual, SMALLEST)

    def guess(self, user_vectors: Floats) -> Floats:
        """Of the targets: the control and uᵀv for (n_users, K) vectors u."""
        predicted = predict(user_vectors, self.vectors, self.targets, self.published)
        return self.published.clip(self.share * self.control + (1 - self.share) * predicted)


def expected_ratings(published: Published, targets: Targets) -> Floats:
    """The control: what is expected from published ratings alone, (n_targets,)."""
    return published.expected(targets.users, targets.items, published.best)


def fit(published: Published, vectors: Floats, ridge: float) -> Profiles:
    """Eq. 10: û of each user is the least-squares fit to that user's published ratings.

    A tiny ridge draws û to the one vector that fits all published ratings best, so that it is unique for users with
    fewer ratings than dimensions, and that vector for users without.

    Args:
        vectors: (n_items, K) item vectors.

    Raises:
        ValueError: the ridge is not positive.
    """
    if not ridge > 0:
        raise ValueError(f"the ridge must be positive, not {ridge}")
    size = vectors.shape[1]
    with_items = csr_array(
        (np.ones(len(published.items)), (published.users, published.items)), (published.n_users, len(vectors))
    )
    with_ratings = csr_array((published.ratings, (published.users, published.items)), (published.n_users, len(vectors)))
    squares = (vectors[:, :, None] * vectors[:, None, :]).reshape(len(vectors), size * size)
    normal = (with_items @ squares).reshape(-1, size, size)
    right = with_ratings @ vectors
    shrink = ridge * np.eye(size)
    of_all = np.linalg.solve(normal.sum(axis=0) + shrink, right.sum(axis=0))
    normal += shrink
    return Profiles(np.linalg.solve(normal, (right + ridge * of_all)[..., None])[..., 0], normal)


def predict(user_vectors: Floats, vectors: Floats, targets: Targets, published: Published) -> Floats:
    """uᵀv of the targets, (n_targets,)."""
    return published.clip(row_products(user_vectors[targets.users], vectors[targets.items]))


def left_out(published: Published, vectors: Floats, profiles: Profiles) -> Floats:
    """What a fit without it would predict of each published rating, (n,): by the hat matrix, not by fitting again."""
    predicted = row_products(profiles.vectors[published.users], vectors[published.items])
    inverse = np.linalg.inv(profiles.normal)
    leverage = np.empty(len(predicted))
    for start in range(0, len(predicted), BLOCK):
        rows = slice(start, start + BLOCK)
        item_vectors = vectors[published.items[rows]]
        leverage[rows] = np.einsum(
            "ni,nij,nj->n", item_vectors, inverse[published.users[rows]], item_vectors, optimize=True
        )
    off = (published.ratings - predicted) / np.maximum(1 - leverage, 1e-9)
    return published.clip(published.ratings - off)


def tune(published: Published, targets: Targets, vectors: Floats) -> TunedAttacker:
    """What `tuned` knows: the ridge and the share of the control that predict published ratings best.

    Item vectors have been fitted to these ratings, so that they look better than they are; nothing else is known to an
    attacker by which to choose.
    """
    fits = [fit(published, vectors, ridge) for ridge in RIDGES]
    errors = [_mean_square(left_out(published, vectors, profiles) - published.ratings) for profiles in fits]
    best = int(np.argmin(errors))
    predicted = left_out(published, vectors, fits[best])
    difference = published.left_out(published.best) - predicted
    if square := float(difference @ difference):
        share = float(np.clip(difference @ (published.ratings - predicted) / square, 0, 1))
    else:
        share = 0.0
    return TunedAttacker(
        published,
        targets,
        vectors,
        fits[best],
        expected_ratings(published, targets),
        share,
        errors[best],
        _mean_square(predicted + share * difference - published.ratings),
    )


def from_friends(
    tuned: TunedAttacker,
    senders: NDArray[np.int32],
    messages: Floats,
    variances: Floats,
    offs: tuple[float, ...] = OFFS,
) -> tuple[Floats, int]:
    """What friends learn of the targets, (n_targets,), and of how many targets a friend knows something.

    A friend's averaged vector is shrunk to the fit to published ratings by the variance of its noise and of what it is
    off besides (it was averaged while vectors moved, and fits what the system asks for): the one of `offs` with which
    published ratings of users with friends are predicted best when left out. Users of whom no friend got anything keep
    the guess of `tuned`. Friends of one user tell each other what they got.

    Args:
        senders: (n_messages,) users whose vectors they are, one or more messages.
        messages, variances: (n_messages, K) the average vector, and the variance of its noise (0 without).
        offs: variances to choose from; with the infinite one, friends are not listened to.
    """
    profiles, published, vectors = tuned.profiles, tuned.published, tuned.vectors
    of_user = sums_by_user(senders, published.n_users)
    with_friends = np.isin(published.users, senders)
    best, lowest = profiles.vectors, np.inf
    for off in offs:
        precisions = 1 / (variances + off)
        received_precision = of_user @ precisions
        pull = of_user @ (messages * precisions) - received_precision * profiles.vectors
        normal = add_to_diagonals(tuned.precision, received_precision)
        candidate = Profiles(
            profiles.vectors + np.linalg.solve(normal, pull[..., None])[..., 0], normal * tuned.residual
        )
        missed = (left_out(published, vectors, candidate) - published.ratings)[with_friends]
        if len(missed) and (error := _mean_square(missed)) < lowest:
            best, lowest = candidate.vectors, error
    return tuned.guess(best), int(np.isin(tuned.targets.users, senders).sum())


def add_to_diagonals(matrices: Floats, diagonals: Floats) -> Floats:
    """(n, K, K) matrices with (n, K) added to their diagonals."""
    added = matrices.copy()
    diagonal = np.arange(matrices.shape[1])
    added[:, diagonal, diagonal] += diagonals
    return added


def sums_by_user(users: NDArray[np.int32], n_users: int) -> csr_array:
    """(n_users, n) matrix that sums rows by user."""
    rows = np.arange(len(users))
    return csr_array((np.ones(len(users)), (users, rows)), (n_users, len(users)))


def row_products(a: Floats, b: Floats) -> Floats:
    """(n,) inner products of the rows of two (n, K)."""
    return np.einsum("nk,nk->n", a, b)


def _mean_square(values: Floats) -> float:
    return float(np.mean(values**2))
