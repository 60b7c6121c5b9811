from difflib import SequenceMatcher

import numpy as np
import polars as pl
import pytest

from tasks.datasets.synthetic.text import HAN, LATIN, Sounds, handles, vocabulary, write_posts


def test_posts_have_words_of_their_blocks_commoner_ones_first() -> None:
    words = vocabulary([(("the", "a"), 50), (("goal",), 40), ((), 30)])
    assert len(set(words.words)) == 120
    assert [words.words[first] for first in words.first[:2]] == ["the", "goal"]
    blocks = np.stack([np.zeros(3000, dtype=int), np.repeat([1, 2], 1500)], axis=1)
    texts = write_posts(np.random.default_rng(7), words, blocks, (0.5, 0.5), mean_words=8)
    split = texts.str.split(" ")
    assert split.list.len().min() >= 3
    assert split.list.len().mean() == pytest.approx(8, abs=0.2)
    second = set(split[:1500].explode())
    assert second <= set(words.words[:90])
    assert "goal" in second
    assert not set(split[1500:].explode()) & set(words.words[50:90])
    counts = pl.DataFrame({"word": split.explode()})["word"].value_counts()
    often = dict(counts.iter_rows())
    assert often["the"] > 1.5 * often["a"] > 3 * often[words.words[9]]


@pytest.mark.parametrize("sounds", [LATIN, HAN])
def test_no_word_is_invented_twice(sounds: Sounds) -> None:
    assert len(set(sounds.parts)) == 100
    words = vocabulary([((), 5_000), ((), 4_000)], sounds).words
    assert len(set(words)) == 9_000


@pytest.mark.parametrize("sounds", [LATIN, HAN])
def test_a_persons_two_names_are_similar_but_mostly_not_equal_and_no_two_persons_share_one(
    sounds: Sounds,
) -> None:
    rng = np.random.default_rng(8)
    person = np.arange(3000)
    first, second = handles(rng, person, sounds), handles(rng, person, sounds)
    assert first.str.to_lowercase().n_unique() == second.str.to_lowercase().n_unique() == 3000
    assert 0.01 < (first == second).mean() < 0.2

    def likeness(first: pl.Series, second: pl.Series) -> float:
        return float(np.median([SequenceMatcher(None, a, b).ratio() for a, b in zip(first, second, strict=True)]))

    assert likeness(first[:500], second[:500]) > 0.6
    assert likeness(first[:500], second[500:1000]) < 0.45
