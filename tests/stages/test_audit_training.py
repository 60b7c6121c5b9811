"""Stage `audit-training`: trained systems are audited with canaries, the control finds them, and lies end the stage."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tasks.config.params import load
from tasks.core.errors import ConfigurationError, PrivacyError
from tasks.pipeline.common import RUNS, digest, read_json
from tasks.privacy.mechanisms import dpsgd
from tasks.stages import audit_training
from tests.stages import tiny
from tests.stages.test_train import interactions

N_ITEMS = 200
CONFIG = {
    "epochs": 60, "batch_size": tiny.N_USERS, "learning_rate": 0.5, "momentum": 0.5, "dimension": 3, "init_std": 0.1,
    "epsilon": 1.0, "delta": 1e-4, "clip_norm": 2.0,
}  # fmt: skip
NOISE_OFF = {"epsilon": math.inf}
AUDIT = {
    "experiments": {"tiny-dpae": {"settings": ["base", "epsilon=4.0"], "control": NOISE_OFF}},
    "canaries": 60,
    "items": 3,
    "guesses": 30,
    "confidence": 0.8,
    "seed": 0,
}


def build(root: Path, **changes: Any) -> None:
    dpae = tiny.experiment("dpae", CONFIG, seeds=[0], sweep=[{"epsilon": 4.0}, {"epsilon": math.inf}])
    experiments = {"tiny-dpae": dpae, "tiny-counts": tiny.COUNTS | {"seeds": [0]}}
    tiny.build(root, experiments=experiments, suites=tiny.suites(), training_audit=changes.get("audit", AUDIT))
    tiny.write_interactions(interactions(), n_items=N_ITEMS)


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_every_setting_is_audited_by_both_auditors_beside_a_control_that_finds_the_canaries(tmp_path: Path) -> None:
    """Any of the four bounds is wrong with probability 0.2 at most, each with 0.05."""
    build(tmp_path)
    audit_training.main("tiny")
    records = read_json(RUNS / "tiny" / "one_run.json")
    about = [(record["setting"], record["auditor"]) for record in records]
    assert about == [(setting, auditor) for setting in ("base", "epsilon=4.0") for auditor in ("network", "steps")]
    for record in records:
        claim = 1.0 if record["setting"] == "base" else 4.0
        assert record["claimed"] == claim
        assert 0.98 * claim < record["accounted"] <= claim
        assert record["epsilon"] <= record["accounted"]
        assert record["delta"] == 1e-4
        assert (record["canaries"], record["guesses"], record["confidence"]) == (60, 30, pytest.approx(0.95))
        assert 1 < record["control"] <= record["provable"]
        assert 0 <= record["control_half"] <= record["control"]
    assert records[1]["control"] > 1.5  # of the auditor who sees steps
    first = digest(RUNS / "tiny" / "one_run.json")
    audit_training.main("tiny")
    assert digest(RUNS / "tiny" / "one_run.json") == first


def test_noise_that_is_off_ends_the_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(tmp_path, audit=AUDIT | {"experiments": {"tiny-dpae": {"settings": ["base"], "control": NOISE_OFF}}})
    monkeypatch.setattr(dpsgd, "noise_multiplier", lambda *_: 1e-3)
    monkeypatch.setattr("tasks.privacy.accounting.account.account", lambda *_: type("Spent", (), {"epsilon": 1.0}))
    with pytest.raises(
        PrivacyError, match=r"tiny-dpae, base: accounted at epsilon 1, but its training proves at least"
    ):
        audit_training.main("tiny")
    records = read_json(RUNS / "tiny" / "one_run.json")
    assert records[1]["epsilon"] > records[1]["claimed"]


@pytest.mark.parametrize(
    ("audit", "message"),
    [
        (
            AUDIT | {"experiments": {"tiny-dpae": {"settings": ["epsilon=2.0"], "control": NOISE_OFF}}},
            "a setting other than base, epsilon=4.0",
        ),
        (AUDIT | {"experiments": {"tiny-counts": {"settings": ["base"], "control": {}}}}, "dp-popularity does not"),
        (AUDIT | {"experiments": {"tiny-dpae": {"settings": ["base"], "control": {"sigma": 0}}}}, "sigma"),
        (AUDIT | {"items": N_ITEMS + 1}, "items each"),
    ],
)
def test_what_cannot_be_audited_is_refused(audit: dict[str, Any], message: str, tmp_path: Path) -> None:
    build(tmp_path, audit=audit)
    with pytest.raises(ConfigurationError, match=message):
        tiny.run(audit_training.main, "tiny")


def test_canaries_do_not_change_the_share_of_users_in_a_step(tmp_path: Path) -> None:
    """A fifth of the users, with 60 canaries as without: noise and number of steps are the experiment's."""
    build(tmp_path)
    params = load()
    config = CONFIG | {"batch_size": tiny.N_USERS // 5}
    audit = params.suites["tiny"].training_audit
    run = audit_training.Audited("tiny-dpae", config, "tiny", audit, params)
    model = run._model(config)
    assert model.config.batch_size == (tiny.N_USERS + 60) // 5
    assert np.isclose(model.config.batch_size / (tiny.N_USERS + 60), config["batch_size"] / tiny.N_USERS)
