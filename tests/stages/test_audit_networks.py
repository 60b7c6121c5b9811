"""Stage `audit` on releases of networks: every mechanism at every budget that is read, once, and no other."""

from typing import Any

import pytest

from tasks.config.params import load
from tasks.pipeline.common import RUNS, read_json
from tasks.pipeline.table_audits import releases
from tasks.stages import audit
from tests.audits.test_audits import of_record
from tests.stages import tiny_networks
from tests.stages import tiny_systems as tiny

pytestmark = pytest.mark.usefixtures("fresh")
PUBLISHED = tiny_networks.PUBLISHED
OTHER = PUBLISHED | {"features_epsilon": 3.0, "edges_epsilon": 2.0, "text_epsilon": 1.0, "sweep": {}}
PRIVATE = {"private": tiny.EMBEDDINGS["private"]}
SNE = {"suite": "tiny", "data": "tiny", "seeds": [0]} | tiny.EXPERIMENTS["sne"]
TAKEN = {"suite": "tiny", "data": "tiny", "seeds": [0]} | tiny.EXPERIMENTS["dp-rgcn"]
JOINT = {"suite": "tiny", "data": "tiny", "seeds": [0]} | tiny.EXPERIMENTS["dp-crosue"]
DEGREE = SNE | tiny.EXPERIMENTS["degree"]
ATTRIBUTES = tiny.PAIR | {"of": "perturbed/published", "ways": ["attributes"], "anchors": "attributes"}
NOTHING: dict[str, Any] = {"embeddings": {}, "aligned": {}, "experiments": {}}


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "MOST", 400)


def audited() -> list[tuple[str, float]]:
    audit.main("tiny")
    return sorted((record["audit"], record["epsilon_claimed"]) for record in read_json(RUNS / "tiny" / "audit.json"))


def test_every_budget_that_is_read_is_audited_once() -> None:
    """Published: four features at 5 and 20, the claim of friendships at 10 and 5, their number at a tenth of these.
    Rigorous: the three features whose bounds are public, whole releases of friendships, cells at nine tenths."""
    rigorous = tiny.RIGOROUS | {"sweep": {"edges_epsilon": [5.0]}}
    embeddings = tiny.without(tiny.EMBEDDINGS, "private", networks="perturbed/rigorous", reads=["edge"], text=None)
    changes = {"experiments": {"sne": SNE | {"sweep": []}, "joint": TAKEN}, "embeddings": embeddings, "aligned": {}}
    tiny.parameters(perturbed={"published": PUBLISHED, "rigorous": rigorous, "unread": OTHER}, **changes)
    assert audited() == [
        ("edges", 5.0),
        ("edges", 10.0),
        ("edges/cells", 4.5),
        ("edges/cells", 9.0),
        ("edges/filled", 5.0),
        ("edges/filled", 10.0),
        ("edges/number", 0.5),
        ("edges/number", 1.0),
        ("features", 5.0),
        ("features", 5.0),
        ("features", 20.0),
    ]
    records = read_json(RUNS / "tiny" / "audit.json")
    for record in records:
        assert record["audited_epsilon"] <= record["epsilon_claimed"]
        detected = [bound > record["epsilon_claimed"] for bound in record["controls"].values()]
        assert of_record(record) == ("consistent" if detected and all(detected) else "inconclusive")
    assert {record["network"] for record in records if record["audit"] == "features"} == {"left"}
    of = {record["epsilon_claimed"]: record["covers"] for record in records if record["audit"] == "edges/number"}
    assert {experiment for covers in of.values() for experiment in covers} == {"sne", "joint"}


@pytest.mark.parametrize(
    "reading",
    [
        {"experiments": {"sne": SNE}},
        {"experiments": {"taken": TAKEN}, "embeddings": PRIVATE},
        {"experiments": {"joint": JOINT}, "embeddings": PRIVATE, "aligned": {"private": tiny.ANCHORS["private"]}},
        {"embeddings": PRIVATE, "aligned": {"private": tiny.ANCHORS["private"]}},
        {"aligned": {"attributes": ATTRIBUTES}},
    ],
)
def test_whoever_reads_a_release_has_it_audited(reading: dict[str, Any]) -> None:
    tiny.parameters(perturbed={"published": PUBLISHED, "unread": OTHER}, **(NOTHING | reading))
    assert releases("tiny", load()) == ["published"]


@pytest.mark.parametrize("reading", [{}, {"embeddings": PRIVATE}, {"experiments": {"degree": DEGREE}}])
def test_a_release_that_nobody_reads_is_not_audited(reading: dict[str, Any]) -> None:
    tiny.parameters(perturbed={"published": PUBLISHED}, **(NOTHING | reading))
    assert audited() == []
