"""`dprec release` from files to lists: what it writes, what it reads, and what it refuses."""

import csv
import json
import os
import shutil
import signal
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import polars as pl
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import dprec
from dprec import release
from tasks.core.errors import ConfigurationError, DataError
from tasks.external.coding import coded
from tasks.external.reading import Names
from tasks.privacy import noise
from tasks.release import building, files
from tasks.release.models import Model
from tasks.release.sums import rows_of
from tests.command import dprec as command

FILES = {files.RELEASE, files.MODEL, files.LEDGER, files.CARD, "opendp.json", "cyclonedx.json"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ratings, a catalogue with an item that no one has, and a release with everything."""
    folder = tmp_path_factory.mktemp("release")
    rng = np.random.default_rng(0)
    pairs = [
        (f"u{u}", f"i{i}") for u in range(400) for i in range(130) if rng.random() < (0.6 if i % 2 == u % 2 else 0.1)
    ]
    text = "customer,product\n" + "\n".join(map(",".join, pairs)) + "\n"
    (folder / "ratings.csv").write_text(text)
    (folder / "other.csv").write_text("item\nj1\n")
    (folder / "twice.csv").write_text("reached_by,product\nu1,i1\nu1,i2\nu2,i1\n")
    (folder / "items.csv").write_text("item\n" + "\n".join(f"i{i}" for i in range(131)) + "\n")
    done = call(
        folder, "ratings.csv", "--epsilon", "8", "--catalogue", "items.csv", "--evaluate", "--audit", "--out", "out"
    )
    assert done.returncode == 0, done.stderr
    (folder / "said.txt").write_text(done.stdout)
    return folder


def call(folder: Path, *arguments: str) -> CompletedProcess[str]:
    return command(folder, "release", *arguments)


def test_the_folder_has_what_may_leave_the_building_and_nothing_else(made: Path) -> None:
    assert {path.name for path in (made / "out").iterdir()} == FILES
    for path in (made / "out").iterdir():
        content = path.read_bytes()
        assert b"u399" not in content, path
    ledger = json.loads((made / "out" / files.LEDGER).read_text())
    assert (ledger["noise"], ledger["conditions"], ledger["seed"]) == ("secure", [], None)
    assert ledger["accounted_epsilon"] == pytest.approx(8, rel=1e-6)
    assert [block["statistic"] for block in ledger["blocks"]] == ["users", "counts", "pairs", "utility"]
    assert "model" not in ledger  # `fit` replaces it
    assert ledger["utility"]["ndcg"]["svd"] > ledger["utility"]["ndcg"]["popularity"]
    assert set(ledger["audit"]["canaries"]) == {"counts", "orthogonal", "heavy"}
    _, items, _ = files.load_release(made / "out")
    assert items == sorted(items)  # not in the order of the catalogue's file


def test_users_of_their_own_get_lists_of_their_own_ids_without_what_they_have(made: Path) -> None:
    (made / "own.csv").write_text("customer,product\nnew,i1\nnew,i3\nnew,i5\nrare,i130\nrare,gone\n")
    done = call(made, "recommend", "out", "--for", "own.csv", "--k", "20", "--out", "lists.csv")
    assert done.returncode == 0, done.stderr
    assert "1 row" in done.stderr
    rows = list(csv.DictReader((made / "lists.csv").open()))
    assert [(row["user"], int(row["rank"])) for row in rows] == [(u, r + 1) for u in ("new", "rare") for r in range(20)]
    new = [row["item"] for row in rows if row["user"] == "new"]
    assert len({*new, "i1", "i3", "i5"}) == 23
    assert sum(int(item[1:]) % 2 for item in new) > 15
    assert dprec.release.load(made / "out").recommend(["i1", "i3", "i5"], 20) == new
    assert "i130" not in {row["item"] for row in rows if row["user"] == "rare"}


@pytest.mark.parametrize("model", ["svd", "ease", "knn", "als"])
def test_models_are_made_of_the_release_alone(model: str, made: Path, tmp_path: Path) -> None:
    """Where there is nothing else to read."""
    shutil.copy(made / "out" / files.RELEASE, tmp_path)
    away = made.rename(made.with_name("away"))
    try:
        done = call(tmp_path, "fit", ".", "--model", model)
    finally:
        away.rename(made)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {files.RELEASE, files.MODEL}
    liked = release.load(tmp_path).recommend(["i1", "i3", "i5", "i7"], 10)
    assert sum(int(item[1:]) % 2 for item in liked) >= 8


def test_a_seed_gives_the_same_bytes_and_says_so_everywhere(made: Path) -> None:
    for out in ("first", "second"):
        done = call(made, "ratings.csv", "--epsilon", "1", "--users", "400", "--research-noise", "3", "--out", out)
        assert done.returncode == 0, done.stderr
    assert "seed 3" in done.stdout
    assert (made / "first" / files.RELEASE).read_bytes() == (made / "second" / files.RELEASE).read_bytes()
    ledger = json.loads((made / "first" / files.LEDGER).read_text())
    assert (ledger["noise"], ledger["conditions"]) == ("research", ["catalogue-seen", "users-public"])
    marks = {"noise": "research", "epsilon": "1.0", "delta": "1e-06", "conditions": "catalogue-seen, users-public"}
    marks["gaps"] = ""
    assert files.load_release(made / "first")[2] == marks
    fitted = call(made, "fit", "first", "--model", "ease")
    listed = call(made, "recommend", "first", "--for", "ratings.csv", "--out", "lists-first.csv")
    assert all("research noise" in done.stderr for done in (fitted, listed))
    with pytest.warns(UserWarning, match="research noise"):
        assert release.load(made / "first").marks.items() >= marks.items()


def test_an_audit_that_refutes_writes_nothing(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "add_gaussian", lambda _rng, _name, value, *_scale, **_sensitivity: value)
    done = call(made, "ratings.csv", "--epsilon", "1", "--audit", "--out", "refuted")
    assert done.returncode == 1
    assert not (made / "refuted").exists()


def test_a_release_that_is_stopped_leaves_nothing(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "save_model", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    done = call(made, "ratings.csv", "--epsilon", "1", "--out", "stopped/release")
    assert done.returncode == 130
    assert not list((made / "stopped").iterdir())


def test_a_release_replaces_none_that_another_process_wrote_meanwhile(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(*arguments: Any) -> building.Built:
        (made / "raced").mkdir()
        (made / "raced" / files.LEDGER).write_text("of another")
        return real(*arguments)

    real = building.build
    monkeypatch.setattr(building, "build", build)
    done = call(made, "ratings.csv", "--epsilon", "1", "--out", "raced")
    assert (done.returncode, done.stdout) == (1, "")
    assert "choose a new folder" in done.stderr.splitlines()[-1]
    assert [path.read_text() for path in made.rglob("*raced*/**/*") if path.is_file()] == ["of another"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("ratings.csv", "--epsilon", "0", "--out", "x"), "--epsilon"),
        (("ratings.csv", "--epsilon", "1e300", "--out", "x"), "--epsilon"),
        (("ratings.csv", "--epsilon", "1", "--catalogue", "ratings.csv", "--out", "x"), "users"),
        (("ratings.csv", "--epsilon", "1", "--catalogue", "twice.csv", "--out", "x"), "twice.csv:4: item i1"),
        (("ratings.csv", "--epsilon", "1", "--delta", "1", "--out", "x"), "--delta"),
        (("ratings.csv", "--epsilon", "1", "--out", "out"), "out"),
        (("absent.csv", "--epsilon", "1", "--out", "x"), "absent.csv"),
        (("ratings.csv", "--epsilon", "1", "--catalogue", "other.csv", "--out", "x"), "catalogue"),
        (("ratings.csv", "--epsilon", "1", "--item-column", "thing", "--out", "x"), "--item-column"),
        (("ratings.csv", "--epsilon", "1", "--item-column", "customer", "--out", "x"), "taken for user and item"),
        (("fit", "absent", "--model", "ease"), "absent"),
        (("fit", "out", "--model", "svd", "--ridge", "3"), "--ridge"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(arguments: tuple[str, ...], named: str, made: Path) -> None:
    done = call(made, *arguments)
    assert done.returncode == 1
    assert named in done.stderr.splitlines()[-1]
    assert not (made / "x").exists()


def test_a_model_that_is_not_finite_replaces_none(made: Path, tmp_path: Path) -> None:
    for arguments in (("ease", "--ridge", "inf"), ("bpr",)):
        assert call(made, "fit", "out", "--model", *arguments).returncode == 2
    model = Model("ease", np.ones(1), np.zeros(1, np.int64), {"matrix": np.full((1, 1), np.nan)})
    with pytest.raises(DataError, match="matrix"):
        files.save_model(tmp_path, model, ["a"], {})
    assert not list(tmp_path.iterdir())


DAMAGE: list[tuple[str, Any]] = [
    ("marks", "[]"), ("marks", "3"), ("items", b"x"), ("items", b"[]"), ("items", b'["i1", "i1"]'),
    ("head", np.array([10_000])), ("head", np.array([0, 0])), ("counts", np.array([1.0])), ("counts", None),
]  # fmt: skip
OF_A_RELEASE = [*DAMAGE, ("pairs", np.array([np.nan])), ("pairs", np.zeros(7))]
OF_A_MODEL = [*DAMAGE, ("blend", None), ("vectors", np.zeros((3, 2)))]


@pytest.mark.parametrize(
    ("file", "name", "value"),
    [(file, *case) for file, cases in ((files.RELEASE, OF_A_RELEASE), (files.MODEL, OF_A_MODEL)) for case in cases],
)
def test_damaged_files_are_refused_in_one_line(file: str, name: str, value: Any, made: Path, tmp_path: Path) -> None:
    with safe_open(made / "out" / file, "numpy") as old:
        arrays, marks = {key: old.get_tensor(key) for key in old.keys()}, old.metadata()["dprec"]  # noqa: SIM118
    arrays |= {} if name == "marks" else {name: np.frombuffer(value, np.uint8) if isinstance(value, bytes) else value}
    left = {key: np.ascontiguousarray(array) for key, array in arrays.items() if array is not None}
    save_file(left, tmp_path / file, metadata={"dprec": value if name == "marks" else marks})
    with pytest.raises(DataError, match=r"not (readable|a release|a model)"):
        files.load_release(tmp_path) if file == files.RELEASE else files.load(tmp_path)


def test_lists_replace_no_table_and_are_no_longer_than_the_catalogue(made: Path, tmp_path: Path) -> None:
    table = shutil.copy(made / "ratings.csv", tmp_path / "own.csv")
    done = call(made, "recommend", "out", "--for", str(table), "--out", str(table))
    assert done.returncode == 1
    assert table.read_bytes() == (made / "ratings.csv").read_bytes()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link.csv").symlink_to(table)
    shutil.copy(made / "items.csv", tmp_path)
    inside = (tmp_path / "items.csv", made / "out" / files.RELEASE, made / "out" / "new" / "l.csv")
    for out in (tmp_path / "pipe", tmp_path / "link.csv", tmp_path, *inside):
        assert "name a new file" in call(made, "recommend", "out", "--for", str(table), "--out", str(out)).stderr
    served = release.load(made / "out")
    assert sorted([*served.recommend(["i1"], 10**12), "i1"]) == served.items
    with pytest.raises(ConfigurationError, match="-1"):
        served.recommend(["i1"], -1)


def test_items_that_no_catalogue_has_are_named(made: Path) -> None:
    with pytest.raises(DataError, match="nothing"):
        release.load(made / "out").recommend(["nothing"])


def test_a_table_in_parts_is_one_table(made: Path, tmp_path: Path) -> None:
    """Users lie in several files and folders, and rows are repeated: the same release as of one CSV file."""
    rows = pl.read_csv(made / "ratings.csv")
    for number, start in enumerate(range(0, len(rows), 5_000)):
        folder = tmp_path / "parts" / f"day={number}"
        folder.mkdir(parents=True)
        rows[max(start - 10, 0) : start + 5_000].write_parquet(folder / f"{number}.parquet")
    (tmp_path / "items").mkdir()
    for part in (0, 1):
        pl.DataFrame({"product": [f"i{i}" for i in range(131) if i % 2 == part]}).write_parquet(
            tmp_path / "items" / f"{part}.parquet"
        )
    for name in ("ratings.csv", "items.csv"):
        shutil.copy(made / name, tmp_path)
    for name, items in (("ratings.csv", "items.csv"), ("parts", "items")):
        options = "--epsilon", "8", "--catalogue", items, "--evaluate", "--research-noise", "3"
        done = call(tmp_path, name, *options, "--out", f"of-{name}")
        assert done.returncode == 0, done.stderr
    for file in FILES:
        assert (tmp_path / "of-parts" / file).read_bytes() == (tmp_path / "of-ratings.csv" / file).read_bytes(), file
    (tmp_path / "parts/more").symlink_to(tmp_path / "items")
    assert "parts/more: is a link to a folder" in call(tmp_path, "parts", "--epsilon", "8", "--out", "x").stderr
    (tmp_path / "parts/more").unlink()
    (tmp_path / "parts/day=0/0.parquet").rename(tmp_path / "parts/day=0/0.PARQUET")
    assert "rename it to 0.parquet" in call(tmp_path, "parts", "--epsilon", "8", "--out", "x").stderr
    shutil.rmtree(tmp_path / "parts")
    (tmp_path / "parts").mkdir()
    assert "holds no *.parquet" in call(tmp_path, "parts", "--epsilon", "8", "--out", "x").stderr


def test_a_part_that_is_a_link_to_nothing_is_refused(tmp_path: Path) -> None:
    pl.DataFrame({"user": ["a"], "item": ["x"]}).write_parquet(tmp_path / "1.parquet")
    assert len(coded(tmp_path, Names()).users) == 1
    (tmp_path / "2.parquet").symlink_to(tmp_path / "gone")
    with pytest.raises(DataError, match=r"2\.parquet: no such file"):
        coded(tmp_path, Names())


def test_ids_are_text_in_the_order_of_the_catalogue_and_others_items_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('user,item\n1,x\n"1",y\n1,x\n2,"z, w"\n3,gone\n', encoding="utf-8")
    data = coded(tmp_path / "a.csv", Names(), pl.Series(["z, w", "x", "y"]))
    assert (data.users.tolist(), data.items.tolist()) == ([0, 0, 0, 1], [1, 2, 1, 0])
    assert data.user_ids.to_list() == ["1", "2", "3"]
    assert data.strangers == 1
    assert coded(tmp_path / "a.csv", Names()).item_ids.to_list() == ["gone", "x", "y", "z, w"]
    rows = rows_of(data.users, data.items, 3, 3).toarray()
    assert rows.tolist() == [[0, 1, 1], [1, 0, 0], [0, 0, 0]]
