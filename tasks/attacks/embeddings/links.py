"""Link stealing from released embeddings: which pairs of users are friends?

Source: He et al., "Stealing Links from Graph Neural Networks" (USENIX Security 2021), docs/methods.md §7. Friends get
similar vectors, so similarity gives them away (cosine, dot product); an attacker who knows some pairs learns which
dimensions do (logistic regression on the Hadamard product).

Links are the true ones, whatever the embedding was trained on: to be distinguished from non-links drawn uniformly.
Chance is an AUC of 0.5, and a true positive rate of 0.01 at a false positive rate of 1 %. Neither is what a release
gives away by itself: attributes make friends too, and users of many friends are easy. So give the attributes alone, and
the number of friends as vectors of length one, as controls.

Intervals are for other pairs of the same network, as if pairs were independent; a user is in several.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, normalize

from tasks.core.errors import DataError
from tasks.evaluation.classification import Vectors, check_vectors
from tasks.evaluation.detection import Rate
from tasks.evaluation.statistics import clopper_pearson

FALSE_POSITIVES = 0.01
FEWEST = 2
"""Tested links, and non-links; with fewer there is no variance."""
Z = float(stats.norm.ppf(0.975))


@dataclass(frozen=True)
class Pairs:
    """What the attacker knows and what is asked: (n, 2) int64 pairs of users each, no pair twice."""

    known_links: NDArray[np.int64]
    known_others: NDArray[np.int64]
    links: NDArray[np.int64]
    others: NDArray[np.int64]


class Similarity(NamedTuple):
    """What an attacker thinks of the tested pairs; higher is more likely a link."""

    links: NDArray[np.float64]
    others: NDArray[np.float64]


class Theft(NamedTuple):
    """How well one attacker distinguishes links from others."""

    attacker: str
    auc: Rate
    tpr: Rate
    """At a false positive rate of 1 %."""


def steal(
    vectors: Vectors,
    links: NDArray[np.integer],
    *,
    pairs: int,
    known_share: float,
    seed: int,
) -> list[Theft]:
    """Attack a release by similarity, and by what can be trained on known pairs.

    Args:
        vectors: (n_users, d) as released.
        links: (n, 2) true links or follows; direction, repeats and links to oneself do not count.
        pairs: how many links are drawn, and as many non-links (fewer where there are fewer).
        known_share: of both, what the attacker knows; with 0 nothing is learned and there is no `hadamard`.
        seed: of pairs and of breaking ties. Equal seeds draw equal pairs, regardless of the vectors.

    Raises:
        DataError: there are fewer than two links or non-links to test; vectors are not finite; links are not pairs, or
            one names a user without a vector; known_share is not in [0, 1).
    """
    check_vectors(vectors, "vectors")
    tested = draw(links, len(vectors), pairs, known_share, np.random.default_rng([seed, *b"pairs"]))
    ties = np.random.default_rng([seed, *b"ties"])
    return [
        Theft(attacker, auc(similarity), tpr(similarity, ties))
        for attacker, similarity in similarities(vectors, tested).items()
    ]


def draw(links: NDArray[np.integer], n_users: int, pairs: int, known_share: float, rng: np.random.Generator) -> Pairs:
    """Random links, and as many random pairs that are none; every set of so many is equally likely.

    Raises:
        DataError: as `steal`.
    """
    if links.ndim != 2 or links.shape[1] != 2:
        raise DataError(f"links: shape {links.shape}, not (n, 2)")
    if links.size and not 0 <= links.min() <= links.max() < n_users:
        raise DataError(f"links: user {links.max()} or {links.min()} is none of the {n_users} with a vector")
    if not 0 <= known_share < 1:
        raise DataError(f"known_share: {known_share} leaves nothing to test; it lies in [0, 1)")
    taken = _numbers(links, n_users)
    n_others = n_users * (n_users - 1) // 2 - len(taken)
    chosen = min(pairs, len(taken), n_others)
    n_known = round(known_share * chosen)
    if chosen - n_known < FEWEST:
        raise DataError(
            f"links: of {len(taken)} links and {n_others} other pairs of {n_users} users, {chosen - n_known} of each "
            f"would be tested; at least {FEWEST} are needed"
        )
    true = _pairs(rng.choice(taken, chosen, replace=False), n_users)
    ranks = rng.choice(n_others, chosen, replace=False)
    # Before non-link number r lie r non-links and as many links as have at most r non-links before them.
    before = np.searchsorted(taken - np.arange(len(taken)), ranks, side="right")
    false = _pairs(ranks + before, n_users)
    return Pairs(true[:n_known], false[:n_known], true[n_known:], false[n_known:])


def similarities(vectors: Vectors, pairs: Pairs) -> dict[str, Similarity]:
    """Attacker -> what it thinks of the tested pairs."""
    rows = vectors.astype(np.float64)
    scores = {
        "cosine": Similarity(*[_products(normalize(rows), some).sum(axis=1) for some in (pairs.links, pairs.others)]),
        "dot": Similarity(*[_products(rows, some).sum(axis=1) for some in (pairs.links, pairs.others)]),
    }
    if len(pairs.known_links):
        products = _products(rows, np.concatenate([pairs.known_links, pairs.known_others]))
        is_link = np.arange(len(products)) < len(pairs.known_links)
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(products, is_link)
        tested = [model.decision_function(_products(rows, some)) for some in (pairs.links, pairs.others)]
        scores["hadamard"] = Similarity(*tested)
    return scores


def auc(similarity: Similarity) -> Rate:
    """Probability that a link looks more like one than a non-link does, ties counting half.

    The interval is DeLong's (Biometrics 1988). Where every link is above every non-link, or below, that has no width;
    it is then of as many independent comparisons as there are pairs of the rarer kind, all with the same outcome.
    """
    # of each link the share of non-links below it, of each non-link the share of links above it; ties count half
    of_links = _empirical_cdf(similarity.links, similarity.others)
    of_others = 1 - _empirical_cdf(similarity.others, similarity.links)
    value = float(of_links.mean())
    if value in (0.0, 1.0):
        n = min(len(of_links), len(of_others))
        return Rate(value, *clopper_pearson(round(value * n), n))
    error = float(np.sqrt(of_links.var(ddof=1) / len(of_links) + of_others.var(ddof=1) / len(of_others)))
    return Rate(value, max(value - Z * error, 0.0), min(value + Z * error, 1.0))


def tpr(similarity: Similarity, rng: np.random.Generator) -> Rate:
    """Share of links above the threshold that a share `FALSE_POSITIVES` of the non-links exceeds.

    Among equal values the threshold lies at random, so whoever cannot tell anything apart gets that. The interval
    knows that the threshold is an estimate too: with 97.5 % it lies between two order statistics of the non-links, and
    the rates at these have exact intervals of 97.5 %. It needs no assumption besides independent pairs, and is wide.

    Args:
        rng: breaks ties, for the interval alone.
    """
    values = np.concatenate(similarity)
    levels, at = np.unique(values, return_inverse=True)
    n_links, n_others = len(similarity.links), len(similarity.others)
    is_link = np.arange(len(values)) < n_links
    rates = []
    for chosen, n in ((~is_link, n_others), (is_link, n_links)):
        above = np.bincount(at[chosen], minlength=len(levels))[::-1].cumsum()
        rates.append(np.concatenate([[0.0], above / n]))
    below = int(np.searchsorted(rates[0], FALSE_POSITIVES, side="right")) - 1
    value = float(rates[1][below])
    if below + 1 < len(rates[0]):  # the next value down would be too much: a share of those who have it
        step = (FALSE_POSITIVES - rates[0][below]) / (rates[0][below + 1] - rates[0][below])
        value += step * float(rates[1][below + 1] - rates[1][below])

    ranks = np.empty(len(values), np.int64)
    ranks[np.lexsort((rng.random(len(values)), values))] = np.arange(len(values))
    of_links, of_others = ranks[is_link], np.sort(ranks[~is_link])[::-1]
    fewest, largest = (int(stats.binom.ppf(q, n_others, FALSE_POSITIVES)) for q in (0.0125, 0.9875))
    strict = int((of_links > of_others[fewest - 1]).sum()) if fewest else 0
    lenient = int((of_links > of_others[largest]).sum()) if largest < n_others else n_links
    low, _ = clopper_pearson(strict, n_links, level=0.975)
    _, high = clopper_pearson(lenient, n_links, level=0.975)
    return Rate(value, min(low, value), max(high, value))


def _empirical_cdf(values: NDArray[np.float64], reference: NDArray[np.float64]) -> NDArray[np.float64]:
    in_order = np.sort(reference)
    first, last = (np.searchsorted(in_order, values, side=side) for side in ("left", "right"))
    return (first + last) / (2 * len(reference))


def _products(rows: NDArray[np.float64], pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    product: NDArray[np.float64] = rows[pairs[:, 0]] * rows[pairs[:, 1]]
    return product


def _numbers(links: NDArray[np.integer], n_users: int) -> NDArray[np.int64]:
    """Links as sorted numbers of pairs: (s - 1) n + i for users i and i + s modulo n, s at most n/2."""
    low, high = np.sort(links[links[:, 0] != links[:, 1]].astype(np.int64), axis=1).T
    step = high - low
    wraps = 2 * step > n_users
    return np.unique(np.where(wraps, (n_users - step - 1) * n_users + high, (step - 1) * n_users + low))


def _pairs(numbers: NDArray[np.int64], n_users: int) -> NDArray[np.int64]:
    step, first = np.divmod(numbers, n_users)
    return np.stack([first, (first + step + 1) % n_users], axis=1)
