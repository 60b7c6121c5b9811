"""The published noise is the theorem's, a visit's influence is bounded and reached, and rigorous noise is enough."""

import itertools
import math

import numpy as np
import pytest

from tasks.privacy.accounting.account import account
from tasks.privacy.mechanisms import aggregation
from tasks.privacy.mechanisms.aggregation import VISIT_SENSITIVITY, release_event, rigorous_sigma


def by_item(transitions, vectors):
    """Both aggregates with one row per item, from (place, item, place, item) of every transition: slow and obvious."""
    return by_visit([(i, i, j, j) for _, i, _, j in transitions], vectors)


def by_visit(transitions, vectors):
    """The same with one row per visit."""
    out, into = np.zeros((2, 8, vectors.shape[1]))
    for place, i, next_place, j in transitions:
        out[place] += vectors[j]
        into[next_place] += vectors[i]
    return np.concatenate([out, into])


def transitions_of(sequence, removed=None):
    """Those between consecutive visits, of which one may be removed; places are those in the whole sequence."""
    kept = [(place, item) for place, item in enumerate(sequence) if place != removed]
    return [(*first, *second) for first, second in itertools.pairwise(kept)]


def test_the_oracle():
    assert aggregation.sigma(steps=1, clip=0.5, delta=2.5e-7, epsilon=4.0) == pytest.approx(0.732, abs=5e-4)


@pytest.mark.parametrize(("clip", "noise", "spent"), [(0.2, 0.0564, 25.9), (0.1, 0.0141, 64.3), (0.3, 0.1268, 15.8)])
def test_the_theorem_at_the_noise_of_the_authors_code(clip, noise, spent):
    """ML-1M, Yelp and Tmall at the paper's C, ε2 = 5 and δ = 2.5e-7: σ² in place of σ."""
    drawn = aggregation.released_sigma(1, clip, 5.0, 2.5e-7)
    assert drawn == aggregation.sigma(1, clip, 5.0, 2.5e-7) ** 2 == pytest.approx(noise, abs=5e-5)
    assert aggregation.epsilon(1, clip, drawn, 2.5e-7) == pytest.approx(spent, abs=0.05)


def test_noise_and_budget_are_inverse():
    budgets, deltas = [1e-9, 1e-3, 4.0, 1e3, 1e9], [1e-12, 2.5e-7, 0.5, 0.999]
    grid = list(itertools.product([1, 3], [1e-3, 0.4, 7.0], budgets, deltas))
    noises = [aggregation.sigma(*settings) for settings in grid]
    steps, clips, budgets, deltas = np.array(grid).T
    ratios = clips / noises
    spent = steps * ratios**2 / 2 + ratios * np.sqrt(2 * steps * np.log(1 / deltas))
    np.testing.assert_allclose(spent, budgets, rtol=1e-9)
    back = [aggregation.epsilon(n, clip, noise, delta) for (n, clip, _, delta), noise in zip(grid, noises, strict=True)]
    np.testing.assert_allclose(back, budgets, rtol=1e-9)


@pytest.mark.parametrize("budget", [0.01, 1.0, 4.0, 100.0])
def test_the_theorem_is_true_for_the_sensitivity_that_it_assumes(budget):
    """... and claims no less than the exact epsilon of as many Gaussian releases."""
    delta, steps = 2.5e-7, 2
    noise = aggregation.sigma(steps, 0.4, budget, delta)
    exact = account([release_event(noise, 0.4 / VISIT_SENSITIVITY, steps)], delta).epsilon
    assert 0 < exact <= budget


def test_a_visit_moves_more_than_the_theorem_assumes():
    """Its published noise for epsilon 4, one release, accounted for what a removed visit changes."""
    noise = aggregation.sigma(1, 0.4, 4.0, 2.5e-7)
    spent = account([release_event(noise, 0.4, 1)], 2.5e-7).epsilon
    assert spent > 4.0 * math.sqrt(10)


@pytest.mark.parametrize("rows", [by_item, by_visit])
def test_no_visit_moves_the_aggregates_further_than_its_sensitivity(rows):
    """All sequences of up to five visits of three items, every visit, every choice of signs (which reach the worst
    case) and random directions."""
    rng = np.random.default_rng(0)
    signs = [np.array(choice)[:, None] for choice in itertools.product([-1.0, 1.0], repeat=3)]
    random = rng.normal(size=(4, 3, 2))
    directions = [*signs, *(random / np.linalg.norm(random, axis=2, keepdims=True))]
    furthest = dict.fromkeys(["interior", "repeated", "end"], 0.0)
    for length in range(2, 6):
        for sequence in itertools.product(range(3), repeat=length):
            for place in range(length):
                neighbours = [sequence[other] for other in (place - 1, place + 1) if 0 <= other < length]
                kind = "end" if len(neighbours) == 1 else "repeated" if sequence[place] in neighbours else "interior"
                before, after = transitions_of(sequence), transitions_of(sequence, place)
                for vectors in directions:
                    moved = np.linalg.norm(rows(before, vectors) - rows(after, vectors))
                    furthest[kind] = max(furthest[kind], moved)
    assert furthest["interior"] == pytest.approx(VISIT_SENSITIVITY, rel=1e-12)
    assert furthest["end"] == pytest.approx(math.sqrt(2), rel=1e-12)
    if rows is by_item:  # by visit, an equal neighbour's row still changes
        assert furthest["repeated"] == pytest.approx(math.sqrt(2), rel=1e-12)
    assert max(furthest.values()) <= VISIT_SENSITIVITY * (1 + 1e-12)


BUDGETS, DELTAS, RELEASES = [1e-300, 1e-12, 1e-4, 1.0, 4.0, 49.0, 51.0, 1e4, 1e9], [1e-12, 2.5e-7, 0.5], [1, 5000]
HUGE = (1e100, 2.5e-7, 11)
"""Once only: the root finder takes a second for such a budget."""


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")  # dp_accounting's own, for a huge budget
def test_rigorous_noise_is_enough():
    failures = []
    for budget, delta, releases in [*itertools.product(BUDGETS, DELTAS, RELEASES), HUGE]:
        noise = rigorous_sigma(releases, 0.4, budget, delta)
        spent = account([release_event(noise, 0.4, releases)], delta).epsilon
        if spent is None or spent > budget:
            failures.append((budget, delta, releases, spent))
    assert not failures


@pytest.mark.parametrize("budget", [1e-3, 1.0, 4.0, 1e3, 1e6])
def test_rigorous_noise_is_hardly_more_than_enough(budget):
    noise = rigorous_sigma(11, 0.4, budget, 2.5e-7)
    assert account([release_event(noise * (1 - 1e-4), 0.4, 11)], 2.5e-7).epsilon > budget


def test_rigorous_noise_grows_with_the_root_of_releases_and_with_the_norm():
    first = rigorous_sigma(1, 0.4, 4.0, 2.5e-7)
    assert rigorous_sigma(16, 0.4, 4.0, 2.5e-7) == pytest.approx(4 * first, rel=1e-9)
    assert rigorous_sigma(1, 0.8, 4.0, 2.5e-7) == pytest.approx(2 * first, rel=1e-9)


def test_where_nothing_is_released_nothing_is_spent_and_no_noise_needed():
    for steps, clip in ((0, 0.4), (2, 0.0)):
        assert aggregation.epsilon(steps, clip, 1.0, 1e-5) == aggregation.epsilon(steps, clip, 0.0, 1e-5) == 0
        assert aggregation.sigma(steps, clip, 4.0, 1e-5) == rigorous_sigma(steps, clip, 4.0, 1e-5) == 0
        with pytest.raises(ValueError, match="clip must be positive and releases at least 1"):
            release_event(1.0, clip, steps)


def test_a_release_without_noise_has_no_finite_budget():
    assert aggregation.epsilon(1, 0.4, 0.0, 1e-5) == math.inf
    assert account([release_event(0.0, 0.4, 3)], 1e-5).epsilon is None
