"""What noise is drawn from stays where training ran: saved models have no key, generator state or table of noise."""

import pytest

from tests.models import test_contract, test_next_item_contract, test_rating_contract

KEYED = {"dipsgnn", "dipsgnn-rigorous", "dipsgnn-cached", "priv-u", "nonp", "nonp-u", "edgerand"}
"""Known to break the rule: their `noise_key` is saved with them. Whoever mends one takes it out here."""
SECRET = ("_key", "rng", "generator", "noise", "seed")
PUBLIC = {"noise_multiplier"}
NAMES = [*test_contract.CONFIGS, *test_next_item_contract.CONFIGS, *test_rating_contract.CONFIGS]


def saved(name: str) -> set[str]:
    if name in test_contract.CONFIGS:
        model = test_contract.fitted(name, test_contract.checkerboard()[0], **test_contract.short(name))
    elif name in test_next_item_contract.CONFIGS:
        model = test_next_item_contract.quickly(name, test_next_item_contract.grammar())
    else:
        model = test_rating_contract.fitted(name, test_rating_contract.ratings(0.3))
    return set(model.released())


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_model_holds_no_secret(name: str) -> None:
    secrets = {one for one in saved(name) - PUBLIC if any(word in one.rpartition(".")[2] for word in SECRET)}
    assert secrets == ({"noise_key"} if name in KEYED else set())
