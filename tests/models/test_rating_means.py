"""Means as predictors of ratings, with and without noise."""

import numpy as np
import pytest

from tasks.core.training_data import TrainingData
from tasks.models.social.rating_means import PrivateRatingMeans, RatingMeans
from tasks.privacy import noise
from tasks.privacy.noise import Draw
from tests.models.contract import fitted
from tests.models.social_data import poisoned, ratings


def means(of: str, data: TrainingData, damping: float = 0.0) -> RatingMeans:
    return fitted("rating-means", data, of=of, damping=damping)


def private(epsilon: float, data: TrainingData, seed: int = 0) -> PrivateRatingMeans:
    return fitted("dp-rating-means", data, seed, epsilon=epsilon)


def by_hand() -> TrainingData:
    """Users 0 and 1, items 0 to 2; user 1's 1 is sensitive; published mean 4."""
    users, items = np.array([0, 0, 1, 1], np.int32), np.array([0, 1, 0, 1], np.int32)
    values = np.array([5, 3, 4, 1], np.float32)
    return TrainingData(3, 3, users, items, ratings=values, sensitive=np.array([False, False, False, True]))


@pytest.mark.parametrize(
    ("of", "damping", "expected"),
    [
        ("global", 0.0, [4, 4, 4]),
        ("item", 0.0, [4.5, 3, 4]),  # published: item 0 has 5 and 4, item 1 has 3
        ("item", 1.0, [4 + 1 / 3, 3.5, 4]),
        ("user", 0.0, [2.5, 2.5, 2.5]),  # user 1 knows the own 1
        ("bias", 0.0, [4.5 - 1.25, 3 - 1.25, 4 - 1.25]),  # of user 1 remain -0.5 and -2
    ],
)
def test_means_by_hand(of, damping, expected):
    actual = means(of, by_hand(), damping).predict(np.full(3, 1, np.int32), np.arange(3, dtype=np.int32))
    np.testing.assert_allclose(actual, expected, atol=1e-6)


def test_others_see_nothing_of_a_sensitive_rating():
    data = ratings()
    first, other = (means("bias", of) for of in (data, poisoned(data)))
    np.testing.assert_array_equal(first.item_offsets, other.item_offsets)
    assert first.mean == other.mean
    owners = np.unique(data.users[data.sensitive])
    changed = np.flatnonzero(first.user_offsets != other.user_offsets)
    assert set(changed) <= set(owners)
    (entry,) = first.ledger()
    assert entry.accounted_epsilon == 0


@pytest.mark.usefixtures("same_noise")
def test_noisy_sums_of_one_value_changed_differ_by_at_most_the_range():
    """With the same noise: the sum of an item behind its offset, times the weights that are public."""
    data = ratings()
    row = int(np.flatnonzero(data.sensitive)[0])
    values = data.ratings.copy()
    values[row] = 1 if values[row] > 3 else 5
    changed = TrainingData(**(vars(data) | {"ratings": values}))
    moved = (private(2.0, data).item_offsets - private(2.0, changed).item_offsets).numpy()
    assert np.flatnonzero(moved).tolist() == [data.items[row]]
    sensitive = np.bincount(data.items[data.sensitive], minlength=data.n_items)[data.items[row]]
    published = np.bincount(data.items[~data.sensitive], minlength=data.n_items)[data.items[row]]
    worth = sensitive**2 / (sensitive + 2 * (4 / 2.0) ** 2)
    weight = worth / sensitive / (published + worth + 1.0)
    assert float(np.abs(moved).max()) == pytest.approx(float(weight * abs(values[row] - data.ratings[row])), rel=1e-4)


@pytest.mark.parametrize("epsilon", [0.1, 4.0])
def test_noise_is_laplace_of_the_range_over_the_budget_once_for_every_item(epsilon: float) -> None:
    """A sensitive rating from 1 to 5 moves its item's sum by 4 at most, so scale 4/ε gives ε."""
    data = ratings(0.3)
    with noise.recording() as draws:
        private(epsilon, data)
    assert draws == [Draw("sums-of-ratings", "laplace", pytest.approx(4 / epsilon), (data.n_items,))]


def test_what_is_released_holds_all_of_the_noise_that_was_drawn() -> None:
    """Two seeds' offsets differ by the difference of their noise, divided by the raters and weighed as the sum is."""
    data, drawn, offsets = ratings(0.3), [], []
    for seed in range(2):
        with noise.recording() as draws:
            offsets.append(private(1.0, data, seed).item_offsets.numpy())
        drawn.append(draws[0].values)
    raters, published = (
        np.bincount(data.items[which], minlength=data.n_items) for which in (data.sensitive, ~data.sensitive)
    )
    assert raters.max() > 1
    worth = raters**2 / (raters + 2 * 4.0**2)
    expected = (drawn[1] - drawn[0]) * worth / np.maximum(raters, 1) / (published + worth + 1.0)
    np.testing.assert_allclose(offsets[1] - offsets[0], expected, rtol=1e-4, atol=1e-6)


def test_much_budget_is_the_mean_of_all_ratings_and_none_that_of_published_ones():
    data = ratings()
    public = means("bias", data, damping=1.0)
    deviations = data.ratings - float(public.mean)
    everything = np.bincount(data.items, deviations, data.n_items) / (
        np.bincount(data.items, minlength=data.n_items) + 1.0
    )
    np.testing.assert_allclose(private(1e6, data).item_offsets, everything, atol=1e-4)
    np.testing.assert_allclose(private(1e-6, data).item_offsets, public.item_offsets, atol=1e-4)


def test_noise_hurts_no_more_than_it_helps():
    """Items' true deviations have variance 1, as assumed: at every budget the mean square error over 60 draws is at
    most a few percent above that of published ratings alone."""
    rng = np.random.default_rng(0)
    truth = rng.normal(0, 0.7, 40)
    users, items = (ids.ravel().astype(np.int32) for ids in np.indices((25, 40)))
    values = np.clip(3 + truth[items] + rng.normal(0, 0.7, len(items)), 1, 5).astype(np.float32)
    data = TrainingData(25, 40, users, items, ratings=values, sensitive=rng.random(len(items)) < 0.7)

    def error(model: RatingMeans) -> float:
        return float(np.square(model.item_offsets.numpy() + float(model.mean) - 3 - truth).mean())

    alone = error(means("bias", data, damping=1.0))
    at = {epsilon: np.mean([error(private(epsilon, data, s)) for s in range(60)]) for epsilon in (0.01, 0.1, 1.0, 10.0)}
    assert max(at.values()) < 1.05 * alone
    assert at[10.0] < 0.8 * alone
