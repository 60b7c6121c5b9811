"""Stage `audit`: what a suite releases at every budget it uses, and a loud end where more is proved than accounted."""

from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

from tasks.audits import OF_CODE
from tasks.audits.verdicts import is_fault
from tasks.core.errors import PrivacyError
from tasks.pipeline.common import RUNS, read_json
from tasks.privacy.mechanisms import piecewise
from tasks.stages import audit
from tests.audits.test_audits import of_record
from tests.stages import tiny, tiny_ratings

pytestmark = pytest.mark.usefixtures("fresh")


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "MOST", 800)


def audited(suite: str = "tiny") -> list[dict[str, Any]]:
    audit.main(suite)
    return list(read_json(RUNS / suite / "audit.json"))


def test_what_is_released_is_audited_at_the_budgets_in_use() -> None:
    """Features at ε = 1 (1 of 3 at 1) and ε = 7.5 (3 of 3 at 2.5), and counts at ε = 2. One run in a thousand accuses
    sound code. An audit says which experiments and settings it is of."""
    records = audited()
    assert sorted((record["audit"], record["epsilon_claimed"]) for record in records) == [
        ("dp-popularity", 2),
        ("dp-popularity/above-cap", 2),
        ("features", 1),
        ("features", 7.5),
        ("features/categories", 1),
        ("features/categories", 2.5),
        ("features/numbers", 1),
        ("features/numbers", 2.5),
    ]
    for record in records:
        assert 0 <= record["audited_epsilon"] <= record["epsilon_accounted"]
        assert not is_fault(record)
        assert record["samples"] == 800
        assert record["confidence"] == 1 - 0.001 / 8
        assert bool(record["covers"]) == (record["audit"] not in OF_CODE)
    (large,) = [record for record in records if record["epsilon_claimed"] == 7.5]
    assert (of_record(large), large["controls"]) == ("inconclusive", {})
    assert "features_epsilon=7.5" in next(iter(large["covers"].values()))


def test_a_mechanism_without_noise_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The positive control: an audit that cannot catch this catches nothing."""
    monkeypatch.setattr(piecewise, "perturb", lambda values, *_: values)
    with pytest.raises(PrivacyError, match="features/numbers: piecewise: the ledger accounts for epsilon 1, but"):
        audit.main("tiny")
    faults = {record["audit"]: is_fault(record) for record in read_json(RUNS / "tiny" / "audit.json")}
    assert faults["features/numbers"]
    assert not faults["features/categories"]


def test_a_published_claim_that_is_refuted_is_recorded_and_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variant is known by its setting, whatever the system is called."""
    monkeypatch.setattr(audit, "MOST", 400)
    raw = tiny.parameters()
    config, of_open = {"dimension": 2, "epsilon": 0.4, "ridge": 1.0}, {"suite": "open", "seeds": [0]}
    experiments = {
        "open-published": tiny.experiment("dpmf", config | {"accounting": "published"}, **of_open),
        "open-rigorous": tiny.experiment("dpmf", config | {"accounting": "rigorous"}, system="sound", **of_open),
    }
    tiny.write_parameters(raw | {"experiments": experiments}, Path())
    published, rigorous = audited("open")
    assert (rigorous["audit"], rigorous["covers"]) == ("dpmf-rigorous", {"open-rigorous": ["base"]})
    assert not is_fault(rigorous)
    assert (published["audit"], of_record(published), is_fault(published)) == ("dpmf", "refuted", False)
    assert published["audited_epsilon"] > 2


def test_graph_networks_are_audited_by_their_accounting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run without a budget, or without propagation, has no claim."""
    monkeypatch.setattr(audit, "MOST", 600)
    config, of_open = {"epsilon": 1.0, "delta": 1e-5, "epochs": 3, "steps": 1}, {"suite": "open", "seeds": [0]}
    models = {"dipsgnn": "published", "priv-u": "published", "dipsgnn-rigorous": "rigorous", "edgerand": "published"}
    experiments = {
        f"open-{name}": tiny.experiment(
            name.removesuffix("-rigorous"), config | {"accounting": how}, sweep=[{"steps": 0}], **of_open
        )
        for name, how in models.items()
    }
    experiments["open-nonp"] = tiny.experiment("dipsgnn", config | {"epsilon": None}, **of_open)
    tiny.write_parameters(tiny.parameters() | {"experiments": experiments}, Path())
    records = {record["audit"]: record for record in audited("open")}
    assert records.keys() == {"dipsgnn", "dipsgnn-rigorous", "edgerand"}
    assert records["dipsgnn"]["covers"] == {"open-dipsgnn": ["base"], "open-priv-u": ["base"]}
    assert of_record(records["dipsgnn"]) == "refuted"
    assert (records["dipsgnn"]["protects"], records["edgerand"]["protects"]) == ("edge", "session graph")
    few = records["dipsgnn-rigorous"]
    assert few["controls"]["half"] < few["epsilon_claimed"] < few["controls"]["none"]
    assert of_record(few) == "inconclusive"


def test_models_of_ratings_are_audited_towards_each_observer(tmp_path: Path) -> None:
    """The claim for one iteration is refuted by twelve; a total is not, nor is a single release."""
    changes = tiny_ratings.changes()
    privsr = changes["experiments"]["tiny-privsr"]
    rigorous = {key: value for key, value in privsr["config"].items() if key != "beta"}
    rigorous |= {"accounting": "rigorous", "delta": 1e-5, "towards": "sums"}
    means = tiny_ratings.MEANS | {"epsilon": 2.0, "variance": 1.0, "sensitive_share": 0.25}
    alone = {"system": "towards", "config": rigorous | {"towards": "recommender"}, "sweep": []}
    changes["experiments"] |= {
        "tiny-privsr": privsr | {"sweep": []},
        "tiny-rigorous": privsr | {"system": "sound", "config": rigorous, "sweep": [{"epsilon": 3.0}]},
        "tiny-towards": privsr | alone,
        "tiny-dp-bias": privsr | {"model": "dp-rating-means", "config": means, "sweep": []},
    }
    tiny_ratings.build(tmp_path / "ratings", **changes)
    with chdir(tmp_path / "ratings"):
        records = audited()
    each, together, pooled = "recommender-of-submissions", "recommender-of-sums", "co-raters"
    assert sorted((record["audit"], record["observer"], of_record(record) == "refuted") for record in records) == [
        ("dp-rating-means", "", False),
        ("privsr", together, True),
        *[("privsr-rigorous", together, False)] * 3,
        *[("privsr-rigorous/co-raters", pooled, False)] * 3,
        *[("privsr-rigorous/friend", "friend", False)] * 3,
        ("privsr-rigorous/recommender", each, False),
        *[("privsr-rigorous/submissions", each, False)] * 2,
    ]
    assert not any(is_fault(record) for record in records)
