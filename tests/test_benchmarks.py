"""Every benchmark runs, at its smallest size."""

import subprocess
import sys

import pytest

from tests.parameters import ROOT

SMALLEST = {
    "held_out": "--scale 0.002 --parts files tables split popularity",
    "models": "--scale 0.02",
    "ranking": "1",
    "release": "20000",
    "rule": "",
    "scale": "--rows 4000 --users 200 --items 500",
    "users": "",
}


def test_all_have_a_smallest_size() -> None:
    assert {path.stem for path in (ROOT / "tests/benchmarks").glob("bench_*.py")} == {
        f"bench_{name}" for name in SMALLEST
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALLEST)
def test_it_runs(name: str) -> None:
    command = [sys.executable, "-m", f"tests.benchmarks.bench_{name}", *SMALLEST[name].split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout
