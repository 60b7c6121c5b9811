"""Bugs in secure noise: seeds that come back, low bits that show, rounding that nothing pays for (methods.md §11)."""

from __future__ import annotations

from tests.privacy.planted.mutation import Mutation

DOOR, SECURE = "tasks/privacy/noise.py", "tasks/privacy/secure.py"
TESTS = "tests/privacy/test_secure.py::"

ANY_SCALE = Mutation(
    "noise-any-scale", "noise of any scale is drawn, also where integers saturate", "§11", SECURE,
    "if not np.all(np.asarray(scale) <= LARGEST_SCALE[law]):", "if np.any(np.asarray(scale) < 0):",
    ("tests/privacy/test_noise.py::test_the_largest_noise_keeps_its_law_and_larger_noise_is_refused",
     "tests/privacy/test_noise.py::test_no_exact_count_is_released_at_the_smallest_budgets"), written="with tests read",
)  # fmt: skip
MUTATIONS = (
    Mutation(
        "secure-value-exact",
        "secure noise is added to the value as it is, not to its place on the grid",
        "§11",
        SECURE,
        "return np.float64(step) * (multiples + noise),",
        "return exact + np.float64(step) * noise,",
        written="with tests read",
        tests=(TESTS + "test_low_bits_show_nothing_of_the_value",),
    ),
    Mutation(
        "secure-growth-unpaid",
        "the scale of secure noise is the one asked for, and rounding the value is not paid for",
        "§11",
        SECURE,
        "scale * (1 + GROWTH) / step",
        "scale / step",
        written="with tests read",
        tests=(TESTS + "test_the_scale_is_larger_by_what_rounding_adds_to_the_sensitivity",),
    ),
    ANY_SCALE,
    Mutation(
        "secure-any-size",
        "arrays of any size are rounded, whatever that adds to their sensitivity",
        "§11",
        SECURE,
        "if moved > SHARE * sensitivity:",
        "if moved < 0:",
        written="with tests read",
        tests=(TESTS + "test_more_numbers_than_rounding_pays_for_are_refused",),
    ),
    Mutation(
        "secure-undecided",
        "roundings that double precision does not decide are taken as they come",
        "§11",
        SECURE,
        "np.flatnonzero((low != high) | (digits < _FEWEST))",
        "np.flatnonzero(digits < 0)",
        written="with tests read",
        tests=(TESTS + "test_the_deepest_tail_is_reached",),
    ),
    Mutation(
        "secure-one-sided",
        "secure noise has no sign",
        "§11",
        SECURE,
        "return np.where(words & np.uint64(1), -sizes, sizes)",
        "return sizes",
        written="with tests read",
        tests=(TESTS + "test_rounded_noise_has_the_probabilities_of_the_rounded_law",),
    ),
    Mutation(
        "secure-key-known",
        "the key of secure noise is a constant",
        "§11",
        SECURE,
        "key=secrets.randbits(256)",
        "key=2**255 - 19",
        written="with tests read",
        tests=(TESTS + "test_every_generator_and_every_child_has_a_key_of_its_own",),
    ),
    Mutation(
        "secure-fewer-rounds",
        "the generator of secure noise has eight rounds",
        "§11",
        SECURE,
        "rounds=20",
        "rounds=8",
        written="with tests read",
        tests=(TESTS + "test_the_generator_is_chacha_with_twenty_rounds",),
    ),
    Mutation(
        "secure-from-seed",
        "secure noise of a model comes from its seed",
        "§11",
        "tasks/models/base.py",
        "return noise.secure_generator()",
        "return noise.stream(rng, *self.named)",
        written="with tests read",
        tests=("tests/models/test_secure_noise.py::test_two_fits_of_one_seed_share_no_secure_noise[dp-popularity]",),
    ),
    Mutation(
        "secure-release-from-seed",
        "secure noise of perturbed features comes from their seed",
        "§11",
        DOOR,
        "    if secure:\n        return secure_generator()\n",
        "",
        written="with tests read",
        tests=("tests/stages/test_perturb.py::test_secure_features_follow_from_no_seed_and_their_ledger_says_so",),
    ),
    Mutation(
        "secure-state-kept",
        "checkpoints have the state of the generator of secure noise",
        "§11",
        DOOR,
        "return None if isinstance(rng, SecureGenerator) else dict(rng.bit_generator.state)",
        "return dict(rng.bit_generator.state)",
        written="with tests read",
        tests=(
            TESTS + "test_a_generator_is_neither_copied_nor_written_down",
            "tests/models/test_secure_noise.py::"
            "test_a_checkpoint_has_nothing_of_secure_noise_and_training_goes_on_with_other[dpae]",
        ),
    ),
    Mutation(
        "secure-piecewise-exact",
        "numbers of the piecewise mechanism keep their low bits",
        "§1",
        "tasks/privacy/mechanisms/piecewise.py",
        "    result = noise.on_grid(rng, result, limit)\n",
        "",
        written="with tests read",
        tests=(TESTS + "test_numbers_of_the_piecewise_mechanism_lie_on_a_grid_and_follow_its_law",),
    ),
)
