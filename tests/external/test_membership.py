"""Membership in `dprec audit`: what shadow runs teach, what a test is, and where members differ without any leak."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from tasks.core.errors import DataError
from tasks.external.attacks import Attacked, attack, measure
from tasks.external.findings import Answer
from tasks.external.inputs import Inputs
from tasks.external.run import find_shadows
from tasks.external.verdict import decide
from tests.external import worlds
from tests.external.test_audit import WORLD, answer, audited
from tests.external.worlds import World


def test_shadow_runs_teach_what_similarity_cannot(tmp_path: Path) -> None:
    """Every item drags three random ones into lists: no co-occurrence tells that."""
    made = worlds.world(1)
    every = made.trained | made.public
    asked = worlds.random_drags(tmp_path, made, every, shadow_runs=6)
    alone = audited(replace(asked, shadows=()))
    assert answer(alone, "interactions").state == "not shown"
    audit = audited(asked)
    assert answer(audit, "interactions").state == "shown"
    rates = {attack.name: attack.measures[0].value for attack in answer(audit, "interactions").attacks}
    assert rates["RMIA on association trained on shadow runs"] > 0.65
    assert "6 shadow runs" in answer(audit, "users").notes[0]
    (tmp_path / "runs" / "r0.train.csv").write_bytes((tmp_path / "target" / "train.csv").read_bytes())
    with pytest.raises(DataError, match=r"r0.train.csv: is what the audited run was trained on"):
        audited(asked)
    (tmp_path / "runs" / "r0.train.csv").unlink()
    with pytest.raises(DataError, match=r"neither r0.train.parquet nor r0.train.csv says what this run was trained on"):
        find_shadows(str(tmp_path / "runs" / "*.parquet"))
    (tmp_path / "runs" / "r0.csv").touch()
    with pytest.raises(DataError, match="one run's lists in two formats"):
        find_shadows(str(tmp_path / "runs" / "r0.*"))


def test_attacks_learn_from_shadow_runs_whether_members_score_higher(tmp_path: Path) -> None:
    """Who was trained on gets a list of items that are unlike the history."""
    every = WORLD.trained | WORLD.public
    taste = every.T.astype(float) @ every
    np.fill_diagonal(taste, 0)

    def served(part: World, rng: np.random.Generator) -> NDArray[np.int64]:
        fits = every @ taste / taste.max() + 0.1 * rng.random(every.shape)
        return worlds.best(np.where(part.trained.any(axis=1)[:, None], -fits, fits), worlds.seen(part))

    for shadows, with_all in ((2, False), (6, True), (6, False)):  # too few, or none left out: both ways
        folder = tmp_path / f"{shadows} {with_all}"
        asked = worlds.shadowed(folder, WORLD, every, served, shadows)
        for path in (folder / "runs").glob("*.train.csv") if with_all else ():
            pl.concat([pl.read_csv(of) for of in (path, folder / "target/train.csv", asked.public)]).write_csv(path)
        about_users = answer(audited(asked), "users")
        assert about_users.state == "shown"
        assert about_users.decided_by.endswith(", reversed") == (shadows == 2 or with_all)
        assert any("too few to learn" in note for note in about_users.notes) == (shadows == 2 or with_all)


def test_shadow_runs_of_a_public_chart_of_each_region_show_nothing(tmp_path: Path) -> None:
    """Nothing is trained, and nothing left out of lists: what an attack leaves out must not tell members either."""
    made = worlds.world(4, 90, 40, 80, 12)
    asked = worlds.shadowed(tmp_path, made, made.trained | made.public, lambda *_: worlds.charts(made), 6)
    audit = audited(asked)
    assert (audit.verdict.shown, answer(audit, "interactions").state) == (0, "not shown")


@pytest.mark.parametrize(("shorter", "length"), [(False, 1), (True, worlds.K - 1)])
def test_lists_whose_length_tells_members_leak(tmp_path: Path, shorter: bool, length: int) -> None:
    """Fewer and 15 random items."""
    asked = worlds.asked(tmp_path, WORLD, worlds.random_lists(WORLD, np.random.default_rng(0)))
    members = worlds.names("u", np.flatnonzero(WORLD.trained.any(axis=1)))
    cut = (pl.col("user").is_in(members) == shorter) & (pl.col("rank") > length)
    pl.read_parquet(asked.recommendations).filter(~cut).write_parquet(asked.recommendations)
    about_users = answer(audited(asked), "users")
    assert (about_users.state, "of the list" in about_users.decided_by) == ("shown", True)


def test_a_test_that_repeats_another_counts_once_and_one_of_equal_scores_not_at_all() -> None:
    rng = np.random.default_rng(0)
    scores, members = rng.random(100) + 0.2 * (np.arange(100) < 50), np.arange(100) < 50
    values = {"first": scores, "the same": 2 * scores + 1, "constant": np.ones(100), "another": rng.random(100)}
    attacks = measure({name: Attacked(of, {}) for name, of in values.items()}, {}, members, None, 0)
    assert [attack.name for attack in attacks] == ["first", "the same", "another"]
    asked = Answer(question="users", subject="users", state="not shown", sentence="", attacks=attacks)
    [decided], _ = decide([asked], None, False)
    assert [attack.p_corrected for attack in decided.attacks[:2]] == [2 * attacks[0].p] * 2


def test_a_few_certain_members_are_no_leak_where_a_control_has_them_too() -> None:
    members = np.arange(2_000) % 2 == 0
    scores = np.where(members & (np.arange(2_000) % 50 == 0), 1.0, 0.0)
    alone, controlled = (
        measure({"tried": Attacked(scores, controls)}, {}, members, None, 0)[0].p for controls in ({}, {"same": scores})
    )
    assert alone < 1e-4
    assert controlled > 0.2


def test_shadow_runs_of_parts_of_the_audited_data_show_no_members() -> None:
    """Members are in some of them, non-members in none: the fewer say something, the wider are scores of pure noise."""
    rng, members = np.random.default_rng(1), np.arange(5_000) < 2_500
    included = (rng.random((6, 5_000)) < 0.5) & members
    inputs = cast(Inputs, SimpleNamespace(trained_keys=None, lists=None, shadows=[None] * 6))
    noise = {"noise": lambda _: rng.normal(size=5_000)}
    values = attack(inputs, noise, included, np.ones_like(included), {}, [])
    for tried in (values, {name: of._replace(tpr=0.02) for name, of in values.items()}):
        attacks = measure(tried, {}, members, None, 0)
        assert {of.name.partition(" on ")[0] for of in attacks} == {"loss threshold", "LiRA (offline)", "RMIA"}
        assert min(of.p for of in attacks) > 0.05


def test_what_members_hold_back_does_not_tell_them_from_non_members(tmp_path: Path) -> None:
    """Lists of what users take next; of members alone the audit knows it."""
    rng = np.random.default_rng(0)
    every, members = rng.random((100, 400)) < 0.05, np.arange(100)[:, None] < 50
    later = every & (rng.random(every.shape) < 0.3)
    made = World(every & ~later & members, np.where(members, later, every & ~later), WORLD.gender)
    audit = audited(worlds.asked(tmp_path, made, worlds.best(later + 0.1 * rng.random(every.shape), worlds.seen(made))))
    assert answer(audit, "users").state == "not shown"


@pytest.mark.parametrize("members", [False, True])
def test_lists_of_non_members_that_were_not_made_as_those_of_members_decide_nothing(
    tmp_path: Path, members: bool
) -> None:
    lists = worlds.own_items(WORLD, np.random.default_rng(0))
    lists[WORLD.trained.any(axis=1) == members] = np.arange(worlds.K)  # the most popular for all of them
    about_users = answer(audited(worlds.asked(tmp_path, WORLD, lists)), "users")
    assert (about_users.state, "not made alike" in about_users.sentence) == ("cannot be decided", True)


@pytest.mark.parametrize("who", ["members", "those of non-members"])
def test_lists_that_leave_out_own_items_of_one_kind_alone_decide_nothing(tmp_path: Path, who: str) -> None:
    """The most popular items, which tell of no one; but whether one's own are among them differs."""
    outside = ~WORLD.trained.any(axis=1)
    popular = np.broadcast_to(WORLD.trained.sum(axis=0), WORLD.trained.shape)
    serves = ~outside if who == "members" else outside
    lists = worlds.best(popular, worlds.seen(WORLD) & serves[:, None])
    about_users = answer(audited(worlds.asked(tmp_path, WORLD, lists)), "users")
    assert (about_users.state, "with the same rule" in about_users.sentence) == ("cannot be decided", True)


def test_lists_that_leave_out_nearly_all_training_items_follow_a_rule_too(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lists = worlds.random_lists(WORLD, rng)
    trained = np.flatnonzero(WORLD.trained.any(axis=1))
    for user in trained[:5]:
        lists[user, 0] = np.flatnonzero(WORLD.trained[user])[0]
    audit = audited(worlds.asked(tmp_path, WORLD, lists))
    about_pairs = answer(audit, "interactions")
    assert any(note.startswith("The serving rule: ") for note in about_pairs.notes)
    assert not [attack.name for attack in about_pairs.attacks if "rank in the list" in attack.name]
    assert answer(audit, "users").state == "not shown"


def test_members_who_differ_anyhow_prove_nothing(tmp_path: Path) -> None:
    """Random lists; but those who were trained on have popular items, and the others rare ones."""
    rng = np.random.default_rng(3)
    trained, public = np.zeros((300, 200), bool), np.zeros((300, 200), bool)
    for user in range(300):
        half = rng.permutation(100)[:20] + (0 if user < 200 else 100)
        (trained if user < 200 else public)[user, half] = True
    made = worlds.World(trained, public, np.zeros(300, np.int64))
    audit = audited(worlds.asked(tmp_path, made, worlds.random_lists(made, rng)))
    about_users = answer(audit, "users")
    assert about_users.state == "not shown"
    assert any("differs from what was not in " in note for note in about_users.notes)
