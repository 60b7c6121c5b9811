"""Audits of models of ratings: noisy means, and what the parties of PrivSR send each other.

Every item has its own raters and no one rates two items, so that one fit shows as many independent runs as there are
items. The value of each item's first rating is the highest in one world and the lowest in the other. Vectors have equal
components, unit length and no spread, so that a submission moves as far as it can, and steps are so short that items'
vectors hardly change what is submitted.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.audits import Samples
from tasks.core.training_data import TrainingData
from tasks.models.base import Received
from tasks.models.social.factorisation import SocialFactorisation
from tasks.models.social.privsr import DPMF, DPMFConfig, PrivSR, PrivSRConfig
from tasks.models.social.rating_means import PrivateRatingMeans, PrivateRatingMeansConfig
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.terms import Observer

SCALE = (1.0, 5.0)
RATERS = 4
"""Of an item, where several submissions are added up."""
DELTA = 0.1
"""So large that not too many samples prove much of the ε that belongs to it."""
FACTORS: dict[str, object] = {
    "epochs": 2, "iterations_per_epoch": 3, "dimension": 1, "scale": SCALE, "initial_spread": 0.0,
    "regularization": 0.0, "learning_rate": 1e-5,
}  # fmt: skip
SIZE = {"epochs": 1, "iterations_per_epoch": 200, "dimension": 10}
"""Of the audits of claims, unless said otherwise."""
RIGOROUS = FACTORS | {"alpha": 0.1, "accounting": "rigorous"}
DECISIVE = 1e6
"""Weight of messages to friends, which have no noise: one that moves shows the world for certain."""


def means(seed: int, n_samples: int = 200_000, epsilon: float = 1.0) -> Samples:
    """`dp-rating-means`: items' deviations, each from a single sensitive rating."""
    config = PrivateRatingMeansConfig(of="item", damping=1.0, scale=SCALE, epsilon=epsilon, variance=1.0)
    model, rng = PrivateRatingMeans(config), np.random.default_rng(seed)
    lowest, highest = (model.fit(_data(n_samples, 1, value), rng=rng).item_offsets.double().numpy() for value in SCALE)
    return Samples(lowest, highest, model.ledger()[0])


def submissions(seed: int, n_samples: int = 20_000, epsilon: float = 1.0, **budget: Any) -> Samples:
    """The same towards a recommender: where sums are protected, each carries a share of the noise alone."""
    model = _rigorous(epsilon, **budget)
    lowest, highest = (-_averages(model)[:n_samples] for _ in _worlds(model, n_samples, RATERS, seed))
    return Samples(lowest, highest, _line(model, "recommender-of-submissions"))


recommender = partial(submissions, epsilon=3.0, towards="recommender")
"""The same where it is submissions that are protected."""


def published(seed: int, n_samples: int = 3_000, epsilon: float = 0.1, beta: float = 0.1, **size: object) -> Samples:
    """The claim of `privsr`: the recommender, who drew h, over all iterations; size: what differs from `SIZE`."""
    claim = {"alpha": 0.1, "accounting": "published", "beta": beta, "epsilon": epsilon, "learning_rate": 1e-9}
    return _claimed_samples(PrivSR(PrivSRConfig.model_validate(FACTORS | SIZE | size | claim)), seed, n_samples)


def factorisation(seed: int, n_samples: int = 3_000, epsilon: float = 0.1, **size: object) -> Samples:
    """The claim of `dpmf-ratings`, likewise."""
    config = DPMFConfig.model_validate(FACTORS | SIZE | size | {"epsilon": epsilon, "learning_rate": 1e-9})
    return _claimed_samples(DPMF(config), seed, n_samples)


def _rigorous(epsilon: float, delta: float = DELTA, towards: str = "sums", **more: float) -> PrivSR:
    return PrivSR(
        PrivSRConfig.model_validate(RIGOROUS | {"towards": towards, "epsilon": epsilon, "delta": delta} | more)
    )


def _sums(observer: Observer, seed: int, n_samples: int = 20_000, epsilon: float = 3.0, **budget: Any) -> Samples:
    """`privsr-rigorous` towards one who sees sums per item: items' vectors after all iterations tell their sum.

    Co-raters are all raters of an item but one, and take their submissions off. A friend of the first rater of each
    item also has what that rater sent.

    budget: see `_rigorous`.
    """
    colluders = max(budget.get("colluders", 0), 1) if observer == "co-raters" else 0
    n, raters = n_samples, colluders + 1
    if not colluders and budget.get("towards", "sums") == "sums":
        raters = RATERS
    model = _rigorous(epsilon, learning_rate=1e-3, **budget)
    sides = []
    for _ in _worlds(model, n, raters, seed, friends=observer == "friend"):
        steps = model.config.learning_rate * model.config.iterations
        sides.append(-model.network.items[:n, 0].double().numpy())
        if colluders:
            sides[-1] -= steps * _averages(model).reshape(raters, n)[1 : 1 + colluders].sum(0)
        if observer == "friend":
            observed = model.observed()
            assert observed is not None
            assert observed.friends is not None
            sides[-1] += DECISIVE * observed.friends.mean[:, 0].astype(np.float64)
    return Samples(sides[0], sides[1], _line(model, observer))


sums = partial(_sums, "recommender-of-sums")
co_raters = partial(_sums, "co-raters")
friend = partial(_sums, "friend")


def _line(model: PrivSR, observer: Observer) -> LedgerEntry:
    return next(entry for entry in model.ledger() if entry.observer == observer)


def _claimed_samples(model: SocialFactorisation, seed: int, n: int) -> Samples:
    """Averages by inverse variance are as much as can be known of an unchanging submission, given h."""
    sides = []
    for _ in _worlds(model, n, 1, seed):
        received = _received(model)
        weighted, variance = received.weighted[:n], received.weighted_variance[:n]
        sides.append(-(weighted / variance).sum(1, dtype=np.float64))
    return Samples(sides[0], sides[1], model.ledger()[0])


def _worlds(model: SocialFactorisation, n: int, raters: int, seed: int, friends: bool = False) -> Iterator[None]:
    rng = np.random.default_rng(seed)
    for value in SCALE:
        data = _data(n, raters, value)
        model.fit(_with_friends(data, n) if friends else data, rng=rng)
        yield


def _averages(model: SocialFactorisation) -> NDArray[np.float64]:
    """The first coordinate of every average submission, in the order of the users."""
    return _received(model).mean[:, 0].astype(np.float64)


def _received(model: SocialFactorisation) -> Received:
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


def _with_friends(data: TrainingData, n: int) -> TrainingData:
    """The first n users get a friend each, and both publish a rating of an item that no one else rates."""
    raters, friends = np.arange(n, dtype=np.int32), np.arange(data.n_users, data.n_users + n, dtype=np.int32)
    assert data.ratings is not None
    assert data.sensitive is not None
    return TrainingData(
        data.n_users + n,
        data.n_items + n,
        np.concatenate([data.users, raters, friends]),
        np.concatenate([data.items, np.tile(data.n_items + raters, 2)]),
        ratings=np.concatenate([data.ratings, np.full(2 * n, sum(SCALE) / 2, np.float32)]),
        sensitive=np.concatenate([data.sensitive, np.zeros(2 * n, np.bool_)]),
        links=np.column_stack([friends, raters]),
    )
