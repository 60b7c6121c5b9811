"""Controls of audits: draws have a share of their noise within `scaled`, all of it elsewhere; secure ones always."""

from collections.abc import Callable

import numpy as np
import pytest

from tasks.privacy import noise
from tasks.privacy.controls import scaled
from tasks.privacy.mechanisms import edges, piecewise, unary, words

IDS = np.arange(50, dtype=np.uint64)
ZEROS, LINE, BITS = np.zeros(50), np.linspace(-1, 1, 50), np.eye(50, dtype=np.float32)
EDGES = np.stack([np.zeros(50, np.int64), np.arange(1, 51)], axis=1)
ADDITIVE: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "gaussian": lambda rng: noise.gaussian(rng, "", 3.0, 50),
    "single": lambda rng: noise.gaussian(rng, "", np.full(50, 3.0, np.float32), 50, single=True),
    "key": lambda _: noise.gaussian_by_key((1,), "", 3.0, IDS, 2).numpy(),
    "streams": lambda _: noise.gaussian_streams((1,), "", 3.0, IDS, np.full(50, 2), 2).numpy(),
    "laplace": lambda rng: noise.laplace(rng, "", 3.0, 50),
    "add_gaussian": lambda rng: noise.add_gaussian(rng, "", ZEROS, 3.0, sensitivity=1.0),
    "add_laplace": lambda rng: noise.add_laplace(rng, "", ZEROS, 3.0, sensitivity=1.0),
    "symmetric": lambda rng: noise.add_symmetric_gaussian(rng, "", np.zeros((7, 7)), 3.0, sensitivity=1.0),
}
COINS: dict[str, tuple[np.ndarray, Callable[[np.random.Generator, float], np.ndarray]]] = {
    "discrete laplace": (ZEROS, lambda rng, epsilon: noise.discrete_laplace(rng, "", epsilon, (50,))),
    "piecewise": (LINE, lambda rng, epsilon: piecewise.perturb(LINE, epsilon, rng)),
    "unary": (BITS, lambda rng, epsilon: unary.perturb(BITS, epsilon, rng)),
    "edges": (EDGES, lambda rng, epsilon: edges.filter_towards(EDGES, 300, 50, epsilon, rng, "rigorous")),
    "words": (np.arange(50), lambda rng, epsilon: words.substitute(np.arange(50), 0.1 * BITS, epsilon, rng)),
}
"""Law -> what is released without noise, and the release at a budget."""


def drawn(share: float, draw: Callable[..., np.ndarray], *budget: float) -> np.ndarray:
    with scaled(share):
        return draw(np.random.default_rng(0), *budget)


@pytest.mark.parametrize("law", ADDITIVE)
def test_additive_noise_has_its_share(law: str) -> None:
    full, half, none, again = (drawn(share, ADDITIVE[law]) for share in (1, 0.5, 0, 1))
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


@pytest.mark.parametrize("law", ["add_gaussian", "add_laplace", *COINS])
def test_secure_noise_is_never_scaled(law: str) -> None:
    draw = ADDITIVE.get(law) or (lambda rng: COINS[law][1](rng, 1.0))
    rng = noise.secure_generator()
    with scaled(0.5), pytest.raises(ValueError, match="secure noise is never scaled"):
        draw(rng)
    draw(rng)


def test_noise_is_whole_again_after_an_error() -> None:
    with pytest.raises(ValueError, match=r"must be in \[0, 1\] \(is 2\)"), scaled(0), scaled(2):
        pass
    assert noise.budget(np.random.default_rng(0), 1.0) == 1.0
