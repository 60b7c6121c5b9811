"""DP-CroSUE's perturbation as its authors' code has it, and what that is worth (docs/choices-dpcrosue.md).

**Attributes.** Of the bits of a screen name's hash two are perturbed, the same two for everyone; so are the counts and
the occupation, each column by a piecewise mechanism with an equal part of ε_a. All other bits and the gender, the last
two columns, pass as they are. The outer pieces have each other's probabilities: the left one is taken with that of the
right one's length. So x = 1, whose right piece has no length, becomes C exactly with probability 1/(e^(ε/2) + 1), which
no other x does, and is never below 1: no ε bounds the ratio.

**Friendships.** Follows, each with its direction, go through a top-m filter whose threshold has its branches exchanged
(and lost ½ in one, a parenthesis in the other). False follows are then filled up to one less than the noisy number,
among all ordered pairs, those from a user to itself and true ones that did not pass included. True ones pass with
probability 0.95 at ε = 5 on Foursquare, where 0.44 keeps the ratio of true to false ones within e^ε.

**Words.** The least frequent words are replaced by one another, of the others a share; the rest pass as they are.

Source: the code that accompanies Ren et al., CIKM 2022, as of 2023; facts of it alone, written again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.core.contracts import Feature
from tasks.privacy import noise
from tasks.privacy.accounting.gaps import RECORDED, SEED_OF_RELEASE, side_by_side
from tasks.privacy.accounting.ledger import Event, LedgerEntry, unbounded_entry
from tasks.privacy.checks import check_epsilon, check_unit_interval
from tasks.privacy.mechanisms import edges, piecewise, posts, words
from tasks.privacy.mechanisms.posts import Vocabulary
from tasks.privacy.remarks import because, gap

BITS = 2
"""Of the hash, how many are perturbed."""
RAW = "gender"
"""The attribute that passes as it is."""


def hashed_columns(features: Sequence[Feature]) -> list[int]:
    """Columns of the hash's bits: of the numbers whose bounds are public."""
    return [
        column
        for column, (feature, _) in enumerate(_named(features))
        if feature.kind == "numeric" and feature.bounds == "public"
    ]


def counted_columns(features: Sequence[Feature]) -> list[int]:
    """Columns of all other attributes but `RAW`, of categories those that are known."""
    hashed = set(hashed_columns(features))
    return [
        column
        for column, (feature, name) in enumerate(_named(features))
        if feature.name != RAW and name != feature.unknown and column not in hashed
    ]


def n_perturbed(features: Sequence[Feature]) -> int:
    """How many columns ε_a is divided by."""
    return min(BITS, len(hashed_columns(features))) + len(counted_columns(features))


def attributes(
    matrix: NDArray[np.floating], features: Sequence[Feature], epsilon: float, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Attributes as the code releases them: numbers as shares of their range, an unknown category as zeros.

    Args:
        matrix: (n_users, n_columns) as `tasks.datasets.encoding` gives them.
        features: the features in the order of their columns.
        epsilon: ε_a, of all perturbed columns together.

    Returns:
        (n_users, n_columns) float32.
    """
    check_epsilon(epsilon)
    names = [name for _, name in _named(features)]
    check_unit_interval(np.asarray(matrix), names)
    hashed, total = np.array(hashed_columns(features), np.int64), n_perturbed(features)
    if not total:
        raise ValueError("features: none but the gender, which is not perturbed")
    result = np.array(matrix, np.float64)
    for column, (feature, name) in enumerate(_named(features)):
        if feature.kind == "numeric":
            result[:, column] = (result[:, column] + 1) / 2
        elif name == feature.unknown:
            result[:, column] = 0.0
    bits = noise.subset(rng, "which bits", hashed, min(BITS, len(hashed)))
    chosen = np.sort(np.concatenate([bits, np.array(counted_columns(features), np.int64)]))
    result[:, chosen] = exchanged_pieces(result[:, chosen], epsilon / total, rng)
    return result.astype(np.float32)


def exchanged_pieces(values: NDArray[np.floating], epsilon: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """The piecewise mechanism with the probabilities of its two outer pieces exchanged: no ε follows.

    Args:
        values: any shape, in [-1, 1].
        epsilon: what the code means each to cost.
    """
    limit = piecewise.bound(epsilon)
    left = (limit + 1) / 2 * values - (limit - 1) / 2
    right = left + limit - 1
    inner = noise.uniform(rng, "which piece", values.shape) < 1 / (1 + math.exp(-epsilon / 2))
    below = noise.uniform(rng, "which-outer-piece", values.shape) < (limit - right) / (limit + 1)
    position = noise.uniform(rng, "place-within-the-piece", values.shape)
    start = np.where(inner, left, np.where(below, -limit, right))
    stop = np.where(inner, right, np.where(below, left, limit))
    values_drawn: NDArray[np.float64] = np.clip(start + position * (stop - start), -limit, limit)
    return values_drawn


def attributes_entry(features: Sequence[Feature], epsilon: float, n_releases: int) -> LedgerEntry:
    """What a release of `attributes` is claimed to cost, and why nothing finite follows."""
    hashed = len(hashed_columns(features))
    passed = [because("hash-passes", bits=hashed - BITS, hashed=hashed)] if hashed > BITS else []
    passed += [because("gender-passes")] if any(feature.name == RAW for feature in features) else []
    return unbounded_entry(
        "feature",
        "features",
        "piecewise-exchanged",
        *passed,
        because("exchanged-pieces", columns=n_perturbed(features), epsilon=epsilon),
        accounting="released",
        claimed=(epsilon, 0.0),
        gaps=(*side_by_side(n_releases), RECORDED, SEED_OF_RELEASE),
    )


def threshold(target: int, n_nodes: int, epsilon: float) -> float:
    """θ of the code, its branches exchanged; where they are right see `edges.threshold`."""
    check_epsilon(epsilon)
    cells = edges.n_cells(n_nodes)
    if not 0 < target < cells:
        raise ValueError(f"target must be in 1..{cells - 1} (is {target})")
    balance = math.log(cells / target - 1)
    if epsilon < balance:
        return balance / (2 * epsilon)
    return math.log(2 * cells / (4 * target + math.expm1(epsilon) / 2)) / epsilon


def follows(
    pairs: NDArray[np.integer], n_nodes: int, epsilon: float, epsilon_count: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Follows as the code releases them: (n, 2), in order, some from a user to itself, the last user always.

    Args:
        pairs: (n_follows, 2) each follow once, no one following itself.
        n_nodes: how many users there are.
        epsilon: ε_g, of the filter.
        epsilon_count: of the noisy number of follows.
    """
    edges.check_count_budget(epsilon_count)
    values_drawn = noise.laplace(rng, "number-of-follows", 1 / epsilon_count, 1)
    target = len(pairs) + int(values_drawn[0])
    theta = threshold(target, n_nodes, epsilon)
    keys = np.unique(pairs.astype(np.int64) @ np.array([n_nodes, 1]))
    kept = keys[noise.uniform(rng, "which-follows-pass", len(keys)) >= edges.tail(1 - theta, epsilon)]
    taken = kept
    while missing := max(target - 1 - len(taken), 0):
        fresh = np.unique(noise.integers(rng, "which-false-follows", n_nodes**2, missing))
        taken = np.union1d(taken, fresh)
    loop = n_nodes**2 - 1
    return np.stack(np.divmod(np.union1d(taken, loop), n_nodes), axis=1)


def follows_entry(epsilon: float, epsilon_count: float, n_releases: int) -> LedgerEntry:
    """What a release of `follows` is claimed to cost, and why nothing finite follows."""
    return unbounded_entry(
        "edge",
        "edge",
        "top-m-filter-exchanged",
        because("exchanged-threshold"),
        neighbouring="add-or-remove",
        accounting="released",
        claimed=(epsilon, 0.0),
        gaps=(
            gap("follows-apart"),
            gap("follows-count-costs", epsilon=epsilon_count),
            *side_by_side(n_releases),
            RECORDED,
            SEED_OF_RELEASE,
        ),
        events=(
            Event(kind="laplace", parameters={"noise_multiplier": 1 / epsilon_count}),
            Event(kind="filled-top-m-filter", parameters={"epsilon": epsilon}),
        ),
    )


def sensitive_words(tokens: NDArray[np.int64], n_words: int, share: float) -> NDArray[np.bool_]:
    """(n_words,) the least frequent words, a share of the vocabulary and one more; of equals the later ones."""
    order = np.argsort(-np.bincount(tokens, minlength=n_words), kind="stable")
    chosen = np.zeros(n_words, np.bool_)
    chosen[order[-int(share * n_words) - 1 :]] = True
    return chosen


def texts(
    table: pl.DataFrame,
    vocabulary: Vocabulary,
    epsilon: float,
    sensitive_share: float,
    replaced_share: float,
    rng: np.random.Generator,
) -> pl.DataFrame:
    """Posts as the code releases them: `user` and `tokens`, as many words as before.

    Args:
        table: posts in ids of the vocabulary.
        epsilon: per unit of distance of its vectors.
        sensitive_share: of the vocabulary, see `sensitive_words`; these become one another.
        replaced_share: of the other words, how many become one of those.
    """
    check_epsilon(epsilon)
    lengths, tokens = posts.to_ragged(table)
    sensitive = sensitive_words(tokens, len(vocabulary.names), sensitive_share)
    changed = sensitive[tokens] | (noise.uniform(rng, "which-frequent-words", len(tokens)) <= replaced_share)
    result = tokens.copy()
    result[changed] = _substitute(tokens[changed], np.flatnonzero(sensitive), vocabulary.vectors, epsilon, rng)
    return posts.rebuilt(table["user"].to_numpy(), lengths, result, np.ones(len(result), np.bool_))


def text_entries(
    table: pl.DataFrame,
    vocabulary: Vocabulary,
    epsilon: float,
    sensitive_share: float,
    replaced_share: float,
    n_releases: int,
) -> tuple[LedgerEntry, ...]:
    """What a release of `texts` is claimed to cost, and why nothing finite follows.

    Args and errors: as `texts` and `words.ledger`.
    """
    longest = table.group_by("user").agg(n=pl.col("tokens").list.len().sum())["n"].max()
    assert isinstance(longest, int)
    entries = words.ledger(epsilon, longest, vocabulary.diameter, "fitted", "published", n_releases)
    passing = because("words-pass", frequent=1 - sensitive_share, unchanged=1 - replaced_share)
    about = {"accounting": "released", "mechanism": "exponential-some-words"}
    return tuple(entry.model_copy(update=about | {"reasons": (passing, *entry.reasons)}) for entry in entries)


def _substitute(
    tokens: NDArray[np.int64],
    targets: NDArray[np.int64],
    vectors: NDArray[np.floating],
    epsilon: float,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """A target for each token, with probability proportional to exp(-½ε d): (n_tokens,)."""
    uniform = noise.uniform(rng, "which word", len(tokens))
    points = np.asarray(vectors, np.float64)
    result = np.empty(len(tokens), np.int64)
    order = np.argsort(tokens, kind="stable")
    for of_word in np.split(order, np.flatnonzero(np.diff(tokens[order])) + 1 if len(tokens) else []):
        if not len(of_word):
            continue
        distances = np.linalg.norm(points[targets] - points[tokens[of_word[0]]], axis=1)
        cumulative = np.cumsum(np.exp(-epsilon / 2 * (distances - distances.min())))
        choice = np.searchsorted(cumulative, uniform[of_word] * cumulative[-1], side="right")
        result[of_word] = targets[np.minimum(choice, len(targets) - 1)]
    return result


def _named(features: Sequence[Feature]) -> list[tuple[Feature, str]]:
    """Of each column its feature, and its category, or the number's name."""
    return [
        (feature, name)
        for feature in features
        for name in (feature.categories if feature.kind == "categorical" else (feature.name,))
    ]
