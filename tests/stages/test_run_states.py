"""States that an unfinished unit keeps: one that is damaged is discarded, and work goes on from the one before."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tasks.pipeline import runs
from tasks.pipeline.common import CHECKPOINTS, RUNS, digest
from tasks.pipeline.monitor import Monitor
from tasks.pipeline.runs import Progress
from tasks.pipeline.screen import Screen
from tasks.stages import train
from tests.models.contract import all_scores, checkerboard
from tests.models.contract import make as make_model
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


@pytest.mark.parametrize(("name", "epochs", "cut"), [("bpr", 4, True), ("bpr", 9, False), ("dpae", 9, False)])
def test_a_run_is_cut_off_where_its_cap_ends_it_before_validation(
    name: str, epochs: int, cut: bool, tmp_path: Path
) -> None:
    """Noise of dpae is made for a planned number of epochs, which is no cap, and patience saves none of them."""
    data, _ = checkerboard(n_users=24, n_items=16)
    monitor = Monitor(tmp_path, Screen("test", 1), "run", lambda model: -model.epochs_done, 5, "ndcg")
    model = make_model(name, epochs=epochs).fit(data, rng=np.random.default_rng(5), progress=monitor)
    assert monitor.cut_off(model) is cut
    assert len(monitor.history) == (epochs if name == "dpae" else min(epochs, 6))
    monitor.finish(model)
    assert monitor._best_epoch == 1


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


def cut(state: Path) -> None:
    (state / "state.safetensors").write_bytes((state / "state.safetensors").read_bytes()[:-10])


def flipped(state: Path) -> None:
    content = bytearray((state / "state.safetensors").read_bytes())
    content[-5] ^= 64
    (state / "state.safetensors").write_bytes(content)


def resealed(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
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


def make() -> None:
    """A workspace whose training was interrupted after it had ended undisturbed."""
    build()
    train.main(NAME)
    shutil.rmtree(CHECKPOINTS)
    interrupted(lambda: train.main(NAME), Progress, "write", 3)


@pytest.mark.usefixtures("copied")
@pytest.mark.parametrize(
    ("damage", "both"),
    [
        (cut, False),
        (cut, True),
        (flipped, False),
        (lambda state: (state / "best.safetensors").unlink(), False),
        (lambda state: (state / "state.json").write_text(""), False),
        (lambda state: (state / runs.MANIFEST).unlink(), True),
        (resealed(lambda rest: rest.pop("history")), False),
        (resealed(lambda rest: rest.update(model={"epochs_done": 1})), True),
        (other_weights, False),
    ],
)
def test_a_damaged_state_is_discarded_and_training_ends_as_if_undisturbed(
    damage: Callable[[Path], object], both: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    undisturbed = digest(TRAIN)
    shutil.rmtree(TRAIN)
    [progress] = CHECKPOINTS.rglob("progress")
    assert {path.name for path in progress.iterdir()} == {runs.LAST, runs.BEFORE}
    for name in (runs.LAST, runs.BEFORE) if both else (runs.LAST,):
        damage(progress / name)
    capsys.readouterr()
    train.main(NAME)
    assert capsys.readouterr().err.count(": discarded (") == 1 + both
    assert digest(TRAIN) == undisturbed


@pytest.mark.parametrize(
    "misfit",
    [
        {"history": []}, {"history": None}, {"history": [{"loss": 0.5, "valid": 0.1}]}, {"seconds": []},
        {"best_epoch": 0}, {"best_epoch": None}, {"best_epoch": 1.5}, {"model": None}, {"epochs_done": 9},
        {"epochs_done": None}, {"rng": None}, {"noise": {}},
    ],
)  # fmt: skip
def test_states_that_do_not_fit_leave_nothing_behind(
    misfit: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Training from nothing begins with its own weights, its own history, and the noise of its first step."""
    data, _ = checkerboard(n_users=24, n_items=16)

    def train() -> tuple[torch.Tensor, Monitor]:
        monitor = Monitor(tmp_path, Screen("test", 1), "run", lambda model: model.epochs_done % 3, 5, "ndcg")
        model = make_model("dpae", epochs=4).fit(data, rng=np.random.default_rng(5), progress=monitor)
        return all_scores(model, data), monitor

    def change(rest: dict[str, Any]) -> None:
        (key,) = misfit
        (rest["model"] if key in ("epochs_done", "rng", "noise") else rest).update(misfit)

    undisturbed, first = train()
    for name in (runs.LAST, runs.BEFORE):
        resealed(change)(tmp_path / name)
    scores, again = train()
    assert capsys.readouterr().err.count(": discarded (") == 2
    assert torch.equal(scores, undisturbed)
    assert again.history == first.history
