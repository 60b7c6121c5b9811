"""Posts with their words replaced: whose words are released, and that every draw goes through the door."""

import numpy as np
import polars as pl
import pytest

from tasks.privacy import noise
from tasks.privacy.mechanisms import edges, posts
from tasks.privacy.mechanisms.posts import Vocabulary

TEXTS = pl.DataFrame({"user": [0, 0, 1], "tokens": [[0, 1], [2], [3, 3, 3, 3]]})


def vocabulary() -> Vocabulary:
    return Vocabulary.from_vectors(list("abcd"), np.random.default_rng(0).normal(size=(4, 3)))


def test_which_words_of_a_user_come_first_depends_on_coins_alone() -> None:
    """Posts lie in the order of their texts: kept so, their lengths would tell it. A fair coin, to five deviations."""
    first = []
    for seed in range(400):
        texts = pl.DataFrame({"user": [4, 4], "tokens": [[1], [2, 3, 4]]})
        kept = posts.first_words(texts, 2, np.random.default_rng(seed))
        assert kept["tokens"].list.len().sum() == 2
        first.append(len(kept["tokens"][0]))
    assert abs(np.mean(np.array(first) == 1) - 0.5) < 5 * 0.5 / 20
    lengths = [
        posts.first_words(
            pl.DataFrame({"user": [1, 1, 2], "tokens": tokens}), 3, np.random.default_rng(7)
        )["tokens"].list.len().to_list()
        for tokens in ([[1, 2], [3], [4, 4, 4, 4]], [[9, 9], [0], [5, 6, 7, 8]])
    ]  # fmt: skip
    assert lengths[0] == lengths[1]


def test_known_words_keep_their_names_and_posts_without_any_are_left_out() -> None:
    public = Vocabulary.from_vectors(["d", "x", "b"], np.eye(3))
    left = posts.known_words(TEXTS, pl.Series(list("abcd")), public)
    assert left.to_dict(as_series=False) == {"user": [0, 1], "tokens": [[2], [0, 0, 0, 0]]}


@pytest.mark.parametrize(
    ("words_per_user", "most", "releases"),
    [(None, 4, {"which word"}), (2, 2, {"which word", "which-posts-come-first"})],
)
def test_what_is_released_is_accounted_for_and_drawn_through_the_door(
    words_per_user: int | None, most: int, releases: set[str]
) -> None:
    """Fitted words all, of which nothing finite follows; of public ones so many, which together cost what is stated."""
    with noise.recording() as draws:
        released, entries = posts.perturb(TEXTS, vocabulary(), 6.0, np.random.default_rng(0), 1, words_per_user)
    assert {draw.release for draw in draws} == releases
    lengths = released.explode("tokens").group_by("user").len("n").sort("user")["n"].to_list()
    assert lengths == [min(3, most), most]
    full = entries[-1]
    assert full.events[0].count == most
    assert full.accounted_epsilon == (None if words_per_user is None else pytest.approx(6.0))


def test_the_number_of_edges_is_paid_for_beside_or_out_of_the_budget() -> None:
    assert edges.budgets(8.0, 0.25, "published") == (8.0, 2.0)
    assert edges.budgets(8.0, 0.25, "rigorous") == (6.0, 2.0)
