"""What packages that do not import one another both say: the same, to the letter."""

from typing import Any, get_args

import pytest

from tasks.audits import AUDITS
from tasks.pages import page as words
from tasks.pipeline.papers import describe
from tasks.privacy import noise, terms, units
from tasks.privacy.accounting import ledger
from tasks.results import claims
from tests.results.made import COMMITTED, committed


def test_noise_is_drawn_in_the_ways_that_ledgers_record() -> None:
    assert get_args(noise.Mode) == get_args(ledger.Noise)


@pytest.mark.parametrize(
    ("section", "ids"),
    [
        ("gaps", terms.Gap), ("reasons", terms.Reason), ("mechanisms", terms.Mechanism), ("units", terms.Unit),
        ("conditions", terms.Condition), ("observers", terms.Observer), ("unaudited", terms.Unaudited),
        ("levels", terms.Level), ("verdicts", claims.Verdict), ("reasons_why", claims.Kind),
    ],
)  # fmt: skip
def test_every_term_has_its_english_and_no_other_has(section: str, ids: Any) -> None:
    assert set(words.english()[section]) | {""} == {*get_args(ids), ""}


def test_every_audit_has_its_worst_case_in_english() -> None:
    assert set(words.english()["worst_cases"]) == set(AUDITS)


def test_every_id_of_committed_results_has_its_english() -> None:
    known = words.english()
    for results in map(committed, COMMITTED):
        attacks = results.attacks
        assert set(results.counts["step"]) <= set(known["steps"])
        if "seen" in attacks.columns:
            assert set(attacks["attack"]) <= {*known["attacks"], *known["controls"]}
        if "world" in attacks.columns:
            assert set(attacks["system"]) <= {*known["no_systems"], *results.labels}
        of_paper = describe(results.suite.paper, results.suite.networks).english
        assert set(results.evidence["reading"].drop_nulls()) - {""} <= of_paper.keys()
        ids = {name for name in results.evidence["measure"].drop_nulls() if name.islower() and "-" in name}
        assert ids <= of_paper.keys()


def test_every_unit_of_a_finite_line_has_a_level_and_what_bounds_it() -> None:
    lines = [line for suite in COMMITTED for line in committed(suite).lines]
    finite = {line.entry.unit for line in lines if line.entry.accounted_epsilon is not None and line.entry.events}
    assert len(finite) > 8
    assert finite <= set(units.STEPS) & set(units.LEVELS)
    assert {f"{line.entry.unit} {line.entry.neighbouring}" for line in lines if line.entry.unit != "any"} <= set(
        words.english()["neighbouring"]
    )


def test_papers_that_print_the_same_columns_measure_them_alike() -> None:
    multvae, dpvae = describe("multvae"), describe("dpvae")
    tables = [table for paper in (multvae, dpvae) for table in paper.tables if table.comparable]
    assert {part for table in tables for part in table.parts} == {multvae.tables[0].parts[0]}
    assert multvae.qualities == dpvae.qualities
    assert multvae.utility == dpvae.utility
