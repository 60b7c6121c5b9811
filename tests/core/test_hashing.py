"""Uniform numbers by published ids: their law, independence of whatever differs, and a slow and obvious twin."""

from hashlib import blake2b

import numpy as np
import pytest
from scipy.stats import kstest

from tasks.core.hashing import Uniforms, keys, uniform

FALSE_ALARM = 1e-6
MASK = 2**64 - 1


def obvious(seed: int, purpose: str, *names: object) -> float:
    """One number in Python's integers."""

    def digest(*parts: bytes) -> int:
        data = b"".join(len(part).to_bytes(8, "little") + part for part in parts)
        return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")

    state = 0
    for part in (digest(str(seed).encode(), purpose.encode()), *(digest(str(name).encode()) for name in names)):
        state = (state + 0x9E3779B97F4A7C15 * (part + 1)) & MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & MASK
        state ^= state >> 31
    return (state >> 11) / 2**53


@pytest.mark.parametrize("ids", [[3, 1, 10**12], ["a", "", "Ärger"]])
def test_numbers_equal_the_obvious_ones(ids: list[object]) -> None:
    draws = Uniforms.of(5, ids, ids[::-1])
    assert draws.of_users("users").tolist() == [obvious(5, "users", name) for name in ids]
    assert draws.of_items("items").tolist() == [obvious(5, "items", name) for name in ids[::-1]]
    pairs = draws.of_pairs("split", np.array([0, 2]), np.array([1, 1]))
    assert pairs.tolist() == [obvious(5, "split", ids[0], ids[1]), obvious(5, "split", ids[2], ids[1])]
    assert keys([7]) == keys(["7"])


@pytest.mark.parametrize("ids", [range(40_000), [f"user {n}" for n in range(40_000)], range(0, 40_000 * 1024, 1024)])
def test_numbers_are_uniform_and_independent_of_other_purposes_seeds_and_ids(ids: list[object]) -> None:
    draws, n = Uniforms.of(1, ids, ids), np.arange(40_000)
    first = draws.of_pairs("split", n, n)
    assert kstest(first, "uniform").pvalue > FALSE_ALARM
    others = [
        draws.of_pairs("fold", n, n), Uniforms(2, draws.users, draws.items).of_pairs("split", n, n),
        draws.of_pairs("split", n, n[::-1]), draws.of_pairs("split", n[::-1], n), draws.of_users("split"),
        draws.of_pairs("split", n, np.zeros_like(n)), draws.of_pairs("split", np.zeros_like(n), n), first[::-1],
        np.roll(first, 1), draws.of_pairs("split", n, n, np.ones_like(n)),
    ]  # fmt: skip
    for other in others:
        assert kstest(other, "uniform").pvalue > FALSE_ALARM
        cells = np.histogram2d(first, other, 8)[0]
        assert abs(np.corrcoef(first, other)[0, 1]) < 5 * 40_000**-0.5
        assert ((cells - 625) ** 2 / 625).sum() < 130  # 63 degrees of freedom: 1.6e-6


def test_no_two_of_a_million_pairs_share_a_number() -> None:
    assert len(np.unique(uniform(0, "", *np.divmod(np.arange(1_000_000), 1000)))) > 999_990
