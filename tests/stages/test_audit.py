"""Stage `audit`: every mechanism at every budget a suite uses, and a loud end where a claim is refuted."""

from pathlib import Path

import pytest

from tasks.errors import ConfigurationError, PrivacyError
from tasks.privacy.audits import worst_cases
from tasks.privacy.mechanisms import aggregation, piecewise
from tasks.stages import audit
from tasks.stages.common import RUNS, digest, read_json
from tests.stages import tiny, tiny_ratings

FIELDS = {
    "protects",
    "mechanism",
    "neighbouring",
    "epsilon_claimed",
    "audited_epsilon",
    "confidence",
    "samples",
    "provable",
    "verdict",
}


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny.build(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(audit, "SAMPLES", 40_000)


def test_every_mechanism_is_audited_at_the_budgets_in_use() -> None:
    """Features at ε = 1 (1 of 3 at 1) and ε = 7.5 (3 of 3 at 2.5), and counts at ε = 2. One audit in a thousand
    accuses a sound mechanism."""
    audit.main("tiny")
    records = read_json(RUNS / "tiny" / "audit.json")
    budgets = [(record["mechanism"].split(",")[-1].split()[0], record["epsilon_claimed"]) for record in records]
    assert budgets == [
        ("piecewise", 1),
        ("optimised", 1),
        ("multidimensional", 1),
        ("piecewise", 2.5),
        ("optimised", 2.5),
        ("multidimensional", 7.5),
        ("discrete", 2),
    ]
    for record in records:
        assert set(record) == FIELDS
        assert 0 < record["audited_epsilon"] <= record["epsilon_claimed"]
        assert record["verdict"] == "consistent"
        assert record["samples"] == 40_000
    assert {record["protects"] for record in records} == {"feature", "interaction"}


def test_budgets_that_mean_the_same_per_feature_are_audited_once() -> None:
    """Of three features, ε = 2.5 reports one and ε = 7.5 all three, each with 2.5."""
    perturbed = tiny.parameters()["perturbed"]["tiny"] | {"epsilon": [2.5, 7.5]}
    Path("other").mkdir()
    tiny.build(Path("other"), perturbed={"tiny": perturbed})
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir("other")
        audit.main("tiny")
        records = read_json(RUNS / "tiny" / "audit.json")
    local = [record["epsilon_claimed"] for record in records if record["protects"] == "feature"]
    assert local == [2.5, 2.5, 2.5, 7.5]


def test_a_suite_without_private_mechanisms_has_nothing_to_audit() -> None:
    audit.main("open")
    assert read_json(RUNS / "open" / "audit.json") == []


def test_a_budget_that_the_samples_cannot_refute_is_called_inconclusive() -> None:
    perturbed = tiny.parameters()["perturbed"]["tiny"] | {"epsilon": [20.0, 7.5]}
    other = Path("other")
    other.mkdir()
    tiny.build(other, perturbed={"tiny": perturbed})
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(other)
        audit.main("tiny")
        records = read_json(RUNS / "tiny" / "audit.json")
    (record,) = [record for record in records if record["epsilon_claimed"] == 20]
    assert record["provable"] < 20
    assert record["verdict"] == "inconclusive"


def test_the_same_audit_twice_gives_the_same_bytes() -> None:
    audit.main("tiny")
    before = digest(RUNS / "tiny")
    audit.main("tiny")
    assert digest(RUNS / "tiny") == before


def test_a_mechanism_without_noise_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The positive control: an audit that cannot catch this catches nothing."""
    monkeypatch.setattr(piecewise, "perturb", lambda values, *_: values)
    with pytest.raises(PrivacyError, match="piecewise claims epsilon 1, but its outputs prove at least"):
        audit.main("tiny")
    verdicts = {record["mechanism"]: record["verdict"] for record in read_json(RUNS / "tiny" / "audit.json")}
    assert verdicts["piecewise"] == "refuted"
    assert verdicts["optimised unary encoding"] == "consistent"


def test_unknown_suites_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"suites: there is no 'large'; known: open, tiny"):
        audit.main("large")


def test_a_published_claim_that_is_refuted_is_recorded_and_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "FITS", 200)
    raw = tiny.parameters()
    common = {"suite": "open", "data": "tiny", "features": "processed/tiny", "seeds": [0], "sweep": []}
    config = {"dimension": 2, "epsilon": 0.4, "ridge": 1.0}
    experiments = {
        "open-published": common | {"model": "dpmf", "config": config | {"accounting": "published"}},
        "open-rigorous": common | {"model": "dpmf", "system": "sound", "config": config | {"accounting": "rigorous"}},
    }
    tiny.write_parameters(raw | {"experiments": experiments}, Path())
    audit.main("open")
    rigorous, published = read_json(RUNS / "open" / "audit.json")
    assert (rigorous["verdict"], rigorous["epsilon_claimed"]) == ("consistent", 0.4)
    assert (published["verdict"], published["epsilon_claimed"]) == ("refuted", 0.4)
    assert published["audited_epsilon"] > 2


def graphs(**models: str) -> None:
    """A suite of systems that aggregate a graph (name: accounting), each with a budget of 5, most with one of 1.

    What they are called does not matter: their models and settings do.
    """
    common = {"suite": "open", "data": "tiny", "features": "processed/tiny", "seeds": [0]}
    config = {"epsilon": 5.0, "delta": 1e-5, "epochs": 3, "steps": 1}
    experiments = {}
    for key, accounting in models.items():
        name = key.replace("_", "-")
        model = name if name in ("priv-u", "edgerand") else "dipsgnn"
        changed = {"nonp": {"epsilon": None}}.get(name, {})
        sweep = [{"epsilon": 1.0}, *([{"steps": 0}] if accounting == "published" else [])]
        own = {"model": model, "sweep": [] if name in ("nonp", "edgerand") else sweep}
        experiments[f"open-{name}"] = common | own | {"config": config | {"accounting": accounting} | changed}
    tiny.write_parameters(tiny.parameters() | {"experiments": experiments}, Path())


def edge_records() -> dict[str, list[tuple[float, str]]]:
    records = read_json(RUNS / "open" / "audit.json")
    assert {record["neighbouring"] for record in records} == {"one visit of a user's sequence removed"}
    # the claim of DIPSGNN is for the system; what else has noise is a part of it
    kinds = {record["mechanism"]: record["protects"] for record in records}
    assert kinds == {name: "edge" if name.endswith("in training") else "session graph" for name in kinds}
    found: dict[str, list[tuple[float, str]]] = {}
    for record in records:
        assert set(record) == FIELDS
        found.setdefault(record["mechanism"], []).append((record["epsilon_claimed"], record["verdict"]))
    return found


def test_noise_on_graphs_is_audited_for_edges_and_a_published_claim_stops_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once for each budget, whatever systems share it. Each of the four audits of sound noise accuses it once in a
    thousand. At ε = 1 a visit in a matrix moves too little for these samples: true ε is 2."""
    monkeypatch.setattr(audit, "SAMPLES", 200_000)
    graphs(
        dipsgnn="published",
        priv_u="published",
        edgerand="published",
        dipsgnn_rigorous="rigorous",
        dipsgnn_cached="cached",
        nonp="published",
    )
    audit.main("open")
    refuted, consistent = ([(epsilon, verdict) for epsilon in (1.0, 5.0)] for verdict in ("refuted", "consistent"))
    how = "Gaussian noise on aggregates, {}, and for recommendations".format
    assert edge_records() == {
        how("one per user and epoch"): consistent,
        how("one for all epochs, of initial vectors"): consistent,
        "Gaussian noise on aggregates, in training": refuted,
        "Gaussian noise on adjacency matrices, once": refuted[1:],
    }


@pytest.mark.parametrize(("model", "samples"), [("dipsgnn_rigorous", 20_000), ("dipsgnn_cached", 200_000)])
def test_too_little_noise_in_a_sound_accounting_stops_the_suite(
    model: str, samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The noise of the published theorem in its place."""
    monkeypatch.setattr(audit, "GRAPHS", samples)
    monkeypatch.setattr(aggregation, "rigorous_sigma", lambda _, *rest: aggregation.sigma(1, *rest))
    graphs(**{model: model.removeprefix("dipsgnn_")})
    with pytest.raises(PrivacyError, match=r"Gaussian noise on aggregates, .* claims epsilon 1, but its outputs prove"):
        audit.main("open")
    ((epsilon, verdict), *_) = next(iter(edge_records().values()))
    assert (epsilon, verdict) == (1.0, "refuted")


def test_submissions_about_ratings_are_audited_in_both_accountings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claim for one iteration is refuted by twelve, by those who drew h and those who did not; a total is not, nor
    is a single release. The largest provable bound depends on how many numbers may be drawn."""
    monkeypatch.setattr(worst_cases, "SUBMITTED", 2_000_000)
    changes = tiny_ratings.changes()
    privsr = changes["experiments"]["tiny-privsr"]
    rigorous = {key: value for key, value in privsr["config"].items() if key != "beta"}
    rigorous |= {"accounting": "rigorous", "delta": 1e-5, "towards": "sums"}
    means = tiny_ratings.MEANS | {"epsilon": 2.0, "variance": 1.0, "sensitive_share": 0.25}
    changes["experiments"] |= {
        "tiny-privsr": privsr | {"sweep": []},
        "tiny-rigorous": privsr | {"system": "sound", "config": rigorous, "sweep": [{"epsilon": 3.0}]},
        "tiny-dp-bias": privsr | {"model": "dp-rating-means", "config": means, "sweep": []},
    }
    place = tmp_path / "ratings"
    place.mkdir()
    tiny_ratings.build(place, **changes)
    monkeypatch.chdir(place)
    audit.main("tiny")
    records = read_json(RUNS / "tiny" / "audit.json")
    verdicts = [(one["mechanism"].split(" ")[0], one["epsilon_claimed"], one["verdict"]) for one in records]
    assert sorted(verdicts) == [
        ("Gaussian", 1.0, "consistent"),
        ("Gaussian", 3.0, "consistent"),
        ("Laplace", 2.0, "consistent"),
        ("fresh", 1.0, "refuted"),
        ("fresh", 1.0, "refuted"),
    ]
    drew, others = (
        next(one["audited_epsilon"] for one in records if one["neighbouring"].endswith(who))
        for who in ("who drew h", "did not draw h")
    )
    assert drew > others
