"""Attributes are inferred where they are in the embedding, and gains over controls are none where they are not."""

from __future__ import annotations

import numpy as np
import pytest

from tasks.attacks import attribute
from tasks.attacks.attribute import UNKNOWN
from tasks.attacks.embeddings.attributes import ATTACKERS, FOLDS, cross_fitted, folds, infer
from tasks.errors import DataError


def users(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Random vectors and a class of two, of which a quarter are unknown."""
    rng = np.random.default_rng(seed)
    classes = np.where(rng.random(n) < 0.25, UNKNOWN, rng.random(n) < 0.4)
    return rng.standard_normal((n, 6)).astype(np.float32), classes


def test_an_embedding_that_holds_the_attribute_gives_it_away_and_gains_over_every_control() -> None:
    noise, classes = users(200, 0)
    held = np.hstack([noise, (classes == 1)[:, None]])
    for found in infer([held, held], {"gender": classes}, ATTACKERS, seed=0, attribute_free=[noise]):
        assert found.f1 > 0.99
        assert set(found.gains) == {"majority", "random", "attribute-free"}
        assert all(gain.low > 0.2 for gain in found.gains.values())
        assert found.right.shape == (2, (classes != UNKNOWN).sum())
        assert found.controls["majority"] == pytest.approx((classes == 0).sum() / (classes != UNKNOWN).sum())


def test_random_embeddings_gain_over_no_control_more_often_than_the_interval_allows() -> None:
    """20 populations, intervals of 95 %: the lower end is above 0 with probability 0.025 each (0.05 to be safe, as the
    interval is a bootstrap); four or more of 20 then have a probability of 0.016."""
    false = dict.fromkeys(("majority", "random"), 0)
    for seed in range(20):
        vectors, classes = users(150, seed)
        (found,) = infer([vectors], {"a": classes}, {"l": ATTACKERS["logistic_regression"]}, seed=seed)
        for control in false:
            false[control] += found.gains[control].low > 0
    assert max(false.values()) < 4


def test_every_known_user_is_a_target_once_and_never_teaches_its_own_attacker() -> None:
    vectors, classes = users(80, 1)
    vectors[:, 0] = np.arange(80)
    seen: list[int] = []

    def spy(train, labels, test, rng):
        assert not set(train[:, 0]) & set(test[:, 0])
        assert (labels == classes[train[:, 0].astype(int)]).all()
        seen.extend(test[:, 0].astype(int))
        return rng.integers(0, 2, len(test))

    right = cross_fitted(vectors, classes, spy, "a/spy", 3)
    assert sorted(seen) == np.flatnonzero(classes != UNKNOWN).tolist()
    assert len(right) == len(seen)


def test_folds_have_the_shares_of_all() -> None:
    truth = np.random.default_rng(0).choice(4, 203, p=[0.6, 0.3, 0.09, 0.01])
    fold = folds(truth, 1)
    for one in range(4):
        counts = np.bincount(fold[truth == one], minlength=FOLDS)
        assert counts.max() - counts.min() <= 1


def test_equal_seeds_give_equal_guesses_and_unknown_users_change_nothing() -> None:
    vectors, classes = users(120, 2)
    known = classes != UNKNOWN
    first, again, alone = (
        infer([v], {"a": c}, ATTACKERS, seed=4)
        for v, c in ((vectors, classes), (vectors, classes), (vectors[known], classes[known]))
    )
    for one, two, three in zip(first, again, alone, strict=True):
        assert (one.right == two.right).all()
        assert one.gains == two.gains
        assert (one.right == three.right).all()


def test_an_attacker_of_recommendations_attacks_embeddings_as_well() -> None:
    noise, classes = users(200, 0)
    held = np.hstack([noise, 6 * (classes == 1)[:, None] - 3]).astype(np.float32)
    (found,) = infer([held], {"a": classes}, {"knn": attribute.attacker("knn")}, seed=0)
    assert found.gains["majority"].low > 0


@pytest.mark.parametrize("attacker", ATTACKERS)
def test_a_single_class_gains_nothing_over_guessing_it(attacker: str) -> None:
    vectors, _ = users(40, 0)
    (found,) = infer([vectors], {"a": np.zeros(40, int)}, {attacker: ATTACKERS[attacker]}, seed=0)
    assert found.f1 == found.controls["majority"] == 1
    assert found.gains["majority"] == (0, 0, 0)


def test_what_is_known_of_too_few_or_does_not_fit_is_refused() -> None:
    vectors, _ = users(40, 0)
    few = np.full(40, UNKNOWN)
    few[:11] = 0
    with pytest.raises(DataError, match="'a' is known of 11 users"):
        infer([vectors], {"a": few}, ATTACKERS, seed=0)
    with pytest.raises(DataError, match="39 users are not those of the labels"):
        infer([vectors[1:]], {"a": few}, ATTACKERS, seed=0)
    with pytest.raises(DataError, match="2 attribute-free embeddings for 3"):
        infer([vectors] * 3, {"a": np.zeros(40, int)}, ATTACKERS, seed=0, attribute_free=[vectors] * 2)
