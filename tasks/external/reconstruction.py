"""Do lists and scores tell ratings that users held back, beyond what their training ratings tell?

The attacker knows the training ratings and what was released, learns from the held-back ratings of half of the users,
and predicts those of the others. Controls are the same regression without what was released, and with the list of
someone else and the scores of others: what these say about an item, and not about its user, is no leak. Nor is what the
list and the scores of the user with the most similar history say: a chart of their region serves both.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from tasks.attacks.membership import Bools, Floats
from tasks.evaluation.damped_means import DampedMeans
from tasks.evaluation.statistics import crossed_interval
from tasks.external import signals
from tasks.external.attacks import MOST_SIMILAR, exchange
from tasks.external.findings import Answer, Attack, Measure, mean, tested, undecided, with_interval
from tasks.external.inputs import Inputs, Ints, Pairs, sample
from tasks.external.signals import Weights

DAMPING = 5.0
"""Made-up average ratings by which means of items and users are shrunk."""
RIDGE = 1.0
MOST_PAIRS = 50_000
CONTROLS = ("ratings alone", "lists of other users", MOST_SIMILAR)
FEWEST = 50
"""Users with held-back ratings below which nothing is decided."""


def held_back(inputs: Inputs, similarity: Weights, seed: int) -> Answer:
    """How much closer the attack comes to held-back ratings than its controls do."""
    if inputs.train.ratings is None or inputs.public.ratings is None:
        why = "ratings are needed in --train and, held back from training, in --public"
        return undecided("held-back ratings", "held-back ratings", why)
    rng = np.random.default_rng([seed, *b"held back"])
    chosen = sample(np.flatnonzero((inputs.is_member & inputs.has_list)[inputs.public.users]), MOST_PAIRS, rng)
    pairs = Pairs(inputs.public.users[chosen], inputs.public.items[chosen], inputs.public.ratings[chosen])
    owners = np.unique(pairs.users)
    if len(owners) < FEWEST:
        why = "give --public with ratings of trained users that were held back"
        why += f" ({len(owners)} users with some now, at least {FEWEST} needed)"
        return undecided("held-back ratings", "held-back ratings", why)
    ratings = inputs.public.ratings[chosen]
    without = np.column_stack(
        [
            _baseline(inputs.train, pairs, inputs.n_users, inputs.n_items),
            np.log1p(inputs.popularity[pairs.items]),
            signals.history_similarity(similarity, inputs.trained, pairs, rng),
        ]
    )
    swapped = np.arange(inputs.n_users)
    swapped[owners] = np.roll(rng.permutation(owners), 1)
    learns = rng.permutation(np.arange(inputs.n_users) % 2 == 0)[pairs.users]
    alike = exchange(np.arange(inputs.n_users)[:, None], owners, inputs.trained, rng)[MOST_SIMILAR][:, 0]
    local = of_others = of_alike = None
    if inputs.scores is not None:
        keys, keys_alike = (Pairs(of, pairs.items).keys(inputs.n_items) for of in (pairs.users, alike[pairs.users]))
        local, of_others = inputs.scores.lookup(keys), inputs.scores.of_others(keys, inputs.n_items)
        of_alike = inputs.scores.lookup(keys_alike)
        of_alike = np.where(np.isnan(of_alike), of_others, of_alike)
    released = (
        _release_features(inputs, similarity, Pairs(users, pairs.items), scores)
        for users, scores in ((swapped[pairs.users], of_others), (alike[pairs.users], of_alike), (pairs.users, local))
    )
    judged = pairs.users[~learns]
    *controls, attacked = (
        _by_user((_predict(features, ratings, learns) - ratings[~learns]) ** 2, judged)
        for features in (without, *(np.column_stack([without, columns]) for columns in released))
    )
    gains = {name: errors - attacked for name, errors in zip(CONTROLS, controls, strict=True)}
    attack = Attack(
        name="ridge regression",
        measures=[
            _rmse("RMSE, ratings and lists", attacked, seed),
            mean("squared error less than from the ratings alone", gains["ratings alone"], seed),
        ],
        controls=[_rmse(f"RMSE, {name}", attacked + values, seed) for name, values in gains.items()],
        p=max(map(_p, gains.values())),
    )
    notes = [f"{len(judged):,} held-back ratings of {len(attacked):,} users, {learns.sum():,} of others to learn from"]
    return tested("held-back ratings", "held-back ratings", notes, [attack])


def _baseline(train: Pairs, pairs: Pairs, n_users: int, n_items: int) -> Floats:
    """What user and item means of the training ratings predict."""
    assert train.ratings is not None
    users, items, of_users, of_items = (
        ids.astype(np.int32) for ids in (train.users, train.items, pairs.users, pairs.items)
    )
    low, high = float(train.ratings.min()), float(train.ratings.max())
    return DampedMeans(users, items, train.ratings, n_users, n_items, low, high).expected(of_users, of_items, DAMPING)


def _release_features(inputs: Inputs, similarity: Weights, pairs: Pairs, scores: Floats | None) -> Floats:
    """(n, 2 or 3) what the released lists of these users, and scores (NaN: none), say about these items."""
    columns = [
        signals.reciprocal_rank(inputs.lists, pairs),
        signals.list_similarity(similarity, inputs.lists, pairs, pairs.items[:, None]),
    ]
    if scores is not None:
        assert inputs.scores is not None
        columns.append(np.where(np.isnan(scores), np.nanmean(inputs.scores.values), scores))
    return np.nan_to_num(np.column_stack(columns))


def _predict(features: Floats, ratings: Floats, learns: Bools) -> Floats:
    """Ridge regression on standardised features, learned where `learns`, for the others."""
    mean, deviation = features[learns].mean(axis=0), features[learns].std(axis=0)
    standard = (features - mean) / np.where(deviation > 0, deviation, 1.0)
    centre = ratings[learns].mean()
    normal = standard[learns].T @ standard[learns] + RIDGE * np.eye(features.shape[1])
    weights = np.linalg.solve(normal, standard[learns].T @ (ratings[learns] - centre))
    return np.asarray(np.clip(centre + standard[~learns] @ weights, ratings.min(), ratings.max()), np.float64)


def _by_user(errors: Floats, users: Ints) -> Floats:
    """(n_users,) mean error of each."""
    _, index, counts = np.unique(users, return_inverse=True, return_counts=True)
    return np.asarray(np.bincount(index, errors) / counts, np.float64)


def _p(gains: Floats) -> float:
    """One-sided p-value of "no gain over users": a t-test."""
    if gains.mean() <= 0 or np.ptp(gains) == 0:
        return 1.0
    return float(stats.ttest_1samp(gains, 0, alternative="greater").pvalue)


def _rmse(name: str, squares: Floats, seed: int) -> Measure:
    interval = crossed_interval(squares[None], seed=seed)
    return with_interval(name, float(squares.mean()) ** 0.5, *(end**0.5 for end in interval))
