"""`dprec audit` on systems of which it is known what they leak, as a user meets it."""

import html
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from tasks.core.errors import DataError
from tasks.external.findings import Answer, Audit
from tasks.external.run import AuditRequest, find_shadows, run
from tasks.external.writing import render, write
from tests.external import worlds
from tests.external.conftest import SCHEMA, Here
from tests.external.false_alarms import alarms, most
from tests.external.worlds import World, quiet

WORLD = worlds.world(1)


def audited(asked: AuditRequest) -> Audit:
    return run(asked, quiet)[0]


def answer(audit: Audit, question: str) -> Answer:
    return next(given for given in audit.answers if given.question == question)


def test_lists_of_own_training_items_leak_outside_a_project(tmp_path: Path, here: Here) -> None:
    worlds.asked(tmp_path, WORLD, worlds.own_items(WORLD, np.random.default_rng(0)))
    given = ("--train", "train.csv", "--recommendations", "lists.parquet")
    assert here(tmp_path, *given).returncode == 4
    assert "Questions answered: 0 of 4" in (tmp_path / "audit" / "index.html").read_text()
    done = here(tmp_path, *given, "--public", "public.csv")
    assert done.returncode == 3
    assert done.stdout.startswith(
        "Leaks shown: 3. Questions answered: 4 of 4.\nThe lists show what their users were trained"
    )
    assert "recommendations: lists.parquet (6,000 rows; columns user, item, rank)" in done.stderr
    assert all(not file.stat().st_mode & 0o077 for file in (tmp_path / "audit").iterdir())  # its owner's alone
    written = json.loads((tmp_path / "audit" / "audit.json").read_text())
    jsonschema.validate(written, json.loads(SCHEMA.read_text()))
    assert [written["verdict"][key] for key in ("exit_code", "questions", "answered", "shown")] == [3, 4, 4, 3]
    assert [answer["state"] for answer in written["answers"]] == ["shown"] * 3 + ["not shown"]


def test_noisy_popularity_shows_nothing(tmp_path: Path) -> None:
    asked = worlds.asked(tmp_path, WORLD, worlds.noisy_popularity(WORLD, np.random.default_rng(0)))
    audit = audited(asked)
    assert audit.verdict.exit_code == 0
    assert {given.state for given in audit.answers} == {"not shown"}
    notes = answer(audit, "interactions").notes
    assert any(note.startswith("The serving rule: lists leave out trained items.") for note in notes)
    signals = ("similarity to the list", "similarity to the 3 closest listed items")
    names = {f"loss threshold on {signal}{way}" for signal in signals for way in ("", ", reversed")}
    assert {attack.name for attack in answer(audit, "interactions").attacks} == names


def test_lists_by_gender_reveal_it_and_by_a_shuffled_gender_do_not(tmp_path: Path) -> None:
    labels = {"gender": WORLD.gender}
    rng = np.random.default_rng(0)
    audit = audited(worlds.asked(tmp_path, WORLD, worlds.by_gender(WORLD, WORLD.gender, rng), labels))
    assert audit.verdict.exit_code == 3
    assert answer(audit, "attributes").state == "shown"
    assert audit.verdict.sentences[1].startswith("The lists reveal gender beyond the ratings: ")
    shuffled = worlds.by_gender(WORLD, rng.permutation(WORLD.gender), rng)
    other = audited(worlds.asked(tmp_path, WORLD, shuffled, labels))
    assert (other.verdict.exit_code, answer(other, "attributes").state) == (0, "not shown")


def test_interactions_are_revealed_by_their_sequels_although_lists_leave_them_out(tmp_path: Path) -> None:
    made = worlds.sequels(2)
    audit = audited(worlds.asked(tmp_path, made, worlds.recommended_sequels(made, np.random.default_rng(0))))
    assert answer(audit, "interactions").state == "shown"
    assert audit.verdict.exit_code == 3
    best = min(answer(audit, "interactions").attacks, key=lambda attack: attack.p or 0)
    auc = best.measures[0]
    assert 0.6 < auc.low < auc.value
    popular = audited(worlds.asked(tmp_path, made, worlds.noisy_popularity(made, np.random.default_rng(0))))
    assert answer(popular, "interactions").state == "not shown"


def test_members_of_other_taste_than_non_members_are_no_leak(tmp_path: Path) -> None:
    """A public chart of each region: nothing is trained."""
    made = worlds.world(5, apart=True)
    assert audited(worlds.asked(tmp_path, made, worlds.charts(made))).verdict.shown == 0


@pytest.mark.parametrize(("n", "seed"), [(80, 0), (160, 0)])
def test_one_score_of_each_item_for_all_users_is_no_leak(tmp_path: Path, n: int, seed: int) -> None:
    """Members prefer items of high scores, and all rate these better; nothing is trained."""
    rng = np.random.default_rng(seed)
    quality, members = rng.normal(size=600), np.arange(n)[:, None] < n // 2
    weights = np.exp(0.35 * np.where(members, 1, -1) * quality)
    every = worlds.best(np.log(rng.random((n, 600))) / weights)
    trained, later = np.zeros((2, n, 600), bool)
    np.put_along_axis(trained, every[:, 3:], True, axis=1)
    np.put_along_axis(later, every[:, :3], True, axis=1)
    made = World(trained & members, np.where(members, later, trained), np.zeros(n, np.int64))
    asked = worlds.asked(tmp_path, made, worlds.random_lists(made, rng))
    pairs = []
    for path in (asked.train, asked.public):
        score = quality[pl.read_csv(path)["item"].str.slice(1).cast(pl.Int64)]
        pairs.append(pl.read_csv(path).with_columns(score=score, rating=score + rng.normal(size=len(score))))
        pairs[-1].write_csv(path)
    pl.concat(pairs).write_csv(tmp_path / "scores.csv")
    assert audited(replace(asked, scores=tmp_path / "scores.csv")).verdict.shown == 0


def test_held_back_items_of_another_kind_decide_nothing(tmp_path: Path) -> None:
    """Public charts; what users hold back is what is least popular."""
    every, members = WORLD.trained | WORLD.public, WORLD.trained.any(axis=1)[:, None]
    rank = np.argsort(np.argsort(np.where(every, every.sum(axis=0), np.inf), axis=1), axis=1)
    held = every & (rank < 4) & members
    made = World(every & ~held & members, held, WORLD.gender, WORLD.cluster)
    audit = audited(worlds.asked(tmp_path, made, worlds.charts(made)))
    assert (audit.verdict.shown, answer(audit, "own items").state) == (0, "cannot be decided")


def test_held_back_items_that_are_newer_by_a_little_are_no_leak(tmp_path: Path) -> None:
    """Public charts of each region; the items of charts are a little rarer among what users hold back."""
    complete = worlds.world(0, 1000, 0)
    every, lists = np.logical_or(complete.trained, complete.public), worlds.charts(complete)
    old = np.isin(np.arange(every.shape[1]), lists)
    key = np.where(every, np.random.default_rng(0).random(every.shape) + 0.06 * old, np.inf)
    held = every & (np.argsort(np.argsort(key, axis=1), axis=1) < 4)
    made = World(every & ~held, held, complete.gender, complete.cluster)
    assert audited(worlds.asked(tmp_path, made, lists)).verdict.shown == 0


@pytest.mark.parametrize("scored", [False, True])
def test_a_public_chart_of_the_region_tells_no_held_back_ratings(tmp_path: Path, *, scored: bool) -> None:
    """Nothing is trained: charts, and scores, of what each region likes; ratings agree with them."""
    rng = np.random.default_rng(0)
    region, taste = rng.integers(0, 4, 300), rng.normal(size=(4, 200))
    on_chart = rng.permuted(np.tile(np.arange(200) < 40, (4, 1)), axis=1)
    has = worlds.best(rng.random((300, 200)) + 0.5 * on_chart[region])
    every, public = np.zeros((2, 300, 200), bool)
    np.put_along_axis(every, has, True, axis=1)
    np.put_along_axis(public, has[:, ::4], True, axis=1)
    made = World(every & ~public, public, region, region, worlds.rated(taste[region], rng))
    asked = worlds.asked(tmp_path, made, worlds.best(taste + 9 * on_chart)[region])
    users, items = np.divmod(np.arange(every.size), 200)
    everything = {"user": worlds.names("u", users), "item": worlds.names("i", items), "score": taste[region].ravel()}
    pl.DataFrame(everything).write_csv(tmp_path / "scores.csv")
    audit = audited(replace(asked, scores=tmp_path / "scores.csv" if scored else None))
    assert answer(audit, "held-back ratings").state == "not shown"


def test_scores_are_attacked_both_ways_and_lists_of_one_item_decide_nothing(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    asked = worlds.asked(tmp_path, WORLD, worlds.random_lists(WORLD, rng)[:, :1])
    pairs = []
    for loss, name in enumerate(("train.csv", "public.csv")):
        table = pl.read_csv(tmp_path / name)
        pairs.append(table.with_columns(score=pl.Series(rng.normal(loss, 0.3, len(table)))))
    pl.concat(pairs).sample(fraction=0.7, seed=0).write_csv(tmp_path / "losses.csv")
    audit = audited(asked)
    assert (answer(audit, "interactions").state, audit.verdict.exit_code) == ("cannot be decided", 4)
    audit = audited(replace(asked, scores=tmp_path / "losses.csv"))
    assert answer(audit, "interactions").state == "shown"
    assert answer(audit, "interactions").decided_by == "loss threshold on the score, reversed"


@pytest.mark.parametrize("system", [worlds.own_items, worlds.noisy_popularity, worlds.by_gender])
def test_verdict_page_json_and_exposure_agree(tmp_path: Path, system: Callable[..., NDArray[np.int64]]) -> None:
    made, rng = worlds.sequels(2), np.random.default_rng(0)
    lists = system(made, made.gender, rng) if system is worlds.by_gender else system(made, rng)
    audit, exposed = run(worlds.asked(tmp_path, made, lists, {"gender": made.gender}), quiet)
    paths = write(audit, exposed, tmp_path / "out")
    states = [given.state for given in audit.answers]
    verdict = Audit.model_validate_json(paths[0].read_text()).verdict
    assert (verdict.questions, verdict.shown) == (len(states), states.count("shown"))
    assert verdict.answered == len(states) - states.count("cannot be decided")
    assert verdict.exit_code == (3 if verdict.shown else 4 if verdict.answered < verdict.questions else 0)
    page = html.unescape(paths[1].read_text())
    for given, sentence in zip(audit.answers, verdict.sentences[1:], strict=True):
        assert given.sentence == sentence
        assert sentence in page
        assert any(attack.shown for attack in given.attacks) == (given.state == "shown")
    by_question = {given.question: given for given in audit.answers}
    leaks = {question for question, given in by_question.items() if given.state == "shown"}
    assert (len(paths) == 3) == bool(audit.exposure) == bool(leaks & {"interactions", "own items"})
    if "interactions" in leaks:
        deciding = by_question["interactions"].decided_by
        auc = next(a for a in by_question["interactions"].attacks if a.name == deciding).measures[0].value
        assert next(of for of in audit.exposure if of.of == "users").mean == pytest.approx(auc, abs=0.02)


def test_a_single_hit_is_no_less_likely_than_a_shuffle_says(tmp_path: Path) -> None:
    """No list has an item of its user but for one: trained on in half of the draws, within the user and the item."""
    trained, public = np.zeros((50, 2_000), bool), np.zeros((50, 2_000), bool)
    trained[np.arange(50), np.arange(50)] = public[np.arange(50), 1_000 + np.arange(50)] = True
    lists = 100 + np.arange(50 * worlds.K).reshape(50, worlds.K)
    lists[0, 0] = 0
    public[1, 1_001], public[1, 0] = False, True
    made = worlds.World(trained, public, np.zeros(50, np.int64))
    [attack] = answer(audited(worlds.asked(tmp_path, made, lists)), "own items").attacks
    assert attack.p >= 0.48


def test_released_scores_are_attacked_and_reconstruct_ratings(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    asked = worlds.asked(tmp_path, WORLD, worlds.random_lists(WORLD, rng))
    pairs = pl.concat([pl.read_csv(tmp_path / "train.csv"), pl.read_csv(tmp_path / "public.csv")])
    noise = pl.Series(rng.normal(0, 1, len(pairs)))
    pairs.select("user", "item", score=pl.col("rating") + noise).write_csv(tmp_path / "scores.csv")
    audit = audited(replace(asked, scores=tmp_path / "scores.csv"))
    assert answer(audit, "held-back ratings").state == "shown"
    assert "loss threshold on the score" in {attack.name for attack in answer(audit, "interactions").attacks}
    assert answer(audit, "interactions").state == "not shown"  # what was held back is scored as well


def test_false_alarms_are_as_rare_as_stated(tmp_path: Path) -> None:
    """One of each kind; `python -m tests.external.false_alarms` runs 200."""
    assert len(alarms(range(11), tmp_path, small=True, labels=False)) <= most(11)


def test_bad_input_is_one_line_and_nothing_is_written(tmp_path: Path, here: Here) -> None:
    worlds.asked(tmp_path, WORLD, worlds.own_items(WORLD, np.random.default_rng(0)))
    with (tmp_path / "train.csv").open("a") as file:
        file.write("u1,i1,five\n")
    done = here(tmp_path, "--train", "train.csv", "--recommendations", "lists.parquet", "--out", "new")
    assert (done.returncode, done.stdout) == (1, "")
    rows = len((tmp_path / "train.csv").read_text().splitlines())
    assert done.stderr == f"dprec: train.csv:{rows}: rating is 'five', not a number\n"
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--rank-column", "place"], "no file has a column 'place'; correct --rank-column"),
        (["--user-column", "person"], "no file has a column 'person'; correct --user-column"),
        (["--attributes", "gender"], "--attributes needs --users"),
        (["--runs", "3"], "--runs needs --command"),
        (["--canary-count", "50"], "--canary-count needs --command"),
        (["--out", "train.csv"], "--out train.csv: there is a file or a link of that name; choose another folder"),
    ],
)
def test_options_that_nothing_could_heed_are_refused(
    tmp_path: Path, here: Here, options: list[str], complaint: str
) -> None:
    worlds.asked(tmp_path, WORLD, worlds.own_items(WORLD, np.random.default_rng(0)))
    done = here(tmp_path, "--train", "train.csv", "--recommendations", "lists.parquet", *options)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"dprec: {complaint}\n")
    assert not (tmp_path / "audit").exists()


def test_options_before_a_subcommand_are_refused(tmp_path: Path, here: Here) -> None:
    """They were dropped without a word."""
    worlds.asked(tmp_path, WORLD, worlds.own_items(WORLD, np.random.default_rng(0)))
    own = ("canaries", "--train", "train.csv", "--out", "planted")
    done = here(tmp_path, "--seed", "1", "--user-column", "user", *own)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "dprec: --seed, --user-column before `canaries` would be dropped; write `dprec audit canaries` first and its "
        "own options after it, which `dprec audit canaries --help` lists\n"
    )
    assert not (tmp_path / "planted").exists()
    assert here(tmp_path, *own, "--user-column", "user").returncode == 0


def test_ids_are_in_the_owners_file_alone_texts_are_escaped_and_equal_input_gives_equal_bytes(tmp_path: Path) -> None:
    name = "<script>alert(1)</script>"
    asked = worlds.asked(tmp_path, WORLD, worlds.own_items(WORLD, np.random.default_rng(0)), {name: WORLD.gender})
    audit, exposed = run(asked, quiet)
    data, page, owner = write(audit, exposed, tmp_path / "out")
    assert oct(owner.stat().st_mode & 0o777) == "0o600"
    assert {row["of"] for row in exposed.iter_rows(named=True)} <= {"users", "items"}
    for path in (data, page):
        assert '"u1"' not in path.read_text()
        assert ">u1<" not in path.read_text()
    text = page.read_text()
    assert text.count('role="img"') == 2  # curves of the questions with scores: users and interactions
    assert html.escape(name) in text
    assert text.count("<script") == 1  # that of all pages, which the policy names by its digest
    assert render(audited(asked)) == text


def test_lists_of_strangers_are_refused(tmp_path: Path) -> None:
    asked = worlds.asked(tmp_path, WORLD, worlds.own_items(WORLD, np.random.default_rng(0)))
    lists = pl.read_parquet(asked.recommendations).with_columns(user="x" + pl.col("user"))
    lists.write_parquet(asked.recommendations)
    with pytest.raises(DataError, match=r"no list is of a user of .*train.csv; do the ids agree\?"):
        audited(asked)
    asked = worlds.asked(tmp_path, WORLD, worlds.own_items(WORLD, np.random.default_rng(0)))
    (tmp_path / "users.csv").write_text("user,gender\nx1,f\nx2,m\n")
    with pytest.raises(DataError, match=r"users.csv: holds no user of .*train.csv; do the ids agree\?"):
        audited(replace(asked, users=tmp_path / "users.csv"))
    lists.write_parquet(tmp_path / "run.parquet")
    (tmp_path / "train.csv").rename(tmp_path / "run.train.csv")
    asked = replace(asked, train=tmp_path / "run.train.csv", shadows=find_shadows(str(tmp_path / "run.parquet")))
    with pytest.raises(DataError, match=r"run.parquet: holds no user of .*train.csv; do the ids agree\?"):
        audited(asked)


def test_the_committed_schema_is_that_of_the_code() -> None:
    schema = json.dumps(Audit.model_json_schema(), indent=2, ensure_ascii=False) + "\n"
    assert SCHEMA.read_text() == schema
