"""How sure a number is: means over seeds with their spread, paired tests, and agreement with a published order.

Sources: docs/methods.md §8; over the folds of a cross-validation Nadeau & Bengio, "Inference for the Generalization
Error", Machine Learning 2003; over seeds and splits mean squares of the analysis of variance (Searle, Casella &
McCulloch, "Variance Components", 1992, ch. 4). Everything random takes a seed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

BLOCK = 2**24
"""Users in resamples that a crossed interval draws at a time."""


@dataclass(frozen=True)
class Summary:
    """Values of one metric over seeds."""

    n: int
    mean: float
    std: float
    """Standard deviation with n - 1 in the denominator; NaN for a single value."""
    low: float
    """Lower end of the 95 % bootstrap interval of the mean."""
    high: float
    """Upper end."""


def summary(values: ArrayLike, *, seed: int = 0) -> Summary:
    """Mean, standard deviation and 95 % bootstrap interval of (n,) values.

    Args:
        seed: of the bootstrap's resamples.
    """
    array = _require_finite(values)
    low, high = bootstrap_interval(array, seed=seed)
    std = float(array.std(ddof=1)) if len(array) > 1 else float("nan")
    return Summary(len(array), float(array.mean()), std, low, high)


def bootstrap_interval(
    values: ArrayLike, *, seed: int = 0, level: float = 0.95, resamples: int = 10_000
) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean of (n,) values (Efron & Tibshirani 1993, ch. 13).

    Over target users: one 0 or 1 per user, whether the attacker was right. Over seeds: one value per seed; with few
    seeds the interval is too narrow (of five normal values it covers the mean 83 % of the time, not 95 %), so show
    the number of seeds next to it.

    Raises:
        ValueError: no values, one that is not finite, or a level outside (0, 1).
    """
    array = _require_finite(values)
    if not 0 < level < 1:
        raise ValueError(f"the level must lie in (0, 1), not {level}")
    if np.ptp(array) == 0:
        return float(array[0]), float(array[0])
    # Resampling with replacement only needs how often each distinct value is drawn: 0/1 values cost two counts.
    distinct, counts = np.unique(array, return_counts=True)
    counts_drawn = _draw_counts(tuple(counts.tolist()), resamples, seed)
    tail = (1 - level) / 2
    low, high = np.quantile(counts_drawn @ distinct / len(array), [tail, 1 - tail])
    return float(low), float(high)


@lru_cache(maxsize=32)
def _draw_counts(counts: tuple[int, ...], resamples: int, seed: int) -> NDArray[np.int64]:
    """(resamples, n_distinct) how often each distinct value is drawn; the same for all five seeds of any metric."""
    n = sum(counts)
    return np.random.default_rng(seed).multinomial(n, np.array(counts) / n, size=resamples)


def crossed_interval(values: ArrayLike, *, seed: int = 0, resamples: int = 2_000) -> tuple[float, float]:
    """95 % bootstrap interval of the mean of (n_seeds, n_users) values over both: for other seeds, and for other users.

    Seeds and users are resampled independently and a resampled table holds every drawn seed for every drawn user
    (Owen, "The pigeonhole bootstrap", Annals of Applied Statistics 2007), which never understates the variance much.
    """
    table = np.asarray(values, np.float64)
    if table.ndim != 2 or not table.size or not np.isfinite(table).all():
        raise ValueError(f"expected a table of finite values, seeds by users, not one of shape {table.shape}")
    rng = np.random.default_rng(seed)
    n_seeds, n_users = table.shape
    seeds = rng.multinomial(n_seeds, np.full(n_seeds, 1 / n_seeds), size=resamples)
    sums = np.empty(resamples)
    for rows in np.array_split(np.arange(resamples), -(-resamples * n_users // BLOCK)):
        users = rng.multinomial(n_users, np.full(n_users, 1 / n_users), size=len(rows))
        sums[rows] = ((seeds[rows] @ table) * users).sum(axis=1)
    low, high = np.quantile(sums / table.size, [0.025, 0.975])
    return float(low), float(high)


def clopper_pearson(successes: int, n: int, *, level: float = 0.95) -> tuple[float, float]:
    """Exact interval of a proportion (Clopper & Pearson 1934): covers at least `level` regardless of the proportion.

    Raises:
        ValueError: `successes` outside 0..n, or n below 1.
    """
    from scipy.stats import binomtest  # half a second to import, and not every report tests

    interval = binomtest(successes, n).proportion_ci(confidence_level=level, method="exact")
    return float(interval.low), float(interval.high)


@dataclass(frozen=True)
class PairedTest:
    """One claim "A beats B" over the same seeds or folds."""

    difference: float
    """Mean of A - B."""
    p: float
    """One-sided p-value of the paired t-test."""
    p_holm: float
    """The same after Holm's correction for all claims tested together."""
    low: float
    """Lower end of the 95 % interval of `difference` that belongs to the (two-sided) test; not corrected for others."""
    high: float
    """Upper end."""
    effect: float | None
    """Cohen's d_z: `difference` in standard deviations of A - B; None where the differences are all equal."""


def paired_tests(
    claims: Mapping[str, tuple[ArrayLike, ArrayLike]], *, overlap: float | None = None
) -> dict[str, PairedTest]:
    """Test every claim "A is larger than B" by a one-sided paired t-test, corrected together by Holm's method.

    Differences that are equal at all seeds (both methods without randomness) get p = 1, and an interval without width:
    repeating a computation is no replication, and says nothing about chance.

    Args:
        claims: name -> (A, B), each (n_seeds,) in the same order of seeds, or (n_splits, n_seeds).
        overlap: where the values belong to the folds of one cross-validation, the number of tested ratings over that
            of the training ratings of a fold (1/4 for five folds). Training sets of different folds share most of their
            data, so differences go together and the plain test, which takes them for independent, is too liberal.
            The corrected resampled t-test (Nadeau & Bengio 2003, §5.1) puts the variance of the mean at (1/n + overlap)
            s² instead of s²/n. None: the values are of independent runs, and the plain test is right.
            (n_splits, n_seeds) values differ by chance in three ways: by the split, by the seed, and by what is left.
            The mean square between splits gives one test and that between seeds another, each with its own degrees of
            freedom and right where its effect is the only one, also where no seed means the same on two splits. Of
            both the larger p and the wider interval are taken. That is too careful where effects are small; simulated,
            a true null was rejected at 5 % in 1.6 to 4.8 % of the cases with three splits and five seeds, in 1.2 to
            4.9 % with two splits, and in up to 5.9 % with five and five, where both effects are large.

    Raises:
        ValueError: A and B differ in length, have fewer than two values, or one that is not finite; `overlap` is
            negative or not finite.
    """
    if overlap is not None and not (0 <= overlap < np.inf):
        raise ValueError(f"the overlap is tested over training ratings, a number from 0, not {overlap}")
    differences = {}
    for name, (a, b) in claims.items():
        first, second = _require_finite(a, 2), _require_finite(b, 2)
        if first.shape != second.shape or len(first) < 2:
            shapes = (len(each) if each.ndim == 1 else each.shape for each in (first, second))
            raise ValueError("{}: a paired test needs the same two or more seeds, not {} and {}".format(name, *shapes))
        differences[name] = first - second
    tests = [_paired_test(difference, overlap or 0.0) for difference in differences.values()]
    corrected = holm([test.p for test in tests])
    return {
        name: replace(test, p_holm=p_holm) for name, test, p_holm in zip(differences, tests, corrected, strict=True)
    }


def _paired_test(difference: NDArray[np.float64], overlap: float) -> PairedTest:
    """The test of one claim alone."""
    mean, n = float(difference.mean()), difference.size
    if np.ptp(difference) <= 1e-12 * np.abs(difference).max():
        return PairedTest(mean, 1.0, 1.0, mean, mean, None)
    variance = float(difference.var(ddof=1))
    from scipy.stats import t  # half a second to import, and not every report tests

    p = width = 0.0
    for square, freedom in [(variance, n - 1)] if difference.ndim == 1 else _mean_squares(difference):
        error = math.sqrt(square / n + overlap * variance)
        p = max(p, float(t.sf(mean / error, freedom)) if error else 0.0)
        width = max(width, float(t.ppf(0.975, freedom)) * error)
    return PairedTest(mean, p, p, mean - width, mean + width, mean / math.sqrt(variance))


def _mean_squares(table: NDArray[np.float64]) -> list[tuple[float, int]]:
    """Of (n_splits, n_seeds) values the mean squares between splits and between seeds, with degrees of freedom."""
    return [
        (table.shape[1 - axis] * float(table.mean(axis=1 - axis).var(ddof=1)), table.shape[axis] - 1)
        for axis in (0, 1)
        if table.shape[axis] > 1
    ]


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's (1979) step-down correction: family-wise error at most α for all claims with a result at most α."""
    p = np.asarray(p_values, float)
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError("p-values must lie in [0, 1]")
    order = np.argsort(p, kind="stable")
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * (len(p) - np.arange(len(p)))), 1.0)
    return [float(value) for value in corrected]


def _require_finite(values: ArrayLike, dimensions: int = 1) -> NDArray[np.float64]:
    array = np.asarray(values, np.float64)
    if not 1 <= array.ndim <= dimensions or not array.size or not np.isfinite(array).all():
        raise ValueError(f"expected one or more finite values, not {values!r}")
    return array


class Gain(NamedTuple):
    """How many more of the attacked users an attack gets right than its control, as a share, with its 95 % interval."""

    mean: float
    low: float
    high: float


def gain(right: NDArray[np.bool_], control: NDArray[np.bool_]) -> Gain:
    """The gain of an attack over a control.

    Args:
        right: (n_seeds, n_targets) whether the attack guessed a target right.
        control: (n_seeds, n_targets) the same of the control, for the same seeds and targets in the same order; or
            (1, n_targets) where nothing in it is drawn.
    """
    difference = right.astype(np.float64) - control
    return Gain(float(difference.mean()), *crossed_interval(difference))
