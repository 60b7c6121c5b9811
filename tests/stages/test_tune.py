"""Tuning: every trial recorded, on validation data alone."""

import json
import re
from itertools import product
from math import prod
from pathlib import Path

import polars as pl
import pytest
import yaml

from tasks.config.fields import Tuning, model_config
from tasks.config.params import load
from tasks.core.errors import ConfigurationError
from tasks.evaluation import ranking
from tasks.models import model_class
from tasks.pipeline.common import RESULTS
from tasks.stages import tune
from tasks.stages.inputs import Inputs
from tests.parameters import ROOT
from tests.stages.test_train import build

__all__ = ["build"]


def tuned(**options) -> None:
    """Sets keys of the suite's tuning."""
    path = Path("suites/tiny/tuning.yaml")
    own = yaml.safe_load(path.read_text(encoding="utf-8"))
    own["tuning"] |= options | {"seed": 1000}
    path.write_text(yaml.safe_dump(own), encoding="utf-8")


@pytest.mark.usefixtures("fresh")
def test_every_combination_is_tried_and_recorded():
    tuned(grid={"bpr": {"learning_rate": [0.01, 0.02], "dimension": [2, 4]}, "dp-popularity": {"contribution": [1, 4]}})
    tune.main("tiny-bpr")
    tune.main("tiny-counts")
    table = pl.read_csv(RESULTS / "tiny" / "tuning.csv")
    assert table["experiment"].to_list() == ["tiny-bpr"] * 4 + ["tiny-counts"] * 2
    assert table["config"].n_unique() == 6
    assert table["metric"].unique().to_list() == ["ndcg"]
    assert table["valid"].is_between(0, 1).all()
    assert set(table["data"]) == {"synthetic"}
    tune.main("tiny-bpr")  # again: it goes on from the end of each trial, whose seconds are those of its training
    assert pl.read_csv(RESULTS / "tiny" / "tuning.csv").equals(table)
    tuned(grid={"bpr": {"learning_rate": [0.02, 0.04]}})
    tune.main("tiny-bpr")
    more = pl.read_csv(RESULTS / "tiny" / "tuning.csv")
    assert more.height == table.height + 1  # another grid forgets no trial; one of its two is known
    assert more.join(table, on=["experiment", "config"], how="semi").sort("config").equals(table.sort("config"))
    earlier = more.with_columns(pl.lit("earlier").alias("revision"), pl.col("valid") / 2)  # as if other code had had it
    earlier.write_csv(RESULTS / "tiny" / "tuning.csv", float_precision=tune.DIGITS)
    tune.main("tiny-bpr")
    both = pl.read_csv(RESULTS / "tiny" / "tuning.csv")
    assert both.filter(revision="earlier").drop("valid").equals(earlier.drop("valid"))
    late = both.filter(pl.col("revision") != "earlier")
    assert late.join(more, on=both.columns, how="semi").height == late.height == 2
    assert both.filter(experiment="tiny-bpr")[-2:].equals(late)


@pytest.mark.usefixtures("fresh")
def test_a_trial_that_diverges_is_recorded_and_never_the_best(capsys):
    tuned(grid={"bpr": {"learning_rate": [1.0e38, 0.02]}})
    tune.main("tiny-bpr")
    table = pl.read_csv(RESULTS / "tiny" / "tuning.csv")
    assert table["valid"].is_infinite().to_list() == [True, False]
    assert '"learning_rate": 0.02' in capsys.readouterr().out.rsplit("best on validation", 1)[1]


@pytest.mark.usefixtures("fresh")
def test_the_test_split_is_never_looked_at(monkeypatch):
    tuned(grid={"bpr": {"learning_rate": [0.01]}})
    asked = []
    pairs = Inputs.pairs
    monkeypatch.setattr(Inputs, "pairs", lambda self, *splits: asked.append(splits) or pairs(self, *splits))
    monkeypatch.setattr(ranking, "sampled_ranks", lambda *_: pytest.fail("the test was ranked"))
    tune.main("tiny-bpr")
    assert {split for splits in asked for split in splits} == {"train", "valid"}


@pytest.mark.parametrize(
    "name", ["gerai", "dpvae", "dpvae-ml-1m", "dipsgnn", "dipsgnn-ml-1m", "privsr", "privsr-epinions"]
)
def test_every_system_that_learns_has_the_best_of_its_six_trials_or_says_why_not(name: str) -> None:
    suite = load(ROOT / "params.yaml").suites[name]
    systems = {experiment.system for experiment in suite.experiments.values()} - {"popularity"}  # counts alone
    grid, untried = suite.tuning.grid, suite.tuning.untried
    assert {system: prod(map(len, keys.values())) for system, keys in grid.items()} == dict.fromkeys(grid, 6)
    assert suite.tuning.of or systems == grid.keys() | (untried.keys() - suite.experiments.keys())
    assert not grid.keys() & untried.keys()
    assert all(untried.values())

    trials = pl.read_csv(ROOT / "data" / "results" / name / "tuning.csv").filter(pl.col("seed") == suite.tuning.seed)
    last = {(trial["experiment"], trial["config"]): trial["valid"] for trial in trials.iter_rows(named=True)}
    tried = set()
    for key, experiment in suite.experiments.items():
        values = grid.get(experiment.system, {})
        configs = [experiment.config | dict(zip(values, each, strict=True)) for each in product(*values.values())]
        texts = [json.dumps(config, sort_keys=True) for config in configs]
        trial_of = {text: last.get((key, text)) for text in texts}
        if values and key not in untried:
            assert None not in trial_of.values(), key
            best = max(trial_of.values())
            chosen = [text for text, value in trial_of.items() if value == best]
            if experiment.system == "rap":  # its α buys privacy with utility: the largest that costs a tenth or less
                near = [text for text, value in trial_of.items() if value >= 0.9 * best]
                chosen = [max(near, key=lambda text: json.loads(text)["alpha"])]
            assert json.dumps(experiment.config, sort_keys=True) in chosen, key
            tried.add(experiment.system)
    assert tried == grid.keys()


def test_where_another_suite_was_tuned_its_configurations_stand() -> None:
    suites = load(ROOT / "params.yaml").suites
    taken = {name: suite for name, suite in suites.items() if suite.tuning.of}
    assert {"dipsgnn-ml-1m", "dpvae-ml-1m", "privsr-yelp-hin", "membership"} <= taken.keys()
    for name, suite in taken.items():
        other = suites[suite.tuning.of]
        printed = {"clip", "beta"} if suite.paper in {"dipsgnn", "dpvae"} else set()  # by the papers, for these data
        for key, experiment in suite.experiments.items():
            theirs = other.experiments.get(key.replace(name, suite.tuning.of))
            if theirs and theirs.system not in suite.tuning.untried.keys() | suite.tuning.grid.keys():
                config = model_class(experiment.model).Config.model_validate(model_config(experiment.config))
                caps = set() if getattr(config, "plans_epochs", False) else {"epochs"}  # caps go with the data
                tuned = other.tuning.grid.get(theirs.system, {}).keys() - caps - printed
                ours = {of: experiment.config.get(of) for of in tuned}
                assert ours == {of: theirs.config.get(of) for of in tuned}, key


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "suites").glob("frontier-*")))
def test_systems_of_frontiers_have_the_best_of_the_trials_that_chose_them_at_each_budget(name: str) -> None:
    suites, systems = load(ROOT / "params.yaml").suites, set()
    for key, experiment in suites[name].experiments.items():
        of = chosen_by(name, experiment.system, suites[name].tuning)
        trials, tried = trials_of(of, experiment.system), suites[of].tuning.grid.get(experiment.system, {})
        for setting, config in experiment.settings().items() if trials else ():
            budget = {where: config[where] for where in ("epsilon", "epsilon_max") if where in config}
            at = {text: valid for text, valid in trials.items() if budget.items() <= json.loads(text).items()}
            best = json.loads(max(at, key=at.__getitem__))
            assert len(at) >= min(16, prod(map(len, tried.values()))), (key, setting)
            assert {each: config[each] for each in tried} == {each: best[each] for each in tried}, (key, setting)
            systems.add(experiment.system)
    assert {"ials", "dpals"} <= systems


def trials_of(name: str, system: str) -> dict[str, float]:
    """Configuration -> its last result, of a system in the trials of a suite; empty where it has none."""
    path = ROOT / "data" / "results" / name / "tuning.csv"
    rows = pl.read_csv(path).iter_rows(named=True) if path.exists() else ()
    return {
        row["config"]: row["valid"] for row in rows if (row["experiment"], row["seed"]) == (f"{name}-{system}", 1000)
    }


def chosen_by(name: str, system: str, tuning: Tuning) -> str:
    """The suite whose trials chose a system of a frontier: of noisy popularity and DPALS always another one's."""
    first = "frontier-ml-100k"
    if system in {"dp-popularity", "dpals"}:
        return "frontier-ml-latest-small" if name == first else first
    said = re.search(r"the trials of (\S+) chose it", tuning.untried.get(system, ""))
    return said[1] if said else name


@pytest.mark.usefixtures("fresh")
def test_a_model_without_a_grid_is_refused_with_the_key_to_add():
    tuned(grid={"bpr": {"learning_rate": [0.01]}})
    with pytest.raises(ConfigurationError, match=r"suites/tiny/tuning\.yaml: tuning\.grid: nothing to try for 'gerai'"):
        tune.main("tiny-gerai")
    tuned(untried={"gerai": "as in another suite"})
    with pytest.raises(ConfigurationError, match=r"'gerai' \(as in another suite\); add its keys"):
        tune.main("tiny-gerai")
