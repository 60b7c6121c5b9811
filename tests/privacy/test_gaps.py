"""Whatever a finite ε does not cover is named beside it."""

import pytest

from tasks.privacy.accounting import gaps
from tests.models import test_contract, test_next_item_contract

ONCE = ("dp-popularity", "dpmf-rigorous", "dpals")
BY_EPOCHS = ("dpae", "dpvae-rigorous", "dpvae-compact", "dpsgd")


@pytest.mark.parametrize("name", [*ONCE, *BY_EPOCHS])
def test_a_guarantee_is_given_the_configuration_and_names_what_it_does_not_cover(name: str) -> None:
    if name in test_contract.CONFIGS:
        model = test_contract.fitted(name, test_contract.checkerboard()[0], **test_contract.short(name))
    else:
        model = test_next_item_contract.quickly(name, test_next_item_contract.grammar())
    entries = [entry for entry in model.ledger() if entry.accounted_epsilon is not None]
    assert entries
    for entry in entries:
        assert entry.given == (gaps.GIVEN if name in ONCE else gaps.GIVEN_EPOCH)
        assert set(gaps.ONCE if name in ONCE else gaps.BY_EPOCHS) <= set(entry.gaps)


def test_a_delta_means_little_above_one_in_all_users() -> None:
    assert gaps.large_delta(0.1, 10) == ()
    assert "one in 10 users" in gaps.large_delta(0.11, 10)[0]
