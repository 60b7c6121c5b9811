"""What private steps release has the noise that was promised, for users of every budget, and all of it is counted."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from tasks.privacy import noise
from tasks.privacy.accounting.account import account
from tasks.privacy.accounting.ledger import Event
from tasks.privacy.mechanisms import dpsgd, ghost, optimal_clip, user_sgd
from tasks.privacy.mechanisms.dpsgd import release

N_USERS, EPSILON, DELTA = 40, 0.5, 1e-3
"""A small budget: the accountant's work grows as noise falls."""
LAYER = nn.Linear(30, 40)


def outers(n: int, scale: float = 1.0, seed: int = 0) -> list[ghost.Outer]:
    generator = torch.Generator().manual_seed(seed)
    inputs = scale * torch.randn(n, 30, generator=generator)
    return [ghost.Outer(LAYER, inputs, torch.randn(n, 40, generator=generator))]


def published(clip_norm: float | None = 1.5, budgets: np.ndarray | None = None, batch: int = 10):
    budgets = np.full(N_USERS, 1.0) if budgets is None else budgets
    return user_sgd.Published(N_USERS, batch, 3, optimal_clip.sigma(budgets, DELTA), clip_norm)


def rigorous(budgets: np.ndarray | None = None, **override):
    settings = {"epochs": 3, "epsilon_max": EPSILON, "delta": DELTA, "clip_norm": 1.5, "batch_size": 20} | override
    budgets = np.full(N_USERS, settings["epsilon_max"]) if budgets is None else budgets
    return user_sgd.Rigorous(N_USERS, budgets=budgets, **settings)


def values(gradient: dict[nn.Parameter, torch.Tensor]) -> np.ndarray:
    return torch.cat([part.flatten() for part in gradient.values()]).double().numpy()


def normal(sample: np.ndarray, std: float) -> bool:
    """Kolmogorov-Smirnov: a sound sample fails once in ten thousand tries."""
    return stats.kstest(sample / std, "norm").pvalue > 1e-4


def test_published_noise_is_the_sum_of_the_users_own():
    budgets = np.linspace(0.1, 1.0, N_USERS)
    private, users = published(budgets=budgets), np.array([0, 7, 31])
    zeros = outers(3, scale=0.0)
    zeros[0].errors.zero_()
    noisy, divisor = private.release(zeros, users, 1, np.random.default_rng(0))
    own = math.sqrt(2 * math.log(1.25 / DELTA)) * 1.5 / budgets[users]
    assert divisor == 3
    assert normal(values(noisy), math.sqrt((own**2).sum()))


def test_noise_in_pieces_is_that_of_one_draw():
    """More numbers than are drawn at a time; with no user in the step, what is released is noise alone."""
    layer, private = nn.Linear(300, 400), rigorous()
    assert layer.weight.numel() > user_sgd.PIECE
    nobody = [ghost.Outer(layer, torch.zeros(0, 300), torch.zeros(0, 400))]
    noisy, _ = private.release(nobody, np.zeros(0, np.int64), 1, np.random.default_rng(3))
    drawn = private.multiplier * 1.5 * np.random.default_rng(3).standard_normal(300 * 400 + 400)
    np.testing.assert_array_equal(values(noisy), drawn.astype(np.float32))


@pytest.mark.parametrize("make", [published, rigorous])
def test_a_user_moves_the_sum_by_no_more_than_the_bound(make):
    """With the same noise: one user more, large gradient, several examples."""
    private, users = make(), np.array([3, 4])
    rng = [np.random.default_rng(5) for _ in range(2)]
    if make is published:  # the noise follows the users of the step, so it is switched off
        private.sigmas[:] = 0.0
    both = values(private.release(outers(4, scale=100.0), users, 2, rng[0])[0])
    alone = [ghost.Outer(outer.layer, outer.inputs[:2], outer.errors[:2]) for outer in outers(4, scale=100.0)]
    first = values(private.release(alone, users[:1], 2, rng[1])[0])
    assert 0.1 < np.linalg.norm(both - first) <= 1.5 * (1 + 1e-5)


def test_small_gradients_pass_unclipped_and_examples_are_averaged():
    private, batch = published(clip_norm=1e6), outers(6)
    private.sigmas[:] = 0.0
    expected = values(ghost.weighted_sums(batch, torch.full((6,), 0.5)))
    released, _ = private.release(batch, np.arange(3), 2, np.random.default_rng(0))
    np.testing.assert_allclose(values(released), expected, rtol=1e-6)


def test_every_user_is_in_one_published_step_of_an_epoch():
    steps = list(published(batch=12).batches(np.random.default_rng(0)))
    assert [len(step) for step in steps] == [12, 12, 12, 4]
    assert sorted(np.concatenate(steps)) == list(range(N_USERS))


def test_rigorous_steps_are_poisson_samples():
    """Mean size of 4,000 samples within 5 standard errors: a sound one fails once in 1.7 million tries."""
    private, rng = rigorous(), np.random.default_rng(0)
    sizes = [len(step) for _ in range(2_000) for step in private.batches(rng)]
    assert len(sizes) == 4_000
    assert abs(np.mean(sizes) - 20) < 5 * math.sqrt(N_USERS / 4 / 4_000)
    assert np.std(sizes) == pytest.approx(math.sqrt(N_USERS / 4), rel=0.1)


def test_all_steps_together_stay_within_the_budget_and_near_it():
    """... of the plan, whether they run or not."""
    (event,) = rigorous().events()
    assert event.count == 6
    spent = account([event], DELTA).epsilon
    assert 0.95 * EPSILON < spent <= EPSILON


@pytest.mark.parametrize("quantile", [None, 0.5])
def test_what_is_released_beside_the_steps_takes_its_part_of_the_budget(quantile):
    counts = Event(kind="discrete-laplace", parameters={"noise_parameter": 0.0125, "sensitivity": 10.0})
    private = rigorous(composed_with=(counts,), quantile=quantile)
    assert private.multiplier > rigorous().multiplier
    events = [release(private.multiplier, private.plan.probability, 6), counts]
    spent = account(events, DELTA).epsilon
    assert 0.95 * EPSILON < spent <= EPSILON


def test_smaller_budgets_are_clipped_so_much_more_that_they_hold():
    budgets = EPSILON * np.array([1.0, 0.5, 0.55, 0.13, 0.1] + [1.0] * (N_USERS - 5))
    private = rigorous(budgets)
    assert private.shares[0] == 1
    assert private.shares[1] == private.shares[2]  # rounded down
    assert private.shares[4] == 0  # below an eighth of the largest: left out
    for user in (1, 3):
        own = account([release(private.multiplier / private.shares[user], private.plan.probability, 6)], DELTA).epsilon
        assert 0.85 * budgets[user] - 0.05 * EPSILON < own <= budgets[user]


def test_the_adaptive_bound_finds_its_quantile_and_costs_what_is_counted():
    # Every user in every step: without sampling, noise for so many steps is calibrated in closed form.
    private = rigorous(quantile=0.5, epochs=400, clip_norm=100.0, epsilon_max=50.0, batch_size=N_USERS)
    assert private.gradient_multiplier**-2 + (2 * private.count_noise) ** -2 == pytest.approx(private.multiplier**-2)
    rng, batch = np.random.default_rng(0), outers(N_USERS)
    for _ in range(150):
        private.release(batch, np.arange(N_USERS), 1, rng)
    median = float(ghost.squared_norms(batch).sqrt().median())
    assert float(private.bound) == pytest.approx(median, rel=0.35)
    assert float(rigorous(clip_norm=7.0).bound) == 7.0


def test_the_adaptive_bound_follows_a_count_with_all_of_its_noise():
    """A step that no one is in moves the bound by the noise alone."""
    private, counts = rigorous(quantile=0.5), []
    rng, nobody = np.random.default_rng(1), np.empty(0, np.int64)
    for _ in range(300):
        private.bound.fill_(1.5)
        _, divisor = private.release(outers(0), nobody, 1, rng)
        counts.append(-math.log(float(private.bound) / 1.5) / user_sgd.QUANTILE_RATE * divisor)
    assert normal(np.array(counts), private.count_noise)


def test_a_constant_published_bound_is_accounted_and_a_chosen_one_is_not():
    own = math.sqrt(2 * math.log(1.25 / DELTA))
    for batch, smallest in ((10, 10), (12, 4)):
        (event,) = published(batch=batch).events()
        assert event.count == 3  # once in every epoch
        assert event.parameters["noise_multiplier"] == pytest.approx(own * math.sqrt(smallest))
    assert account(published(None).events(), DELTA).epsilon is None


def test_no_published_step_has_less_noise_than_is_accounted():
    """Budgets differ: the four users with least noise may be dealt into one batch of four."""
    private = published(budgets=np.linspace(0.1, 1.0, N_USERS), batch=12)
    (event,) = private.events()
    rng, least = np.random.default_rng(0), math.inf
    for _ in range(200):
        with noise.recording() as draws:
            for users in private.batches(rng):
                private.release(outers(0), users, 1, rng)
        least = min(least, *(draw.scale for draw in draws if draw.release == "sum-of-gradients"))
    assert event.parameters["noise_multiplier"] * 1.5 <= least < 2 * event.parameters["noise_multiplier"] * 1.5


@pytest.mark.parametrize("clip_norm", [0.01, 1.5, 40.0])
def test_secure_noise_knows_the_sensitivity_of_what_it_hides(monkeypatch: pytest.MonkeyPatch, clip_norm: float):
    """It pays for rounding by it: of a sum of gradients it is the bound, of counts of ±1/2 a half."""
    stated: dict[str, tuple[float, float]] = {}
    plain = noise.add_gaussian

    def add(rng, release, value, std, *, sensitivity):
        stated[release] = std, sensitivity
        return plain(rng, release, value, std, sensitivity=sensitivity)

    monkeypatch.setattr(noise, "add_gaussian", add)
    private, rng = rigorous(quantile=0.5, clip_norm=clip_norm), np.random.default_rng(0)
    private.release(outers(4), np.arange(4), 1, rng)
    assert stated["sum-of-gradients"] == pytest.approx((private.gradient_multiplier * clip_norm, clip_norm))
    assert stated["count-of-small-norms"] == (private.count_noise, 0.5)
    dpsgd.add_noise(torch.zeros(5), 2.0, clip_norm, rng)
    assert stated["sum-of-gradients"] == (2 * clip_norm, clip_norm)


@pytest.mark.parametrize("make", [published, rigorous])
def test_an_infinite_budget_is_no_privacy(make):
    infinite = np.full(N_USERS, math.inf)
    private = published(budgets=infinite) if make is published else rigorous(infinite, epsilon_max=math.inf)
    private.release(outers(2), np.arange(2), 1, np.random.default_rng(0))
    assert account(private.events(), DELTA).epsilon is None
    assert not values(private.release(outers(2, scale=0.0), np.arange(2), 1, np.random.default_rng(0))[0])[:1200].any()


@pytest.mark.parametrize("quantile", [None, 0.5])
@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize("examples", [1, 3])
def test_one_users_presence_moves_a_step_by_no_more_than_is_accounted(quantile, share, examples):
    """Gradient and count together, each in units of its own noise, next to a user of the largest budget: a user without
    interactions, whose gradient is 0, against one who is not in the step; with large gradients the bound is reached,
    which is that of noise calibrated to the user's own budget."""
    budgets = EPSILON * np.where(np.arange(N_USERS) == 3, share, 1.0)
    accounted = 1 / rigorous(epsilon_max=share * EPSILON).multiplier
    zero, other = ghost.Outer(LAYER, torch.zeros(1, 30), torch.zeros(1, 40)), outers(1, 100.0, seed=1)[0]
    moved = []
    for present in ([], [zero], outers(1, 0.001), outers(1, 100.0)):
        inputs, errors = (
            torch.cat([getattr(outer, part) for outer in (*present, other)]).repeat_interleave(examples, 0)
            for part in ("inputs", "errors")
        )
        private, who = rigorous(budgets, quantile=quantile), np.array([3, 7])[-len(present) - 1 :]
        with noise.recording() as draws:
            batch = [ghost.Outer(LAYER, inputs, errors)]
            released, divisor = private.release(batch, who, examples, np.random.default_rng(5))
        count = -math.log(float(private.bound) / 1.5) / user_sgd.QUANTILE_RATE * divisor
        scales = [draw.scale for draw in draws]
        assert len(draws) == 1 + len(list(LAYER.parameters())) - (quantile is None)
        moved.append(np.append(values(released) / scales[0], count / scales[-1] if quantile else 0.0))
    np.testing.assert_allclose(moved[0], moved[1], atol=1e-9)
    distances = [float(np.linalg.norm(world - moved[0])) for world in moved[2:]]
    assert max(distances) <= accounted * (1 + 1e-5)
    assert distances[1] == pytest.approx(accounted, rel=1e-4)


def divergence(first: np.ndarray, second: np.ndarray, epsilon: float, step: float) -> float:
    """The smallest δ with which two densities on a grid are (ε, δ)-close, in both directions."""
    return max(
        float(np.maximum(a - math.exp(epsilon) * b, 0).sum() * step) for a, b in ((first, second), (second, first))
    )


def worlds(probability: float, divisors: tuple[float, float], std: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Densities of one released coordinate: a user who adds 1 with some probability taken out, and there."""
    grid = np.linspace(-60, 60, 480_001) * std / min(divisors)
    without = stats.norm.pdf(grid, 0, std / divisors[0])
    present = (1 - probability) * stats.norm.pdf(grid, 0, std / divisors[1])
    present += probability * stats.norm.pdf(grid, 1 / divisors[1], std / divisors[1])
    return without, present, float(grid[1] - grid[0])


@pytest.mark.parametrize("batch_size", [20, N_USERS])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_what_a_step_is_divided_by_leaks_nothing(batch_size, epsilon):
    """The privacy curve of one step at its worst case, by the divisors of the code itself at both neighbours, is not
    above the accountant's. Divided by the number of those who have interactions, it would be above."""
    private = rigorous(batch_size=batch_size, epochs=1)
    there, taken_out = outers(1, scale=100.0), [ghost.Outer(LAYER, torch.zeros(1, 30), torch.zeros(1, 40))]
    divisors = tuple(
        private.release(batch, np.array([7]), 1, np.random.default_rng(0))[1] for batch in (taken_out, there)
    )
    assert divisors == (batch_size, batch_size)
    probability, std = private.plan.probability, private.multiplier
    first, second, step = worlds(probability, divisors, std)
    delta = divergence(first, second, epsilon, step)
    accounted = account([release(std, probability, 1)], delta).epsilon
    assert epsilon - 1e-6 <= accounted <= epsilon + 0.02
    actual = (probability * (N_USERS - 1), probability * N_USERS)
    first, second, step = worlds(probability, actual, std)
    assert divergence(first, second, epsilon, step) > 1.001 * delta
