import numpy as np
import pytest
from scipy.stats import chisquare

from tasks.datasets.synthetic.skew import (
    Strata,
    activity,
    allot,
    choose,
    draw_pairs,
    everything_once,
    long_tail,
)

FALSE_ALARM = 1e-4


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(11)


def strata(rng: np.random.Generator, n_items: int, n_strata: int) -> Strata:
    stratum = rng.permutation(np.arange(n_items) % n_strata)
    return Strata(stratum, long_tail(rng, n_items, 6.0, 0.4), n_strata)


@pytest.mark.parametrize(
    ("total", "maximum"), [(2_000, 2), (40_000, 900), (899_000, 900), (900_000, 900), (1_000, 900)]
)
def test_activity_adds_up_between_its_bounds(rng: np.random.Generator, total: int, maximum: int) -> None:
    propensity = rng.standard_normal(1_000)
    actual = activity(rng, propensity, total, minimum=1, maximum=maximum, sigma=1.2)
    assert actual.sum() == total
    assert actual.min() >= 1
    assert actual.max() <= maximum
    assert (np.diff(actual[np.argsort(propensity)]) >= 0).all()


def test_what_is_allotted_is_in_proportion_up_to_the_most(rng: np.random.Generator) -> None:
    weights = rng.random(1_000)
    weights[:10] = 0
    np.testing.assert_allclose(allot(rng, weights, 100_000, 1_000), weights / weights.sum() * 100_000, atol=1.01)
    assert allot(rng, weights, 99_999, 100)[10:].min() == 100  # nothing is left for those without weight but what must
    assert allot(rng, np.zeros(4), 3, 1).sum() == 3
    assert allot(rng, np.array([]), 0, 9).tolist() == []
    assert allot(rng, weights, 2_000, 1_000, 1).min() == 1
    for total in (19, 31):
        with pytest.raises(ValueError, match=rf"10 with 2 to 3 each cannot have {total}"):
            allot(rng, np.ones(10), total, 3, 2)


def test_choices_follow_the_weights_of_their_row(rng: np.random.Generator) -> None:
    weights = np.array([[1.0, 0.0, 3.0], [5.0, 4.0, 1.0]])
    rows = np.repeat([1, 0], [30_000, 20_000])
    actual = choose(rng, weights, rows)
    for row, number in ((0, 20_000), (1, 30_000)):
        counts = np.bincount(actual[rows == row], minlength=3)
        some = weights[row] > 0
        assert counts[some].sum() == number
        assert chisquare(counts[some], number * weights[row][some] / weights[row].sum()).pvalue > FALSE_ALARM


def test_pairs_are_distinct_as_many_as_asked_for_and_every_item_is_among_them(rng: np.random.Generator) -> None:
    items = strata(rng, 200, 5)
    quota = np.concatenate([rng.integers(0, 60, 500), [200, 199, 1, 0]])
    taste = np.exp(rng.standard_normal((len(quota), 5)))
    sure = everything_once(rng, items, quota, lambda some: taste[some])
    users, actual = draw_pairs(rng, taste, items, quota, sure)
    assert (np.bincount(users, minlength=len(quota)) == quota).all()
    pairs = set(zip(users.tolist(), actual.tolist(), strict=True))
    assert len(pairs) == quota.sum()
    assert pairs >= set(zip(sure[0].tolist(), sure[1].tolist(), strict=True))
    assert set(actual.tolist()) == set(range(200))


@pytest.mark.parametrize("n", [1, 2, 5])
def test_pairs_are_drawn_as_one_after_the_other_without_replacement(rng: np.random.Generator, n: int) -> None:
    """Most users get their five by a race of those that are left."""
    items = Strata(np.array([0, 0, 0, 1, 1, 1]), np.array([9.0, 3.0, 1.0, 8.0, 4.0, 1.0]), 2)
    taste, users = np.array([1.0, 3.0]), 4_000
    chance = taste[items.stratum] * items.weight
    none = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
    _, actual = draw_pairs(rng, np.tile(taste, (users, 1)), items, np.full(users, n), none)
    slow = [rng.choice(6, n, replace=False, p=chance / chance.sum()) for _ in range(users)]
    np.testing.assert_allclose(np.bincount(actual) / users, np.bincount(np.concatenate(slow)) / users, atol=0.05)


def test_what_all_items_need_fits_exactly_and_goes_to_users_who_like_it(rng: np.random.Generator) -> None:
    items, quota = strata(rng, 1_000, 4), np.array([0, 500, 0, 900])
    taste = np.array([[1.0] * 4, [9.0, 9.0, 1.0, 1.0], [1.0] * 4, [1.0, 1.0, 9.0, 9.0]])
    users, actual = everything_once(rng, items, quota, lambda some: taste[some])
    assert (np.bincount(users, minlength=4) <= quota).all()
    assert sorted(actual.tolist()) == list(range(1_000))
    assert (items.stratum[actual[users == 1]] < 2).mean() > 0.75 > 2 * (items.stratum[actual[users == 3]] < 2).mean()
