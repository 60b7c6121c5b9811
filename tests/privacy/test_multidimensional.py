"""A user's features: ζ of them are reported, numeric columns stay unbiased, and the budget holds for all together."""

import numpy as np
import pytest

from tasks.core.contracts import Feature
from tasks.privacy.accounting.account import account
from tasks.privacy.mechanisms import multidimensional, piecewise
from tasks.privacy.remarks import gap
from tests.systems import ids

NUMBERS = tuple(Feature(name=f"number {i}", kind="numeric", low=0, high=1) for i in range(3))
COLOUR = Feature(name="colour", kind="categorical", categories=("red", "green", "blue"))
AGE = Feature(name="age", kind="numeric", low=7, high=73, bounds="fitted")
FEATURES = (*NUMBERS, COLOUR, AGE)
USER = np.array([-1, 0.25, 0.9, 0, 1, 0, -0.5], dtype=np.float32)


def users(n: int) -> np.ndarray:
    return np.tile(USER, (n, 1))


@pytest.mark.parametrize(("epsilon", "sampled"), [(0.5, 1), (5, 2), (10, 4), (20, 8), (1e-3, 1), (1e3, 21), (7.4, 2)])
def test_number_of_sampled_features(epsilon: float, sampled: int) -> None:
    """The first four are the oracle values of docs/methods.md §10."""
    assert multidimensional.sampled_features(epsilon, 21) == sampled


@pytest.mark.parametrize("epsilon", [1.0, 5.0, 7.5, 10.0, 1e3])
def test_every_user_reports_exactly_zeta_features(epsilon: float) -> None:
    """A perturbed number is 0 with probability 0, so with numbers alone the count is exact; also across chunks."""
    n = multidimensional.CHUNK + 100
    rng = np.random.default_rng(1)
    outputs = multidimensional.perturb(rng.uniform(-1, 1, (n, 3)), NUMBERS, epsilon, rng)
    assert ((outputs != 0).sum(axis=1) == multidimensional.sampled_features(epsilon, 3)).all()


def test_every_pair_of_features_is_equally_likely() -> None:
    """Five standard errors for each of 10 pairs: a false alarm in one of 170,000 runs."""
    n, rng = 100_000, np.random.default_rng(2)
    features = tuple(Feature(name=str(i), kind="numeric", low=0, high=1) for i in range(5))
    chosen = (multidimensional.perturb(np.full((n, 5), 0.5), features, 5.0, rng) != 0).astype(float)
    together = (chosen.T @ chosen / n)[np.triu_indices(5, 1)]
    assert np.abs(together - 0.1).max() <= 5 * np.sqrt(0.1 * 0.9 / n)


@pytest.mark.parametrize("epsilon", [0.5, 5.0, 10.0, 30.0])
def test_expectation_of_every_column(epsilon: float) -> None:
    """Numbers are unbiased; a bit has ζ/d' times its rate. Five standard errors per column."""
    n, rng = 200_000, np.random.default_rng(3)
    outputs = multidimensional.perturb(users(n), FEATURES, epsilon, rng).astype(np.float64)
    sampled = multidimensional.sampled_features(epsilon, 5)
    absent, present = sampled / 5 / (np.exp(epsilon / sampled) + 1), sampled / 5 / 2
    expected = np.array([-1, 0.25, 0.9, absent, present, absent, -0.5])
    assert (np.abs(outputs.mean(axis=0) - expected) <= 5 * outputs.std(axis=0) / np.sqrt(n) + 1e-6).all()


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 20.0, 1e3])
def test_numbers_are_bounded_and_bits_binary(epsilon: float) -> None:
    outputs = multidimensional.perturb(users(5_000), FEATURES, epsilon, np.random.default_rng(4))
    sampled = multidimensional.sampled_features(epsilon, 5)
    limit = 5 / sampled * piecewise.bound(epsilon / sampled)
    assert multidimensional.bound(epsilon, 5) == limit
    assert np.abs(outputs[:, [0, 1, 2, 6]]).max() <= limit * (1 + 1e-6)
    assert set(np.unique(outputs[:, 3:6])) <= {0, 1}
    assert outputs.dtype == np.float32


@pytest.mark.parametrize("epsilon", [0.5, 5.0, 20.0])
def test_the_likelihood_ratio_of_a_whole_user_is_at_most_epsilon(epsilon: float) -> None:
    """And it is a likelihood ratio: under `second`, E[exp(ratio)] = 1 (five standard errors)."""
    n, rng = 100_000, np.random.default_rng(5)
    second = np.array([1, -1, -1, 1, 0, 0, 1], dtype=np.float32)
    outputs = multidimensional.perturb(np.tile(second, (n, 1)), FEATURES, epsilon, rng)
    ratios = multidimensional.log_likelihood_ratio(outputs, USER, second, FEATURES, epsilon)
    assert np.abs(ratios).max() <= epsilon * (1 + 1e-9)
    likelihood = np.exp(ratios)
    if epsilon <= 5:  # beyond, rare outputs carry the mean and no sample of this size sees them
        assert abs(likelihood.mean() - 1) <= 5 * likelihood.std() / np.sqrt(n)


def test_results_depend_on_the_generator_alone_and_the_input_is_untouched() -> None:
    matrix = users(100)
    first = multidimensional.perturb(matrix, FEATURES, 5.0, np.random.default_rng(6))
    np.testing.assert_array_equal(first, multidimensional.perturb(matrix, FEATURES, 5.0, np.random.default_rng(6)))
    np.testing.assert_array_equal(matrix, users(100))
    assert multidimensional.perturb(users(0), FEATURES, 5.0, np.random.default_rng(6)).shape == (0, 7)


def test_ledger_accounts_for_the_budget_and_names_what_it_does_not_cover() -> None:
    entry = multidimensional.ledger(FEATURES, 10.0, n_releases=3)
    assert entry.claimed_epsilon == pytest.approx(entry.accounted_epsilon) == 10.0
    assert [event.count for event in entry.events] == [4]
    assert {gap("fitted-ranges", columns="age"), gap("side-by-side", n_releases=3)} <= set(entry.gaps)
    public = multidimensional.ledger(NUMBERS, 10.0, n_releases=1)
    assert not {"fitted-ranges", "side-by-side"} & ids(public.gaps)


def test_bounds_that_are_fitted_leave_no_finite_epsilon_but_given_them() -> None:
    """A user's own maximum is in the release's schema and scales everyone: replacing that user shows."""
    unconditional, given = multidimensional.entries(FEATURES, 10.0, n_releases=1)
    assert (unconditional.unit, unconditional.neighbouring) == ("features", "replace")
    assert (unconditional.accounted_epsilon, unconditional.claimed_epsilon) == (None, 10.0)
    assert account(unconditional.events).epsilon is None
    assert ids(unconditional.reasons) == {"fitted-bounds"}
    assert given.accounted_epsilon == pytest.approx(10.0)
    assert (given.unit, given.given) == ("features-within-bounds", ("bounds",))
    (public,) = multidimensional.entries(NUMBERS, 10.0, n_releases=1)
    assert (public.unit, public.given, public.accounted_epsilon) == ("features", (), pytest.approx(10.0))


@pytest.mark.parametrize(
    ("others", "unit", "given"),
    [((), "features-within-categories", ("categories",)), ((AGE,), "features-within-both", ("bounds", "categories"))],
)
def test_categories_that_are_read_off_the_data_leave_no_finite_epsilon_but_given_them(
    others: tuple[Feature, ...], unit: str, given: tuple[str, ...]
) -> None:
    """The only user with a category adds a column to the release: replacing that user shows."""
    disease = Feature(name="disease", kind="categorical", categories=("HIV", "none"), bounds="fitted")
    unconditional, conditional = multidimensional.entries((*others, disease), 10.0, n_releases=1)
    assert (unconditional.unit, unconditional.given) == ("features", ())
    assert (unconditional.accounted_epsilon, account(unconditional.events).epsilon) == (None, None)
    assert ids(unconditional.reasons) == {f"fitted-{condition}" for condition in given}
    assert (conditional.accounted_epsilon, conditional.given) == (pytest.approx(10.0), given)
    assert conditional.unit == unit
    assert gap("fitted-categories", columns="disease") in conditional.gaps
