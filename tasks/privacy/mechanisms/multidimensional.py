"""A user's whole feature vector under local differential privacy: a few features perturbed, all others dropped.

Source: Algorithm 2 and equation 16 of GERAI, after Wang et al. (ICDE 2019); docs/methods.md §1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tasks.core.contracts import Feature
from tasks.privacy import noise
from tasks.privacy.accounting.account import accounted_entry
from tasks.privacy.accounting.gaps import RECORDED, ROUNDED, SEED_OF_RELEASE, side_by_side
from tasks.privacy.accounting.ledger import Event, LedgerEntry
from tasks.privacy.checks import check_at_least, check_epsilon, check_one_hot, check_unit_interval
from tasks.privacy.mechanisms import piecewise, unary
from tasks.privacy.remarks import Explanation, because, gap
from tasks.privacy.secure import check_scale
from tasks.privacy.terms import Condition, Unit

PER_FEATURE = 2.5
"""Budget that one sampled feature should get at least (equation 16)."""
CHUNK = 1 << 14
"""Users perturbed at a time, so that temporary arrays stay small however many users there are."""
ROUNDING = 1e-6
"""Relative error, or more, of an output after its rounding to float32."""


def sampled_features(epsilon: float, n_features: int) -> int:
    """ζ = max(1, min(d', floor(ε/2.5))), how many of a user's features are reported (equation 16)."""
    check_epsilon(epsilon)
    check_at_least(1, n_features=n_features)
    return max(1, min(n_features, math.floor(epsilon / PER_FEATURE)))


def bound(epsilon: float, n_features: int) -> float:
    """Largest absolute value of a perturbed numeric column: d'/ζ times the piecewise bound at ε/ζ."""
    sampled = sampled_features(epsilon, n_features)
    return n_features / sampled * piecewise.bound(epsilon / sampled)


def perturb(
    matrix: NDArray[np.floating], features: Sequence[Feature], epsilon: float, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Perturb the features of every user; each user's row is ε-locally differentially private.

    Every user independently samples ζ distinct features. A numeric one goes through the piecewise mechanism with ε/ζ
    and is multiplied by d'/ζ (so that numeric columns are unbiased), a categorical one through optimised unary
    encoding with ε/ζ; all other columns are 0. Time and memory are linear in users × columns.

    Args:
        matrix: (n_users, n_columns), numeric columns in [-1, 1] and one-hot blocks, as `tasks.datasets.encoding` gives.
        features: the features in the order of their columns.
        epsilon: budget of each user, for all features together.

    Returns:
        (n_users, n_columns) float32.
    """
    matrix = np.asarray(matrix)
    sampled = sampled_features(epsilon, len(features))
    _check(matrix, features)
    budget, scale = epsilon / sampled, len(features) / sampled
    check_scale("laplace", scale * piecewise.bound(budget))  # as wide as that noise, at most
    result = np.zeros(matrix.shape, dtype=np.float32)
    for start in range(0, len(matrix), CHUNK):
        rows = slice(start, start + CHUNK)
        _perturb_chunk(matrix[rows], result[rows], features, sampled, budget, scale, rng)
    return result


def _perturb_chunk(
    matrix: NDArray[np.floating],
    result: NDArray[np.float32],
    features: Sequence[Feature],
    sampled: int,
    budget: float,
    scale: float,
    rng: np.random.Generator,
) -> None:
    chosen = _sample(len(matrix), len(features), sampled, rng)
    for index, (feature, columns) in enumerate(_blocks(features)):
        rows = np.flatnonzero(chosen[:, index])
        block = matrix[rows, columns]
        if feature.kind == "numeric":
            result[rows, columns] = scale * piecewise.perturb(block, budget, rng)
        else:
            result[rows, columns] = unary.perturb(block, budget, rng)


def _sample(n_users: int, n_features: int, sampled: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """(n_users, n_features): `sampled` features of each user, every subset equally likely."""
    chosen = np.zeros((n_users, n_features), dtype=np.bool_)
    # The positions of the smallest of i.i.d. uniform numbers are a uniform subset; ties have probability near 2^-53.
    keys = noise.uniform(rng, "which features", (n_users, n_features))
    lowest = np.argpartition(keys, sampled - 1, axis=1)[:, :sampled]
    np.put_along_axis(chosen, lowest, True, axis=1)
    return chosen


def log_likelihood_ratio(
    outputs: NDArray[np.floating],
    first: NDArray[np.floating],
    second: NDArray[np.floating],
    features: Sequence[Feature],
    epsilon: float,
) -> NDArray[np.float64]:
    """How much more likely each output is under `first` than under `second`, in nats: (n_outputs,).

    A block of zeros is taken as one that was not sampled. A categorical block may also be sampled and come out as all
    zeros; that is as likely under any input, so its ratio is 1 as well and nothing is lost.

    Args:
        outputs: (n_outputs, n_columns) as `perturb` gives.
        first, second: (n_columns,) two inputs.
    """
    sampled = sampled_features(epsilon, len(features))
    budget, scale = epsilon / sampled, len(features) / sampled
    total = np.zeros(len(outputs))
    for feature, columns in _blocks(features):
        block = outputs[:, columns]
        if feature.kind == "numeric":
            raw = block[:, 0].astype(np.float64) / scale
            logs = [piecewise.log_density(raw, float(user[columns][0]), budget, ROUNDING) for user in (first, second)]
        else:
            logs = [unary.log_probability(block, int(user[columns].argmax()), budget) for user in (first, second)]
        total += np.where(block.any(axis=1), logs[0] - logs[1], 0.0)
    return total


def entries(features: Sequence[Feature], epsilon: float, n_releases: int) -> list[LedgerEntry]:
    """What one release of `perturb`ed features spent: where a range is fitted to the data, ∞ and what holds given it.

    Bounds and categories are in the schema of the release. Bounds scale everyone, and each category is a column: they
    are a release without noise.

    Args and errors: as `ledger`.
    """
    entry = ledger(features, epsilon, n_releases)
    if not entry.given:
        return [entry]
    fitted: dict[Condition, Explanation] = {
        "bounds": because("fitted-bounds"),
        "categories": because("fitted-categories"),
    }
    without_bounds = entry.model_copy(
        update={
            "unit": "features",
            "accounted_epsilon": None,
            "given": (),
            "reasons": tuple(reason for condition, reason in fitted.items() if condition in entry.given),
            "gaps": (*entry.gaps, gap("audited-within-bounds")),
            "events": (*entry.events, Event(kind="non-private")),
        }
    )
    return [without_bounds, entry]


def ledger(features: Sequence[Feature], epsilon: float, n_releases: int) -> LedgerEntry:
    """What the noise of one release covers, and what it does not (docs/methods.md §9): given what is fitted.

    Args:
        features: the features released.
        epsilon: budget of each user.
        n_releases: how many releases an entry of `perturbed` makes of the same users (budgets of a sweep × seeds).
    """
    sampled = sampled_features(epsilon, len(features))
    fitted = [feature for feature in features if feature.bounds == "fitted"]
    numbers, classes = (
        ", ".join(feature.name for feature in fitted if feature.kind == kind) for kind in ("numeric", "categorical")
    )
    gaps = [gap("fitted-ranges", columns=numbers)] if numbers else []
    gaps += [gap("fitted-categories", columns=classes)] if classes else []
    unit: Unit = "features-within-both" if numbers and classes else "features"
    if bool(numbers) != bool(classes):
        unit = "features-within-bounds" if numbers else "features-within-categories"
    return accounted_entry(
        [Event(kind="pure-local", parameters={"epsilon": epsilon / sampled}, count=sampled)],
        protects="feature",
        unit=unit,
        neighbouring="replace",
        mechanism="piecewise-unary",
        accounting="published",
        claimed_epsilon=epsilon,
        given=(*(["bounds"] if numbers else []), *(["categories"] if classes else [])),
        gaps=(
            *gaps,
            *side_by_side(n_releases),
            gap("features-recomputed"),
            RECORDED,
            SEED_OF_RELEASE,
            ROUNDED,
        ),
    )


def _blocks(features: Sequence[Feature]) -> Iterator[tuple[Feature, slice]]:
    start = 0
    for feature in features:
        stop = start + len(feature.columns)
        yield feature, slice(start, stop)
        start = stop


def _check(matrix: NDArray[np.floating], features: Sequence[Feature]) -> None:
    width = sum(len(feature.columns) for feature in features)
    if matrix.ndim != 2 or matrix.shape[1] != width:
        raise ValueError(f"features have {width} columns, but the matrix has shape {matrix.shape}")
    for feature, columns in _blocks(features):
        if feature.kind == "numeric":
            check_unit_interval(matrix[:, columns], [feature.name])
        else:
            check_one_hot(matrix[:, columns], feature.name)
