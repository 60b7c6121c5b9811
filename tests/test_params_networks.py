"""What params.yaml and the suites' files say of networks is wrong in one clear line that names the key."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks.config.audited import LINES
from tasks.config.fields import NETWORKS
from tasks.config.params import load
from tasks.config.references import check, unaccounted_anchors
from tasks.papers import PROTOCOLS
from tests.mistakes import TWITTER, WEIBO, Change
from tests.test_params import refused, written

FILE = f"suites/{WEIBO}/params.yaml"


__all__ = ["written"]


def test_another_papers_protocol_and_mechanism_may_make_networks(
    written: Callable[[Change], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(params: dict[str, Any]) -> None:
        params["processed"][WEIBO]["protocol"] = "other"
        params["perturbed"][WEIBO]["mechanism"] = "other"

    monkeypatch.setitem(PROTOCOLS, "other", PROTOCOLS["gerai"])
    monkeypatch.setitem(NETWORKS, "other", NETWORKS["dpcrosue"])
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
    params = load(written(lambda _: None, WEIBO))
    pair = params.aligned[WEIBO].model_copy(update={"anchors": anchors})
    embedded = params.embeddings[pair.embeddings or ""].model_copy(update={"model": model})
    params = params.model_copy(update={"aligned": {WEIBO: pair}, "embeddings": {pair.embeddings: embedded}})
    reason = unaccounted_anchors(WEIBO, params)
    assert reason.startswith(f"aligned.{WEIBO} hands on anchors found by attributes") if refused else reason == ""
