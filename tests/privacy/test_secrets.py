"""What noise is drawn from stays where training ran: saved models have no key, generator state or table of noise."""

import pytest

from tests.models import test_contract, test_next_item_contract, test_rating_contract

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
    secrets = {tensor for tensor in saved(name) - PUBLIC if any(word in tensor.rpartition(".")[2] for word in SECRET)}
    assert secrets == set()
