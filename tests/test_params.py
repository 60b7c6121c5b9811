"""params.yaml is wrong in one clear line that names the key, before anything runs."""

import copy
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows.deployments import schedules
from tasks.config.audited import LINES
from tasks.config.fields import NETWORKS as MECHANISMS
from tasks.config.networks import Alignment
from tasks.config.params import load
from tasks.config.references import check, check_references, unaccounted_anchors
from tasks.core.errors import ConfigurationError
from tasks.datasets.foursquare_twitter_text import SOURCE as TEXTS
from tasks.datasets.weibo import SOURCE as NETWORKS
from tasks.papers import PROTOCOLS
from tests import parameters
from tests.mistakes import DEMO, MISTAKES, ORIGINAL, TWITTER, WEIBO, Change, Mistake, put
from tests.parameters import ROOT
from tests.stages.tiny_pair import ENTRY


@pytest.fixture
def written(tmp_path: Path) -> Callable[[Change], Path]:
    def write(change: Change, suite: str = "root") -> Path:
        suites = ORIGINAL["suites"]
        if suite == WEIBO:  # which reads nothing of others
            suites = {name: suites[name] for name in ("demo", TWITTER, WEIBO)}
        params = copy.deepcopy(ORIGINAL | {"suites": suites})
        change(params)
        return parameters.write(params, tmp_path)

    return write


def refused(path: Path) -> str:
    with pytest.raises(ConfigurationError) as caught:
        check(load(path), path)
    message = str(caught.value)
    assert "\n" not in message
    return message.removeprefix(f"{path}: ").removeprefix(f"{path.parent}/")


def test_the_projects_own_parameters_are_valid() -> None:
    params = load(ROOT / "params.yaml")
    check(params)
    assert {experiment.suite for experiment in params.experiments.values()} == set(params.suites)
    assert len(params.experiments) == sum(len(suite.experiments) for suite in params.suites.values())


@pytest.mark.parametrize(
    ("page", "replica", "suite"),
    [
        ("dpcrosue", "dpcrosue-weibo-twin", "dpcrosue-weibo"),
        ("dpcrosue", "dpcrosue-foursquare-twitter-twin", "dpcrosue-foursquare-twitter-text"),
    ],
)
def test_the_commands_for_official_data_make_a_suite_of_them(
    tmp_path: Path, page: str, replica: str, suite: str
) -> None:
    """Those of docs/, which name one suite of a page, on a copy of the parameters."""
    parameters.copy(tmp_path)
    path, text = tmp_path / "params.yaml", (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
    (tmp_path / "suites" / replica / "dvc.lock").touch()
    blocks = [block for block in re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL) if "cp -r" in block]
    own = [block for block in blocks if f"suites/{replica} " in block]
    (block,) = own or [block.replace(re.findall(r"cp -r suites/(\S+)-twin", block)[0], suite) for block in blocks]
    lines = [line for line in block.splitlines() if not line.startswith("dprec ")]
    subprocess.run(["bash", "-ec", "\n".join(lines)], cwd=tmp_path, check=True)
    if page == "dpcrosue":  # the line that `dprec data verify` shows
        source = {"dpcrosue-weibo": NETWORKS}.get(suite, TEXTS)
        path.write_text(path.read_text().replace("datasets: ", f"datasets:\n  {source.name}: {source.entry} "))
    params = load(path)
    check(params, path)
    assert params.stands_for(params.suites[suite].data) == ""
    assert not any("-twin" in experiment.data for experiment in params.suites[suite].experiments.values())


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.message)
def test_a_mistake_is_named_by_its_key(written: Callable[[Change], Path], mistake: Mistake) -> None:
    actual = refused(written(mistake.change, mistake.suite))
    assert re.match(mistake.message, actual), actual


def test_an_experiment_and_the_features_that_it_reads_may_have_secure_noise(written: Callable[[Change], Path]) -> None:
    def change(params: dict[str, Any]) -> None:
        put(*DEMO, "experiments", "demo-dpae", "noise", value="secure")(params)
        put("suites", "dipsgnn", "experiments", "dipsgnn-dpsgd", "noise", value="secure")(params)
        put("perturbed", "dipsgnn-ml-100k", "noise", value="secure")(params)
        put("perturbed", "dpcrosue-weibo-twin", "noise", value="secure")(params)

    path = written(change)
    params = load(path)
    check(params, path)
    assert params.experiments["demo-dpae"].noise == params.perturbed["dipsgnn-ml-100k"].noise == "secure"


def test_committed_results_can_be_drawn_again() -> None:
    """Nothing in this repository has secure noise: its results must follow from its seeds."""
    params = load(ROOT / "params.yaml")
    assert [each for table in (params.experiments, params.perturbed) for each in table.values() if each.noise] == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "params.yaml: "),
        (b"evaluation: {k: [5\n", r"params.yaml:2: not valid YAML"),
        *(
            (f"datasets:\n  demo: {{seed: {value}}}\n".encode(), f"params.yaml:2: .*'{value}' is not the same in all")
            for value in ("03745", "1:30", "yes", "Off", "2026-11-22", "0x10")
        ),
        (b"datasets:\n  demo: {source: a}\n  demo: {source: b}\n", "params.yaml:3: .*'demo' is given twice"),
        (b"datasets:\n  caf\xe9: {}\n", "params.yaml:2: byte 0xe9 is not UTF-8"),
        ("datasets: {}\n".encode("utf-16"), "params.yaml:1: byte 0xff is not UTF-8"),
        (b"datasets:\n  a: b\0c\n", r"params.yaml: not valid YAML \(character 0x0\)"),
        (b"datasets: " + b"[" * 5000 + b"]" * 5000, "params.yaml: "),
        (b"a: &a [*a]\n", "params.yaml: "),
        (b"a: " + b"9" * 5000, "params.yaml: not readable as YAML"),
        (b"datasets: " + b"b" * 5000, "params.yaml: datasets: Input should be a valid dictionary .*b{70}"),
        (b"a: {[1]: 2}\n", "params.yaml:1: not valid YAML .*a key is a list or a table"),
    ],
)
def test_what_is_no_parameter_file_is_refused_with_its_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "params.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=message) as caught:
        load(path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_sweep_point_overrides_the_base_and_is_named_by_what_it_changes(written: Callable[[Change], Path]) -> None:
    sweep = [{"learning_rate": 0.1}, {"learning_rate": 0.2, "dimension": 8}]
    path = written(put(*DEMO, "experiments", "demo-bpr", "sweep", value=sweep))
    experiment = load(path).experiments["demo-bpr"]
    settings = experiment.settings()
    assert list(settings) == ["base", "learning_rate=0.1", "learning_rate=0.2,dimension=8"]
    assert settings["base"] == experiment.config
    assert settings["learning_rate=0.2,dimension=8"] == experiment.config | sweep[1]


def shared(section: str, **values: Any) -> Change:
    """Lets the demo's entries of a section have keys from `defaults`, and none of these keys of their own."""

    def change(params: dict[str, Any]) -> None:
        demo = params["suites"]["demo"]
        demo["defaults"] = {section: values}
        for own in demo.get(section, {}).values():
            for key in values:
                own.pop(key, None)

    return change


def test_an_entry_has_what_the_defaults_say_unless_it_says_otherwise(written: Callable[[Change], Path]) -> None:
    def change(params: dict[str, Any]) -> None:
        shared("experiments", seeds=[0, 1], config={"epochs": 3, "dimension": 8})(params)
        entries = params["suites"]["demo"]["experiments"]
        entries["demo-ease"]["seeds"] = [2]
        entries["demo-bpr"]["config"] = {"epochs": 5}
        entries["demo-bpr"].pop("sweep", None)

    experiments = load(written(change)).experiments
    assert experiments["demo-ease"].seeds == [2]
    assert experiments["demo-bpr"].seeds == [0, 1]
    assert experiments["demo-bpr"].config == {"epochs": 5}  # nothing below a key is merged
    assert experiments["demo-bpr"].sweep == []
    assert experiments["demo-ease"].config == {"epochs": 3, "dimension": 8}
    assert {experiment.suite for name, experiment in experiments.items() if name.startswith("demo-")} == {"demo"}


@pytest.mark.parametrize(
    ("section", "values", "message"),
    [
        ("experiments", {"seed": [0]}, "defaults.experiments.seed: unknown key (in demo-"),
        ("experiments", {"suite": "demo"}, "defaults.experiments.suite: unknown key"),
        ("experiments", {"code": "tasks/models/ranking/bpr.py"}, "defaults.experiments.code: unknown key (in demo-"),
        ("experiments", {"seeds": [1, 1]}, "defaults.experiments.seeds: 1 is repeated (in demo-"),
        ("experiments", {"data": "none"}, "defaults.experiments.data: unknown processed data set 'none'; known: "),
        ("experiments", {"features": "processed/ml-100k"}, "defaults.experiments.features: 'ml-100k' is not the data"),
        ("experiments", {"config": {"epoch": 3}}, "defaults.experiments.config.epoch: unknown key"),
        ("aligned", {"k": [1]}, "defaults.aligned: there are no aligned that could have them"),
        ("runs", {"seeds": [1]}, "defaults.runs: unknown key"),
    ],
)
def test_a_mistake_in_the_defaults_is_named_there(
    written: Callable[[Change], Path], section: str, values: dict[str, Any], message: str
) -> None:
    assert refused(written(shared(section, **values))).startswith(f"suites/demo/params.yaml: {message}")


@pytest.mark.parametrize("suite", sorted(ORIGINAL["suites"]))
def test_a_default_is_what_entries_of_the_suite_have(suite: str) -> None:
    """A default that every entry overrides would be read, and decide nothing."""
    loaded = load(ROOT / "params.yaml").suites[suite]
    for section, values in loaded.defaults.model_dump().items():
        used = {key.split(".")[2] for key in loaded.inherited if key.startswith(f"{section}.")}
        assert used == set(values), section


def test_a_suite_is_a_folder_with_its_files(written: Callable[[Change], Path], tmp_path: Path) -> None:
    path = written(lambda _: None)
    shutil.copytree(tmp_path / "suites/demo", tmp_path / "suites/other")
    with pytest.raises(ConfigurationError, match=r"suites/other/params\.yaml: .* the suite 'demo' has an experiment"):
        check_references(load(path), path)
    shutil.rmtree(tmp_path / "suites/other")
    misplaced = (tmp_path / "suites/demo/tuning.yaml").read_text()
    with (tmp_path / "suites/demo/params.yaml").open("a") as file:
        file.write(misplaced)
    with pytest.raises(ConfigurationError, match=r"demo/params\.yaml: tuning: stands in .*suites/demo/tuning\.yaml"):
        load(path)
    (tmp_path / "suites/demo/params.yaml").unlink()
    with pytest.raises(
        ConfigurationError, match=r"suites/demo/params\.yaml: not found; run this in the root of a project"
    ):
        load(path)


def test_schedules_and_the_workflow_of_results_name_suites(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    suites = load(ROOT / "params.yaml").suites.keys()
    scheduled = [suite for suite, _ in schedules().values()]
    workflow = yaml.safe_load((ROOT / ".github/workflows/results.yml").read_text(encoding="utf-8"))
    regenerated = workflow["jobs"]["regenerate"]["strategy"]["matrix"]["suite"]
    assert set(scheduled) <= suites
    assert set(scheduled) == set(regenerated)  # what runs here every week also runs there


def test_another_papers_protocol_and_mechanism_may_make_networks(
    written: Callable[[Change], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(params: dict[str, Any]) -> None:
        params["processed"][WEIBO]["protocol"] = "other"
        params["perturbed"][WEIBO]["mechanism"] = "other"

    monkeypatch.setitem(PROTOCOLS, "other", PROTOCOLS["gerai"])
    monkeypatch.setitem(MECHANISMS, "other", MECHANISMS["dpcrosue"])
    monkeypatch.setitem(LINES, "other", LINES["dpcrosue"])
    assert "'other' is not for data whose protocol is 'other'" in refused(written(change))
    monkeypatch.setitem(PROTOCOLS, "other", PROTOCOLS["dpcrosue"])
    params = load(written(change))
    check(params)
    assert params.networks_settings(f"perturbed/{WEIBO}")[0] == "base"


def lend(section: str, to: str) -> Change:
    """Gives an entry of the suite to another one, too."""

    def change(params: dict[str, Any]) -> None:
        params["suites"][to].setdefault(section, {})[WEIBO] = params["suites"][WEIBO][section][WEIBO]

    return change


@pytest.mark.parametrize("section", ["embeddings", "aligned"])
def test_networks_are_those_of_one_suite_whose_task_is_embedding(
    written: Callable[[Change], Path], section: str
) -> None:
    for to, message in (("demo", f"{section} are for suites whose task is emb"), (TWITTER, "another suite has an")):
        assert refused(written(lend(section, to))).startswith(f"suites/{to}/params.yaml: {section}.{WEIBO}: {message}")


def test_ways_of_an_alignment_have_the_names_of_their_metrics_and_may_need_no_embeddings() -> None:
    options = Alignment.model_validate(ENTRY | {"anchor_shares": [0.01, 0.05, 0.07, 0.5]})
    named = ["anchors-1%", "anchors-5%", "anchors-7%", "anchors-50%"]
    assert options.all_ways == ["adversarial", "attributes", "attribute-start", *named]
    assert options.shares["anchors-7%"] == 0.07
    turned = Alignment.model_validate(ENTRY | {"of": "processed/pair", "ways": ["adversarial"], "anchors": "truth"})
    assert (turned.reads_attributes, turned.embeddings) == (True, None)
    every = ENTRY | {"anchor_shares": [0.8], "test_share": 0.2}  # but those that judge
    assert Alignment.model_validate(every).shares == {"anchors-80%": 0.8}


@pytest.mark.parametrize(
    ("model", "anchors", "refused"),
    [("deepwalk", "attributes", True), ("deepwalk", "attribute-start", True), ("deepwalk", "truth", False),
     ("deepwalk", "adversarial", False), ("rgcn", "attributes", False)],
)  # fmt: skip
def test_anchors_found_by_attributes_that_no_ledger_would_have_are_refused(
    written: Callable[[Change], Path], model: str, anchors: str, refused: bool
) -> None:
    params = load(written(lambda _: None, WEIBO))
    pair = params.aligned[WEIBO].model_copy(update={"anchors": anchors})
    embedded = params.embeddings[pair.embeddings or ""].model_copy(update={"model": model})
    params = params.model_copy(update={"aligned": {WEIBO: pair}, "embeddings": {pair.embeddings: embedded}})
    reason = unaccounted_anchors(WEIBO, params)
    assert reason.startswith(f"aligned.{WEIBO} hands on anchors found by attributes") if refused else reason == ""
