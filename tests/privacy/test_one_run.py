"""The one-run bound is the paper's, is the exact binomial one without delta, and does not accuse sound mechanisms."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from tasks.privacy.audits.one_run import audit, count_correct, lower_bound, p_value


def test_the_example_that_the_paper_prints() -> None:
    """Appendix D: of 1,000 canaries 100 are guessed, 75 rightly; δ = 1e-4, 95 %."""
    assert lower_bound(1000, 100, 75, 1e-4, 0.95) == pytest.approx(0.673, abs=5e-4)


@pytest.mark.parametrize(("r", "correct"), [(1, 1), (10, 9), (50, 30), (100, 100), (400, 330), (20, 3), (7, 0), (0, 0)])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_without_delta_it_inverts_the_binomial_tail(r: int, correct: int, confidence: float) -> None:
    """The lower end of Clopper and Pearson's one-sided interval of the share of right guesses, as an epsilon."""
    low = stats.beta.ppf(1 - confidence, correct, r - correct + 1) if correct else 0.0
    expected = max(0.0, math.log(low / (1 - low))) if low > 0 else 0.0
    assert lower_bound(400, r, correct, 0.0, confidence) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("m", [12, 60])
def test_the_p_value_is_what_a_slow_sum_gives(m: int) -> None:
    for epsilon, delta, correct in itertools.product([0.0, 0.7, 3.0], [1e-5, 1e-2, 0.3], range(13)):
        chances = [math.comb(12, k) * math.exp(epsilon * k) / (1 + math.exp(epsilon)) ** 12 for k in range(13)]
        worst = max((sum(chances[correct - i : correct]) / i for i in range(1, correct + 1)), default=0.0)
        expected = min(1.0, sum(chances[correct:]) + 2 * m * delta * worst)
        assert p_value(m, 12, correct, epsilon, delta) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-3, 1e-2])
@pytest.mark.parametrize("m", [100, 1000])  # 2 m δ on either side of 1
def test_it_rises_with_right_guesses_and_falls_with_all_else(m: int, delta: float) -> None:
    def bound(r: int, correct: int, delta: float = delta, confidence: float = 0.95) -> float:
        return lower_bound(m, r, correct, delta, confidence)

    by_correct = [bound(80, correct) for correct in range(30, 81)]
    by_guesses = [bound(r, 50) for r in range(50, 101, 2)]
    by_delta = [bound(80, 78, tried) for tried in (0.0, 1e-6, 1e-4, 1e-3, 1e-2)]
    by_confidence = [bound(80, 78, confidence=tried) for tried in (0.5, 0.9, 0.99, 0.999)]
    by_canaries = [lower_bound(n, 80, 78, delta, 0.95) for n in (80, 200, 2000)]
    assert by_correct == sorted(by_correct)
    for falling in (by_guesses, by_delta, by_confidence, by_canaries):
        assert falling == sorted(falling, reverse=True)


@pytest.mark.parametrize("delta", [1e-3, 1e-2])
def test_every_smaller_epsilon_is_refuted_too(delta: float) -> None:
    """The bound is where the p-value first reaches the error, though it need not rise everywhere."""
    for m, r, correct in [(100, 100, 90), (1000, 200, 180), (1000, 60, 60)]:
        bound = lower_bound(m, r, correct, delta, 0.95)
        below = [p_value(m, r, correct, epsilon, delta) for epsilon in np.arange(0, bound, 0.01)]
        above = [p_value(m, r, correct, epsilon, delta) for epsilon in np.arange(bound + 1e-5, bound + 3, 0.01)]
        assert all(value < 0.05 for value in below)
        assert all(value >= 0.05 for value in above)


def test_a_perfect_attacker_proves_what_is_provable_and_no_more_and_one_who_is_always_wrong_nothing() -> None:
    included = np.random.default_rng(0).random(60) < 0.5
    result = audit(included.astype(float), included, 20, 0.0, 0.95)
    assert (result.canaries, result.guesses, result.correct, result.confidence) == (60, 20, 20, 0.95)
    right = 0.05 ** (1 / 20)
    assert result.epsilon == result.provable == pytest.approx(math.log(right / (1 - right)), abs=1e-5)
    assert audit(-included.astype(float), included, 20, 0.0, 0.95).epsilon == 0


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (2.0, 0.0), (1.0, 0.01), (1.0, 0.05)])
def test_randomised_response_is_not_accused(epsilon: float, delta: float) -> None:
    """Which of 100 bits is said truly with e^ε/(1 + e^ε), and given away with probability δ, is known: the bound is
    wrong in 5 % of runs at most. False alarm of the test: one in 1,000."""
    rng, runs, m = np.random.default_rng(5), 2000, 100
    bits = rng.random((runs, m)) < 0.5
    answers = np.where(rng.random((runs, m)) < 1 / (1 + math.exp(-epsilon)), bits, ~bits).astype(float)
    answers = np.where(rng.random((runs, m)) < delta, np.where(bits, 2.0, -1.0), answers)
    bounds = np.array([lower_bound(m, 30, correct, delta, 0.95) for correct in range(31)])
    answers += 0.1 * rng.random(answers.shape)  # ties at random
    right = [count_correct(row, truth, 15, 15) for row, truth in zip(answers, bits, strict=True)]
    actual = bounds[right]
    assert stats.binom.sf((actual > epsilon).sum() - 1, runs, 0.05) > 1e-3
    if not delta:  # bounds that are never wrong may be bounds that never say anything
        assert actual.max() > epsilon


def test_ignoring_delta_would_accuse() -> None:
    """What the correction is for: a mechanism that gives bits away with δ = 0.05 and says nothing else."""
    rng, m = np.random.default_rng(6), 400
    wrong = []
    for delta in (0.0, 0.05):
        bits = rng.random(m) < 0.5
        scores = np.where(rng.random(m) < 0.05, np.where(bits, 1.0, -1.0), 0.0)
        wrong.append(audit(scores, bits, 14, delta, 0.95).epsilon)
    assert wrong[0] > 1
    assert wrong[1] == 0


def test_guesses_are_the_highest_and_the_lowest_scores_and_ties_are_wrong_first() -> None:
    """As the worst of all orders of equal scores says, slowly."""
    rng = np.random.default_rng(0)
    for distinct in (1, 2, 3, 6):
        scores, bits = rng.integers(0, distinct, 6).astype(float), rng.random(6) < 0.5
        rankings = [sorted(order, key=lambda of: -scores[of]) for order in itertools.permutations(range(6))]
        for n_in, n_out in itertools.product(range(4), range(4)):
            slow = min(sum(bits[ranked[:n_in]]) + sum(~bits[ranked[6 - n_out :]]) for ranked in rankings)
            assert count_correct(scores, bits, n_in, n_out) == slow
