"""What noise is drawn from stays where training ran: saved models have no key, generator state or table of noise."""

import pytest

from tests.models.contract import LISTS, RATINGS, SEQUENCES, trained

SECRET = ("_key", "rng", "generator", "noise", "seed")
PUBLIC = {"noise_multiplier"}


@pytest.mark.parametrize("name", [*LISTS, *SEQUENCES, *RATINGS])
def test_a_saved_model_holds_no_secret(name: str) -> None:
    tensors = set(trained(name).released()) - PUBLIC
    assert not {tensor for tensor in tensors if any(word in tensor.rpartition(".")[2] for word in SECRET)}
