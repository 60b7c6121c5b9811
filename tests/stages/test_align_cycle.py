"""Stage `align`: the authors' aligner is a way like all others, and an interrupted run of it ends as another."""

import shutil
from pathlib import Path

import pytest

from tasks import contracts
from tasks.stages import align, check
from tasks.stages.common import CHECKPOINTS, QUALITY, RUNS, digest, read_json
from tasks.stages.network_files import ALIGNED
from tasks.stages.runs import Progress
from tests.stages import tiny_pair as tiny
from tests.stages.test_interrupted import interrupted

pytestmark = pytest.mark.usefixtures("fresh")
SAID = RUNS / "tiny" / "alignments" / "tiny"
RESULTS = (ALIGNED / "tiny" / "base", SAID / "metrics.parquet", SAID / "history.json")
CYCLE = {
    "cycle": {
        "epochs": 2, "iterations": 5, "discriminator_steps": 1, "batch_size": 8, "learning_rate": 0.1, "hidden": [8, 8],
        "initial": "identity", "coder": {"width": 9, "steps": 20, "batch_size": 8, "learning_rate": 0.01},
    }
}  # fmt: skip


def test_the_authors_aligner_is_a_way_and_goes_on_where_it_stopped() -> None:
    tiny.parameters(Path(), {"ways": ["adversarial", "cycle"], "anchors": "cycle", "config": tiny.CONFIG | CYCLE})
    align.main("tiny")
    unbroken, history = digest(*RESULTS), read_json(SAID / "history.json")["base"]["0"]
    assert len(history["cycle"]["epochs"]["criteria"]) == 2
    assert (
        contracts.read(SAID / "metrics.parquet", contracts.METRICS)
        .filter(metric="alignment/cycle/precision", k=1)
        .height
        == 2
    )
    check.main("aligned/tiny")
    assert read_json(QUALITY / "aligned" / "tiny.json")["success"]
    shutil.rmtree(ALIGNED)
    shutil.rmtree(CHECKPOINTS)
    interrupted(lambda: align.main("tiny"), Progress, "write", 5)  # three epochs of the other start, and one of this
    align.main("tiny")
    assert digest(*RESULTS) == unbroken
