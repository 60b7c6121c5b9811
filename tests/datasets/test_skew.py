import numpy as np
import pytest
from scipy.stats import chisquare

from tasks.datasets.synthetic import skew
from tasks.datasets.synthetic.skew import (
    Deal,
    Grades,
    Strata,
    activity,
    allot,
    blocks,
    choose,
    draw_pairs,
    everything_once,
    ids,
    integer_weights,
    long_tail,
    phases,
    sittings,
)

FALSE_ALARM = 1e-4


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(11)


def strata(rng: np.random.Generator, n_items: int, n_strata: int) -> Strata:
    stratum = rng.permutation(np.arange(n_items) % n_strata)
    return Strata(stratum, long_tail(rng, n_items, 6.0, 0.4), n_strata)


def test_popularity_falls_by_the_factor_asked_for_and_is_exact_to_add(rng: np.random.Generator) -> None:
    weights = np.sort(long_tail(rng, 10_000, 6.0, 0.4))
    assert weights[-1] / weights[0] == pytest.approx(np.exp(6.0), rel=0.12)  # the very first rank is half a rank in
    assert weights[-1_000:].sum() / weights.sum() > 0.4
    assert (weights == np.floor(weights)).all()
    assert weights[0] >= 1


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


def test_activity_has_a_log_normal_tail(rng: np.random.Generator) -> None:
    surplus = activity(rng, rng.random(100_000), 10_000_000, minimum=20, maximum=100_000, sigma=1.25) - 20
    assert np.mean(surplus) / np.median(surplus) == pytest.approx(np.exp(1.25**2 / 2), rel=0.03)


def test_activity_that_cannot_be_is_refused(rng: np.random.Generator) -> None:
    for total in (19, 31):  # 2 to 3 each
        with pytest.raises(ValueError, match="10 with at most 1 each cannot have"):
            activity(rng, np.arange(10.0), total, minimum=2, maximum=3, sigma=1)


def test_what_is_allotted_is_in_proportion_up_to_the_most(rng: np.random.Generator) -> None:
    weights = rng.random(1_000)
    weights[:10] = 0
    np.testing.assert_allclose(allot(rng, weights, 100_000, 1_000), weights / weights.sum() * 100_000, atol=1.01)
    assert allot(rng, weights, 99_999, 100)[10:].min() == 100  # nothing is left for those without weight but what must
    assert allot(rng, np.zeros(4), 3, 1).sum() == 3
    assert allot(rng, np.array([]), 0, 9).tolist() == []


def test_ids_have_gaps_and_end_with_the_last(rng: np.random.Generator) -> None:
    actual = ids(rng, 50, 80)
    assert len(actual) == 50
    assert actual[0] >= 1
    assert actual[-1] == 80
    assert (np.diff(actual) > 0).all()
    assert (np.diff(actual) > 1).any()
    assert ids(rng, 5, 5).tolist() == [1, 2, 3, 4, 5]


def test_choices_follow_the_weights_of_their_row(rng: np.random.Generator) -> None:
    weights = np.array([[1.0, 0.0, 3.0], [5.0, 4.0, 1.0]])
    rows = np.repeat([1, 0], [30_000, 20_000])
    actual = choose(rng, integer_weights(weights), rows)
    for row, number in ((0, 20_000), (1, 30_000)):
        counts = np.bincount(actual[rows == row], minlength=3)
        assert (counts[weights[row] == 0] == 0).all()
        some = weights[row] > 0
        expected = number * weights[row] / weights[row].sum()
        assert chisquare(counts[some], expected[some]).pvalue > FALSE_ALARM


def test_a_stratum_gives_its_own_items_by_popularity(rng: np.random.Generator) -> None:
    items = Strata(np.array([1, 0, 1, 1, 3]), np.array([2.0, 7.0, 5.0, 1.0, 9.0]), 4)
    assert items.sizes.tolist() == [1, 3, 0, 1]
    assert items.mass.tolist() == [7, 8, 0, 9]
    counts = np.bincount(items.pick(rng, np.ones(40_000, dtype=np.int64)), minlength=5)
    assert counts[[1, 4]].sum() == 0
    assert chisquare(counts[[0, 2, 3]], 5_000 * np.array([2, 5, 1])).pvalue > FALSE_ALARM
    assert items.member(np.array([1, 1, 1, 3]), np.array([0, 1, 2, 0])).tolist() == [0, 2, 3, 4]


def test_pairs_are_distinct_and_as_many_as_asked_for(rng: np.random.Generator) -> None:
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


@pytest.mark.parametrize("raced", [True, False])
def test_pairs_are_drawn_as_without_replacement(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, raced: bool
) -> None:
    """Against the slow way: one draw after the other, by taste times popularity of what is left."""
    monkeypatch.setattr(skew, "TOO_MANY", 100 if raced else 1)
    items = Strata(np.array([0, 0, 0, 1, 1, 1]), np.array([9.0, 3.0, 1.0, 8.0, 4.0, 1.0]), 2)
    taste = np.array([1.0, 3.0])
    chance = taste[items.stratum] * items.weight
    n, none = 20_000, (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
    _, actual = draw_pairs(rng, np.tile(taste, (n, 1)), items, np.full(n, 2), none)
    slow = [rng.choice(6, 2, replace=False, p=chance / chance.sum()) for _ in range(n)]
    shares = np.bincount(actual) / n
    # The fast way takes two at random of what several draws found, which favours what is rare a little.
    np.testing.assert_allclose(shares, np.bincount(np.concatenate(slow)) / n, atol=0.015 if raced else 0.12)
    assert (np.argsort(shares) == np.argsort(chance, kind="stable")).all()


def test_what_all_items_need_fits_exactly_and_goes_to_users_who_like_it(rng: np.random.Generator) -> None:
    items, quota = strata(rng, 1_000, 4), np.array([0, 500, 0, 900])
    taste = np.array([[1.0] * 4, [9.0, 9.0, 1.0, 1.0], [1.0] * 4, [1.0, 1.0, 9.0, 9.0]])
    users, actual = everything_once(rng, items, quota, lambda some: taste[some])
    assert (np.bincount(users, minlength=4) <= quota).all()
    assert sorted(actual.tolist()) == list(range(1_000))
    assert (np.diff(users) >= 0).all()
    assert (items.stratum[actual[users == 1]] < 2).mean() > 0.75 > 2 * (items.stratum[actual[users == 3]] < 2).mean()
    users, actual = everything_once(
        rng, strata(rng, 12, 3), np.array([0, 5, 0, 7]), lambda some: np.ones((len(some), 3))
    )
    assert np.bincount(users).tolist() == [0, 5, 0, 7]


def test_every_item_is_dealt_its_due_however_the_rows_come(rng: np.random.Generator) -> None:
    items = strata(rng, 300, 7)
    rows = rng.permutation(np.concatenate([np.repeat(np.arange(7), 3 * items.sizes), rng.integers(0, 7, 600)]))
    deal = Deal(items, np.bincount(rows, minlength=7), minimum=3)
    actual = np.concatenate([deal(rng, part) for part in np.split(rows, [1, 40, 41, 900])])
    assert (items.stratum[actual] == rows).all()
    counts = np.bincount(actual, minlength=300)
    assert counts.min() >= 3
    assert np.corrcoef(counts - 3, items.weight)[0, 1] > 0.5
    with pytest.raises(ValueError, match="too few rows"):
        Deal(items, 3 * items.sizes - 1, minimum=3)


@pytest.mark.parametrize("rows", [1, 7, 100, 10_000])
def test_blocks_have_every_user_once(rng: np.random.Generator, rows: int) -> None:
    quota = rng.integers(0, 9, 300)
    actual = [user for first, last in blocks(quota, rows) for user in range(first, last)]
    assert actual == list(range(300))
    sizes = [quota[first:last].sum() for first, last in blocks(quota, rows)]
    assert max(sizes) <= rows + 8


def test_blocks_have_no_more_users_than_pairs_can_hold() -> None:
    assert max(last - first for first, last in blocks(np.zeros(400_000, dtype=np.int64), 10)) < 1 << 17


def test_grades_have_the_shares_asked_for_in_the_order_of_scores(rng: np.random.Generator) -> None:
    grades, scores = Grades((1, 2, 3, 2, 2)), rng.standard_normal(50_000)
    actual = grades(scores)
    np.testing.assert_allclose(np.bincount(actual) / 50_000, [0.1, 0.2, 0.3, 0.2, 0.2], atol=0.001)
    assert (np.diff(actual[np.argsort(scores)]) >= 0).all()
    assert set(grades(scores + 100).tolist()) == {4}


def test_what_follows_is_more_often_of_the_same_stratum(rng: np.random.Generator) -> None:
    users = np.repeat(np.arange(200), 50)
    stratum = rng.integers(0, 10, len(users))
    phase = phases(rng, users, stratum)
    assert phase.min() >= 0
    assert phase.max() < 1
    ordered = stratum[np.lexsort((phase, users))]
    assert np.mean(ordered[1:] == ordered[:-1]) > 0.3 > 2 * np.mean(stratum[1:] == stratum[:-1])


def test_rows_come_in_sittings_within_their_users_span(rng: np.random.Generator) -> None:
    quota = rng.integers(1, 200, 100)
    users = np.repeat(np.arange(100), quota)
    spans = rng.random(100) * 1_000
    begin, place = sittings(rng, quota, users, rng.random(len(users)), rows=10, spans=spans)
    assert begin.min() == 0
    assert (begin <= spans[users] * (1 + 1e-9)).all()
    assert place.min() >= 0
    assert place.max() <= 1
    number = [len(np.unique(begin[users == user])) for user in range(100)]
    assert np.corrcoef(number, quota)[0, 1] > 0.8
    assert np.sum(quota) / np.sum(number) == pytest.approx(10, rel=0.25)
