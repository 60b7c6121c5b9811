"""Which systems are compared follows from the suite's file: private ones with noisy popularity and their ceilings."""

import pytest

from tasks.config.params import load
from tasks.config.planned import is_private, planned_pairs
from tasks.config.tasks import TASKS
from tasks.results.facts import NOISY
from tasks.results.load import Results
from tests.parameters import ROOT

PARAMS = load(ROOT / "params.yaml")
TESTED = sorted(name for name, suite in PARAMS.suites.items() if TASKS[suite.task].evaluator)


@pytest.mark.parametrize("name", TESTED)
def test_private_systems_are_those_whose_committed_ledgers_claim_a_budget(name: str) -> None:
    results = Results(ROOT / "data/results" / name, ROOT / "data/reference/paper_tables.csv")
    claimed = {
        line.experiment for line in results.lines if line.setting == "base" and line.entry.claimed_epsilon is not None
    }
    ran = {system.experiment for system in results.suite.systems}
    experiments = PARAMS.suites[name].experiments
    assert {key for key, experiment in experiments.items() if is_private(experiment)} & ran == claimed


@pytest.mark.parametrize("name", TESTED)
def test_pairs_are_few_distinct_and_on_the_same_data(name: str) -> None:
    suite = PARAMS.suites[name]
    pairs = planned_pairs(suite)
    assert len(pairs) == len(set(pairs)) <= 2 * len(suite.experiments)
    for a, b in pairs:
        assert suite.experiments[a].data == suite.experiments[b].data
        assert suite.experiments[b].model in NOISY or not is_private(suite.experiments[b])
    assert {a for a, _ in pairs} <= {key for key, experiment in suite.experiments.items() if is_private(experiment)}


def test_a_pair_depends_on_its_two_systems_alone() -> None:
    suite = PARAMS.suites["gerai"]
    kept = {key: suite.experiments[key] for key in ("gerai-dp-popularity", "gerai-gerai", "gerai-gcn")}
    expected = [pair for pair in planned_pairs(suite) if set(pair) <= kept.keys()]
    ceilings = {"gerai-gerai": "gerai-gcn"}
    assert planned_pairs(suite.model_copy(update={"experiments": kept, "ceilings": ceilings})) == expected
    assert expected == [("gerai-gerai", "gerai-dp-popularity"), ("gerai-gerai", "gerai-gcn")]
