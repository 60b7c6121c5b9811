"""Sentences of committed results that are corrected as they are read, and no others."""

from __future__ import annotations

import json

import pytest

from tasks.audits import verdicts
from tasks.reporting.core import audits, corrections, ledger
from tasks.reporting.core.corrections import SENTENCES
from tests.reporting.committed import ROOT, read

SUITES = sorted(path.parent.name for path in (ROOT / "data/results").glob("*/results.json"))


@pytest.mark.parametrize("sentence", SENTENCES, ids=lambda sentence: sentence[:30])
def test_a_sentence_that_no_results_have_is_not_corrected_any_more(sentence: str) -> None:
    files = [path for name in ("results", "ledger") for path in (ROOT / "data/results").glob(f"*/{name}.json")]
    assert any(json.dumps(sentence, ensure_ascii=False)[1:-1] in path.read_text(encoding="utf-8") for path in files)


def test_rigorous_noise_of_every_epoch_holds_given_all_that_is_learnt_without_noise() -> None:
    """States that are aggregated come from item vectors and from the map of users' features, new after every step."""
    results, _, _ = read("dipsgnn")
    (system,) = (system for system in results.systems if system.name == "dipsgnn-rigorous")
    finite = [entry for spent in system.spent if (entry := spent.entry).protects == "session graph"]
    assert {round(entry.accounted_epsilon or 0.0, 2) for entry in finite} == {1.0, 3.0, 5.0}
    assert all("of every step, the item vectors and the map of users' features" in entry.given for entry in finite)
    assert all("from the second step on" in entry.reason for entry in finite)


def test_what_dp_vae_says_of_its_data_needs_no_correction_any_more() -> None:
    results, _, _ = read("dpvae")
    assert "Table 9 a claim in words alone" in results.limits
    assert "settings of its package" not in results.limits


def test_a_claim_below_what_a_line_accounts_for_is_not_consistent() -> None:
    """SVD and MF on MovieLens Latest (small): claimed 1, accounted 1.449, by the audit of an easier line."""
    assert corrections.ROUNDED == verdicts.ROUNDED, "reports may not import audits, and hold to their bound"
    results, _, _ = read("dpvae-ml-latest-small")
    judged = [line for line in ledger.lines(results) if line.audit and line.entry.accounted_epsilon is not None]
    above = [line for line in judged if line.entry.accounted_epsilon > 1.001 * line.audit["epsilon_claimed"]]
    assert {line.system.label for line in above} >= {"svd", "mf"}
    assert not [line for line in above if line.audit["verdict"] == "consistent"]


def test_a_claim_of_which_nothing_finite_follows_is_not_consistent() -> None:
    """The published filter at ε = 5: 90,000 samples refute it, the 40,000 of the suite do not."""
    results, _, _ = read("dpcrosue")
    weak = next(
        record for record in results.audit if record["audit"] == "edges/filled" and record["epsilon_claimed"] == 5.0
    )
    assert (weak["epsilon_accounted"], weak["verdict"]) == (None, "inconclusive")


@pytest.mark.parametrize("suite", SUITES)
def test_an_audit_says_no_more_than_it_shows(suite: str) -> None:
    results, _, _ = read(suite)
    written = json.loads((ROOT / "data/results" / suite / "results.json").read_text(encoding="utf-8"))["audit"]
    for said, was in zip(results.audit, written, strict=True):
        for name in ("audited_epsilon", "provable"):
            assert 0.99 * was[name] <= said[name] <= was[name]
            assert audits.saturation_note(was) == "" or audits.saturation_note(said)
            assert said[name] == 0 or float(f"{said[name]:.3g}") == said[name]
        assert float(f"{100 * said['confidence']:.6g}") <= 100 * was["confidence"]
        assert said["controls"] == {} or "controls" in was
        assert said["verdict"] in (was["verdict"], "inconclusive")
        assert said["verdict"] != "consistent" or said["controls"]
    for line in ledger.lines(results):
        if line.audit is not None:
            assert line.audit["verdict"] != "consistent" or line.entry.accounted_epsilon is not None
            assert line.audit["audit"] != corrections.ABOVE_CAP
            claimed_of_an_entry = line.entry.neighbouring == corrections.AS_A_VISIT
            assert (corrections.TESTED in line.entry.gaps) == claimed_of_an_entry


@pytest.mark.parametrize(
    ("bound", "shown"), [(3.84836, 3.84), (5.0, 5.0), (0.54, 0.54), (12.0396, 12.0), (0.0, 0.0), (float("inf"),) * 2]
)
def test_bounds_are_rounded_down(bound: float, shown: float) -> None:
    assert corrections._rounded_down(bound) == shown
