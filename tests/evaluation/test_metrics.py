"""Metrics equal a slow loop, scikit-learn's or their definition: of lists, classes, ratings, anchors and groups."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score

from tasks.evaluation.alignment import Anchors, chance, precision
from tasks.evaluation.classification import interests, predict_labels, split_seed
from tasks.evaluation.metrics import catalogue_metrics, micro_f1
from tasks.evaluation.ranking import Seen
from tasks.evaluation.rating import errors, mae
from tasks.evaluation.users import bin_users, exposure
from tasks.quality import metrics
from tests.stages import tiny_networks


@given(seed=st.integers(0, 2**32 - 1), n_classes=st.integers(1, 6), n=st.integers(1, 40))
def test_micro_f1_equals_scikit_learns_and_is_accuracy(seed: int, n_classes: int, n: int) -> None:
    truth, predicted = np.random.default_rng(seed).integers(0, n_classes, (2, n))
    assert micro_f1(truth, predicted) == pytest.approx(f1_score(truth, predicted, average="micro"))
    assert micro_f1(truth, predicted) == pytest.approx(accuracy_score(truth, predicted))


def test_catalogue_metrics_are_as_they_are_worded() -> None:
    rng = np.random.default_rng(4)
    lists = np.stack([rng.permutation(9)[:4] for _ in range(20)])
    lists[0, 2:] = -1
    counts = rng.integers(0, 12, 12)
    metrics = catalogue_metrics(lists, counts, 12, [1, 4])
    for k in (1, 4):
        kept = [[int(item) for item in row[:k] if item >= 0] for row in lists]
        exposure = np.bincount(np.concatenate(kept), minlength=12)
        assert metrics["coverage"][k] == pytest.approx((exposure > 0).sum() / 12)
        assert metrics["gini"][k] == pytest.approx(
            abs(exposure[:, None] - exposure).mean() / (2 * exposure.mean()), abs=1e-12
        )
        assert metrics["popularity"][k] == pytest.approx(np.mean([np.mean(counts[row]) for row in kept]))
        shares = np.maximum(counts, 1) / 12
        assert metrics["novelty"][k] == pytest.approx(np.mean([np.mean(-np.log2(shares[row])) for row in kept]))


def test_padding_is_never_a_hit() -> None:
    """The key of user 1 and item -1 was that of user 0 and the last item."""
    seen = Seen.from_pairs(np.array([0, 1]), np.array([3, 3]), 2)
    assert seen.contains(np.array([[1], [0]]), np.array([[3, -1, -1], [-1, 0, 3]])).tolist() == [
        [True, False, False], [False, False, True]
    ]  # fmt: skip


KS = (1, 3, 10)


@pytest.mark.parametrize("batch", [1, 7, 512])
def test_precision_equals_a_slow_loop(batch: int) -> None:
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((40, 25))
    anchors = np.stack([rng.permutation(40)[:20], rng.permutation(25)[:20]], axis=1)
    actual = precision(lambda sources: scores[sources], anchors, KS, batch=batch)
    for k in KS:
        hits = [j in sorted(range(25), key=lambda other: -scores[i, other])[:k] for i, j in anchors]
        assert actual.at[k] == pytest.approx(np.mean(hits))


def test_ties_count_what_breaking_them_at_random_gives_on_average() -> None:
    rng = np.random.default_rng(1)
    scores = rng.integers(0, 4, (60, 20)).astype(np.float32)
    anchors = np.stack([np.arange(60), rng.integers(0, 20, 60)], axis=1)
    actual = precision(lambda sources: scores[sources], anchors, KS)
    ranks = (-(scores + 0.5 * rng.random((4000, 60, 20), np.float32))).argsort(axis=2).argsort(axis=2)
    own = ranks[:, np.arange(60), anchors[:, 1]]
    for k in KS:
        # The mean of 4,000 × 60 zeros and ones has a standard error below 0.0011.
        assert actual.at[k] == pytest.approx((own < k).mean(), abs=0.005)


def test_chance_among_few_is_certain() -> None:
    assert chance(10, 1) == chance(1, 1) == 1


def test_anchors_are_split_by_the_share_that_judges_and_users_in_several_are_left_out() -> None:
    """Pairs 0 and 1 share a source, 1 and 2 a target: each of the three may be wrong."""
    true = np.array([[5, 1], [5, 2], [6, 2], *([n, n] for n in range(10, 20))])
    anchors = Anchors.split(true, 0.4, seed=3)
    assert (len(anchors.test), len(anchors.known), len(anchors.true)) == (4, 6, 13)
    assert sorted(np.concatenate([anchors.test, anchors.known]).tolist()) == true[3:].tolist()
    assert anchors.known_share(0.25).tolist() == anchors.known[:2].tolist()
    assert Anchors.split(true, 0.4, seed=4).test.tolist() != anchors.test.tolist()
    assert Anchors.split(true[:3], 0.4, seed=3).n_usable == 0


def test_mae_equals_a_loop_over_ratings() -> None:
    rng = np.random.default_rng(3)
    truth = rng.integers(1, 6, 200).astype(np.float32)
    guess = rng.normal(3, 4, 200).astype(np.float32)
    plain = sum(abs(float(true) - float(other)) for true, other in zip(truth, guess, strict=True)) / 200
    cut = (
        sum(abs(float(true) - min(5.0, max(1.0, float(other)))) for true, other in zip(truth, guess, strict=True)) / 200
    )
    assert mae(truth, guess) == pytest.approx(plain, rel=1e-12)
    assert mae(truth, guess, 1, 5) == pytest.approx(cut, rel=1e-12)
    assert mae(truth, guess, 1, 5) < mae(truth, guess)  # no rating lies beyond the ends


def test_single_precision_predictions_are_averaged_in_double() -> None:
    """A plain float32 sum of a million equal errors is off by more than the last digit of a float64."""
    truth = np.full(1_000_000, 4, np.float32)
    guess = np.full(1_000_000, 3.9, np.float32)
    assert mae(truth, guess) == pytest.approx(4 - float(np.float32(3.9)), rel=1e-12)


def test_errors_are_apart_for_what_users_keep_to_themselves() -> None:
    truth, guess, sensitive = np.array([1.0, 3, 5]), np.array([2.0, 3, 9]), np.array([True, False, False])
    users = np.array([4, 4, 7])
    measured = {each.metric: each for each in errors(users, truth, guess, sensitive, 1, 5)}
    assert {name: each.values.mean() for name, each in measured.items()} == {
        "mae": pytest.approx(1 / 3), "mae/uncut": pytest.approx(5 / 3), "mae/sensitive": 1, "mae/public": 0,
    }  # fmt: skip
    assert measured["mae/public"].users.tolist() == [4, 7]
    assert "mae/public" not in {each.metric for each in errors(users, truth, guess, np.ones(3, bool), 1, 5)}


N, LABELS = 120, ("art", "music", "sport")


def labels() -> pl.DataFrame:
    """Of every second user, in random order; of one of them a label is not known."""
    rng = np.random.default_rng(0)
    users = rng.permutation(N)[: N // 2].astype(np.int32)
    table = pl.DataFrame({"user": users} | {label: rng.integers(0, 2, len(users)) for label in LABELS})
    return table.with_columns(music=pl.when(pl.col("user") == users[5]).then(None).otherwise(pl.col("music")))


def vectors(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((N, 4)).astype(np.float32)


def values(rows: np.ndarray, table: pl.DataFrame, seed: int = 3) -> dict[str, float]:
    return {record["metric"]: record["value"] for record in interests("left", rows, table, seed=seed)}


def test_metrics_are_those_that_the_check_expects_and_means_over_the_splits() -> None:
    actual = interests("left", vectors(), labels(), seed=3)
    schema = tiny_networks.LEFT.model_copy(update={"labels": LABELS})
    assert [(actual["metric"], actual["k"]) for actual in actual] == metrics.embedding_metrics({"left": schema})
    known = labels().drop_nulls()
    assert len(known) == N // 2 - 1
    expected = predict_labels(vectors(), known["user"].to_numpy(), known.select(LABELS).to_numpy(), seed=3)
    means = np.mean(expected.scores, axis=0)
    own = values(vectors(), labels())
    names = ("precision", "precision-swapped", "micro-f1")
    assert [own[f"left/interests/{score}"] for score in names] == pytest.approx(means, rel=1e-12)
    everything = np.mean(expected.controls["everything"], axis=0)
    assert [own[f"left/interests/everything/{score}"] for score in names] == pytest.approx(everything, rel=1e-12)


def test_seeds_of_splits_depend_on_both_seeds_and_not_on_their_sum() -> None:
    actual = {split_seed(seed, run) for seed in range(20) for run in range(20)}
    assert len(actual) == 400
    assert split_seed(3, 5) == split_seed(3, 5)


EDGES = [0.0, 0.25, 0.5, 0.75, 1.0]


def test_exposure_is_the_mean_popularity_of_a_list() -> None:
    popularity = np.array([0.9, 0.1, 0.5])
    assert exposure(np.array([[0, 1], [1, 1], [0, 2]]), popularity) == pytest.approx([0.5, 0.1, 0.7])


@given(st.lists(st.floats(0, 1), max_size=60), st.integers(1, 12))
def test_no_bin_has_few_users_and_every_user_is_in_one(values: list[float], least: int) -> None:
    bins = bin_users(np.array(values), EDGES, least)
    if len(values) < least:
        assert bins == []
        return
    assert all(users >= least for *_, users in bins)
    assert sum(users for *_, users in bins) == len(values)
    ends = [end for low, high, _ in bins for end in (low, high)]
    assert ends == sorted(ends)
    assert set(ends) <= set(EDGES)
    assert all(any(low <= value <= high for low, high, _ in bins) for value in values)


def test_bins_that_are_large_enough_stay_as_they_are() -> None:
    values = np.repeat([0.1, 0.3, 0.6, 0.9], [10, 12, 4, 7])
    assert bin_users(values, EDGES) == [(0.0, 0.25, 10), (0.25, 0.5, 12), (0.5, 1.0, 11)]
    assert bin_users(values[:-7], EDGES) == [(0.0, 0.25, 10), (0.25, 0.75, 16)]


@pytest.mark.parametrize(
    ("value", "bins"), [(0.0, [(0.0, 0.25, 20)]), (0.6, [(0.5, 0.75, 20)]), (1.0, [(0.75, 1.0, 20)])]
)
def test_users_who_are_alike_are_in_one_narrow_bin(value: float, bins: list[tuple[float, float, int]]) -> None:
    assert bin_users(np.full(20, value), EDGES) == bins
