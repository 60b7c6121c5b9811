"""Secure noise: its laws, the grid that it lies on, what pays for the grid, and that nothing of it can be drawn again.

The generator's key is patched where a test needs the same numbers twice. Statistical tests fix it: a sound law fails
once in 10,000 keys.
"""

import copy
import math
import pickle
from collections.abc import Callable
from itertools import combinations, permutations
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.special import ndtri

from tasks.privacy import noise, secure
from tasks.privacy.mechanisms import piecewise
from tasks.privacy.secure import SecureGenerator

N = 20_000
KEY = int.from_bytes(bytes(range(32)), "little")
LAWS: tuple[secure.Law, ...] = ("gaussian", "laplace")
CONTINUOUS = {"gaussian": stats.norm, "laplace": stats.laplace}
HALF, SIX = stats.norm(0, 1 / 2**0.5), stats.randint(0, 6)
SINGLES, IDS, MANY = np.zeros(N, np.float32), np.arange(100, dtype=np.uint64), np.full(100, N // 200)
SETS, ORDERS = [set(of) for of in combinations(range(4), 2)], list(permutations(range(3)))


@pytest.fixture
def keyed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every generator has the same key."""
    monkeypatch.setattr("secrets.randbits", lambda bits: KEY if bits == 256 else 1 / 0)


def add(law: secure.Law, value: NDArray[np.floating], scale: float, sensitivity: float = 1.0) -> NDArray[np.float64]:
    door = noise.add_gaussian if law == "gaussian" else noise.add_laplace
    return door(SecureGenerator(), "", value, scale, sensitivity=sensitivity)


def cells(law: secure.Law, scale: float, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities of ..edges[0], edges[0]..edges[1], ..., edges[-1].. under the continuous law."""
    below = CONTINUOUS[law].cdf(edges, scale=scale)
    return np.diff(np.concatenate([[0.0], below, [1.0]]))


@pytest.mark.usefixtures("keyed")
def test_the_generator_is_chacha_with_twenty_rounds() -> None:
    """The first block of RFC 8439's cipher, its counter and nonce 0, under the key 00 01 .. 1f."""
    block = SecureGenerator().bit_generator.random_raw(8).tobytes().hex()
    assert block == (
        "39fd2b7dd9c5196a8dbd0377b8dc4a498a35d86fbcde6accb2cc7d4cd8ea2492"
        "2b23cce7a26023ab3f0eef693ac87f64258235eab1f7a32dc22762a0485b410c"
    )


def test_every_generator_and_every_child_has_a_key_of_its_own() -> None:
    first = SecureGenerator()
    streams = [rng.random(1000) for rng in (first, SecureGenerator(), *first.spawn(2))]
    assert np.abs(np.corrcoef(streams)[np.triu_indices(4, 1)]).max() < 7 / math.sqrt(1000)


def test_a_generator_is_neither_copied_nor_written_down() -> None:
    rng = noise.secure_generator()
    for save in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="neither copied nor saved"):
            save(rng)
    assert noise.state(rng) is None
    assert noise.state(np.random.default_rng(0)) == np.random.default_rng(0).bit_generator.state


@pytest.mark.usefixtures("keyed")
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [0.6, 3.0])
def test_rounded_noise_has_the_probabilities_of_the_rounded_law(law: secure.Law, scale: float) -> None:
    drawn = secure.draw_rounded(SecureGenerator(), law, scale, N)
    edges = np.arange(-math.ceil(2 * scale), math.ceil(2 * scale) + 1) + 0.5
    observed = np.bincount(np.searchsorted(edges, drawn), minlength=len(edges) + 1)
    assert stats.chisquare(observed, N * cells(law, scale, edges)).pvalue > 1e-4


@pytest.fixture
def source(mode: noise.Mode, keyed: None) -> np.random.Generator:
    """A generator of either mode that draws the same again."""
    del keyed
    return noise.secure_generator() if mode == "secure" else np.random.default_rng(1)


def to_zeros(door: Callable[..., Any], rng: np.random.Generator, scale: float, *shape: int) -> NDArray[np.float64]:
    return door(rng, "", np.zeros((N, *shape)), scale, sensitivity=scale / 3)


Law = tuple[stats.rv_continuous, Callable[[np.random.Generator, float], np.ndarray]]
SUMS: dict[str, Law] = {
    "gaussian": (stats.norm, lambda rng, std: to_zeros(noise.add_gaussian, rng, std)),
    "of singles": (stats.norm, lambda rng, std: noise.add_gaussian(rng, "", SINGLES, std, sensitivity=std / 3)),
    "laplace": (stats.laplace, lambda rng, scale: to_zeros(noise.add_laplace, rng, scale)),
    "diagonal": (stats.norm, lambda rng, std: to_zeros(noise.add_symmetric_gaussian, rng, std, 2, 2)[:, 1, 1]),
    "symmetric": (HALF, lambda rng, std: to_zeros(noise.add_symmetric_gaussian, rng, std, 2, 2)[:, 0, 1]),
}
"""Law at scale 1, and noise added to nothing at a scale; `DRAWS` have no secure mode."""
DRAWS: dict[str, Law] = {
    "drawn": (stats.norm, lambda rng, std: noise.gaussian(rng, "", std, N)),
    "single": (stats.norm, lambda rng, std: noise.gaussian(rng, "", np.full(N, std, np.float32), N, single=True)),
    "key": (stats.norm, lambda _, std: noise.gaussian_by_key((5, 7), "", std, np.arange(N), 1).numpy().ravel()),
    "streams": (stats.norm, lambda _, std: noise.gaussian_streams((5, 7), "", std, IDS, MANY, 2).numpy().ravel()),
    "drawn laplace": (stats.laplace, lambda rng, scale: noise.laplace(rng, "", scale, N)),
}
EITHER = [*SUMS.values(), (stats.uniform, lambda rng, scale: scale * noise.uniform(rng, "", N))]
RESEARCH = [*DRAWS.values(), (stats.expon, lambda rng, scale: scale * noise.exponential(rng, "", (N,)))]


@pytest.mark.parametrize(
    ("mode", "law"), [("secure", law) for law in EITHER] + [("research", law) for law in EITHER + RESEARCH]
)
def test_numbers_follow_their_law(law: Law, source: np.random.Generator) -> None:
    """Kolmogorov and Smirnov: a sound law fails once in 10,000 (seeds are fixed, so never)."""
    assert stats.kstest(law[1](source, 3.0) / 3, law[0].cdf).pvalue > 1e-4


@pytest.mark.parametrize("mode", ["research", "secure"])
@pytest.mark.parametrize(
    ("draw", "law"),
    [
        (lambda rng: noise.discrete_laplace(rng, "", 0.1, (N,)), stats.dlaplace(0.1)),
        (lambda rng: noise.discrete_laplace(rng, "", 1.5, (N,)), stats.dlaplace(1.5)),
        (lambda rng: [noise.binomial(rng, "", 4, 0.3) for _ in range(2000)], stats.binom(4, 0.3)),
        (lambda rng: noise.integers(rng, "", 5, N), stats.randint(0, 5)),
        (lambda rng: [SETS.index({*noise.subset(rng, "", IDS[:4], 2)}) for _ in range(2000)], SIX),
        (lambda rng: [ORDERS.index((*noise.order(rng, "", 3),)) for _ in range(2000)], SIX),
    ],
)
def test_whole_numbers_and_choices_follow_their_law(
    draw: Callable[[np.random.Generator], Any], law: stats.rv_discrete, source: np.random.Generator
) -> None:
    """Chi-square at 1e-4, what is rare being joined; what is impossible never comes."""
    drawn, values = np.asarray(draw(source)), np.arange(-60, 61)
    expected = len(drawn) * law.pmf(values)
    common = expected >= 5
    observed = (drawn[:, None] == values[common]).sum(0)
    assert law.pmf(drawn).all()
    rare, others = len(drawn) - observed.sum(), len(drawn) - expected[common].sum()
    distance = ((observed - expected[common]) ** 2 / expected[common]).sum() + (rare - others) ** 2 / max(others, 1)
    assert stats.chi2.sf(distance, common.sum()) > 1e-4


@pytest.mark.usefixtures("keyed")
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("scale", "offset"), [(1.7, 0.5), (2.0**36, 0.5), (0.4, 0.0)])
def test_quantiles_and_comparisons_decide_alike(
    law: secure.Law, scale: float, offset: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    digits = np.concatenate([
        SecureGenerator().bit_generator.random_raw(40) >> np.uint64(1),
        np.array([2**62, 2**63 - 1, 2**50 + 12345, 2**41], np.uint64),
    ])  # fmt: skip
    fast = secure._floors(SecureGenerator(), law, digits, scale, offset)
    monkeypatch.setattr(secure, "_FEWEST", 1 << 63)
    assert (secure._floors(SecureGenerator(), law, digits, scale, offset) == fast).all()


@pytest.mark.usefixtures("keyed")
@pytest.mark.parametrize("law", LAWS)
def test_the_deepest_tail_is_reached(law: secure.Law) -> None:
    """Its first 63 bits are 0: at least 9 standard deviations out, or 43 times the scale."""
    (size,) = secure._floors(SecureGenerator(), law, np.zeros(1, np.uint64), 2.0**36, 0.5) / 2.0**36
    assert 9.0 < size < 13.0 if law == "gaussian" else 43.6 < size < 80.0


@pytest.mark.parametrize("law", LAWS)
def test_double_precision_errs_by_an_eighth_of_what_is_allowed(law: secure.Law) -> None:
    """Quantiles of 500 tail probabilities down to 2^-40, held to 60 digits."""
    tails = np.random.default_rng(0).random(500) * 2.0 ** -np.random.default_rng(1).integers(0, 41, 500)
    sizes = -ndtri(tails / 2) if law == "gaussian" else -np.log(tails)
    with mpmath.workprec(200):
        for tail, size in zip(tails, sizes, strict=True):
            error = secure._MARGIN / 8 * (1 + size)
            low, high = (
                mpmath.erfc(mpmath.mpf(at) / mpmath.sqrt(2)) if law == "gaussian" else mpmath.exp(-mpmath.mpf(at))
                for at in (size + error, size - error)
            )
            assert low < tail < high


@pytest.mark.usefixtures("keyed")
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [0.7, 1.0, 250.0])
def test_low_bits_show_nothing_of_the_value(law: secure.Law, scale: float) -> None:
    """All outputs are multiples of one step, which the scale decides, and what is below half a step is not in them."""
    rng, step = np.random.default_rng(0), secure.grid(scale)
    value, other = rng.normal(size=(2, 50, 4))
    for exact in (value, other, value.astype(np.float32).astype(np.float64)):
        multiples = add(law, exact, scale) / step
        assert (multiples == np.rint(multiples)).all()
        assert np.array_equal(multiples, np.rint(exact / step) + add(law, np.zeros_like(exact), scale) / step)
    on_grid = np.rint(value / step) * step
    assert np.array_equal(add(law, on_grid + 0.4 * step, scale), add(law, on_grid, scale))
    assert 2**secure.GRID_BITS <= scale / step < 2 ** (secure.GRID_BITS + 1)


@pytest.mark.usefixtures("keyed")
@pytest.mark.parametrize("law", LAWS)
def test_the_scale_is_larger_by_what_rounding_adds_to_the_sensitivity(law: secure.Law) -> None:
    drawn = secure.draw_rounded(SecureGenerator(), law, 3.0 * (1 + secure.GROWTH) / secure.grid(3.0), 100)
    assert np.array_equal(add(law, np.zeros(100), 3.0), drawn * secure.grid(3.0))
    arrays = 256 if law == "gaussian" else 16
    together = secure.SHARE * (math.sqrt(arrays) if law == "gaussian" else arrays)
    assert together <= secure.GROWTH


@pytest.mark.parametrize(("law", "most"), [("gaussian", 2**44), ("laplace", 2**22)])
def test_more_numbers_than_rounding_pays_for_are_refused(law: secure.Law, most: int) -> None:
    """At a scale of 1 and a sensitivity of 1; arrays of one number in memory."""
    fits, more = (np.broadcast_to(np.zeros(1), count) for count in (64, most + 1))
    add(law, fits, 1.0, math.sqrt(64 / most) if law == "gaussian" else 64 / most)
    with pytest.raises(ValueError, match=f"secure noise: {most + 1} numbers are too many"):
        add(law, more, 1.0)


def test_a_value_beyond_the_grid_is_cut_off() -> None:
    low, high = add("gaussian", np.array([-1e30, 1e30]), 1.0)
    assert high == pytest.approx(2.0**26, rel=1e-6)
    assert low == pytest.approx(-(2.0**26), rel=1e-6)
    large = np.array([7e5, -4e5, 5e7])  # counts of many users, with the noise of few: 2^53 steps and more
    assert add("gaussian", large, 1.0) == pytest.approx(large, abs=12)


def test_noise_that_would_be_added_in_floating_point_is_refused() -> None:
    rng = noise.secure_generator()
    for draw in (
        lambda: noise.gaussian(rng, "", 1.0, 3),
        lambda: noise.laplace(rng, "", 1.0, 3),
        lambda: noise.exponential(rng, "", (3,)),
        lambda: noise.key(rng),
    ):
        with pytest.raises(ValueError, match="has no secure form"):
            draw()


def test_research_adds_the_noise_that_it_draws() -> None:
    """Bit by bit: rounded to the value's precision, then added."""
    value, square = np.random.default_rng(0).normal(size=(2, 3, 3)), np.eye(3)
    single = value[0].astype(np.float32)

    def rng() -> np.random.Generator:
        return np.random.default_rng(7)

    drawn = noise.gaussian(rng(), "", 2.0, (3, 3))
    assert np.array_equal(noise.add_gaussian(rng(), "", value[0], 2.0, sensitivity=1.0), value[0] + drawn)
    added = noise.add_gaussian(rng(), "", single, 2.0, sensitivity=1.0)
    assert added.dtype == np.float32
    assert np.array_equal(added, single + drawn.astype(np.float32))
    symmetric = noise.add_symmetric_gaussian(rng(), "", square, 2.0, sensitivity=1.0)
    assert np.array_equal(symmetric, square + (drawn + drawn.T) / 2)
    noisy = noise.add_laplace(rng(), "", value[0], 2.0, sensitivity=1.0)
    assert np.array_equal(noisy, value[0] + noise.laplace(rng(), "", 2.0, (3, 3)))
    assert noise.on_grid(rng(), value, 2.0) is value


@pytest.mark.usefixtures("keyed")
def test_the_recorder_gets_secure_noise_as_it_was_added() -> None:
    rng, value = noise.secure_generator(), np.arange(4.0)
    with noise.recording() as draws:
        gaussian = noise.add_gaussian(rng, "a", value, 2.0, sensitivity=1.0)
        laplacian = noise.add_laplace(rng, "b", value, 2.0, sensitivity=1.0)
        symmetric = noise.add_symmetric_gaussian(rng, "c", np.eye(2), 2.0, sensitivity=1.0)
    assert [(draw.release, draw.law, draw.scale) for draw in draws] == [
        ("a", "gaussian", 2.0), ("b", "laplace", 2.0), ("c", "gaussian", 2.0),
    ]  # fmt: skip
    assert np.array_equal(gaussian, value + 2.0 * draws[0].values)
    assert np.array_equal(laplacian, value + draws[1].values)
    assert np.array_equal(symmetric, np.eye(2) + 2.0 * (draws[2].values + draws[2].values.T) / 2)


@pytest.mark.usefixtures("keyed")
def test_numbers_of_the_piecewise_mechanism_lie_on_a_grid_and_follow_its_law() -> None:
    """Two samples, one of research: Kolmogorov and Smirnov."""
    values, epsilon = np.full(N, 0.3), 1.5
    secret = piecewise.perturb(values, epsilon, noise.secure_generator())
    limit = piecewise.bound(epsilon)
    multiples = secret[np.abs(secret) < limit] * 2.0**noise.FINEST / 2.0 ** math.floor(math.log2(limit))
    assert (multiples == np.rint(multiples)).all()
    assert not np.signbit(secret[secret == 0]).any()
    assert stats.ks_2samp(secret, piecewise.perturb(values, epsilon, np.random.default_rng(1))).pvalue > 1e-4
