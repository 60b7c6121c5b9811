"""What the untrusted recommender makes of single submissions: what it keeps, expects, and adds up of each user.

It knows how training goes on: where all vectors start, each V that it sends, the published ratings, and the variance of
all noise given h that it drew. So it can do users' steps itself with published ratings alone, and know about where each
user's vector is in every iteration (`Replay`). This leaves out how the vector moved by sensitive ratings, by friends,
and from where exactly it started. (In PrivSR's rigorous accounting friends and the start are all that is left out.)

**All submissions of a user together** (`Joint`): weighted least squares, one Gauss-Newton step (Björck, "Numerical
Methods for Least Squares Problems", 1996, §9.2). A user trains on sensitive ratings, so the user's vector depends on
them, and with it every submission s = 2 (uᵀv - r) u, those about published ratings too, whose noise may be far less.

Let g be what the means of published ratings make the recommender expect of sensitive ratings r (so they are used as a
point to expand around alone). It takes the users' steps at r = g, and their derivative A = du/dr along: by the step
u - γ (2λu + 2 Σ (uᵀv - r) v) it becomes A - γ (2λA + 2 A Σ vvᵀ), and 2γv more for the rating of that v; by the
projection on the unit ball, A (I - uuᵀ/‖u‖²)/‖u‖. A submission then is off what is expected by J (r - g) and noise,
J = 2 (e I + u vᵀ) Aᵀ with e = uᵀv - r, and -2u more for the rating that it is about. With W the inverse variances of
noise, what is kept are G = Σ JᵀW (s - 2eu) and H = Σ JᵀWJ over all iterations: r = g + H⁻¹ G is the estimate, H its
precision. Per user that is M = Σ 4 (e I + v uᵀ) W (e I + u vᵀ), K x K, so H = A M Aᵀ but for the -2u.

G is exact in each iteration. H is added up over some iterations at a time, W summed exactly, with the vectors of the
last: they change little in between.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, from_numpy

from tasks.evaluation.damped_means import DampedMeans
from tasks.models.base import Information, Replayed
from tasks.models.social import passes
from tasks.models.social.messages import Broadcast, Memory, Noises, Submissions
from tasks.models.social.parties import Users, into_unit_ball
from tasks.models.social.ratings import RatingTable, Scale


class Replay:
    """Users as the recommender expects them, besides what it remembers of submissions about sensitive ratings."""

    def __init__(
        self,
        published: RatingTable,
        targets: RatingTable,
        variance: NDArray[np.float64],
        users: Users,
    ) -> None:
        """Start with every user at the common start of all.

        Args:
            published: all published ratings.
            targets: sensitive ratings, in the order of the submissions; their values are not looked at.
            variance: (n,) of the noise in one coordinate of one submission, over h as well.
            users: who submit, of whom no more is known than how they take steps.
        """
        (n_users, n_items), dimension = published.shape, users.vectors.shape[1]
        self.senders, self.items, self.variance = targets.users, targets.items, variance
        ids, start = np.empty(0, np.int32), np.full((n_users, dimension), dimension**-0.5, np.float32)
        unknown = RatingTable(ids, ids, np.empty(0, np.float32), n_users, n_items)
        steps = users.steps._replace(alpha=0.0)
        self._users = Users(unknown, published, None, start, None, Noises(), steps, users.rng)
        self._expected, self._along = (
            Memory(self.senders, self.items, self.items, n_items, variance, dimension) for _ in range(2)
        )
        self.first, self.first_variance, self.first_items = np.zeros((3, len(variance), dimension), np.float32)

    def add(self, values: NDArray[np.float32], broadcast: Broadcast) -> None:
        """Submissions of one iteration about the targets, (n, K), and what they answer."""
        vectors, items = self._users.vectors[self.senders], broadcast.vectors[self.items]
        mixing = broadcast.sensitive_mixing
        if not self._along.count:
            self.first[:], self.first_items[:] = values, items
            self.first_variance[:] = self.variance[:, None] * (1 if mixing is None else mixing[self.items])
        self._expected.add(np.einsum("nk,nk->n", vectors, items)[:, None] * vectors, mixing)
        self._along.add(vectors, mixing)

    def step(self, items: NDArray[np.float32]) -> None:
        """What users would do with (n_items, K) item vectors if published ratings were all."""
        self._users.step(items, None)

    def replayed(self) -> Replayed:
        """So far; zeros before the first message."""
        return Replayed(
            senders=self.senders,
            subjects=self.items,
            first=self.first,
            first_variance=self.first_variance,
            first_items=self.first_items,
            expected=self._expected.averages().weighted,
            along=self._along.averages().weighted,
        )

    def tensors(self) -> dict[str, Tensor]:
        """For a checkpoint; they share memory with this object."""
        names = ("first", "first_variance", "first_items")
        tensors = {name: from_numpy(getattr(self, name)) for name in names} | {"users": from_numpy(self._users.vectors)}
        for name, memory in (("expected", self._expected), ("along", self._along)):
            tensors |= {f"{name}.{part}": tensor for part, tensor in memory.tensors().items()}
        return tensors


Single = NDArray[np.float32]
LONGEST = 10
"""Iterations whose W is summed before H is, once training has gone on for ten times as many."""


class Channel:
    """Submissions of one kind: about ratings whose vectors, errors and noise are handled alike.

    table: the ratings, sensitive ones at their guesses; variance: (n,) of the noise in a coordinate of each, over h.
    """

    def __init__(self, table: RatingTable, variance: NDArray[np.float64], dimension: int) -> None:
        self.table, self.variance = table, variance.astype(np.float32)
        self.precisions = np.zeros((len(table), dimension), np.float32)
        """W, summed over iterations that H does not have yet."""

    def gradient(self, users: Single, items: Single, values: Single, mixing: Single | None) -> tuple[Single, Single]:
        """Of one iteration's submissions, (n, K): by each user's vector, (n_users, K), and by each rating, (n,)."""
        by_user, by_rating = np.zeros_like(users), np.empty(len(self.table), np.float32)
        passes.information_gradient(
            *self.table.columns, users, items, values, self.variance, mixing, self.precisions, by_user, by_rating
        )
        return by_user, by_rating

    def matrices(self, users: Single, items: Single) -> tuple[Single, Single, Single]:
        """M of each user, (n_users, K, K); each rating's part of J apart from A: its mixed term (n, K) and square (n,).

        The precisions are forgotten after that.
        """
        n, size = self.precisions.shape
        total = np.zeros((len(users), size, size), np.float32)
        mixed, square = np.empty((n, size), np.float32), np.empty(n, np.float32)
        passes.information_matrices(*self.table.columns, users, items, self.precisions, total, mixed, square)
        self.precisions[:] = 0
        return total, mixed, square


class Joint:
    """The recommender's sums G and H."""

    def __init__(
        self,
        published: RatingTable,
        targets: RatingTable,
        watched: NDArray[np.intp],
        variances: tuple[NDArray[np.float64], NDArray[np.float64]],
        as_sensitive: NDArray[np.intp] | None,
        scale: Scale,
        users: Users,
    ) -> None:
        """Start with every user at the common start of all.

        Args:
            published: all published ratings.
            targets: sensitive ratings, in the order of their submissions; their values are not looked at.
            watched: (n_shown,) positions of published ratings about which single submissions are kept.
            variances: of the noise in a coordinate of one submission, over h, of targets and of shown ratings.
            as_sensitive: (n_shown,) positions of those among what is submitted as sensitive; None if they are watched.
            scale: the lowest and highest rating.
            users: as in `Replay`.
        """
        self._as_sensitive = as_sensitive
        shape, ids, dimension = published.shape, (targets.users, targets.items), users.vectors.shape[1]
        ratings = published.values.astype(np.float64)
        means = DampedMeans(published.users, published.items, ratings, *shape, *scale)
        self.guess = means.expected(*ids, means.best).astype(np.float32)
        self.targets = RatingTable(*ids, self.guess, *shape)
        some = RatingTable(published.users[watched], published.items[watched], published.values[watched], *shape)
        tables = zip((self.targets, some), variances, strict=True)
        self._channels = [Channel(table, variance, dimension) for table, variance in tables]
        self._projection, free = users.steps.projection, users.steps._replace(projection=False)
        start = np.full((shape[0], dimension), dimension**-0.5, np.float32)
        self._users = Users(self.targets, published, None, start, None, Noises(), free, users.rng)
        sizes = self.targets.of_user[self.targets.users]
        ends = np.cumsum(sizes)
        self._left = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        first = np.concatenate([[0], np.cumsum(self.targets.of_user)])[self.targets.users]
        self._right = (np.arange(len(self._left)) + np.repeat(first - ends + sizes, sizes)).astype(np.int32)
        self._derivative = np.zeros((len(sizes), dimension), np.float32)
        self.gradient, self.matrix = np.zeros(len(sizes)), np.zeros(len(self._left))
        self._counts = np.zeros(2, np.int64)  # iterations, and those of them that H has

    def add(self, about_targets: Single, submissions: Submissions, broadcast: Broadcast) -> None:
        """Submissions of one iteration, those about targets (n_targets, K), and what they answer: V and h."""
        items = broadcast.vectors
        mixings = [broadcast.sensitive_mixing, broadcast.public_mixing]
        values = [about_targets, submissions.watched]
        if self._as_sensitive is not None:
            values[1], mixings[1] = submissions.values[self._as_sensitive], mixings[0]
        by_user, by_target = np.zeros_like(self._users.vectors), np.zeros(0, np.float32)
        for channel, sent, mixing in zip(self._channels, values, mixings, strict=True):
            gradient, by_rating = channel.gradient(self._users.vectors, items, sent, mixing)
            by_user += gradient
            by_target = by_rating if channel is self._channels[0] else by_target
        self.gradient += np.einsum("nk,nk->n", self._derivative, by_user[self.targets.users]) + by_target
        self._counts[0] += 1
        done, summed = map(int, self._counts)
        if done - summed >= min(LONGEST, 1 + done // 10):
            self._sum(items)

    def step(self, items: Single) -> None:
        """What users would do with (n_items, K) item vectors if sensitive ratings were as guessed, and A with it."""
        users, derivative, target = self._users, self._derivative, self.targets
        curvature = np.zeros((len(users.vectors), *2 * items.shape[1:]), np.float32)
        for channel in self._channels:  # all ratings of users with targets
            passes.squares(channel.table.users, channel.table.items, items, curvature)
        regularization, rate = np.float32(users.steps.regularization), np.float32(users.steps.learning_rate)
        passes.derivative_step(target.users, target.items, items, curvature, regularization, rate, derivative)
        users.step(items, None)
        if self._projection:
            passes.derivative_projection(target.users, users.vectors, derivative)
            into_unit_ball(users.vectors)

    def information(self, items: Single) -> Information:
        """So far, with the present V; zeros before the first message."""
        self._sum(items)
        return Information(
            self.targets.users, self.targets.items, self.guess.astype(np.float64), self.gradient, self.matrix
        )

    def tensors(self) -> dict[str, Tensor]:
        """For a checkpoint; they share memory with this object."""
        arrays = {"users": self._users.vectors, "derivative": self._derivative, "counts": self._counts}
        arrays |= {"gradient": self.gradient, "matrix": self.matrix}
        arrays |= {f"precisions.{row}": channel.precisions for row, channel in enumerate(self._channels)}
        return {name: from_numpy(array) for name, array in arrays.items()}

    def _sum(self, items: Single) -> None:
        """Add to H what iterations say that it does not have yet."""
        if self._counts[0] == self._counts[1]:
            return
        self._counts[1] = self._counts[0]
        (of_targets, mixed, square), (of_shown, *_) = (
            channel.matrices(self._users.vectors, items) for channel in self._channels
        )
        derivative = self._derivative
        left = np.einsum("nk,nkl->nl", derivative, (of_targets + of_shown)[self.targets.users]) + mixed
        passes.pair_products(self._left, self._right, left, derivative, mixed, square, self.matrix)


def watch(users: Users, published: RatingTable, targets: RatingTable, scale: Scale) -> Joint:
    """Users whose single submissions about published ratings are watched from now on, and what is made of them.

    Watched are all who have a target.
    """
    submitted, public, noises = users.sensitive, users.public, users.noises
    watched = np.flatnonzero(targets.of_user[published.users])
    keys, wanted, public_keys = (
        table.users.astype(np.int64) * table.shape[1] + table.items for table in (submitted, published, public)
    )
    about_targets = noises[0].variance(submitted.of_item[targets.items])
    as_sensitive = None
    if len(public):
        users.watch(np.flatnonzero(np.isin(public_keys, wanted[watched])))
        variance = noises[1].variance(public.of_item[published.items[watched]])
    else:
        as_sensitive = np.flatnonzero(np.isin(keys, wanted[watched]))
        variance = noises[0].variance(submitted.of_item[published.items[watched]])
    return Joint(published, targets, watched, (about_targets, variance), as_sensitive, scale, users)
