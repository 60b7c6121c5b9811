"""Audits of models of ratings: noisy means, and what the parties of PrivSR send each other.

Every item has its own raters and no one rates two items, so that one fit shows as many independent runs as there are
items. The value of each item's first rating is the highest in one world and the lowest in the other. Vectors have equal
components, unit length and no spread, so that a submission moves as far as it can, and steps are so short that items'
vectors hardly change what is submitted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tasks.audits import Samples
from tasks.models.base import Received
from tasks.models.social.baselines import DPMF, DPMFConfig
from tasks.models.social.factorisation import SocialFactorisation
from tasks.models.social.privsr import PrivSR, PrivSRConfig
from tasks.models.social.rating_means import PrivateRatingMeans, PrivateRatingMeansConfig
from tasks.training_data import TrainingData

SCALE = (1.0, 5.0)
RATERS = 4
"""Of an item, where several submissions are added up."""
DELTA = 0.1
"""So large that not too many samples prove much of the ε that belongs to it."""
FACTORS: dict[str, Any] = {
    "epochs": 2, "iterations_per_epoch": 3, "dimension": 1, "scale": SCALE, "initial_spread": 0.0,
    "regularization": 0.0, "learning_rate": 1e-5,
}  # fmt: skip
SIZE = {"epochs": 1, "iterations_per_epoch": 200, "dimension": 10}
"""Of the audits of claims, unless said otherwise."""
RIGOROUS = FACTORS | {"alpha": 0.1, "accounting": "rigorous"}


def means(seed: int, n_samples: int = 200_000, epsilon: float = 1.0) -> Samples:
    """`dp-rating-means`: items' deviations, each from a single sensitive rating."""
    config = PrivateRatingMeansConfig(of="item", damping=1.0, scale=SCALE, epsilon=epsilon, variance=1.0)
    model, rng = PrivateRatingMeans(config), np.random.default_rng(seed)
    lowest, highest = (model.fit(_data(n_samples, 1, value), rng=rng).item_offsets.double().numpy() for value in SCALE)
    return Samples(lowest, highest, model.ledger()[0])


def sums(seed: int, n_samples: int = 20_000, epsilon: float = 3.0, delta: float = DELTA) -> Samples:
    """`privsr-rigorous` towards one who sees sums per item: items' vectors after all iterations tell their sum."""
    model = _rigorous("sums", epsilon, delta, learning_rate=1e-3)
    lowest, highest = (-model.network.items[:, 0].double().numpy() for _ in _worlds(model, n_samples, RATERS, seed))
    return Samples(lowest, highest, model.ledger()[0])


def submissions(seed: int, n_samples: int = 20_000, epsilon: float = 1.0, delta: float = DELTA) -> Samples:
    """`privsr-rigorous` towards sums, seen by a recommender: every submission carries a share of the sum's noise."""
    return _submissions("sums", 1, seed, n_samples, epsilon, delta)


def recommender(seed: int, n_samples: int = 20_000, epsilon: float = 3.0, delta: float = DELTA) -> Samples:
    """`privsr-rigorous` towards a recommender who sees each submission."""
    return _submissions("recommender", 0, seed, n_samples, epsilon, delta)


def published(seed: int, n_samples: int = 3_000, epsilon: float = 0.1, beta: float = 0.1, **size: Any) -> Samples:
    """The claim of `privsr`: the recommender, who drew h, over all iterations; size: what differs from `SIZE`."""
    claim = {"alpha": 0.1, "accounting": "published", "beta": beta, "epsilon": epsilon, "learning_rate": 1e-9}
    return _claimed_samples(PrivSR(PrivSRConfig.model_validate(FACTORS | SIZE | size | claim)), seed, n_samples)


def factorisation(seed: int, n_samples: int = 3_000, epsilon: float = 0.1, **size: Any) -> Samples:
    """The claim of `dpmf-ratings`, likewise."""
    config = DPMFConfig.model_validate(FACTORS | SIZE | size | {"epsilon": epsilon, "learning_rate": 1e-9})
    return _claimed_samples(DPMF(config), seed, n_samples)


def _rigorous(towards: str, epsilon: float, delta: float, **more: float) -> PrivSR:
    budget = {"towards": towards, "epsilon": epsilon, "delta": delta}
    return PrivSR(PrivSRConfig.model_validate(RIGOROUS | budget | more))


def _submissions(towards: str, line: int, seed: int, n: int, epsilon: float, delta: float) -> Samples:
    model = _rigorous(towards, epsilon, delta)
    lowest, highest = (-_averages(model).mean[:n, 0] for _ in _worlds(model, n, RATERS, seed))
    return Samples(lowest.astype(np.float64), highest.astype(np.float64), model.ledger()[line])


def _claimed_samples(model: SocialFactorisation, seed: int, n: int) -> Samples:
    """Averages by inverse variance are as much as can be known of an unchanging submission, given h."""
    sides = []
    for _ in _worlds(model, n, 1, seed):
        received = _averages(model)
        weighted, variance = received.weighted[:n], received.weighted_variance[:n]
        sides.append(-(weighted / variance).sum(1, dtype=np.float64))
    return Samples(sides[0], sides[1], model.ledger()[0])


def _worlds(model: SocialFactorisation, n: int, raters: int, seed: int) -> Iterator[None]:
    """Fit the model in the one world, then in the other."""
    rng = np.random.default_rng(seed)
    for value in SCALE:
        model.fit(_data(n, raters, value), rng=rng)
        yield


def _averages(model: SocialFactorisation) -> Received:
    """What the recommender remembers of every submission, in the order of the users."""
    observed = model.observed()
    assert observed is not None
    assert observed.submissions is not None
    return observed.submissions


def _data(n_items: int, raters: int, value: float) -> TrainingData:
    """User u rates item u modulo n_items; users below n_items give `value`, the others the mean of the scale."""
    users = np.arange(n_items * raters, dtype=np.int32)
    ratings = np.where(users < n_items, value, sum(SCALE) / 2).astype(np.float32)
    sensitive, links = np.ones(len(users), np.bool_), np.zeros((0, 2), np.int32)
    return TrainingData(len(users), n_items, users, users % n_items, ratings=ratings, sensitive=sensitive, links=links)
