"""Precision of an alignment: equal to a slow loop, and chance for anyone who cannot tell users apart."""

import numpy as np
import pytest

from tasks.errors import DataError, DivergenceError
from tasks.evaluation.alignment import Anchors, chance, precision

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


def test_chance_among_few_is_certain_and_nonsense_is_refused() -> None:
    assert chance(10, 1) == 1
    assert chance(1, 1) == 1
    with pytest.raises(ValueError, match="at least 1"):
        chance(0, 5)
    with pytest.raises(DataError, match="none to judge"):
        precision(lambda sources: np.zeros((len(sources), 5)), np.empty((0, 2), np.int64), KS)
    with pytest.raises(DivergenceError, match="source user 4 are not numbers"):
        precision(lambda sources: np.full((len(sources), 5), np.nan), np.array([[4, 1]]), KS)


def test_anchors_are_split_by_the_share_that_judges_and_users_in_several_are_left_out() -> None:
    """Pairs 0 and 1 share a source, 1 and 2 a target: each of the three may be wrong."""
    true = np.array([[5, 1], [5, 2], [6, 2], *([n, n] for n in range(10, 20))])
    anchors = Anchors.split(true, 0.4, seed=3)
    assert (len(anchors.test), len(anchors.known), len(anchors.true)) == (4, 6, 13)
    assert sorted(np.concatenate([anchors.test, anchors.known]).tolist()) == true[3:].tolist()
    assert anchors.known_share(0.25).tolist() == anchors.known[:2].tolist()
    assert Anchors.split(true, 0.4, seed=4).test.tolist() != anchors.test.tolist()
    assert Anchors.split(true[:3], 0.4, seed=3).n_usable == 0
