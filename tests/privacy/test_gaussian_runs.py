"""The bounds of Gaussian runs do not accuse Gaussian mechanisms, and find those that are louder than they say."""

import math

import numpy as np
import pytest

from tasks.privacy.audits import gaussian_runs, one_run

DELTA = 1e-5


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("share", [0.05, 0.3, 1.0])
def test_the_truth_is_refuted_no_more_often_than_said(mu: float, share: float) -> None:
    rng, m, runs = np.random.default_rng(0), 300, 200
    r = round(share * m)
    wrong = {"f-DP": 0, "separation": 0}
    known: dict[int, bool] = {}
    for _ in range(runs):
        included = rng.random(m) < 0.5
        scores = rng.standard_normal(m) + mu * included
        correct = one_run.count_correct(scores, included, (r + 1) // 2, r // 2)
        if correct not in known:
            known[correct] = gaussian_runs.refuted(m, r, correct, mu, 0.05)
        wrong["f-DP"] += known[correct]
        wrong["separation"] += gaussian_runs.separation(scores, included, 0.95) > mu
    assert max(wrong.values()) <= 20  # P[Bin(200, 0.05) > 20] = 1e-3


def test_it_proves_more_than_the_bound_for_any_mechanism() -> None:
    rng, m, mu = np.random.default_rng(1), 2000, 1.75
    included = rng.random(m) < 0.5
    scores = rng.standard_normal(m) + mu * included
    correct = one_run.count_correct(scores, included, 300, 300)
    proved = gaussian_runs.epsilon_of(gaussian_runs.f_dp(m, 600, correct, 0.95), DELTA)
    true = gaussian_runs.epsilon_of(mu, DELTA)
    assert one_run.lower_bound(m, 600, correct, DELTA, 0.95) < proved < true
    estimated = gaussian_runs.epsilon_of(gaussian_runs.separation(scores, included, 0.95), DELTA)
    assert proved < estimated < true


def test_right_guesses_prove_more_and_chance_proves_nothing() -> None:
    bounds = [gaussian_runs.f_dp(1000, 200, correct, 0.95) for correct in (0, 100, 130, 160, 190, 200)]
    assert bounds[:2] == [0.0, 0.0]
    assert bounds == sorted(bounds)
    assert bounds[-1] > bounds[2] > 0


def test_without_noise_no_epsilon_is_large_enough() -> None:
    included = np.arange(40) % 2 == 0
    assert math.isinf(gaussian_runs.separation(included.astype(float), included, 0.95))
    assert math.isinf(gaussian_runs.epsilon_of(math.inf, DELTA))
    assert gaussian_runs.separation(np.zeros(40), included, 0.95) == 0.0
