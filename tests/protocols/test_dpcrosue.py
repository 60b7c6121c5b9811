import re
import unicodedata
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.core.contracts import Feature
from tasks.core.errors import DataError
from tasks.core.raw import RawTables
from tasks.datasets import foursquare_twitter
from tasks.papers.dpcrosue.protocol import Options, prepare, tokenize, vocabulary
from tasks.papers.protocol import NetworkCount, Prepared
from tests.datasets import formats
from tests.protocols.tables import as_published, assert_same, shuffled, stored

WORDS = Options(tokenizer="words", min_count=1, max_vocabulary=None)
GENDER = Feature(name="gender", kind="categorical", categories=("F", "M", "?"), unknown="?", sensitive=True)
LABELS = ("food", "sports")


def posts(*rows: tuple[str, str | None]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), {"user": pl.String, "text": pl.String}, orient="row")


def words(text: str, tokenizer: str) -> list[str]:
    return tokenize(posts(("a", text)), tokenizer)["word"].to_list()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't  STOP!", ["don", "t", "stop"]),
        ("éTÉ naïve e\u0301te\u0301", ["été", "naïve", "été"]),
        ("ＡＢＣ ab_9 #tag @me", ["abc", "ab_9", "tag", "me"]),
        ("手机 很好，喜欢", ["手机", "很好", "喜欢"]),
        ("हिन्दी русский עברית", ["हिन्दी", "русский", "עברית"]),
        ("😀 — ...", []),
        ("", []),
    ],
)
def test_words_are_runs_of_letters_marks_and_digits(text: str, expected: list[str]) -> None:
    assert words(text, "words") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("iPhone手机很好123，好!", ["iphone", "手", "机", "很", "好", "123", "好"]),
        ("ひらカナ漢字abc", ["ひ", "ら", "カ", "ナ", "漢", "字", "abc"]),
        ("no Chinese, naïve", ["no", "chinese", "naïve"]),
    ],
)
def test_characters_of_scripts_without_blanks_stand_alone(text: str, expected: list[str]) -> None:
    assert words(text, "characters") == expected


ASCII = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40)


@given(texts=st.lists(st.one_of(ASCII, st.none()), max_size=8))
def test_every_token_arrives_in_the_order_of_its_text(texts: list[str | None]) -> None:
    actual = tokenize(posts(*(("a", text) for text in texts)), "words")
    expected = [
        (n, word)
        for n, text in enumerate(texts)
        for word in re.findall(r"\w+", unicodedata.normalize("NFKC", text or "").lower())
    ]
    assert actual.select("post", "word").rows() == expected


@given(
    tokens=st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=60),
    min_count=st.integers(1, 5),
    most=st.one_of(st.none(), st.integers(1, 9)),
)
def test_the_vocabulary_is_the_most_frequent_words_then_by_name(
    tokens: list[str], min_count: int, most: int | None
) -> None:
    counts = Counter(tokens)
    expected = sorted((-n, word) for word, n in counts.items() if n >= min_count)[:most]
    if not expected:
        with pytest.raises(DataError, match=f"no word occurs {min_count} times"):
            vocabulary(pl.Series(tokens), min_count, most)
        return
    actual = vocabulary(pl.Series(tokens), min_count, most)
    assert actual.rows() == [(n, word) for n, (_, word) in enumerate(expected)]


def network() -> dict[str, pl.DataFrame]:
    """Users d (no post, no friend, no label), a, b, c; what names z names no one."""
    vectors = pl.Series("vector", [[1.0, 2.0], [3.0, 4.0]], pl.Array(pl.Float32, 2))
    return {
        "users": pl.DataFrame({"user": ["d", "a", "c", "b"], "gender": ["F", "M", None, "F"]}),
        "social": pl.DataFrame({"source": list("abbacz"), "target": list("baacca"), "relation": ["follows"] * 6}),
        "posts": posts(
            ("b", "Good tea"), ("a", "tea"), ("b", "Good"), ("c", "?!"), ("a", None), ("c", "once"), ("b", "tea tea")
        ),
        "labels": pl.DataFrame({"user": ["c", "a"], "food": [1, 0], "sports": [None, 1]}).cast(
            {"food": pl.Int8, "sports": pl.Int8}
        ),
        "vectors": pl.DataFrame([pl.Series("user", ["c", "b"]), vectors]),
    }


def single_network(folder: Path, tables: dict[str, pl.DataFrame]) -> RawTables:
    return stored(folder, tables, features=(GENDER,), labels=LABELS)


def test_a_network_has_all_its_users_and_what_they_say(tmp_path: Path) -> None:
    prepared = prepare(single_network(tmp_path / "raw", network()), WORDS.model_copy(update={"min_count": 2}))
    tables = as_published(prepared, tmp_path / "processed")
    assert tables["user_ids"]["original"].to_list() == ["a", "b", "c", "d"]
    assert tables["users"]["gender"].to_list() == ["M", "F", "?", "F"]
    assert tables["social"].rows() == [(0, 1, "follows"), (0, 2, "follows"), (1, 0, "follows")]
    assert tables["vocabulary"].rows() == [(0, "tea"), (1, "good")]
    assert tables["posts"].rows() == [(0, [0]), (1, [1]), (1, [1, 0]), (1, [0, 0])]
    assert tables["labels"].rows() == [(0, 0, 1), (2, 1, None)]
    assert tables["vectors"].rows() == [(1, [3.0, 4.0]), (2, [1.0, 2.0])]
    assert (prepared.n_users, prepared.n_items, prepared.n_words, prepared.vector_size) == (4, 0, 2, 2)
    assert prepared.labels == LABELS
    last = prepared.counts[-1]
    assert (last.users, last.links, last.posts, last.words) == (4, 3, 4, 2)
    assert [count.posts for count in prepared.counts if isinstance(count, NetworkCount) and count.posts] == [7, 7, 4]
    assert [count.links for count in prepared.counts[1:5] if isinstance(count, NetworkCount)] == [6, 5, 4, 3]


def test_a_network_without_a_table_of_users_has_those_that_are_named(tmp_path: Path) -> None:
    tables = {name: table for name, table in network().items() if name != "users"}
    prepared = prepare(stored(tmp_path, tables, labels=LABELS), WORDS)
    assert prepared.tables["user_ids"]["original"].to_list() == ["a", "b", "c", "z"]
    assert prepared.tables["users"].columns == ["user"]
    assert (2, 0, "follows") not in prepared.tables["social"].rows()
    assert (3, 0, "follows") in prepared.tables["social"].rows()


@pytest.mark.parametrize("texts", [[], [("a", "?!"), ("b", None)], [("a", "tea"), ("b", "coffee")]])
def test_posts_without_a_frequent_word_are_refused(tmp_path: Path, texts: list[tuple[str, str | None]]) -> None:
    raw = stored(tmp_path, {"users": network()["users"], "posts": posts(*texts)})
    with pytest.raises(DataError, match="posts: no word occurs 2 times; lower `min_count`"):
        prepare(raw, WORDS.model_copy(update={"min_count": 2}))


def pair(folder: Path, seed: int | None = None) -> RawTables:
    """Network one, with all there is, and two, with numbers for users and links alone."""
    first = network()
    second = {"social": pl.DataFrame({"source": [7, 8], "target": [9, 7], "relation": ["follows"] * 2})}
    accounts = [("b", 9), ("a", 7), ("c", 1000), ("z", 8), ("a", 7)]
    anchors = pl.DataFrame(accounts, ["source", "target"], orient="row")
    if seed is not None:
        first, second = shuffled(first, seed), shuffled(second, seed)
        anchors = shuffled({"anchors": anchors}, seed)["anchors"]
    single_network(folder / "one", first)
    stored(folder / "two", second)
    return stored(folder, {"anchors": anchors}, networks=("one", "two"))


def test_anchors_join_users_of_both_networks(tmp_path: Path) -> None:
    prepared = prepare(pair(tmp_path), WORDS)
    assert prepared.tables["anchors"].rows() == [(0, 0), (1, 2)]
    assert list(prepared.networks) == ["one", "two"]
    assert [len(network.tables["users"]) for network in prepared.networks.values()] == [4, 3]
    assert [count.links for count in prepared.counts if isinstance(count, NetworkCount)] == [5, 3, 2]
    assert [count.users for count in prepared.counts] == [8, 4, 4]
    as_published(prepared, tmp_path / "processed")


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_the_rows_means_nothing(tmp_path: Path, seed: int) -> None:
    expected = prepare(pair(tmp_path / "one"), WORDS)
    assert_same(prepare(pair(tmp_path / "other", seed), WORDS), expected)


@pytest.fixture(scope="module")
def foursquare(mirror: Path, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    folder = formats.obtained(foursquare_twitter, tmp_path_factory.mktemp("foursquare"), mirror)
    return prepare(formats.converted(foursquare_twitter, folder), WORDS).networks["foursquare"]


def test_foursquare_is_whole(foursquare: Prepared, tmp_path: Path) -> None:
    """Table 1: 5,392 users and 76,972 friendships; its posts are published as vectors alone, of 3,001 users."""
    last = foursquare.counts[-1]
    assert (last.users, last.links) == (5392, 76_972)
    vectors = as_published(foursquare, tmp_path)["vectors"]
    assert (vectors.height, foursquare.vector_size) == (3001, 300)
    assert np.isfinite(vectors["vector"].to_numpy()).all()
    assert "posts" not in foursquare.tables
