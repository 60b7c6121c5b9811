"""Vectors of words: components, scales that users cannot move, and fallbacks; and the words that users have."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats
from sklearn.decomposition import PCA

from tasks.core.contracts import Feature
from tasks.core.errors import DataError
from tasks.datasets import glove, movielens, words
from tasks.datasets.word_vectors import RELATED, Vocabulary, gaussian, look_up, sub_words, value_vectors, vocabulary
from tasks.datasets.words import AGE_BANDS, attribute, category_words
from tests.command import python

RNG = np.random.default_rng(3)
N, WIDTH = 300, 8
WORDS = [f"word{number}" for number in range(N)]
VECTORS = RNG.normal(size=(N, WIDTH)) * np.arange(WIDTH, 0, -1) @ RNG.normal(size=(WIDTH, WIDTH))
KNOWN = dict.fromkeys(["the", "home", "maker", "home-maker", "er", "education", "educated", "employed", "teen"], 0)


@pytest.fixture(scope="module")
def published(mirror: Path) -> Vocabulary:
    return vocabulary(*glove.read(mirror / glove.FILE.mirror_path), 20)


@pytest.mark.parametrize("dimension", [1, 3, WIDTH])
def test_the_reduction_is_that_of_principal_components_whose_largest_loading_is_positive(dimension: int) -> None:
    actual = vocabulary(WORDS, VECTORS, dimension)
    reference = PCA(dimension, svd_solver="full").fit(VECTORS)
    signs = np.array([1 if loadings.max() > -loadings.min() else -1 for loadings in reference.components_])
    expected = reference.transform(VECTORS) * signs
    low, high = expected.min(axis=0), expected.max(axis=0)
    assert np.allclose(actual.vectors, (expected - low) / (high - low))
    assert actual.kept == pytest.approx(reference.explained_variance_ratio_.sum())


def test_every_number_spans_0_to_1_over_the_vocabulary_however_that_is_shifted_turned_or_ordered() -> None:
    actual = vocabulary(WORDS, VECTORS, 4)
    assert (actual.vectors.min(axis=0) == 0).all()
    assert (actual.vectors.max(axis=0) == 1).all()
    turned = np.linalg.qr(np.random.default_rng(4).normal(size=(WIDTH, WIDTH)))[0]
    assert np.allclose(vocabulary(WORDS, VECTORS * 7 + 3, 4).vectors, actual.vectors)
    for mine, theirs in zip(actual.vectors.T, vocabulary(WORDS, VECTORS @ turned, 4).vectors.T, strict=True):
        assert np.allclose(mine, theirs) or np.allclose(mine, 1 - theirs)
    order = np.random.default_rng(5).permutation(N)
    shuffled = vocabulary([WORDS[row] for row in order], VECTORS[order], 4)
    assert np.allclose(shuffled.vectors, actual.vectors[order])


def test_words_in_use_move_no_other_words_vector() -> None:
    """The scale is the vocabulary's: one user's occupation must not change another's vector."""
    known = vocabulary(WORDS, VECTORS, 4)
    alone = look_up(["word3"], known, 4, 0)["word3"].vector
    among = look_up(["word3", "word8", "nothing like it"], known, 4, 0)["word3"].vector
    assert (alone == among).all()


def test_vectors_that_vary_in_too_few_directions_are_refused() -> None:
    flat = VECTORS[:, :3] @ np.random.default_rng(6).normal(size=(3, WIDTH))
    assert vocabulary(WORDS, flat, 3).vectors.shape == (N, 3)
    with pytest.raises(DataError, match="300 words vary in 3 directions, not in 4"):
        vocabulary(WORDS, flat, 4)
    with pytest.raises(DataError, match="5 words vary in 4 directions, not in 5"):
        vocabulary(WORDS[:5], VECTORS[:5], 5)
    with pytest.raises(DataError, match="1 words vary in 0 directions, not in 1"):
        vocabulary(WORDS[:1], VECTORS[:1], 1)


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("homemaker", ("home", "maker")),
        ("educator", ("education", "educated")),
        ("unemployed", ("employed",)),
        ("teenager", ("teen",)),
        ("theer", ()),  # `er` is too short to be one of two words, and `the` to be a stem
        ("teenagerhood", ()),  # less than half of it
        ("xy", ()),
    ],
)
def test_an_unknown_word_is_made_of_known_ones(word: str, parts: tuple[str, ...]) -> None:
    assert sub_words(word, KNOWN) == parts


def test_the_most_even_cut_and_the_most_frequent_relatives_are_taken() -> None:
    assert sub_words("overlander", dict.fromkeys(["ove", "rlander", "overl", "ander"], 0)) == ("overl", "ander")
    related = {f"educat{ending}": 0 for ending in "abcdefgh"}
    assert sub_words("educator", related) == tuple(related)[:RELATED]


def test_the_vector_of_an_unknown_word_is_the_mean_of_its_parts() -> None:
    known = vocabulary(["home", "maker", *WORDS], np.vstack([VECTORS[:2] + 1, VECTORS]), 4)
    actual = look_up(["home", "homemaker"], known, 4, 0)
    assert (actual["home"].how, actual["homemaker"].how) == ("vocabulary", "sub-words")
    assert np.allclose(actual["homemaker"].vector, (known.vectors[0] + known.vectors[1]) / 2)


def test_every_word_that_this_project_puts_in_a_users_mouth_is_in_the_mirrors_part(published: Vocabulary) -> None:
    assert {*words.AGE_BANDS.values(), *words.THIRDS, "female", "male"} <= published.rows.keys()


def test_a_word_without_any_parts_is_hashed_with_the_vocabularys_own_mean_and_spread() -> None:
    """Over seeds; each of 8 numbers is held to 5 standard errors, a false alarm in 1 of 200,000 runs."""
    known = vocabulary(WORDS, VECTORS, 4)
    actual = [look_up(["zzz"], known, 4, seed)["zzz"] for seed in range(2000)]
    assert {(actual.how, actual.parts) for actual in actual} == {("hashed", ())}
    vectors = np.array([actual.vector for actual in actual])
    assert (vectors >= 0).all()
    assert (vectors <= 1).all()
    mean, deviation = known.vectors.mean(axis=0), known.vectors.std(axis=0)
    assert (np.abs(vectors.mean(axis=0) - mean) < 5 * deviation / np.sqrt(2000)).all()
    assert (np.abs(vectors.std(axis=0) / deviation - 1) < 5 / np.sqrt(2 * 2000)).all()


def test_hashed_numbers_are_uniform_over_seeds_and_independent() -> None:
    """Kolmogorov-Smirnov and correlations at a false-alarm rate of 10⁻⁴ each."""
    drawn = np.array([look_up(["writer"], None, 2, seed)["writer"].vector for seed in range(3000)])
    for column in drawn.T:
        assert stats.kstest(column, "uniform").pvalue > 1e-4
    assert stats.pearsonr(*drawn.T).pvalue > 1e-4
    assert stats.pearsonr(drawn[:-1, 0], drawn[1:, 0]).pvalue > 1e-4


def test_words_spelt_alike_have_hashed_vectors_alike() -> None:
    def angle(first: str, second: str) -> float:
        return float(np.corrcoef(gaussian(first, 2000, 1), gaussian(second, 2000, 1))[0, 1])

    assert angle("writer", "writers") > 0.4
    assert abs(angle("writer", "doctor")) < 5 / np.sqrt(2000)  # no three letters in common


def test_hashed_vectors_are_the_same_in_every_process() -> None:
    """Python's own hash of a text differs from run to run."""
    code = "from tasks.datasets.word_vectors import gaussian; print(gaussian('writer', 3, 7).tolist())"
    said = {python(code, PYTHONHASHSEED=seed) for seed in ("1", "2")}
    assert said == {f"{gaussian('writer', 3, 7).tolist()}\n"}
    assert not np.allclose(gaussian("writer", 3, 7), gaussian("writer", 3, 8))


def test_a_value_of_several_words_is_their_mean() -> None:
    actual = look_up(["health", "care"], None, 5, 0)
    first, both = value_vectors([("health",), ("health", "care")], actual)
    assert np.allclose(first, actual["health"].vector)
    assert np.allclose(both, (actual["health"].vector + actual["care"].vector) / 2)


@pytest.mark.parametrize(
    ("name", "category", "words"),
    [
        ("gender", "F", "female"),
        ("gender", "M", "male"),
        ("occupation", "M", "m"),  # an abbreviation of that attribute only
        ("occupation", "administrator", "administrator"),
        ("occupation", "none", "none"),
        ("occupation", "Doctor/health care", "doctor health care"),
        ("occupation", "K-12 student", "student"),
        ("occupation", "self-employed self", "self employed"),
        ("occupation", "7", "7"),
        ("occupation", "?", "?"),
        ("age", "under-35", "child teen young"),
        ("age", "under-18", "child teen"),
        ("age", "35-45", "adult"),
        ("age", "45-49", "adult older"),
        ("age", "over-45", "older elderly"),
        ("age", "over 64", "elderly"),
        ("age", "56+", "older elderly"),
        ("age", "19", "teen"),
        ("age", "20", "young"),
        ("age", "retired", "retired"),
        ("zip", "35-45", "35 45"),
    ],
)
def test_a_category_is_called_by_words(name: str, category: str, words: str) -> None:
    assert category_words(name, category) == tuple(words.split())


def test_groups_that_follow_one_another_name_every_age_once_and_in_order() -> None:
    """MovieLens' groups of ages: what they touch covers all bands, and no group touches less than the one before."""
    bands = list(AGE_BANDS.values())
    for groups in (movielens.AGE_GROUPS, tuple(movielens.AGES.values())):
        touched = [[bands.index(word) for word in category_words("age", group)] for group in groups]
        assert sorted({band for group in touched for band in group}) == list(range(len(bands)))
        assert [group[0] for group in touched] == sorted(group[0] for group in touched)
        assert all(group == list(range(group[0], group[-1] + 1)) for group in touched)


def test_a_number_is_the_band_or_the_third_that_it_lies_in() -> None:
    ages = [0.0, 12, 13, 19.5, 20, 34, 35, 45, 46, 64, 65, 120]
    users = pl.DataFrame({"user": range(12), "age": ages, "count": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9]})
    age = attribute(Feature(name="age", kind="numeric", low=0, high=120), users)
    assert [age.words[code] for code in age.codes] == [
        (word,) for word in ("child", "teen", "young", "adult", "older", "elderly") for _ in range(2)
    ]
    count = attribute(Feature(name="count", kind="numeric", low=0, high=9), users)
    assert [count.values[code] for code in count.codes] == ["low"] * 3 + ["medium"] * 3 + ["high"] * 6


def test_a_number_whose_bounds_are_the_datas_own_is_refused_unless_it_is_an_age() -> None:
    """One user's largest number would move the thirds, and so the vectors and gradients, of everyone else."""
    users = pl.DataFrame({"user": range(3), "reviews": [10, 20, 300], "age": [10, 20, 30]})
    with pytest.raises(DataError, match="'reviews' has the data's own minimum and maximum for bounds"):
        attribute(Feature(name="reviews", kind="numeric", low=10, high=300, bounds="fitted"), users)
    fitted, public = (
        attribute(Feature(name="age", kind="numeric", low=low, high=120, bounds=bounds), users)
        for low, bounds in ((10, "fitted"), (0, "public"))
    )
    assert fitted.codes.tolist() == public.codes.tolist() == [0, 2, 2]


def test_values_belong_to_users_in_any_row_order_and_unknown_is_a_category_like_others() -> None:
    job = Feature(name="job", kind="categorical", categories=("writer", "unknown"), unknown="unknown")
    users = pl.DataFrame({"user": [2, 0, 1], "job": ["writer", "unknown", "writer"], "age": [70.0, 1.0, 30.0]})
    actual = attribute(job, users)
    assert actual.codes.tolist() == [1, 0, 0]
    assert actual.users_with("unknown").tolist() == [True, False, False]
    assert not actual.users_with("other").any()
    assert attribute(Feature(name="age", kind="numeric", low=1, high=120), users).codes.tolist() == [0, 2, 5]
    with pytest.raises(DataError, match="'job': 1 values are outside the 2 categories"):
        attribute(job, users.with_columns(job=pl.Series(["writer", "unknown", "pilot"])))
