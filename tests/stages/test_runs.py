"""Units of work: finished ones are believed only while they agree with their manifest, unfinished ones go on from what
they kept, several processes share them without harm, and what they cost is added up over interruptions."""

import json
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import chdir
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from filelock import FileLock

from tasks.config.params import load
from tasks.core.errors import ConfigurationError
from tasks.pipeline import provenance, runs
from tasks.pipeline.common import read_json
from tasks.pipeline.runs import Unit, Work
from tasks.stages import collect
from tests.stages import example


@dataclass
class Counted:
    """Work on three units, which counts what is done."""

    root: Path

    def __post_init__(self) -> None:
        self.calls: list[str] = []
        self.assembled = 0

    @property
    def work(self) -> Work[Unit]:
        units = [Unit(label, runs.folder_of(self.root / "kept", label, label)) for label in "abc"]
        return Work("counted", units, self._run, self._assemble, kept=self.root / "kept")

    def _run(self, unit: Unit, place: Path, _: object) -> None:
        self.calls.append(unit.label)
        (place / "below").mkdir()
        (place / "below" / "value").write_text(unit.label)
        (place / "empty").mkdir()

    def _assemble(self) -> None:
        self.assembled += 1


@pytest.fixture
def counted(tmp_path: Path) -> Counted:
    return Counted(tmp_path)


def done(counted: Counted, label: str) -> Path:
    [unit] = [unit for unit in counted.work.units if unit.label == label]
    return unit.done


def test_finished_units_are_not_worked_on_again_unless_forced(counted: Counted) -> None:
    runs.perform(counted.work)
    runs.perform(counted.work)
    assert (counted.calls, counted.assembled) == (["a", "b", "c"], 2)
    runs.perform(counted.work, force=True)
    assert counted.calls == ["a", "b", "c"] * 2


def test_one_unit_alone_assembles_nothing(counted: Counted) -> None:
    runs.perform(counted.work, unit="b")
    assert (counted.calls, counted.assembled) == (["b"], 0)
    runs.perform(counted.work)
    assert counted.calls == ["b", "a", "c"]
    with pytest.raises(ConfigurationError, match="counted: has no unit 'd'; its units: a, b, c"):
        runs.perform(counted.work, unit="d")


def test_what_no_unit_has_any_more_is_cleared_away(counted: Counted) -> None:
    (counted.root / "kept" / "a-former").mkdir(parents=True)
    runs.perform(counted.work)
    assert {path.name for path in (counted.root / "kept").iterdir()} == {
        unit.folder.name for unit in counted.work.units
    }


def test_what_another_process_works_on_is_not_cleared_away(counted: Counted) -> None:
    former = counted.root / "kept" / "former-0123456789abcdef"
    former.mkdir(parents=True)
    with FileLock(former / runs.LOCK):
        runs.perform(counted.work)
        assert former.is_dir()
    runs.perform(counted.work)
    assert not former.exists()


@pytest.mark.parametrize("below", ["", runs.LOCK])
def test_what_lies_where_a_unit_keeps_its_own_is_set_aside(
    below: str, counted: Counted, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file in place of the unit's folder; a folder in place of its lock."""
    place = counted.work.units[0].folder / below
    if below:
        (place / "full").mkdir(parents=True)
    else:
        place.parent.mkdir()
        place.write_text("no folder")
    runs.perform(counted.work)
    assert (counted.calls, counted.assembled) == (["a", "b", "c"], 1)
    said = re.fullmatch(rf"{place}: not what is kept there; set aside as (\S+)\n", capsys.readouterr().err)
    assert said
    assert place.with_name(said[1]).exists(), "also once the outputs are there"


def edited(folder: Path) -> None:
    (folder / "below/value").write_text("x")


def manifest(text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / runs.MANIFEST).write_text(text)


def of_another(folder: Path) -> None:
    content = json.loads((folder / runs.MANIFEST).read_text())
    (folder / runs.MANIFEST).write_text(json.dumps(content | {"unit": "b-0123"}))


def without_files(folder: Path) -> None:
    (folder / "below/value").unlink()
    content = json.loads((folder / runs.MANIFEST).read_text())
    (folder / runs.MANIFEST).write_text(json.dumps({"unit": content["unit"]}))


def link_to_the_same(folder: Path) -> None:
    """Its target may change later, and no manifest would show it."""
    value = folder / "below/value"
    value.rename(folder.parent / "elsewhere")
    value.symlink_to(folder.parent / "elsewhere")


def replaced(by: Callable[[Path], object]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        shutil.rmtree(folder)
        by(folder)

    return damage


DAMAGES: list[Callable[[Path], object]] = [
    edited,
    of_another,
    without_files,
    link_to_the_same,
    lambda folder: (folder / "more").write_text(""),
    lambda folder: (folder / "below/value").unlink(),
    lambda folder: (folder / runs.MANIFEST).unlink(),
    *map(manifest, ('{"unit": ', "[]", "[" * 100_000)),
    lambda folder: (folder / "below" / runs.MANIFEST).write_text("{}"),
    lambda folder: (folder / "empty").rmdir(),
    lambda folder: (folder / "more").symlink_to("nowhere"),
    replaced(lambda folder: folder.symlink_to("nowhere")),
    replaced(lambda folder: folder.write_text("")),
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_does_not_verify_is_set_aside_and_worked_on_again(
    damage: Callable[[Path], object], counted: Counted, capsys: pytest.CaptureFixture[str]
) -> None:
    runs.perform(counted.work)
    damage(done(counted, "b"))
    capsys.readouterr()
    runs.perform(counted.work)
    assert counted.calls == ["a", "b", "c", "b"]
    [line] = capsys.readouterr().err.splitlines()
    assert "; set aside as set-aside-" in line
    assert (done(counted, "b") / "below/value").read_text() == "b"
    assert len(list(done(counted, "b").parent.glob("set-aside-*"))) == 1, "nothing is lost"


def side_by_side(code: str, folder: Path, count: int) -> None:
    """Run code in several processes at once, each with the folder and its own number; all end well."""
    commands = [[sys.executable, "-c", code, str(folder), str(number)] for number in range(count)]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for command in commands]
    assert [(process.communicate()[1], process.returncode) for process in processes] == [("", 0)] * count


def test_units_of_one_stage_are_shared_by_processes_and_put_together_by_one_at_a_time(tmp_path: Path) -> None:
    """Four at once: every unit is worked on once, all end with all results, and clear away what no unit has."""
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom tasks.pipeline import runs\nroot = Path(sys.argv[1])\n"
        "def run(unit, place, screen):\n"
        "    time.sleep(0.1)\n    (place / 'value').write_text(unit.label)\n"
        "    with (root / 'calls').open('a') as file:\n        file.write(unit.label)\n"
        "units = [runs.Unit(one, runs.folder_of(root / 'kept', one, one)) for one in 'abcdef']\n"
        "def assemble():\n    assert [(one.done / 'value').read_text() for one in units] == list('abcdef')\n"
        "    (root / 'alone').mkdir()\n    time.sleep(0.1)\n    (root / 'alone').rmdir()\n"
        "runs.perform(runs.Work('shared', units, run, assemble, kept=root / 'kept'))\n"
    )
    for former in range(200):
        (tmp_path / "kept" / f"former-{former}" / "below").mkdir(parents=True)
    side_by_side(code, tmp_path, 4)
    assert sorted((tmp_path / "calls").read_text()) == list("abcdef")


def test_processes_that_are_forced_share_the_units_too(tmp_path: Path) -> None:
    """Three at once, none of which has finished a unit before all have begun: each unit is worked on once more."""
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom tasks.pipeline import runs\n"
        "root, me = Path(sys.argv[1]), sys.argv[2]\n"
        "def run(unit, place, screen):\n"
        "    (root / f'begun-{me}').touch()\n"
        "    while len(list(root.glob('begun-*'))) < 3:\n        time.sleep(0.01)\n"
        "    with (root / 'calls').open('a') as file:\n        file.write(unit.label)\n"
        "units = [runs.Unit(name, runs.folder_of(root / 'kept', name)) for name in 'abcdef']\n"
        "runs.perform(runs.Work('shared', units, run, lambda: None), force=True)\n"
    )
    for unit in (Unit(name, runs.folder_of(tmp_path / "kept", name)) for name in "abcdef"):
        unit.done.mkdir(parents=True)
        runs.seal(unit.done, unit.folder.name)
    side_by_side(code, tmp_path, 3)
    assert sorted((tmp_path / "calls").read_text()) == list("abcdef")


def test_what_is_forced_for_a_stage_keeps_what_was_finished_since_that_began(counted: Counted) -> None:
    """A unit was worked on twice if its stage finished it just before the process that was to help began."""
    runs.perform(counted.work)
    began = (counted.work.units[0].done / runs.MANIFEST).stat().st_mtime
    counted.calls.clear()
    runs.perform(counted.work, unit="a", force=began - 1.0)
    assert counted.calls == []
    runs.perform(counted.work, unit="a", force=began + 1.0)
    assert counted.calls == ["a"]


def test_results_stay_while_they_are_put_together_and_recorded(tmp_path: Path) -> None:
    """Another process that is forced to work on a unit meanwhile replaces its results afterwards."""
    unit, worked = Unit("a", runs.folder_of(tmp_path / "kept", "a")), threading.Event()

    def run(_: Unit, place: Path, __: object) -> None:
        (place / "value").write_text(threading.current_thread().name)

    def last(_: Unit, place: Path, screen: object) -> None:
        run(unit, place, screen)
        worked.set()

    other = threading.Thread(
        name="other", target=runs.perform, args=(Work("shared", [unit], last, lambda: None), "a", True)
    )

    def assemble() -> None:
        other.start()
        worked.wait()
        stays()

    def stays() -> None:
        time.sleep(0.2)
        assert (unit.done / "value").read_text() == threading.main_thread().name

    runs.perform(Work("shared", [unit], run, assemble), record=lambda _: stays())
    other.join()
    assert (unit.done / "value").read_text() == "other"


def test_results_that_are_edited_while_others_are_worked_on_are_not_put_together(
    counted: Counted, capsys: pytest.CaptureFixture[str]
) -> None:
    """A unit that was believed hours ago is looked at again."""
    work = counted.work

    def run(unit: Unit, place: Path, screen: object) -> None:
        counted._run(unit, place, screen)
        if counted.calls == ["a", "b", "c"]:
            edited(done(counted, "a"))

    def assemble() -> None:
        counted._assemble()
        assert [(done(counted, label) / "below/value").read_text() for label in "abc"] == list("abc")

    runs.perform(replace(work, run=run, assemble=assemble))
    assert (counted.calls, counted.assembled) == (["a", "b", "c", "a"], 1)
    assert capsys.readouterr().err.count("; set aside as set-aside-") == 1


def burn() -> None:
    until = provenance.of_this_process().cpu_seconds + 0.2
    while provenance.of_this_process().cpu_seconds < until:
        sum(range(10_000))


def test_an_interrupted_unit_costs_both_parts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    unit, attempts = runs.Unit("only", tmp_path / "units" / "only-1"), []

    def work(_unit, place, _screen):
        burn()
        attempts.append(place)
        if len(attempts) == 1:
            raise KeyboardInterrupt
        (place / "result").write_text("1")

    stage = runs.Work("test", [unit], work, lambda: None)
    with pytest.raises(KeyboardInterrupt):
        runs.perform(stage)
    first = provenance.of_unit(unit.folder)
    assert 0.2 <= first.cpu_seconds < 5
    timings = runs.perform(stage)
    assert timings["units"]["only"]["cpu_seconds"] >= 0.4
    assert timings["units"]["only"]["peak_memory_mb"] >= first.peak_memory_mb > 1
    assert not (unit.done / provenance.COST).exists()
    assert runs.perform(stage)["units"] == timings["units"]  # nothing was worked on
    assert runs.perform(stage, force=True)["units"]["only"]["cpu_seconds"] < timings["units"]["only"]["cpu_seconds"]
    assert read_json(unit.folder / provenance.COST)["cpu_seconds"] >= 0.2
    for damaged in ("{", '{"cpu_seconds": "x"}', '{"cpu_seconds": 1e999, "peak_memory_mb": 1}', "[]"):
        (unit.folder / provenance.COST).write_text(damaged)
        assert runs.perform(stage)["units"]["only"]["cpu_seconds"] == 0


def test_collected_runs_have_the_cost_of_all_their_units(tmp_path_factory):
    place = example.build(tmp_path_factory.mktemp("example"))
    with chdir(place):
        recorded = collect.read_runs("gerai", load())
    (bpr,) = (run for run in recorded if (run.stage, run.name) == ("train", "gerai-bpr"))
    assert (bpr.cpu_seconds, bpr.peak_memory_mb) == (1.5 * len(example.SEEDS), 456)
