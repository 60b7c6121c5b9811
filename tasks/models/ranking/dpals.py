"""DPALS: private alternating least squares, with user-level joint differential privacy.

Source: Chien, Jain, Krichene, Rendle, Song, Thakurta and Zhang, "Private alternating least squares: practical private
matrix completion with tighter rates" (ICML 2021), Algorithm 1; weights in place of sampled items, and budgets split
between statistics: Krichene, Jain, Song, Sundararajan, Thakurta and Zhang, "Multi-task differential privacy under
distribution skew" (ICML 2023). The objective is that of implicit feedback (Hu, Koren and Volinsky, ICDM 2008), where α
is `unobserved_weight` and w_u weighs a user:

    Σ_u w_u [Σ_{j∈Ω_u} (1 - u·v_j)² + α Σ_j (u·v_j)²] + ridges;

without `unobserved_weight` all cells weigh the same, Σ_u w_u Σ_j (r_uj - u·v_j)², and no item has a Gramian of its own.

A user's vector is solved from the items' vectors, which are released, and from the user's own row; no one else sees it.
Items' vectors are solved from sums over users. Let û be the user's vector clipped to norm C (`clip`), x the row of what
its items' targets are (below), and m = `contribution`. One user adds

    x ⊗ û to the right-hand sides b,   w û ûᵀ to the Gramian G,   w û ûᵀ to A_j for each j in Ω_u,

where the weight w ≤ 1 makes ‖x‖ ≤ √m and w² |Ω_u| ≤ m. The norms of these three are ‖x‖ ‖û‖ ≤ √m C, w ‖û‖² ≤ C² and
w √|Ω_u| ‖û‖² ≤ √m C², with equality for a clipped user with many items. With noise of σ_b, σ_G and σ_A times those
bounds, everything that a user changes in one iteration, in units of its noise, is a vector of norm at most
√(σ_b⁻² + σ_G⁻² + σ_A⁻²): the iteration is as private as one Gaussian release with the inverse of that as its noise
multiplier. Iterations, and the counts below, add σ⁻² further (the composition of Gaussian releases is exact), so that
all of them are one Gaussian release whose multiplier is found from ε and δ. Shares of the budget are shares of its σ⁻².
A symmetric matrix is its upper triangle with off-diagonal entries times √2, a map that keeps norms; so noise off the
diagonal needs 1/√2 of the standard deviation. Noisy matrices are projected on the positive semi-definite cone.

With `counts_share`, noisy item counts come first, Σ_u min(1, √(m/|Ω_u|)) r_uj (a user's row of norm at most √m). They
choose the `head` items that are factorised, and are the first coordinate p of every item's vector, which stays as it
is. The others learn what p leaves over: with a_u the user's own coefficient of p, the row x has w (r_uj - a_u p_j)
where all cells weigh the same, otherwise w (1 - a_u p_j - α a_u p_j) in Ω_u and -w α a_u p_j elsewhere. Items outside
the head are ranked by p alone. Popularity is the largest component by far, and where users are few the noise leaves
only the largest ones standing. (This coordinate, scaling short vectors up, and denoising are ours.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from scipy.sparse import csr_array
from typing_extensions import override

from tasks.core.training_data import TrainingData
from tasks.evaluation.ranking import Seen
from tasks.models.base import SILENT, ModelConfig, Progress
from tasks.models.draws import normal
from tasks.models.ranking.factors import NON_PRIVATE, FactorModel
from tasks.models.ranking.symmetric import noisy_squares, outer_sums, positive_part, shrink, triangles
from tasks.privacy import noise
from tasks.privacy.accounting.account import accounted_entry
from tasks.privacy.accounting.gaps import FLOATS, ONCE, OWN_LIST, large_delta
from tasks.privacy.accounting.ledger import Event, LedgerEntry
from tasks.privacy.mechanisms import dpsgd
from tasks.privacy.remarks import because

Floats = NDArray[np.float64]
Adds = Callable[[csr_array], Floats]
"""Rows of users, (n, n_items) of 1 -> what they add to a release, before noise."""
BLOCK = 2**24
"""Numbers in the stack of d x d matrices that are held at once."""
TINY = 1e-100
"""A vector no longer than this has no direction that could be scaled up."""


class DPALSConfig(ModelConfig):
    """Configuration of `DPALS`."""

    epsilon: float = Field(gt=0)
    """Budget of a user for everything that is released; infinity draws no noise."""
    delta: float = Field(gt=0, lt=1)
    """Failure probability of the guarantee; more than one in the number of users means little."""
    dimension: int = Field(ge=1)
    """Length of user and item vectors, the coordinate of the counts not counted."""
    iterations: int = Field(ge=1)
    """How often items are solved for; the budget is split equally."""
    unobserved_weight: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """α: weight of u·v = 0 in every cell, next to 1 for u·v = 1 in a user's own; None weighs all cells the same."""
    user_ridge: float = Field(gt=0, allow_inf_nan=False)
    """Weight of the squared norm of a user's vector."""
    item_ridge: float = Field(gt=0, allow_inf_nan=False)
    """Weight of the squared norms of items' vectors."""
    clip: float = Field(gt=0)
    """Norm that no user's vector exceeds in what is released; infinity only where `epsilon` is."""
    lengthen: bool = False
    """Whether shorter vectors are scaled up to `clip`, too: noise is not smaller for them."""
    contribution: float = Field(gt=0)
    """How many items a user counts for, at most: rows with more are weighed down; infinity only where `epsilon` is."""
    denoise: bool = False
    """Whether each principal direction of the noisy right-hand sides is shrunk by the noise it must hold."""
    head: int | None = Field(default=None, ge=1)
    """How many items, those with the largest noisy counts, are factorised; None for all."""
    counts_share: float = Field(default=0.0, ge=0, lt=1)
    """Share of the budget for item counts, which become a coordinate; 0 does without."""
    gramian_share: float = Field(default=0.05, ge=0, lt=1)
    """Share of the budget for the Gramian of all users."""
    local_share: float = Field(default=0.0, ge=0, lt=1)
    """Share of the budget for the items' own Gramians; the right-hand sides have what all shares leave."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        private = not math.isinf(self.epsilon)
        for name in ("clip", "contribution"):
            if private and math.isinf(getattr(self, name)):
                raise ValueError(f"{name} must be finite where epsilon is: an unbounded user needs unbounded noise")
        if self.lengthen and math.isinf(self.clip):
            raise ValueError("lengthen needs a finite clip to scale to")
        if self.head is not None and not self.counts_share:
            raise ValueError("head needs a counts_share above 0: noisy counts choose the items")
        if self.counts_share + self.gramian_share + self.local_share >= 1:
            raise ValueError("counts_share, gramian_share and local_share must leave something of the budget (sum < 1)")
        if private and not self.gramian_share:
            raise ValueError("gramian_share must be above 0 where epsilon is finite: the Gramian is released")
        if private and bool(self.local_share) != (self.unobserved_weight is not None):
            raise ValueError(
                "local_share must be above 0 with an unobserved_weight and 0 without, where epsilon is finite"
            )
        return self


class Budget:
    """One Gaussian release's budget, spent in shares; remembers every release as it happens."""

    def __init__(self, multiplier: float) -> None:
        """multiplier: standard deviation / L2 sensitivity of all releases together; 0 for no noise."""
        self._multiplier = multiplier
        self._releases: dict[float, int] = {}

    def spend(self, share: float) -> float:
        """The noise multiplier of one release of `share` of the whole; 0 for no noise."""
        if not self._multiplier:
            return 0.0
        multiplier = self._multiplier / math.sqrt(share)
        self._releases[multiplier] = self._releases.get(multiplier, 0) + 1
        return multiplier

    def events(self) -> tuple[Event, ...]:
        """What was released until now, for ledger and accountant."""
        if not self._multiplier:
            return (NON_PRIVATE,)
        return tuple(dpsgd.release(multiplier, 1.0, count) for multiplier, count in self._releases.items())


class UserTerms(NamedTuple):
    """What users add to the sums that items are solved from (see the module)."""

    cells: csr_array
    """(n_users, n_items) 1 where a user has an item, those of the head alone; nothing else is stored."""
    vectors: Floats
    """(n_users, d) û."""
    weights: Floats
    """(n_users,) w."""
    popularity: Floats
    """(n_items,) p, zeros without counts."""
    coefficients: Floats
    """(n_users,) a, zeros without counts."""
    unobserved_weight: float | None

    def rhs(self) -> Floats:
        """b = Σ_u x ⊗ û: (n_items, d)."""
        weighted = self.weights[:, None] * self.vectors
        explained = self.coefficients[:, None] * weighted
        taken = (self.unobserved_weight or 1.0) * explained.sum(0)
        if self.unobserved_weight is not None:
            taken = taken + self.cells.T @ explained
        return self.cells.T @ weighted - self.popularity[:, None] * taken

    def gramian(self) -> Floats:
        """G = Σ_u w û ûᵀ: (d, d)."""
        return (self.weights[:, None] * self.vectors).T @ self.vectors

    def local_gramians(self, start: int, stop: int) -> Floats:
        """A_j = Σ_{u: j∈Ω_u} w û ûᵀ of items start..stop-1: (stop - start, d, d)."""
        return outer_sums(self.cells[:, start:stop].T.tocsr(), self.vectors, self.weights)


class DPALS(FactorModel):
    """Matrix factorisation by alternating least squares on noisy statistics.

    Released are items' vectors; a user's own is computed from the user's row and is for that user's eyes. A user
    without interactions in the head is offered the items by their noisy counts (without counts: scores 0).
    """

    noise_key = "DPALS"
    config: DPALSConfig
    has_secure_noise = True
    watch: Callable[[Floats, float, Adds], None] | None = None
    """Called at every release: the noisy numbers, the standard deviation of their noise, which is independent of one
    another's, and what rows of users would add to them. For auditors."""
    _budget: Budget | None = None

    @override
    def fit(self, data: TrainingData, *, rng: np.random.Generator, progress: Progress = SILENT) -> Self:
        config = self.config
        private = not math.isinf(config.epsilon)
        multiplier = dpsgd.noise_multiplier(config.epsilon, config.delta, 1.0, 1) if private else 0.0
        self._budget, self._n_users = Budget(multiplier), data.n_users
        cells = distinct_cells(data)
        start = normal(rng, (data.n_items, config.dimension))
        secret = self.noise_stream(data, rng)
        popularity = np.zeros(data.n_items)
        head = np.arange(data.n_items)
        if config.counts_share:
            popularity = self._popularity(cells, secret)
            head = np.sort(np.argsort(-popularity, kind="stable")[: config.head])
        items = start[head]
        for _ in range(config.iterations):
            items = self._solve_items(partial(self._head_terms, head, popularity, items), cells, secret)
        cells = cells[:, head]
        # From here on nothing but released counts and items and, for a user's vector, that user's own row.
        users = self._solve_users(cells, self._with(popularity[head], items))
        vectors = self._with(popularity, np.zeros((data.n_items, config.dimension)))
        vectors[head, -config.dimension :] = items
        if config.counts_share:
            users[np.diff(cells.indptr) == 0, 0] = 1.0
        return self._keep(users, vectors)

    def vectors_of(self, cells: csr_array) -> NDArray[np.float32]:
        """Vectors of users with these rows of 1, (n, n_items), as `fit` solves its own: (n, width of items)."""
        items = self.items.double().numpy()
        head = np.arange(len(items))
        if self.config.counts_share:
            head = np.flatnonzero(items[:, 1:].any(1))
            cells = cells[:, head]
        users = self._solve_users(cells.astype(np.float64), items[head])
        if self.config.counts_share:
            users[np.diff(cells.indptr) == 0, 0] = 1.0
        return users.astype(np.float32)

    def terms(self, cells: csr_array, popularity: Floats, items: Floats) -> UserTerms:
        """Users solved from items' vectors and bounded: all that is summed in one iteration.

        Args:
            cells: (n_users, n_items) of 1, no place twice.
            popularity: (n_items,) first coordinate of items; zeros without counts.
            items: (n_items, d) the other coordinates.
        """
        config = self.config
        solved = self._solve_users(cells, self._with(popularity, items))
        vectors = solved[:, -config.dimension :]
        coefficients = solved[:, 0] if config.counts_share else np.zeros(len(solved))
        if not math.isinf(config.clip):
            norms = np.linalg.norm(vectors, axis=1, keepdims=True)
            factors = np.divide(config.clip, norms, out=np.ones_like(norms), where=norms > TINY)
            vectors = vectors * (factors if config.lengthen else np.minimum(factors, 1.0))
        # ‖x‖² of the unweighted row: a cell of the user holds 1 - a p (1 + α), or 1 - a p, any other -a p α, or -a p.
        alpha = config.unobserved_weight
        counts = np.diff(cells.indptr).astype(np.float64)
        other, cell = (1.0, 1.0) if alpha is None else (alpha, 1 + alpha)
        squares = counts - 2 * cell * coefficients * (cells @ popularity)
        squares += coefficients**2 * ((cell**2 - other**2) * (cells @ popularity**2) + other**2 * (popularity**2).sum())
        bounded = np.maximum(squares, counts) if alpha is not None else squares
        return UserTerms(cells, vectors, norm_weights(bounded, config.contribution), popularity, coefficients, alpha)

    def ledger(self) -> list[LedgerEntry]:
        """Everything that was released about users, as it was released."""
        config = self.config
        private = not math.isinf(config.epsilon)
        gaps = [*ONCE, *OWN_LIST, FLOATS]
        if self._budget is not None:
            gaps += large_delta(config.delta, self._n_users)
        changed = {} if private else {"reasons": (because("infinite-budget"),)}
        return [
            accounted_entry(
                self._budget.events() if self._budget is not None else (),
                config.delta,
                protects="interaction",
                unit="user",
                neighbouring="add-or-remove",
                mechanism="als-gaussian",
                claimed_epsilon=config.epsilon if private else None,
                gaps=tuple(gaps),
                **changed,
            )
        ]

    def _popularity(self, cells: csr_array, rng: np.random.Generator) -> Floats:
        """Noisy counts, none below 0, as a coordinate: (n_items,) with a mean square of 1 (0 where all are 0)."""
        config = self.config
        bound = norm_bound(config.contribution)
        std = self._std(config.counts_share, bound)

        def adds(rows: csr_array) -> Floats:
            return rows.T @ norm_weights(np.diff(rows.indptr).astype(np.float64), config.contribution)

        counts = add_noise("item counts", adds(cells), std, bound, rng)
        self._show(counts, std, adds)
        counts = np.maximum(counts, 0.0)
        length = np.sqrt(np.square(counts).mean())
        return counts / length if length else counts

    def _solve_users(self, cells: csr_array, items: Floats) -> Floats:
        """Least squares of each user's row: (n_users, width of items)."""
        config = self.config
        alpha = config.unobserved_weight
        common = (alpha or 1.0) * items.T @ items + config.user_ridge * np.eye(items.shape[1])
        rhs = cells @ items
        if alpha is None:
            return np.linalg.solve(common, rhs.T).T
        users = np.empty_like(rhs)
        for start, stop in blocks(len(rhs), items.shape[1]):
            curvatures = common + outer_sums(cells[start:stop], items)
            users[start:stop] = np.linalg.solve(curvatures, rhs[start:stop, :, None])[..., 0]
        return users

    def _head_terms(self, head: NDArray[np.int64], popularity: Floats, items: Floats, cells: csr_array) -> UserTerms:
        return self.terms(cells[:, head], popularity[head], items)

    def _solve_items(
        self, terms: Callable[[csr_array], UserTerms], cells: csr_array, rng: np.random.Generator
    ) -> Floats:
        """Release the sums of one iteration over rows of users and solve: (n_items, d)."""
        config, user_terms = self.config, terms(cells)
        alpha = user_terms.unobserved_weight
        bound, clip = norm_bound(config.contribution), 0.0 if math.isinf(config.clip) else config.clip
        steps = config.iterations
        rhs_share = 1 - config.counts_share - config.gramian_share - config.local_share
        std = self._std(rhs_share / steps, bound * clip)
        rhs = add_noise("right-hand-sides", user_terms.rhs(), std, bound * clip, rng)
        self._show(rhs, std, lambda rows: terms(rows).rhs())
        if config.denoise:
            rhs = shrink(rhs, std)
        std = self._std(config.gramian_share / steps, clip**2)
        gramian = noisy_squares("Gramian", user_terms.gramian(), std, clip**2, rng)
        self._show(triangles(gramian), std, lambda rows: triangles(terms(rows).gramian()))
        common = (alpha or 1.0) * positive_part(gramian) + config.item_ridge * np.eye(len(gramian))
        items: Floats = np.empty_like(rhs)
        if alpha is None:
            items[:] = np.linalg.solve(common, rhs.T).T
            return items
        std = self._std(config.local_share / steps, bound * clip**2)
        for start, stop in blocks(*rhs.shape):
            exact = user_terms.local_gramians(start, stop)
            local = noisy_squares("own-matrices", exact, std, bound * clip**2, rng)
            self._show(triangles(local), std, partial(_local_triangles, terms, start, stop))
            curvatures = common + positive_part(local)
            items[start:stop] = np.linalg.solve(curvatures, rhs[start:stop, :, None])[..., 0]
        return items

    def _show(self, noisy: Floats, std: float, adds: Adds) -> None:
        if self.watch is not None:
            self.watch(noisy, std, adds)

    def _std(self, share: float, sensitivity: float) -> float:
        assert self._budget is not None
        return self._budget.spend(share) * sensitivity

    def _with(self, popularity: Floats, items: Floats) -> Floats:
        return np.column_stack([popularity, items]) if self.config.counts_share else items


def distinct_cells(data: TrainingData) -> csr_array:
    """(n_users, n_items) 1 at the interactions."""
    pairs = Seen.from_pairs(data.users, data.items, data.n_users)
    return csr_array((np.ones(len(pairs.items)), pairs.items, pairs.indptr), shape=(data.n_users, data.n_items))


def norm_bound(contribution: float) -> float:
    """√contribution; 0 for an infinite one, which comes with no noise."""
    return 0.0 if math.isinf(contribution) else math.sqrt(contribution)


def norm_weights(squared_norms: Floats, contribution: float) -> Floats:
    """(n,) weights in [0, 1] that leave no squared norm above `contribution`."""
    if math.isinf(contribution):
        return np.ones_like(squared_norms)
    return np.sqrt(contribution / np.maximum(squared_norms, contribution))


def add_noise(release: str, exact: Floats, std: float, sensitivity: float, rng: np.random.Generator) -> Floats:
    """With independent noise; as they are, and no draws, where `std` is 0."""
    return noise.add_gaussian(rng, release, exact, std, sensitivity=sensitivity) if std else exact


def _local_triangles(terms: Callable[[csr_array], UserTerms], start: int, stop: int, cells: csr_array) -> Floats:
    return triangles(terms(cells).local_gramians(start, stop))


def blocks(n: int, dim: int) -> list[tuple[int, int]]:
    """Ranges that cover 0..n-1 such that dim x dim matrices for one of them fit into `BLOCK` numbers."""
    size = max(1, BLOCK // dim**2)
    return [(start, min(start + size, n)) for start in range(0, n, size)]
