"""AUC and rates of true positives against brute force; intervals and p-values where the truth is known."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from tasks.evaluation import detection
from tasks.evaluation.detection import Scored, p_above, p_above_chance, p_at_low_rate, p_different

RNG = np.random.default_rng(5)
MEMBERS = RNG.integers(0, 25, 300).astype(float)
OTHERS = RNG.integers(0, 20, 200).astype(float)
AT_LOW_RATES = [(pairs, tpr) for pairs in (True, False) for tpr in (None, 0.06)]


def test_auc_and_rates_are_those_of_brute_force_with_equal_scores_too() -> None:
    scored = Scored(MEMBERS, OTHERS)
    truth = np.repeat([1, 0], [300, 200])
    assert scored.auc == pytest.approx(roc_auc_score(truth, np.concatenate([MEMBERS, OTHERS])))
    for rate in (0.0, 0.01, 0.05, 0.3):
        allowed = [t for t in np.concatenate([OTHERS, [np.inf]]) if (t < OTHERS).mean() <= rate]
        assert scored.tpr(rate) == pytest.approx(max((t < MEMBERS).mean() for t in allowed))


def test_the_curve_goes_through_the_rates() -> None:
    false, true = Scored(MEMBERS, OTHERS).roc()
    assert (np.diff(false) >= 0).all()
    assert (np.diff(true) >= 0).all()
    assert (false[0], true[-1]) == (0, 1)
    for x, y in zip(false, true, strict=True):
        assert Scored(MEMBERS, OTHERS).tpr(x) == pytest.approx(y)


def test_a_rate_below_one_non_member_is_not_resolved() -> None:
    assert Scored(MEMBERS, OTHERS).resolves(0.01)
    assert not Scored(MEMBERS, OTHERS).resolves(0.001)


def test_intervals_cover_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detection, "RESAMPLES", 200)
    true_auc, true_tpr = norm.cdf(1 / np.sqrt(2)), norm.sf(norm.isf(0.05) - 1)
    covered = np.zeros(2)
    for seed in range(100):
        rng = np.random.default_rng([1, seed])
        scored = Scored(rng.normal(1, 1, 150), rng.normal(0, 1, 250))
        auc, tpr = scored.auc_interval(seed), scored.tpr_interval(0.05, seed)
        covered += auc.low <= true_auc <= auc.high, tpr.low <= true_tpr <= tpr.high
    assert (covered >= 88).all()  # of 100 at 95 %: fewer have probability 0.002


def test_targets_of_one_user_go_together() -> None:
    rng = np.random.default_rng(3)
    level = np.repeat(rng.normal(size=40), 10)  # ten equal targets of each of 40 users, and the same number of others
    users = np.repeat(np.arange(40), 10)
    other = rng.normal(size=400)
    apart = Scored(level, other).auc_interval(0)
    together = Scored(level, other, (users, users)).auc_interval(0)
    assert together.value == apart.value
    assert together.high - together.low > 1.5 * (apart.high - apart.low)


def test_p_values_are_as_rare_as_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detection, "RESAMPLES", 100)
    users = np.repeat(np.arange(60), 3)
    alarms = np.zeros(7)
    for seed in range(200):
        rng = np.random.default_rng([2, seed])
        level = np.repeat(rng.normal(size=60), 3)
        members, others = level + rng.normal(size=180), level + rng.normal(size=180)
        scored = Scored(members, others, (users, users))
        control = Scored(rng.normal(size=180), rng.normal(size=180), (users, users))
        alarms += [
            p_above_chance(scored, seed) < 0.05,
            p_different(scored, seed) < 0.05,
            p_above(scored, control, seed) < 0.05,
            *(p_at_low_rate(members, others, 0.05, pairs=pairs, tpr=tpr) < 0.05 for pairs, tpr in AT_LOW_RATES),
        ]
    assert (alarms <= 22).all()  # of 200 at 5 %: more have probability 0.0005


def test_an_attack_that_is_right_about_a_few_is_noticed_at_low_rates() -> None:
    rng = np.random.default_rng(7)
    members, others = rng.normal(size=1_000), rng.normal(size=1_000)
    members[:60] = 10
    shuffled = rng.permutation(members)
    assert max(p_at_low_rate(shuffled, others, 0.01, pairs=pairs, tpr=tpr) for pairs, tpr in AT_LOW_RATES) < 1e-4
    assert Scored(members, others).tpr(0.01) > 0.05


def test_a_control_that_is_as_good_takes_an_attack_away() -> None:
    rng = np.random.default_rng(8)
    members, others = rng.normal(1, 1, 300), rng.normal(0, 1, 300)
    attack, control = Scored(members, others), Scored(-members, -others)  # pointing the other way is no excuse
    assert p_above_chance(attack, 0) < 1e-9
    assert p_above(attack, control, 0) == 1
    assert p_different(control, 0) < 1e-9
