"""Membership attacks against the formulas of their papers, written out, and where the best attack is known."""

import numpy as np
import pytest
from scipy.stats import norm

from tasks.attacks.membership import as_likelihoods, lira_offline, lira_online, rmia
from tasks.evaluation.detection import Scored

RNG = np.random.default_rng(11)
N, RUNS = 30, 8
SIGNALS = RNG.normal(size=N)
SHADOWS = RNG.normal(size=(RUNS, N))
INCLUDED = RNG.permuted(np.arange(RUNS)[:, None] % 2 == np.zeros((1, N)), axis=0)


def test_lira_is_the_ratio_of_two_normal_densities() -> None:
    inside = [SHADOWS[INCLUDED[:, x], x] for x in range(N)]
    outside = [SHADOWS[~INCLUDED[:, x], x] for x in range(N)]
    # the deviation of all targets together: each mean costs a degree of freedom
    std_in = np.sqrt(sum(((own - own.mean()) ** 2).sum() for own in inside) / (sum(map(len, inside)) - N))
    std_out = np.sqrt(sum(((own - own.mean()) ** 2).sum() for own in outside) / (sum(map(len, outside)) - N))
    ratio = [
        norm.logpdf(SIGNALS[x], inside[x].mean(), std_in) - norm.logpdf(SIGNALS[x], outside[x].mean(), std_out)
        for x in range(N)
    ]
    np.testing.assert_allclose(lira_online(SIGNALS, SHADOWS, INCLUDED), ratio)
    below = [norm.logcdf(SIGNALS[x], outside[x].mean(), std_out) for x in range(N)]
    np.testing.assert_allclose(lira_offline(SIGNALS, SHADOWS, INCLUDED), below)


def test_lira_has_a_variance_for_each_target_where_there_are_many_shadow_runs() -> None:
    rng = np.random.default_rng(2)
    included = np.arange(128)[:, None] % 2 == np.zeros((1, 5))
    shadows = rng.normal(size=(128, 5)) * np.arange(1, 6)
    inside, outside = shadows[0::2], shadows[1::2]
    expected = norm.logpdf(1, inside.mean(0), inside.std(0, ddof=1)) - norm.logpdf(
        1, outside.mean(0), outside.std(0, ddof=1)
    )
    np.testing.assert_allclose(lira_online(np.ones(5), shadows, included), expected)


@pytest.mark.parametrize("offline", [None, 0.3])
@pytest.mark.parametrize("gamma", [1.0, 2.0])
def test_rmia_counts_the_population_points_that_a_target_dominates(offline: float | None, gamma: float) -> None:
    likelihoods, shadows = as_likelihoods(SIGNALS), as_likelihoods(SHADOWS)
    population = np.arange(N) % 3 == 0

    def ratio(x: int) -> float:
        inside, outside = shadows[INCLUDED[:, x], x].mean(), shadows[~INCLUDED[:, x], x].mean()
        prior = (inside + outside) / 2 if offline is None else ((1 + offline) * outside + 1 - offline) / 2
        return float(likelihoods[x] / prior)

    def share(x: int) -> float:
        over = np.array([ratio(x) / ratio(z) for z in np.flatnonzero(population)])
        return float(((over > gamma).mean() + (over >= gamma).mean()) / 2)

    expected = [share(x) for x in range(N)]
    scores = rmia(likelihoods, shadows, INCLUDED, population, gamma=gamma, offline=offline)
    np.testing.assert_allclose(scores, expected)


@pytest.mark.parametrize(
    ("offline", "expected"),
    [
        (0.0, [1.0, 0.25, 1.0, 0.125, 1.0, 0.5]),
        (0.3, [1.0, 0.25, 1.0, 0.125, 1.0, 0.5]),
        (1.0, [1.0, 0.375, 1.0, 0.25, 1.0, 0.375]),
    ],
)
def test_rmia_has_the_scores_of_privacy_meter(offline: float, expected: list[float]) -> None:
    """Those of `run_rmia` in privacytrustlab/ml_privacy_meter (0b8cb7a), which its authors wrote, on this case.

    It wants each target in half of the runs, and of the population the largest half of the signals, here all equal.
    """
    targets = np.array([0.91, 0.35, 0.62, 0.18, 0.77, 0.50])
    of_targets = [
        [0.80, 0.85, 0.40, 0.45],
        [0.30, 0.38, 0.36, 0.31],
        [0.70, 0.35, 0.30, 0.66],
        [0.20, 0.22, 0.24, 0.19],
        [0.55, 0.90, 0.52, 0.88],
        [0.48, 0.47, 0.53, 0.55],
    ]
    included = [[1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1], [0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]]
    population = np.array([0.44, 0.23, 0.81, 0.36, 0.59, 0.71, 0.15, 0.64])
    of_population = np.repeat([0.42, 0.27, 0.79, 0.30, 0.63, 0.66, 0.19, 0.60], 4).reshape(8, 4)
    scores = rmia(
        np.concatenate([targets, population]),
        np.concatenate([of_targets, of_population]).T,
        np.concatenate([included, np.zeros((8, 4))]).T.astype(bool),
        np.arange(14) >= len(targets),
        offline=offline,
    )
    np.testing.assert_allclose(scores[: len(targets)], expected)


def test_rmia_tells_nothing_of_members_whose_signals_are_those_of_others() -> None:
    rng = np.random.default_rng(5)
    n, runs = 4_000, 2
    member, included = rng.random(n) < 0.5, np.broadcast_to([[True], [False]], (runs, n))
    # reciprocal ranks in one list that depends on no one's data: most items are not in it
    likelihoods = as_likelihoods(np.where(rng.random(n) < 0.7, 0.0, rng.random(n)))
    shadows = np.broadcast_to(likelihoods, (runs, n))
    for offline in (None, 0.3):
        for gamma in (0.5, 1.0, 2.0):
            scores = rmia(likelihoods, shadows, included, ~member, gamma=gamma, offline=offline)
            assert Scored(scores[member], scores[~member]).auc == pytest.approx(0.5, abs=0.03)


def test_a_target_without_the_shadow_runs_that_an_attack_needs_has_no_score() -> None:
    included = INCLUDED.copy()
    included[:, 0], included[:, 1] = True, False
    shadows = SHADOWS.copy()
    shadows[0, 2:] = np.nan  # a run without lists of these targets says nothing of them
    assert np.isnan(lira_online(SIGNALS, shadows, included)[:2]).all()
    assert np.isfinite(lira_online(SIGNALS, shadows, included)[2:]).all()
    assert np.isnan(lira_offline(SIGNALS, shadows, included)).tolist() == [True] + [False] * (N - 1)
    scores = rmia(as_likelihoods(SIGNALS), as_likelihoods(shadows), included, np.arange(N) > 10)
    assert np.isnan(scores).tolist() == [True] * 2 + [False] * (N - 2)


def test_likelihoods_are_percentiles_of_their_run() -> None:
    assert as_likelihoods(np.array([[3.0, 1.0, 1.0, np.nan]]))[0, :3].tolist() == [1.0, 0.5, 0.5]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"shadow signals \(8, 30\) and memberships \(8, 30\) for \(29,\) targets"):
        lira_online(SIGNALS[1:], SHADOWS, INCLUDED)
    with pytest.raises(ValueError, match=r"outside \(0, 1\]"):
        rmia(SIGNALS, SHADOWS, INCLUDED, np.ones(N, bool))
    with pytest.raises(ValueError, match="no target of the population"):
        rmia(as_likelihoods(SIGNALS), as_likelihoods(SHADOWS), INCLUDED, np.zeros(N, bool))
