"""Locks on another processor than that of the committed ones, which computed other bytes and the same results."""

import json
from hashlib import sha256
from pathlib import Path

import pytest

from tasks.pipeline.provenance import processor
from tests.command import git
from tests.flows.conftest import Project

pytestmark = pytest.mark.slow

LOCK = "suites/demo/dvc.lock"
OTHER = "0" * 32


@pytest.fixture
def committed(finished: Project) -> str:
    """A lock in git that another processor wrote: one file of train@a is another there."""
    computed = Path(LOCK).read_text()
    stage = computed.index("train@a:")
    first = computed.index("outs:", stage)
    start = computed.index("md5: ", computed.index("hash: md5", first)) + len("md5: ")
    text = computed[:start] + f"{OTHER}.dir" + computed[computed.index("\n", start) :]
    Path(LOCK).write_text(text)
    Path("data/results/demo").mkdir(parents=True)
    Path("data/results/demo/metrics.csv").write_text("0.5\n")
    write_provenance("another")
    git(finished.root, "add", "-f", "dvc.lock", "suites", "data/results")
    git(finished.root, "commit", "-q", "-m", "results")
    return text


def write_provenance(processor: str) -> None:
    """The record of the processor that the results are of."""
    machines = {"machines": [{"processor": processor}], "runs": []}
    Path("data/results/demo/provenance.json").write_text(json.dumps(machines))


def run(project: Project, address: str) -> list[str]:
    """The stages that a run of the demo ran."""
    done = project.run("demo", PREFECT_API_URL=address)
    assert done.returncode == 0, done.stdout + done.stderr
    return project.ran()


def test_where_the_results_are_those_committed_git_sees_no_change(
    finished: Project, committed: str, address: str
) -> None:
    run(finished, address)
    assert git(finished.root, "status", "--porcelain") == ""
    assert Path(LOCK).read_text() == committed
    assert finished.dprec("check", "demo").stdout.startswith("report@demo: 0 of 4 stages to run")

    stages = Path("suites/demo/dvc.yaml")
    before = stages.read_text()
    stages.write_text(before.replace("[a, b]", "[a, b, c]"))
    finished.write("code/c.py", "")
    assert run(finished, address) == ["train@c", "report@demo"]  # the lock has another stage than the committed one
    assert OTHER not in Path(LOCK).read_text()

    stages.write_text(before)
    Path(LOCK).write_text(committed)
    assert finished.dvc("remote", "add", "--local", "--default", "store", str(finished.root.parent / "store")) == 0
    run(finished, address)
    assert OTHER not in Path(LOCK).read_text()  # others fetch what it names
    assert finished.dvc("status", "-q") == 0


def test_a_damaged_note_of_what_was_computed_is_dropped(finished: Project, committed: str) -> None:
    noted = Path(".dvc/tmp/locks") / sha256(committed.encode()).hexdigest()
    noted.parent.mkdir()
    noted.write_bytes(b"\0\xff{[%")
    assert finished.dprec("check", "demo").stdout.startswith("report@demo: 2 of 4 stages to run")
    assert not noted.exists()


@pytest.mark.usefixtures("committed")
@pytest.mark.parametrize("what", ["results", "processor"])
def test_other_results_and_those_of_the_same_processor_have_their_own_lock(
    finished: Project, address: str, what: str
) -> None:
    if what == "results":
        Path("data/results/demo/metrics.csv").write_text("0.6\n")
    else:
        write_provenance(f"{processor()}, cuda:0")
        git(finished.root, "commit", "-q", "-a", "-m", "of this processor")
    run(finished, address)
    assert OTHER not in Path(LOCK).read_text()
