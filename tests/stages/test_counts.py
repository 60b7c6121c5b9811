"""`counts` of a suite: all data of which its own are a part, counted against what the paper prints."""

from pathlib import Path

import pytest

from tasks.config.params import Params, load
from tasks.config.references import own_problems
from tasks.errors import DataError
from tasks.results.facts import System
from tasks.stages import collect
from tasks.stages.common import PROCESSED, write_json
from tests.parameters import ROOT
from tests.results.test_printed import STEPS
from tests.stages.tiny import passed

SYSTEM = dict.fromkeys(("experiment", "model", "label", "dataset"), "a") | {
    "seeds": (0,),
    "parameters": {},
    "cut_off": {},
}
SUITE, PART, ALL = "dipsgnn-ml-1m", "dipsgnn-ml-1m-part", "dipsgnn-ml-1m-no-timestamps"


@pytest.fixture
def params(monkeypatch: pytest.MonkeyPatch) -> Params:
    monkeypatch.chdir(ROOT)
    return load()


@pytest.mark.parametrize(
    ("suite", "counts", "problem"),
    [
        (SUITE, "elsewhere", "'elsewhere'"),
        (SUITE, "dpvae-ml-1m", "must be all of what"),  # by another paper's protocol
        (SUITE, "dipsgnn-ml-1m-twin", "must be all of what"),  # generated
        (SUITE, PART, "must be all of what"),
        ("dipsgnn", ALL, "must be all of what"),  # its own data are whole
        ("dpcrosue-weibo-twin", "dpcrosue-ione", "there are none in a suite whose task is embedding"),
    ],
)
def test_only_all_of_what_the_suite_has_a_part_of_is_counted(
    params: Params, suite: str, counts: str, problem: str
) -> None:
    own = params.suites[suite]
    assert "counts" not in {key for key, _ in own_problems(own, params, {})}
    (key, text), *_ = own_problems(own.model_copy(update={"counts": counts}), params, {})
    assert key == "counts"
    assert problem in text


def test_what_is_counted_has_its_rows_next_to_the_suites_own_and_must_have_passed_its_check(
    params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = params.suites[SUITE]
    inputs = {("a", "train"): {"synthetic": False, "checks": []}}
    monkeypatch.setattr(collect, "read_system", lambda *_: System(**SYSTEM))
    monkeypatch.chdir(tmp_path)
    for name in (ALL, own.data):
        (PROCESSED / name).mkdir(parents=True)
        write_json(PROCESSED / name / "schema.json", {"features": [{}, {}, {}]})
        write_json(PROCESSED / name / "counts.json", [step | {"numbers": {"least": 10}} for step in STEPS])
    write_json(PROCESSED / own.data / "source.json", {"dataset": "", "address": "", "licence": "", "synthetic": False})
    passed("processed", ALL)
    facts = collect._facts(SUITE, params, inputs, {})
    assert (facts.counted, facts.n_counted_features, set(facts.fingerprints)) == ("ml-1m", 3, {ALL, own.data})
    rows = collect._counts(ALL, params, counted=True)
    assert (set(rows["dataset"]), rows["interactions"].to_list()) == ({"ml-1m"}, [row["interactions"] for row in STEPS])
    assert set(rows["numbers"]) == {'{"least": 10}'}
    passed("processed", ALL, success=False)
    with pytest.raises(DataError, match="failed their check"):
        collect._facts(SUITE, params, inputs, {})
    without = params.model_copy(update={"suites": {SUITE: own.model_copy(update={"counts": None})}})
    assert collect._facts(SUITE, without, inputs, {}).counted == ""
