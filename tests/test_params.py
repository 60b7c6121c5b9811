"""params.yaml is wrong in one clear line that names the key, before anything runs."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tasks.errors import ConfigurationError
from tasks.stages.params import Params, check_configs, load

ROOT = Path(__file__).resolve().parents[1]
ORIGINAL = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
Change = Callable[[dict[str, Any]], None]


@pytest.fixture
def written(tmp_path: Path) -> Callable[[Change], Path]:
    """Writes the project's parameters after a change."""

    def write(change: Change) -> Path:
        params = copy.deepcopy(ORIGINAL)
        change(params)
        path = tmp_path / "params.yaml"
        path.write_text(yaml.safe_dump(params, sort_keys=False), encoding="utf-8")
        return path

    return write


def put(*keys: str, value: Any) -> Change:
    """Sets one key, however deep."""

    def change(params: dict[str, Any]) -> None:
        table = params
        for key in keys[:-1]:
            table = table[key]
        table[keys[-1]] = value

    return change


def drop(*keys: str) -> Change:
    """Removes one key, however deep."""

    def change(params: dict[str, Any]) -> None:
        table = params
        for key in keys[:-1]:
            table = table[key]
        del table[keys[-1]]

    return change


def refused(path: Path) -> str:
    """The message that refuses a parameter file."""
    with pytest.raises(ConfigurationError) as caught:
        check_configs(load(path), path)
    message = str(caught.value).removeprefix(f"{path}: ")
    assert "\n" not in message
    return message


def test_the_projects_own_parameters_are_valid() -> None:
    params = load(ROOT / "params.yaml")
    check_configs(params)
    assert {experiment.suite for experiment in params.experiments.values()} == set(params.suites)


def test_what_is_commented_out_is_valid_too() -> None:
    """Data sets that need a form stand in params.yaml behind a #, to be taken away."""
    text = (ROOT / "params.yaml").read_text(encoding="utf-8")
    entry = re.compile(r"^  # (?=[a-z0-9-]+: *($|\{)|  )", flags=re.MULTILINE)
    whole = text[: text.index("perturbed:")], text[text.index("perturbed:") :]
    uncommented = entry.sub("  ", whole[0]) + whole[1]
    params = Params.model_validate(yaml.safe_load(uncommented))
    check_configs(params)
    added = set(params.datasets) - set(ORIGINAL["datasets"])
    assert {"netflix", "tmall", "yelp", "yelp-hin", "ciao", "epinions", "foursquare-twitter", "ione"} == added
    assert len(params.processed) > len(ORIGINAL["processed"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("surprise", value=1), "surprise: unknown key"),
        (put("evaluation", "negative", value=100), "evaluation.negative: unknown key"),
        (drop("evaluation", "seed"), "evaluation.seed: this key is missing"),
        (drop("suites"), "suites: this key is missing"),
        (put("evaluation", "negatives", value="many"), "evaluation.negatives: .*integer.*'many'"),
        (put("evaluation", "negatives", value="100"), "evaluation.negatives: .*integer.*'100'"),
        (put("evaluation", "negatives", value=True), "evaluation.negatives: .*integer.*True"),
        (put("evaluation", "negatives", value=0), "evaluation.negatives: .*greater than or equal to 1.*0"),
        (put("evaluation", "k", value=[]), "evaluation.k: .*at least 1"),
        (put("evaluation", "k", value=[5, 5]), "evaluation.k: 5 is repeated"),
        (
            put("processed", "demo", "options", "test_share", value=1.5),
            "processed.demo.options.test_share: .*less",
        ),
        (put("processed", "demo", "dataset", value="ml-10b"), "processed.demo.dataset: unknown data set 'ml-10b'"),
        (
            put("datasets", "demo", "source", value="ftp"),
            "datasets.demo.source: unknown source 'ftp'; known: ciao, custom",
        ),
        (put("perturbed", "gerai-demo", "epsilon", value=[0.0]), "perturbed.gerai-demo.epsilon.0: .*greater than 0"),
        (put("perturbed", "gerai-demo", "epsilon", value=[-1.0]), "perturbed.gerai-demo.epsilon.0: .*greater than 0"),
        (put("perturbed", "gerai-demo", "epsilon", value=[float("nan")]), "perturbed.gerai-demo.epsilon.0: .*nan"),
        (put("perturbed", "gerai-demo", "epsilon", value=[float("inf")]), "perturbed.gerai-demo.epsilon.0: .*inf"),
        (put("experiments", "demo-bpr", "seeds", value=[0, 1, 0]), "experiments.demo-bpr.seeds: 0 is repeated"),
        (put("experiments", "demo-bpr", "seeds", value=[-1]), "experiments.demo-bpr.seeds.0: .*greater than or equal"),
        (put("experiments", "demo-bpr", "model", value="brp"), "experiments.demo-bpr.model: unknown model 'brp'"),
        (put("experiments", "demo-bpr", "suite", value="other"), "experiments.demo-bpr.suite: unknown suite 'other'"),
        (put("experiments", "demo-bpr", "data", value="ml-10b"), "experiments.demo-bpr.data: unknown processed data"),
        (
            put("experiments", "demo-bpr", "features", value="perturbed/none"),
            "experiments.demo-bpr.features: unknown perturbed data 'none'",
        ),
        (
            put("experiments", "demo-bpr", "code", value="tasks/models/popularity.py"),
            "experiments.demo-bpr.code: 'bpr' is defined in tasks/models/bpr.py",
        ),
        (
            put("experiments", "demo-gerai", "seeds", value=[0, 7]),
            "experiments.demo-gerai.seeds: 7 is not among the seeds of perturbed",
        ),
        (
            put("experiments", "demo-gerai", "sweep", value=[{"features_epsilon": 0.123}]),
            "experiments.demo-gerai.sweep: features_epsilon 0.123 is not in perturbed",
        ),
        (
            put("experiments", "demo-bpr", "seeds", value=[ORIGINAL["tuning"]["seed"]]),
            "experiments.demo-bpr.seeds: .* is the tuning seed",
        ),
        (put("experiments", "demo-bpr", "config", "epoch", value=3), "experiments.demo-bpr.config.epoch: unknown key"),
        (
            put("experiments", "demo-bpr", "sweep", value=[{"learning_rate": "fast"}]),
            "experiments.demo-bpr.config.learning_rate: .*'fast'",
        ),
        (
            put("experiments", "demo-dp-popularity", "config", "epsilon", value=0),
            "experiments.demo-dp-popularity.config.epsilon: .*0",
        ),
        (put("experiments", "Demo BPR", value={}), "experiments.Demo BPR"),
        (put("attack", "attackers", value=["oracle"]), "attack.attackers.0: unknown attacker 'oracle'"),
    ],
)
def test_a_mistake_is_named_by_its_key(written: Callable[[Change], Path], change: Change, message: str) -> None:
    found = refused(written(change))
    assert re.match(message.replace(".", r"\.").replace(r"\.*", ".*"), found), found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "params.yaml: "),
        ("evaluation: {k: [5\n", r"params.yaml:2: not valid YAML"),
        (
            "suites:\n  demo: {title: a, data: b}\n  demo: {title: c, data: d}\n",
            "params.yaml:3: .*'demo' is given twice",
        ),
    ],
)
def test_what_is_no_parameter_file_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "params.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=message) as caught:
        load(path)
    assert "\n" not in str(caught.value)


def test_without_a_parameter_file_it_says_where_to_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="not found; run this in the project's root"):
        load(tmp_path / "params.yaml")


def test_a_sweep_point_overrides_the_base_and_is_named_by_what_it_changes(written: Callable[[Change], Path]) -> None:
    sweep = [{"learning_rate": 0.1}, {"learning_rate": 0.2, "dimension": 8}]
    experiment = load(written(put("experiments", "demo-bpr", "sweep", value=sweep))).experiments["demo-bpr"]
    settings = experiment.settings()
    assert list(settings) == ["base", "learning_rate=0.1", "learning_rate=0.2,dimension=8"]
    assert settings["base"] == experiment.config
    assert settings["learning_rate=0.2,dimension=8"] == experiment.config | sweep[1]
