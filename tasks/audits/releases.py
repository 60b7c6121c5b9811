"""Audits of what is perturbed before any model sees it: features, friendships and texts.

Each runs the mechanism on the neighbouring inputs that are hardest to hide; the statistic is the log-likelihood ratio
of an output, which distinguishes them best (docs/methods.md §9).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.audits import Samples
from tasks.audits.worlds import worlds
from tasks.core.contracts import Feature
from tasks.privacy.accounting.ledger import Event, LedgerEntry
from tasks.privacy.mechanisms import edges, multidimensional, piecewise, posts, unary
from tasks.privacy.terms import Mechanism, Unit

FEATURES = (
    *(Feature(name=f"number {i}", kind="numeric", low=0, high=1) for i in range(5)),
    Feature(name="colour", kind="categorical", categories=("red", "green", "blue")),
)
CROWD = 3
"""Words at one end of the vocabulary, times e^(ε/2n): few enough that both words of a text often stay at the other."""
COUNT_SHARE = 0.1
"""Share of the budget of friendships that their noisy number takes."""
ROUNDING = 1e-9
"""Relative error, or more, of a float64 output. Were it not allowed for, an input that comes out unchanged (at 1 or -1,
where the pieces meet) would look like noise, and a mechanism whose noise is off like a private one."""


def features(
    seed: int, n_samples: int = 200_000, epsilon: float = 5.0, features: Sequence[Feature] = FEATURES
) -> Samples:
    """All features of one user: numbers at opposite ends, first against last category."""
    rng = np.random.default_rng(seed)
    ends = [
        np.concatenate(
            [[number] if feature.kind == "numeric" else np.eye(len(feature.columns))[category] for feature in features]
        ).astype(np.float32)
        for number, category in ((1.0, 0), (-1.0, -1))
    ]

    def ratios(user: NDArray[np.float32]) -> NDArray[np.float64]:
        released = multidimensional.perturb(np.broadcast_to(user, (n_samples, len(user))), features, epsilon, rng)
        return multidimensional.log_likelihood_ratio(released, ends[0], ends[1], features, epsilon)

    present, without = map(ratios, ends)
    return Samples(without, present, multidimensional.ledger(features, epsilon, 1))


def numbers(seed: int, n_samples: int = 200_000, epsilon: float = 2.5) -> Samples:
    """One number at either end, through the piecewise mechanism."""
    rng = np.random.default_rng(seed)

    def ratios(number: float) -> NDArray[np.float64]:
        released = piecewise.perturb(np.full(n_samples, number), epsilon, rng)
        first, second = (piecewise.log_density(released, end, epsilon, ROUNDING) for end in (1, -1))
        return first - second

    present, without = ratios(1.0), ratios(-1.0)
    entry = multidimensional.ledger(FEATURES[:1], epsilon, 1)
    return Samples(without, present, _part(entry, "piecewise", "number", epsilon))


def categories(seed: int, n_samples: int = 200_000, epsilon: float = 2.5, n_categories: int = 3) -> Samples:
    """One of two categories out of several, through optimised unary encoding."""
    rng = np.random.default_rng(seed)

    def ratios(category: int) -> NDArray[np.float64]:
        onehot = np.tile(np.eye(n_categories, dtype=np.float32)[category], (n_samples, 1))
        released = unary.perturb(onehot, epsilon, rng)
        return unary.log_probability(released, 0, epsilon) - unary.log_probability(released, 1, epsilon)

    present, without = ratios(0), ratios(1)
    entry = multidimensional.ledger(FEATURES[-1:], epsilon, 1)
    return Samples(without, present, _part(entry, "optimised-unary", "category", epsilon))


def friendships(seed: int, n_samples: int = 10_000, epsilon: float = 2.0, count_share: float = COUNT_SHARE) -> Samples:
    """A whole release of the rigorous top-m filter: the noisy number, and whether the one friendship is in it.

    There are about as many users as make the threshold 1, where a pair's likelihood ratio is largest.
    """
    cells, count = edges.budgets(epsilon, count_share, "rigorous")
    n_edges = 10
    n_nodes = math.ceil((1 + math.sqrt(1 + 8 * n_edges * (1 + math.exp(cells)))) / 2)
    public = np.stack([np.zeros(n_edges, np.int64), np.arange(2, n_edges + 2)], axis=1)  # all of one user
    total = edges.n_cells(n_nodes)

    def ratio(present: bool, rng: np.random.Generator) -> float:
        graph = np.concatenate([public, [[0, 1]]]) if present else public
        released = edges.release(graph, n_nodes, cells, count, rng, "rigorous")
        passes, false = edges.pass_probabilities(edges.threshold(released.target, total, cells), cells)
        there = bool(((released.edges[:, 0] == 0) & (released.edges[:, 1] == 1)).any())
        cell = math.log(passes / false) if there else math.log((1 - passes) / (1 - false)) if false < 1 else 0.0
        return cell + count * (abs(released.target - n_edges) - abs(released.target - n_edges - 1))

    return Samples(*worlds(ratio, seed, n_samples), edges.ledger(cells, count, "rigorous", 1))


def cells(seed: int, n_samples: int = 200_000, epsilon: float = 4.5) -> Samples:
    """Cells of one release of the rigorous top-m filter towards a number that is public.

    The graph is so sparse that the threshold is 1 or more, where the likelihoods differ most. Cells pass or not by
    themselves, so one release has many samples: n edges, and n cells without one.

    Raises:
        ValueError: epsilon is so large that no graph of 64-bit pairs is sparse enough.
    """
    if math.log(2 * n_samples) + np.logaddexp(epsilon, math.log(2)) > math.log(2.0**62):
        raise ValueError(f"epsilon: no graph of 64-bit pairs is sparse enough for {epsilon:g}")
    n_nodes = math.ceil(math.sqrt(2 * n_samples * (math.exp(epsilon) + 2))) + 1
    step, first = np.divmod(np.arange(2 * n_samples, dtype=np.int64), n_nodes)
    second = (first + step + 1) % n_nodes
    pairs = np.stack([np.minimum(first, second), np.maximum(first, second)], axis=1)
    released = edges.filter_towards(
        pairs[:n_samples], n_nodes, n_samples, epsilon, np.random.default_rng(seed), "rigorous"
    )
    passes, false = edges.pass_probabilities(edges.threshold(n_samples, edges.n_cells(n_nodes), epsilon), epsilon)
    base = np.array([n_nodes, 1])
    ratios = np.log([(1 - passes) / (1 - false), passes / false])[np.isin(pairs @ base, released @ base).astype(int)]
    entry = _part(edges.ledger(epsilon, epsilon, "rigorous", 1), "top-m-cell", "edge", epsilon)
    return Samples(ratios[n_samples:], ratios[:n_samples], entry)


def number(seed: int, n_samples: int = 10_000, epsilon: float = 1.0) -> Samples:
    """The noisy number of friendships alone, which the filter releases in either accounting."""
    friends = np.stack([np.arange(10), np.arange(10) + 1], axis=1)

    def run(present: bool, rng: np.random.Generator) -> float:
        return float(edges.release(friends if present else friends[:-1], 20, 1.0, epsilon, rng, "published").target)

    entry = _part(edges.ledger(epsilon, epsilon, "rigorous", 1), "edge-count-discrete-laplace", "edge", epsilon)
    return Samples(*worlds(run, seed, n_samples), entry)


def texts(seed: int, n_samples: int = 50_000, epsilon: float = 3.0) -> Samples:
    """A user's whole text of two words, each at one end of the vocabulary; every user is a sample."""
    rng, n_words = np.random.default_rng(seed), 2
    apart = math.ceil(CROWD * math.exp(epsilon / n_words / 2))
    vectors = np.zeros((apart + 1, 1))
    vectors[apart] = 1.0  # all others are where the first word is, which is so hardly ever replaced by this one
    vocabulary = posts.Vocabulary.from_vectors([str(word) for word in range(apart + 1)], vectors)
    users = pl.Series(np.arange(n_samples, dtype=np.int32))

    def counts(word: int) -> tuple[NDArray[np.float64], LedgerEntry]:
        table = pl.DataFrame({"user": users, "tokens": [[word] * n_words] * n_samples})
        released, entries = posts.perturb(table, vocabulary, epsilon, rng, 1, n_words)
        replaced = released.sort("user").select((pl.col("tokens").list.eval(pl.element() == apart)).list.sum())
        return replaced.to_series().to_numpy().astype(np.float64), entries[2]  # the one of whole texts

    (without, entry), (present, _) = counts(0), counts(apart)
    return Samples(without, present, entry)


def _part(entry: LedgerEntry, mechanism: Mechanism, unit: Unit, epsilon: float) -> LedgerEntry:
    """The entry with the part of a mechanism that is audited alone, and that part's budget, ε."""
    event = Event(kind="pure-local", parameters={"epsilon": epsilon})
    update = {"mechanism": mechanism, "unit": unit, "events": (event,)}
    return entry.model_copy(update=update | {"claimed_epsilon": epsilon, "accounted_epsilon": epsilon})
