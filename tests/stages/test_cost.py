"""What work takes is added up over interruptions, and decides nothing."""

from contextlib import chdir

import pytest

from tasks.config.params import load
from tasks.stages import collect, provenance, runs
from tasks.stages.common import read_json
from tests.stages import example


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
