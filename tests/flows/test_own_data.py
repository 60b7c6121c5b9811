"""`dprec init`: own files become a data set, a protocol and a suite, and nothing is written where anything is wrong."""

import errno
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import polars as pl
import pytest
import yaml
from ruamel.yaml import YAML
from typer.testing import CliRunner

from flows import entries, own_data, release
from flows.execution import Busy
from flows.own_data import begin
from flows.results import release_command
from tasks.config import params
from tasks.config.references import check
from tasks.core.contracts import SPLITS
from tasks.core.errors import ConfigurationError, DataError
from tasks.core.raw import read_raw
from tasks.datasets.custom import ObtainOptions, ReadOptions, convert, obtain
from tasks.datasets.fetch import Places
from tasks.external.reading import Names
from tasks.papers.gerai import protocol as gerai
from tasks.papers.protocol import keep_latest
from tasks.results.standings import Board
from tasks.stages.data import scale_of, tables_of
from tests import parameters
from tests.command import git
from tests.flows.conftest import HOLDS_PROJECT, ROOT, holding

USUAL = Names()


@pytest.fixture(autouse=True)
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the real params.yaml and no suite, and a shop's files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text((ROOT / "params.yaml").read_text())
    (tmp_path / "suites").mkdir()
    rng = np.random.default_rng(0)
    pairs = pl.DataFrame({"customer_id": rng.integers(0, 40, 900), "product": rng.integers(100, 160, 900)}).unique()
    times = [f"2024-05-{1 + n % 28:02}T18:30:00" for n in range(len(pairs))]
    stars = rng.integers(1, 6, len(pairs)) / 2
    pairs.with_columns(stars=stars, when=pl.Series(times)).write_csv("ratings.csv")
    people = {
        "Customer": range(40),
        "age": 18 + np.arange(40) % 30,
        "plan": ["", "basic", "premium", "basic"] * 10,
        "name": [f"person {n}" for n in range(40)],
    }
    pl.DataFrame(people).write_csv("people.csv")
    return tmp_path


def state(folder: Path) -> dict[str, str]:
    """What every file says, but for the lock that a command leaves."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path): path.read_text() for path in files if not path.name.startswith(".lock")}


def test_entries_stand_in_their_section_and_none_is_lost() -> None:
    text = "datasets:\n  a: {x: 1}\n  # of a\n\n# Protocols.\nprocessed: {}\n"
    added = entries._inserted(text, "datasets", {"a": {"x": 1}, "b": {"x": 2}})
    assert added == text.replace("# of a\n", "# of a\n  b: {x: 2}\n")


def test_the_release_that_a_run_suggests_is_of_the_same_columns_and_budget(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pl.read_csv("ratings.csv").rename({"customer_id": "who", "product": "what"}).write_csv("my ratings.csv")
    begin("shop", Path("my ratings.csv"), None, Names({"user": "who", "item": "what"}))
    best = {"noisy_as_good": False, "experiment": "shop-gram-svd", "accounted": 0.5, "delta": 1e-3}
    others = best | {"noisy_as_good": True}, best | {"experiment": "shop-dpals"}
    board = Board("", "", "real", NotImplemented, pl.DataFrame())
    monkeypatch.setattr(Board, "answers", lambda _: [*others, best])
    words = shlex.split(release_command("shop", board) or "")
    released = CliRunner().invoke(release.app, words[2:])
    assert released.exit_code == 0, released.output
    ledger = json.loads((shop / "shop-release" / "ledger.json").read_text())
    assert (ledger["epsilon"], ledger["delta"]) == (0.5, 1e-3)


def test_own_files_become_a_suite_that_reads_them(shop: Path) -> None:
    before = (shop / "params.yaml").read_text()
    written, taken = begin("shop", Path("ratings.csv"), Path("people.csv"), USUAL)
    assert Path("suites/shop/dvc.yaml") in written
    loaded = params.load()
    check(loaded)
    after = (shop / "params.yaml").read_text().splitlines(keepends=True)
    assert [line for line in before.splitlines(keepends=True) if line not in after] == [], "all else is as it was"
    assert loaded.processed["shop"].protocol == "gerai"
    models = {experiment.model for experiment in loaded.suites["shop"].experiments.values()}
    private = {"dp-popularity", "gaussian-popularity", "gram-svd", "gram-ease", "dpals"}
    assert models == private | {"popularity", "ease"}

    dataset = loaded.datasets["shop"]
    options = ObtainOptions.model_validate(dataset.obtain)
    assert (options.synthetic, options.licence) == (False, own_data.LICENCE)
    (shop / "raw").mkdir()
    (shop / "tables").mkdir()
    obtain(shop / "raw", Places(None, shop, shop), options)
    read = ReadOptions.model_validate(dataset.read)
    assert (read.interactions.timestamp, read.time) == ("when", "iso")
    assert read.rating_scale.model_dump() == {"low": 0.5, "high": 2.5, "step": 0.5}
    convert(shop / "raw", shop / "tables", read)
    assert read_raw(shop / "tables").scan("users").collect().height == 40
    assert {feature.name: (feature.kind, feature.sensitive) for feature in read.users.features} == {
        "age": ("numeric", False),
        "plan": ("categorical", True),
    }
    assert "name: left out, it has 40 different values" in taken


def test_what_is_read_off_the_data_is_not_written_as_known() -> None:
    """Bounds and categories in the parameters count as known without the data; the ledger then names no leak."""
    begin("shop", Path("ratings.csv"), Path("people.csv"), USUAL)
    users = ReadOptions.model_validate(params.load().datasets["shop"].read).users
    assert {(each.low, each.high, each.categories) for each in users.features} == {(None, None, None)}


def test_files_without_a_header_are_read_by_position_by_the_first_run_too(shop: Path) -> None:
    begin("shop", Path("ratings.csv"), None, USUAL)
    named = params.load().datasets["shop"].read
    rows = (shop / "ratings.csv").read_text().partition("\n")[2]
    (shop / "bare.tsv").write_text(rows.replace(",", "\t"))
    by_position = Names({"user": "column_1", "item": "column_2", "rating": "column_3", "time": "column_4"})
    _, (taken, *_) = begin("bare", Path("bare.tsv"), None, by_position)
    assert "no header" in taken
    dataset = params.load().datasets["bare"]
    columns = {"user": "column_1", "item": "column_2", "rating": "column_3", "timestamp": "column_4"}
    assert dataset.read == named | {"interactions": columns}
    with tables_of("bare", dataset) as (_, raw):
        assert raw.scan("interactions").collect().height == rows.count("\n")


@pytest.mark.parametrize(("times", "kept"), [("none", 5.0), ("seconds", 3.0)])
def test_of_repeated_pairs_a_run_uses_what_is_said(times: str, kept: float) -> None:
    """The best rated is no row of the audit's table, which has the last of each; the scale has it all the same."""
    other = [("b", item, 1, 1.3e9) for item in "xyz"]
    rows = pl.DataFrame([("a", "x", 5, 1.3e9), ("a", "x", 3, 1.4e9), *other], orient="row")
    rows = rows.select(user="column_0", item="column_1", rating="column_2", time="column_3")
    (rows.drop("time") if times == "none" else rows).write_csv("repeats.csv")
    _, taken = begin("repeats", Path("repeats.csv"), None, USUAL)
    assert "1 repeated pairs, each used once: the latest, without times the best rated" in taken
    dataset = params.load().datasets["repeats"]
    assert (dataset.read["time"], dataset.read["rating_scale"]["high"]) == (times, 5.0)
    with tables_of("repeats", dataset) as (_, raw):
        used = keep_latest(raw.scan("interactions").collect())
    assert used.filter(user="a")["rating"].to_list() == [kept]


@pytest.mark.parametrize("ratings", [(0.3, 0.30000000000000004, 1.0, 2.5), (0.0, 1e-300, 1e10)])
def test_ratings_with_noise_of_floats_are_on_no_scale(ratings: tuple[float, ...]) -> None:
    assert scale_of(pl.Series(ratings)) is None


@pytest.mark.parametrize("fraction", [2, 3, 10])
def test_ratings_that_were_float32_have_the_scale_that_a_run_reads(fraction: int) -> None:
    ratings = (1 + np.arange(5 * fraction) / fraction).astype(np.float32)
    rows = pl.DataFrame({"user": 0, "item": np.arange(5 * fraction), "rating": ratings})
    rows.write_parquet("ratings.parquet")
    begin("shop", Path("ratings.parquet"), None, USUAL)
    dataset = params.load().datasets["shop"]
    assert dataset.read["rating_scale"]["step"] == pytest.approx(1 / fraction)
    with tables_of("shop", dataset) as (_, raw):
        levels = pl.Series(raw.schema.scale.levels, dtype=pl.Float32)
        assert raw.scan("interactions").collect()["rating"].equals(levels)


@pytest.mark.parametrize("n_items", [8, 20])
def test_shares_are_the_same_for_all_data_and_leave_something_to_validate(n_items: int) -> None:
    pairs = [(user, item) for user in range(60) for item in range(n_items)]
    pl.DataFrame(pairs, ["user", "item"], orient="row").write_csv("few.csv")
    begin("few", Path("few.csv"), None, USUAL)
    processed = params.load().processed["few"]
    assert processed.options["valid_share"] == 0.1
    with tables_of("few", params.load().datasets["few"]) as (_, raw):
        parts = gerai.prepare(raw, gerai.Options(**processed.options)).tables["interactions"]["split"]
    assert set(parts) == set(SPLITS)


def test_without_users_membership_is_attacked() -> None:
    begin("shop", Path("ratings.csv"), None, USUAL)
    loaded = params.load()
    check(loaded)
    assert loaded.suites["shop"].attack.kind == "membership"  # type: ignore[union-attr]


@pytest.mark.parametrize("time", ["seconds", "milliseconds", "none"])
def test_a_parquet_file_without_ratings(time: str) -> None:
    rows = pl.read_csv("ratings.csv").drop("when", "stars")
    if time != "none":
        stamps = (1_717_180_200 + np.arange(len(rows))) * (1000 if time == "milliseconds" else 1)
        stamps[7] = 0
        rows = rows.with_columns(ts=pl.Series(stamps))
    rows.write_parquet("ratings.parquet")
    begin("shop", Path("ratings.parquet"), None, USUAL)
    read = ReadOptions.model_validate(params.load().datasets["shop"].read)
    assert (read.separator, read.rating_scale, read.time) == (None, None, time)


@pytest.mark.parametrize(
    ("name", "ratings", "people", "message"),
    [
        ("x; touch y", "ratings.csv", None, "no name; it takes small letters"),
        ("1e5", "ratings.csv", None, "'1e5': DVC takes it for a number"),
        ("08", "ratings.csv", None, "'08': DVC takes it for a number"),
        ("0o17", "ratings.csv", None, "'0o17': DVC takes it for a number"),
        ("demo", "ratings.csv", None, "datasets: has 'demo' already"),
        ("shop", "none.csv", None, r"none\.csv: no such file"),
        ("shop", "people.csv", None, r"people\.csv:1: no column is recognised as the item"),
        ("shop", "ratings.csv", "plans.csv", r"plans\.csv:1: no column is recognised as the user"),
        ("shop", "ratings.csv", "broken.csv", r"broken\.csv:22: age is 'nan', not a finite number"),
    ],
)
def test_nothing_is_written_where_anything_is_wrong(
    shop: Path, name: str, ratings: str, people: str | None, message: str
) -> None:
    pl.read_csv("people.csv").drop("Customer").write_csv("plans.csv")
    Path("broken.csv").write_text("user,age\n" + "".join(f"{n},{20 + n}\n" for n in range(20)) + "20,nan\n")
    before = state(shop)
    with pytest.raises((ConfigurationError, DataError), match=message):
        begin(name, Path(ratings), Path(people) if people else None, USUAL)
    assert state(shop) == before


def test_parameters_that_are_refused_are_taken_back(
    shop: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    templates = shutil.copytree(own_data.TEMPLATES, tmp_path_factory.mktemp("own") / "templates")
    text = (templates / "params.yaml").read_text()
    (templates / "params.yaml").write_text(text.replace("model: ease", "model: easy"))
    monkeypatch.setattr(own_data, "TEMPLATES", templates)
    before = state(shop)
    with pytest.raises(ConfigurationError, match=re.escape("suites/shop/params.yaml: experiments.shop-ease")):
        begin("shop", Path("ratings.csv"), Path("people.csv"), USUAL)
    assert state(shop) == before
    assert not (shop / "suites" / "shop").exists()


@pytest.mark.slow
def test_a_kill_at_any_write_leaves_every_other_suite_alone_and_is_made_good_by_the_same_command(shop: Path) -> None:
    project = shop / "step-0"
    project.mkdir()
    other = {section: {"demo": parameters.read()[section]["demo"]} for section in ("datasets", "processed")}
    (project / "params.yaml").write_text(yaml.safe_dump(other | {"perturbed": {}, "words": {}}, sort_keys=False))
    (project / "suites").mkdir()
    (shop / "ratings.csv").rename(project / "ratings.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project)
        begin("other", Path("ratings.csv"), None, USUAL)
    command = [sys.executable, "-m", "tests.flows.killed_init", str(project)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 15


def test_another_command_that_holds_the_project_is_named() -> None:
    held = holding(HOLDS_PROJECT, os.environ | {"PYTHONPATH": str(ROOT)})
    with held as other, pytest.raises(Busy, match=rf"^another run .* \(suite gerai, process {other.pid}, "):
        begin("shop", Path("ratings.csv"), None, USUAL)
    assert not (Path("suites") / "shop").exists()


def test_what_cannot_be_put_in_its_place_is_taken_back(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    before = state(shop)
    monkeypatch.setattr(entries, "rename", full)
    with pytest.raises(OSError, match="No space left"):
        begin("shop", Path("ratings.csv"), None, USUAL)
    assert state(shop) == before


def test_what_somebody_else_writes_meanwhile_stays(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def edit(*arguments: Any) -> None:
        check(*arguments)
        with Path("params.yaml").open("a") as file:
            file.write("# mine\n")

    before = state(shop)
    monkeypatch.setattr(entries, "check", edit)
    with pytest.raises(ConfigurationError, match="was changed meanwhile"):
        begin("shop", Path("ratings.csv"), None, USUAL)
    assert state(shop) == before | {str(shop / "params.yaml"): before[str(shop / "params.yaml")] + "# mine\n"}


def test_files_that_others_may_read_stay_so() -> None:
    written, _ = begin("other", Path("ratings.csv"), None, USUAL)
    shared = [path for path in written if path.parts[0] != "suites"]
    assert len(shared) == 3
    for path in shared:
        path.chmod(0o644)
    before = os.umask(0o077)  # as `dprec` sets it
    try:
        begin("shop", Path("ratings.csv"), None, USUAL)
    finally:
        os.umask(before)
    assert {path: oct(path.stat().st_mode & 0o777) for path in shared} == dict.fromkeys(shared, "0o644")


@pytest.mark.parametrize("role", ["time", "rating", "item", "user"])
def test_a_named_column_that_is_not_there_is_not_replaced_by_another(role: Any) -> None:
    with pytest.raises(ConfigurationError, match=rf"^ratings\.csv: no column 'nope'; correct --{role}-column$"):
        begin("shop", Path("ratings.csv"), None, Names({role: "nope"}))


def test_a_path_that_params_cannot_hold_is_refused(shop: Path) -> None:
    Path("rat\udce9.csv").write_bytes((shop / "ratings.csv").read_bytes())
    with pytest.raises(ConfigurationError, match=r"^rat\\udce9\.csv: the path is not UTF-8"):
        begin("shop", Path("rat\udce9.csv"), None, USUAL)


def test_what_a_terminal_obeys_is_shown_and_not_sent() -> None:
    table = pl.read_csv("people.csv").rename({"plan": "pl\x1b]0;owned\x07an", "name": "na\x1b[2Jme"})
    table.write_csv("peo\nple.csv")
    Path("ratings.csv").rename("rat\x1bings.csv")
    _, taken = begin("shop", Path("rat\x1bings.csv"), Path("peo\nple.csv"), USUAL)
    assert all(line.isprintable() for line in taken)
    assert "pl\\x1b]0;owned\\x07an (categorical, as pl_0_owned_an)" in taken[-1]
    read = ReadOptions.model_validate(params.load().datasets["shop"].read)
    assert [feature.column for feature in read.users.features] == ["age", "pl\x1b]0;owned\x07an"]


def test_columns_that_have_no_name_of_their_own_are_numbered() -> None:
    people = pl.read_csv("people.csv")
    people.rename({"age": "年齢", "plan": "計画", "name": "User"}).with_columns(
        pl.lit("ab").str.slice(pl.int_range(pl.len()) % 2, 1).alias("User")
    ).write_csv("people.csv")
    _, taken = begin("shop", Path("ratings.csv"), Path("people.csv"), Names({"user": "Customer"}))
    check(params.load())
    said = "年齢 (numeric, as feature), 計画 (categorical, as feature_2), User (categorical, as user_2)"
    assert taken[-1] == f"users: people.csv (40 rows; {said})"


@pytest.mark.parametrize("name", ["no", "2024", "null", "2020-01-01", "true", "0x1f", "017", "shop-1e5"])
def test_a_name_that_yaml_could_take_for_something_else_is_a_name(name: str) -> None:
    begin(name, Path("ratings.csv"), None, USUAL)
    loaded = params.load()
    check(loaded)
    assert name in loaded.datasets
    assert loaded.suites[name].data == name
    for path in (Path("params.yaml"), Path("data/dvc.yaml"), Path("suites") / name / "params.yaml"):
        assert YAML(typ="safe").load(path) == yaml.safe_load(path.read_text()), "DVC reads the same"


def test_where_git_does_not_answer_files_of_the_project_are_to_lie_in_own(monkeypatch: pytest.MonkeyPatch) -> None:
    git(Path(), "init", "-q")
    monkeypatch.setattr(own_data, "git", lambda *_: None)
    with pytest.raises(ConfigurationError, match=r"ratings\.csv: git may take it"):
        begin("shop", Path("ratings.csv"), None, USUAL)
    Path("own").mkdir()
    begin("shop", Path("ratings.csv").rename("own/ratings.csv"), None, USUAL)


def test_a_file_that_git_would_take_is_refused_until_git_ignores_it() -> None:
    git(Path(), "init", "-q")
    before = {path.name for path in Path().iterdir()}
    for ratings, people in (("ratings.csv", "people.csv"), (Path("ratings.csv").resolve(), "people.csv")):
        with pytest.raises(
            ConfigurationError, match=r"ratings\.csv: git would take it, .*; move it to own/, which git"
        ):
            begin("shop", Path(ratings), Path(people), USUAL)
    outside = Path("ratings.csv").rename(Path("..") / "ratings.csv")
    with pytest.raises(ConfigurationError, match=r"^people\.csv: git would take it"):
        begin("shop", outside.resolve(), Path("people.csv"), USUAL)
    outside.rename("ratings.csv")
    assert {path.name for path in Path().iterdir()} == before | {"data"}
    shutil.copyfile(ROOT / ".gitignore", ".gitignore")
    Path("own").mkdir()
    for name in ("ratings.csv", "people.csv"):
        Path(name).rename(Path("own") / name)
    begin("shop", Path("own/ratings.csv"), Path("own/people.csv"), USUAL)
    assert "own/ratings.csv" in Path("dvc.yaml").read_text()
