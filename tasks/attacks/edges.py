"""Edge inference: from what a sequential recommender releases, tell two worlds apart that differ in one interaction.

Source: docs/methods.md §7; the best attacker against Gaussian noise is the likelihood ratio test of Neyman and Pearson,
as in Dong, Roth and Su, "Gaussian differential privacy" (JRSSB 2022). Two kinds of release are attacked: noisy
aggregates of a user's behaviour graph, by an attacker who knows everything but the world and the noise, and
recommendations, by one who can run the recommender in both worlds and learns from that (shadow samples).

Success is the advantage, true minus false positive rate of the verdict "world 1": 0 is chance, 1 is certainty, which
is what an attacker must reach where nothing is random and the releases differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray
from scipy.special import erf

from tasks.evaluation.statistics import bootstrap_interval, clopper_pearson

EDGES = pa.schema(  # what the attack found, one row per system, budget, release and world
    [
        pa.field("system", pa.string(), nullable=False),  # the experiment, or one of CONTROLS
        pa.field("setting", pa.string(), nullable=False),
        pa.field("target", pa.string(), nullable=False),  # what is seen: aggregates, recommendations or every-list
        pa.field("world", pa.string(), nullable=False),  # how the other world differs: removed, last or swapped
        pa.field("epsilon", pa.float64()),  # null: no noise
        pa.field("advantage", pa.float64(), nullable=False),  # true minus false positive rate; 0 is chance
        pa.field("low", pa.float64(), nullable=False),
        pa.field("high", pa.float64(), nullable=False),
        pa.field("theory", pa.float64()),  # of the best attacker, where known
        pa.field("targets", pa.int64(), nullable=False),
        pa.field("trials", pa.int64(), nullable=False),
    ]
)
CONTROLS = ("popular-lists", "random-lists")
"""What an attacker is shown in place of a system's lists, to see what the attack finds where there is nothing."""
CLEAR = 2.0
"""Standard deviations by which an item's counts in the two worlds differ where a cautious attacker looks at it."""

Score = Callable[[NDArray[Any]], NDArray[np.float64]]
"""(n, ...) releases -> (n,) estimated log-likelihood ratios, positive for world 1."""
Learner = Callable[[NDArray[Any], NDArray[Any]], Score]
"""(shadow releases of world 0, of world 1) -> a score."""
View = Callable[[NDArray[Any]], NDArray[Any]]
"""Releases -> numbers of their features."""


class Advantage(NamedTuple):
    """True minus false positive rate: 0 is chance, 1 certainty; what was measured may fall below 0 by chance."""

    value: float
    low: float
    """Lower end of the 95 % interval of this attacker's advantage."""
    high: float
    """Upper end."""
    optimal: float | None = None
    """The best attacker's, in closed form; None where there is none."""


def aggregate_difference(
    world0: ArrayLike, world1: ArrayLike, embeddings: NDArray[np.floating], *, twice: bool = False
) -> NDArray[np.float64]:
    """A_out H and A_in H in world 1 less those in world 0: (2, n_nodes, d), nodes being all items of both worlds.

    Args:
        world0, world1: (n,) items of either sequence, lengths may differ.
        embeddings: (n_items, d) H, already scaled to the norm with which it is released.
        twice: what precedes a visit is released with the visit and, with noise of its own, with the next: √2 in A_in.
            (Where items repeat it is released more often, so that this attacker is not the best.)
    """
    worlds = [np.asarray(world, np.int64) for world in (world0, world1)]
    nodes = np.unique(np.concatenate(worlds))
    difference = np.zeros((2, len(nodes), embeddings.shape[1]))
    for world, sign in zip(worlds, (-1.0, 1.0), strict=True):
        rows = np.searchsorted(nodes, world)
        vectors = sign * embeddings[world]
        np.add.at(difference[0], rows[:-1], vectors[1:])
        vectors[:-2] *= math.sqrt(2) if twice else 1.0  # the last visit has no next one
        np.add.at(difference[1], rows[1:], vectors[:-1])
    return difference


def gaussian_advantage(distance: float, sigma: float, releases: int = 1) -> float:
    """Of the best attacker, 2 Φ(√R ‖difference‖/(2σ)) - 1: 0 for equal worlds, 1 for different ones without noise.

    Args:
        distance: L2 norm of the difference between what the two worlds release before noise.
        sigma: standard deviation of the noise in every entry.
        releases: R, with independent noise.
    """
    return float(erf(_signal(distance, sigma, releases) / (2 * math.sqrt(2))))


def aggregate_advantage(
    difference: ArrayLike, sigma: float, releases: int, trials: int, rng: np.random.Generator
) -> Advantage:
    """Play the attack on `releases` noisy aggregates, `trials` times in either world.

    The likelihood ratio depends on the releases through the mean of their projections on the difference alone, which
    is normal: that is drawn, not the whole noise. Half of the trials choose the threshold, half measure it. Equal
    worlds are chance, 0; different ones without noise are certain, 1; both then without an interval's width.

    Args:
        difference: any shape, see `aggregate_difference`.
        sigma: standard deviation of the noise in every entry.
        releases: of the same aggregates, with independent noise.
    """
    distance = float(np.linalg.norm(np.ravel(difference)))
    signal, optimal = _signal(distance, sigma, releases), gaussian_advantage(distance, sigma, releases)
    if not signal or math.isinf(signal):
        return Advantage(optimal, optimal, optimal, optimal)
    values = rng.standard_normal((2, trials))
    values[1] += signal
    half = trials // 2
    threshold = _threshold(values[0, :half], values[1, :half])
    return _measure(values[0, half:] > threshold, values[1, half:] > threshold)._replace(optimal=optimal)


def list_advantage(
    lists0: NDArray[np.integer], lists1: NDArray[np.integer], n_items: int, rng: np.random.Generator
) -> Advantage:
    """How well one list shows in which world it was computed, to an attacker who has seen others of both worlds.

    The attacker fits a naive Bayes likelihood ratio on half of the lists: on which items are in a list, on those alone
    whose counts clearly differ, or on which item is at which rank, whichever tells its own lists apart best in two-fold
    cross-validation. The other half measures. Lists that never vary give 1 if they differ between worlds, if only in
    order, and 0 if not. A better attacker may exist: this is no upper bound, and it falls short with few lists.

    Args:
        lists0, lists1: (trials, K) distinct items of every list, best first, from repeated independent inferences; or
            (trials, times, K), what was shown at each of several times, all of which the attacker sees.
        n_items: items are 0..n_items - 1.
    """
    if lists0.ndim == 3:
        return _lists_advantage(np.stack([lists0, lists1]), n_items, rng)
    offsets = np.arange(lists0.shape[1]) * n_items
    learners = _learners(lambda rows: rows, n_items, lambda rows: rows + offsets, len(offsets) * n_items)
    return _play(lists0, lists1, learners, rng)


def _lists_advantage(lists: NDArray[np.integer], n_items: int, rng: np.random.Generator) -> Advantage:
    """`list_advantage` of (2, trials, times, K) lists. An item at one time and at another are two features."""
    _, trials, times, length = lists.shape
    at_time = (lists + n_items * np.arange(times)[:, None]).reshape(2, trials, times * length)
    at_rank = at_time + n_items * times * np.arange(times * length)
    # Of all features few occur; the attacker's releases are items and ranks, side by side.
    (items, n_seen), (ranks, n_ranked) = (_number_features(features) for features in (at_time, at_rank))
    half = times * length
    world0, world1 = np.concatenate([items, ranks], axis=2)
    learners = _learners(lambda rows: rows[:, :half], n_seen, lambda rows: rows[:, half:], n_ranked)
    return _play(world0, world1, learners, rng)


def _learners(items: View, n_items: int, ranks: View, n_ranks: int) -> list[Learner]:
    """By items, by those alone whose counts clearly differ, and by items at ranks: views of lists as features."""

    def learner(view: View, n_features: int, clear: float = 0.0) -> Learner:
        def learn(first: NDArray[np.generic], second: NDArray[np.generic]) -> Score:
            score = _naive_bayes(view(first), view(second), n_features, clear=clear)
            return lambda rows: score(view(rows))

        return learn

    return [learner(items, n_items), learner(items, n_items, CLEAR), learner(ranks, n_ranks)]


def _number_features(features: NDArray[np.integer]) -> tuple[NDArray[np.int64], int]:
    distinct, numbers = np.unique(features, return_inverse=True)
    return numbers.reshape(features.shape), len(distinct)


def mean_advantage(targets: Sequence[Advantage], *, seed: int = 0) -> Advantage:
    """Mean over targets (a user and an interaction each), with its 95 % bootstrap interval for other targets.

    Targets are drawn with what was measured for them. As trials of different targets are independent, that carries the
    trials' chance too, and to draw trials again would count it twice. Few targets give too narrow an interval (see
    `bootstrap_interval`), equal values a point; one target keeps its own interval.

    Raises:
        ValueError: no targets.
    """
    if len(targets) == 1:
        return targets[0]
    values = [target.value for target in targets]
    low, high = bootstrap_interval(values, seed=seed)
    optimal = [target.optimal for target in targets if target.optimal is not None]
    best = float(np.mean(optimal)) if len(optimal) == len(targets) else None
    return Advantage(float(np.mean(values)), low, high, best)


def _play(
    world0: NDArray[np.generic], world1: NDArray[np.generic], learners: Sequence[Learner], rng: np.random.Generator
) -> Advantage:
    """Learn from half of the releases, measure on the other. Equal priors: the verdict is the sign of the ratio."""
    shuffled = [world[rng.permutation(len(world))] for world in (world0, world1)]
    half = len(world0) // 2
    shadow, released = [world[:half] for world in shuffled], [world[half:] for world in shuffled]
    learn = max(learners, key=lambda learner: _cross_validated(learner, *shadow))  # the first of equals
    score = learn(*shadow)
    return _measure(*[score(world) > 0 for world in released])


def _cross_validated(learn: Learner, world0: NDArray[np.generic], world1: NDArray[np.generic]) -> float:
    """Advantage on either half of what was trained on the other."""
    half = len(world0) // 2
    parts = (slice(None, half), slice(half, None))
    flagged: list[list[NDArray[np.bool_]]] = [[], []]
    for train, other in (parts, parts[::-1]):
        score = learn(world0[train], world1[train])
        for world, verdicts in zip((world0, world1), flagged, strict=True):
            verdicts.append(score(world[other]) > 0)
    false, true = (np.concatenate(verdicts).mean() for verdicts in flagged)
    return float(true - false)


def _naive_bayes(
    first: NDArray[np.generic], second: NDArray[np.generic], n_features: int, *, clear: float = 0.0
) -> Score:
    """Independent indicators, of which each row names those that are 1; Jeffreys' estimate of each probability.

    Args:
        clear: how many (estimated) standard deviations a feature's counts must differ by to be used.
    """
    counts = [np.bincount(world.ravel(), minlength=n_features) for world in (first, second)]
    used = np.abs(counts[1] - counts[0]) >= clear * np.sqrt(counts[0] + counts[1] + 1)
    with_it = used * (np.log(counts[1] + 0.5) - np.log(counts[0] + 0.5))
    without = used * (np.log(len(second) - counts[1] + 0.5) - np.log(len(first) - counts[0] + 0.5))
    base, weights = without.sum(), with_it - without
    return lambda rows: base + weights[rows].sum(axis=1)


def _threshold(world0: NDArray[np.float64], world1: NDArray[np.float64]) -> float:
    """Above which a value speaks for world 1 so that the advantage on these values is largest."""
    values = np.unique(np.concatenate([world0, world1]))
    below = [np.searchsorted(np.sort(world), values, "right") / len(world) for world in (world0, world1)]
    best = int(np.argmax(below[0] - below[1]))
    return float(values[best : best + 2].mean())


def _measure(flagged0: NDArray[np.bool_], flagged1: NDArray[np.bool_]) -> Advantage:
    """From verdicts "world 1" in either world. Both rates have exact intervals that hold together at 95 %."""
    (low0, high0), (low1, high1) = (
        clopper_pearson(int(flagged.sum()), len(flagged), level=0.975) for flagged in (flagged0, flagged1)
    )
    return Advantage(float(flagged1.mean() - flagged0.mean()), low1 - high0, high1 - low0)


def _signal(distance: float, sigma: float, releases: int) -> float:
    """√R ‖difference‖/σ: how far apart the worlds are, in standard deviations of what the attacker sees."""
    if not distance:
        return 0.0
    return math.sqrt(releases) * distance / sigma if sigma else math.inf
