"""Membership by shadow runs: worlds, signals against slow and obvious versions, known truths, what ε allows."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import norm

from tasks.attacks import shadows
from tasks.attacks.shadows import Targets
from tasks.core.hashing import Uniforms

N_USERS, N_ITEMS = 120, 60


def targets(most: int = 4) -> Targets:
    """Of users with 6 to 15 items each."""
    rng = np.random.default_rng(0)
    pairs = [(u, i) for u in range(N_USERS) for i in sorted(rng.choice(N_ITEMS, rng.integers(6, 16), replace=False))]
    users, items = (np.array(column, np.int32) for column in zip(*pairs, strict=True))
    return shadows.choose(users, items, Uniforms.of(1, range(N_USERS), range(N_ITEMS)), most)


def test_nothing_that_is_asked_about_is_served_and_everything_else_is() -> None:
    made = targets()
    assert abs(made.by_coin.sum() - N_USERS / 2) < 5 * (N_USERS / 4) ** 0.5
    for user in range(N_USERS):
        own = set(made.items[made.users == user])
        asked = set(made.items[made.asked[made.owners == user]])
        served = set(made.served.items[made.served.indptr[user] : made.served.indptr[user + 1]])
        assert (asked & served, asked | served) == (set(), own)
        assert len(asked) == min(4, len(own) // 3)


def test_coins_are_fair_and_decide_what_is_trained_on() -> None:
    made, of_users, of_pairs = targets(), [], []
    for run in range(60):
        trained, included = shadows.toss(made, run)
        np.testing.assert_array_equal(trained[made.asked], included)
        rest = np.delete(np.arange(len(trained)), made.asked)
        for user in range(0, N_USERS, 7):
            mine = trained[rest[made.users[rest] == user]]
            if made.by_coin[user]:  # with everything or with nothing
                assert set(mine) | set(included[made.owners == user]) in ({True}, {False})
            else:
                assert mine.all()
        of_users.append(shadows.of_kind(made, "user", included))
        of_pairs.append(shadows.of_kind(made, "interaction", included))
    for coins in (np.array(of_users), np.array(of_pairs)):
        assert set(np.unique(coins)) == {0.0, 1.0}
        assert abs(coins.mean() - 0.5) < 2.5 / math.sqrt(coins.size)  # five deviations


def test_signals_are_those_of_their_definition() -> None:
    made, rng = targets(), np.random.default_rng(2)
    table = np.round(rng.normal(size=(N_USERS, N_ITEMS)), 1)  # with equal scores
    signals = shadows.read_signals(lambda users: table[users], made, k=5)
    for place, (user, row) in enumerate(zip(made.owners, made.asked, strict=True)):
        known = made.items[np.setdiff1d(np.flatnonzero(made.users == user), made.asked)]
        new = [score for item, score in enumerate(table[user]) if item not in known]
        own = table[user][made.items[row]]
        assert signals["scores"][place] == pytest.approx((own - np.mean(new)) / np.std(new))
        rank = 1 + sum(score > own for score in new) + (sum(score == own for score in new) - 1) / 2
        assert signals["lists"][place] == pytest.approx(1 / rank if rank <= 5 else 0)


def simulate(shift: Callable[[bool], float], runs: int = 24) -> list[dict]:
    """Records where a signal is a level of its own, noise, and what being in adds."""
    made, rng = targets(8), np.random.default_rng(3)
    level = 3 * rng.normal(size=len(made.asked))
    thrown = [shadows.toss(made, run)[1] for run in range(runs)]
    coins = np.array(thrown)
    signals = level + np.where(coins, shift(True), shift(False)) + rng.normal(size=coins.shape)
    return shadows.records(dict.fromkeys(shadows.SEEN, signals), coins, made, {}, 0.01, 0)


def test_likelihood_ratios_find_what_a_threshold_cannot_and_nothing_is_found_where_nothing_is() -> None:
    leaking = {(r["target"], r["attack"]): r for r in simulate(lambda is_in: 1.5 * is_in) if r["seen"] != "lists"}
    best = norm.cdf(1.5 / math.sqrt(2))  # AUC of one signal with known level
    assert leaking["interaction", "lira-online"]["auc"] == pytest.approx(best, abs=0.05)
    assert leaking["interaction", "lira-online"]["auc_low"] > leaking["interaction", "loss-threshold"]["auc_high"]
    assert leaking["user", "lira-online"]["auc"] > 0.85  # several signals of each
    for kind, control in (("interaction", "item-popularity"), ("user", "history-length")):
        for name in (control, "random-membership"):
            record = leaking[kind, name]
            assert record["auc_low"] < 0.5 < record["auc_high"] + 0.03
    quiet = [record for record in simulate(lambda _: 0.0) if record["seen"] != "nothing"]
    assert len(quiet) == 12
    assert sum(record["auc_low"] > 0.5 for record in quiet) <= 2


def test_attacks_learn_on_shadow_runs_whether_members_score_higher() -> None:
    up, down = (simulate(lambda is_in, sign=sign: sign * 4.0 * is_in) for sign in (1, -1))
    for record, mirrored in zip(up, down, strict=True):
        if record["seen"] != "nothing":
            assert min(record["auc"], mirrored["auc"]) > 0.7


def test_of_kind_is_a_mean_over_each_user() -> None:
    made = targets()
    values = np.arange(len(made.asked), dtype=float)
    users = np.unique(made.owners[made.is_kind("user")])
    assert shadows.of_kind(made, "user", values).tolist() == [values[made.owners == user].mean() for user in users]
    assert shadows.of_kind(made, "interaction", np.stack([values, values])).shape == (
        2,
        made.is_kind("interaction").sum(),
    )


@pytest.mark.parametrize(("epsilon", "rate"), [(0.0, 0.3), (1.0, 0.01), (3.0, 0.2)])
def test_the_rate_that_epsilon_allows_is_that_of_randomised_response(epsilon: float, rate: float) -> None:
    """The best attacker on ε-DP: a coin that is told rightly with probability e^ε / (1 + e^ε), and a mixture."""
    tells = 1 / (1 + math.exp(-epsilon))
    corner = (1 - tells, tells)
    best = corner[1] / corner[0] * rate if rate <= corner[0] else 1 - (1 - rate) * (1 - corner[1]) / (1 - corner[0])
    assert shadows.allowed_tpr(epsilon, 0.0, rate) == pytest.approx(best)
    assert shadows.allowed_tpr(epsilon, 0.1, 0.0) == pytest.approx(min(0.1, 1 - (0.9) * math.exp(-epsilon)))


def test_a_mechanism_that_is_as_private_as_it_says_exceeds_nothing() -> None:
    """Randomised response, the worst that ε allows, with scores that break ties; the alarm is 5 %."""
    epsilon, alarms = 1.0, 0
    for seed in range(300):
        rng = np.random.default_rng([6, seed])
        coins = rng.random(400) < 0.5
        says = coins ^ (rng.random(400) > 1 / (1 + math.exp(-epsilon)))
        alarms += shadows.exceeds(says + 0.5 * rng.random(400), coins, epsilon, 0.0, 0.05)
    assert alarms <= 27  # 5 % of 300, and three deviations
    assert shadows.exceeds(coins.astype(float), coins, 2.0, 0.01, 1e-4)


def test_guesses_that_are_all_right_refute_and_random_ones_do_not() -> None:
    rng = np.random.default_rng(0)
    coins = rng.random(400) < 0.5
    sure = shadows.refute(coins + 0.1 * rng.random(400), coins, (1.0, 0.0), 0.001, 0)
    assert sure["refuted"]
    assert 1.0 < sure["proved"] <= sure["provable"]
    wide = shadows.refute(coins + 0.1 * rng.random(400), coins, (1.0, 0.01), 0.001, 0)
    assert (wide["refuted"], wide["provable"]) == (True, 0.0)  # by the rates alone
    random = shadows.refute(rng.random(400), coins, (0.1, 0.0), 0.001, 0)
    assert not random["refuted"]
    assert shadows.refute(rng.random(400), coins, None, 0.001, 0) == {}
