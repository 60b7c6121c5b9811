"""Controls of audits: draws have a share of their noise within `scaled`, all of it elsewhere; secure ones always."""

from collections.abc import Callable

import numpy as np
import pytest

from tasks.privacy import noise
from tasks.privacy.controls import scaled
from tasks.privacy.mechanisms import edges, piecewise, unary, words
from tests.privacy.test_secure import DRAWS, SUMS

ZEROS, LINE, BITS = np.zeros(50), np.linspace(-1, 1, 50), np.eye(50, dtype=np.float32)
EDGES = np.stack([np.zeros(50, np.int64), np.arange(1, 51)], axis=1)
COINS: dict[str, tuple[np.ndarray, Callable[[np.random.Generator, float], np.ndarray]]] = {
    "discrete laplace": (ZEROS, lambda rng, epsilon: noise.discrete_laplace(rng, "", epsilon, (50,))),
    "piecewise": (LINE, lambda rng, epsilon: piecewise.perturb(LINE, epsilon, rng)),
    "unary": (BITS, lambda rng, epsilon: unary.perturb(BITS, epsilon, rng)),
    "edges": (EDGES, lambda rng, epsilon: edges.filter_towards(EDGES, 300, 50, epsilon, rng, "rigorous")),
    "words": (np.arange(50), lambda rng, epsilon: words.substitute(np.arange(50), 0.1 * BITS, epsilon, rng)),
}
"""Law -> what is released without noise, and the release at a budget."""


def drawn(share: float, draw: Callable[[np.random.Generator, float], np.ndarray], scale: float) -> np.ndarray:
    with scaled(share):
        return draw(np.random.default_rng(0), scale)


@pytest.mark.parametrize("law", SUMS | DRAWS)
def test_additive_noise_has_its_share(law: str) -> None:
    full, half, none, again = (drawn(share, (SUMS | DRAWS)[law][1], 3.0) for share in (1, 0.5, 0, 1))
    np.testing.assert_array_equal(full, again)
    np.testing.assert_allclose(half, full / 2, rtol=1e-6)
    assert half.dtype == full.dtype
    assert full.any()
    assert not none.any()


@pytest.mark.parametrize("law", COINS)
def test_coins_are_those_of_a_larger_budget(law: str) -> None:
    exact, draw = COINS[law]
    np.testing.assert_array_equal(drawn(0.5, draw, 1.0), draw(np.random.default_rng(0), 2.0))
    none = drawn(0, draw, 1.0)
    if law == "unary":  # whose true bits stay or fall at any budget
        none[exact == 1] = 1
    np.testing.assert_allclose(none, exact, atol=1e-9)


@pytest.mark.parametrize("law", [*SUMS, *COINS])
def test_secure_noise_is_never_scaled(law: str) -> None:
    rng, (_, draw) = noise.secure_generator(), (SUMS | COINS)[law]
    with scaled(0.5), pytest.raises(ValueError, match="secure noise is never scaled"):
        draw(rng, 1.0)
    draw(rng, 1.0)


def test_noise_is_whole_again_after_an_error() -> None:
    with pytest.raises(ValueError, match=r"must be in \[0, 1\] \(is 2\)"), scaled(0), scaled(2):
        pass
    assert noise.budget(np.random.default_rng(0), 1.0) == 1.0
