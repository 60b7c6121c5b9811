"""What packages that do not import one another both say: the same, to the letter."""

from __future__ import annotations

from typing import get_args

from tasks.attacks import edges as attacked
from tasks.privacy import noise
from tasks.privacy.accounting import ledger
from tasks.privacy.mechanisms import multidimensional
from tasks.reporting import files
from tasks.reporting.core import units
from tasks.reporting.sections import edges as shown
from tasks.stages import table
from tasks.stages.papers import describe


def test_reports_read_the_files_that_the_table_of_stages_names() -> None:
    assert table.RESULTS == files.WRITTEN


def test_the_attack_on_interactions_and_its_section_name_the_same_controls() -> None:
    assert attacked.CONTROLS == shown.CONTROLS


def test_noise_is_drawn_in_the_ways_that_ledgers_record() -> None:
    assert get_args(noise.Mode) == get_args(ledger.Noise)


def test_perturbed_features_are_a_unit_by_the_words_of_their_mechanism() -> None:
    assert multidimensional.REPLACED == units.FEATURES
    assert f"{multidimensional.REPLACED}, given {multidimensional.BOUNDS}" == units.FEATURES_GIVEN


def test_papers_that_print_the_same_columns_measure_them_alike() -> None:
    multvae, dpvae = describe("multvae"), describe("dpvae")
    assert {part for paper in (multvae, dpvae) for table in paper.tables for part in table.parts} == {
        multvae.tables[0].parts[0]
    }
    assert multvae.qualities == dpvae.qualities
    assert multvae.utility == dpvae.utility
