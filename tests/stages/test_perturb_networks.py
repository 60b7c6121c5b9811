"""Stage `perturb` on networks of users: what a release holds, what it must not hold, and what its ledger says."""

import shutil
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import polars as pl
import pytest

from tasks.config.audited import released_lines
from tasks.config.params import load
from tasks.core import contracts
from tasks.core.contracts import ProcessedTables
from tasks.core.errors import ByHandError, DataError
from tasks.datasets import glove
from tasks.datasets.encoding import encode
from tasks.pipeline.common import PERTURBED, PLACED, PROCESSED, QUALITY, digest, read_json, write_json
from tasks.privacy.accounting import gaps
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.remarks import because, gap
from tasks.stages import check, perturb, perturb_networks
from tests.quality.test_suites import failures
from tests.stages import tiny_networks as tiny
from tests.systems import ids

SETTINGS = ("base", "edges_epsilon=5.0", "features_epsilon=20.0")
TRUE = tiny.tables()
OPTIONS = {"published": tiny.PUBLISHED, "released": tiny.RELEASED, "rigorous": tiny.RIGOROUS}
N_FRIENDS = len({frozenset(pair) for pair in TRUE["left/social"].select("source", "target").iter_rows()})


@pytest.fixture(scope="module", autouse=True)
def no_mirror() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DPREC_MIRROR", raising=False)
        yield


def make() -> None:
    tiny.build(Path(), **OPTIONS)
    for name in OPTIONS:
        perturb.main(name)


def folder(name: str, setting: str = "base", seed: int = 0, network: str = "left") -> Path:
    return PERTURBED / name / setting / f"seed-{seed}" / network


def tables(name: str, setting: str = "base", seed: int = 0) -> ProcessedTables:
    return contracts.read_processed(folder(name, setting, seed))


def features(name: str, setting: str = "base", seed: int = 0) -> pl.DataFrame:
    schema = tables(name, setting, seed).schema
    contract = contracts.features_schema(schema.columns)
    return contracts.read(folder(name, setting, seed) / "features.parquet", contract)


def ledger(name: str) -> dict[tuple[str, int, str, str], list[LedgerEntry]]:
    entries: dict[tuple[str, int, str, str], list[LedgerEntry]] = {}
    for record in read_json(PERTURBED / name / "ledger.json"):
        which = record.pop("setting"), record.pop("seed"), record.pop("network"), record["protects"]
        entries.setdefault(which, []).append(LedgerEntry.model_validate(record))
    return entries


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize("name", OPTIONS)
def test_a_release_holds_what_was_perturbed_and_nothing_else(name: str) -> None:
    root = PERTURBED / name
    own = {
        f"{setting}/seed-{seed}/{file}"
        for setting in SETTINGS
        for seed in (0, 1)
        for file in (
            "schema.json", "left/features.parquet", "left/social.parquet", "left/posts.parquet",
            "left/vocabulary.parquet", "left/schema.json", "right/social.parquet", "right/schema.json",
        )
    }  # fmt: skip
    files = {"ledger.json"} | ({"words.json"} if name == "rigorous" else set())
    assert {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()} == own | files
    pair = contracts.read_processed(folder(name, network=""))
    assert pair.schema.networks == ("left", "right")
    schema = pair.network("left").schema
    assert schema.labels == ()
    assert schema.vector_size == 0


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize("name", OPTIONS)
def test_what_a_release_spends_is_known_before_it_is_made(name: str) -> None:
    spent = {entry.mechanism for entries in ledger(name).values() for entry in entries} - {"left-out"}
    assert {line.mechanism for line in released_lines(load().perturbed[name])} == spent


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize("name", ["published", "rigorous"])
def test_no_column_of_any_attribute_survives(name: str) -> None:
    """Not one encoded column, sensitive ones included, is that of the true users, regardless of the budget."""
    for setting in SETTINGS:
        for seed in (0, 1):
            schema, released = tables(name, setting, seed).schema, features(name, setting, seed)
            assert {"gender", "occupation"} <= {feature.name for feature in schema.features}
            true = encode(TRUE["left/users"], schema.features)
            noisy = released.sort("user").select(schema.columns).to_numpy()
            assert true.shape == noisy.shape
            unchanged = [c for c, a, b in zip(schema.columns, true.T, noisy.T, strict=True) if (a == b).all()]
            assert unchanged == []
    names = {path.name for path in (PERTURBED / name).rglob("*.parquet")}
    assert "users.parquet" not in names


@pytest.mark.usefixtures("inside")
def test_rigorous_features_are_those_that_no_data_scale() -> None:
    assert [feature.name for feature in tables("rigorous").schema.features] == ["hash", "gender", "occupation"]
    [entry] = ledger("rigorous")["base", 0, "left", "feature"]
    assert entry.accounted_epsilon == pytest.approx(5)
    assert because("unscaled-numbers", columns="tweets") in entry.reasons
    outright, given = ledger("published")["base", 0, "left", "feature"]
    assert (outright.accounted_epsilon, outright.accounting) == (None, given.accounting)
    assert gap("fitted-ranges", columns="tweets") in given.gaps


@pytest.mark.usefixtures("copied")
def test_rigorous_features_are_of_no_categories_that_only_the_data_list() -> None:
    path = PROCESSED / "tiny" / "left" / "schema.json"
    schema = read_json(path)
    for feature in schema["features"]:
        if feature["name"] == "gender":
            feature["bounds"] = "fitted"
    write_json(path, schema)
    perturb.main("rigorous")
    assert [feature.name for feature in tables("rigorous").schema.features] == ["hash", "occupation"]
    [entry] = ledger("rigorous")["base", 0, "left", "feature"]
    assert entry.accounted_epsilon == pytest.approx(5)
    assert because("unlisted-categories", columns="gender") in entry.reasons


@pytest.mark.usefixtures("copied")
def test_noise_follows_from_all_that_a_network_holds() -> None:
    """With one noise, two versions of a network would differ in nothing but the users who changed."""
    options = load().perturbed["published"]
    source = PROCESSED / "tiny" / "left"
    digests = {perturb_networks.read(source, "left", options, None).digest}
    for table in ("users", "social", "posts"):
        path = source / f"{table}.parquet"
        rows = pl.read_parquet(path)
        contract = contracts.table_schema(table, contracts.read_schema(source / "schema.json"))
        changed = rows.with_columns(hash=1 - pl.col("hash")) if table == "users" else rows.head(10)
        contracts.write(changed, path, contract)
        digests.add(perturb_networks.read(source, "left", options, None).digest)
    assert len(digests) == 4


@pytest.mark.usefixtures("inside")
def test_friendships_lose_their_direction_and_are_about_as_many() -> None:
    """The number itself is noisy: by at most 40 but once in 10^8."""
    for setting in SETTINGS:
        social = tables("published", setting).scan("social").collect()
        assert (social["source"] < social["target"]).all()
        assert abs(social.height - N_FRIENDS) <= 40
        assert not social.equals(TRUE["left/social"])


@pytest.mark.usefixtures("inside")
def test_published_posts_keep_their_lengths_and_rigorous_ones_are_capped() -> None:
    true, posts = TRUE["left/posts"], tables("published").scan("posts").collect()
    assert posts["user"].equals(true["user"])
    assert posts["tokens"].list.len().equals(true["tokens"].list.len())
    assert not posts["tokens"].equals(true["tokens"])
    assert tables("published").scan("vocabulary").collect()["word"].to_list() == list(tiny.WORDS)

    known = true.explode("tokens").filter(pl.col("tokens") < 5)  # the last two words are not public
    expected = known.group_by("user").len("n").sort("user").with_columns(n=pl.min_horizontal("n", 3))
    released = tables("rigorous").scan("posts").group_by("user").agg(n=pl.col("tokens").list.len().sum())
    assert released.sort("user").collect().cast({"n": pl.UInt32}).equals(expected.cast({"n": pl.UInt32}))
    assert tables("rigorous").scan("vocabulary").collect()["word"].to_list() == list(tiny.PUBLIC[:10])


@pytest.mark.usefixtures("inside")
def test_published_edges_and_texts_are_not_accounted_for_and_rigorous_ones_cost_what_is_stated() -> None:
    published, rigorous = ledger("published"), ledger("rigorous")
    assert set(published) == set(rigorous) == {
        (setting, seed, *which)
        for setting in SETTINGS
        for seed in (0, 1)
        for which in [("left", "feature"), ("left", "edge"), ("left", "text"), ("right", "edge"), ("right", "text")]
    }  # fmt: skip
    for setting, epsilon in (("base", 10.0), ("edges_epsilon=5.0", 5.0)):
        [noisy] = published[setting, 1, "left", "edge"]
        assert (noisy.claimed_epsilon, noisy.accounted_epsilon) == (epsilon, None)
        [sound] = rigorous[setting, 1, "left", "edge"]
        assert sound.claimed_epsilon == pytest.approx(epsilon)
        assert sound.accounted_epsilon == pytest.approx(epsilon)
        assert "direction-dropped" in ids(sound.gaps)
    assert {entry.accounted_epsilon for entry in published["base", 0, "left", "text"]} == {None}
    full = rigorous["base", 0, "left", "text"][-1]
    assert full.unit == "texts"
    assert full.accounted_epsilon == pytest.approx(7.5)
    for entries in [*published.values(), *rigorous.values()]:
        assert all("two-networks" in ids(entry.gaps) for entry in entries if entry.events)


@pytest.mark.usefixtures("inside")
def test_vectors_of_whole_texts_are_left_out_and_that_is_said() -> None:
    [entry] = ledger("published")["base", 0, "right", "text"]
    assert (entry.mechanism, entry.accounted_epsilon, entry.events) == ("left-out", 0, ())
    assert ids(entry.reasons) == {"whole-texts"}


@pytest.mark.usefixtures("copied")
def test_every_release_has_noise_of_its_own(tmp_path: Path) -> None:
    """Also two networks of the same data and two settings."""
    assert not features("published", "base").equals(features("published", "edges_epsilon=5.0"))
    shutil.copytree(PROCESSED / "tiny" / "left", tmp_path / "right")
    shutil.rmtree(PROCESSED / "tiny" / "right")
    (tmp_path / "right").rename(PROCESSED / "tiny" / "right")
    perturb.main("published")
    contract = contracts.features_schema(tables("published").schema.columns)
    right = contracts.read(folder("published", network="right") / "features.parquet", contract)
    assert not features("published").equals(right)


@pytest.mark.usefixtures("copied")
@pytest.mark.parametrize("name", OPTIONS)
def test_a_release_does_not_depend_on_what_else_is_listed_and_is_the_same_again(name: str, tmp_path: Path) -> None:
    before = digest(PERTURBED / name), digest(folder(name, "base", 1))
    perturb.main(name)
    assert digest(PERTURBED / name) == before[0]
    tiny.build(tmp_path / "other", **{name: OPTIONS[name] | {"sweep": {}, "seeds": [1]}})
    with chdir(tmp_path / "other"):
        perturb.main(name)
        assert digest(folder(name, "base", 1)) == before[1]


@pytest.mark.parametrize("name", ["published", "rigorous"])
def test_secure_networks_follow_from_no_seed_and_every_kind_of_data_says_so(name: str, tmp_path: Path) -> None:
    """Of texts and edges a few bits would differ at least."""
    tiny.build(tmp_path, **{name: OPTIONS[name] | {"sweep": {}, "seeds": [1], "noise": "secure"}})
    with chdir(tmp_path):
        perturb.main(name)
        files = [path.relative_to(folder(name, "base", 1)) for path in folder(name, "base", 1).rglob("*.parquet")]
        first = {file: digest(folder(name, "base", 1) / file) for file in files}
        perturb.main(name)
        again = {file: digest(folder(name, "base", 1) / file) for file in files}
        entries = [entry for of in ledger(name).values() for entry in of if entry.events]
    assert {file.stem for file in files if first[file] != again[file]} == {file.stem for file in files} - {"vocabulary"}
    assert {entry.protects for entry in entries} == {"feature", "edge", "text"}
    for line in entries:
        assert (line.noise, gaps.SECURE in line.gaps, gaps.SEED_OF_RELEASE in line.gaps) == ("secure", True, False)


@pytest.mark.usefixtures("copied")
def test_a_lone_network_lies_in_the_folder_of_its_seed() -> None:
    shutil.rmtree(PROCESSED / "tiny" / "right")
    for path in [*(PROCESSED / "tiny" / "left").iterdir()]:
        path.replace(PROCESSED / "tiny" / path.name)
    perturb.main("published")
    release = contracts.read_processed(folder("published", network=""))
    assert set(release.schema.tables) == {"social", "posts", "vocabulary"}
    assert {network for _, _, network, _ in ledger("published")} == {""}


def test_texts_without_a_budget_are_left_out_and_words_without_a_vector_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tiny.build(tmp_path, rigorous=tiny.RIGOROUS, mute=tiny.RIGOROUS | {"text_epsilon": None})
    (PLACED / glove.FILE.name).write_text("".join(f"word{n} {'0.5 ' * 49}{n}\n" for n in range(9)))
    with pytest.raises(DataError, match=r"no word is among the 9 public ones; set text_epsilon to null"):
        perturb.main("rigorous")
    (PLACED / glove.FILE.name).unlink()
    monkeypatch.setenv("DPREC_MIRROR", str(tmp_path))
    with pytest.raises(ByHandError, match="set text_epsilon to null"):
        perturb.main("rigorous")
    perturb.main("mute")
    assert tables("mute").schema.tables == ("social",)
    [entry] = ledger("mute")["base", 0, "left", "text"]
    assert entry.mechanism == "left-out"


def broken(name: str) -> set[tuple[str, str | None]]:
    """Tables and columns that break a rule of the check."""
    return {(table.name, rule.column) for table, rule in failures(check.perturbed_subject(name, load()).tables())}


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize("name", OPTIONS)
def test_a_release_passes_its_check(name: str) -> None:
    check.main(f"perturbed/{name}")
    verdict = read_json(QUALITY / "perturbed" / f"{name}.json")
    assert verdict["success"]
    assert (folder(name) / "posts.parquet").as_posix() in verdict["checked"]


@pytest.mark.usefixtures("copied")
@pytest.mark.parametrize("name", ["published", "rigorous"])
def test_a_wrong_release_is_found(name: str) -> None:
    assert broken(name) == set()
    where = folder(name, "edges_epsilon=5.0", 1)
    schema = tables(name).schema
    posts, social, noisy, known = (
        pl.read_parquet(where / f"{table}.parquet") for table in ("posts", "social", "features", "vocabulary")
    )
    longer = posts.with_columns(tokens=pl.concat_list("tokens", "tokens", "tokens", "tokens"))
    beyond = posts.with_columns(tokens=pl.col("tokens").list.eval(pl.element() + schema.n_words))
    lengths = {("left/posts", "tokens")}
    if name == "rigorous":
        lengths = {("left/posts per user", "words")}
    friends, features_ = "left/social", "left/features epsilon=5"
    faults = (
        ("social", social.with_columns(source="target").unique(), {(friends, "source, target")}),
        ("social", pl.concat([social, social[:1]]), {(friends, "setting, seed, source, target")}),
        ("social", social.with_columns(target=pl.lit(200, pl.Int32)).unique(), {(friends, "target")}),
        ("posts", beyond, {("left/posts", "tokens")}),
        ("posts", longer, lengths),
        ("vocabulary", known.with_columns(word=pl.lit("cat")), {("left/vocabulary", "setting, seed, word")}),
        ("features", noisy.with_columns(pl.lit(0.5, pl.Float32).alias("gender=0")), None),
        ("features", noisy.with_columns(hash=pl.lit(99, pl.Float32)), None),
        ("features", noisy[:-1], {(f"{features_} per user", "rows")}),
    )
    for table, wrong, expected in faults:
        right = (where / f"{table}.parquet").read_bytes()
        columns = contracts.features_schema(schema.columns)
        contract = columns if table == "features" else contracts.table_schema(table, schema)
        contracts.write(wrong, where / f"{table}.parquet", contract)
        actual = broken(name)
        if expected is None:  # a column out of range also makes its feature one of those released
            assert actual - {(features_, "features_released")} <= {(features_, "gender=0"), (features_, "hash")}
            assert actual
        else:
            assert actual == expected
        (where / f"{table}.parquet").write_bytes(right)
    pair = contracts.read_schema(where.parent / "schema.json")
    write_json(where.parent / "schema.json", pair.model_copy(update={"networks": ("left",)}).model_dump(mode="json"))
    with pytest.raises(DataError, match="not of the networks"):
        broken(name)


@pytest.mark.usefixtures("inside")
def test_as_the_authors_code_has_it_gender_passes_and_nothing_is_accounted_for() -> None:
    """A gender that is not known is two zeros."""
    schema = tables("released").schema
    true = pl.DataFrame(encode(TRUE["left/users"], schema.features), schema=schema.columns)
    noisy = features("released").sort("user")
    assert noisy.select("gender=0", "gender=1").equals(true.select("gender=0", "gender=1"))
    assert (noisy["gender=unknown"] == 0).all()
    for kind, claimed in (("feature", 5.0), ("edge", 10.0), ("text", 7.5)):
        first, *others = ledger("released")["base", 0, "left", kind]
        assert (first.accounting, first.claimed_epsilon) == ("released", claimed)
        assert {entry.accounted_epsilon for entry in (first, *others)} == {None}


@pytest.mark.usefixtures("copied")
def test_what_the_authors_code_cannot_have_released_is_found() -> None:
    where = folder("released") / "features.parquet"
    right, contract = pl.read_parquet(where), contracts.features_schema(tables("released").schema.columns)
    for column, value in (("gender=0", 0.5), ("gender=unknown", 1.0), ("hash", 99.0), ("occupation=1", -99.0)):
        contracts.write(right.with_columns(pl.lit(value, pl.Float32).alias(column)), where, contract)
        assert broken("released") == {("left/features epsilon=5", column)}
