"""States that an unfinished unit keeps: one that is damaged is discarded, and work goes on from the one before."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.stages import runs, train
from tasks.stages.common import CHECKPOINTS, RUNS, digest
from tasks.stages.runs import Progress
from tests.stages.test_interrupted import interrupted
from tests.stages.test_train import build

NAME = "tiny-bpr"
TRAIN = RUNS / "tiny" / NAME / "train"


def state_of(folder: Path) -> str | None:
    """What there is to go on from, after which the next state is kept."""
    progress = Progress(folder)
    state = progress.restore(lambda state: (state / "value").read_text())
    with progress.write() as place:
        (place / "value").write_text("next")
    assert (folder / runs.LAST / "value").read_text() == "next"
    return state


@pytest.mark.parametrize("name", [".", runs.LAST, runs.BEFORE])
@pytest.mark.parametrize("link", [False, True])
def test_progress_that_is_no_folder_is_discarded(
    name: str, link: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "progress"
    state_of(folder)
    state_of(folder)
    shutil.rmtree(folder / name)
    (folder / name).symlink_to("nowhere") if link else (folder / name).write_text("")
    assert state_of(folder) == (None if name == "." else "next")
    assert capsys.readouterr().err.count(": discarded (") == (name != runs.BEFORE), "the one before is not asked for"


def test_a_state_that_a_model_says_is_not_its_own_is_discarded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def read(_: Path) -> None:
        raise AssertionError

    state_of(tmp_path / "progress")
    assert Progress(tmp_path / "progress").restore(read) is None
    assert "discarded (AssertionError)" in capsys.readouterr().err


def cut(state: Path) -> None:
    (state / "state.safetensors").write_bytes((state / "state.safetensors").read_bytes()[:-10])


def flipped(state: Path) -> None:
    content = bytearray((state / "state.safetensors").read_bytes())
    content[-5] ^= 64
    (state / "state.safetensors").write_bytes(content)


def without_manifest(state: Path) -> None:
    (state / runs.MANIFEST).unlink()


def no_best(state: Path) -> None:
    (state / "best.safetensors").unlink()


def empty(state: Path) -> None:
    (state / "state.json").write_text("")


def resealed(change: Callable[[dict[str, object]], object]) -> Callable[[Path], None]:
    """A damage that the manifest does not show."""

    def damage(state: Path) -> None:
        rest = json.loads((state / "state.json").read_text())
        change(rest)
        (state / "state.json").write_text(json.dumps(rest))
        runs.seal(state, json.loads((state / runs.MANIFEST).read_text())["unit"])

    return damage


def other_weights(state: Path) -> None:
    shutil.copy(state / "state.safetensors", state / "best.safetensors")
    runs.seal(state, json.loads((state / runs.MANIFEST).read_text())["unit"])


@pytest.mark.parametrize(
    "damage",
    [
        cut,
        flipped,
        no_best,
        empty,
        without_manifest,
        resealed(lambda rest: rest.pop("history")),
        resealed(lambda rest: rest.update(model={"epochs_done": 1})),
        other_weights,
    ],
)
@pytest.mark.parametrize("both", [False, True])
def test_a_damaged_state_is_discarded_and_training_ends_as_if_undisturbed(
    damage: Callable[[Path], None],
    both: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    build(tmp_path, monkeypatch)
    train.main(NAME)
    undisturbed = digest(TRAIN)
    shutil.rmtree(CHECKPOINTS)
    interrupted(lambda: train.main(NAME), Progress, "write", 3)
    [progress] = CHECKPOINTS.rglob("progress")
    assert {path.name for path in progress.iterdir()} == {runs.LAST, runs.BEFORE}
    for name in (runs.LAST, runs.BEFORE) if both else (runs.LAST,):
        damage(progress / name)
    capsys.readouterr()
    train.main(NAME)
    assert capsys.readouterr().err.count(": discarded (") == 1 + both
    assert digest(TRAIN) == undisturbed
