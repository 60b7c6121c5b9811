"""What params.yaml and the suites' files say of networks is wrong in one clear line that names the key."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks.config.mechanisms import NETWORKS
from tasks.config.params import load
from tasks.config.references import check, unaccounted_anchors
from tasks.papers import PROTOCOLS
from tests import parameters
from tests.mistakes import DEMO, ORIGINAL, Change, put
from tests.test_params import WORDS, refused

WEIBO = "dpcrosue-weibo-twin"
OTHER = "dpcrosue-foursquare-twitter-twin"
FILE = f"suites/{WEIBO}/params.yaml"


@pytest.fixture
def written(tmp_path: Path) -> Callable[[Change], Path]:
    """Writes the parameters of three suites after a change."""

    def write(change: Change) -> Path:
        suites = {name: ORIGINAL["suites"][name] for name in ("demo", OTHER, WEIBO)}
        params = copy.deepcopy(ORIGINAL | {"suites": suites})
        change(params)
        return parameters.write(params, tmp_path)

    return write


def test_the_suites_that_are_changed_are_fine_as_they_are(written: Callable[[Change], Path]) -> None:
    params = load(written(lambda _: None))
    check(params)
    assert params.embeddings.keys() >= {WEIBO, OTHER}


def test_another_papers_protocol_and_mechanism_may_make_networks(
    written: Callable[[Change], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(params: dict[str, Any]) -> None:
        params["processed"][WEIBO]["protocol"] = "other"
        params["perturbed"][WEIBO]["mechanism"] = "other"

    monkeypatch.setitem(PROTOCOLS, "other", PROTOCOLS["gerai"])
    monkeypatch.setitem(NETWORKS, "other", NETWORKS["dpcrosue"])
    assert "'other' is not for data whose protocol is 'other'" in refused(written(change))
    monkeypatch.setitem(PROTOCOLS, "other", PROTOCOLS["dpcrosue"])
    params = load(written(change))
    check(params)
    assert params.networks_settings(f"perturbed/{WEIBO}")[0] == "base"


def alone(name: str, key: str, value: Any) -> Change:
    """Changes an entry of `embeddings`."""
    return put("suites", WEIBO, "embeddings", name, key, value=value)


def pair(name: str, key: str, value: Any) -> Change:
    """Changes an entry of `aligned`."""
    return put("suites", WEIBO, "aligned", name, key, value=value)


def system(label: str, **values: Any) -> Change:
    """Changes an experiment that embeds users."""

    def change(params: dict[str, Any]) -> None:
        params["suites"][WEIBO]["experiments"][f"{WEIBO}-{label}"] |= values

    return change


def lend(section: str, to: str) -> Change:
    """Gives an entry of the suite to another one, too."""

    def change(params: dict[str, Any]) -> None:
        params["suites"][to].setdefault(section, {})[WEIBO] = params["suites"][WEIBO][section][WEIBO]

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lend("embeddings", "demo"), f"suites/demo/params.yaml: embeddings.{WEIBO}: embeddings are for suites whose"),
        (
            lend("aligned", "demo"),
            f"suites/demo/params.yaml: aligned.{WEIBO}: aligned are for suites whose task is emb",
        ),
        (
            lend("embeddings", OTHER),
            f"suites/{OTHER}/params.yaml: embeddings.{WEIBO}: another suite has an entry of th",
        ),
        (
            lend("aligned", OTHER),
            f"suites/{OTHER}/params.yaml: aligned.{WEIBO}: another suite has an entry of this name",
        ),
        (alone(WEIBO, "suite", WEIBO), f"{FILE}: embeddings.{WEIBO}.suite: unknown key"),
        (pair(WEIBO, "suite", WEIBO), f"{FILE}: aligned.{WEIBO}.suite: unknown key"),
        (alone(WEIBO, "data", "none"), f"{FILE}: embeddings.{WEIBO}.data: unknown processed data set 'none'"),
        (
            alone(WEIBO, "data", "demo"),
            f"{FILE}: embeddings.{WEIBO}.data: the protocol of 'demo' is 'gerai', which has",
        ),
        (alone(WEIBO, "networks", f"processed/{OTHER}"), f"{FILE}: embeddings.{WEIBO}.networks: '{OTHER}' is not the"),
        (
            alone(WEIBO, "networks", "perturbed/none"),
            f"{FILE}: embeddings.{WEIBO}.networks: unknown perturbed data 'no",
        ),
        (alone(WEIBO, "networks", f"perturbed/{OTHER}"), f"{FILE}: embeddings.{WEIBO}.networks: '{OTHER}' perturbs"),
        (alone(WEIBO, "networks", f"words/{WORDS}"), f"{FILE}: embeddings.{WEIBO}.networks: "),
        (
            alone(f"{WEIBO}-private", "seeds", [0, 9]),
            f"{FILE}: embeddings.{WEIBO}-private.seeds: 9 is not among the seeds of perturbed.{WEIBO}",
        ),
        (
            alone(WEIBO, "code", "tasks/models/user_networks/deepwalk.py"),
            f"{FILE}: embeddings.{WEIBO}.code: unknown key",
        ),
        (alone(WEIBO, "reads", ["feature"]), f"{FILE}: embeddings.{WEIBO}: reads: without 'edge' there is nothing"),
        (
            put("suites", WEIBO, "embeddings", WEIBO, "config", "epoch", value=3),
            f"{FILE}: embeddings.{WEIBO}.config.epoch: unknown key",
        ),
        (
            put("suites", WEIBO, "aligned", WEIBO, "config", "neighbors", value=3),
            f"{FILE}: aligned.{WEIBO}.config.neighbors: unknown key",
        ),
        (pair(WEIBO, "of", "embeddings/none"), f"{FILE}: aligned.{WEIBO}.of: unknown embeddings of this suite 'none'"),
        (pair(WEIBO, "of", f"embeddings/{OTHER}"), f"{FILE}: aligned.{WEIBO}.of: unknown embeddings of this suite"),
        (pair(WEIBO, "data", OTHER), f"{FILE}: aligned.{WEIBO}.of: '{WEIBO}' embeds '{WEIBO}', not '{OTHER}'"),
        (
            pair(WEIBO, "seeds", [0, 9]),
            f"{FILE}: aligned.{WEIBO}.seeds: 9 is not among the seeds of embeddings.{WEIBO}",
        ),
    ],
)
def test_networks_are_embedded_and_aligned_from_what_there_is(
    written: Callable[[Change], Path], change: Change, message: str
) -> None:
    assert refused(written(change)).startswith(message)


@pytest.mark.parametrize(
    ("label", "values", "message"),
    [
        ("sne", {"data": "none"}, "data: unknown processed data set 'none'"),
        ("sne", {"features": f"processed/{OTHER}"}, f"features: '{OTHER}' is not the data '{WEIBO}'"),
        ("sne", {"features": f"words/{WORDS}"}, "features: word vectors are the features of a table of users"),
        ("sne", {"features": "perturbed/none"}, "features: unknown perturbed data 'none'; known: "),
        ("sne", {"features": f"perturbed/{OTHER}"}, f"features: '{OTHER}' perturbs '{OTHER}', not '{WEIBO}'"),
        ("santext", {"seeds": [0, 9]}, f"seeds: 9 is not among the seeds of perturbed.{WEIBO}"),
        (
            "santext",
            {"sweep": [{"text_epsilon": 3.0}]},
            f"sweep: 'perturbed/{WEIBO}' has no setting 'text_epsilon=3.0'",
        ),
        (
            "sne",
            {"sweep": [{"text_epsilon": 2.5}]},
            f"sweep: 'processed/{WEIBO}' has no setting 'text_epsilon=2.5'; kno",
        ),
        ("rgcn", {"features": "embeddings/none"}, "features: unknown entry of embeddings 'none'; known: "),
        ("rgcn", {"features": f"embeddings/{OTHER}"}, f"features: '{OTHER}' is about '{OTHER}', not '{WEIBO}'"),
        ("rgcn", {"seeds": [0, 9]}, f"seeds: 9 is not among the seeds of embeddings.{WEIBO}"),
        (
            "rgcn",
            {"model": "deepwalk"},
            f"model: embeddings.{WEIBO} is learnt by 'rgcn'",
        ),
        ("rgcn", {"config": {"epochs": 3}}, f"config: must be empty; embeddings.{WEIBO} says how they are learnt"),
        (
            "dp-rgcn",
            {"sweep": [{"edges_epsilon": 2.0}]},
            f"sweep: 'perturbed/{WEIBO}' has no setting 'edges_epsilon=2.0",
        ),
        ("crosue", {"features": "aligned/none"}, "features: unknown entry of aligned 'none'; known: "),
        ("crosue", {"seeds": [0, 9]}, f"seeds: 9 is not among the seeds of aligned.{WEIBO}"),
        (
            "dp-crosue",
            {"sweep": [{"edges_epsilon": 2.0}]},
            f"sweep: 'perturbed/{WEIBO}' has no setting 'edges_epsilon=",
        ),
        ("crosue", {"features": f"processed/{WEIBO}"}, "features: 'crosue' reads aligned"),
        ("sne", {"features": f"aligned/{WEIBO}"}, "features: 'sne' reads processed, perturbed or embeddings"),
        ("sne", {"model": "bpr", "config": {}}, "model: 'bpr' does not embed users"),
        ("crosue", {"config": {"epochs": 3}}, "config.batch_size: this key is missing"),
    ],
)
def test_systems_that_embed_users_read_what_there_is(
    written: Callable[[Change], Path], label: str, values: dict[str, Any], message: str
) -> None:
    actual = refused(written(system(label, **values)))
    assert actual.startswith(f"{FILE}: experiments.{WEIBO}-{label}.{message}"), actual


def test_an_alignment_of_attributes_alone_is_no_start_for_a_system(written: Callable[[Change], Path]) -> None:
    def change(params: dict[str, Any]) -> None:
        params["suites"][WEIBO]["aligned"][f"{WEIBO}-known"] |= {
            "of": f"processed/{WEIBO}", "ways": ["attributes"], "anchor_shares": [], "anchors": "attributes"
        }  # fmt: skip

    actual = refused(written(change))
    where = f"{FILE}: experiments.{WEIBO}-crosue-known.features"
    assert actual == f"{where}: aligned.{WEIBO}-known has no embeddings to start from"


@pytest.mark.parametrize(
    ("model", "anchors", "refused"),
    [("deepwalk", "attributes", True), ("deepwalk", "attribute-start", True), ("deepwalk", "truth", False),
     ("deepwalk", "adversarial", False), ("rgcn", "attributes", False)],
)  # fmt: skip
def test_anchors_found_by_attributes_that_no_ledger_would_have_are_refused(
    written: Callable[[Change], Path], model: str, anchors: str, refused: bool
) -> None:
    params = load(written(lambda _: None))
    pair = params.aligned[WEIBO].model_copy(update={"anchors": anchors})
    embedded = params.embeddings[pair.embeddings or ""].model_copy(update={"model": model})
    params = params.model_copy(update={"aligned": {WEIBO: pair}, "embeddings": {pair.embeddings: embedded}})
    reason = unaccounted_anchors(WEIBO, params)
    assert reason.startswith(f"aligned.{WEIBO} hands on anchors found by attributes") if refused else reason == ""


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (
            ("demo-bpr", "features"),
            f"embeddings/{WEIBO}",
            "demo-bpr.features: embeddings are for suites whose task is em",
        ),
        (
            ("demo-bpr", "features"),
            f"aligned/{WEIBO}",
            "demo-bpr.features: aligned are for suites whose task is embedding",
        ),
        (("demo-gerai", "sweep"), [{"edges_epsilon": 5.0}], "demo-gerai.sweep: edges_epsilon and text_epsilon are for"),
        (
            ("demo-bpr", "sweep"),
            [{"text_epsilon": 5.0}],
            "demo-bpr.sweep: edges_epsilon and text_epsilon are for suites",
        ),
    ],
)
def test_other_suites_have_no_networks(
    written: Callable[[Change], Path], keys: tuple[str, ...], value: Any, message: str
) -> None:
    actual = refused(written(put(*DEMO, "experiments", *keys, value=value)))
    assert actual.startswith(f"suites/demo/params.yaml: experiments.{message}"), actual


def test_a_model_that_embeds_users_is_for_suites_of_that_task(written: Callable[[Change], Path]) -> None:
    def change(params: dict[str, Any]) -> None:
        params["suites"]["demo"]["experiments"]["demo-bpr"] |= {
            "model": "degree", "config": {}, "sweep": []
        }  # fmt: skip

    where = "suites/demo/params.yaml: experiments.demo-bpr.model"
    assert refused(written(change)) == f"{where}: 'degree' embeds users, which is for suites whose task is embedding"
